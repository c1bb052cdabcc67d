"""ONNX's reference and ONNX Runtime on random calls: equal, or apart by an arithmetic with a name.

POINT_FIRST    the reference adds the zero point before it rounds: at ties, odd ones differ
PRODUCT        it multiplies in float64, as NumPy does with int32; we and ONNX Runtime in float32
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from support.onnx_operators import draw, meaning
from support.onnx_operators.draw import NodeCall
from support.onnx_operators.models import exact_sums, onnxruntime, ours, reference

pytest.importorskip("onnx", reason="onnx is not installed")

SEEDS = range(60)
POINT_FIRST, PRODUCT, UNEXPLAINED = "zero point first", "float64 product", "unexplained"
QUIET = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of the reference's own NumPy


def qlinear_conv(rng: np.random.Generator, types: Any = None) -> tuple[NodeCall, Any, Any]:
    """Return a call, its exact sums, and the multiplier that broadcasts against them."""
    drawn = draw.code_convolution(rng, types)
    x, x_point, w, w_point, added = (
        drawn[name] for name in ("x", "x_zero_point", "w", "w_zero_point", "B")
    )
    acc = meaning.conv_sums([x, x_point, w, w_point, added], drawn["attributes"])
    x_scale, w_scale, y_scale = draw.scales(rng, acc, w_point.shape)
    inputs = [x, x_scale, x_point, w, w_scale, w_point, y_scale, draw.point(rng, x.dtype), added]
    along = (-1, *(1,) * (x.ndim - 2))
    return (
        NodeCall("QLinearConv", inputs, drawn["attributes"]),
        acc,
        (x_scale * w_scale / y_scale).reshape(along),
    )


def qlinear_matmul(rng: np.random.Generator) -> tuple[NodeCall, Any, Any]:
    drawn = draw.code_product(rng, is_plain=True)
    a, a_point, b, b_point = (drawn[name] for name in ("a", "a_zero_point", "b", "b_zero_point"))
    acc = meaning.product_sums(a, a_point, b, b_point)
    a_scale, b_scale, y_scale = draw.scales(rng, acc, b_point.shape)
    inputs = [a, a_scale, a_point, b, b_scale, b_point, y_scale, draw.point(rng, a.dtype)]
    return NodeCall("QLinearMatMul", inputs, {}), acc, a_scale * b_scale / y_scale


def why(y: Any, theirs: Any, acc: Any, factor: Any, point: int) -> Counter[str]:
    """Name each difference between our codes and the reference's."""
    assert y.dtype == theirs.dtype
    assert y.shape == theirs.shape
    exact = acc * factor.astype(np.float64)
    single = (acc.astype(np.float32) * factor).astype(np.float64)
    found: Counter[str] = Counter()
    apart = y != theirs
    is_tie = (np.abs(exact - np.trunc(exact)) == 0.5) & bool(point % 2)
    is_rounded = np.rint(single) != np.rint(exact)
    found[POINT_FIRST] = int((apart & is_tie).sum())
    found[PRODUCT] = int((apart & ~is_tie & is_rounded).sum())
    found[UNEXPLAINED] = int((apart & ~is_tie & ~is_rounded).sum())
    assert (np.abs(y.astype(int) - theirs.astype(int)) <= 1).all()
    return found


def is_two_dimensional(call: NodeCall) -> bool:
    """Tell whether the reference takes vectors of weights: it aligns them as images have it."""
    return bool(call.inputs[0].ndim == 4)


@QUIET
def test_qlinear_conv_and_the_reference() -> None:
    found: Counter[str] = Counter()
    for seed in range(250):
        call, acc, factor = qlinear_conv(np.random.default_rng(seed))
        if factor.size > 1 and not is_two_dimensional(call):
            continue
        (y,), (theirs,) = ours(call), reference(call)
        found += why(y, theirs, acc, factor, int(call.inputs[7]))
        found["compared"] += y.size
    assert found[UNEXPLAINED] == 0, found
    assert found[POINT_FIRST] > 0, found
    assert found["compared"] > 10_000


@QUIET
def test_qlinear_matmul_and_the_reference() -> None:
    found: Counter[str] = Counter()
    for seed in range(250):
        call, acc, factor = qlinear_matmul(np.random.default_rng(seed))
        (y,), (theirs,) = ours(call), reference(call)
        found += why(y, np.asarray(theirs), acc, factor, int(call.inputs[7]))
    assert found[UNEXPLAINED] == 0, found
    assert found[POINT_FIRST] > 0, found


@QUIET
@pytest.mark.parametrize("seed", SEEDS)
def test_integer_operators_and_the_reference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    drawn = draw.code_convolution(rng)
    inputs = [drawn[name] for name in ("x", "w", "x_zero_point", "w_zero_point")]
    call = NodeCall("ConvInteger", inputs, drawn["attributes"])
    if inputs[3].ndim == 0 or is_two_dimensional(call):
        np.testing.assert_array_equal(ours(call)[0], reference(call)[0])
    drawn = draw.code_product(rng, is_plain=True)
    call = NodeCall(
        "MatMulInteger", [drawn[name] for name in ("a", "b", "a_zero_point", "b_zero_point")], {}
    )
    np.testing.assert_array_equal(ours(call)[0], reference(call)[0])


