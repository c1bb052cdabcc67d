"""The quantized operators on single codes, in rational arithmetic; x is a code less its zero point.

Written from the definitions of the frameworks, not from the package: each rounding is spelt out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from pyonednn_q.qparams import QParams
from support.definitions.requantization import (
    bounded,
    f32,
    f64,
    half_away,
    q31,
    search,
    two_step,
    two_step_up,
)

Array = np.ndarray[Any, Any]
LIMITS = {"s8": (-128, 127), "u8": (0, 255)}


def drawn(
    rng: np.random.Generator, dtype: str, count: int, *, symmetric: bool = False
) -> list[QParams]:
    """Parameters with float32 scales; one time in three those are powers of two."""
    lo, hi = LIMITS[dtype]
    dyadic = rng.integers(3) == 0
    scales = 2.0 ** rng.integers(-5, -1, count) if dyadic else rng.uniform(0.01, 0.2, count)
    points = np.zeros(count, int) if symmetric else rng.integers(lo, hi + 1, count)
    pairs = zip(scales.astype(np.float32), points, strict=True)
    return [QParams(float(scale), int(point), dtype) for scale, point in pairs]


def windows(src: Array, kernel: int, stride: int, padding: int) -> Iterator[list[int]]:
    """The codes that lie in each window, per output place, row by row."""
    n, c, h, w = src.shape
    for image, channel in np.ndindex(n, c):
        for top in range(-padding, h + padding - kernel + 1, stride):
            for left in range(-padding, w + padding - kernel + 1, stride):
                rows = slice(max(top, 0), top + kernel)
                yield src[image, channel, rows, max(left, 0) : left + kernel].ravel().tolist()


def scale(q: QParams) -> Fraction:
    return Fraction(float(q.scale))


def code(whole: int, q: QParams) -> int:
    """The code for an integer without zero point."""
    return bounded(whole + int(q.zero_point), LIMITS[q.dtype])


def half_up(value: Fraction) -> int:
    return (value + Fraction(1, 2)).__floor__()


def by_d2(x: int, multiplier: Fraction) -> int:
    return two_step(x, *q31(f64(multiplier)))


def searched(x: int, multiplier: Fraction) -> int:
    k, n = search(f64(multiplier), 127, first=0)
    return half_up(x * k / Fraction(2) ** n)


def real(x: int, q: QParams) -> Fraction:
    return f32(x * scale(q))


def through_floats(value: Fraction, q: QParams, dialect: str) -> int:
    """Quantize a float32 value by a dialect's rule."""
    if dialect == "tpu_mlir":
        return code(half_away(f32(value * f32(1 / scale(q)))), q)
    quotient = f32(value / scale(q))
    return code(half_away(quotient) if dialect == "tflite" else round(quotient), q)


def octave(value: Fraction) -> int:
    """The power of two at or below a value."""
    power = 0
    while Fraction(2) ** power > value:
        power -= 1
    while Fraction(2) ** (power + 1) <= value:
        power += 1
    return power


def one_shift(
    bits: int, rounding: Callable[[Fraction], int]
) -> Callable[[int, int, QParams, QParams, QParams], int]:
    """Two multipliers of one power of two, whose larger has `bits` bits after its leading one."""

    def add(a: int, b: int, a_q: QParams, b_q: QParams, q: QParams) -> int:
        ratios = [f32(scale(each) / scale(q)) for each in (a_q, b_q)]
        shift = Fraction(2) ** (bits - octave(max(ratios)))
        k = [round(ratio * shift) for ratio in ratios]
        return code(rounding((a * k[0] + b * k[1]) / shift), q)

    return add


def add_tflite(a: int, b: int, a_q: QParams, b_q: QParams, q: QParams) -> int:
    twice = 2 * max(scale(a_q), scale(b_q))
    parts = (by_d2(x << 20, scale(each) / twice) for x, each in ((a, a_q), (b, b_q)))
    return code(by_d2(sum(parts), twice / (2**20 * scale(q))), q)


def add_onnxruntime(a: int, b: int, a_q: QParams, b_q: QParams, q: QParams) -> int:
    left, right = (f32(scale(each) / scale(q)) for each in (a_q, b_q))
    points = [int(each.zero_point) for each in (a_q, b_q, q)]
    constant = f32(points[2] - f32(left * points[0] + f32(right * points[1])))
    inner = f32((b + points[1]) * right + constant)
    return bounded(round(f32((a + points[0]) * left + inner)), LIMITS[q.dtype])


def add_tpu_mlir(a: int, b: int, a_q: QParams, b_q: QParams, q: QParams) -> int:
    if any(int(each.zero_point) for each in (a_q, b_q, q)):
        return through_floats(f32(real(a, a_q) + real(b, b_q)), q, "tpu_mlir")
    return code(searched(a, scale(a_q) / scale(q)) + searched(b, scale(b_q) / scale(q)), q)


