"""Each call of a fused model on what onnxruntime computed before it, and why codes differ.

A code may be the neighbour of onnxruntime's where the real value lies on a tie, or within float32's
error of one: there the order of roundings decides, and an odd zero point that is added before the
rounding. Where a chain rounds on the way, a tie there is a code of that scale, in codes of the
last. Its QLinearSoftmax, which sums exponents of a table, may be off by one anywhere. Anything else
is a fault. Real values are those of ONNX's definition, in float64.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnxruntime
from onnx import helper
from onnx.reference import ReferenceEvaluator

from pyonednn_q.graph.graph import GraphNode
from pyonednn_q.models.node_bounds import float_bound
from pyonednn_q.onnx.fused_node import CodeOperation, FusedNode
from pyonednn_q.onnx.model import Model
from pyonednn_q.onnx.shape_inference import node_proto

Array = np.ndarray[Any, Any]
Values = dict[str, Array]

# Some ten roundings of float32 on the way of values of up to 2^10 codes: 2^10 · 2^-24 · 16.
NEAR_A_TIE = 2.0**-10


class Compared(NamedTuple):
    """What a node computes beside onnxruntime.

    name, how: of the node.
    codes: how many it makes.
    at_ties: how many are neighbours of theirs, beside a tie.
    by_table: how many are neighbours of theirs, of a Softmax.
    wrong: how many differ otherwise.
    """

    name: str
    how: str
    codes: int
    at_ties: int
    by_table: int
    wrong: int


def compared(model: Model, path: Path, inputs: Values) -> list[Compared]:
    """Compare each node of a model that onnxruntime has, too."""
    read = {name for node in model.nodes for name in (*node.reads, *node.outputs)}
    values = {**model.graph.constants, **inputs, **their_values(path, inputs, read)}
    found = []
    for node, call in zip(model.nodes, model.calls, strict=True):
        if node.output not in values or any(name not in values for name in node.reads):
            continue
        ours, theirs = call(values)[0], values[node.output]
        assert ours.shape == theirs.shape
        assert ours.dtype == theirs.dtype
        if ours.dtype == np.float32:
            far = _far(node, ours, theirs, values, model.graph.opsets)
            found.append(Compared(node.name, node.how, ours.size, 0, 0, far))
            continue
        apart = np.abs(ours.astype(int) - theirs)
        at_ties = apart > 0
        if apart.any():
            at_ties &= apart <= codes_by_ties(node, values, model.graph.opsets)
        is_table = isinstance(node.runs, CodeOperation) and node.operator == "Softmax"
        ties = int(at_ties.sum())
        table = int(((apart == 1) & ~at_ties).sum()) if is_table else 0
        wrong = int((apart > 0).sum()) - ties - table
        found.append(Compared(node.name, node.how, ours.size, ties, table, wrong))
    return found


def _far(node: FusedNode, ours: Array, theirs: Array, values: Values, opsets: Any) -> int:
    """Count floats that no order of roundings gives; of functions without a bound, lost ones."""
    bound = float_bound(node, node.output, values, opsets)
    if bound is None or bound.apart is None:
        return int((np.isfinite(ours) != np.isfinite(theirs)).sum())
    apart, exact = bound.apart, bound.values
    near = (np.abs(ours - exact) <= apart) & (np.abs(theirs - exact) <= apart)
    return int(((ours != theirs) & ~near).sum())


def their_values(path: Path, inputs: Values, wanted: set[str]) -> Values:
    """Return some tensors of a model as onnxruntime computes them, with all that it fuses."""
    proto = onnx.load(path)
    known = {each.name for each in proto.graph.output}
    names = [name for node in proto.graph.node for name in node.output if name in wanted - known]
    proto.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in names)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(),
        options,
        providers=["CPUExecutionProvider"],
        disabled_optimizers=["WeightBiasQuantization"],  # it quantizes float weights of the model
    )
    outputs = [each.name for each in session.get_outputs()]
    return dict(zip(outputs, session.run(outputs, inputs), strict=True))


def codes_by_ties(node: FusedNode, values: Values, opsets: Any) -> Array:
    """Return by how much each code of a node may differ for values beside ties: mostly 0."""
    own = {name: np.asarray(each, float) if each.dtype == np.float32 else each
           for name, each in values.items()}  # fmt: skip
    found: Any = 0.0
    last: Any = 1.0
    for part in node.parts:
        if part.operator == "DequantizeLinear":
            own[part.outputs[0]] = _real(part, own)
        elif part.operator == "QuantizeLinear":
            scale, point = _scale(part, own)
            codes = own[part.inputs[0]] / scale
            near = np.abs(np.abs(codes - np.rint(codes)) - 0.5) <= NEAR_A_TIE
            # So far in real values: all that follows adds, or changes by no more than it is given.
            found = found + scale * near
            last = scale
            limits = np.iinfo(point.dtype)
            rounded = np.clip(np.rint(codes) + point.astype(float), limits.min, limits.max)
            own[part.outputs[0]] = rounded.astype(point.dtype)
        else:
            own[part.outputs[0]] = _reference(part, own, opsets)
    allowed: Array = np.ceil(np.broadcast_to(found / last, own[node.output].shape))
    return allowed


def _scale(part: GraphNode, own: Values) -> tuple[Array, Array]:
    point = own[part.inputs[2]] if part.input(2) else np.uint8(0)
    return np.asarray(own[part.inputs[1]], float), np.asarray(point)


def _real(part: GraphNode, own: Values) -> Array:
    codes = own[part.inputs[0]]
    scale, point = _scale(part, own)
    if scale.ndim and scale.size > 1:
        dims = [1] * codes.ndim
        dims[part.attributes.get("axis", 1)] = -1
        scale = scale.reshape(dims)
        point = point.reshape(dims) if point.size > 1 else point
    real: Array = codes.astype(float) - (point.reshape(()) if point.size == 1 else point)
    return real * (scale.reshape(()) if scale.size == 1 else scale)


def _reference(part: GraphNode, own: Values, opsets: Any) -> Array:
    names = [name for name in dict.fromkeys(part.inputs) if name]
    info = helper.make_empty_tensor_value_info
    graph = helper.make_graph(
        [node_proto(part)], "part", [info(n) for n in names], [info(part.outputs[0])]
    )
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    evaluator = ReferenceEvaluator(helper.make_model(graph, opset_imports=imports))
    (found,) = evaluator.run(None, {name: own[name] for name in names})
    return np.asarray(found)
