"""Requantization one accumulator at a time, in Python's integers and fractions.

Written from the descriptions of the runtimes, in the forms their sources have where those differ
from ours: a nudge and a truncating division, a mask and a threshold. No floating point and no NumPy
arithmetic is used, so nothing is shared with what is tested.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

Integers: TypeAlias = tuple[int, int]
Rule: TypeAlias = Callable[[int, Fraction, Fraction, Fraction, int, Integers], int]


def rounded(value: Fraction, bits: int) -> Fraction:
    """The nearest value with that many significant bits, ties to even; no subnormals here."""
    if value == 0:
        return value
    exponent = abs(value.numerator).bit_length() - value.denominator.bit_length()
    if abs(value) < Fraction(2) ** exponent:
        exponent -= 1
    step = Fraction(2) ** (exponent - bits + 1)
    return round(value / step) * step


def f32(value: Fraction) -> Fraction:
    return rounded(value, 24)


def f64(value: Fraction) -> Fraction:
    return rounded(value, 53)


def half_away(value: Fraction) -> int:
    size = int(abs(value) + Fraction(1, 2))
    return -size if value < 0 else size


def frexp(value: Fraction) -> tuple[Fraction, int]:
    """A fraction from 1/2 to below 1 and a power of two."""
    exponent = 0
    while value >= 1:
        value, exponent = value / 2, exponent + 1
    while value < Fraction(1, 2):
        value, exponent = value * 2, exponent - 1
    return value, exponent


@functools.cache
def q31(multiplier: Fraction) -> tuple[int, int]:
    fraction, exponent = frexp(multiplier)
    q = half_away(fraction * 2**31)
    if q == 2**31:
        q, exponent = q // 2, exponent + 1
    return (0, 0) if exponent < -31 else (q, exponent)


def high_product(a: int, b: int) -> int:
    """gemmlowp's: a nudge by sign, then a division that truncates."""
    if a == b == -(2**31):
        return 2**31 - 1
    nudged = a * b + (2**30 if a * b >= 0 else 1 - 2**30)
    size = abs(nudged) >> 31
    return -size if nudged < 0 else size


def divide_by_power(x: int, exponent: int) -> int:
    """gemmlowp's: a mask and a threshold that depends on the sign."""
    mask = (1 << exponent) - 1
    return (x >> exponent) + int((x & mask) > (mask >> 1) + int(x < 0))


def two_step(acc: int, q: int, exponent: int) -> int:
    return divide_by_power(high_product(acc << max(exponent, 0), q), max(-exponent, 0))


def two_step_up(acc: int, q: int, exponent: int) -> int:
    high, right = high_product(acc << max(exponent, 0), q), max(-exponent, 0)
    return (high + ((1 << right) >> 1)) >> right


def one_step(acc: int, q: int, exponent: int) -> int:
    total = 31 - exponent
    return (acc * q + (1 << (total - 1))) >> total


def tosa(acc: int, q: int, exponent: int, *, twice: bool) -> int:
    """The specification's apply_scale_32: one shift, and a second nudge for DOUBLE_ROUND."""
    shift = 31 - exponent
    nudge = 1 << (shift - 1)
    if twice and shift > 31:
        nudge += 2**30 if acc >= 0 else -(2**30)
    return (acc * q + nudge) >> shift


def bounded(value: int, limits: Integers) -> int:
    return max(limits[0], min(limits[1], value))


@functools.cache
def double(src: Fraction, wei: Fraction, dst: Fraction) -> Fraction:
    return f64(f64(src * wei) / dst)


@functools.cache
def single_product(src: Fraction, wei: Fraction, dst: Fraction) -> Fraction:
    return f64(f32(src * wei) / dst)


@functools.cache
def single(src: Fraction, wei: Fraction, dst: Fraction) -> Fraction:
    return f32(f32(src * wei) / dst)


@functools.cache
def single_reciprocal(src: Fraction, wei: Fraction, dst: Fraction) -> Fraction:
    return f32(f32(src * wei) * f32(1 / f32(dst)))


Precision: TypeAlias = Callable[[Fraction, Fraction, Fraction], Fraction]


def fixed(precision: Precision, steps: Callable[[int, int, int], int]) -> Rule:
    def rule(acc: int, src: Fraction, wei: Fraction, dst: Fraction, zp: int, to: Integers) -> int:
        return bounded(steps(acc, *q31(precision(src, wei, dst))) + zp, to)

    return rule


def two_floats(precision: Precision, narrow: Callable[[Fraction], Fraction]) -> Rule:
    """Caffe's blobs are float32: what is read from one, and what is stored between two loops."""

    def rule(acc: int, src: Fraction, wei: Fraction, dst: Fraction, zp: int, to: Integers) -> int:
        fraction, exponent = frexp(precision(src, wei, dst))
        first = f32(Fraction(half_away(narrow(f32(Fraction(acc)) * fraction))))
        return bounded(half_away(first / 2**-exponent) + zp, to)

    return rule


