"""Integers for real multipliers, and multiplication by them, with every edge of frexp.

Accepted: quantize_multiplier and multiply_by_quantized_multiplier equal the sources' own forms (a
nudge and a truncating division, a mask and a threshold) in Python's integers; multipliers of 1 and
more, below 2^-31, that round up to 2^31; products that saturate or leave 32 bits.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError
from pyonednn_q.requantize.multiplier import (
    STEPS,
    high_product,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    real_multiplier,
)
from support.definitions import requantization

I32 = np.array([-(2**31), -(2**31) + 1, -(2**30), -3, -2, -1, 0, 1, 2, 3, 2**30, 2**31 - 1])
FORMS = {
    "two_step": requantization.two_step,
    "two_step_up": requantization.two_step_up,
    "one_step": requantization.one_step,
}


@pytest.mark.parametrize(
    ("multiplier", "q", "exponent"),
    [
        (0.5, 2**30, 0),
        (1.0, 2**30, 1),  # M >= 1: a left shift
        (0.75, 3 * 2**29, 0),
        (3.0, 3 * 2**29, 2),
        (2.0**30, 2**30, 31),
        (1 - 2.0**-31, 2**31 - 1, 0),  # the largest that keeps its exponent
        (1 - 2.0**-32, 2**30, 1),  # half away: 2^31, carried
        (1 - 2.0**-33, 2**30, 1),
        (np.nextafter(1.0, 0.0), 2**30, 1),
        (0.5 - 2.0**-34, 2**30, 0),
        (0.5 + 2.0**-32, 2**30 + 1, 0),  # a tie goes up
        (2.0**-31, 2**30, -30),
        (2.0**-32, 2**30, -31),  # the smallest that counts
        (np.nextafter(2.0**-32, 0.0), 2**30, -31),  # carried from below it
        (2.0**-32 * (1 - 2.0**-31), 0, 0),
        (2.0**-33, 0, 0),
        (5e-324, 0, 0),
        (0.0, 0, 0),
        (-0.75, -3 * 2**29, 0),  # leaky relu's slope
        (0.1234, 2119995857, -3),  # 0.9872 · 2^-3
    ],
)
def test_edges_of_quantize_multiplier(multiplier: float, q: int, exponent: int) -> None:
    got_q, got_exponent = quantize_multiplier(multiplier)
    assert (int(got_q), int(got_exponent)) == (q, exponent)
    if multiplier > 0:
        assert requantization.q31(Fraction(multiplier)) == (q, exponent)


def test_random_multipliers_equal_the_definition() -> None:
    rng = np.random.default_rng(0)
    m = rng.uniform(0.5, 1, 4000) * 2.0 ** rng.integers(-40, 30, 4000)
    # Beside the ties of the rounding to 31 bits.
    m[::2] = np.ldexp((rng.integers(2**30, 2**31, 2000) * 2 + 1) / 2.0**32, -7)
    q, exponent = quantize_multiplier(m)
    wanted = [requantization.q31(Fraction(value)) for value in m]
    assert list(zip(q.tolist(), exponent.tolist(), strict=True)) == wanted


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_multipliers_must_be_finite(bad: float) -> None:
    with pytest.raises(ArgumentError, match=r"^multiplier: "):
        quantize_multiplier([0.5, bad])


@pytest.mark.parametrize("bad", [0.0, -0.5, float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["src_scale", "wei_scale", "dst_scale"])
def test_scales_must_be_positive(name: str, bad: float) -> None:
    scales: Any = {"src_scale": 0.5, "wei_scale": 0.5, "dst_scale": 0.5, name: [0.5, bad]}
    with pytest.raises(ArgumentError, match=rf"^{name}: got "):
        real_multiplier(**scales)


def test_high_product_at_every_edge() -> None:
    a, b = np.meshgrid(I32, I32)
    wanted = [
        requantization.high_product(int(x), int(y)) for x, y in zip(a.flat, b.flat, strict=True)
    ]
    assert high_product(a, b).ravel().tolist() == wanted
    assert int(high_product(-(2**31), -(2**31))) == 2**31 - 1


def test_high_product_of_random_values_and_ties() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(-(2**31), 2**31, (2, 20000))
    b[::2] = 2**30  # a · 2^30 / 2^31: every odd a is a tie
    wanted = [requantization.high_product(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    assert high_product(a, b).tolist() == wanted


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("exponent", [*range(-31, 0), 0])
def test_right_shifts_at_every_edge(steps: str, exponent: int) -> None:
    for q in (2**30, 2**30 + 1, 2**31 - 1, -(2**30), 0):
        got = multiply_by_quantized_multiplier(I32, q, exponent, steps)
        assert got.tolist() == [FORMS[steps](int(x), q, exponent) for x in I32]


@pytest.mark.parametrize("steps", STEPS)
def test_random_products_equal_the_sources_forms(steps: str) -> None:
    rng = np.random.default_rng(2)
    x = rng.integers(-(2**31), 2**31, 20000) >> rng.integers(0, 28, 20000)
    q, exponent = rng.integers(2**30, 2**31, 20000), rng.integers(-31, 1, 20000)
    q[::3] = 2**30  # ties of both roundings
    got = multiply_by_quantized_multiplier(x, q, exponent, steps)
    rows = zip(x, q, exponent, strict=True)
    assert got.tolist() == [FORMS[steps](int(a), int(b), int(e)) for a, b, e in rows]


@pytest.mark.parametrize("steps", STEPS)
def test_left_shifts(steps: str) -> None:
    x = np.array([-5, -1, 0, 1, 7])
    for exponent in (1, 2, 20):
        got = multiply_by_quantized_multiplier(x, 3 * 2**29, exponent, steps)
        assert got.tolist() == [FORMS[steps](int(v), 3 * 2**29, exponent) for v in x]


@pytest.mark.parametrize("steps", ["two_step", "two_step_up"])
def test_left_shifts_out_of_32_bits_are_refused(steps: str) -> None:
    for x in (2**30 - 1, -(2**30)):
        multiply_by_quantized_multiplier(x, 2**30, 1, steps)
    for x in (2**30, -(2**30) - 1):
        with pytest.raises(ArgumentError, match=r"^x: .*out of 32 bits"):
            multiply_by_quantized_multiplier(x, 2**30, 1, steps)


def test_an_unknown_number_of_steps_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"^steps: got 'three'; wanted one of two_step"):
        multiply_by_quantized_multiplier(1, 2**30, 0, "three")


def test_the_three_precisions_of_a_multiplier() -> None:
    rng = np.random.default_rng(4)
    src, wei, dst = rng.uniform(0.001, 0.2, (3, 3000)).astype(np.float32)
    differ = set()
    for name, form in (
        ("double", requantization.double),
        ("single_product", requantization.single_product),
        ("single", requantization.single),
    ):
        got = real_multiplier(src, wei, dst, name)
        exact = [[Fraction(float(v)) for v in scale] for scale in (src, wei, dst)]
        wanted = [float(form(*scales)) for scales in zip(*exact, strict=True)]
        assert got.tolist() == wanted
        differ.add(tuple(wanted))
    assert len(differ) == 3
