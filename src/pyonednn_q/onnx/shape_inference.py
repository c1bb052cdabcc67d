"""Types and dims of a graph's tensors, by onnx's inference on nodes without large constants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph, GraphNode, Value
from pyonednn_q.network.carrier import numpy_type
from pyonednn_q.onnx.subgraphs import captured, renamed

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto, ValueInfoProto

Array = np.ndarray[Any, Any]

_SMALL = 64  # elements of a constant that may say a shape


def with_dims(graph: Graph) -> Graph:
    """Infer the types and dims that follow from inputs and constants, where some are not known.

    Parameters
    ----------
    graph : Graph
    """
    names = {name for node in graph.nodes for name in node.outputs if name}
    if names <= graph.tensors.keys():
        return graph
    return with_tensors(graph)


def with_tensors(graph: Graph) -> Graph:
    """Return a graph with type and dims of every tensor for which they follow from its inputs."""
    tensors = inferred(graph.nodes, graph.constants, graph.inputs, graph.outputs, graph.opsets)
    outputs = {name: tensors.get(name, known) for name, known in graph.outputs.items()}
    return replace(graph, tensors=tensors, outputs=outputs)


def ranks(graph: Graph) -> dict[str, int]:
    """Return the number of dims of every tensor for which it follows, of open lengths, too."""
    dims: dict[str, Sequence[int | str | None]] = {
        name: [each or None for each in symbols] for name, symbols in graph.symbols.items()
    }
    infos = {**_known(graph.constants), **graph.inputs}
    numbers = {name: len(info.dims) for name, info in infos.items() if info.dims is not None}
    numbers |= {name: len(symbols) for name, symbols in graph.symbols.items()}
    shape = (graph.nodes, graph.constants, infos, graph.outputs, graph.opsets)
    for each in _inferred(*shape, dims):
        if each.type.tensor_type.HasField("shape"):
            numbers[each.name] = len(each.type.tensor_type.shape.dim)
    return numbers


def inferred(
    nodes: Iterable[GraphNode],
    constants: Mapping[str, Array],
    inputs: Mapping[str, Value],
    outputs: Iterable[str],
    opsets: Mapping[str, int],
) -> Mapping[str, Value]:
    """Return type and dims of every tensor for which they follow from inputs and constants.

    What the model says of its own tensors is not looked at.

    Parameters
    ----------
    nodes, constants, inputs, outputs, opsets
        As in `Graph`.
    """
    from onnx import helper

    infos = {**inputs, **_known(constants)}
    for each in _inferred(nodes, constants, infos, outputs, opsets):
        tensor = each.type.tensor_type
        try:
            dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        except (KeyError, ValueError):
            continue
        dims = tuple(dim.dim_value for dim in tensor.shape.dim)
        is_known = tensor.HasField("shape") and all(
            dim.WhichOneof("value") == "dim_value" and dim.dim_value >= 0
            for dim in tensor.shape.dim
        )
        if each.type.WhichOneof("value") == "tensor_type":
            infos.setdefault(each.name, Value(dtype.name, dims if is_known else None))
    return MappingProxyType(infos)


def _known(constants: Mapping[str, Array]) -> dict[str, Value]:
    return {name: Value(each.dtype.name, each.shape) for name, each in constants.items()}


def _inferred(
    nodes: Iterable[GraphNode],
    constants: Mapping[str, Array],
    infos: Mapping[str, Value],
    outputs: Iterable[str],
    opsets: Mapping[str, int],
    dims: Mapping[str, Sequence[int | str | None]] = MappingProxyType({}),
) -> Iterable[ValueInfoProto]:
    """Return what onnx infers of tensors that nodes make.

    Parameters
    ----------
    nodes, constants, outputs, opsets
        As in `Graph`.
    infos : mapping of str to Value
        Of inputs and constants.
    dims : mapping of str to sequence
        Of inputs whose lengths are open: numbers, symbols, None.
    """
    from onnx import helper, numpy_helper, shape_inference

    number = helper.np_dtype_to_tensor_dtype
    small = {name for name, each in constants.items() if each.size <= _SMALL}
    values = [
        helper.make_tensor_value_info(
            name, number(numpy_type(info.dtype)), dims.get(name, info.dims)
        )
        for name, info in infos.items()
        if name not in small
    ]
    graph = helper.make_graph(
        [node_proto(_known_to_onnx(each)) for each in nodes],
        "graph",
        values,
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(constants[name], name) for name in small],
    )
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    model = helper.make_model(graph, opset_imports=imports)
    try:
        known = shape_inference.infer_shapes(model, data_prop=True).graph
    except Exception:  # of onnx: a graph that contradicts itself has no dims
        return ()
    return (*known.value_info, *known.output)


def _known_to_onnx(node: GraphNode) -> GraphNode:
    """Return a node whose results have the same dims: of an LSTM of codes, that of floats."""
    if node.row is not kinds.DYNAMIC_LSTM:
        return node
    return replace(node, operator=node.row.means, domain="", inputs=node.inputs[:1])


def node_proto(node: GraphNode) -> NodeProto:
    """Return a node as the package onnx has it."""
    from onnx import AttributeProto, helper, numpy_helper

    free = captured(node.attributes)
    own = len(node.inputs) - len(free)
    read = node.inputs[:own]
    proto = helper.make_node(node.operator, read, node.outputs, node.name, None, node.domain)
    names = dict(zip(free, node.inputs[own:], strict=True))
    for name, value in node.attributes.items():
        stored = numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
        stored = _branch(name, value, names) if isinstance(value, Graph) else stored
        kind = AttributeProto.INTS if stored == () else None
        proto.attribute.append(helper.make_attribute(name, stored, attr_type=kind))
    return proto


def value_proto(name: str, info: Value, dims: Sequence[int | str] | None = None) -> ValueInfoProto:
    """Return type and dims as the package onnx has them, of open dims where there are such."""
    from onnx import helper

    if not info.dtype:  # a model need not say what it returns
        return helper.make_empty_tensor_value_info(name)
    number = helper.np_dtype_to_tensor_dtype(numpy_type(info.dtype))
    known = info.dims if dims is None else [None if each == "" else each for each in dims]
    return helper.make_tensor_value_info(name, number, known)


def _branch(name: str, graph: Graph, names: Mapping[str, str]) -> GraphProto:
    """Return a graph within a node, by the names that the graph around it has."""
    from onnx import helper, numpy_helper

    return helper.make_graph(
        [node_proto(renamed(each, names)) for each in graph.nodes],
        name,
        [value_proto(name, info) for name, info in graph.inputs.items()],
        [value_proto(names.get(name, name), info) for name, info in graph.outputs.items()],
        [numpy_helper.from_array(np.asarray(each), at) for at, each in graph.constants.items()],
    )
