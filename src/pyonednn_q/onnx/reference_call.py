"""One node as ONNX has it, through `onnx.reference` or our operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.errors import Error, LibraryError, UnsupportedError
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph, GraphNode, Value
from pyonednn_q.onnx.elementwise_call import elementwise_call
from pyonednn_q.onnx.group_attention import group_attention
from pyonednn_q.onnx.gru_of_codes import recurrence_of_codes
from pyonednn_q.onnx.loops import looped
from pyonednn_q.onnx.reference_operators import DOUBTS
from pyonednn_q.onnx.shape_inference import node_proto
from pyonednn_q.onnx.subgraphs import captured, graphs_of
from pyonednn_q.shown import install, shortened, shown

if TYPE_CHECKING:
    from pyonednn_q.onnx.backend import OnnxModel

Values = dict[str, Array]

_NONE: Mapping[str, Value] = MappingProxyType({})


def reference_call(
    node: GraphNode, opsets: Mapping[str, int], tensors: Mapping[str, Value] = _NONE
) -> Callable[[Values], tuple[Array, ...]]:
    """Return a call of one node as ONNX has it, on our operators where they take it.

    Parameters
    ----------
    node : GraphNode
        Any node; one with branches if all of these may run so.
    opsets : mapping of str to int
        Versions of operators, by domain.
    tensors : mapping of str to Value
        Types and dims that the standard says of results, where it does.

    Returns
    -------
    callable
        Function from values by name to the outputs; an array of nothing for those that are left
        out.

    Raises
    ------
    UnsupportedError
        Neither we nor `onnx.reference` know the operator, or nobody compared it with another
        runtime; or, of the call, it failed there, or its result has another type or other dims.
    LibraryError
        The package onnx is not installed.
    """
    operator = f"{node.kind} {shown(node.name)}"
    why = _doubt(node)
    if why:
        raise UnsupportedError("refused", "onnx.reference", operator, why)
    if node.row in {kinds.LOOP, kinds.SCAN}:
        body: Graph = node.attributes["body"]
        read = (*body.inputs, *captured(node.attributes))
        return looped(node, _run_of(operator, body.nodes, read, body, opsets))
    if node.row in kinds.DYNAMIC_RECURRENT:
        return _of_codes(node)
    if node.row is kinds.GROUP_QUERY:
        return group_attention(node)
    if node.row is kinds.LOG and (own := elementwise_call(node)) is not None:
        return own  # the same function of NumPy, and nothing around it
    if find_spec("onnx") is None:
        if (own := elementwise_call(node)) is not None:
            return own
        message = f"{operator} runs by its definition in the package onnx: {install('onnx')}"
        raise LibraryError(message)
    names = tuple(name for name in dict.fromkeys(node.inputs) if name)
    results_of = _run_of(operator, (node,), names, tuple(filter(None, node.outputs)), opsets)

    def call(values: Values) -> tuple[Array, ...]:
        # NumPy adds in the order of elements in memory.
        inputs = {name: np.asarray(values[name], order="C") for name in names}
        if (doubt := DOUBTS.get(node.kind)) is not None and (why := doubt(node, inputs)):
            raise UnsupportedError("refused", "onnx.reference", operator, why)
        results = iter(results_of(inputs))
        outputs = tuple(next(results) if name else np.empty(0) for name in node.outputs)
        for name, array in zip(node.outputs, outputs, strict=True):
            known = tensors.get(name)
            result = Value(array.dtype.name, array.shape)
            if known is not None and _differs(result, known):
                detail = f"it gave {result} where the standard has {known}"
                raise UnsupportedError("refused", "onnx.reference", operator, detail)
        return outputs

    return call


def _of_codes(node: GraphNode) -> Callable[[Values], tuple[Array, ...]]:
    def call(values: Values) -> tuple[Array, ...]:
        known = recurrence_of_codes(node, values)
        named = zip(node.outputs, (known.results, known.last, known.cells), strict=False)
        return tuple(each.astype(np.float32) if name else np.empty(0) for name, each in named)

    return call


def _run_of(
    operator: str,
    nodes: tuple[GraphNode, ...],
    inputs: tuple[str, ...],
    ends: Graph | tuple[str, ...],
    opsets: Mapping[str, int],
) -> Callable[[Values], list[Array]]:
    """Return a function that runs one node or a body: from inputs by name to results."""
    from onnx import helper, numpy_helper

    outputs, constants = (ends.outputs, ends.constants) if isinstance(ends, Graph) else (ends, {})
    graph = helper.make_graph(
        [node_proto(each) for each in nodes],
        "nodes",
        [helper.make_empty_tensor_value_info(name) for name in inputs],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(np.asarray(each), name) for name, each in constants.items()],
    )
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    ready = _ready(helper.make_model(graph, opset_imports=imports).SerializeToString())

    def run(values: Values) -> list[Array]:
        try:
            with np.errstate(all="ignore"):
                return [_dense(each) for each in ready.run(values)]
        except Error:
            raise
        except Exception as error:  # of onnx.reference
            detail = f"{type(error).__name__}: {shortened(str(error), 150)}"
            raise UnsupportedError("failed", "onnx.reference", operator, detail) from None

    return run


@lru_cache(maxsize=1024)
def _ready(model: bytes) -> OnnxModel:
    """Return what runs a node; it is the same at all lengths that a model leaves open."""
    from onnx import ModelProto

    from pyonednn_q.onnx.backend import OnnxBackend

    return OnnxBackend.unchecked(ModelProto.FromString(model))


def _dense(result: object) -> Array:
    """Return a result in row-major order, also with dims of 1."""
    array = np.asarray(result, order="C")
    return array if min(array.strides, default=0) >= 0 else array.copy()


def _doubt(node: GraphNode) -> str:
    """Return why a node must not run by `onnx.reference`; empty where it may."""
    if graphs := graphs_of(node.attributes):
        inner = [each for graph in graphs.values() for each in graph.nodes]
        some = next((each for each in inner if each.kind in DOUBTS), None)
        doubt = "" if some is None else f"{some.kind} in a subgraph, whose values nobody looks at"
        return doubt or next(filter(None, map(_doubt, inner)), "")
    if not node.row.compared:
        from onnx import defs

        if not node.domain and defs.has(node.operator):  # others are unknown there, as it says
            return "nobody compared its results with another runtime's"
    return ""


def _differs(result: Value, known: Value) -> bool:
    dims = known.dims is not None and known.dims != result.dims
    return dims or bool(known.dtype and known.dtype != result.dtype)
