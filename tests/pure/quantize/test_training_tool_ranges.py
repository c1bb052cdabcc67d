"""FakeQuantize of measured ranges: published parameter sets, closed forms, and what 0 becomes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.quantize import fq_from_range, level_range, tune_range, weight_codes

F = np.float32
# numpy.random.default_rng(0).uniform(0, 1, (2, 3, 4, 5)): the statistics of the published sets.
VALUES = np.random.default_rng(0).uniform(0, 1, (2, 3, 4, 5))
# The published ranges themselves: group, mode, sign, channels, narrow, half -> low, high.
HIGH, HIGHS = 0.997209906578064, (0.997209906578064, 0.9950965046882629)
LOW, LOWS = 0.0, (0.0, 0.0)
PUBLISHED = [
    ("symmetric", True, False, True, True, -1.994419813156128, 1.994419813156128, 255),
    ("symmetric", True, False, True, False, -HIGH, HIGH, 255),
    ("symmetric", True, False, False, True, -2.0340540409088135, 2.0022718596646167, 256),
    ("symmetric", True, False, False, False, -1.0050619840621948, HIGH, 256),
    ("asymmetric", None, False, False, False, LOW, HIGH, 256),
    ("asymmetric", None, False, True, False, LOW, HIGH, 255),
    ("symmetric", None, False, False, False, LOW, HIGH, 256),
    ("symmetric", None, True, False, False, LOWS, HIGHS, 256),
    ("symmetric", None, False, True, False, LOW, HIGH, 255),
    ("symmetric", None, True, True, False, LOWS, HIGHS, 255),
    ("asymmetric", None, False, False, False, LOW, HIGH, 256),
    ("asymmetric", None, True, False, False, LOWS, HIGHS, 256),
    ("asymmetric", True, False, False, False, LOW, HIGH, 256),
    ("asymmetric", True, True, False, False, LOWS, HIGHS, 256),
    ("asymmetric", None, False, True, False, LOW, HIGH, 255),
    ("asymmetric", None, True, True, False, LOWS, HIGHS, 255),
    ("asymmetric", True, False, True, False, LOW, HIGH, 255),
    ("asymmetric", True, True, True, False, LOWS, HIGHS, 255),
]


def measured(mode: str, sign: bool | None, channels: bool, narrow: bool, half: bool) -> Any:
    axes = (1, 2, 3) if channels else None
    sizes = np.abs(VALUES) if mode == "symmetric" else VALUES
    ends = VALUES.min(axis=axes), sizes.max(axis=axes)
    options = {"symmetric": mode == "symmetric", "narrow": narrow, "half_range": half}
    return fq_from_range(*ends, signed=sign, **options)


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: "-".join(map(str, row[:5])))
def test_published_parameter_sets(row: Any) -> None:
    fq = measured(*row[:5])
    assert fq.levels == row[7]
    channels = 2 if row[2] else 1
    np.testing.assert_array_equal(F(fq.input_low.spread(channels)), F(row[5]))
    np.testing.assert_array_equal(F(fq.input_high.spread(channels)), F(row[6]))
    assert fq.output_low == fq.input_low
    assert fq.output_high == fq.input_high


def test_the_file_of_published_sets_has_no_others() -> None:
    """PYONEDNN_Q_NNCF_SETS names the file; the numbers that are needed stand above."""
    file = Path(os.environ.get("PYONEDNN_Q_NNCF_SETS", ""))
    if not file.is_file():
        pytest.skip("PYONEDNN_Q_NNCF_SETS names no file of published parameter sets")
    found = json.loads(file.read_text())
    assert len(found) == len(PUBLISHED) == 18
    for name, wanted in found.items():
        symmetric = "_symmetric" in name
        sign, channels, narrow, half = (
            f"{word}_True" in name for word in ("sign", "per_ch", "narrow_range", "hf_range")
        )
        fq = measured(
            "symmetric" if symmetric else "asymmetric", sign or None, channels, narrow, half
        )
        assert fq.levels == wanted["levels"]
        for end in ("input_low", "input_high", "output_low", "output_high"):
            values = np.ravel(wanted[end])
            np.testing.assert_array_equal(F(getattr(fq, end).spread(values.size)), F(values))


def test_half_range_wide_has_its_zero_between_two_levels() -> None:
    fq = fq_from_range(-1.0, 1.0, half_range=True)
    assert fq.zero_in.least == pytest.approx(255 * 64 / 127, abs=1e-5)
    assert round(fq.zero_in.least, 3) == 128.504
    wei = np.random.default_rng(0).uniform(-1, 1, (4, 4096))
    wei[:, :2] = -1.0, 1.0
    codes = weight_codes(wei, fq_from_range(-1.0, 1.0, half_range=True, narrow=True)).codes
    # The ends are at 63.5, a tie that goes to 64 or, counted from the lowest level, to 63.
    assert -64 <= codes.min() <= -63
    assert 63 <= codes.max() <= 64


@pytest.mark.parametrize("bits", range(2, 17))
def test_level_tables(bits: int) -> None:
    n = 2**bits
    assert level_range(bits) == (-n // 2, n // 2 - 1)
    assert level_range(bits, narrow=True) == (-n // 2 + 1, n // 2 - 1)
    assert level_range(bits, signed=False) == (0, n - 1)
    assert level_range(bits, signed=False, narrow=True) == (0, n - 2)
    fq = fq_from_range(-3.0, 3.0, bits, narrow=bits == 2)
    low, high = level_range(bits, narrow=bits == 2)
    assert fq.levels == high - low + 1
    # low = scale * level_low / level_high, in float32
    assert fq.input_low.least == pytest.approx(3.0 * low / high, rel=2.0**-22)


def test_floors_keep_channels_of_zeros_from_vanishing() -> None:
    fq = fq_from_range([0.0, -5.0, 0.0], [0.0, 5.0, 0.01], narrow=True)
    wanted = np.array([F(5.0) * F(0.01), 5.0, F(5.0) * F(0.01)], F)
    np.testing.assert_array_equal(fq.input_high.spread(3).astype(F), wanted)
    assert fq_from_range(0.0, 0.0).input_high.least == float(F(8e-5))
    assert fq_from_range(-0.01, 0.01, version=2).input_high.least == float(F(0.1))


def test_narrow_asymmetric_ranges_are_widened() -> None:
    fq = fq_from_range(0.5, 0.5001, symmetric=False)
    assert fq.input_low.least == 0.0
    assert fq.input_high.least == float(F(F(0.5001) + F(8e-4)))


@settings(max_examples=300, deadline=None)
@given(
    lo=st.floats(-1e4, -1e-3),
    hi=st.floats(1e-3, 1e4),
    bits=st.integers(2, 12),
    strict=st.booleans(),
)
def test_tuning_only_widens_and_puts_zero_on_a_level(
    lo: float, hi: float, bits: int, strict: bool
) -> None:
    low, high = tune_range(lo, hi, bits, strict=strict)
    n = 2**bits - 1
    point = float(np.rint(-F(lo) * (F(n) / (F(hi) - F(lo)))))
    if 0 < point < n:
        assert low <= F(lo) * F(1 - 2e-6) or low == F(lo)
        assert high >= F(hi) * F(1 - 2e-6)
        assert -float(low) / (float(high) - float(low)) * n == pytest.approx(point, abs=n * 1e-5)
    elif strict:
        assert 0.0 in (low, high)
    else:
        assert (low, high) == (F(lo), F(hi))


def test_the_edge_that_the_tool_leaves() -> None:
    low, high = tune_range(-0.0015, 1.0)
    assert -low / (high - low) * 255 == pytest.approx(0.38, abs=0.003)
    assert tune_range(-0.0015, 1.0, strict=True)[0] == 0.0


def test_one_zero_point_for_all_channels() -> None:
    lo, hi = tune_range([-1.0, -3.0], [2.0, 1.0], unify=True)
    points = -lo.astype(float) / (hi.astype(float) - lo) * 255
    np.testing.assert_allclose(points, np.rint((85 + 191.25) / 2), atol=1e-4)


def test_version_2_stretches_codes_and_zero_stays_a_level() -> None:
    fq = fq_from_range(-1.0, 1.0, half_range=True, version=2)
    assert fq.levels == 256
    assert fq.zero_in.least == pytest.approx(128.0, abs=1e-5)  # its ends are float32
    # What NNCF 2.18 exports for weights whose largest magnitude is 1.
    assert F(fq.input_low.least) == F(-2.0317459106445312)
    assert F(fq.input_high.least) == F(2.0158729553222656)
    # 128/127 below 0 and 127/127 above, of three bits 4/3.
    low = fq_from_range(-0.5, 2.0, 3, version=2).input_low.least
    assert low == float(F(2.0) * F(-4.0) / F(3.0))
    assert fq_from_range(-1.0, 1.0, signed=False, version=2).input_low.least == 0.0


def test_what_is_not_defined_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"^version: got 2; wanted 3, which has strict_zero"):
        fq_from_range(-1.0, 1.0, symmetric=False, strict_zero=True, version=2)
    with pytest.raises(ArgumentError, match=r"^half_range: got True; wanted symmetric=True"):
        fq_from_range(-1.0, 1.0, symmetric=False, half_range=True)
    with pytest.raises(ArgumentError, match=r"^lo: got 2\.0 and hi 1\.0"):
        fq_from_range(2.0, 1.0)
    with pytest.raises(ArgumentError, match=r"^bits: got 1"):
        level_range(1)
    with pytest.raises(ArgumentError, match=r"^lo: got ends that are not finite"):
        fq_from_range(-np.inf, 1.0)
    with pytest.raises(ShapeError, match=r"^lo: "):
        fq_from_range([-1.0, -2.0], [1.0, 2.0, 3.0])
    with pytest.raises(ArgumentError, match=r"wanted lo <= 0 <= hi, lo < hi$"):
        tune_range(0.5, 1.0)
