"""Does a rewrite keep its promise? Exact arithmetic for REAL, float32 as well for BITWISE."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import cycle
from math import inf, isinf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyonednn_q.expr.evaluate import evaluate_f32
from pyonednn_q.expr.interval import Interval
from pyonednn_q.expr.steps import (
    Affine,
    Binary,
    Chain,
    Clip,
    Eltwise,
    Leaf,
    PRelu,
    Round,
    Step,
    Sum,
)
from pyonednn_q.expr.vec import Vec
from pyonednn_q.rewrite.ends import Acc, Dst, Item
from pyonednn_q.rewrite.rule import BITWISE, Exactness
from support.rewriting.exact import (
    RANGES,
    Number,
    World,
    at,
    channels_of,
    meaning,
    telling_points,
)

NAMES = ("res", "gate")
# What dst may hold before, by the type that sums read it as; fractions wherever it can.
_BEFORE = {"u8": (0, 255, 7, 1), "s8": (0, -128, 7, 1), "s32": (0, -(2**31), 7, 1)}
_BEFORE_IN_FLOATS = (0, -3, 7.5, 1)
_LEAVES = (2, -1.5, 0.25, 0)
_PLAIN = (World(Fraction(0), {}),)


@dataclass(frozen=True)
class Near:
    """Where a bounded or snapping rewrite may differ, and by how much.

    A difference of at most ``levels`` is allowed where the value that enters the first rounding of
    the old items lies within ``distance`` of a tie; one of at most ``distance`` anywhere.
    """

    levels: int = 0
    distance: Fraction = Fraction(0)


class Unsound(AssertionError):
    """A rewrite broke its promise; the text is a reproduction."""


@dataclass(frozen=True)
class Claim:
    """What some items are said to have been rewritten to, and with which promise."""

    items: Sequence[Item]
    exactness: Exactness
    near: Near = Near()


def check(
    old: Sequence[Item],
    new: Sequence[Item],
    exactness: Exactness,
    *,
    interval: Interval | None = None,
    near: Near | None = None,
) -> None:
    """Raise Unsound where the new items mean something else than the old ones."""
    check_claims(old, (Claim(new, exactness, near or Near()),), interval)


def check_claims(
    old: Sequence[Item], claims: Sequence[Claim], interval: Interval | None = None
) -> None:
    """Raise Unsound where a claim about the old items is wrong; they are computed once for all."""
    for claim in claims:
        for item in claim.items:
            _check_storable(item, old)
    for channel in range(max(map(channels_of, (old, *(claim.items for claim in claims))))):
        _check_channel(old, claims, channel, interval)
    for claim in claims:
        if claim.exactness == BITWISE:
            check_float32(old, claim.items, interval)


def _worlds(items: Sequence[Item]) -> tuple[World, ...]:
    reads = any(
        isinstance(i, Sum) or (isinstance(i, Binary) and isinstance(i.operand, Leaf)) for i in items
    )
    if not reads:
        return _PLAIN
    befores = _BEFORE.get(_reading(items), _BEFORE_IN_FLOATS)
    return tuple(
        World(Fraction(before), {name: Fraction(leaf) for name in NAMES})
        for before, leaf in zip(befores, _LEAVES, strict=True)
    )


def _reading(items: Sequence[Item]) -> str:
    """Return the type that sums read dst as: the one they name, else dst's own."""
    named = [item.dtype for item in items if isinstance(item, (Sum, Dst)) and item.dtype]
    return named[0] if named else ""


def _check_channel(
    old: Sequence[Item], claims: Sequence[Claim], channel: int, interval: Interval | None
) -> None:
    was, entering = meaning(old, channel), _entering(old, channel)
    nows = [(claim, meaning(claim.items, channel)) for claim in claims]
    points = telling_points(old, channel)
    for claim in claims:
        points |= telling_points(claim.items, channel, neighbours=False)
    inputs = _inputs(points, old, channel, interval)
    # Each input meets one world: all pairs would cost three times as much and find no more.
    for x, world in zip(inputs, cycle(_worlds(old)), strict=False):
        before = was(x, world)
        for claim, now in nows:
            after = now(x, world)
            enters = partial(entering, x, world)
            if before == after or _may_differ(claim.near, before, after, enters):
                continue
            msg = (
                f"x = {x} in channel {channel}, {world}:\n"
                f"  {' > '.join(map(str, old))} is {before}\n"
                f"  {' > '.join(map(str, claim.items)) or 'x'} is {after}"
            )
            raise Unsound(msg)


def _may_differ(near: Near, before: Number, after: Number, entering: Callable[[], Number]) -> bool:
    """Tell whether Near allows the difference, given what enters the first rounding."""
    if near == Near() or before is None or after is None:
        return False
    difference = abs(before - after)
    if difference <= near.distance:
        return True
    value = entering() if difference <= near.levels else None
    return value is not None and abs(value % 1 - Fraction(1, 2)) <= near.distance


def _entering(old: Sequence[Item], channel: int) -> Callable[[Fraction, World], Number]:
    """Compute what enters the first rounding, nothing if there is none."""
    for index, item in enumerate(old):
        if isinstance(item, (Round, Dst)):
            return meaning(old[:index], channel)
    return lambda _x, _world: None


