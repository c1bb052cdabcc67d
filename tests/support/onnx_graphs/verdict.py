"""What became of a model here, beside onnxruntime: equal, refused by name, or a fault."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

import pyonednn_q as pq
from pyonednn_q.models.node_difference import differences
from pyonednn_q.onnx.fused_node import CodeOperation, FusedNode
from pyonednn_q.onnx.model import Model

Array = np.ndarray[Any, Any]
Values = dict[str, Array]

# Of functions that nobody measured, in parts of 2^-24 of the largest value or argument.
FUNCTION_UNITS = 64
# A variance of 0 leaves the root of epsilon to divide by, the mean's error.
NORMAL_UNITS = 64 / np.sqrt(1e-5)
# onnxruntime makes sums of nothing of memory that nobody wrote, and maxima of nothing 0.
_OF_NOTHING = ("ArgM", "Conv", "Gemm", "MatMul", "Reduce", "Global", "MeanVariance")


@dataclass
class Verdict:
    """What became of a model.

    faults: what must not be. refused, refused_network: by what. compared: nodes that were compared
    with onnxruntime. no_oracle: why onnxruntime did not run it.
    """

    faults: list[str] = field(default_factory=list)
    refused: str = ""
    refused_network: str = ""
    compared: int = 0
    no_oracle: str = ""


def judged(
    model: bytes, feeds: Mapping[str, Array], types: Mapping[str, tuple[np.dtype[Any], Any]]
) -> Verdict:
    """Run a model both ways, and compare each node with onnxruntime.

    types: what onnx infers of tensors. Where onnxruntime has others, it says nothing.
    """
    verdict = Verdict()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            _judge(model, dict(feeds), types, verdict)
        except Exception as error:  # which must not be
            verdict.faults.append(f"{type(error).__name__}: {error}"[:400])
    return verdict


def _judge(
    model: bytes, feeds: Values, types: Mapping[str, tuple[np.dtype[Any], Any]], verdict: Verdict
) -> None:
    theirs = {
        name: each
        for name, each in _their_values(model, feeds, verdict).items()
        if (each.dtype, each.shape) == types.get(name, (each.dtype, each.shape))
    }
    try:
        ready = Model(pq.onnx.fuse(pq.onnx.load(model)))
        outputs = ready.run(feeds)
    except pq.Error as error:
        verdict.refused = f"{type(error).__name__}: {error}"
        return
    try:
        network = ready.network()
        of_network = network(*(feeds[name] for name in network.inputs))
    except pq.Error as error:
        verdict.refused_network = f"{type(error).__name__}: {error}"
    else:
        for name, array in of_network.items():
            if not same_bits(array, outputs[name]):
                verdict.faults.append(f"run and network differ: {name}")
    for name, array in outputs.items():
        known = (theirs[name].dtype, theirs[name].shape) if name in theirs else types.get(name)
        if known is not None and (array.dtype, array.shape) != known:
            have = f"ours {array.dtype}{array.shape}"
            verdict.faults.append(f"{name}: {have}, where {known[0]}{known[1]} is right")
    if not verdict.faults:
        verdict.faults += _differing(ready, feeds, theirs, verdict)
        verdict.faults += _written_out(ready, {**feeds, **outputs}, theirs, verdict)
        verdict.faults += _folded(ready, theirs, _of_constants(model), verdict)


def same_bits(ours: Array, theirs: Array) -> bool:
    """Tell whether two arrays are the same; any NaN is any other."""
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return False
    is_float = ours.dtype.kind == "f"
    return bool(np.array_equal(ours, theirs, equal_nan=is_float))


def _their_values(model: bytes, feeds: Values, verdict: Verdict) -> Values:
    proto = onnx.ModelProto.FromString(model)
    names = [each.name for each in proto.graph.output]
    for node in proto.graph.node:
        names += [each for each in node.output if each and each not in names]
    del proto.graph.output[:]
    proto.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in names)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(
            proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        return dict(zip(names, session.run(names, feeds), strict=True))
    except Exception as error:  # of onnxruntime
        verdict.no_oracle = f"{type(error).__name__}: {error}"[:200]
        return {}


def _differing(model: Model, feeds: Values, theirs: Values, verdict: Verdict) -> Iterator[str]:
    values = {**model.graph.constants, **feeds, **theirs}
    nodes = {name: node for node in model.nodes for name in node.outputs}
    for each in differences(model, feeds, theirs):
        verdict.compared += 1
        name, node = each.output, nodes[each.output]
        parts = [part for part in node.parts if part.operator.startswith(_OF_NOTHING)]
        is_empty = any(not values[other].size for other in node.reads)
        if not each.differs or (parts and is_empty) or _is_lost(node, values):
            continue
        if each.unexplained:
            yield f"{node.operator}: {each.unexplained} of {each.values} {name}, {each.words}"
        elif "no error that is known" in each.words and each.arithmetic:
            apart = _beyond(model, node, name, values)
            if apart:
                yield f"{node.operator}: {name} {apart}, {each.words}"


def _written_out(model: Model, values: Values, theirs: Values, verdict: Verdict) -> Iterator[str]:
    """Compare results of operators that became several nodes, between which they have nothing."""
    makers = {node.outputs[0]: node for node in model.nodes}
    known = {*values, *theirs, *model.graph.constants}
    for name in model.graph.outputs:
        node = makers.get(name)
        is_float = values[name].dtype.kind == "f"
        if not is_float or name not in theirs or node is None or known.issuperset(node.reads):
            continue
        verdict.compared += 1
        sizes = [each for each in values.values() if each.dtype.kind == "f"]
        apart = _far(values[name], theirs[name], sizes, FUNCTION_UNITS)
        if apart:
            yield f"written out: {name} {apart}"


def _of_constants(model: bytes) -> set[str]:
    """Return what nodes compute of constants that the model holds, without NaN in them.

    Sums of nothing are left out, of which onnxruntime makes what it finds.
    """
    graph = onnx.ModelProto.FromString(model).graph
    held = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    whole = {n for n, each in held.items() if each.dtype.kind != "f" or not np.isnan(each).any()}
    of_whole = [
        node
        for node in graph.node
        if node.op_type in {"Shape", "Size"} or whole.issuperset(filter(None, node.input))
    ]
    empty = {name for name, each in held.items() if not each.size}
    return {
        name
        for node in of_whole
        if not (node.op_type.startswith(_OF_NOTHING) and empty.intersection(node.input))
        for name in node.output
    }


def _is_lost(node: FusedNode, values: Values) -> bool:
    """Tell whether ONNX does not say what it gives: of NaN, and which scale zeros have."""
    floats = [values[name] for name in node.reads if values[name].dtype.kind == "f"]
    if str(node) == "DynamicQuantizeLinear" and not any(each.any() for each in floats):
        return True
    return any(np.isnan(each).any() for each in floats) and str(node) not in {"IsNaN", "IsInf"}


def _folded(model: Model, theirs: Values, first: set[str], verdict: Verdict) -> Iterator[str]:
    """Compare what was computed beforehand of what the model holds."""
    for name, ours in model.graph.constants.items():
        if name not in theirs or name not in first:
            continue
        verdict.compared += 1
        apart = _far(ours, theirs[name], [], FUNCTION_UNITS)
        if apart:
            yield f"folded: {name} {apart}"


def _beyond(model: Model, node: FusedNode, name: str, values: Values) -> str:
    """Say how far a function without a bound is off, if that is more than float32 leaves."""
    if isinstance(node.runs, CodeOperation):
        return ""
    position = model.nodes.index(node)
    ours = model.calls[position](values)[node.outputs.index(name)]
    sizes = [values[each] for each in node.reads if values[each].dtype.kind == "f"]
    words = ("Normalization", "GRU", "LSTM", "RNN")  # roots of little, and steps in time
    is_long = any(word in part.operator for part in node.parts for word in words)
    return _far(ours, values[name], sizes, NORMAL_UNITS if is_long else FUNCTION_UNITS)


def _far(ours: Array, theirs: Array, sources: list[Array], units: float) -> str:
    """Say how far two results are apart, if that is more than some units of the largest value."""
    if ours.dtype.kind != "f":
        return "" if same_bits(ours, theirs) else "of other numbers"
    if not ours.size:
        return ""
    with np.errstate(all="ignore"):
        same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
        gap = np.abs(ours.astype(np.float64) - theirs)
        gap = np.where(same, 0.0, np.where(np.isnan(gap), np.inf, gap))
        ends = [float(np.nanmax(np.abs(each), initial=0.0)) for each in (theirs, *sources)]
        terms = [each.shape[-1] if each.ndim else 1 for each in sources]
        terms += [each.size // max(1, theirs.size) for each in sources]
    unit = float(np.finfo(ours.dtype).eps) / 2
    allowed = unit * (units + max([1, *terms])) * max([1.0, *ends])
    worst = float(gap.max())
    return "" if worst <= allowed else f"{worst:.3g} apart where {allowed:.3g} would do"
