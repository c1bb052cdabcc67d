"""Nodes after a layer as steps of its chain, up to a value with another reader.

What rounds to codes on the way, as quantizers between a layer and an addition do, is part of the
chain: rounding and its limits are steps, so every value is what the model says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.steps import (
    Affine,
    Binary,
    BinaryAlg,
    Chain,
    Clip,
    Leaf,
    PRelu,
    Round,
    Step,
    Sum,
)
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import GraphNode
from pyonednn_q.onnx.graph_view import CodeTensor, GraphView
from pyonednn_q.onnx.spelled_activations import spelled
from pyonednn_q.qparams import QParams

_MOST_STEPS = 32  # oneDNN's post-ops


@dataclass
class LayerTail:
    """Steps behind a layer, the tensors that they read, and where the values go.

    Attributes
    ----------
    value : str
        The tensor that the last node of the chain makes: codes with `dst_q`, real values without.
    dst_q : QParams or None
        Scale and zero point of the codes.
    steps : list of Step
        Steps in order.
    operands : dict of str to str
        Names of tensors by leaf, and of codes that a Sum reads as ``"residual"``.
    parts : list of GraphNode
        The nodes that it stands for.
    residual : CodeTensor or None
        Tensor that a Sum reads, and the tensor of its real values.
    """

    value: str
    dst_q: QParams | None = None
    steps: list[Step] = field(default_factory=list)
    operands: dict[str, str] = field(default_factory=dict)
    parts: list[GraphNode] = field(default_factory=list)
    residual: CodeTensor | None = None

    @property
    def post(self) -> Chain:
        """The chain."""
        return Chain(*self.steps)


class ChainReader:
    """Reads chains of a graph.

    Parameters
    ----------
    view : GraphView
        View of the graph.
    keep_rounding : bool
        Whether quantizers on the way round; else they only limit.
    """

    def __init__(self, view: GraphView, *, keep_rounding: bool = True) -> None:
        self._view = view
        self._keep_rounding = keep_rounding

    def tail(
        self,
        value: str,
        axis: int,
        *,
        operands: bool = True,
        stores: bool = True,
        passes: bool = False,
    ) -> LayerTail:
        """Return the steps that follow a tensor of real values.

        Parameters
        ----------
        value : str
            The tensor.
        axis : int
            Axis of its channels.
        operands : bool
            Whether steps may read other tensors, and round on the way.
        stores : bool
            Whether values may be stored as codes; else the chain ends where they are quantized.
        passes : bool
            Whether a chain that stores no codes goes on behind those that only its next step reads.
        """
        tail = LayerTail(value)
        while len(tail.steps) < _MOST_STEPS:
            if self._spelled(tail):
                continue
            node = self._view.only_reader(tail.value)
            if node is None:
                break
            if node.row is kinds.QUANTIZE:
                if not ((stores or passes) and self._store(node, tail)):
                    break
                if operands and self._pass(tail, axis):
                    continue
                if not stores:
                    tail.dst_q, tail.value = None, tail.parts.pop().inputs[0]
                break
            if not self._step(node, tail, axis, operands=operands):
                break
        self._settle(tail)
        return tail

    def _store(self, node: GraphNode, tail: LayerTail) -> bool:
        codes = self._view.quantizer(node)
        if codes is None or codes.q.axis is not None or node.inputs[0] != tail.value:
            return False
        tail.dst_q, tail.value = codes.q, codes.name
        tail.parts.append(node)
        return True

    def _pass(self, tail: LayerTail, axis: int) -> bool:
        """Go on behind codes that only the next step of the chain reads."""
        back = self._view.only_reader(tail.value)
        if back is None or back.row is not kinds.DEQUANTIZE:
            return False
        codes, store = self._view.quantizer(back), tail.dst_q
        if codes is None or store is None or codes.q != store:
            return False
        ahead = LayerTail(back.outputs[0], steps=list(tail.steps), operands=dict(tail.operands))
        ahead.residual = tail.residual
        ahead.steps += _rounded(store) if self._keep_rounding else _limited(store)
        reader = self._view.only_reader(ahead.value)
        if reader is None or not self._step(reader, ahead, axis, operands=True):
            return False
        tail.value, tail.dst_q = ahead.value, None
        tail.steps, tail.operands, tail.residual = ahead.steps, ahead.operands, ahead.residual
        tail.parts += [back, *ahead.parts]
        return True

    def _spelled(self, tail: LayerTail) -> bool:
        """Take an activation of several nodes, which read the values more than once."""
        activation = None if tail.dst_q is not None else spelled(self._view, tail.value)
        if activation is None:
            return False
        tail.steps.append(activation.step)
        tail.parts += activation.nodes
        tail.value = activation.value
        return True

    def _step(self, node: GraphNode, tail: LayerTail, axis: int, *, operands: bool) -> bool:
        """Add the step that a node is, if it is one."""
        if any(node.outputs[1:]) or node.domain:
            return False
        try:
            steps = self._constant_step(node, tail.value, axis)
        except ArgumentError:  # constants that no step takes: not finite, lo above hi
            return False
        if steps is None:
            if not operands or not self._operand(node, tail):
                return False
        else:
            tail.steps += steps
        tail.value = node.outputs[0]
        tail.parts.append(node)
        return True

    def _constant_step(self, node: GraphNode, value: str, axis: int) -> list[Step] | None:
        row = node.row
        if row.step is not None:
            return [row.step(node.attributes)]
        if row.is_activation:
            return self._by_constants(node, axis) if node.inputs[0] == value else None
        if not row.is_arithmetic or len(node.inputs) != 2 or len(set(node.inputs)) != 2:
            return None
        is_left = node.inputs[0] == value
        other = node.inputs[1 if is_left else 0]
        array = self._view.float_constant(other)
        constant = self._by_channel(array, value, axis)
        if constant is None or self._view.dims(node.outputs[0]) != self._view.dims(value):
            return None
        match row.chain:
            case "add":
                return [Affine(1.0, constant)]
            case "sub":
                return [Affine(1.0, -constant) if is_left else Affine(-1.0, constant)]
            case "mul":
                return [Affine(constant)]
        return [Affine(1.0 / constant)] if is_left and np.all(constant) else None

    def _by_constants(self, node: GraphNode, axis: int) -> list[Step] | None:
        """Return the steps of what has constants beside its source."""
        match node.row.chain:
            case "clip":
                return self._clip(node)
            case "prelu":
                return self._prelu(node, axis)
            case _:
                return self._batch_norm(node, axis)

    def _clip(self, node: GraphNode) -> list[Step] | None:
        bounds = []
        for at, name in enumerate(("min", "max"), 1):
            limit = -math.inf if name == "min" else math.inf
            if name in node.attributes:  # before opset 11
                limit = node.attributes[name]
            elif node.input(at):
                known = self._view.float_constant(node.input(at))
                if known is None or known.size != 1:
                    return None
                limit = float(known.reshape(()))
            bounds.append(limit)
        if bounds == [-math.inf, math.inf]:
            return []
        return [Clip(*bounds)]

    def _prelu(self, node: GraphNode, axis: int) -> list[Step] | None:
        slope = self._by_channel(self._view.float_constant(node.input(1)), node.inputs[0], axis)
        return None if slope is None else [PRelu(slope)]

    def _batch_norm(self, node: GraphNode, axis: int) -> list[Step] | None:
        known = [self._view.float_constant(node.input(at)) for at in range(1, 5)]
        if axis != 1 or node.attributes.get("training_mode", 0):
            return None
        if any(each is None or each.ndim != 1 for each in known):
            return None
        gain, shift, mean, variance = (np.asarray(each, np.float64) for each in known)
        scale = gain / np.sqrt(
            variance + np.float64(np.float32(node.attributes.get("epsilon", 1e-5)))
        )
        return [Affine(scale, shift - mean * scale)]

    def _by_channel(self, array: Array | None, value: str, axis: int) -> Array | None:
        """Return a constant that broadcasts along channels as a vector, or as one number."""
        dims = self._view.dims(value)
        if array is None or dims is None or array.ndim > len(dims):
            return None
        if array.size == 1:
            return np.asarray(array, np.float64).reshape(())
        shape = (1,) * (len(dims) - array.ndim) + array.shape
        axis %= len(dims)
        if shape[axis] != dims[axis] or math.prod(shape) != shape[axis]:
            return None
        return np.asarray(array, np.float64).reshape(-1)

    def _operand(self, node: GraphNode, tail: LayerTail) -> bool:
        """Add a step that reads another tensor of the same dims."""
        chain = node.row.chain
        if chain not in {"add", "mul", "sub"} or len(set(node.inputs)) != 2:
            return False
        is_left = node.inputs[0] == tail.value
        other = node.inputs[1 if is_left else 0]
        dims, same = self._view.dims(tail.value), self._view.dims(other)
        if dims is None or dims != same or self._view.dtype(other) != "float32":
            return False
        if other in self._view.constants or self._view.float_constant(other) is not None:
            return False
        codes = self._view.dequantized(other)
        is_sum = chain == "add" and tail.residual is None
        if is_sum and codes is not None and codes.q.axis is None:
            q = codes.q
            tail.steps.append(Sum(float(q.scale), int(q.zero_point), q.dtype))
            tail.residual, tail.operands["residual"] = codes, codes.name
            return True
        is_turned = chain == "sub" and not is_left
        if is_turned:
            tail.steps.append(Affine(-1.0))
        name = f"operand{len(tail.operands)}"
        alg: BinaryAlg = "add" if is_turned else chain
        tail.steps.append(Binary(alg, Leaf(name)))
        tail.operands[name] = other
        return True

    @staticmethod
    def _settle(tail: LayerTail) -> None:
        """Let a Sum read codes only where the result has codes: oneDNN wants the same width."""
        if tail.residual is None or tail.dst_q is not None:
            if tail.dst_q is not None:
                same = tail.dst_q.dtype
                tail.steps = [
                    Sum(each.scale, each.zero_point)
                    if isinstance(each, Sum) and each.dtype == same
                    else each
                    for each in tail.steps
                ]
            return
        name = f"operand{len(tail.operands)}"
        tail.steps = [
            Binary("add", Leaf(name)) if isinstance(each, Sum) else each for each in tail.steps
        ]
        del tail.operands["residual"]
        tail.operands[name] = tail.residual.node.outputs[0]


def _rounded(q: QParams) -> list[Step]:
    """Return the steps of quantizing and dequantizing, as ONNX rounds."""
    scale, point = float(q.scale), int(q.zero_point)
    lo, hi = dtypes.qmin(q.dtype) - point, dtypes.qmax(q.dtype) - point
    return [Affine(1.0 / scale), Round(), Clip(lo, hi), Affine(scale)]


def _limited(q: QParams) -> list[Step]:
    """Return the limits of quantizing: a relu may be nothing but that."""
    scale, point = float(q.scale), int(q.zero_point)
    lo, hi = dtypes.qmin(q.dtype) - point, dtypes.qmax(q.dtype) - point
    return [Clip(lo * scale, hi * scale)]