def add_cv18xx(a: int, b: int, a_q: QParams, b_q: QParams, q: QParams) -> int:
    ratios = [f64(scale(each) / scale(q)) for each in (a_q, b_q)]
    shift = Fraction(1)
    while max(ratios) * shift * 2 < 127:
        shift *= 2
    k = [int(ratio * shift) for ratio in ratios]
    return code(half_up((a * k[0] + b * k[1]) / shift), q)


def add_stablehlo(a: int, b: int, a_q: QParams, b_q: QParams, q: QParams) -> int:
    scaled = f32(f32(real(a, a_q) + real(b, b_q)) / scale(q))
    return bounded(round(f32(scaled + int(q.zero_point))), LIMITS[q.dtype])


ADD = {
    "tflite": add_tflite,
    "xnnpack": one_shift(20, half_up),
    "caffe2": one_shift(21, half_away),
    "onnxruntime": add_onnxruntime,
    "tpu_mlir": add_tpu_mlir,
    "tpu_mlir_cv18xx": add_cv18xx,
    "stablehlo": add_stablehlo,
}


def mean(
    window: list[int], outside: int, count: int, src_q: QParams, q: QParams, dialect: str
) -> int:
    """The mean of the codes of a window over `count` places, `outside` of which are padding."""
    point, total = int(src_q.zero_point), sum(window)
    if dialect == "tflite":
        return bounded(half_away(Fraction(total + outside * point, count)), LIMITS[q.dtype])
    x = total - len(window) * point
    if dialect == "snps_caffe":
        if (scale(src_q), point) == (scale(q), int(q.zero_point)):
            return mean(window, outside, count, src_q, q, "tflite")
        return code(half_away(Fraction(by_d2(x, scale(src_q) / scale(q)), count)), q)
    if dialect == "tpu_mlir" and point == int(q.zero_point) == 0:
        return code(searched(x, scale(src_q) / (scale(q) * count)), q)
    if dialect == "tpu_mlir":
        factor, ratio = f64(scale(src_q) / f64(scale(q) * count)), f64(scale(src_q) / scale(q))
        shift = f64(int(q.zero_point) - f64(ratio * point))
        value = f64(f64((x + count * point) * factor) + shift)
        return bounded(half_away(value), LIMITS[q.dtype])
    product = f32(f32(Fraction(x)) * f32(scale(src_q) / f32(scale(q) * count)))
    return code(round(product) if dialect == "onnxruntime" else half_away(product), q)


def mean_of_image(
    codes: list[int], src_q: QParams, q: QParams, dialect: str, *, is_last: bool
) -> int:
    """LiteRT's MEAN over an image's codes of a channel, one of the last up to 15 or before them."""
    n, point = len(codes), int(src_q.zero_point)
    if dialect == "xnnpack":
        factor = f32(f32(scale(src_q) / scale(q)) * f32(Fraction(1, n)))
        shift = f32(int(q.zero_point) - f32(n * point * factor))
        return bounded(round(f32(f32(sum(codes) * factor) + shift)), LIMITS[q.dtype])
    factor = f32(scale(src_q) / f32(n * scale(q)))
    scaled = (two_step if is_last else two_step_up)(sum(codes), *q31(factor))
    share = f32(f32(point * scale(src_q)) / scale(q))
    nearest = int(f32(share + Fraction(1 if share > 0 else -1, 2)))
    return code(scaled - nearest, q)


def leaky_relu(x: int, alpha: Fraction, src_q: QParams, q: QParams, dialect: str) -> int:
    ratio = scale(src_q) / scale(q)
    if dialect == "tflite":
        if x >= 0:
            return code(by_d2(x, ratio), q)
        return code(by_d2(x, f64(scale(src_q) * alpha) / scale(q)), q)
    if dialect == "xnnpack":
        factor = f32(ratio) if x >= 0 else f32(f32(ratio) * alpha)
        return code(half_up(Fraction(x * round(256 * factor), 256)), q)
    points = (int(src_q.zero_point), int(q.zero_point))
    if dialect == "tpu_mlir" and ratio == 1 and points == (0, 0):
        return code(x if x >= 0 else searched(x, alpha), q)
    value = real(x, src_q)
    return through_floats(value if x >= 0 else f32(value * alpha), q, dialect)


def prelu_tpu_mlir(x: int, slope: Fraction, largest: Fraction, q: QParams) -> int:
    """The slope in as many bits as bring the largest to seven, the rest dropped."""
    shift = Fraction(1)
    while largest * shift * 2 < 127:
        shift *= 2
    return code(x if x >= 0 else half_up(x * int(slope * shift) / shift), q)
