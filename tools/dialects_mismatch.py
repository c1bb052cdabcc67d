"""How often dialects differ, counted: the tables of docs/dialects.md.

Every dialect runs in C++ on the same accumulators. Scales and accumulators are drawn anew from a
fixed seed, so the tables come out the same each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyonednn_q.native.requantize import requantize
from pyonednn_q.predict.dialects import DIALECTS, requantizer
from pyonednn_q.predict.difference import tie_mask

Array = np.ndarray[Any, Any]

SCALES = 400
ACCUMULATORS = 25_000
ROWS = 2_500  # accumulators per scale at a time
YARDSTICK = "exact"
BY_OCTAVE = (
    "tflite_2step",
    "tflite_2up",
    "tflite_1step",
    "onnxruntime",
    "onednn",
    "tpu_mlir",
    "tpu_mlir_8bit",
    "snps_ev",
)
OCTAVES = (-1, -2, -3, -4, -5, -6, -8, -10, -12, -14, -18, -22)
TIES_LOOKED_AT = 20_000


@dataclass(frozen=True)
class Regime:
    """Where multipliers and accumulators come from."""

    letter: str
    text: str
    low: float = 0.0
    high: float = 0.0


REGIMES = (
    Regime("A", "typical, M in 2^[-14, -4)", -14, -4),
    Regime("B", "large M, 2^[-4, 0)", -4, 0),
    Regime("C", "M a power of two, 2^-1 to 2^-9: ties are common"),
    Regime("D", "long accumulators, M in 2^[-24, -16)", -24, -16),
    Regime("E", "a 3×3 convolution of 64 channels, normal weights"),
)


@dataclass(frozen=True)
class Scales:
    """One scale triple per column, and the zero points."""

    src: Array
    wei: Array
    dst: Array
    zero_point: Array

    def made(self, name: str) -> Any:  # noqa: ANN401 - a Requantizer
        """Return a dialect's arithmetic for all columns."""
        return requantizer(
            name,
            src_scale=self.src,
            wei_scale=self.wei,
            dst_scale=self.dst,
            dst_zero_point=self.zero_point,
            axis=-1,
        )


@dataclass
class Tally:
    """What one dialect's results were, next to another's."""

    count: int = 0
    largest: int = 0
    sum: int = 0
    ties: int = 0
    looked_at: int = 0

    def add(self, gap: Array, acc: Array, scales: Scales) -> None:
        """Count one batch of differences."""
        differ = np.argwhere(gap != 0)
        self.count += len(differ)
        self.largest = max(self.largest, int(np.abs(gap).max(initial=0)))
        self.sum += int(gap.sum())
        at = differ[: max(0, TIES_LOOKED_AT - self.looked_at)]
        self.looked_at += len(at)
        for column in np.unique(at[:, 1]):
            rows = at[at[:, 1] == column, 0]
            factors = (scales.src[column], scales.wei[column], scales.dst[column])
            named = dict(zip(("src_scale", "wei_scale", "dst_scale"), factors, strict=True))
            self.ties += int(np.count_nonzero(tie_mask(acc[rows, column], **named)))


def scales_of(regime: Regime, rng: np.random.Generator, count: int = SCALES) -> Scales:
    """Draw float32 scales whose multipliers lie where the regime wants them."""
    src, dst = (rng.uniform(0.005, 0.1, count).astype(np.float32) for _ in range(2))
    if regime.letter == "C":
        src = dst = np.full(count, 0.5, np.float32)
        wei = np.ldexp(np.float32(1), -rng.integers(1, 10, count)).astype(np.float32)
    elif regime.letter == "E":
        wei = (40.0 / 3.0 / _spread() * rng.uniform(0.5, 2, count) * dst / src).astype(np.float32)
    else:
        octaves = rng.uniform(regime.low, regime.high - 1e-3, count)
        wei = (2.0**octaves * dst / src).astype(np.float32)
    return Scales(src, wei, dst, rng.integers(-128, 128, count).astype(np.int32))


def batches(
    regime: Regime, scales: Scales, rng: np.random.Generator, per_scale: int
) -> Iterator[Array]:
    """Draw accumulators, a few thousand rows of one column per scale at a time."""
    columns = len(scales.src)
    m = scales.src.astype(np.float64) * scales.wei / scales.dst
    bounds = [
        np.clip(np.rint((end - scales.zero_point) / m), -(2**31), 2**31 - 1)
        for end in (-128.0, 127.0)
    ]
    wei = np.rint(rng.normal(scale=30, size=(576, columns))).clip(-127, 127).astype(np.float32)
    for start in range(0, per_scale, ROWS):
        rows = min(ROWS, per_scale - start)
        if regime.letter == "E":
            src = rng.integers(0, 256, (rows, 576)).astype(np.float32) - 128
            yield (src @ wei).astype(np.int32)  # below 2^24: exact in float32
        else:
            low, high = (bound.astype(np.int64) for bound in bounds)
            yield rng.integers(low, high, (rows, columns), endpoint=True).astype(np.int32)


def tallies(regime: Regime, per_scale: int = ACCUMULATORS) -> dict[str, dict[str, Tally]]:
    """Count, for each dialect, its differences to the yardstick and to oneDNN."""
    rng = np.random.default_rng(ord(regime.letter))
    scales = scales_of(regime, rng)
    made = {name: scales.made(name) for name in DIALECTS}
    against = {other: {name: Tally() for name in DIALECTS} for other in (YARDSTICK, "onednn")}
    for acc in batches(regime, scales, rng, per_scale):
        results = {name: requantize(acc, one).astype(np.int16) for name, one in made.items()}
        for other, counted in against.items():
            for name, tally in counted.items():
                tally.add(results[name] - results[other], acc, scales)
    return against


def pairwise(regime: Regime, per_scale: int) -> dict[tuple[str, str], int]:
    """Count the differences of every two dialects."""
    rng = np.random.default_rng(ord(regime.letter) + 1)
    scales = scales_of(regime, rng)
    made = {name: scales.made(name) for name in DIALECTS}
    names = list(DIALECTS)
    counts = dict.fromkeys(((a, b) for a in names for b in names), 0)
    for acc in batches(regime, scales, rng, per_scale):
        results = {name: requantize(acc, one) for name, one in made.items()}
        for i, a in enumerate(names):
            for b in names[i + 1 :]:
                differ = int(np.count_nonzero(results[a] != results[b]))
                counts[a, b] = counts[b, a] = counts[a, b] + differ
    return counts


def by_octave(per_scale: int) -> dict[int, dict[str, int]]:
    """Count the differences to the yardstick for multipliers of one octave each."""
    found = {}
    for octave in OCTAVES:
        regime = Regime("octave", "", octave, octave + 1)
        rng = np.random.default_rng(-octave)
        scales = scales_of(regime, rng, 100)
        exact = scales.made(YARDSTICK)
        made = {name: scales.made(name) for name in BY_OCTAVE}
        counts = dict.fromkeys(BY_OCTAVE, 0)
        for acc in batches(regime, scales, rng, per_scale):
            wanted = requantize(acc, exact)
            for name, one in made.items():
                counts[name] += int(np.count_nonzero(requantize(acc, one) != wanted))
        found[octave] = counts
    return found


def _spread() -> float:
    """Return the standard deviation of regime E's accumulators."""
    return float(np.sqrt(576 * (255**2 / 12) * 30**2))
