"""ONNX's operators of floats, within what float32 sums can be off by; and what they refuse."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from support.onnx_operators import draw, meaning

SEEDS = range(60)
ONE = np.float32(1)
OPERATORS: Any = pq.onnx  # called with arguments that are wrong on purpose


def taps(x: Any, w: Any, attributes: dict[str, Any]) -> int:
    """How many products an element of the result is the sum of, at most."""
    inputs = x.shape[1] // attributes.get("group", 1)
    return int(inputs * np.prod(w.shape[2:]))


def check_convolution(call: draw.NodeCall, y: np.ndarray[Any, Any]) -> None:
    x, w = (value.astype(np.float64) for value in call.inputs[:2])
    of = meaning.transposed if call.op_type == "ConvTranspose" else meaning.convolved
    exact, sizes = of(x, w, call.attributes), of(abs(x), abs(w), call.attributes)
    if call.inputs[2] is not None:
        along = call.inputs[2].astype(np.float64).reshape(-1, *(1,) * (x.ndim - 2))
        exact, sizes = exact + along, sizes + abs(along)
    assert y.shape == exact.shape
    bound = meaning.float32_bound(sizes, taps(x, w, call.attributes) + 1)
    check_stored(y, exact, bound)


def check_stored(y: Any, exact: Any, bound: Any) -> None:
    """Compare with exact values, which one rounding to y's type may follow."""
    digits = {"float32": 24, "float16": 11, "bfloat16": 8}[y.dtype.name]
    if y.dtype != np.float32:
        bound = bound + 2.0**-digits * (abs(exact) + bound) + 2.0**-25
    assert (abs(y.astype(np.float64) - exact) <= bound).all()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("is_transposed", [False, True])
def test_convolutions(seed: int, is_transposed: bool) -> None:
    call = draw.float_convolution(np.random.default_rng(seed), is_transposed=is_transposed)
    run = pq.onnx.conv_transpose if is_transposed else pq.onnx.conv
    y = run(*call.inputs, **call.attributes)
    assert y.dtype == np.float32
    check_convolution(call, y)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("seed", range(6))
def test_convolutions_of_16_bits(seed: int, dtype: Any) -> None:
    """With kernels of the type, or where there are none in float32: said, and rounded once."""
    rng = np.random.default_rng(seed)
    call = draw.float_convolution(rng, is_transposed=bool(seed % 2), dtype=dtype)
    run = pq.onnx.conv_transpose if seed % 2 else pq.onnx.conv
    y = run(*call.inputs, **call.attributes)
    assert y.dtype == dtype
    check_convolution(call, y)


@pytest.mark.parametrize("shape", [[10, 8], [7, 5], [9, 7], [8, 6]])
@pytest.mark.parametrize("auto_pad", ["NOTSET", "SAME_UPPER", "SAME_LOWER"])
def test_output_shape(shape: list[int], auto_pad: str) -> None:
    """Smaller than what the kernel reaches, and larger: there the bias stands alone."""
    rng = np.random.default_rng(3)
    inputs = [rng.normal(0, 1, dims).astype(np.float32) for dims in ((1, 2, 3, 3), (2, 3, 3, 3))]
    attributes: dict[str, Any] = {"strides": [3, 2], "output_shape": shape, "auto_pad": auto_pad}
    call = draw.NodeCall("ConvTranspose", [*inputs, np.array([1, -2, 3], np.float32)], attributes)
    y = pq.onnx.conv_transpose(*call.inputs, **attributes)
    check_convolution(call, y)
    assert y.shape[2:] == tuple(shape)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("seed", range(30))
def test_matmul(seed: int, dtype: Any) -> None:
    rng = np.random.default_rng(seed)
    a, b = (rng.normal(0, 1, dims).astype(dtype) for dims in draw.stacks(rng))
    y = pq.onnx.matmul(a, b)
    wide = a.astype(np.float64), b.astype(np.float64)
    sizes = np.matmul(abs(wide[0]), abs(wide[1]))
    assert y.dtype == dtype
    assert y.shape == sizes.shape
    check_stored(y, np.matmul(*wide), meaning.float32_bound(sizes, a.shape[-1]))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("seed", range(40))