ORT_TYPES = ((np.uint8, np.int8), (np.uint8, np.uint8), (np.int8, np.int8))


@pytest.mark.parametrize("seed", SEEDS)
def test_onnxruntime_rounds_as_we_do(seed: int) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    rng = np.random.default_rng(seed)
    left_out = [(np.int8, np.uint8), *(() if exact_sums() else [(np.uint8, np.int8)])]
    calls = [qlinear_conv(rng, ORT_TYPES[seed % 3])[0], qlinear_matmul(rng)[0]]
    for call in calls:
        if (call.inputs[0].dtype, call.inputs[3].dtype) not in left_out:
            np.testing.assert_array_equal(ours(call)[0], onnxruntime(call)[0])


@pytest.mark.parametrize("seed", SEEDS)
def test_onnxruntime_sums_as_we_do(seed: int) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    rng = np.random.default_rng(seed)
    drawn = draw.code_convolution(rng, (np.uint8, [np.uint8, np.int8][seed % 2]))
    inputs = [drawn[name] for name in ("x", "w", "x_zero_point", "w_zero_point")]
    inputs[3] = np.asarray(inputs[3].reshape(-1)[0])  # a vector it refuses
    call = NodeCall("ConvInteger", inputs, drawn["attributes"])
    np.testing.assert_array_equal(ours(call)[0], onnxruntime(call)[0])


def real_tensor(rng: np.random.Generator) -> Any:
    shape = tuple(int(rng.integers(1, 7)) for _ in range(rng.integers(2, 5)))
    return (rng.normal(0, 3, shape) * 2.0 ** rng.integers(-2, 3)).astype(np.float32)


def linear(rng: np.random.Generator, dtype: Any, *, is_blocked: bool = True) -> NodeCall:
    """Return a QuantizeLinear: per tensor, along an axis, or in blocks; ties on purpose."""
    x = real_tensor(rng)
    kind = rng.integers(3 if is_blocked else 2)
    axis = int(rng.integers(-x.ndim, x.ndim))
    attributes: dict[str, Any] = {}
    shape: tuple[int, ...] = ()
    if kind == 1:
        shape, attributes = (x.shape[axis],), {"axis": axis}
    elif kind == 2:
        size = int(rng.integers(1, 5))
        dims = list(x.shape)
        dims[axis] = -(-dims[axis] // size)
        shape, attributes = tuple(dims), {"axis": axis, "block_size": size}
    scale = np.asarray(2.0 ** rng.integers(-4, 2, shape), np.float32)
    if rng.integers(2):
        scale = np.asarray(rng.uniform(0.01, 1, shape), np.float32)
    x = np.where(rng.integers(2, size=x.shape), x, np.rint(x * 4) / 8).astype(np.float32)
    info = np.iinfo(dtype) if np.dtype(dtype).kind in "iu" else None
    lo, hi = (info.min, info.max) if info else (0, 7)
    zero_point = rng.integers(lo, hi + 1, shape).astype(dtype)
    return NodeCall("QuantizeLinear", [x, scale, zero_point], attributes)


@QUIET
@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "uint4", "int4"])
def test_quantizing_and_dequantizing(dtype: str) -> None:
    """Equal to both; ONNX Runtime has no blocks of 16 bits, and is asked for 8 and 4 alone."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kind = np.dtype(getattr(ml_dtypes, dtype) if dtype.endswith("4") else dtype)
    for seed in range(120):
        call = linear(np.random.default_rng(seed), kind)
        (y,), (theirs,) = ours(call), reference(call)
        assert y.dtype == theirs.dtype == kind
        np.testing.assert_array_equal(y, theirs)
        back = NodeCall("DequantizeLinear", [y, *call.inputs[1:]], call.attributes)
        np.testing.assert_array_equal(ours(back)[0], reference(back)[0])


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16])
def test_onnxruntime_quantizes_as_we_do(dtype: Any) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    for seed in range(60):
        call = linear(np.random.default_rng(seed), dtype)
        (y,) = ours(call)
        np.testing.assert_array_equal(y, onnxruntime(call)[0])
        back = NodeCall("DequantizeLinear", [y, *call.inputs[1:]], call.attributes)
        np.testing.assert_array_equal(ours(back)[0], onnxruntime(back)[0])


@pytest.mark.parametrize("seed", SEEDS)
def test_dynamic_quantizing(seed: int) -> None:
    x = real_tensor(np.random.default_rng(seed))
    x = [x, abs(x), -abs(x), x * 0][seed % 4]
    call = NodeCall("DynamicQuantizeLinear", [x], {})
    y, scale, zero_point = ours(call)
    for value, theirs in zip((y, scale, zero_point), reference(call, 3), strict=True):
        assert value.dtype == theirs.dtype
        assert value.shape == theirs.shape
        np.testing.assert_array_equal(value, theirs)
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    their_y, their_scale, their_point = onnxruntime(call, 3)
    np.testing.assert_array_equal(y, their_y)
    np.testing.assert_array_equal(zero_point, their_point)
    if x.any():
        np.testing.assert_array_equal(scale, their_scale)
    else:
        assert scale.item() == np.float32(1) / np.float32(255)
        assert their_scale.item() == 1
