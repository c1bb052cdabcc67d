"""Asking: one way to ask for what an operator computes, composed and made ready."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.compose.composer import added_to_sums, compose
from pyonednn_q.compose.zero_point import SrcZeroPoint, carry_zero_point, unit_map
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.fq_qparams import WHOLE_WITHIN
from pyonednn_q.expr.steps import Chain
from pyonednn_q.expr.vec import Vec
from pyonednn_q.faults.capability import ACCEPTS
from pyonednn_q.native import Packed, runtime
from pyonednn_q.ops.form import AS_ASKED, Form
from pyonednn_q.ops.planned import Planned, prepare_plan
from pyonednn_q.ops.staged import SourceLevels
from pyonednn_q.primitive.dense_facts import ACC_MAP, PrimitiveFacts, acc_interval
from pyonednn_q.primitive.post_ops import BinaryPostOp, PReluPostOp
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.ranges import Dynamic

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from pyonednn_q.compose.plan import Plan
    from pyonednn_q.ops.settings import Settings, ZeroPointCarrier
    from pyonednn_q.ops.weights import Weights
    from pyonednn_q.primitive.dense_facts import DenseProblem

_PLAIN = SrcZeroPoint(0.0, "nothing")


class CompositionKey(NamedTuple):
    """Key of an operator's composition: everything that it depends on.

    Attributes
    ----------
    kind, src, wei_dims, ndim
        Kind of the problem, data type of its source, dims of its weights, and number of dims of
        dst.
    post, later, by, apart
        Chain behind the sums; what comes with each call, as in `PrimitiveFacts`; what is to carry
        the zero point of the source; and why the chain is apart, as in `compose`.
    everywhere : bool
        Whether all taps meet the source everywhere; True where that changes nothing.
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


@dataclass(frozen=True, slots=True)
class Composition:
    """Parts of an operator that are composed once, for sources of any size.

    Attributes
    ----------
    plan : Plan
        Plan whose facts know no size, unless dims of operands or of slopes follow from it.
    carried : SrcZeroPoint
        Carrier of the source's zero point.
    packed : Packed
        The weights, as the plan takes them.
    """

    plan: Plan
    carried: SrcZeroPoint
    packed: Packed


