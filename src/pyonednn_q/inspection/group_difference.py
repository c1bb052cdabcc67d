"""Differences of products with weights in groups: which arithmetic gives somebody's results.

Results are float32, so that nobody's are ours where one sum is added up in another order. What
decides is where the source becomes codes, and in which ranges: that moves results by thousandths,
and with them the largest output of a row, the next token. The order of sums moves last bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pyonednn_q.argument import named, numbers, whole
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, DTypeError, NoModelError, ShapeError
from pyonednn_q.inspection.explanation import Agreement, Explanation
from pyonednn_q.ops.on_groups import OnGroups, turned
from pyonednn_q.ops.operator import Operator
from pyonednn_q.predict.grouped_kernels import kernel_sums
from pyonednn_q.predict.grouped_sums import grouped_sums
from pyonednn_q.predict.matmul_nbits import block_codes, matmul_nbits

__all__ = ["GroupDifference", "group_difference", "runs_on_groups"]

_LISTED = 3
_USERS = dict.fromkeys(("ort_matmulnbits_4", "ort_matmulnbits_1"), ("onnxruntime",))
_WORDS = {
    "ours": "as the operator runs: exact sums of groups, added in order",
    "ours_per_row": "s8 codes of the source by the range of each row, else as ours",
    "ours_per_group": "s8 codes of the source by the range of each group of a row, else as ours",
    "onednn_per_row": (
        "s8 codes of the source by the range of each row, whose scale is a factor of each group's "
        "term: oneDNN 3.13"
    ),
    "ort_matmulnbits_4": (
        "s8 codes by the range of each block, as accuracy level 4; sums of lanes in float32, zero "
        "points taken off behind them"
    ),
    "ort_matmulnbits_1": "floats, as accuracy levels 0 and 1; weights become float32",
    "real": "the real product of the same weights, rounded once",
}


@dataclass(frozen=True, slots=True, eq=False)
class GroupDifference(Explanation):
    """Result of `explain_difference` for a product with weights in groups. Printable.

    Results are float32. `lower`, `higher`, `further` and `largest` count in float32's steps, ties
    and sums of products are none, and `values` are the real products.

    Attributes
    ----------
    rows, turned : int
        Number of rows, and of those whose largest result is another one: of the last layer of a
        language model, another token.
    apart : dict of str to float
        The largest distance of each arithmetic from theirs, in parts of the largest result.
    """

    rows: int
    turned: int
    apart: dict[str, float]

    def __post_init__(self) -> None:
        for name in ("rows", "turned"):
            whole(name, getattr(self, name), lo=0)
        named("apart", self.apart, float)

    def __hash__(self) -> int:
        return hash((self.outputs, self.equal, self.rows, self.turned))

    def _lines(self) -> Iterator[str]:
        apart = f", up to {self.apart['ours']:.1e} of the largest apart" if self.differing else ""
        yield f"{self.outputs} outputs: {self.equal} as ours, {self.differing} differ{apart}"
        yield f"{self.turned} of {self.rows} rows have another largest output"
        explained = self.explained_by
        if explained:
            yield f"theirs: {explained[0]}, all {self.outputs}"
            yield f"  {explained[0].words}"
        else:
            yield f"theirs: none of {len(self.agreements)} arithmetics gives them all"
        others = [each for each in self.agreements if each not in explained]
        for each in others[:_LISTED]:
            yield f"  {each}: {each.equal} equal, up to {self.apart[each.name]:.1e} apart"


def runs_on_groups(operator: Operator) -> bool:
    """Tell whether an operator has weights in groups, so that its results are floats."""
    return isinstance(operator._runner, OnGroups)  # noqa: SLF001 - an operator's own way


def group_difference(operator: Operator, src: Array, theirs: object) -> GroupDifference:
    """Say which arithmetic gives somebody else's results of a product with weights in groups.

    Parameters
    ----------
    operator : InnerProduct or MatMul
        Operator with weights in groups.
    src : ndarray of float32
        Source of the call.
    theirs : array of float
        Somebody else's results, in the dims of dst.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument.
    """
    runner = operator._runner  # noqa: SLF001 - an operator's own way
    assert isinstance(runner, OnGroups)
    if src.dtype != np.float32:
        raise DTypeError("src", str(src.dtype), "float32: others make their own codes of it")
    ours = operator(src)
    results = numbers("theirs", theirs).astype(np.float64)
    if results.shape != ours.shape:
        raise ShapeError("theirs", str(results.shape), f"{ours.shape}, as the operator returns it")
    if not np.isfinite(results).all() or not results.size:
        raise ArgumentError("theirs", "values that are not finite, or none", "finite numbers")
    columns = results.shape[-1]
    flat = results.reshape(-1, columns)
    tried = {"ours": ours.reshape(-1, columns)}
    tried |= _tried(operator, runner, src.reshape(-1, src.shape[-1]))
    largest = float(np.abs(flat).max()) or 1.0
    gaps = {name: np.abs(values.astype(np.float64) - flat) for name, values in tried.items()}
    apart = {name: float(gap.max()) / largest for name, gap in gaps.items()}
    equal = {name: int((gap == 0.0).sum()) for name, gap in gaps.items()}
    names = sorted(tried, key=lambda name: (-equal[name], apart[name]))
    steps = _steps(flat.astype(np.float32)) - _steps(tried["ours"])
    values = tried["real"].reshape(ours.shape).astype(np.float64)
    values.flags.writeable = False
    return GroupDifference(
        outputs=flat.size,
        equal=equal["ours"],
        lower=int((steps == -1).sum()),
        higher=int((steps == 1).sum()),
        further=int((np.abs(steps) > 1).sum()),
        largest=int(np.abs(steps).max()),
        near_ties=0,
        exact_ties=0,
        agreements=tuple(
            Agreement(name, _WORDS[name], equal[name], "", _USERS.get(name, ())) for name in names
        ),
        ours=f"{type(operator).__name__} as it runs here",
        remarks=(),
        examples=(),
        acc=np.zeros(0, np.int32),
        values=values,
        rows=len(flat),
        turned=int((tried["ours"].argmax(axis=1) != flat.argmax(axis=1)).sum()),
        apart=apart,
    )


def _steps(values: Array) -> Array:
    """Return the number of float32 values between each value and 0."""
    bits = values.astype(np.float32).view(np.int32).astype(np.int64)
    return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)


def _tried(operator: Operator, runner: OnGroups, src: Array) -> Iterator[tuple[str, Array]]:
    """Yield what other arithmetics give of rows."""
    wei, wei_q, bias = operator.weights.values, runner.wei_q, operator.bias
    if operator.axis != -1:
        wei, wei_q = wei.T, turned(wei_q)
    for name, size in (("ours_per_row", src.shape[1]), ("ours_per_group", wei_q.block[0])):
        codes, scale = block_codes(src, size)
        rows = codes.reshape(src.shape)
        yield name, grouped_sums(rows, scale, np.zeros(scale.shape, int), wei, wei_q, bias)
        if name == "ours_per_row":
            yield "onednn_per_row", kernel_sums(rows, scale, wei, wei_q, bias)
    for level in (4, 1):
        try:
            yield (
                f"ort_matmulnbits_{level}",
                matmul_nbits(src, wei, wei_q, bias, accuracy_level=level),
            )
        except NoModelError:
            continue
    real = src.astype(np.float64) @ wei_q.dequantize(wei)
    yield "real", np.asarray(real if bias is None else real + bias, np.float32)
