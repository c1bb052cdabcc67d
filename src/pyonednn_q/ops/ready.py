"""Ready: an operator's plan and primitive for one shape of its source, and how that came about."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pyonednn_q.compose.composer import asks_for_sums, compose
from pyonednn_q.compose.zero_point import (
    SrcZeroPoint,
    carry_zero_point,
    unit_map,
    wrong_with_zero_point,
)
from pyonednn_q.errors import ArgumentError, Error, KnownWrongError, UnsupportedError
from pyonednn_q.expr.vec import Vec
from pyonednn_q.faults.capability import ACCEPTS
from pyonednn_q.native import Packed, runtime
from pyonednn_q.ops.form import AS_ASKED, WHY_IMAGE, Form, faster_form
from pyonednn_q.ops.planned import Planned, prepare_plan
from pyonednn_q.ops.staged import Quantizer, SourceLevels
from pyonednn_q.ops.tunings import tuned
from pyonednn_q.primitive.dense_facts import ACC_MAP, PrimitiveFacts, acc_interval
from pyonednn_q.primitive.isa import classify
from pyonednn_q.primitive.post_ops import BinaryPostOp
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.ranges import Dynamic

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from pyonednn_q.compose.plan import Plan
    from pyonednn_q.ops.settings import Settings
    from pyonednn_q.ops.weights import Weights
    from pyonednn_q.primitive.dense_facts import DenseProblem
    from pyonednn_q.primitive.tensor import TensorSpec

Array = np.ndarray[Any, Any]

PackedKey = tuple[str, tuple[int, ...], Vec]  # kind and dims of the weights; what multiplies them
# What a plan depends on, but for dst's size: problem, settings, what carries the zero point.
PlanKey: TypeAlias = "tuple[str | int | TensorSpec | Settings | SrcZeroPoint, ...]"
_NARROW = ("bf16", "f16")
_NEAR = 1e-4  # of a whole zero point, in levels; as compose_layer's
_PLAIN = SrcZeroPoint(0.0, "nothing")


@dataclass(frozen=True, slots=True)
class Ready:
    """A plan on its primitive.

    Attributes
    ----------
    planned : Planned
        What runs.
    unit_map : ndarray or None
        f32, of dst's dims or 1: what a call's own zero points are multiplied by and subtracted.
    is_unsigned : bool
        Whether it takes u8 codes that are 128 more than those of the s8 source.
    quantizers : dict
        Of `SourceLevels`, by the way in which a float source lies.
    of_floats : dict
        Calls on float sources, by what runs; from `hot_call_for`.
    """

    planned: Planned
    unit_map: NDArray[np.float32] | None = None
    is_unsigned: bool = False
    quantizers: dict[TensorSpec, Quantizer] = field(default_factory=dict, compare=False)
    of_floats: dict[Planned, Callable[..., Any] | None] = field(default_factory=dict, compare=False)

    @property
    def nbytes(self) -> int:
        """About how many bytes it takes beside weights, which other shapes share."""
        return self.planned.nbytes + (0 if self.unit_map is None else self.unit_map.nbytes)


@dataclass(frozen=True, slots=True)
class Recipe:
    """What there is to make ready: a problem, weights in its dims, bias and settings."""

    problem: DenseProblem
    wei: Array
    weights: Weights
    bias: Array | None
    settings: Settings
    packed: dict[PackedKey, Packed]
    notes: tuple[str, ...]
    implementation: str | None = None
    arrays: Mapping[str, TensorSpec] = field(default_factory=dict)
    plans: dict[PlanKey, Plan] = field(default_factory=dict)

    def ready(self) -> Ready:
        """Compose and prepare; then tune, as the settings say.

        Raises
        ------
        UnsupportedError
            No way of several was taken; that of the last.
        """
        ready, settings = self._faster() or self._usual(), self.settings
        if settings.tune:
            usual = self._as_arrays_lie(ready.planned)
            planned = tuned(usual, self._formed, self.problem, settings.post, settings.layout)
            ready = replace(ready, planned=planned)
        return ready

    def _faster(self) -> Ready | None:
        """Return the form that is always faster, if there is one and a kernel takes it."""
        if self.settings.dynamic is not None or self.implementation is not None:
            return None
        form = faster_form(self.problem, self.settings.post, runtime.isa())
        if form is None:
            return None
        try:
            layer = replace(self, notes=(*self.notes, WHY_IMAGE))
            planned = layer._formed(form, None)  # noqa: SLF001 - of this class
        except Error:  # with these weights, or this chain
            return None
        return Ready(planned) if classify(planned.primitive.impl) == "jit" else None

    def _formed(self, form: Form, implementation: str | None, *, apart: bool = False) -> Planned:
        """Return the same in another form, or on another implementation; with its own weights."""
        layer = replace(
            self,
            problem=form.problem,
            wei=form.wei(self.wei),
            settings=replace(self.settings, post=form.chain),
            packed={} if apart else self.packed,
            implementation=implementation,
            arrays=form.arrays,
        )
        inner = layer._usual().planned  # noqa: SLF001 - of this class
        return self._as_arrays_lie(inner) if form.name == AS_ASKED else inner.in_form(form)

    def _as_arrays_lie(self, planned: Planned) -> Planned:
        return planned.row_major() if self.settings.layout == "dense" else planned

    def _usual(self) -> Ready:
        """Compose and prepare: what carries the zero point, and what stores the result.

        Raises
        ------
        UnsupportedError
            No way of several was taken; that of the last.
        """
        settings = self.settings
        carried = self._carried(settings.zero_point)
        plan = self._plan(carried)
        may_round = settings.policy != "bitwise" and not settings.exact_rounding
        may_compensate = settings.zero_point == "auto" and may_round
        if carried.attribute is None or not may_compensate:
            return self._prepared(plan, carried)
        wrong = wrong_with_zero_point(plan, self.problem, runtime.facts())
        if not wrong:
            try:
                return self._prepared(plan, carried)
            except UnsupportedError as error:
                reason = error
        other = self._carried("bias" if self._joins_bias else "map")
        why = ", ".join(wrong) or "no kernel takes it"
        note = f"not by attribute: {why}"
        try:
            return self._prepared(self._plan(other), other, note)
        except (UnsupportedError, ArgumentError):
            if wrong:
                return self._prepared(plan, carried)
            raise reason from None

    @property
    def _joins_bias(self) -> bool:
        return self.settings.dynamic is None and self.problem.meets_everywhere()

    @property
    def _plain_wei(self) -> NDArray[np.float64]:
        """Weights less their zero point."""
        return self.wei.astype(np.float64) - self.weights.zero_point.least

    def _carried(self, by: Any) -> SrcZeroPoint:  # noqa: ANN401 - a Carrier or auto
        params = self.settings.src_q
        if not self.settings.has_src_point:
            return _PLAIN
        if isinstance(params, (QParams, SourceLevels)):
            tolerance = 0.0 if isinstance(params, QParams) else _NEAR
            point = float(params.zero_point)
            return carry_zero_point(
                self.problem, self._plain_wei, point, by=by, tolerance=tolerance
            )
        assert params is not None
        # Of a value that comes with each call, only where it goes is known.
        by_map = by == "map" or params.extent == "per_row"
        by_map |= not ACCEPTS[self.problem.kind].src_zero_point
        return SrcZeroPoint(0.0, "map" if by_map else "attribute")

    def _plan(self, carried: SrcZeroPoint, apart: str = "") -> Plan:
        """Return the plan for this size; an operator composes once, and bounds its sums once."""
        problem, dims = self.problem, self.problem.dst.dims
        types = (problem.src.dtype, problem.dst.dtype, problem.dst.ndim)
        key = (problem.kind, problem.wei, *types, self.settings, carried, apart)
        plan = self.plans.get(key)
        if plan is None:
            plan = self.plans[key] = self._composed(self._facts(carried), apart)
        if plan.facts.dst_dims == dims:
            return plan
        facts = replace(plan.facts, dst_dims=dims)
        # Operands have dims that dst's size decides; nothing else of a plan knows it.
        has_operands = any(isinstance(post_op, BinaryPostOp) for post_op in plan.post_ops)
        if has_operands:
            return self._composed(facts, apart)
        return replace(plan, facts=facts)

    def _composed(self, facts: PrimitiveFacts, apart: str) -> Plan:
        settings = self.settings
        return compose(
            settings.post,
            facts,
            settings.policy,
            exact_rounding=settings.exact_rounding,
            strict=settings.strict,
            apart=apart,
        )

    def _prepared(self, plan: Plan, carried: SrcZeroPoint, note: str = "") -> Ready:
        try:
            return self._on_primitive(plan, carried, note)
        except UnsupportedError as error:
            apart = self._why_apart(error)
            if not apart or not plan.is_whole or self.settings.strict:
                raise
            reason = error
        try:
            return self._on_primitive(self._plan(carried, apart), carried, note)
        except UnsupportedError:
            raise reason from None

    def _why_apart(self, error: UnsupportedError) -> str:
        """Return why what follows the sums may be possible on its own; empty: it is not."""
        if self.settings.dst in _NARROW:
            return f"no kernel here stores {self.settings.dst}: f32, then a cast"
        if isinstance(error, KnownWrongError):
            return f"known to go wrong in one primitive: {', '.join(error.guards)}"
        return ""

    def _on_primitive(self, plan: Plan, carried: SrcZeroPoint, note: str) -> Ready:
        _check_reach(plan)
        settings = self.settings
        # Forms transpose weights, which need not show in their dims.
        key = (self.problem.kind, self.problem.wei.dims, plan.wei_factor)
        packed = self.packed.get(key)
        if packed is None:
            packed = self.packed[key] = Packed(plan.wei(self.wei))
        # Of a plan of sums, integers carry it.
        by_zero_point = [] if plan.sums else self._carried_notes(carried)
        notes = [*self.notes, *by_zero_point, *([note] if note else [])]
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
            wei=packed,
            operands=added,
            decided=tuple(notes),
            allow_reference=settings.allow_reference,
            saturation=settings.saturation,
            implementation=self.implementation,
            arrays=self.arrays,
        )
        return Ready(planned, unit)

    def _later(self, params: Dynamic) -> str:
        one_wei = self.problem.product is not None
        return params.extent if one_wei or params.extent != "per_row" else "per_row_of_batch"

    def _carried_notes(self, carried: SrcZeroPoint) -> list[str]:
        if carried.by == "nothing":
            return []
        point = f"{carried.value:g}" if self.settings.dynamic is None else "of each call"
        off = f", off by {abs(carried.lost):.3g} of a level" if carried.lost else ""
        return [f"source zero point {point} by {carried.by}{off}"]

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
            src_later=self._later(params) if isinstance(params, Dynamic) else "",
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


def _in_f32(values: NDArray[np.float64]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        stored = values.astype(np.float32)
    if not np.isfinite(stored).all():
        got = "scales with which its map leaves float32"
        raise ArgumentError("zero_point", got, "'attribute', or smaller scales")
    return stored
