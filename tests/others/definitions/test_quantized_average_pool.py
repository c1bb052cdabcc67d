"""Means of windows, as TFLite, ONNX Runtime and Caffe2 have them; with TPU-MLIR's.

Accepted: every code equals the definition in rational arithmetic, padding counted or not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q import emulate as quantized
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.qparams import QParams
from support.definitions import operators
from support.oracle_numbers import numpy_dtype


@pytest.mark.parametrize("dtype", ["s8", "u8"])
@pytest.mark.parametrize("count_padding", [False, True])
@pytest.mark.parametrize("dialect", ["tflite", "snps_caffe", "onnxruntime", "caffe2", "tpu_mlir"])
def test_every_code_is_that_of_the_definition(
    dialect: str, count_padding: bool, dtype: str
) -> None:
    rng = np.random.default_rng([len(dialect), len(dtype), count_padding])
    lo, hi = operators.LIMITS[dtype]
    for draw in range(6):
        symmetric = dialect == "tpu_mlir" and dtype == "s8" and draw % 2 == 0
        src_q, dst_q = operators.drawn(rng, dtype, 2, symmetric=symmetric)
        dst_q = src_q if dialect == "tflite" or (dialect[0] == "s" and draw == 0) else dst_q
        # The whole image where ONNX Runtime has a rule of its own for it.
        kernel, stride, padding = (7, 1, 0) if dialect == "onnxruntime" else (3, 2, 1)
        src = rng.integers(lo, hi + 1, (2, 3, 7, 7)).astype(numpy_dtype(dtype))
        got = quantized.average_pool(
            src,
            kernel,
            src_q=src_q,
            dst_q=dst_q,
            stride=stride,
            padding=padding,
            count_padding=count_padding,
            dialect=dialect,
        )
        size = kernel * kernel
        wanted = []
        for window in operators.windows(src, kernel, stride, padding):
            whole = count_padding or dialect == "tpu_mlir"
            count, outside = (size, size - len(window)) if whole else (len(window), 0)
            wanted.append(operators.mean(window, outside, count, src_q, dst_q, dialect))
        assert got.ravel().tolist() == wanted


def test_tflite_rounds_the_codes_and_not_what_they_stand_for() -> None:
    """−3/2 above an odd zero point: half away from zero of the code, not of the value."""
    q = QParams(0.5, 3, "s8")
    src = np.array([[[1, 2]]], np.int8)
    assert quantized.average_pool(src, 2, src_q=q, dst_q=q).item() == 2
    got = quantized.average_pool(src, 2, src_q=q, dst_q=q, dialect="caffe2")
    assert got.item() == 1


def test_local_means_of_onnxruntime_round_with_the_zero_point() -> None:
    q = QParams(0.5, 3, "s8")
    src = np.array([[[1, 2, 1]]], np.int8)
    options: dict[str, Any] = {"src_q": q, "dst_q": q, "stride": 1, "dialect": "onnxruntime"}
    assert quantized.average_pool(src, 2, **options).tolist() == [[[2, 2]]]
    assert quantized.average_pool(src[..., :2], 2, **options).tolist() == [[[1]]]


def test_a_mean_of_a_list_of_dimensions() -> None:
    """(3 + 4 + 8 + 9 - 4) · 2 / 4 and so on: where all is whole, the mean itself."""
    src = np.array([[[3, 4], [8, 9]], [[1, 1], [5, 9]]], np.uint8)
    options: dict[str, Any] = {"src_q": QParams(0.5, 1, "u8"), "dst_q": QParams(0.25, 0, "u8")}
    assert quantized.mean(src, (1, 2), **options).tolist() == [[[10]], [[6]]]
    assert quantized.mean(src, (0, -2, -1), **options).tolist() == [[[8]]]
    assert quantized.mean(src, **options).tolist() == [[[5], [15]], [[0], [12]]]
    for axes in ((), (3,), (0, 0), (0, -3)):
        with pytest.raises(ShapeError, match=r"^axes: .*different dimensions"):
            quantized.mean(src, axes, **options)
    with pytest.raises(ShapeError, match=r"^src: got \(0, 2\)"):
        quantized.mean(np.zeros((0, 2), np.uint8), (0,), **options)


@pytest.mark.parametrize("dtype", ["s8", "u8"])
@pytest.mark.parametrize("dialect", ["tflite_optimised", "xnnpack"])
def test_a_mean_over_an_image_is_its_kernels_own(dialect: str, dtype: str) -> None:
    rng, (lo, hi) = np.random.default_rng(len(dialect)), operators.LIMITS[dtype]
    differ = 0
    for channels in (3, 16, 20, 39):
        src_q, dst_q = operators.drawn(rng, dtype, 2)
        src = rng.integers(lo, hi + 1, (2, channels, 5, 3)).astype(numpy_dtype(dtype))
        got = quantized.mean(src, src_q=src_q, dst_q=dst_q, dialect=dialect)
        wanted = [
            operators.mean_of_image(
                src[at].ravel().tolist(),
                src_q,
                dst_q,
                dialect,
                is_last=at[1] >= channels // 16 * 16,
            )
            for at in np.ndindex(2, channels)
        ]
        assert got.ravel().tolist() == wanted
        differ += int((got != quantized.mean(src, src_q=src_q, dst_q=dst_q)).sum())
    assert differ > 0


def test_other_means_of_the_optimised_kernels_are_those_of_the_reference() -> None:
    rng = np.random.default_rng(3)
    src = rng.integers(-128, 128, (2, 20, 5, 3)).astype(np.int8)
    options: dict[str, Any] = {"src_q": QParams(0.3, 7, "s8"), "dst_q": QParams(0.1, -9, "s8")}
    for shape, axes in (((2, 20, 5, 3), (1, 2)), ((2, 20, 5, 3), (3,)), ((2, 20, 15), (2,))):
        x = src.reshape(shape)
        one, other = (
            quantized.mean(x, axes, dialect=dialect, **options)
            for dialect in ("tflite", "tflite_optimised")
        )
        assert np.array_equal(one, other)


def test_what_does_not_fit_is_refused() -> None:
    q, other = QParams(0.5, 3, "s8"), QParams(0.25, 3, "s8")
    src = np.zeros((1, 1, 4, 4), np.int8)
    with pytest.raises(ArgumentError, match=r"^dst_q: .* TFLite's AveragePool does not rescale"):
        quantized.average_pool(src, 2, src_q=q, dst_q=other)
    with pytest.raises(ShapeError, match=r"^padding: got 2; wanted less than the kernel"):
        quantized.average_pool(src, 2, src_q=q, dst_q=q, padding=2)
    with pytest.raises(ShapeError, match=r"^src: got \(1, 1, 4, 4\); wanted room for a window"):
        quantized.average_pool(src, 5, src_q=q, dst_q=q)
    with pytest.raises(ShapeError, match=r"^src: got \(4,\); wanted \(N, C, 1 to 3 spatial"):
        quantized.average_pool(src[0, 0, 0], 2, src_q=q, dst_q=q)
    with pytest.raises(ShapeError, match=r"^stride: got \(1, 2, 3\)"):
        quantized.average_pool(src, 2, src_q=q, dst_q=q, stride=(1, 2, 3))
