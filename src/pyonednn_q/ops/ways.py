"""Ways: the equivalent ways to ask the library for what an operator computes, a row each.

A row changes one thing of what is asked, its level: the sign of the source, the form of the
problem, what carries the zero point, or what stores the result. It is tried at one moment, with all
that the later levels allow:

first     before what was asked: it is faster, or what was asked is known to go wrong
refused   where no kernel takes what was asked
slow      where only slow loops take it, and if this is faster
timed     with ``tune=True``, on every implementation, against what holds of the above
advised   by nobody: a refusal names those that would run, with what they change of the problem

`choose` takes the first that holds, and keeps which were tried, and why not taken.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias, cast, get_args

from pyonednn_q.compose.zero_point import wrong_with_zero_point
from pyonednn_q.errors import (
    Error,
    KnownWrongError,
    SaturationError,
    UnsupportedError,
)
from pyonednn_q.expr.steps import Sum
from pyonednn_q.faults.variants import ADVISED, Level, Moment, WayRow
from pyonednn_q.native import runtime
from pyonednn_q.native.selection import slow_loop
from pyonednn_q.ops import form as of_form
from pyonednn_q.ops.asking import Asking
from pyonednn_q.ops.form import AS_ASKED, WHY_IMAGE, Form
from pyonednn_q.ops.planned import Planned
from pyonednn_q.ops.source import NOT_EXACT_AS_S8, NOT_TAKEN_AS_S8, SLOW, SLOW_AS_S8, both_refused
from pyonednn_q.ops.tunings import tuned
from pyonednn_q.primitive.isa import classify
from pyonednn_q.rewrite.rule import BITWISE, REAL, permits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyonednn_q.expr.steps import Chain
    from pyonednn_q.primitive.dense_facts import DenseProblem

Askings: TypeAlias = "Iterator[Asking]"

LEVELS: tuple[Level, ...] = ("sign", "form", "carrier", "store")
_NARROW = ("bf16", "f16")

# --- f(asking, what came of it), which gives what to ask in its place, where a row holds ---------


def s8_as_u8(asking: Asking, refused: Error) -> Askings:
    """Ask for s8 codes as u8 codes, 128 higher, with a zero point 128 higher."""
    if asking.unsigned is not None:
        is_sums = isinstance(refused, SaturationError)
        yield asking.unsigned(NOT_EXACT_AS_S8 if is_sums else NOT_TAKEN_AS_S8)


def s8_as_u8_if_exact(asking: Asking, ready: Planned | None) -> Askings:
    """Ask for s8 codes as u8 codes where s8 runs in slow loops, or did at another size."""
    if asking.unsigned is None or (ready is not None and ready.is_unsigned):
        return
    if asking.is_faster_as_u8 if ready is None else _is_slow(ready):
        yield asking.unsigned(SLOW_AS_S8).with_settings(saturation="refuse")


def product_as_image(asking: Asking, _: object) -> Askings:
    """Ask for a product as a 1x1 convolution of one image, where the CPU has no VNNI."""
    # With AVX512 and no VNNI, nobody has measured it yet.
    if asking.settings.dynamic is None and not runtime.isa().is_beyond_avx2():
        for form in of_form.faster_image(*asking.as_asked):
            yield replace(asking.in_form(form), notes=(*asking.notes, WHY_IMAGE))


def other_form(asking: Asking, refused: Error) -> Askings:
    """Ask for a matmul over the same memory, or for fewer groups, with weights of 0 between."""
    if asking.settings.dynamic is not None or isinstance(refused, SaturationError):
        return
    # Exact sums come first. Codes of s8 may be exact as u8, which comes next.
    is_last = asking.settings.saturation == "allow" and asking.problem.src.dtype != "s8"
    for saturation in ("refuse", "allow") if is_last else ("refuse",):
        for change in (of_form.as_matmul, of_form.fewer_groups):
            for form in change(*asking.as_asked):
                other = asking.in_form(form).with_settings(saturation=saturation)
                # What does not run is not kept.
                yield replace(other, compositions=dict(asking.compositions))


def zero_point_by_bias_or_map(asking: Asking, refused: Error | None) -> Askings:
    """Ask for bias or map to carry the zero point; first where guards forbid the attribute."""
    settings, usual = asking.settings, asking.composition()
    may_change = settings.zero_point == "auto" and not settings.exact_rounding
    if usual.carried.by != "attribute" or not may_change:
        return
    wrong = wrong_with_zero_point(usual.plan, asking.problem, runtime.facts())
    if bool(wrong) is (refused is None):
        joins_bias = settings.dynamic is None and asking.problem.meets_everywhere()
        other = asking.with_settings(zero_point="bias" if joins_bias else "map")
        why = f"not by attribute: {', '.join(wrong) or 'no kernel takes it'}"
        yield replace(other, by_other=why)


def f32_first(asking: Asking, refused: Error) -> Askings:
    """Ask for sums in f32, and for the store, or what follows from a Sum on, after them."""
    settings = asking.settings
    dst, has_sum = settings.dst, any(isinstance(step, Sum) for step in settings.post)
    if dst in _NARROW:
        why = f"no kernel here stores {dst}: f32, then a cast"
    elif isinstance(refused, KnownWrongError):
        why = f"known to go wrong in one primitive: {', '.join(refused.guards) or 'self_check'}"
    elif isinstance(refused, SaturationError) and not runtime.isa().has_vnni():
        return  # sums are as inexact on their own
    elif dst == "f32" and not has_sum:
        return  # the same again
    else:
        rest = "what begins at the sum" if has_sum else "what stores it"
        why = f"no kernel here takes all of it: f32, then {rest}"
    if asking.may_part:
        yield replace(asking, apart=why)


def f32_if_exact(asking: Asking, ready: Planned) -> Askings:
    """Ask for sums in f32, and for a cast after them, where only slow loops store bf16 or f16."""
    dst = asking.settings.dst
    if dst in _NARROW and _is_slow(ready) and asking.may_part:
        why = f"only slow loops store {dst} here: f32, then a cast"
        yield replace(asking.with_settings(saturation="refuse"), apart=why)


# --- what is wanting of what a row made ready, and which refusal is raised in the end ------------


def _is_slow(ready: Planned) -> bool:
    """Tell whether codes run in loops over gemm, or in others that are known to be slow."""
    primitive = ready.primitive
    is_loop = primitive.kind in {"gemm", "reference"}
    return is_loop or bool(slow_loop(primitive.problem, primitive.impl))


def _wanting_as_u8(asking: Asking, ready: Planned) -> str | None:
    plan, kind = ready.plan, ready.primitive.kind
    if _is_slow(ready) and not (is_product_by_gemm(ready) and kind == "gemm"):
        return ""
    # A bias or a map would round the share of 128.
    has_point = asking.settings.has_src_point
    return SLOW if has_point and not plan.sums and plan.attr.src_zero_point is None else None


def is_product_by_gemm(ready: Planned) -> bool:
    """Tell whether it is a product without VNNI: of s8, gemm unpacks the weights; not of u8."""
    return ready.form.asked.window is None and not runtime.isa().is_beyond_avx2()


def _of_sums(first: UnsupportedError, later: Error) -> UnsupportedError:
    return later if isinstance(later, SaturationError) else first


def _first_of_sums(first: UnsupportedError, later: Error) -> UnsupportedError:
    return first if isinstance(first, SaturationError) else _of_sums(first, later)


_BY_CODE: dict[str, Any] = {
    "passes": (Error,),  # with these weights, or this chain
    "wanting": lambda _, ready: None if classify(ready.primitive.impl) == "jit" else "",
}
_F32: dict[str, Any] = {"passes": (UnsupportedError,), "refusal": _of_sums}
WAYS = (
    WayRow("sign", "first", s8_as_u8_if_exact, wanting=_wanting_as_u8),
    WayRow("sign", "refused", s8_as_u8, refusal=both_refused),
    WayRow("sign", "slow", s8_as_u8_if_exact, wanting=_wanting_as_u8),
    WayRow("form", "first", product_as_image, **_BY_CODE),
    WayRow("form", "refused", other_form, refusal=_first_of_sums),
    WayRow("carrier", "first", zero_point_by_bias_or_map, REAL),
    WayRow("carrier", "refused", zero_point_by_bias_or_map, REAL),
    WayRow("store", "refused", f32_first, **_F32),
    WayRow("store", "slow", f32_if_exact, wanting=lambda _, r: "" if _is_slow(r) else None, **_F32),
    WayRow("form", "timed", of_form.as_matmul),
    WayRow("form", "timed", of_form.as_inner_product),
    WayRow("form", "timed", of_form.as_image),
    WayRow("form", "timed", of_form.with_binary_add),
    WayRow("form", "timed", of_form.other_layouts),
    WayRow("form", "timed", of_form.more_channels),
    *ADVISED,
)
_ROWS = {
    (level, moment): tuple(row for row in WAYS if (row.level, row.moment) == (level, moment))
    for level, moment in product(LEVELS, get_args(Moment))
}


def choose(asking: Asking, levels: tuple[Level, ...] = LEVELS) -> Planned:
    """Return what runs: the first way that holds; with ``tune=True``, the fastest form.

    Raises
    ------
    ArgumentError, UnsupportedError
        The request was refused, and so was every row that holds then.
    """
    if not levels:
        try:
            return asking.ready()
        except Error as error:
            # Not the reasons and variants, which would have to be found.
            is_none = isinstance(error, UnsupportedError)
            short = "the library has no kernel for it" if is_none else str(error)
            asking.tried.append((asking.name, getattr(error, "detail", "") or short))
            raise
    try:
        ready = _attempt("first", asking, levels) or choose(asking, levels[1:])
    except UnsupportedError as error:
        ready = cast("Planned", _attempt("refused", asking, levels, error))
    else:
        ready = _attempt("slow", asking, levels, ready) or ready
    return _fastest(asking, ready) if levels[0] == "form" and asking.settings.tune else ready


def _attempt(
    moment: Moment,
    asking: Asking,
    levels: tuple[Level, ...],
    outcome: Planned | UnsupportedError | None = None,
) -> Planned | None:
    """Return the first way of a moment that holds; None without any, or the refusal is raised."""
    refusal: Any = outcome
    policy = asking.settings.policy
    for row in _ROWS[levels[0], moment]:
        promise = row.exactness
        is_allowed = promise is BITWISE or (promise is not None and permits(policy, promise))
        for changed in row.asks(asking, outcome) if is_allowed else ():
            form = changed.form if row.level == "form" else None
            name = form.name if form is not None else row.name
            other = replace(changed, way=(*asking.way, name), tried=asking.tried)
            try:
                ready = choose(other, levels[1:])
            except row.passes as error:
                refusal = row.refusal(refusal, error)
                continue
            wanting = row.wanting(other, ready)
            if wanting is None:
                asking.compositions.update(other.compositions)
                return ready
            asking.tried.append((other.name, wanting or "no faster"))
            if wanting and isinstance(outcome, Planned):
                outcome.decided = (*outcome.decided, wanting)
    if isinstance(outcome, UnsupportedError):
        raise refusal from None
    return None


def forms(problem: DenseProblem, chain: Chain, layout: str = "preserve") -> Iterator[Form]:
    """Give every form that is timed of a problem and a chain, as it was asked first."""
    yield (asked := Form(problem, problem, chain))
    for row in _ROWS["form", "timed"]:
        yield from row.asks(asked, layout)


def in_form(
    asking: Asking, form: Form, implementation: str | None, *, apart: bool = False
) -> Planned:
    """Return what runs in a form, on an implementation; with `apart`, with weights of its own."""
    kept = {} if apart else asking.compositions
    other = replace(asking.in_form(form), compositions=kept, tried=[])
    planned = choose(replace(other, implementation=implementation), LEVELS[2:])
    return asking.as_arrays_lie(planned) if form.name == AS_ASKED else planned


def _fastest(asking: Asking, ready: Planned) -> Planned:
    usual, layout = asking.as_arrays_lie(ready), asking.settings.layout
    offered = tuple(forms(asking.problem, asking.settings.post, layout))
    return tuned(usual, partial(in_form, asking), offered, layout)
