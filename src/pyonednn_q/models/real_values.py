"""The values of a model's nodes in float64, by ONNX's definition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.onnx.shape_inference import node_proto
from pyonednn_q.qparams import along

if TYPE_CHECKING:
    from pyonednn_q.graph.graph import GraphNode

__all__ = ["computed", "dequantized", "point_of", "scale_of", "wide"]

Values = dict[str, Array]


def wide(array: Array) -> Array:
    """Return float32 values as float64, and others as they are."""
    return array.astype(np.float64) if array.dtype == np.float32 else array


def scale_of(part: GraphNode, own: Values) -> Array:
    """Return the scale of a quantizer."""
    return np.asarray(own[part.inputs[1]], np.float64)


def point_of(part: GraphNode, own: Values) -> Array:
    """Return its zero point; 0 of u8 where it has none."""
    return np.asarray(own[part.inputs[2]] if part.input(2) else np.uint8(0)).reshape(())


def dequantized(part: GraphNode, own: Values) -> Array:
    """Return the real values of a DequantizeLinear, in float64."""
    codes, scale = own[part.inputs[0]], scale_of(part, own)
    point = np.asarray(own[part.inputs[2]] if part.input(2) else 0, np.float64)
    return (codes.astype(np.float64) - _along(part, point, codes)) * _along(part, scale, codes)


def _along(part: GraphNode, values: Array, codes: Array) -> Array:
    if values.size == 1:
        return values.reshape(())
    return along(values, int(part.attributes.get("axis", 1)), codes.ndim)


def computed(part: GraphNode, own: Values, opsets: Mapping[str, int]) -> list[Array]:
    """Return the outputs of a node, by ONNX's reference in the types of what it reads."""
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    from pyonednn_q.onnx.reference_repairs import repaired_operators

    names = [name for name in dict.fromkeys(part.inputs) if name]
    info = helper.make_empty_tensor_value_info
    graph = helper.make_graph(
        [node_proto(part)],
        "part",
        [info(name) for name in names],
        [info(name) for name in part.outputs if name],
    )
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    model = helper.make_model(graph, opset_imports=imports)
    try:
        evaluator = ReferenceEvaluator(model, new_ops=repaired_operators(opsets))
        with np.errstate(all="ignore"):
            results = evaluator.run(None, {name: own[name] for name in names})
    except Exception as error:  # of onnx.reference, whatever it is
        raise ValueError(str(error)) from None
    return [np.asarray(each) for each in results]
