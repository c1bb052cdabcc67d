"""ONNX Runtime's quantized operators, to the last output: the dialect `onnxruntime`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q import emulate as quantized
from pyonednn_q.qparams import QParams
from support.oracle_numbers import numpy_dtype
from support.oracles import onnx_layers
from support.oracles.layers import LIMITS
from support.oracles.operators import draws

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install .[oracles]")
pytest.importorskip("onnx", reason="onnx is not installed: pip install .[oracles]")

Array = np.ndarray[Any, Any]
dtypes = pytest.mark.parametrize("dtype", ["s8", "u8"])
ORT: dict[str, Any] = {"dialect": "onnxruntime"}


def parameters(name: str, q: QParams) -> dict[str, Array]:
    point = np.asarray(q.zero_point, numpy_dtype(q.dtype))
    return {f"{name}_scale": np.asarray(q.scale, np.float32), f"{name}_point": point}


def unary(x: Array, src_q: QParams, dst_q: QParams) -> dict[str, Array]:
    return {"x": x, **parameters("x", src_q), **parameters("dst", dst_q)}


def ask(op: str, inputs: dict[str, Array], **attributes: Any) -> Array:
    return onnx_layers.node(op, inputs, domain="com.microsoft", source="x", **attributes)


def telling_pairs(q: list[QParams], x: Array) -> tuple[Array, Array]:
    """Pairs of codes whose sum lies beside a tie; padded with others to whole vectors."""
    every = np.arange(256).astype(np.uint8).view(x.dtype)
    a, b = (codes.ravel() for codes in np.meshgrid(every, every))
    real = (q[0].dequantize(a) + q[1].dequantize(b)) / q[2].scale
    near = np.argsort(np.abs(real % 1 - 0.5), kind="stable")[:4096]
    return a[near], b[near]


@dtypes
def test_add(dtype: str) -> None:
    for _, q, x, y, _ in draws(dtype, 40):
        close = telling_pairs(q, x)
        for a, b in ((x.ravel(), y.ravel()), close):
            ours = quantized.add(a, b, a_q=q[0], b_q=q[1], dst_q=q[2], **ORT)
            inputs = {"x": a, **parameters("x", q[0]), "y": b, **parameters("y", q[1])}
            answer = ask("QLinearAdd", {**inputs, **parameters("dst", q[2])})
            assert int((answer != ours).sum()) == 0


@dtypes
def test_leaky_relu(dtype: str) -> None:
    for _, (src_q, dst_q, *_), x, _, _ in draws(dtype, 20):
        for alpha in (0.2, 0.01, 1.5):
            ours = quantized.leaky_relu(x, alpha, src_q=src_q, dst_q=dst_q, **ORT)
            answer = ask("QLinearLeakyRelu", unary(x, src_q, dst_q), alpha=alpha)
            assert int((answer != ours).sum()) == 0


@dtypes
def test_global_average_pool(dtype: str) -> None:
    for _, (src_q, dst_q, *_), x, _, _ in draws(dtype, 40):
        ours = quantized.average_pool(x, 9, src_q=src_q, dst_q=dst_q, **ORT)
        inputs = unary(x, src_q, dst_q)
        answer = ask("QLinearGlobalAveragePool", inputs, channels_last=0)
        assert int((answer != ours).sum()) == 0


@dtypes
@pytest.mark.parametrize(("padding", "count"), [(0, False), (1, False), (1, True)])
def test_average_and_max_pool(dtype: str, padding: int, count: bool) -> None:
    for _, (src_q, dst_q, *_), x, _, _ in draws(dtype, 12):
        for kernel, stride in ((3, 1), (2, 2)):
            window: dict[str, Any] = {"stride": stride, "padding": padding}
            ours = quantized.average_pool(
                x, kernel, src_q=src_q, dst_q=dst_q, count_padding=count, **window, **ORT
            )
            attributes: dict[str, Any] = {
                "kernel_shape": [kernel] * 2,
                "strides": [stride] * 2,
                "pads": [padding] * 4,
            }
            inputs = unary(x, src_q, dst_q)
            answer = ask("QLinearAveragePool", inputs, **attributes, count_include_pad=int(count))
            assert int((answer != ours).sum()) == 0
            largest = onnx_layers.node("MaxPool", {"x": x}, **attributes)
            assert np.array_equal(largest, quantized.max_pool(x, kernel, **window))


@dtypes
def test_concat(dtype: str) -> None:
    for _, q, x, y, _ in draws(dtype, 20):
        ours = quantized.concat([x, y], srcs_q=q[:2], dst_q=q[2], **ORT)
        inputs = {"x": x, **parameters("x", q[0]), "y": y, **parameters("y", q[1])}
        answer = ask("QLinearConcat", {**parameters("dst", q[2]), **inputs}, axis=1)
        assert int((answer != ours).sum()) == 0


@dtypes
def test_sigmoid_and_softmax(dtype: str) -> None:
    unit = QParams(2.0**-8, LIMITS[dtype][0], dtype)
    for _, (q, *_), x, _, _ in draws(dtype, 12):
        inputs = unary(x, q, unit)
        ours = quantized.sigmoid(x, src_q=q, dst_q=unit, **ORT)
        assert int((ask("QLinearSigmoid", inputs) != ours).sum()) == 0
        ours = quantized.softmax(x, src_q=q, dst_q=unit, **ORT)
        assert int((ask("QLinearSoftmax", inputs, axis=1, opset=13) != ours).sum()) == 0


@dtypes
def test_softmax_by_a_table_at_any_scale(dtype: str) -> None:
    """Its 1 / s is rounded down to a whole number; beyond float32 there is no integer."""
    rng = np.random.default_rng(5)
    lo, hi = LIMITS[dtype]
    for _ in range(40):
        length = int(rng.integers(1, 70))
        q = QParams(np.float32(rng.uniform(0.005, 0.3)), int(rng.integers(lo, hi)), dtype)
        dst_q = QParams(np.float32(rng.uniform(0.002, 0.02)), lo, dtype)
        x = rng.integers(lo, hi + 1, (20, length)).astype(numpy_dtype(dtype))
        ours = quantized.softmax(x, src_q=q, dst_q=dst_q, axis=1, dialect="onnxruntime_table")
        answer = ask("QLinearSoftmax", unary(x, q, dst_q), axis=1, opset=13)
        assert int((answer != ours).sum()) == 0