def test_gemm(seed: int, dtype: Any) -> None:
    rng = np.random.default_rng(seed)
    m, k, n = (int(rng.integers(1, 20)) for _ in range(3))
    attributes: dict[str, Any] = {"transA": int(rng.integers(2)), "transB": int(rng.integers(2))}
    if rng.integers(2):
        attributes["alpha"] = float(np.float32(rng.choice([0.5, -1.3, 0.0])))
    if rng.integers(2):
        attributes["beta"] = float(np.float32(rng.choice([0.25, -1.7, 0.0])))
    a = rng.normal(0, 1, (k, m) if attributes["transA"] else (m, k)).astype(dtype)
    b = rng.normal(0, 1, (n, k) if attributes["transB"] else (k, n)).astype(dtype)
    dims = [None, (), (1,), (n,), (1, n), (m, 1), (m, n)][rng.integers(7)]
    c = None if dims is None else rng.normal(0, 1, dims).astype(dtype)
    y = pq.onnx.gemm(a, b, c, **attributes)
    left = (a.T if attributes["transA"] else a).astype(np.float64)
    right = (b.T if attributes["transB"] else b).astype(np.float64)
    alpha, beta = attributes.get("alpha", 1.0), attributes.get("beta", 1.0)
    added = 0.0 if c is None else beta * c.astype(np.float64)
    exact, sizes = alpha * (left @ right) + added, abs(alpha) * (abs(left) @ abs(right))
    assert y.shape == (m, n)
    check_stored(y, exact, meaning.float32_bound(sizes + abs(added), k, 4))


def test_what_does_not_fit_is_named() -> None:
    x, w = np.ones((1, 2, 4, 4), np.float32), np.ones((3, 2, 3, 3), np.float32)
    codes, wei = x.astype(np.uint8), w.astype(np.int8)
    zero = np.uint8(0)
    q: list[Any] = [codes, ONE, zero, wei, ONE, np.int8(0), ONE, zero]
    wrong: list[tuple[type[ArgumentError], str, Any]] = [
        (DTypeError, "X", lambda: OPERATORS.conv(x.astype(np.float64), w)),
        (DTypeError, "W", lambda: OPERATORS.conv(x, w.astype(np.float16))),
        (ShapeError, "X", lambda: OPERATORS.conv(x[:, :1], w)),
        (ShapeError, "X", lambda: OPERATORS.conv(x[:, :, :2], w)),
        (ShapeError, "W", lambda: OPERATORS.conv(x, w[0])),
        (ShapeError, "W", lambda: OPERATORS.conv(np.ones((1, 4, 4, 4), np.float32), w, group=2)),
        (ShapeError, "B", lambda: OPERATORS.conv(x, w, np.ones(2, np.float32))),
        (ShapeError, "kernel_shape", lambda: OPERATORS.conv(x, w, kernel_shape=[3, 2])),
        (ShapeError, "pads", lambda: OPERATORS.conv(x, w, pads=[1, 1])),
        (ShapeError, "strides", lambda: OPERATORS.conv(x, w, strides=[0, 1])),
        (ArgumentError, "auto_pad", lambda: OPERATORS.conv(x, w, auto_pad="SAME")),
        (ArgumentError, "pads", lambda: OPERATORS.conv(x, w, auto_pad="VALID", pads=[1] * 4)),
        (ArgumentError, "group", lambda: OPERATORS.conv(x, w, group=0)),
        (ShapeError, "X", lambda: OPERATORS.conv_transpose(x, w)),
        (
            ShapeError,
            "output_padding",
            lambda: OPERATORS.conv_transpose(x, w[:2], output_padding=[1]),
        ),
        (DTypeError, "x", lambda: OPERATORS.conv_integer(x, wei)),
        (DTypeError, "x_zero_point", lambda: OPERATORS.conv_integer(codes, wei, np.int8(1))),
        (
            ShapeError,
            "w_zero_point",
            lambda: OPERATORS.conv_integer(codes, wei, None, np.zeros(2, np.int8)),
        ),
        (ArgumentError, "x_scale", lambda: OPERATORS.qlinear_conv(q[0], np.float32(0), *q[2:])),
        (
            ArgumentError,
            "w_scale",
            lambda: OPERATORS.qlinear_conv(*q[:4], np.float32(np.nan), *q[5:]),
        ),
        (DTypeError, "y_zero_point", lambda: OPERATORS.qlinear_conv(*q[:7], np.int32(0))),
        (DTypeError, "B", lambda: OPERATORS.qlinear_conv(*q, np.ones(3, np.float32))),
        (
            ArgumentError,
            "y_scale",
            lambda: OPERATORS.qlinear_conv(
                q[0], np.float32(1e30), *q[2:6], np.float32(1e-30), zero
            ),
        ),
        (ShapeError, "B", lambda: OPERATORS.matmul(np.ones((2, 3), np.float32), x)),
        (ShapeError, "A", lambda: OPERATORS.matmul(np.float32(1), x)),
        (
            ShapeError,
            "b",
            lambda: OPERATORS.qlinear_matmul(
                codes, ONE, zero, codes[..., :3, :], ONE, zero, ONE, zero
            ),
        ),
        (
            ShapeError,
            "a_zero_point",
            lambda: OPERATORS.matmul_integer(codes, codes, np.zeros(3, np.uint8)),
        ),
        (
            ShapeError,
            "y_scale",
            lambda: OPERATORS.qlinear_matmul(
                codes, ONE, zero, codes, ONE, zero, np.ones(4, np.float32), zero
            ),
        ),
        (ShapeError, "A", lambda: OPERATORS.gemm(x, x)),
        (ShapeError, "C", lambda: OPERATORS.gemm(x[0, 0], x[0, 0], np.ones((3, 4), np.float32))),
        (ArgumentError, "alpha", lambda: OPERATORS.gemm(x[0, 0], x[0, 0], alpha=np.inf)),
        (ArgumentError, "X", lambda: OPERATORS.conv([1.0], w)),
    ]
    for kind, argument, call in wrong:
        with pytest.raises(kind) as caught:
            call()
        assert caught.value.argument == argument
        assert type(caught.value) is kind
        assert len(str(caught.value)) <= 500