@dataclass(frozen=True, slots=True)
class Asking:
    """One of the equivalent ways to ask for what an operator computes; rows of `ways` change it.

    Attributes
    ----------
    problem, wei : DenseProblem and ndarray
        Problem that runs, and codes in its dims.
    weights : Weights
        Scale and zero point of the codes.
    bias : ndarray or None
        One value per channel: real if floating, else in units of the accumulator.
    settings : Settings
        Settings of the operator.
    compositions : dict
        Compositions of the operator, for all sizes of the source, by their key.
    notes : tuple of str
        Notes of earlier decisions.
    implementation : str or None
        Name of the one to take, instead of the first that may be trusted.
    form : Form or None
        Form that problem, weights and chain have in place of what was asked.
    by_other : str
        Reason why another carrier than the usual one has the zero point of the source; empty: the
        usual one has it.
    apart : str
        Reason why the steps behind the sums are a primitive of their own, as in `compose`; empty:
        they are not.
    unsigned : callable or None
        f(note), which returns the same for u8 codes that are 128 more; None unless the source has
        codes of s8.
    is_unsigned, is_faster_as_u8 : bool
        Whether it is such an asking; and whether one was faster at another size, so at all.
    way : tuple of str
        Names of the rows of `ways` that changed it.
    tried : list of (str, str)
        Ways that were tried before it, and why each was not taken.
    """

    problem: DenseProblem
    wei: Array
    weights: Weights
    bias: Array | None
    settings: Settings
    compositions: dict[CompositionKey, Composition]
    notes: tuple[str, ...] = ()
    implementation: str | None = None
    form: Form | None = None
    by_other: str = ""
    apart: str = ""
    unsigned: Callable[[str], Asking] | None = None
    is_unsigned: bool = False
    is_faster_as_u8: bool = False
    way: tuple[str, ...] = ()
    tried: list[tuple[str, str]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Names of the rows that changed it."""
        return ", ".join(self.way) or AS_ASKED

    def with_settings(self, **changes: Any) -> Asking:  # noqa: ANN401 - fields of Settings
        """Return the same with other settings."""
        return replace(self, settings=replace(self.settings, **changes))

    def in_form(self, form: Form) -> Asking:
        """Return the same in another form."""
        other = replace(self, problem=form.problem, wei=form.wei(self.wei), form=form)
        is_same = form.chain is self.settings.post
        return other if is_same else other.with_settings(post=form.chain)

    def as_arrays_lie(self, planned: Planned) -> Planned:
        """Return a plan that takes arrays as they lie in calls."""
        return planned.row_major() if self.settings.layout == "dense" else planned

    @property
    def as_asked(self) -> tuple[Form, str]:
        """Form that changes nothing, and the layout of arrays."""
        return Form(self.problem, self.problem, self.settings.post), self.settings.layout

    @property
    def may_part(self) -> bool:
        """Whether what follows the sums may be a primitive of its own."""
        return not self.settings.strict and self.composition().plan.is_whole

    def ready(self) -> Planned:
        """Compose and prepare just this.

        Raises
        ------
        ArgumentError, UnsupportedError
            Errors of `compose` and `prepare`.
        """
        composition, settings = self.composition(self.apart), self.settings
        plan, carried = composition.plan, composition.carried
        # Of a plan of sums, integers carry it.
        is_silent = plan.sums or carried.by == "nothing"
        notes = [*self.notes, "" if is_silent else self._carried_note(carried), self.by_other]
        added: dict[str, Array] = {}
        unit: NDArray[np.float32] | None = None
        if carried.by == "map" and not plan.sums:
            exact = unit_map(plan, self.problem, self._plain_wei)
            if settings.dynamic is not None:
                unit = _in_f32(exact)
            else:
                whole = _in_f32(-carried.value * exact)
                added[ACC_MAP] = np.broadcast_to(whole, self.problem.dst.dims)
        planned = prepare_plan(
            plan,
            self.problem,
            wei=composition.packed,
            operands=added,
            decided=tuple(filter(None, notes)),
            allow_reference=settings.allow_reference,
            saturation=settings.saturation,
            # What all of is compared is asked of the whole operator, not of its primitives.
            self_check="auto" if settings.self_check else False,
            apart=settings.self_check is True,
            implementation=self.implementation,
            arrays={} if self.form is None else self.form.arrays,
        )
        if self.form is not None and self.form.name != AS_ASKED:
            planned = planned.in_form(self.form)
        planned.unit_map, planned.is_unsigned = unit, self.is_unsigned
        return planned

    def _carried_note(self, carried: SrcZeroPoint) -> str:
        point = f"{carried.value:g}" if self.settings.dynamic is None else "of each call"
        off = f", off by {abs(carried.lost):.3g} of a level" if carried.lost else ""
        return f"source zero point {point} by {carried.by}{off}"

    def composition(self, apart: str = "") -> Composition:
        """Return the composition for these sizes, or for all; compose if there is none."""
        problem, by = self.problem, self.settings.zero_point
        everywhere = not self.depends_on_size or problem.meets_everywhere()
        post, later, dims = self.settings.post, self._later, problem.wei.dims
        src, ndim = problem.src.dtype, problem.dst.ndim
        key = CompositionKey(problem.kind, src, post, later, by, everywhere, apart, dims, ndim)
        composition = self.compositions.get(key)
        if composition is None or composition.plan.facts.dst_dims not in {None, problem.dst.dims}:
            composition = self.compositions[key] = self._composed(key)
        return composition

    @property
    def depends_on_size(self) -> bool:
        """Whether what carries the zero point depends on the taps that meet the source."""
        params, by = self.settings.src_q, self.settings.zero_point
        if params is None or isinstance(params, Dynamic) or not self.settings.has_src_point:
            return False
        if by in {"bias", "map"} or isinstance(params, QParams):
            return by in {"bias", "map"}
        point, src = float(params.zero_point), params.dtype
        return not (point.is_integer() and dtypes.qmin(src) <= point <= dtypes.qmax(src))

    def _composed(self, key: CompositionKey) -> Composition:
        problem, settings = self.problem, self.settings
        known = tuple(self.compositions.items())  # a signal handler may add some
        for other, one in known:
            # Facts depend on the first six, but for dims: an operator bounds its sums once.
            if other[:6] == key[:6]:
                carried = one.carried
                facts = replace(
                    one.plan.facts,
                    ndims=problem.dst.ndim,
                    wei_ndims=problem.wei.ndim,
                    dst_dims=problem.dst.dims,
                )
                break
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
        of_size = {BinaryPostOp, PReluPostOp}.intersection(map(type, plan.attr.post_ops))
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
        """Return leaves that come with each call: the scale of the source or its rows, or none."""
        dynamic = self.settings.dynamic
        if dynamic is None:
            return ""
        one_wei = self.problem.product is not None
        return dynamic.extent if one_wei or dynamic.extent != "per_row" else "per_row_of_batch"

    def _facts(self, carried: SrcZeroPoint) -> PrimitiveFacts:
        settings, weights = self.settings, self.weights
        wei_point = weights.zero_point
        if wei_point.array is not None:
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
        if carried.value.is_integer() and added_to_sums(settings.post, by_integers) is not None:
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


def _in_f32(values: NDArray[np.float64]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        stored = values.astype(np.float32)
    if not np.isfinite(stored).all():
        got = "scales with which its map leaves float32"
        raise ArgumentError("zero_point", got, "'attribute', or smaller scales")
    return stored
