"""Composer: an operator's chain on its constants, composed once for sources of any size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.compose.composer import asks_for_sums, compose
from pyonednn_q.compose.zero_point import SrcZeroPoint, carry_zero_point
from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.fq_qparams import WHOLE_WITHIN
from pyonednn_q.expr.steps import Chain
from pyonednn_q.expr.vec import Vec
from pyonednn_q.faults.capability import ACCEPTS
from pyonednn_q.native import Packed, runtime
from pyonednn_q.ops.staged import SourceLevels
from pyonednn_q.primitive.dense_facts import PrimitiveFacts, acc_interval
from pyonednn_q.primitive.post_ops import BinaryPostOp, PReluPostOp
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.ranges import Dynamic

if TYPE_CHECKING:
    from pyonednn_q.compose.plan import Plan
    from pyonednn_q.ops.settings import Settings, ZeroPointCarrier
    from pyonednn_q.ops.weights import Weights
    from pyonednn_q.primitive.dense_facts import DenseProblem

Array = np.ndarray[Any, Any]

_PLAIN = SrcZeroPoint(0.0, "nothing")


class CompositionKey(NamedTuple):
    """What a composition depends on, for an operator.

    Attributes
    ----------
    kind, src : str
        Kind of the problem, and data type of its source.
    post : Chain
        What follows the sums.
    later : str
        What comes with each call; as in `PrimitiveFacts`.
    by : {"auto", "attribute", "bias", "map"}
        What is to carry the zero point of the source.
    everywhere : bool
        Whether all taps meet the source everywhere; True where that changes nothing.
    apart : str
        As in `compose`.
    wei_dims : tuple of int
        Dims of the weights.
    ndim : int
        Number of dimensions of dst.
    """

    kind: str
    src: str
    post: Chain
    later: str
    by: ZeroPointCarrier
    everywhere: bool
    apart: str
    wei_dims: tuple[int, ...]
    ndim: int

    @property
    def facts(self) -> tuple[object, ...]:
        """What facts depend on, but for dims."""
        return self[:6]


@dataclass(frozen=True, slots=True)
class Composition:
    """What an operator composes once, for sources of any size.

    Attributes
    ----------
    plan : Plan
        Its facts know no size, unless dims of operands or of slopes follow from it.
    carried : SrcZeroPoint
        What carries the zero point of the source.
    packed : Packed
        The weights, as the plan takes them.
    """

    plan: Plan
    carried: SrcZeroPoint
    packed: Packed


@dataclass(frozen=True, slots=True)
class Composer:
    """A problem, weights in its dims, bias and settings; and what was composed of them before.

    Attributes
    ----------
    problem : DenseProblem
        What runs.
    wei : ndarray
        Codes in its dims.
    weights : Weights
        Scale and zero point of the codes.
    bias : ndarray or None
        One value per channel: real if floating, else in units of the accumulator.
    settings : Settings
        What is asked for.
    compositions : dict
        Compositions of the operator, for all sizes of the source, by their key.
    """

    problem: DenseProblem
    wei: Array
    weights: Weights
    bias: Array | None
    settings: Settings
    compositions: dict[CompositionKey, Composition]

    def composition(self, by: ZeroPointCarrier, apart: str = "") -> Composition:
        """Return what was composed for these sizes, or for all; compose if nothing was.

        Parameters
        ----------
        by : {"auto", "attribute", "bias", "map"}
            What is to carry the zero point of the source.
        apart : str
            As in `compose`.
        """
        problem = self.problem
        everywhere = not self.depends_on_size(by) or problem.meets_everywhere()
        post, later, dims = self.settings.post, self._later, problem.wei.dims
        src, ndim = problem.src.dtype, problem.dst.ndim
        key = CompositionKey(problem.kind, src, post, later, by, everywhere, apart, dims, ndim)
        composition = self.compositions.get(key)
        if composition is None or composition.plan.facts.dst_dims not in {None, problem.dst.dims}:
            composition = self.compositions[key] = self._composed(key)
        return composition

    def depends_on_size(self, by: ZeroPointCarrier) -> bool:
        """Tell whether what a zero point is carried by depends on the taps that meet the source."""
        params = self.settings.src_q
        if params is None or isinstance(params, Dynamic) or not self.settings.has_src_point:
            return False
        if by in {"bias", "map"} or isinstance(params, QParams):
            return by in {"bias", "map"}
        point, src = float(params.zero_point), params.dtype
        return not (point.is_integer() and dtypes.qmin(src) <= point <= dtypes.qmax(src))

    def _composed(self, key: CompositionKey) -> Composition:
        problem, settings = self.problem, self.settings
        known = tuple(self.compositions.items())  # a signal handler may add some
        alike = [one for other, one in known if other.facts == key.facts]
        if alike:  # an operator bounds its sums once
            carried = alike[0].carried
            facts = replace(
                alike[0].plan.facts,
                ndims=problem.dst.ndim,
                wei_ndims=problem.wei.ndim,
                dst_dims=problem.dst.dims,
            )
        else:
            carried = self._carried(key.by)
            facts = self._facts(carried)
        try:
            plan = compose(
                settings.post,
                facts,
                settings.policy,
                exact_rounding=settings.exact_rounding,
                strict=settings.strict,
                apart=key.apart,
            )
        except ArgumentError as error:
            raise settings.as_written(error) from None
        _check_reach(plan)
        # Operands and slopes have dims that dst's size decides, so what is left over may follow
        # from it; nothing else of a plan knows it.
        of_size = any(isinstance(post_op, (BinaryPostOp, PReluPostOp)) for post_op in plan.post_ops)
        if plan.is_whole and not of_size:
            plan = replace(plan, facts=replace(facts, dst_dims=None))
        for other, one in known:
            is_same = (other.kind, other.src, other.wei_dims) == (key.kind, key.src, key.wei_dims)
            if is_same and one.plan.wei_factor == plan.wei_factor:
                return Composition(plan, carried, one.packed)
        return Composition(plan, carried, Packed(plan.wei(self.wei)))

    @property
    def _plain_wei(self) -> Array:
        """Weights less their zero point."""
        point = self.weights.zero_point.least
        return self.wei.astype(np.float64) - point if point else self.wei

    def _carried(self, by: ZeroPointCarrier) -> SrcZeroPoint:
        params = self.settings.src_q
        if not self.settings.has_src_point:
            return _PLAIN
        if isinstance(params, (QParams, SourceLevels)):
            tolerance = 0.0 if isinstance(params, QParams) else WHOLE_WITHIN
            point = float(params.zero_point)
            return carry_zero_point(
                self.problem, self._plain_wei, point, by=by, tolerance=tolerance
            )
        assert params is not None
        # Of a value that comes with each call, only where it goes is known.
        by_map = by == "map" or params.extent == "per_row"
        by_map |= not ACCEPTS[self.problem.kind].src_zero_point
        return SrcZeroPoint(0.0, "map" if by_map else "attribute")

    @property
    def _later(self) -> str:
        """What comes with each call: the scale of the source, or of its rows; or nothing."""
        dynamic = self.settings.dynamic
        if dynamic is None:
            return ""
        one_wei = self.problem.product is not None
        return dynamic.extent if one_wei or dynamic.extent != "per_row" else "per_row_of_batch"

    def _facts(self, carried: SrcZeroPoint) -> PrimitiveFacts:
        settings, weights = self.settings, self.weights
        wei_point = weights.zero_point
        if not wei_point.is_per_tensor:
            wanted = "zero points that keep wei - zero_point within s8, or one for the tensor"
            raise ArgumentError("wei_q", f"zero points {wei_point}", wanted)
        params = settings.src_q
        scale = float(params.scale) if isinstance(params, (QParams, SourceLevels)) else 1.0
        in_acc = self.bias is not None and self.bias.dtype.kind in "iu"
        bias = None if self.bias is None else Vec(self.bias.astype(np.float64))
        if not carried.shift.is_all(0.0):
            shift = carried.shift if in_acc else carried.shift * (weights.scale * scale)
            bias = shift if bias is None else bias + shift
        facts = PrimitiveFacts.of(
            self.problem,
            wei=self.wei,
            src_scale=scale,
            wei_scale=weights.scale,
            src_zero_point=carried.attribute,
            wei_zero_point=int(wei_point.least) or None,
            bias=bias,
            bias_in_acc=in_acc,
            dst_scale=float(settings.dst_q.scale) if settings.dst_q else 1.0,
            dst_zero_point=int(settings.dst_q.zero_point) if settings.dst_q else 0,
            src_later=self._later,
            process=runtime.facts(),
        )
        if carried.by != "map":
            return facts
        if facts.src_later:
            return replace(facts, acc_map=True)
        acc = acc_interval(self.problem, self.wei, carried.value, wei_point.least)
        # Integers that float32 would round carry it themselves.
        by_integers = replace(facts, acc=acc, src_zero_point=round(carried.value))
        if carried.value.is_integer() and asks_for_sums(settings.post, by_integers):
            return by_integers
        return replace(facts, acc=acc, acc_map=True)


def _check_reach(plan: Plan) -> None:
    """Refuse scales that lead the greatest sum beyond float32, where 0 times it is no number."""
    acc, scale = plan.facts.acc, plan.acc_scale
    most = max(abs(acc.lo.least), abs(acc.hi.greatest)) * max(abs(scale.least), scale.greatest)
    if plan.bias is not None:
        most += max(abs(plan.bias.least), plan.bias.greatest)
    if np.isfinite(most) and most > float(np.finfo(np.float32).max):
        wanted = "smaller ones of source and weights, or a larger one of dst"
        raise ArgumentError("scales", f"sums of up to {most:.1e}, beyond float32", wanted)
