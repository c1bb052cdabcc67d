"""Ready: an operator's plan and primitive for one shape of its source, and how that came about."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.compose.zero_point import SrcZeroPoint, unit_map, wrong_with_zero_point
from pyonednn_q.errors import (
    ArgumentError,
    Error,
    KnownWrongError,
    SaturationError,
    UnsupportedError,
)
from pyonednn_q.expr.steps import Sum
from pyonednn_q.native import runtime
from pyonednn_q.native.selection import slow_loop
from pyonednn_q.ops.composition import Composer
from pyonednn_q.ops.form import AS_ASKED, WHY_IMAGE, Form, faster_form, fewer_groups, product_form
from pyonednn_q.ops.planned import Planned, prepare_plan
from pyonednn_q.ops.staged import Quantizer
from pyonednn_q.ops.tunings import tuned
from pyonednn_q.primitive.dense_facts import ACC_MAP
from pyonednn_q.primitive.isa import classify

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from pyonednn_q.native import Prepared
    from pyonednn_q.ops.composition import Composition
    from pyonednn_q.ops.settings import ZeroPointCarrier
    from pyonednn_q.primitive.tensor import TensorSpec

Array = np.ndarray[Any, Any]

_NARROW = ("bf16", "f16")


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
        Quantizers of `SourceLevels`, by the layout of the float source.
    hot_making : dict
        Calls that make codes of their source, by what runs and whether the source is s8; from
        `hot_call_for`.
    """

    planned: Planned
    unit_map: NDArray[np.float32] | None = None
    is_unsigned: bool = False
    quantizers: dict[TensorSpec, Quantizer] = field(default_factory=dict, compare=False)
    hot_making: dict[tuple[Planned, bool], Callable[..., Any] | None] = field(
        default_factory=dict, compare=False
    )


