"""MaxPool and ArgMax on codes.

Accepted: equal to the same on what the codes stand for, in every dialect: order is kept.
"""

from __future__ import annotations

import numpy as np
import pytest

from pyonednn_q import emulate as quantized
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.qparams import QParams
from support.definitions import operators
from support.oracle_numbers import numpy_dtype

DIALECTS = ("tflite", "onnxruntime", "caffe2", "tpu_mlir", "tosa", "onednn")


@pytest.mark.parametrize("dtype", ["s8", "u8"])
@pytest.mark.parametrize(("kernel", "stride", "padding"), [(3, 2, 1), (2, 1, 0), ((1, 3), 2, 0)])
def test_the_largest_code_is_the_largest_value(
    dtype: str, kernel: int, stride: int, padding: int
) -> None:
    rng = np.random.default_rng(4)
    lo, hi = operators.LIMITS[dtype]
    x = rng.integers(lo, hi + 1, (2, 3, 8, 9)).astype(numpy_dtype(dtype))
    q = QParams(0.37, int(rng.integers(lo, hi + 1)), dtype)
    sides = [(0, 0), (0, 0), (padding,) * 2, (padding,) * 2]
    real = np.pad(q.dequantize(x), sides, constant_values=-np.inf)
    sizes = np.broadcast_to(kernel, 2)
    windows = np.lib.stride_tricks.sliding_window_view(real, tuple(sizes), axis=(2, 3))
    wanted = windows[:, :, ::stride, ::stride].max(axis=(-1, -2))
    for dialect in DIALECTS:
        got = quantized.max_pool(x, kernel, stride=stride, padding=padding, dialect=dialect)
        assert np.array_equal(q.dequantize(got), wanted)
        assert got.dtype == x.dtype


@pytest.mark.parametrize("dims", [(1, 1, 2, 2), (1, 3, 4, 4), (2, 9, 5), (1, 8, 3, 4, 5)], ids=str)
def test_so_it_is_on_few_values(dims: tuple[int, ...]) -> None:
    """Below AVX-512, oneDNN has nothing but a slow loop for some of them."""
    x = np.random.default_rng(5).integers(-128, 128, dims).astype(np.int8)
    for axis in range(2, len(dims)):
        pairs = [x.take(range(at, dims[axis] // 2 * 2, 2), axis) for at in (0, 1)]
        kernel = tuple(2 if at == axis else 1 for at in range(2, len(dims)))
        assert np.array_equal(quantized.max_pool(x, kernel, dialect="onednn"), np.maximum(*pairs))


def test_the_first_of_equals_is_where_the_largest_is() -> None:
    x = np.array([[3, 9, 9], [7, 7, -7]], np.int8)
    assert quantized.arg_max(x).tolist() == [1, 0]
    assert quantized.arg_max(x, axis=0).tolist() == [1, 0, 0]
    for axis in (0, 1, -1):
        real = QParams(0.3, 5, "s8").dequantize(x)
        assert np.array_equal(quantized.arg_max(x, axis=axis), real.argmax(axis))


def test_arguments_are_named() -> None:
    with pytest.raises(DTypeError, match=r"^src: got 's32'; wanted one of u8, s8"):
        quantized.arg_max(np.zeros((2, 2), np.int32))
    with pytest.raises(ArgumentError, match=r"^axis: got 2"):
        quantized.arg_max(np.zeros((2, 2), np.int8), axis=2)
    with pytest.raises(ShapeError, match=r"^src: got \(2, 0\)"):
        quantized.arg_max(np.zeros((2, 0), np.int8))
    with pytest.raises(ShapeError, match=r"^padding: got 3; wanted less than the kernel"):
        quantized.max_pool(np.zeros((1, 1, 4), np.int8), 3, padding=3)
