"""Tuning: the fastest of the ways to compute a problem, if it is surely faster than the usual one.

Whole calls are timed, from Python, with what a form costs around its primitive. All ways take
turns, so that drift of the machine hits them alike; the best of them then meets the usual way
alone, as the best of many owes something to chance. Where arrays lie is another chance: a kernel
takes up to half as long again to read what does not start on a cache line, or where its loads and
stores are a page apart. So they meet in several places, with new arrays and new primitives each
time: first arrays as NumPy allocates them, 16 bytes behind a line, then such as our results are.
The best is taken where the ratio of the two is above `LEAST_GAIN` with 95 % confidence in either
case, and in no place below 1: what is not surely faster stays as it was.
"""

from __future__ import annotations

from itertools import chain as joined
from itertools import zip_longest
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.check.draw import Draw
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import Error
from pyonednn_q.expr.steps import Sum
from pyonednn_q.faults import guards
from pyonednn_q.native import runtime
from pyonednn_q.native.arrays import aligned
from pyonednn_q.native.selection import implementations
from pyonednn_q.native.timing import Budget, interleaved, looped
from pyonednn_q.ops.gain import Timing, Tuning, ratios_of, sure_gain
from pyonednn_q.primitive.isa import classify
from pyonednn_q.primitive.tensor import TensorSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyonednn_q.expr.steps import Chain
    from pyonednn_q.ops.form import Form
    from pyonednn_q.ops.planned import Planned
    from pyonednn_q.primitive.dense_facts import DenseProblem

    Make = Callable[..., Planned]

LEAST_GAIN = 1.03
MOST_WAYS = 16
_PAST_A_LINE = (16, 0)  # bytes from the start of a cache line to that of an array
LINES = (0, 1024, 2048, 3072)  # bytes from the start of a page to that line
_PAGE = 4096
HOPELESS = 3.0  # times the fastest, in a first look
_LOOK = Budget(min_time_s=0.02)
_MATCH = Budget(rounds=9)


def way(planned: Planned) -> str:
    """Return the form and the implementation of a plan, as tunings name them."""
    return f"{planned.form.name} on {planned.primitive.impl}"


def rounds_alike(planned: Planned, usual: Planned) -> bool:
    """Tell whether a plan gives the bits of the usual one.

    A residual that is added takes no factor of its own, so the scale of dst stays an attribute
    where a sum takes it into its factors: one rounding more, and another code in 10^5.
    """
    return planned.primitive.attr.dst_scale == usual.primitive.attr.dst_scale


def tune(usual: Planned, make: Make, forms: Sequence[Form], layout: str) -> tuple[Planned, Tuning]:
    """Return the way to take, and what was measured.

    Parameters
    ----------
    usual : Planned
        Plan that runs without tuning.
    make : callable
        Returns the plan of a form on an implementation of that name, None for the first; with
        ``apart`` it shares no packed weights.
    forms : sequence of Form
        Forms on offer, the form as asked first.
    layout : str
        Layout of the arrays of calls: see `Settings`.
    """
    problem, chain = forms[0].asked, forms[0].chain
    ways = {way(usual): usual}
    for planned in _others(usual, make, forms):
        if len(ways) < MOST_WAYS:
            ways.setdefault(way(planned), planned)
    calls = {name: calls_of(planned, problem, chain, layout) for name, planned in ways.items()}
    first = {name: min(call(1) for _ in range(3)) for name, call in calls.items()}
    limit, asked = HOPELESS * min(first.values()), way(usual)
    hopeful = [name for name, taken in first.items() if name == asked or taken < limit]
    looked = interleaved([calls[name] for name in hopeful], _LOOK)
    timings = tuple(
        Timing(name, median(timed.samples_us)) for name, timed in zip(hopeful, looked, strict=True)
    )
    best = min(timings, key=lambda timing: timing.us).way
    stays = Tuning(asked, asked, 1.0, timings)
    if best == asked:
        return usual, stays
    gain = 1.0
    for past in _PAST_A_LINE:
        ratios: list[float] = []
        for line in LINES:
            args = (problem, chain, layout, line + past)
            pair = [calls_of(_again(ways[name], make), *args) for name in (asked, best)]
            here = ratios_of(*interleaved(pair, _MATCH))
            if median(here) < 1.0:
                return usual, stays
            ratios += here
        gain, sure = sure_gain(ratios)
        if sure <= LEAST_GAIN:
            return usual, stays
    return ways[best], Tuning(best, asked, gain, timings)


