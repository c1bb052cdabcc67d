"""compose_layer: from float weights, FakeQuantizes and a chain to a `Layer`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import instance, numbers, one_of, real
from pyonednn_q.compose.composer import compose
from pyonednn_q.compose.layer import Layer, as_matmul
from pyonednn_q.compose.zero_point import (
    CARRIERS,
    SrcZeroPoint,
    carry_zero_point,
    wrong_with_zero_point,
)
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.fq_forms import CutFakeQuantize, codes
from pyonednn_q.expr.fq_qparams import WHOLE_WITHIN
from pyonednn_q.expr.steps import Affine, Chain
from pyonednn_q.expr.vec import Vec, VecLike, constant
from pyonednn_q.faults.capability import ACCEPTS
from pyonednn_q.primitive.dense import InnerProductProblem
from pyonednn_q.primitive.dense_facts import DENSE, PrimitiveFacts, acc_interval
from pyonednn_q.primitive.isa import Facts
from pyonednn_q.primitive.windowed import arranged
from pyonednn_q.quantize.weight_rows import WeightCodes, whole_weight_codes

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from pyonednn_q.compose.zero_point import Carrier
    from pyonednn_q.expr.steps import Step
    from pyonednn_q.primitive.dense_facts import DenseProblem
    from pyonednn_q.rewrite.rule import Policy

_ZERO = Vec(0.0)


def compose_layer(
    problem: DenseProblem,
    wei: ArrayLike,
    bias: VecLike | None = None,
    *,
    src_fq: FakeQuantize,
    wei_fq: FakeQuantize | None = None,
    wei_levels: int = 255,
    chain: Chain | None = None,
    dst_fq: FakeQuantize | None = None,
    process: Facts | None = None,
    policy: Policy = "real",
    strict: bool = False,
    zero_point: Carrier | Literal["auto"] = "auto",
    tolerance: float = WHOLE_WITHIN,
) -> Layer:
    """Quantize a float layer and compose its plan.

    Parameters
    ----------
    problem : ConvProblem, DeconvProblem, InnerProductProblem or MatMulProblem
        Dims, window and layout, and the data types of src (u8 or s8) and dst. Data types of
        weights and bias are ignored: they become s8 and f32.
    wei : array_like of float
        Weights in the problem's dims; with groups, also in the dims that `Conv` takes.
    bias : VecLike, optional
        One value per output channel, in real units.
    src_fq : FakeQuantize
        FakeQuantize of the source, for the whole tensor; at most 256 levels, which fit into src's
        type.
    wei_fq : FakeQuantize, optional
        FakeQuantize of the weights, for the whole tensor or per output channel. Codes minus
        zero points must fit into s8 (a matmul with one range for the tensor keeps its zero
        point). By default, each channel is
        quantized by its largest magnitude.
    wei_levels : int
        Number of levels of that default: 255; or 129, codes within ±64, which CPUs without VNNI
        multiply exactly for u8 sources.
    chain : Chain, optional
        Steps after the bias.
    dst_fq : FakeQuantize, optional
        FakeQuantize of the result. An integer dst stores its codes, a float one its values. Without
        it, dst stores what the chain gives.
    process : Facts, optional
        Version and instruction set. None: the plan holds for all of them.
    policy, strict
        Options of `compose`.
    zero_point : {"auto", "attribute", "bias", "map"}
        Way in which the zero point of src is computed; see `pyonednn_q.compose.zero_point`. Auto:
        by the attribute for whole numbers, unless the guard table says that the attribute is wrong
        here.
    tolerance : float
        Largest distance, in levels, at which a zero point is rounded to a whole number.

    Returns
    -------
    Layer

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        An argument that does not fit, named in the text.
    UnsupportedError
        Errors of `compose`.

    Examples
    --------
    >>> wei = np.array([[[[1.0]], [[-0.5]]], [[[0.25]], [[0.125]]]])
    >>> from pyonednn_q.primitive.problem import ConvProblem
    >>> problem = ConvProblem.of((1, 2, 5, 5), wei.shape)
    >>> src_fq, dst_fq = FakeQuantize(-1, 1.55, -1, 1.55), FakeQuantize(0, 2.55, 0, 2.55)
    >>> layer = compose_layer(problem, wei, [0.5, 0.0], src_fq=src_fq, dst_fq=dst_fq)
    >>> layer.wei.reshape(2, 2).tolist()
    [[127, -63], [127, 63]]
    >>> layer.notes
    ('source zero point 100 by attribute',)
    """
    instance("problem", problem, *DENSE)
    instance("src_fq", src_fq, FakeQuantize)
    for name, fq in (("wei_fq", wei_fq), ("dst_fq", dst_fq)):
        if fq is not None:
            instance(name, fq, FakeQuantize)
    if chain is not None:
        instance("chain", chain, Chain)
    if process is not None:
        instance("process", process, Facts)
    one_of("zero_point", zero_point, ("auto", *CARRIERS))
    tolerance = real("tolerance", tolerance)
    asked = replace(problem, wei=replace(problem.wei, dtype="s8"), bias=None)
    _check_axes(asked, wei_fq, dst_fq)
    values = arranged(asked, numbers("wei", wei).astype(np.float64))
    if values.shape != asked.wei.dims:
        raise ShapeError("wei", str(values.shape), str(asked.wei.dims))
    rows = asked.channel_rows(values)
    quantized = whole_weight_codes(rows, wei_fq, wei_levels, tolerance)
    quantized, point = _wei_zero_point(quantized, asked)
    src = src_codes(src_fq, asked.src.dtype)
    dst = dst_codes(dst_fq, asked.dst.dtype)
    stored: tuple[Step, ...] = () if dst is None else dst.quantize
    if dst is None and dst_fq is not None:
        stored = dst_fq.chain().steps
    (worth,) = src.dequantize
    assert isinstance(worth, Affine)
    draft = _Draft(
        asked=asked,
        src=src,
        src_scale=worth.scale.least,
        src_zero_point=-worth.shift.least / worth.scale.least,
        wei=asked.from_channel_rows(quantized.codes),
        wei_scale=quantized.scale,
        wei_zero_point=point,
        wei_lost=quantized.lost,
        bias=_bias(bias, len(rows)),
        chain=Chain(*(() if chain is None else chain.steps), *stored),
        dst=dst,
        process=process,
        policy=policy,
        strict=strict,
    )
    carried = draft.carry(zero_point, tolerance)
    layer, wrong = draft.layer(carried)
    if wrong and zero_point == "auto":
        carried = draft.carry("bias" if asked.meets_everywhere() else "map", tolerance)
        layer, _ = draft.layer(carried, f"not by attribute: {', '.join(wrong)}")
    return layer


@dataclass(frozen=True, slots=True)
class _Draft:
    """A layer but for what carries the zero point of its source."""

    asked: DenseProblem
    src: CutFakeQuantize
    src_scale: float
    src_zero_point: float
    wei: NDArray[np.int8]
    wei_scale: Vec
    wei_zero_point: int
    wei_lost: float
    bias: Vec | None
    chain: Chain
    dst: CutFakeQuantize | None
    process: Facts | None
    policy: Policy
    strict: bool

    @property
    def folded_scale(self) -> Vec:
        return self.wei_scale * self.src_scale

    @property
    def plain_wei(self) -> NDArray[Any]:
        return self.wei.astype(np.float64) - self.wei_zero_point

    def carry(self, by: Carrier | Literal["auto"], tolerance: float) -> SrcZeroPoint:
        return carry_zero_point(
            self.asked, self.plain_wei, self.src_zero_point, by=by, tolerance=tolerance
        )

    def layer(self, carried: SrcZeroPoint, note: str = "") -> tuple[Layer, tuple[str, ...]]:
        """Return the layer, and the rows of the guard table that its zero point brings up."""
        problem, wei = self.asked, self.wei
        notes = [note] if note else []
        if carried.by != "nothing":
            notes.insert(0, f"source zero point {carried.value:.6g} by {carried.by}")
        has_attribute = carried.attribute is not None
        if has_attribute and not ACCEPTS[problem.kind].src_zero_point:
            assert isinstance(problem, InnerProductProblem)
            problem, wei = as_matmul(problem, wei)
            notes.append("an inner product takes no zero point: runs as a matmul")
        plan = compose(
            self.chain, self._facts(problem, wei, carried), self.policy, strict=self.strict
        )
        off_by = self._off_by(carried)
        if off_by.greatest > 0.0:
            notes.append(f"zero points rounded: off by at most {off_by.greatest:.3g}")
        layer = Layer(
            asked=self.asked,
            problem=problem,
            plan=plan,
            wei=wei,
            src=self.src,
            dst=self.dst,
            zero_point=carried,
            off_by=off_by,
            notes=tuple(notes),
        )
        wrong = wrong_with_zero_point(plan, problem, self.process) if has_attribute else ()
        return layer, wrong

    def _facts(
        self, problem: DenseProblem, wei: NDArray[np.int8], carried: SrcZeroPoint
    ) -> PrimitiveFacts:
        bias = self.bias
        if not carried.shift.is_all(0.0):
            bias = (bias or _ZERO) + carried.shift * self.folded_scale
        facts = PrimitiveFacts.of(
            problem,
            wei=wei,
            src_scale=self.src_scale,
            wei_scale=self.wei_scale,
            src_zero_point=carried.attribute,
            wei_zero_point=self.wei_zero_point or None,
            bias=bias,
            process=self.process,
        )
        point = carried.attribute or carried.in_map
        acc = acc_interval(problem, wei, point, self.wei_zero_point, (self.src.qmin, self.src.qmax))
        return replace(facts, acc=acc, acc_map=carried.by == "map")

    def _off_by(self, carried: SrcZeroPoint) -> Vec:
        """Bound what rounded zero points do: first that of the weights, then that of src."""
        rows = self.asked.channel_rows(self.plain_wei)
        largest = max(abs(self.src.qmin - carried.value), abs(self.src.qmax - carried.value))
        off = Vec(self.wei_lost * rows.shape[1] * largest)
        if carried.lost:
            sums = np.abs(self.asked.wei_sums(self.plain_wei))
            by_channel = np.moveaxis(sums, self.asked.channel_axis, 0).reshape(len(rows), -1)
            most = by_channel.max(axis=1, initial=0.0)
            off = off + Vec(abs(carried.lost) * most)
        return off * self.folded_scale


def _check_axes(
    problem: DenseProblem, wei_fq: FakeQuantize | None, dst_fq: FakeQuantize | None
) -> None:
    """Refuse ranges in a tensor's rank that are not along its output channels."""
    if wei_fq is not None:
        # Grouped weights have one dimension more; their ranges may come as of weights without it.
        of_groups = (1 - problem.wei.ndim,) if problem.wei.ndim > problem.src.ndim else ()
        axis = -problem.wei.ndim if problem.row_axis is None else -1
        wei_fq.check_axis("wei_fq", axis, *of_groups)
    if dst_fq is not None:
        dst_fq.check_axis("dst_fq", problem.channel_axis - problem.dst.ndim)