def rint_of_single(precision: Precision) -> Rule:
    def rule(acc: int, src: Fraction, wei: Fraction, dst: Fraction, zp: int, to: Integers) -> int:
        value = f32(f32(Fraction(acc)) * precision(src, wei, dst))
        inside = max(Fraction(to[0] - zp), min(Fraction(to[1] - zp), value))
        return round(inside) + zp

    return rule


def rint_of_double(
    acc: int, src: Fraction, wei: Fraction, dst: Fraction, zp: int, to: Integers
) -> int:
    return bounded(round(f64(f32(Fraction(acc)) * double(src, wei, dst))) + zp, to)


def onednn(order: str) -> Rule:
    def rule(acc: int, src: Fraction, wei: Fraction, dst: Fraction, zp: int, to: Integers) -> int:
        value = f32(Fraction(acc))
        if order == "folded":
            value = f32(value * f32(f64(src * wei)))
        elif order == "one":
            value = f32(value * f32(double(src, wei, dst)))
        elif order == "comb":
            value = f32(value * f32(src * wei))
        else:
            value = f32(f32(value * src) * wei)
        if order == "ref":
            value = f32(value / dst)
        elif order != "one":
            value = f32(value * f32(1 / f32(dst)))
        return round(max(Fraction(to[0]), min(Fraction(to[1]), f32(value + zp))))

    return rule


@functools.cache
def search(multiplier: Fraction, limit: int, first: int = -32) -> tuple[int, int]:
    """TPU-MLIR's: the shift with the smallest error in float32, the first of equals."""
    m, best, shift = f32(multiplier), f32(Fraction(2) ** 127), 0
    for n in range(first, 31):
        k = half_away(m * Fraction(2) ** n)
        error = f32(f64(abs(k / Fraction(2) ** n - m)))
        if error < best and abs(k) < limit:
            best, shift = error, n
    return half_away(m * Fraction(2) ** shift), shift


def tpu_mlir(limit: int) -> Rule:
    def rule(acc: int, src: Fraction, wei: Fraction, dst: Fraction, zp: int, to: Integers) -> int:
        k, n = search(double(src, wei, dst), limit)
        scaled = acc * k / Fraction(2) ** n
        return bounded((scaled + Fraction(1, 2)).__floor__() + zp, to)

    return rule


def tpu_mlir_literal(
    acc: int, src: Fraction, wei: Fraction, dst: Fraction, zp: int, to: Integers
) -> int:
    q, exponent = q31(double(src, wei, dst))
    return bounded((acc * q >> (31 - exponent)) + zp, to)


@functools.cache
def ev_constants(multiplier: Fraction) -> tuple[int, int]:
    high = Fraction(65536 * 100 - 51, 65536 * 200)
    value, shift = multiplier, 16
    while value >= high:
        value, shift = value / 2, shift - 1
    while value < high / 2:
        value, shift = value * 2, shift + 1
    shift = min(shift, 63)
    k = half_away(multiplier * 2**shift)
    while k % 2 == 0 and shift > 1:
        k, shift = k // 2, shift - 1
    return k, shift


def ev(acc: int, src: Fraction, wei: Fraction, dst: Fraction, zp: int, to: Integers) -> int:
    k, shift = ev_constants(double(src, wei, dst))
    product = acc * k
    return bounded(
        ((product + ((product >> shift) & 1) + (1 << (shift - 1)) - 1) >> shift) + zp, to
    )


def exact(acc: int, src: Fraction, wei: Fraction, dst: Fraction, zp: int, to: Integers) -> int:
    return bounded(round(acc * src * wei / dst) + zp, to)


def exact_away(acc: int, src: Fraction, wei: Fraction, dst: Fraction, zp: int, to: Integers) -> int:
    return bounded(half_away(acc * src * wei / dst) + zp, to)


RULES: dict[str, Rule] = {
    "exact": exact,
    "exact_half_away": exact_away,
    "tflite_2step": fixed(double, two_step),
    "tflite_2step_single": fixed(single_product, two_step),
    "tflite_2up": fixed(double, two_step_up),
    "tflite_2up_single": fixed(single_product, two_step_up),
    "tflite_1step": fixed(double, one_step),
    "tflite_1step_single": fixed(single_product, one_step),
    "caffe2": fixed(single, two_step),
    "caffe2_deconv": two_floats(single, f32),
    "snps_inner_product": two_floats(double, f64),
    "snps_inner_product_onnx": rint_of_double,
    "snps_ev": ev,
    "onnxruntime": rint_of_single(single),
    "torch_qnnpack": rint_of_single(single_reciprocal),
    "onednn": onednn("folded"),
    "onednn_one_scale": onednn("one"),
    "onednn_separate": onednn("sep"),
    "onednn_combined": onednn("comb"),
    "onednn_reference": onednn("ref"),
    "tpu_mlir": tpu_mlir(2**31 - 1),
    "tpu_mlir_8bit": tpu_mlir(127),
    "tpu_mlir_qdm": fixed(double, two_step),
    "tpu_mlir_literal": tpu_mlir_literal,
    "tosa_single_round": fixed(double, functools.partial(tosa, twice=False)),
    "tosa_double_round": fixed(double, functools.partial(tosa, twice=True)),
}
