"""One node as ONNX has it, through `onnx.reference` or our operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pyonednn_q.errors import Error, UnsupportedError
from pyonednn_q.onnx.graph import GraphNode
from pyonednn_q.onnx.shape_inference import node_proto
from pyonednn_q.shown import shortened, shown

Array = np.ndarray[Any, Any]
Values = dict[str, Array]


def reference_call(
    node: GraphNode, opsets: Mapping[str, int]
) -> Callable[[Values], tuple[Array, ...]]:
    """Return a call of one node as ONNX has it, on our operators where they take it.

    Parameters
    ----------
    node : GraphNode
        Any node without subgraphs.
    opsets : mapping of str to int
        Versions of operators, by domain.

    Returns
    -------
    callable
        From values by name to the outputs; an array of nothing for those that are left out.

    Raises
    ------
    UnsupportedError
        Neither we nor `onnx.reference` know the operator; or, of the call, it failed there.
    """
    from onnx import helper

    from pyonednn_q.onnx.backend import OnnxBackend

    names = [name for name in dict.fromkeys(node.inputs) if name]
    graph = helper.make_graph(
        [node_proto(node)],
        "node",
        [helper.make_empty_tensor_value_info(name) for name in names],
        [helper.make_empty_tensor_value_info(name) for name in node.outputs if name],
    )
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    ready = OnnxBackend.unchecked(helper.make_model(graph, opset_imports=imports))

    def call(values: Values) -> tuple[Array, ...]:
        inputs = {name: values[name] for name in names}
        try:
            with np.errstate(all="ignore"):
                results = iter(ready.run(inputs))
        except Error:
            raise
        except Exception as error:  # of onnx.reference
            detail = f"{type(error).__name__}: {shortened(str(error), 150)}"
            operator = f"{node.kind} {shown(node.name)}"
            raise UnsupportedError("failed", "onnx.reference", operator, detail) from None
        empty = np.empty(0)
        return tuple(np.asarray(next(results)) if name else empty for name in node.outputs)

    return call
