"""TPU-MLIR's parameters of a range and of a threshold.

Accepted: scale and zero point are those of the compiler's steps in rational arithmetic, the clamped
cases and the choice of the type included; every value of the range is within half a step of its
code; the threshold of a lowered file.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError
from pyonednn_q.quantize.tpu_mlir import affine_qparams, symmetric_qparams
from pyonednn_q.requantize.quantize_rules import quantize
from support.definitions.requantization import f64, half_away


def stated(lo: float, hi: float) -> tuple[Fraction, int, str]:
    least, greatest = Fraction(lo), Fraction(hi)
    dtype, qmin, qmax = ("s8", -128, 127) if least < 0 else ("u8", 0, 255)
    scale = f64(f64(greatest - least) / 255)
    exact = f64(qmin - f64(least / scale))
    if exact < qmin:
        return f64(greatest / 255), qmin, dtype
    if exact > qmax:
        return f64(-least / 255), qmax, dtype
    return scale, half_away(exact), dtype


def ranges(count: int) -> list[tuple[float, float]]:
    rng = np.random.default_rng(count)
    ends = np.sort(rng.normal(size=(count, 2)) * 10.0 ** rng.integers(-3, 4, (count, 1)), axis=1)
    return [(float(lo), float(hi)) for lo, hi in ends]


EDGES = [(-1.0, 1.0), (0.0, 2.55), (-2.55, 0.0), (0.5, 2.55), (-2.55, -0.5), (-1.27, 1.28), (-1, 3)]


@pytest.mark.parametrize("ends", [*EDGES, *ranges(60)], ids=str)
def test_parameters_of_a_range(ends: tuple[float, float]) -> None:
    q = affine_qparams(*ends)
    assert (Fraction(float(q.scale)), int(q.zero_point), q.dtype) == stated(*ends)


@pytest.mark.parametrize(
    ("ends", "scale", "point", "dtype"),
    [
        ((0.0, 2.55), 0.01, 0, "u8"),
        ((-2.55, 0.0), 0.01, 127, "s8"),
        ((0.5, 2.55), 0.01, 0, "u8"),  # would be −62
        ((-2.55, -0.5), 0.01, 127, "s8"),  # would be 189
        ((-1.0, 254.0), 1.0, -127, "s8"),
        ((-0.5, 254.5), 1.0, -128, "s8"),  # −127.5: away from zero
    ],
)
def test_clamped_cases_and_the_switch_to_u8(
    ends: tuple[float, float], scale: float, point: int, dtype: str
) -> None:
    q = affine_qparams(*ends)
    assert (int(q.zero_point), q.dtype) == (point, dtype)
    assert float(q.scale) == pytest.approx(scale, rel=2**-52)


@pytest.mark.parametrize("ends", [*EDGES, *ranges(40)], ids=str)
def test_every_value_of_a_range_has_a_code_half_a_step_away(ends: tuple[float, float]) -> None:
    q = affine_qparams(*ends)
    scale, point = float(np.float32(q.scale)), int(q.zero_point)
    x = np.linspace(*ends, 1001).astype(np.float32)
    codes = quantize(x, scale, point, q.dtype, rule="tpu_mlir").astype(float)
    # The zero point is rounded, too: an end can lie half a step outside of the codes.
    assert np.abs((codes - point) * scale - x).max() <= scale * (1 + 2**-10)


def test_thresholds() -> None:
    """2.5 / 127 is what a file lowered by the compiler holds, and not the note's 2.5 / 128."""
    assert float(symmetric_qparams(2.5).scale) == 0.01968503937007874
    for steps, dtype in ((127, "s8"), (128, "s8"), (255, "u8")):
        q = symmetric_qparams(2.5, steps)
        assert (float(q.scale), q.zero_point, q.dtype) == (2.5 / steps, 0, dtype)
    ends = [
        quantize(np.array([2.5], np.float32), 2.5 / n, 0, "s8", rule="tpu_mlir") for n in (127, 128)
    ]
    assert [end.item() for end in ends] == [127, 127]  # 128 saturates
    assert ends[1].item() * 2.5 / 128 < 2.5


def test_arguments_are_named() -> None:
    with pytest.raises(ArgumentError, match=r"^lo: got 1\.0 and hi 1\.0"):
        affine_qparams(1.0, 1.0)
    with pytest.raises(ArgumentError, match=r"^hi: got inf"):
        affine_qparams(0.0, float("inf"))
    with pytest.raises(ArgumentError, match=r"^steps: got 126"):
        symmetric_qparams(1.0, 126)
    with pytest.raises(ArgumentError, match=r"^threshold: got 0\.0"):
        symmetric_qparams(0.0)
