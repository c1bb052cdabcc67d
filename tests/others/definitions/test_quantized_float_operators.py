"""Bias add, concat, ReLU, bilinear resizing, sigmoid, softmax and power, through floats.

Accepted: in every dialect the code nearest to the real result in float64, within float32's error of
a tie either neighbour; ReLU in TFLite's integers equals its definition in rational arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pyonednn_q import emulate as quantized
from pyonednn_q.emulate.catalogue import ARITHMETIC
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.qparams import QParams
from support.definitions import operators

FLOATS = ("onnxruntime", "caffe2", "tpu_mlir")
KEEPS_PARAMETERS = ("tflite", "tflite_optimised", "xnnpack")  # when it resizes
NEAR = 1e-3  # of a code: above what float32 can be off, for all results here
Array = np.ndarray[Any, Any]


def stated(operator: str) -> list[str]:
    """The dialects that run here; oneDNN's has its primitives: tests/native."""
    return [dialect for dialect in ARITHMETIC[operator] if dialect != "onednn"]


def draw(seed: int) -> tuple[list[QParams], Array, Array]:
    rng = np.random.default_rng(seed)
    x, y = (rng.integers(-128, 128, (2, 5, 6, 7)).astype(np.int8) for _ in range(2))
    return operators.drawn(rng, "s8", 3), x, y


def check(got: Array, real: Array, q: QParams) -> None:
    """Every code is the nearest to its real value, either one at a tie."""
    wanted = np.clip(real / q.scale + q.zero_point, -128, 127)
    assert np.abs(got - wanted).max() <= 0.5 + NEAR


@pytest.mark.parametrize("dialect", stated("bias_add"))
@pytest.mark.parametrize("seed", range(6))
def test_bias_add(seed: int, dialect: str) -> None:
    (src_q, bias_q, dst_q), x, y = draw(seed)
    bias = y[0, :, 0, 0]
    got = quantized.bias_add(x, bias, src_q=src_q, bias_q=bias_q, dst_q=dst_q, dialect=dialect)
    real = src_q.dequantize(x) + bias_q.dequantize(bias)[:, np.newaxis, np.newaxis]
    check(got, real, dst_q)


@pytest.mark.parametrize("dialect", FLOATS)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat(axis: int, dialect: str) -> None:
    (a_q, b_q, dst_q), x, y = draw(3)
    got = quantized.concat([x, y], srcs_q=[a_q, b_q], dst_q=dst_q, axis=axis, dialect=dialect)
    check(got, np.concatenate([a_q.dequantize(x), b_q.dequantize(y)], axis), dst_q)


@pytest.mark.parametrize("dialect", FLOATS)
@pytest.mark.parametrize("seed", range(4))
def test_relu_through_floats(seed: int, dialect: str) -> None:
    (src_q, dst_q, _), x, _ = draw(seed)
    got = quantized.relu(x, src_q=src_q, dst_q=dst_q, dialect=dialect)
    check(got, np.maximum(src_q.dequantize(x), 0), dst_q)


@pytest.mark.parametrize("seed", range(12))
def test_relu_in_integers(seed: int) -> None:
    (src_q, dst_q, _), _, _ = draw(seed)
    src = np.arange(-128, 128).astype(np.int8)
    got = quantized.relu(src, src_q=src_q, dst_q=dst_q)
    ratio = operators.scale(src_q) / operators.scale(dst_q)
    shifted = range(-128 - int(src_q.zero_point), 128 - int(src_q.zero_point))
    wanted = [operators.code(max(operators.by_d2(x, ratio), 0), dst_q) for x in shifted]
    assert got.tolist() == wanted


def test_relu_in_integers_is_not_the_one_in_floats() -> None:
    """The note's counter-example: 0.2957 of a code becomes 1 in two roundings."""
    src_q, dst_q = QParams(0.0221586861, 0, "s8"), QParams(0.0749339536, 0, "s8")
    one = np.array([1], np.int8)
    got = [
        quantized.relu(one, src_q=src_q, dst_q=dst_q, dialect=dialect).item()
        for dialect in ("tflite", "caffe2")
    ]
    assert got == [1, 0]


UNARY: dict[str, tuple[Callable[..., Array], Callable[[Array], Array]]] = {
    "sigmoid": (quantized.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    "softmax": (
        quantized.softmax,
        lambda x: (
            np.exp(x - x.max(1, keepdims=True))
            / np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True)
        ),
    ),
}


