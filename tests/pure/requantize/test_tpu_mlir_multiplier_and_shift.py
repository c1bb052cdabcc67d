"""TPU-MLIR's multipliers and shifts, searched, from q31, as printed, and truncated.

Accepted: 0 differing from the searches followed in rational arithmetic, float32 errors included.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError
from pyonednn_q.requantize.multiplier import quantize_multiplier, scale_to_mult_shift
from support.definitions import requantization

LIMITS = {8: 127, 32: 2**31 - 1}


def multipliers(count: int) -> list[float]:
    rng = np.random.default_rng(count)
    drawn = rng.uniform(0.5, 1, count) * 2.0 ** rng.integers(-20, 5, count)
    edges = [
        0.1234,
        0.01,
        0.5,
        1.0,
        126.0,
        126.5,
        127.0,
        128.0,
        0.25,
        1 / 3,
        2.0**-30,
        2.0**-31,
        2.0**-40,
    ]
    return [*drawn.tolist(), *edges]


@pytest.mark.parametrize("first", [-32, 0])
@pytest.mark.parametrize("bits", [8, 32])
def test_search(bits: int, first: int) -> None:
    values = multipliers(120)
    k, r = scale_to_mult_shift(values, bits, "search" if first else "positive")
    wanted = [requantization.search(Fraction(m), LIMITS[bits], first) for m in values]
    assert list(zip(k.tolist(), r.tolist(), strict=True)) == wanted


def test_a_searched_multiplier_has_24_bits_and_a_shift_of_at_most_30() -> None:
    for m in multipliers(60):
        k, r = (int(v) for v in scale_to_mult_shift(m))
        assert r <= 30
        assert (k >> ((k & -k).bit_length() - 1)).bit_length() <= 24 if k else True


def test_q31_is_tflite_s() -> None:
    values = multipliers(60)
    for rule in ("q31", "literal"):
        k, r = scale_to_mult_shift(values, rule=rule)
        q, exponent = quantize_multiplier(values)
        assert k.tolist() == q.tolist()
        assert r.tolist() == (31 - exponent).tolist()
    assert [int(v) for v in scale_to_mult_shift(0.1234, rule="literal")] == [2119995857, 34]


def test_truncated_multipliers_fill_seven_bits() -> None:
    for m in multipliers(60):
        k, r = (int(v) for v in scale_to_mult_shift(m, 8, "truncate"))
        if m > 127:
            assert (k, r) == (127, 0)
            continue
        shift = next(s for s in range(63) if Fraction(m) * 2 ** (s + 1) >= 127)
        assert (k, r) == (int(Fraction(m) * 2**shift), shift)


def test_truncated_multipliers_of_32_bits_stop_at_the_largest() -> None:
    most = 2**31 - 1
    assert [int(v) for v in scale_to_mult_shift(2.0**31, 32, "truncate")] == [most, 0]
    for m in (float(most), 2.0**30 - 0.5, 0.75, 2.0**-20):
        shift = next(s for s in range(63) if Fraction(m) * 2 ** (s + 1) >= most)
        got = [int(v) for v in scale_to_mult_shift(m, 32, "truncate")]
        assert got == [int(Fraction(m) * 2**shift), shift]


def test_the_largest_that_is_searched_for() -> None:
    largest = float(np.nextafter(np.float32(2**63), np.float32(0)))
    assert [int(v) for v in scale_to_mult_shift(largest)] == [2**31 - 2**7, -32]


def test_arguments() -> None:
    with pytest.raises(ArgumentError, match=r"^bits: got 16; wanted 8 or 32"):
        scale_to_mult_shift(0.5, 16)
    with pytest.raises(ArgumentError, match=r"^bits: got 8; wanted 32: rule 'q31'"):
        scale_to_mult_shift(0.5, 8, "q31")
    with pytest.raises(ArgumentError, match=r"^rule: got 'guess'"):
        scale_to_mult_shift(0.5, rule="guess")
    for huge in (2.0**63, -1e300, 2.0**63 - 2.0**38):
        with pytest.raises(ArgumentError, match="below 2\\^63"):
            scale_to_mult_shift(huge)