@dataclass(frozen=True, slots=True)
class Recipe(Composer):
    """What there is to make ready, and how.

    Attributes
    ----------
    notes : tuple of str
        What was decided before.
    implementation : str or None
        The one to take, instead of the first that may be trusted.
    arrays : mapping of str to TensorSpec
        As in `prepare`.
    """

    notes: tuple[str, ...] = ()
    implementation: str | None = None
    arrays: Mapping[str, TensorSpec] = field(default_factory=dict)

    def ready(self) -> Ready:
        """Compose and prepare; then tune, as the settings say.

        Raises
        ------
        UnsupportedError
            No way of several was taken; that of the last.
        """
        settings = self.settings
        try:
            ready = self._faster() or self._usual()
        except UnsupportedError as error:
            ready = self._alike(error)
        if settings.tune:
            usual = self._as_arrays_lie(ready.planned)
            planned = tuned(usual, self._formed, self.problem, settings.post, settings.layout)
            ready = replace(ready, planned=planned)
        return ready

    def compose_ahead(self) -> None:
        """Compose for sources of all sizes, in the form that will run, unless sizes decide."""
        form = self._faster_form()
        if form is not None:
            with suppress(Error):  # with these weights, or this chain
                self._in_form(form)._composed_ahead()  # noqa: SLF001 - of this class
                return
        self._composed_ahead()

    def _composed_ahead(self) -> None:
        if not self.depends_on_size(self.settings.zero_point):
            self.composition(self.settings.zero_point)

    def _faster_form(self) -> Form | None:
        """Return the form that is always faster, if there is one."""
        if self.settings.dynamic is not None or self.implementation is not None:
            return None
        return faster_form(self.problem, self.settings.post, runtime.isa())

    def _faster(self) -> Ready | None:
        """Return what runs in the form that is always faster, if a kernel takes it."""
        form = self._faster_form()
        if form is None:
            return None
        try:
            recipe = replace(self, notes=(*self.notes, WHY_IMAGE))
            planned = recipe._formed(form, None)  # noqa: SLF001 - of this class
        except Error:  # with these weights, or this chain
            return None
        return Ready(planned) if classify(planned.primitive.impl) == "jit" else None

    def _alike(self, refused: UnsupportedError) -> Ready:
        """Return what runs in a form, where no kernel takes the problem as it was asked.

        Raises
        ------
        UnsupportedError
            No form runs: that a kernel takes one, but not these weights, or what was refused.
        """
        if self.settings.dynamic is not None or isinstance(refused, SaturationError):
            raise refused
        product = product_form(self.problem, self.settings.post)
        others = () if product is None else (product,)
        forms = (*others, *fewer_groups(self.problem, self.settings.post))
        # Codes of s8 may be exact as u8, which comes next.
        is_last = self.settings.saturation == "allow" and self.problem.src.dtype != "s8"
        for saturation in ("refuse", "allow") if is_last else ("refuse",):
            for form in forms:
                settings = replace(self.settings, saturation=saturation)
                # What does not run is not kept.
                recipe = replace(self, settings=settings, compositions=dict(self.compositions))
                try:
                    ready = Ready(recipe._formed(form, None))  # noqa: SLF001 - of this class
                except SaturationError as error:
                    if not isinstance(refused, SaturationError):
                        refused = error
                except (UnsupportedError, ArgumentError):
                    pass
                else:
                    self.compositions.update(recipe.compositions)
                    return ready
        raise refused

    def _formed(self, form: Form, implementation: str | None, *, apart: bool = False) -> Planned:
        """Return the same in another form, or on another implementation; with its own weights."""
        recipe = replace(self._in_form(form), implementation=implementation)
        if apart:
            recipe = replace(recipe, compositions={})
        inner = recipe._usual().planned  # noqa: SLF001 - of this class
        return self._as_arrays_lie(inner) if form.name == AS_ASKED else inner.in_form(form)

    def _in_form(self, form: Form) -> Recipe:
        return replace(
            self,
            problem=form.problem,
            wei=form.wei(self.wei),
            settings=replace(self.settings, post=form.chain),
            arrays=form.arrays,
        )

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
        asked = settings.zero_point
        usual = self.composition(asked)
        may_round = settings.policy != "bitwise" and not settings.exact_rounding
        may_compensate = settings.zero_point == "auto" and may_round
        if usual.carried.by != "attribute" or not may_compensate:
            return self._prepared(asked)
        wrong = wrong_with_zero_point(usual.plan, self.problem, runtime.facts())
        if not wrong:
            try:
                return self._prepared(asked)
            except UnsupportedError as error:
                reason = error
        joins_bias = settings.dynamic is None and self.problem.meets_everywhere()
        other: ZeroPointCarrier = "bias" if joins_bias else "map"
        why = ", ".join(wrong) or "no kernel takes it"
        note = f"not by attribute: {why}"
        try:
            return self._prepared(other, note)
        except (UnsupportedError, ArgumentError):
            if wrong:
                return self._prepared(asked)
            raise reason from None

    def _prepared(self, by: ZeroPointCarrier, note: str = "") -> Ready:
        composition = self.composition(by)
        may_part = composition.plan.is_whole and not self.settings.strict
        try:
            ready = self._on_primitive(composition, note)
        except UnsupportedError as error:
            apart = self._why_apart(error)
            if not apart or not may_part:
                raise
            reason = error
        else:
            return self._stored_apart(ready, by, note) if may_part else ready
        try:
            return self._on_primitive(self.composition(by, apart), note)
        except SaturationError:
            raise
        except UnsupportedError:
            raise reason from None

    def _why_apart(self, error: UnsupportedError) -> str:
        """Return why what follows the sums may be possible on its own; empty: it is not."""
        if self.settings.dst in _NARROW:
            return f"no kernel here stores {self.settings.dst}: f32, then a cast"
        if isinstance(error, KnownWrongError):
            return f"known to go wrong in one primitive: {', '.join(error.guards) or 'self_check'}"
        # Without VNNI, sums are as inexact on their own.
        if isinstance(error, SaturationError) and not runtime.isa().has_vnni():
            return ""
        has_sum = any(isinstance(step, Sum) for step in self.settings.post)
        if not has_sum and self.settings.dst == "f32":
            return ""  # the same again
        rest = "what begins at the sum" if has_sum else "what stores it"
        return f"no kernel here takes all of it: f32, then {rest}"

    def _stored_apart(self, ready: Ready, by: ZeroPointCarrier, note: str) -> Ready:
        """Return what stores f32 by generated code where loops over gemm store a narrow type."""
        dst = self.settings.dst
        if dst not in _NARROW or not is_slow(ready.planned.primitive):
            return ready
        apart = f"only slow loops store {dst} here: f32, then a cast"
        # Exact loops are not left for sums that saturate.
        exact = replace(self, settings=replace(self.settings, saturation="refuse"))
        with suppress(UnsupportedError):
            other = exact._on_primitive(self.composition(by, apart), note)  # noqa: SLF001
            if not is_slow(other.planned.primitive):
                return other
        return ready

    def _on_primitive(self, composition: Composition, note: str) -> Ready:
        plan, carried, settings = composition.plan, composition.carried, self.settings
        # Of a plan of sums, integers carry it.
        is_silent = plan.sums or carried.by == "nothing"
        by_zero_point = [] if is_silent else self._carried_notes(carried)
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
            wei=composition.packed,
            operands=added,
            decided=tuple(notes),
            allow_reference=settings.allow_reference,
            saturation=settings.saturation,
            # What all of is compared is asked of the whole operator, not of its primitives.
            self_check="auto" if settings.self_check else False,
            apart=settings.self_check is True,
            implementation=self.implementation,
            arrays=self.arrays,
        )
        return Ready(planned, unit)

    def _carried_notes(self, carried: SrcZeroPoint) -> list[str]:
        point = f"{carried.value:g}" if self.settings.dynamic is None else "of each call"
        off = f", off by {abs(carried.lost):.3g} of a level" if carried.lost else ""
        return [f"source zero point {point} by {carried.by}{off}"]


def _in_f32(values: NDArray[np.float64]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        stored = values.astype(np.float32)
    if not np.isfinite(stored).all():
        got = "scales with which its map leaves float32"
        raise ArgumentError("zero_point", got, "'attribute', or smaller scales")
    return stored


def is_slow(primitive: Prepared) -> bool:
    """Tell whether codes run in loops over gemm, or in others that are known to be slow."""
    is_loop = primitive.kind in {"gemm", "reference"}
    return is_loop or bool(slow_loop(primitive.problem, primitive.impl))