def _again(planned: Planned, make: Make) -> Planned:
    """Return the same way made anew, with weights of its own in memory."""
    return make(planned.form, planned.primitive.impl, apart=True)


def _others(usual: Planned, make: Make, forms: Sequence[Form]) -> Iterator[Planned]:
    """Give every other way that may be trusted and that the library makes, forms in turn."""
    known = {_run_by(usual)}
    has_points = any(usual.primitive.attr.zero_point(name) for name in ("src", "wei", "dst"))
    offered = [form for form in forms if form.takes_zero_points or not has_points]
    turns = zip_longest(*(_of_form(form, usual, make) for form in offered))
    for planned in joined.from_iterable(turns):
        if planned is None or _run_by(planned) in known or _is_known_wrong(planned):
            continue
        if not rounds_alike(planned, usual):
            continue
        known.add(_run_by(planned))
        yield planned


def _of_form(form: Form, usual: Planned, make: Make) -> Iterator[Planned]:
    """Give a form on every implementation, in the library's order."""
    first = usual
    if form.name != usual.form.name:
        try:
            first = make(form, None)
        except Error:  # this form is not supported
            return
        yield first
    for name in _trusted(first):
        try:
            yield make(form, name)
        except Error:  # with these weights
            continue


def _trusted(planned: Planned) -> Iterator[str]:
    """Give the names of the other implementations that a plan's primitive may run on."""
    primitive = planned.primitive
    offers = implementations(primitive.problem, primitive.attr)
    trusted = (o.impl for o in offers if not o.guards and classify(o.impl) != "reference")
    yield from (name for name in dict.fromkeys(trusted) if name != primitive.impl)


def _run_by(planned: Planned) -> tuple[object, ...]:
    """Return a key that is equal where two forms end in the same primitive."""
    primitive = planned.primitive
    layouts = tuple(primitive.layouts.items())
    return primitive.problem.kind, primitive.impl, primitive.attr, planned.leaves, layouts


def _is_known_wrong(planned: Planned) -> bool:
    """Tell whether a guard forbids the layouts that the library chose."""
    primitive = planned.primitive
    chosen = primitive.chosen_problem()
    return bool(guards.matching(chosen, primitive.attr, runtime.facts(), primitive.impl))


def calls_of(
    planned: Planned, problem: DenseProblem, chain: Chain, layout: str, place: int = 0
) -> Callable[[int], float]:
    """Return seconds per call, of a number of calls, with arrays as callers have them.

    Parameters
    ----------
    planned, problem, chain, layout
        Plan that is called; what was asked, and how arrays lie, as in `tune`.
    place : int
        Bytes from a page to each array.
    """
    draw = Draw()
    spec, facts = problem.src, planned.plan.facts
    if layout == "dense":
        spec = TensorSpec.dense(spec.dims, spec.dtype)
    src = _laid(place, spec, draw.source(spec.dims, spec.dtype, facts.src_zero_point or 0))
    operands: dict[str, Any] = {}
    sums = [step for step in chain if isinstance(step, Sum)]
    if sums:
        read = TensorSpec(problem.dst.dims, sums[0].dtype or facts.dst, problem.dst.strides)
        operands["residual"] = _laid(
            place, read, draw.source(read.dims, read.dtype, sums[0].zero_point)
        )
    extents = {"per_channel": (facts.channels,), "per_tensor": (1,)}
    for leaf in planned.plan.leaves:
        if leaf.name in planned.leaves:
            dims = extents.get(leaf.extent, problem.dst.dims)
            array = draw.operand(dims, leaf.dtype)
            if leaf.extent == "full":
                operand = TensorSpec(dims, leaf.dtype, problem.dst.strides)
                array = _laid(place, operand, array)
            operands[leaf.name] = array
    stays = (
        layout != "dense"
        or planned.dst.strides == TensorSpec.dense(planned.dst.dims, planned.dst.dtype).strides
    )
    hot = planned.hot if stays and not operands else None

    def call() -> None:
        if hot is None or hot(src, None, None) is NotImplemented:
            dst = planned(src, **operands)
            if not stays:
                np.ascontiguousarray(dst)

    return looped(call)


def _laid(place: int, spec: TensorSpec, values: Array) -> Array:
    """Return values in a layout, `place` bytes behind the start of a page."""
    assert spec.strides is not None
    steps = [step * values.itemsize for step in spec.strides]
    memory = aligned((spec.nbytes + place + _PAGE,), np.dtype(np.uint8))
    start = -memory.__array_interface__["data"][0] % _PAGE + place
    array: Array = np.ndarray(spec.dims, values.dtype, memory, start, steps)
    array[...] = values
    return array
