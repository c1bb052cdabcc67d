"""ONNX Runtime on drawn layers: QLinearConv, and QGemm for inner products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from support.oracles.layers import Layer

Array = np.ndarray[Any, Any]


def run(layer: Layer) -> Array:
    """Return ONNX Runtime's result."""
    if layer.op == "inner_product":
        dense = _inputs(layer, layer.src[:, :, 0, 0], layer.wei[:, :, 0, 0])
        # QGemm takes the bias before the result's parameters.
        bias = dense.pop("bias")
        result = {name: dense.pop(name) for name in ("dst_scale", "dst_point")}
        inputs = {**dense, "bias": bias, **result}
        given = node("QGemm", inputs, domain="com.microsoft", transB=1)
        return given[:, :, np.newaxis, np.newaxis]
    groups = layer.channels if layer.op == "depthwise" else 1
    return node("QLinearConv", _inputs(layer, layer.src, layer.wei), group=groups)


def node(
    op: str,
    inputs: dict[str, Array],
    *,
    domain: str = "",
    source: str | None = None,
    **attributes: Any,
) -> Array:
    """Return what one node makes of its inputs.

    source: the input that is no constant, the first by default; dst is of its type.
    """
    import onnxruntime
    from onnx import helper, numpy_helper

    first = next(iter(inputs)) if source is None else source
    constants = [name for name in inputs if name != first]
    made = helper.make_node(op, list(inputs), ["dst"], domain=domain, **attributes)
    of_type = helper.np_dtype_to_tensor_dtype(inputs[first].dtype)
    graph = helper.make_graph(
        [made],
        op,
        [helper.make_tensor_value_info(first, of_type, inputs[first].shape)],
        [helper.make_tensor_value_info("dst", of_type, None)],
        [numpy_helper.from_array(np.asarray(inputs[n]), n) for n in constants],
    )
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return np.asarray(session.run(None, {first: inputs[first]})[0])


def _inputs(layer: Layer, src: Array, wei: Array) -> dict[str, Array]:
    per_tensor = layer.granularity == "per_tensor"
    scale = layer.wei_scale[0] if per_tensor else layer.wei_scale
    point = np.full(np.shape(scale), layer.wei_zero_point, wei.dtype)
    return {
        "src": src,
        "src_scale": np.asarray(layer.src_scale),
        "src_point": np.asarray(layer.src_zero_point, src.dtype),
        "wei": wei,
        "wei_scale": np.asarray(scale),
        "wei_point": point,
        "dst_scale": np.asarray(layer.dst_scale),
        "dst_point": np.asarray(layer.dst_zero_point, src.dtype),
        "bias": layer.bias,
    }
