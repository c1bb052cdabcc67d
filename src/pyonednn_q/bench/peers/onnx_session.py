"""onnxruntime: one node in a session, source and result bound once.

Convolutions of integers in channels-last order are the node that its own optimiser makes of
QLinearConv between transposes (domain com.microsoft), without the transposes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from pyonednn_q import dtypes
from pyonednn_q.bench.peers.peer_layer import PeerError, PeerLayer, PeerRun
from pyonednn_q.dtypes import Array
from pyonednn_q.primitive.windowed import swapped

__all__ = ["ready"]

_NAME = "onnxruntime"
_MICROSOFT = "com.microsoft"
_OF_CODES = 4  # accuracy level of sources of 8 bits
_TYPES = {("uint8", "int8"), ("uint8", "uint8"), ("int8", "int8")}


@dataclass
class _PeerGraph:
    """A model in the making: nodes, constants, and what is fed."""

    nodes: list[Any] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    fed: dict[str, Array] = field(default_factory=dict)

    def constant(self, name: str, values: Any, dtype: Any = None) -> str:  # noqa: ANN401
        self.constants[name] = np.asarray(values, dtype)
        return name

    def add(self, op_type: str, inputs: list[str], domain: str = "", **attributes: Any) -> None:  # noqa: ANN401
        node = helper.make_node(op_type, inputs, ["dst"], domain=domain, **attributes)
        self.nodes.append(node)


def ready(layer: PeerLayer, threads: int) -> PeerRun:
    """Make a session for a layer.

    Raises
    ------
    PeerError
        There is no kernel for it.
    """
    layer.check_types(_NAME, takes_groups=True)
    graph = _PeerGraph()
    if layer.group:
        last = _blocks(layer, graph)
    elif layer.is_int8:
        _check_int8(layer)
        last = _integers(layer, graph)
    else:
        last = _floats(layer, graph)
    return _bound(layer, graph, threads, dst_last=last)


def _blocks(layer: PeerLayer, graph: _PeerGraph) -> bool:
    """Add a MatMulNBits, whose source becomes codes of 8 bits as ours does."""
    inner, columns = layer.wei.shape
    half = 1 << (layer.bits - 1)
    codes = (layer.wei.T.astype(np.int16) + half).astype(np.uint8)
    if layer.bits < 8:
        codes = codes[:, ::2] | codes[:, 1::2] << layer.bits
    packed = codes.reshape(columns, inner // layer.group, -1)
    graph.fed["src"] = np.ascontiguousarray(layer.src)
    inputs = ["src", graph.constant("wei", packed)]
    inputs.append(graph.constant("scales", np.ascontiguousarray(np.transpose(layer.wei_scale))))
    if layer.bias is not None:
        inputs += ["", "", graph.constant("bias", layer.bias)]
    told = {"K": inner, "N": columns, "bits": layer.bits, "block_size": layer.group}
    graph.add("MatMulNBits", inputs, _MICROSOFT, accuracy_level=_OF_CODES, **told)
    return False


def _check_int8(layer: PeerLayer) -> None:
    if layer.kind == "deconv":
        raise PeerError(_NAME, "has no INT8 kernel for ConvTranspose")
    if (layer.src.dtype.name, layer.wei.dtype.name) not in _TYPES:
        raise PeerError(_NAME, f"multiplies no {layer.src.dtype} by {layer.wei.dtype}")
    if layer.residual is not None:
        raise PeerError(_NAME, "adds no residual in its QLinear operators")
    if layer.dst == "s32":
        if layer.bias is not None or layer.relu:
            raise PeerError(_NAME, "ends its integer operators with the sum of products")
        return
    if layer.dst_dtype != layer.src.dtype:
        raise PeerError(_NAME, f"stores {layer.src.dtype} here, not {layer.dst}")
    if layer.relu and layer.dst_zero_point != dtypes.qmin(layer.dst):
        raise PeerError(_NAME, "fuses a relu only where the zero point is the lowest code")


def _integers(layer: PeerLayer, graph: _PeerGraph) -> bool:
    """Add the operator; return whether dst is channels-last."""
    src, wei = _operands(layer, graph)
    points = [
        graph.constant("src_zero_point", layer.src_zero_point, layer.src.dtype),
        graph.constant("wei_zero_point", _as_scale(layer, layer.wei_zero_point), layer.wei.dtype),
    ]
    if layer.dst == "s32":
        # These operators know one zero point for all weights.
        graph.constant("wei_zero_point", layer.wei_zero_point, layer.wei.dtype)
        window = _window(layer) if layer.is_windowed else {}
        graph.add(
            "ConvInteger" if layer.is_windowed else "MatMulInteger", [src, wei, *points], **window
        )
        return False
    inputs = [src, graph.constant("src_scale", layer.src_scale, np.float32), points[0]]
    inputs += [wei, graph.constant("wei_scale", _as_scale(layer, layer.wei_scale), np.float32)]
    inputs.append(points[1])
    dst = [
        graph.constant("dst_scale", layer.dst_scale, np.float32),
        graph.constant("dst_zero_point", layer.dst_zero_point, layer.dst_dtype),
    ]
    bias = layer.bias_in_acc()
    if not layer.is_windowed and (layer.kind == "ip" or bias is not None):
        middle = [] if bias is None else [graph.constant("bias", bias)]
        graph.add(
            "QGemm", [*inputs, *(middle or [""]), *dst], _MICROSOFT, transB=layer.kind == "ip"
        )
        return False
    if not layer.is_windowed:
        graph.add("QLinearMatMul", [*inputs, *dst])
        return False
    last = [] if bias is None else [graph.constant("bias", bias)]
    window = _window(layer)
    if layer.channels_last:
        graph.add("QLinearConv", [*inputs, *dst, *last], _MICROSOFT, channels_last=1, **window)
    else:
        graph.add("QLinearConv", [*inputs, *dst, *last], **window)
    return layer.channels_last


def _floats(layer: PeerLayer, graph: _PeerGraph) -> bool:
    src, wei = _operands(layer, graph)
    inputs = [src, wei]
    if layer.bias is not None:
        inputs.append(graph.constant("bias", layer.bias))
    if layer.is_windowed:
        op_type = "Conv" if layer.kind == "conv" else "ConvTranspose"
        window = _window(layer)
        if layer.kind == "deconv":
            window["output_padding"] = list(layer.out_padding)
        graph.add(op_type, inputs, **window)
    elif layer.kind == "ip" or layer.bias is not None:
        graph.add("Gemm", inputs, transB=int(layer.kind == "ip"))
    else:
        graph.add("MatMul", inputs)
    if layer.residual is not None:
        graph.fed["residual"] = layer.residual.values
        _then(graph, "Add", ["residual"])
    if layer.relu:
        _then(graph, "Relu", [])
    return False


def _then(graph: _PeerGraph, op_type: str, more: list[str]) -> None:
    """Add a node that reads what was the result."""
    before = f"x{len(graph.nodes)}"
    graph.nodes[-1].output[0] = before
    graph.add(op_type, [before, *more])


def _operands(layer: PeerLayer, graph: _PeerGraph) -> tuple[str, str]:
    """Feed src in the order in which the operator reads it; weights, if they are not constant."""
    src, wei = layer.src, layer.wei
    if layer.is_windowed and layer.channels_last and layer.is_int8 and layer.dst != "s32":
        src = np.moveaxis(src, 1, -1)
    if layer.kind == "ip":
        src, wei = src.reshape(len(src), -1), wei.reshape(len(wei), -1)
    if layer.kind == "matmul" and layer.bias is not None and src.ndim > 2:
        src, wei = src.reshape(-1, src.shape[-1]), wei.reshape(wei.shape[-2:])
    if layer.kind == "deconv":
        wei = swapped(wei, layer.groups)
    graph.fed["src"] = np.ascontiguousarray(src)
    if layer.constant_wei:
        return "src", graph.constant("wei", np.ascontiguousarray(wei))
    graph.fed["wei"] = np.ascontiguousarray(wei)
    return "src", "wei"


def _as_scale(layer: PeerLayer, values: Any) -> Array:  # noqa: ANN401
    """Return one value for the tensor, or one per channel: zero points as many as scales."""
    scale = np.asarray(layer.wei_scale)
    shape = () if scale.size == 1 else scale.shape
    array = np.asarray(values)
    return np.broadcast_to(array.reshape(()) if array.size == 1 else array, shape)


def _window(layer: PeerLayer) -> dict[str, Any]:
    lows, highs = zip(*layer.padding, strict=True)
    return {
        "strides": list(layer.stride),
        "dilations": list(layer.dilation),
        "pads": [*lows, *highs],
        "group": layer.groups,
    }


def _bound(layer: PeerLayer, graph: _PeerGraph, threads: int, *, dst_last: bool) -> PeerRun:
    """Make the session and bind what is fed, and the result."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        _model(layer, graph).SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    binding = session.io_binding()
    for name, values in graph.fed.items():
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(values))
    (dims,) = (result.shape for result in session.run(None, graph.fed))
    dst = onnxruntime.OrtValue.ortvalue_from_shape_and_type(dims, layer.dst_dtype.type)
    binding.bind_ortvalue_output("dst", dst)

    def run() -> None:
        session.run_with_iobinding(binding)

    def read(_: object) -> Array:
        values = dst.numpy()
        return np.moveaxis(values, -1, 1) if dst_last else values

    return PeerRun(run, read, tuple(graph.fed.values()))


def _model(layer: PeerLayer, graph: _PeerGraph) -> onnx.ModelProto:
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for name, a in graph.fed.items()
    ]
    kind = helper.np_dtype_to_tensor_dtype(layer.dst_dtype)
    model_graph = helper.make_graph(
        graph.nodes,
        "layer",
        inputs,
        [helper.make_tensor_value_info("dst", kind, None)],
        [numpy_helper.from_array(values, name) for name, values in graph.constants.items()],
    )
    # Versions that every onnxruntime of the last years reads.
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(_MICROSOFT, 1)]
    return helper.make_model(model_graph, opset_imports=opsets, ir_version=10)