def src_codes(fq: FakeQuantize, dtype: str, argument: str = "src_fq") -> CutFakeQuantize:
    """Return the quantization of a source, and the real values of its codes."""
    if dtype not in {"u8", "s8"}:
        raise DTypeError("problem", f"a src of {dtype}", "u8 or s8")
    if fq.channels is not None:
        raise ArgumentError(argument, f"{fq.channels} ranges", "one for the whole tensor")
    if fq.scale_out.least <= 0.0:
        got = f"a scale of {fq.scale_out}"
        raise ArgumentError(argument, got, "output_low < output_high")
    return _fitting(argument, fq, dtype)


def dst_codes(
    fq: FakeQuantize | None, dtype: str, argument: str = "dst_fq"
) -> CutFakeQuantize | None:
    """Return the quantization of dst; ``None`` where the values themselves are stored."""
    return None if fq is None or dtypes.is_float(dtype) else _fitting(argument, fq, dtype)


def _fitting(argument: str, fq: FakeQuantize, dtype: str) -> CutFakeQuantize:
    fq.check_levels(argument)
    cut = codes(fq, signed=dtype == "s8")
    if cut.qmin < dtypes.qmin(dtype) or cut.qmax > dtypes.qmax(dtype):
        count = dtypes.qmax(dtype) - dtypes.qmin(dtype) + 1
        raise ArgumentError(
            argument, f"{fq.levels} levels", f"at most {count}, to fit into {dtype}"
        )
    return cut


def _bias(bias: VecLike | None, channels: int) -> Vec | None:
    if bias is None or isinstance(bias, Vec):
        return bias
    values = numbers("bias", bias)  # equal values collapse in a Vec, however many there are
    if values.shape not in {(), (channels,)}:
        raise ShapeError("bias", f"shape {values.shape}", f"({channels},), or one value")
    return constant("bias", values)


def _wei_zero_point(quantized: WeightCodes, problem: DenseProblem) -> tuple[WeightCodes, int]:
    """Return codes and the one zero point that the primitive takes: 0, but for some of a matmul."""
    point = quantized.zero_point
    if point.is_per_tensor and ACCEPTS[problem.kind].wei_zero_point:
        return quantized, int(point.least)
    plain = quantized.without_zero_point()
    if plain is not None:
        return plain, 0
    got = f"a range whose 0 is at code {point.first(lambda z: z != 0.0)}"
    wanted = "codes that fit into s8 without it; operators (`from_float`) run others in parts"
    raise ArgumentError("wei_fq", got, wanted)