def test_nothing_to_multiply() -> None:
    """A batch of nothing, and sums of nothing, which are 0."""
    w = np.ones((3, 2, 3, 3), np.float32)
    assert pq.onnx.conv(np.ones((0, 2, 4, 4), np.float32), w).shape == (0, 3, 2, 2)
    nothing = np.ones((2, 0), np.float32)
    assert (pq.onnx.matmul(nothing, nothing.T) == np.zeros((2, 2))).all()
    assert (
        pq.onnx.gemm(nothing, nothing.T, np.array([1, 2], np.float32), beta=3.0) == [3, 6]
    ).all()
    codes, zero = nothing.astype(np.uint8), np.uint8(7)
    y = pq.onnx.qlinear_matmul(codes, ONE, zero, codes.T, ONE, zero, ONE, zero)
    np.testing.assert_array_equal(y, np.full((2, 2), 7, np.uint8))
    empty = pq.onnx.conv_integer(np.ones((0, 2, 4, 4), np.uint8), w.astype(np.int8))
    assert (empty.shape, empty.dtype) == ((0, 3, 2, 2), np.int32)


def test_weights_that_change_are_seen() -> None:
    x, w = np.ones((1, 1, 2, 2), np.uint8), np.ones((1, 1, 2, 2), np.int8)
    assert pq.onnx.conv_integer(x, w).item() == 4
    w[...] = 2
    assert pq.onnx.conv_integer(x, w).item() == 8


def test_what_ran_is_traced_by_thread_and_block() -> None:
    x, w = np.ones((1, 1, 2, 2), np.uint8), np.ones((1, 1, 2, 2), np.int8)
    with pq.onnx.trace() as outer:
        pq.onnx.conv_integer(x, w)
        with pq.onnx.trace() as inner:
            pq.onnx.quantize_linear(np.array([1.0], np.float32), ONE)
    pq.onnx.conv_integer(x, w)
    assert [call.operator for call in outer] == ["ConvInteger"]
    assert [str(call) for call in inner] == ["QuantizeLinear: no oneDNN kernel; by a pass of ours"]