@pytest.mark.parametrize("dialect", stated("sigmoid"))
@pytest.mark.parametrize("name", UNARY)
def test_sigmoid_and_softmax(name: str, dialect: str) -> None:
    ours, real = UNARY[name]
    unit = QParams(2.0**-8, -128, "s8")
    for seed in range(6):
        (src_q, *_), x, _ = draw(seed)
        check(ours(x, src_q=src_q, dst_q=unit, dialect=dialect), real(src_q.dequantize(x)), unit)


@pytest.mark.parametrize("dialect", stated("power"))
@pytest.mark.parametrize(("exponent", "scale", "shift"), [(1, 1, 0), (2, 0.5, 0.25), (3, -1, 0.1)])
def test_power(exponent: float, scale: float, shift: float, dialect: str) -> None:
    for seed in range(4):
        (src_q, _, dst_q), x, _ = draw(seed)
        got = quantized.power(
            x, exponent, src_q=src_q, dst_q=dst_q, scale=scale, shift=shift, dialect=dialect
        )
        real = np.asarray(shift + scale * src_q.dequantize(x)) ** exponent
        inside = np.abs(real / dst_q.scale) < 1000  # where float32's error is below NEAR
        check(got[inside], real[inside], dst_q)


def bilinear(x: Array, size: tuple[int, int], *, half_pixel: bool) -> Array:
    """One axis after the other, in float64."""
    for axis, wanted in ((2, size[0]), (3, size[1])):
        length, half = x.shape[axis], 0.5 if half_pixel else 0.0
        at = np.clip((np.arange(wanted) + half) * length / wanted - half, 0, length - 1)
        low = np.floor(at).astype(int)
        share = (at - low).reshape([-1 if i == axis else 1 for i in range(4)])
        high = np.minimum(low + 1, length - 1)
        x = np.take(x, low, axis) * (1 - share) + np.take(x, high, axis) * share
    return x


@pytest.mark.parametrize("half_pixel", [False, True])
@pytest.mark.parametrize("dialect", stated("resize_bilinear"))
def test_resize_bilinear(dialect: str, half_pixel: bool) -> None:
    for seed in range(4):
        (src_q, dst_q, _), x, _ = draw(seed)
        dst_q = src_q if dialect in KEEPS_PARAMETERS else dst_q
        for size in ((12, 14), (5, 11), (3, 1)):
            got = quantized.resize_bilinear(
                x, size, src_q=src_q, dst_q=dst_q, half_pixel=half_pixel, dialect=dialect
            )
            real = bilinear(src_q.dequantize(x), size, half_pixel=half_pixel)
            if dialect in KEEPS_PARAMETERS:
                # A step of 1/1024 pixel is off by half at most, each place; 255 codes a pixel.
                bound = 0.5 + 255 * sum(size) / 2048
                assert np.abs(got - (real / src_q.scale + src_q.zero_point)).max() <= bound
            else:
                check(got, real, dst_q)


def test_what_does_not_fit_is_refused() -> None:
    q, other = QParams(0.5, 0, "s8"), QParams(0.25, 0, "s8")
    x = np.zeros((1, 3, 4, 4), np.int8)
    with pytest.raises(ArgumentError, match=r"^srcs_q: .* TFLite rescales only u8 to u8"):
        quantized.concat([x, x], srcs_q=[q, other], dst_q=q)
    with pytest.raises(ArgumentError, match=r"^srcs: got 1 tensors, 2 parameters"):
        quantized.concat([x], srcs_q=[q, q], dst_q=q)
    with pytest.raises(ShapeError, match=r"^srcs: .* wanted alike but for axis 1"):
        quantized.concat([x, x[:, :, 1:]], srcs_q=[q, q], dst_q=q)
    with pytest.raises(ShapeError, match=r"^bias: got \(2,\)"):
        quantized.bias_add(x, np.zeros(2, np.int8), src_q=q, bias_q=q, dst_q=q)
    with pytest.raises(ArgumentError, match=r"^exponent: got 0\.5 of a negative base"):
        quantized.power(x - 1, 0.5, src_q=q, dst_q=q)
    with pytest.raises(ArgumentError, match=r"^axis: got 4"):
        quantized.softmax(x, src_q=q, dst_q=q, axis=4)
    with pytest.raises(ArgumentError, match=r"^dst_q: .* TFLite's kernel does not rescale"):
        quantized.resize_bilinear(x, (2, 2), src_q=q, dst_q=other)
    short: Any = (2,)
    with pytest.raises(ShapeError, match=r"^size: got \(2,\)"):
        quantized.resize_bilinear(x, short, src_q=q, dst_q=q)
