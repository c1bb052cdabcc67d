"""The part of a model that the package onnx checks: all but its large constants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyonednn_q.errors import ArgumentError
from pyonednn_q.graph import kinds
from pyonednn_q.shown import shortened

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

__all__ = ["check_model", "domain_of", "skeleton_of"]

_SMALL = 1 << 12  # bytes of constants that decide over shapes, which the checker sees
_THEIRS = "com.microsoft"


def check_model(proto: ModelProto) -> None:
    """Let onnx check the model without its large constants, of which it would ask for nothing."""
    import onnx.checker

    try:
        onnx.checker.check_model(skeleton_of(proto))
    except Exception as error:  # of onnx, whatever it is
        raise ArgumentError("model", shortened(str(error), 200), "a valid ONNX model") from None


def skeleton_of(proto: ModelProto) -> ModelProto:
    """Return a model whose large constants are inputs."""
    import onnx

    source = proto.graph
    skeleton = onnx.ModelProto(ir_version=proto.ir_version)
    skeleton.opset_import.extend(proto.opset_import)
    graph = skeleton.graph
    graph.name = source.name
    graph.node.extend(source.node)
    for node in graph.node:
        node.domain = domain_of(node)
    known_domains = {each.domain for each in proto.opset_import}
    if any(node.domain == _THEIRS for node in graph.node) and _THEIRS not in known_domains:
        skeleton.opset_import.add(domain=_THEIRS, version=1)
    graph.input.extend(source.input)
    graph.output.extend(source.output)
    for each in graph.output:
        if each.type.WhichOneof("value") == "tensor_type":
            each.type.tensor_type.shape.SetInParent()  # which is inferred, whether there is one
    known = {each.name for each in source.input}
    for each in source.initializer:
        if each.ByteSize() <= _SMALL and each.data_location != onnx.TensorProto.EXTERNAL:
            graph.initializer.append(each)
        elif each.name not in known:
            known.add(each.name)
            info = onnx.helper.make_tensor_value_info(each.name, each.data_type, each.dims)
            graph.input.append(info)
        else:  # twice, or an input of models of version 3
            continue
    return skeleton


def domain_of(proto: NodeProto) -> str:
    """Return the domain of a node; onnxruntime's for its operators that are written in ONNX's."""
    domain = "" if proto.domain == "ai.onnx" else str(proto.domain)
    own = f"{_THEIRS}.{proto.op_type}"
    return _THEIRS if not domain and own == kinds.SIMPLE_NORM.name else domain
