"""Random chains for plans: per-channel and per-tensor constants, signs, zeros, residuals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.steps import Affine, Binary, Chain, Clip, Eltwise, PRelu, Round, Step, Sum
from pyonednn_q.expr.vec import Vec

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

MAX_STEPS = 6


def random_chain(rng: np.random.Generator, channels: int) -> Chain:
    """Draw a chain of 1 to 6 steps whose float32 steps are exact on small whole numbers.

    Scales are powers of two of either sign, now and then 0; shifts and bounds are multiples of an
    eighth.
    """
    return Chain(*_draw(rng, channels))


def dirty_chain(rng: np.random.Generator, channels: int) -> Chain:
    """Draw such a chain between scales that are no power of two, so that float32 rounds."""
    first = Affine(rng.uniform(0.3, 1.5, channels), rng.uniform(-2.0, 2.0, channels))
    last = Affine(float(rng.uniform(0.3, 1.5)), float(rng.uniform(-2.0, 2.0)))
    return Chain(first, *_draw(rng, channels), last)


def _draw(rng: np.random.Generator, channels: int) -> list[Step | Chain]:
    steps: list[Step | Chain] = []
    for _ in range(int(rng.integers(1, MAX_STEPS + 1))):
        draw = _DRAWS[int(rng.integers(len(_DRAWS)))]
        if draw is _sum and any(isinstance(step, Sum) for step in steps):
            continue
        steps.append(draw(rng, channels))
    return steps


def _vec(rng: np.random.Generator, channels: int, values: NDArray[np.float64]) -> Vec:
    return Vec(values if rng.random() < 0.5 else np.full(channels, values[0]))


def _scale(rng: np.random.Generator, channels: int, zeros: float = 0.05) -> Vec:
    values = 2.0 ** rng.integers(-2, 2, channels) * rng.choice([1.0, 1.0, -1.0], channels)
    return _vec(rng, channels, np.where(rng.random(channels) < zeros, 0.0, values))


def _shift(rng: np.random.Generator, channels: int) -> Vec:
    return _vec(rng, channels, rng.integers(-64, 64, channels) / 8.0)


def _affine(rng: np.random.Generator, channels: int) -> Step:
    return Affine(_scale(rng, channels), _shift(rng, channels))


def _mul(rng: np.random.Generator, channels: int) -> Step:
    return Binary("mul", _scale(rng, channels))


def _add(rng: np.random.Generator, channels: int) -> Step:
    return Binary("add", _shift(rng, channels))


def _clip(rng: np.random.Generator, channels: int) -> Step:
    lo = _shift(rng, channels)
    hi = lo + abs(_shift(rng, channels))
    return (Clip(lo, hi), Clip(lo=lo), Clip(hi=hi))[int(rng.integers(3))]


def _relu(rng: np.random.Generator, _: int) -> Step:
    return Eltwise("relu", float(rng.choice([0.0, 0.0, 0.25, -0.5])))


def _abs(_: np.random.Generator, __: int) -> Step:
    return Eltwise("abs")


def _prelu(rng: np.random.Generator, channels: int) -> Step:
    return PRelu(_scale(rng, channels))


def _round(_: np.random.Generator, __: int) -> Step:
    return Round()


def _sum(rng: np.random.Generator, _: int) -> Step:
    return Sum(float(rng.choice([1.0, 0.5, -2.0])), int(rng.choice([0, 0, 3])))


def _fq(rng: np.random.Generator, channels: int) -> Chain:
    levels = int(rng.choice([4, 16, 256]))
    width = abs(_scale(rng, channels, zeros=0.0)) * 0.25
    low = width * float(rng.choice([0, -levels // 2, -2]))
    high = low + width * float(levels - 1)
    quantize_only = rng.random() < 0.3
    if quantize_only:
        return FakeQuantize(low, high, 0.0, float(levels - 1), levels).chain()
    return FakeQuantize(low, high, low, high, levels).chain()


_DRAWS: tuple[Callable[[np.random.Generator, int], Step | Chain], ...] = (
    _affine, _mul, _add, _clip, _relu, _abs, _prelu, _round, _sum, _fq, _fq,
)  # fmt: skip
