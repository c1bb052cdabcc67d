"""Types and dims of a graph's tensors: by the rules of the table of kinds, one node after another.

What has no rule, as an If or a Loop, goes to the inference of the package onnx, where that is
installed; else its results stay unknown.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.dtypes import Array, numpy_type
from pyonednn_q.graph.dims_rule import DimsRule, KnownSources, KnownTensor, Lengths
from pyonednn_q.graph.graph import Graph, GraphNode, Value
from pyonednn_q.onnx.element_types import dtype_name
from pyonednn_q.onnx.subgraphs import captured, renamed

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto, ValueInfoProto

_SMALL = 64  # elements of a constant that may say a shape
_FIRST = 7  # opset of ONNX's own operators from which the rules are theirs
_NOTHING = KnownTensor()


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
    """Infer type and dims of every tensor for which they follow from the inputs.

    Parameters
    ----------
    graph : Graph
        Graph; its own statements about tensors are ignored.
    """
    parts = (graph.nodes, graph.constants, graph.inputs, graph.opsets)
    tensors = inferred(*parts)
    outputs = {name: tensors.get(name, known) for name, known in graph.outputs.items()}
    return replace(graph, tensors=tensors, outputs=outputs)


def known_lengths(graph: Graph) -> dict[str, Lengths]:
    """Return the dims of every tensor of which their number follows, of open lengths, too."""
    parts = (graph.nodes, graph.constants, graph.inputs, graph.opsets)
    known = _known_tensors(*parts)
    return {name: each.dims for name, each in known.items() if each.dims is not None}


def inferred(
    nodes: Sequence[GraphNode],
    constants: Mapping[str, Array],
    inputs: Mapping[str, Value],
    opsets: Mapping[str, int],
) -> Mapping[str, Value]:
    """Return type and dims of every tensor for which they follow from inputs and constants.

    What the model says of its own tensors is not looked at.

    Parameters
    ----------
    nodes, constants, inputs, opsets
        Fields of `Graph`.
    """
    values = {**inputs}
    for name, known in _known_tensors(nodes, constants, inputs, opsets).items():
        if known.dtype and name not in values:
            dims = known.whole
            values[name] = Value(known.dtype, dims, lengths=(dims is None and known.dims) or ())
    return MappingProxyType(values)


def _known_tensors(
    nodes: Sequence[GraphNode],
    constants: Mapping[str, Array],
    inputs: Mapping[str, Value],
    opsets: Mapping[str, int],
) -> dict[str, KnownTensor]:
    """Return type and dims of every tensor, as far as known, in order."""
    known = {
        **{n: KnownTensor(each.dtype.name, each.shape, each) for n, each in constants.items()},
        **{n: KnownTensor(each.dtype, each.lengths or each.dims) for n, each in inputs.items()},
    }
    is_old = opsets.get("", _FIRST) < _FIRST
    for node in nodes:
        rule = node.row.dims
        if rule is None or (is_old and not node.domain):
            known.update(_by_onnx(node, known, opsets))
            continue
        tensors = [known.get(name, _NOTHING) if name else None for name in node.inputs]
        opset = opsets.get(node.domain, 0)
        sources = KnownSources(node.attributes, tensors, len(node.outputs), opset)
        numbers = rule.elements(sources)
        for at, (name, dims) in enumerate(zip(node.outputs, rule.of(sources), strict=True)):
            if name:
                known[name] = KnownTensor(_dtype(rule, at, sources), dims, None if at else numbers)
    return known


def _dtype(rule: DimsRule, at: int, sources: KnownSources) -> str:
    """Return the type of a result, by what the rule names; empty where that is not known."""
    for each in rule.dtypes[min(at, len(rule.dtypes) - 1)]:
        if isinstance(each, int):
            if (dtype := sources.dtype(each)) is not None:
                return dtype
        elif not each.startswith("@"):
            return each
        else:
            told = sources.attributes.get(each[1:], 0)
            if isinstance(told, np.ndarray):
                return str(told.dtype)
            if told:
                return dtype_name(told)
    return ""


def _by_onnx(
    node: GraphNode, known: Mapping[str, KnownTensor], opsets: Mapping[str, int]
) -> dict[str, KnownTensor]:
    """Return what the package onnx infers of a node's results; nothing where it is not there."""
    if not _has_onnx():
        return {}
    from onnx import helper, numpy_helper, shape_inference

    number = helper.np_dtype_to_tensor_dtype
    values, held = [], []
    symbols: set[int | str] = set()
    for name in dict.fromkeys(filter(None, node.inputs)):
        each = known.get(name, _NOTHING)
        array = _array(each)
        if array is not None:
            held.append(numpy_helper.from_array(array, name))
        elif each.dtype:
            dims = None if each.dims is None else [None if n == "" else n for n in each.dims]
            symbols.update(each.dims or ())
            dtype = number(numpy_type(each.dtype))
            values.append(helper.make_tensor_value_info(name, dtype, dims))
    ends = [helper.make_empty_tensor_value_info(name) for name in node.outputs if name]
    graph = helper.make_graph([node_proto(node)], "node", values, ends, held)
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    model = helper.make_model(graph, opset_imports=imports)
    try:
        results = shape_inference.infer_shapes(model, data_prop=True).graph.output
    except Exception:  # of onnx: a node that contradicts itself has no dims
        return {}
    return {each.name: _told(each, symbols) for each in results}


@functools.cache
def _has_onnx() -> bool:
    return find_spec("onnx") is not None


def _array(known: KnownTensor) -> Array | None:
    """Return the elements of a small tensor, if all are known."""
    numbers, dims = known.numbers, known.whole
    if isinstance(numbers, np.ndarray):
        return numbers if numbers.size <= _SMALL else None
    if numbers is None or dims is None or any(isinstance(each, str) for each in numbers):
        return None
    return np.array(numbers, known.dtype).reshape(dims)


def _told(info: ValueInfoProto, symbols: set[int | str]) -> KnownTensor:
    """Return what was inferred of a tensor; symbols that onnx makes up are none."""
    if info.type.WhichOneof("value") != "tensor_type":
        return _NOTHING
    tensor = info.type.tensor_type
    dtype = dtype_name(tensor.elem_type)
    if not tensor.HasField("shape"):
        return KnownTensor(dtype)
    lengths: list[int | str] = []
    for dim in tensor.shape.dim:
        if dim.WhichOneof("value") == "dim_value":
            lengths.append(dim.dim_value if dim.dim_value >= 0 else "")
        else:
            lengths.append(dim.dim_param if dim.dim_param in symbols else "")
    return KnownTensor(dtype, tuple(lengths))


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


def value_proto(name: str, info: Value) -> ValueInfoProto:
    """Return type and dims by the package onnx, which may have open dims."""
    from onnx import helper

    if not info.dtype:  # a model need not say what it returns
        return helper.make_empty_tensor_value_info(name)
    number = helper.np_dtype_to_tensor_dtype(numpy_type(info.dtype))
    lengths = [None if each == "" else each for each in info.lengths]
    return helper.make_tensor_value_info(name, number, lengths or info.dims)


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
