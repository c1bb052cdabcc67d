"""explain_difference: which arithmetic gives somebody else's codes, and what differs from ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.argument import instance, numbers
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from pyonednn_q.expr.steps import Binary, Leaf
from pyonednn_q.inspection.arithmetics import (
    frameworks_of,
    named_arithmetics,
    suppositions,
    without_vnni,
)
from pyonednn_q.inspection.explanation import Agreement, DifferingOutput, Explanation
from pyonednn_q.inspection.group_difference import group_difference, runs_on_groups
from pyonednn_q.inspection.outputs import Outputs
from pyonednn_q.inspection.remarks import remarks_of
from pyonednn_q.ops.arrays import as_array
from pyonednn_q.ops.operator import Operator
from pyonednn_q.ops.source import Codes
from pyonednn_q.ops.staged import SourceLevels
from pyonednn_q.report.progress import counted
from pyonednn_q.shown import shortened, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyonednn_q.inspection.arithmetics import Supposition

_EXAMPLES = 8
_WORTH = 2  # how many times fewer outputs must be left over, where something is supposed
_OF_A_STEP = 2.0**-10  # how far real values may be from dst's grid, and still be codes


def explain_difference(
    operator: Operator, src: object, theirs: object, *, residual: object = None, **operands: object
) -> Explanation:
    """Find the arithmetic that gives another runtime's codes, and count how they differ from ours.

    The sums are computed exactly, from weights and source. Then every known arithmetic
    converts the sums to codes: the dialects of `requantize` (ONNX Runtime, TFLite, Caffe2,
    TPU-MLIR, TOSA, oneDNN's forms, ...), graphs of float operators, plain roundings. If none gives
    all of the other codes, each is tried again under one other assumption: sums saturate without
    VNNI, padding is code 0, the zero point differs, there is no bias, there is one ReLU more or
    less.

    Layers with weights in groups have float results. The candidates are then codes of the source
    with one range for each row or group, onnxruntime's MatMulNBits at its accuracy levels, and the
    real product.

    Parameters
    ----------
    operator : Conv, Deconv, InnerProduct or MatMul
        Operator that both runtimes compute, made with `src_q` and `wei_q`, with an integer result;
        or one with weights in groups.
    src : array
        Source of the call: codes of `src_q`'s data type, or float32 values.
    theirs : array of int, or of float
        Result of the other runtime, in the dims of dst: codes, or real values if all are multiples
        of dst's scale from its zero point.
    residual, **operands
        Further arrays that a call of `operator` takes.

    Returns
    -------
    Explanation
        ``print`` shows it. A `GroupDifference` if weights are in groups.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument, what came and what would do.

    Examples
    --------
    M is 1/4, and every other sum a tie. The other runtime rounds halves away from zero, oneDNN to
    even:

    >>> import numpy as np
    >>> from pyonednn_q.ops.dense import MatMul
    >>> from pyonednn_q.qparams import QParams
    >>> q = QParams(0.5, 0, "s8")
    >>> matmul = MatMul(np.array([[1]], np.int8), src_q=q, wei_q=QParams(0.25, 0, "s8"), dst_q=q)
    >>> src = np.arange(-8, 9, dtype=np.int8).reshape(-1, 1)
    >>> theirs = np.trunc(src / 4 + np.copysign(0.5, src)).astype(np.int8)
    >>> why = explain_difference(matmul, src, theirs)
    >>> why.differing, why.exact_ties, why.explained_by[0].name
    (2, 2, 'exact_half_away')
    """
    instance("operator", operator, Operator)
    source = as_array("src", src)
    if runs_on_groups(operator):
        if residual is not None or operands:
            raise ArgumentError("operands", "some", "none: nothing follows sums of groups")
        return group_difference(operator, source, theirs)
    codes, scale, point = _codes(operator, source)
    before = None if residual is None else as_array("residual", residual)
    leaves = _leaves(operator, operands)
    outputs = Outputs.of(operator, codes, (scale, point), before, leaves)
    compared = _theirs(theirs, outputs)
    ours, origin = _ours(operator, source, outputs, before, leaves)
    search = _Search(frameworks_of(operator), compared)
    search.add(outputs)
    if not search.is_explained:
        for supposition in suppositions(operator, codes, point, outputs, compared):
            search.suppose(supposition)
    best = ours if search.codes is None else search.codes
    notes: tuple[str, ...] = ()
    if not search.is_explained:
        narrow = dict(without_vnni(operator, codes, point, outputs.acc.shape))
        notes = remarks_of(outputs, best, compared, narrow, is_named=search.is_supposed)
    return _explanation(outputs, ours, origin, compared, search.ordered(), notes)


class _Search:
    """Results of every arithmetic, and the codes of the best one of the operator as it is."""

    def __init__(self, frameworks: Mapping[str, tuple[str, ...]], theirs: Array) -> None:
        self.frameworks, self.theirs = frameworks, theirs
        self.agreements: list[Agreement] = []
        self.codes: Array | None = None
        self.is_supposed = False  # whether a supposition explains everything
        self._most = -1

    @property
    def is_explained(self) -> bool:
        return self._most == self.theirs.size

    def add(self, outputs: Outputs) -> None:
        """Try every arithmetic on the operator as it is."""
        for agreement, codes in self._tried(outputs, ""):
            self.agreements.append(agreement)
            if agreement.equal > self._most:
                self._most, self.codes = agreement.equal, codes

    def suppose(self, supposition: Supposition) -> None:
        """Try every arithmetic on something else, and keep all that give every output.

        Else one of them, if it leaves far fewer than the operator as it is.
        """
        agreements = [a for a, _ in self._tried(supposition.outputs, supposition.text)]
        most = max((a.equal for a in agreements), default=0)
        missing = self.theirs.size - most
        if missing * _WORTH <= self.theirs.size - self._most:
            best = [a for a in agreements if a.equal == most]
            self.agreements += best[:1] if missing else best
            self.is_supposed |= not missing

    def _tried(self, outputs: Outputs, supposing: str) -> Iterator[tuple[Agreement, Array]]:
        for arithmetic in counted(named_arithmetics(), "trying arithmetics"):
            codes = arithmetic.codes(outputs)
            if codes is not None:
                equal = int((codes == self.theirs).sum())
                users = self.frameworks.get(arithmetic.name, ())
                yield Agreement(arithmetic.name, arithmetic.words, equal, supposing, users), codes

    def ordered(self) -> tuple[Agreement, ...]:
        """Return the best first; of equals those that most frameworks use."""
        return tuple(sorted(self.agreements, key=lambda a: (-a.equal, -len(a.frameworks))))


def _codes(operator: Operator, source: Array) -> tuple[Array, float, int]:
    """Return codes of a source, and what they are worth."""
    settings = operator.settings
    if settings.src_q is None:
        raise ArgumentError(
            "operator", f"one of {operator.weights.dtype} weights", "one with src_q and wei_q"
        )
    if isinstance(settings.src_q, SourceLevels):
        wanted = "one whose source has QParams, or a FakeQuantize of 256 levels with 0 among them"
        raise ArgumentError("operator", "one with levels that are no QParams", wanted)
    settings.check_src(operator._src_dtype(source))  # noqa: SLF001 - an operator's own reading
    parts = operator.weights.parts
    dims = source.shape if parts is None else parts.dims(source.shape)
    operator._problem(dims, settings.src_q.dtype)  # noqa: SLF001 - refuses other shapes, as a call does
    codes = operator._codes(source, None) or Codes(source)  # noqa: SLF001
    values = codes.values.reshape(source.shape)
    if codes.scale is None or codes.zero_point is None:
        assert settings.dynamic is None
        params: Any = settings.src_q
        return values, float(params.scale), int(params.zero_point)
    if codes.scale.size != 1:
        wanted = "one with a scale for the whole source"
        raise ArgumentError("operator", "one with a range per row", wanted)
    return values, float(codes.scale[0]), int(codes.zero_point[0])


def _leaves(operator: Operator, operands: Mapping[str, object]) -> dict[str, Array]:
    """Return the values of the chain's leaves."""
    steps = [step.operand for step in operator.settings.post if isinstance(step, Binary)]
    names = [operand.name for operand in steps if isinstance(operand, Leaf)]
    for name in operands:
        if name not in names:
            raise ArgumentError("operands", shown(name), "the names of the chain's leaves")
    return {name: as_array(name, value) for name, value in operands.items()}


def _theirs(theirs: object, outputs: Outputs) -> Array:
    array = numbers("theirs", theirs)
    dims = outputs.acc.shape
    if array.shape != dims:
        wanted = f"{dims}, as the operator returns it"
        if len(dims) > 2 and array.shape == (dims[0], *dims[2:], dims[1]):
            wanted += "; np.moveaxis(theirs, -1, 1) has channels where the operator has them"
        raise ShapeError("theirs", str(array.shape), wanted)
    if array.dtype.kind in "iu":
        if array.dtype == np.uint64:
            raise DTypeError("theirs", "uint64", "codes of 32 bits or fewer")
        return array.astype(np.int64)
    steps = array.astype(np.float64) / outputs.dst_scale
    whole = np.rint(steps)
    is_code = np.isfinite(steps) & (np.abs(whole) < 2**31)
    if not (is_code & (np.abs(steps - np.where(is_code, whole, 0)) <= _OF_A_STEP)).all():
        wanted = f"codes, or multiples of dst's scale {outputs.dst_scale:.9g}"
        raise ArgumentError("theirs", f"{array.dtype} values between codes", wanted)
    return np.asarray(whole.astype(np.int64) + outputs.zero_point)


def _ours(
    operator: Operator,
    source: Array,
    outputs: Outputs,
    residual: Array | None,
    operands: Mapping[str, Array],
) -> tuple[Array, str]:
    """Return what the operator gives, and what made that."""
    try:
        dst = operator(source, residual=residual, **operands)
        return dst.astype(np.int64), f"{type(operator).__name__} as it runs here"
    except UnsupportedError as error:
        name, refused = "onednn_separate", shortened(str(error), 160)
        stated = next(a for a in named_arithmetics() if a.name == name).codes(outputs)
        if stated is None:
            raise
        return stated, f"{name} on exact sums, for it does not run here: {refused}"


def _explanation(
    outputs: Outputs,
    ours: Array,
    origin: str,
    theirs: Array,
    agreements: tuple[Agreement, ...],
    remarks: tuple[str, ...],
) -> Explanation:
    values, gap = outputs.values(), theirs - ours
    acc = outputs.acc.astype(np.int32)
    acc.flags.writeable = values.flags.writeable = False
    differs = gap != 0
    near = differs & outputs.near_ties(values)
    where = np.argwhere(differs)[:_EXAMPLES]
    at = [tuple(map(int, index)) for index in where]
    return Explanation(
        outputs=gap.size,
        equal=int((gap == 0).sum()),
        lower=int((gap == -1).sum()),
        higher=int((gap == 1).sum()),
        further=int((np.abs(gap) > 1).sum()),
        largest=int(np.abs(gap).max(initial=0)),
        near_ties=int(near.sum()),
        exact_ties=outputs.exact_ties(near),
        agreements=agreements,
        ours=origin,
        remarks=remarks,
        examples=tuple(
            DifferingOutput(
                index, int(outputs.acc[index]), float(values[index]), *_pair(ours, theirs, index)
            )
            for index in at
        ),
        acc=acc,
        values=values,
    )


def _pair(ours: Array, theirs: Array, index: tuple[int, ...]) -> tuple[int, int]:
    return int(ours[index]), int(theirs[index])
