"""What two notes on quantised operators say wrongly, each with a counter-example that is computed.

The notes: on quantised operators in Caffe (its table of TFLite, ONNX and Caffe2), and on the theory
behind TPU-MLIR. Where a note and the framework's kernels part, the kernels are followed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from pyonednn_q.predict.dialects import requantize
from pyonednn_q.predict.dialects.multiplier import (
    high_product,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    scale_to_mult_shift,
)
from pyonednn_q.predict.dialects.quantizers import quantize
from pyonednn_q.predict.dialects.rounding import shift_round


@dataclass(frozen=True)
class Example:
    """One computation both ways; `printed` and `right` must differ."""

    what: str
    printed: object
    right: object


@dataclass(frozen=True)
class Correction:
    """What a note says, what is so instead, and an example."""

    says: str
    instead: str
    example: Callable[[], Example]


# --- the note on quantised operators ------------------------------------------------------------


def _rounds_up_to_two_to_31() -> Example:
    printed = round(math.frexp(1 - 2.0**-33)[0] * 2**31)
    q, e = (int(v) for v in quantize_multiplier(1 - 2.0**-33))
    return Example("M = 1 − 2^-33", f"{printed}, no int32", f"{q} with exponent {e}")


def _shift_of_d2() -> Example:
    q, e = quantize_multiplier(0.1234)
    high = int(high_product(1000, q))
    right = int(multiply_by_quantized_multiplier(1000, q, e, "two_step"))
    printed = int(Fraction(high) / Fraction(2) ** int(e))
    return Example(f"acc = 1000, M = 0.1234: frexp's exponent is {int(e)}", printed, right)


def _shift_of_d1() -> Example:
    q, e = (int(v) for v in quantize_multiplier(0.1234))
    total = 31 - e - 1
    printed = (1000 * q + (1 << (total - 1))) >> total
    return Example(
        "acc = 1000, M = 0.1234",
        printed,
        int(multiply_by_quantized_multiplier(1000, q, e, "one_step")),
    )


def _width_of_d1() -> Example:
    q, e = (int(v) for v in quantize_multiplier(0.1234))
    wrapped = (1000 * q + 2**31) % 2**32 - 2**31
    printed = (wrapped + (1 << (30 - e))) >> (31 - e)
    return Example(
        "acc = 1000, M = 0.1234",
        printed,
        int(multiply_by_quantized_multiplier(1000, q, e, "one_step")),
    )


def _first_difference(one: str, other: str, low: float, high: float) -> Example:
    """Return the first drawn triple and accumulator that tells two dialects apart."""
    rng = np.random.default_rng(0)
    for _ in range(3000):
        src, dst = (float(np.float32(round(v, 4))) for v in rng.uniform(0.01, 0.1, 2))
        wei = float(np.float32(2.0 ** rng.uniform(low, high) * dst / src))
        acc = np.rint((rng.integers(-120, 120, 4000) + 0.5) * dst / (src * wei)).astype(np.int32)
        scales: dict[str, Any] = {"src_scale": src, "wei_scale": wei, "dst_scale": dst}
        a, b = (requantize(acc, name, **scales) for name in (one, other))
        if (a != b).any():
            at = int(np.argmax(a != b))
            what = f"acc = {acc[at]}, scales {src:.9g} · {wei:.9g} / {dst:.9g}"
            return Example(what, int(a[at]), int(b[at]))
    message = f"no difference between {one} and {other} was found"
    raise LookupError(message)


def _f2_divides_in_double() -> Example:
    return _first_difference("caffe2", "tflite_2step_single", -14, -8)


def _caffe2_is_not_f2() -> Example:
    return _first_difference("tflite_2step_single", "caffe2", -14, -8)


def _uint8_is_f2() -> Example:
    return _first_difference("tflite_2step", "tflite_2step_single", -14, -8)


def _today_is_two_up() -> Example:
    return _first_difference("tflite_1step", "tflite_2up", -4, -1)


def _scales_are_float32() -> Example:
    q = [int(quantize_multiplier(scale)[0]) for scale in (0.1, float(np.float32(0.1)))]
    return Example("s = 0.1, the multiplier of 0.1", q[0], q[1])


def _onnx_inner_product() -> Example:
    scales: dict[str, Any] = {"src_scale": 0.5, "wei_scale": 0.5, "dst_scale": 1.0}
    acc = np.array([2], np.int32)
    printed, right = (
        requantize(acc, name, **scales)
        for name in ("snps_inner_product", "snps_inner_product_onnx")
    )
    return Example("acc = 2, M = 1/4", int(printed[0]), int(right[0]))


def _tflite_quantize() -> Example:
    x = np.array([2.5], np.float32)
    printed, right = (
        quantize(x, 1.0, 0, "s8", rule=rule) for rule in ("tflite", "tflite_optimised")
    )
    return Example("x = 2.5, s = 1, in TFLite's optimised kernel", int(printed[0]), int(right[0]))


def _relu_is_integer() -> Example:
    rng = np.random.default_rng(0)
    while True:
        src, dst = (np.float32(v) for v in rng.uniform(0.01, 0.1, 2))
        q, e = quantize_multiplier(float(src) / float(dst))
        x = np.arange(128)
        integer = np.minimum(multiply_by_quantized_multiplier(x, q, e, "two_step"), 127)
        floats = quantize((x * src).astype(np.float32), dst, 0, "s8", rule="tflite")
        if (integer != floats).any() and src < dst:
            at = int(np.argmax(integer != floats))
            return Example(
                f"q = {at}, scales {src:.9g} to {dst:.9g}", int(floats[at]), int(integer[at])
            )


def _signed_is_12_bits() -> Example:
    return Example("1000 under Saturate mode Signed", min(1000, 127), min(1000, 2**11 - 1))


OPERATORS_NOTE = (
    Correction(
        "`round(frexp(M) * (1 << 31))` is the multiplier",
        "`1 << 31` leaves an int, and the result can be 2^31: then 2^30, the exponent one up",
        _rounds_up_to_two_to_31,
    ),
    Correction(
        "D2 divides by 2^shift, with the shift that frexp returned",
        "the sign is the other way round: divide by 2^-e for e < 0, multiply first for e > 0",
        _shift_of_d2,
    ),
    Correction(
        "D1 shifts by 31 + shift − 1, and `+` binds as in C",
        "the shift is 31 − e; only the rounding constant has the −1",
        _shift_of_d1,
    ),
    Correction(
        "D1's product is `<int> * <int>`",
        "it needs 64 bits",
        _width_of_d1,
    ),
    Correction(
        "F2 uses float to calculate the multiplier",
        "only the product of the two scales is float32; the division by the third is double",
        _f2_divides_in_double,
    ),
    Correction(
        "Caffe2 computes as F2",
        "the steps are the same, the multiplier has 24 bits instead of 31",
        _caffe2_is_not_f2,
    ),
    Correction(
        "TFLite per tensor: D2 for group 1, F2 for depthwise and pointwise",
        "every uint8 kernel is F2 (FU2 in today's optimised ones); D2 is the int8 reference kernel",
        _uint8_is_f2,
    ),
    Correction(
        "TFLite per channel: D1 for group 1 (as in ruy)",
        "so in TensorFlow 2.5, per tensor too; from 2.14 on it is U2, two roundings half up",
        _today_is_two_up,
    ),
    Correction(
        "TFLite's scales are double",
        "the file holds float32; multipliers are formed from those in double",
        _scales_are_float32,
    ),
    Correction(
        "InnerProduct with ONNX scales computes as TFLite (t)",
        "the code rounds acc · M once, in double, halves to even",
        _onnx_inner_product,
    ),
    Correction(
        "TFLite rounds halves away from zero when it quantises",
        "its reference kernel does; optimised kernels and XNNPACK multiply by 1/s, halves to even",
        _tflite_quantize,
    ),
    Correction(
        "ReLU dequantises, computes and quantises (~)",
        "TFLite multiplies integers, with D2's two roundings",
        _relu_is_integer,
    ),
    Correction(
        "Saturate modes Signed and Unsigned",
        "they are 12 bits wide: [−2048, 2047] and [0, 4095]; the 8-bit ones say so in their names",
        _signed_is_12_bits,
    ),
)


# --- the note on TPU-MLIR -----------------------------------------------------------------------


def _unsigned_without_negatives() -> Example:
    low, high = 0.0, 2.55
    scale = (high - low) / 255
    return Example("range [0, 2.55]", f"int8, Z = {round(-128 - low / scale)}", "uint8, Z = 0")


def _zero_point_is_clamped() -> Example:
    low, high = 1.0, 3.0
    scale = (high - low) / 255
    printed = f"Z = {-math.floor(low / scale + 0.5)}, S = {scale:.6f}"
    return Example("range [1, 3], uint8", printed, f"Z = 0, S = {high / 255:.6f}")


def _threshold_over_127() -> Example:
    quantised = [min(127, math.floor(2.5 / (2.5 / n) + 0.5)) * 2.5 / n for n in (128, 127)]
    return Example("x = threshold = 2.5, dequantised again", quantised[0], quantised[1])


def _half_open_mantissa() -> Example:
    q, e = quantize_multiplier(0.5)
    return Example(
        "M = 1/2 as M_0 = 1, n = 1", f"{2**31} / 2^32, no int32", f"{int(q)} / 2^{31 - int(e)}"
    )


def _shift_is_rounded() -> Example:
    scales: dict[str, Any] = {"src_scale": 1.0, "wei_scale": 0.1234, "dst_scale": 1.0}
    acc = np.array([7], np.int32)
    printed, right = (requantize(acc, name, **scales) for name in ("tpu_mlir_literal", "tpu_mlir"))
    return Example("acc = 7, M = 0.1234: 0.8638", int(printed[0]), int(right[0]))


def _searched_in_float32() -> Example:
    found = [
        tuple(int(v) for v in scale_to_mult_shift(0.01, rule=rule))
        for rule in ("literal", "search")
    ]
    printed, right = (f"{k} / 2^{r}" for k, r in found)
    return Example("M = 0.01", printed, right)


def _brackets() -> Example:
    k, r, q, z = 105, 8, 40, -20
    return Example(
        "M = 105, r = 8, q = 40, Z = −20",
        (k >> r) * (q - z),
        int(shift_round(k * (q - z), r, "half_up")),
    )


def _add_shifts_twice() -> Example:
    (ka, ra), (kb, rb) = (77, 7), (90, 8)
    for a in range(1, 128):
        b = 127 - a
        once = int(shift_round((a * ka << (rb - ra)) + b * kb, rb, "half_up"))
        twice = int(shift_round(a * ka, ra, "half_up") + shift_round(b * kb, rb, "half_up"))
        if once != twice:
            return Example(f"{a} · {ka}/2^{ra} + {b} · {kb}/2^{rb}", once, twice)
    message = "these multipliers do not tell the two apart"
    raise LookupError(message)


def _average_pool_sign() -> Example:
    total, count, ratio, zx, zy = 4 * 60, 4, 0.5, 20, -10
    printed, right = (
        math.floor(total * ratio / count + sign * (zy - ratio * zx) + 0.5) for sign in (-1, 1)
    )
    return Example("mean 60, S_x/S_y = 1/2, Z_x = 20, Z_y = −10", printed, right)


def _leaky_relu_s_branch() -> Example:
    q, zx, alpha = 5, 20, 0.25
    return Example("q = 5, Z = 20, α = 1/4, equal scales", q, round(zx + alpha * (q - zx)))


def _terms() -> Example:
    k = 4
    return Example(
        "a mean of k = 4 ones", sum(1 for _ in range(k + 1)) / k, sum(1 for _ in range(k)) / k
    )


TPU_NOTE = (
    Correction(
        "asymmetric activations are INT8",
        "uint8 when no value is negative",
        _unsigned_without_negatives,
    ),
    Correction(
        "S = (max − min)/(qmax − qmin), Z = round(qmin − min/S), always",
        "a Z outside the type is clamped, and S is found again from the other end",
        _zero_point_is_clamped,
    ),
    Correction(
        "S = threshold/128 for signed activations",
        "threshold/127 today: with 128 the threshold itself saturates",
        _threshold_over_127,
    ),
    Correction("M_0 lies in [0.5, 1]", "in [0.5, 1)", _half_open_mantissa),
    Correction(
        "`>>` after the multiplication",
        "the shift rounds half up; without it every result is biased by nearly −1/2",
        _shift_is_rounded,
    ),
    Correction(
        "the 32-bit multiplier is round(M_0 · 2^31)",
        "convolutions search k / 2^r in float32: 24 significant bits, r at most 30",
        _searched_in_float32,
    ),
    Correction(
        "M >> rshift (q − Z)",
        "(M · (q − Z)) >> rshift",
        _brackets,
    ),
    Correction(
        "Add shifts the sum of the products once",
        "BM168x shifts each product, then adds (CV18xx does as printed)",
        _add_shifts_twice,
    ),
    Correction(
        "AveragePool subtracts (Z_y − S_x/S_y · Z_x)",
        "it adds it",
        _average_pool_sign,
    ),
    Correction(
        "LeakyReLU and PReLU keep q when q >= 0",
        "when q >= Z_x; the same only for Z_x = 0",
        _leaky_relu_s_branch,
    ),
    Correction("a mean is Σ from 0 to k, over k", "from 0 to k − 1", _terms),
)