def _inputs(
    points: set[Fraction], old: Sequence[Item], channel: int, interval: Interval | None
) -> Iterator[Fraction]:
    """Yield the points that the old items may meet, and the ends of what enters them."""
    acc = next((item for item in old if isinstance(item, Acc)), None)
    known = interval or (acc.interval if acc else Interval())
    lo, hi = at(known.lo, channel), at(known.hi, channel)
    for end in (lo, hi):
        if not isinf(end):
            points.add(Fraction(end))
    # Any order that is the same in every run; comparing fractions would take longest of all.
    for point in sorted(points, key=Fraction.as_integer_ratio):
        x = Fraction(round(point)) if known.integer else point
        if (isinf(lo) or x >= lo) and (isinf(hi) or x <= hi):
            yield x


def _check_storable(item: Item, old: Sequence[Item]) -> None:
    """No constant may leave the range of float32 that all constants were in before."""
    if any(_out_of_range(other) for other in old):
        return
    for value in _out_of_range(item):
        msg = f"{value!r} in {item}, made from {' > '.join(map(str, old))}"
        raise Unsound(msg)


def _out_of_range(item: Item) -> list[float]:
    """Constants beyond float32's normal range; of a bound, those that are infinite in float32."""
    if isinstance(item, Clip):
        bounds = (float(value) for vec in (item.lo, item.hi) for value in vec.values())
        return [bound for bound in bounds if 2.0**128 <= abs(bound) < inf]
    return [value for value in _constants(item) if not _storable(value)]


def _constants(item: Item) -> list[float]:
    vecs: list[Vec] = []
    if isinstance(item, (Affine, Acc)):
        vecs = [item.scale, item.shift]
    elif isinstance(item, PRelu):
        vecs = [item.slope]
    elif isinstance(item, Binary) and isinstance(item.operand, Vec):
        vecs = [item.operand]
    elif isinstance(item, Sum):
        vecs = [Vec(item.scale)]
    elif isinstance(item, Eltwise) and not item.alg.startswith("clip"):
        vecs = [Vec(item.alpha), Vec(item.beta)]
    return [float(value) for vec in vecs for value in vec.values()]


def _storable(value: float) -> bool:
    return value == 0.0 or 2.0**-126 <= abs(value) < 2.0**128


def float32_inputs(seed: int = 0) -> NDArray[np.float32]:
    """Ties, neighbours of ties, every magnitude, random bit patterns: all finite."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2**32, 256, dtype=np.uint32).view(np.float32)
    ties = np.arange(-300, 300, dtype=np.float32) / 2
    near = np.nextafter(ties, np.float32(np.inf)), np.nextafter(ties, np.float32(-np.inf))
    large = np.float32(2.0) ** np.arange(-149, 128, 9).astype(np.float32)
    values = np.concatenate([bits, ties, *near, large, -large, rng.normal(0, 9, 256)])
    finite = np.asarray(values[np.isfinite(values)], np.float32)
    return np.unique(finite)


_FLOATS = float32_inputs()


def run_float32(items: Sequence[Item], x: NDArray[Any], channels: int) -> NDArray[Any]:
    """Evaluate steps, and a store at the end, as a kernel does in float32."""
    steps: list[Step] = []
    for item in items:
        if isinstance(item, Acc):
            steps += [Affine(item.scale), Affine(1.0, item.shift)]
        elif isinstance(item, Step):
            steps.append(item)
    rows = np.broadcast_to(np.asarray(x, np.float32), (channels, len(x)))
    leaves = {name: np.float32(1.25) for name in NAMES}
    y = evaluate_f32(Chain(*steps), rows, axis=0, dst_before=3.0, operands=leaves)
    last = items[-1] if items else None
    if isinstance(last, Dst) and last.dtype in RANGES:
        lo, hi = RANGES[last.dtype]
        with np.errstate(all="ignore"):
            inverse = np.float32(1.0) / np.float32(last.scale)
            y = np.float32(y * inverse) + np.float32(last.zero_point)
        # Saturation first, as kernels do: the conversion of a larger value is not defined.
        return np.asarray(np.rint(np.clip(y.astype(np.float64), lo, hi)))
    return y


def check_float32(old: Sequence[Item], new: Sequence[Item], interval: Interval | None) -> None:
    """Raise Unsound where the items differ in float32, for any finite input."""
    channels = max(channels_of(old), channels_of(new))
    acc = next((item for item in old if isinstance(item, Acc)), None)
    interval = interval or (acc.interval if acc else None)
    x = _FLOATS
    if interval is not None and interval.integer:
        x = np.unique(np.rint(x[np.abs(x) < 2.0**24]))
    if interval is not None:
        lo, hi = interval.lo.greatest, interval.hi.least
        x = x[(x >= lo) & (x <= hi)]
    before, after = run_float32(old, x, channels), run_float32(new, x, channels)
    differs = ~((before == after) | (np.isnan(before) & np.isnan(after)))
    if differs.any():
        channel, index = np.argwhere(differs)[0]
        msg = (
            f"float32 x = {x[index]!r} in channel {channel}: {' > '.join(map(str, old))} is "
            f"{before[channel, index]!r}, {' > '.join(map(str, new))} is {after[channel, index]!r}"
        )
        raise Unsound(msg)
