"""Strategies for the constants and steps of a window: dyadic, so that float64 folds are exact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from hypothesis import strategies as st

from pyonednn_q.expr.steps import Affine, Clip
from pyonednn_q.expr.vec import Vec

T = TypeVar("T")
Draw: TypeAlias = Callable[[st.SearchStrategy[T]], T]
Values: TypeAlias = st.SearchStrategy[float]

INF = float("inf")

eighths: Values = st.integers(-40, 40).map(lambda n: n / 8)
quarters: Values = st.integers(-16, 16).map(lambda n: n / 4)
whole: Values = st.integers(-9, 9).map(float)
even: Values = st.integers(-5, 5).map(lambda n: 2.0 * n)
odd: Values = st.integers(-5, 4).map(lambda n: 2.0 * n + 1.0)
signs: Values = st.sampled_from((1.0, -1.0))
powers: Values = st.sampled_from((0.25, 0.5, 1.0, 2.0, 4.0))
signed_powers: Values = st.sampled_from((0.25, 0.5, 1.0, 2.0, -0.25, -0.5, -1.0, -2.0))
scales: Values = st.sampled_from((1.0, 0.5, 2.0, 1.5, 3.0, -1.0, -0.5, -2.0, -1.5, 0.0))
# Far ends of float32 and beyond: products overflow, underflow, and go subnormal.
extremes: Values = st.sampled_from(
    (2.0**100, 2.0**-100, 2.0**-140, -(2.0**120), 2.0**60, 2.0**-60, 1.0, 0.0)
)

_HUNDRED = tuple(range(100))


class Window:
    """Draws the parts of one window; all its per-channel constants have the same channels."""

    def __init__(self, draw: Draw[Any]) -> None:
        self.draw = draw
        self.channels = draw(st.integers(2, 3))

    def pick(self, options: Sequence[T]) -> T:
        """One of several values."""
        choice: T = self.draw(st.sampled_from(options))
        return choice

    def make(self, makers: Sequence[Callable[[], T]]) -> T:
        """Make one of several values; nothing is drawn for the others."""
        return self.pick(makers)()

    def chance(self, percent: int) -> bool:
        """Whether something that rare happens."""
        # Not integers(0, 99): Hypothesis prefers small ones.
        return self.pick(_HUNDRED) < percent

    def vec(self, values: Values, *, per_channel: bool | None = None) -> Vec:
        """Draw a constant, per tensor or per channel; unless told, as often one as the other."""
        if self.draw(st.booleans()) if per_channel is None else per_channel:
            return Vec(self.draw(st.lists(values, min_size=self.channels, max_size=self.channels)))
        return Vec(self.draw(values))

    def affine(self, scale: Values = scales, shift: Values = eighths) -> Affine:
        """Draw an affine step, half of them without a shift."""
        return Affine(self.vec(scale), self.vec(shift) if self.draw(st.booleans()) else 0.0)

    def clip(self, bounds: Values = quarters, *, per_channel: bool | None = None) -> Clip:
        """Draw a clip, one side open now and then."""
        one, other = (self.vec(bounds, per_channel=per_channel) for _ in range(2))
        lo, hi = one.minimum(other), one.maximum(other)
        side = self.pick(("both", "both", "lo", "hi"))
        return Clip(lo if side != "hi" else -INF, hi if side != "lo" else INF)


def windows(build: Callable[[Window], T]) -> st.SearchStrategy[T]:
    """Make a strategy of a function that builds one window."""

    @st.composite
    def drawn(draw: Draw[Any]) -> T:
        return build(Window(draw))

    return drawn()
