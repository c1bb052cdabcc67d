"""Steps of a chain as nodes of ONNX: what `chain_reader` reads, the other way."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.steps import Affine, Binary, Clip, Eltwise, Leaf, PRelu, Round, Step, Sum
from pyonednn_q.expr.vec import Vec
from pyonednn_q.graph import kinds
from pyonednn_q.graph.kind import Kind
from pyonednn_q.onnx.graph_edit import GraphEdit
from pyonednn_q.shown import shown

__all__ = ["BINARY", "ChainWriter"]

BINARY = {
    "add": kinds.ADD,
    "sub": kinds.SUB,
    "mul": kinds.MUL,
    "div": kinds.DIV,
    "max": kinds.MAX,
    "min": kinds.MIN,
}
# Functions whose numbers ONNX has as attributes, in this order.
_FUNCTIONS = {
    "abs": (kinds.ABS, ()),
    "elu": (kinds.ELU, ("alpha",)),
    "exp": (kinds.EXP, ()),
    "hardsigmoid": (kinds.HARD_SIGMOID, ("alpha", "beta")),
    "log": (kinds.LOG, ()),
    "logistic": (kinds.SIGMOID, ()),
    "mish": (kinds.MISH, ()),
    "relu": (kinds.LEAKY_RELU, ("alpha",)),
    "round": (kinds.ROUND, ()),
    "sqrt": (kinds.SQRT, ()),
    "tanh": (kinds.TANH, ()),
}
_WITHOUT_NUMBERS = (kinds.RELU, kinds.HARD_SWISH, kinds.SOFTPLUS)


class ChainWriter:
    """Writes a step of a chain.

    Parameters
    ----------
    writing : GraphEdit
        Graph to which nodes are added.
    value, dst : str
        The tensor that it reads, and the one that it makes.
    ones : tuple of int
        Dims behind those of the channels, each 1.
    others : mapping of str to str
        Tensors by the names of leaves, and what a Sum reads as ``"residual"``.
    """

    def __init__(
        self,
        writing: GraphEdit,
        value: str,
        dst: str,
        ones: tuple[int, ...] = (),
        others: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._writing, self._value, self._dst = writing, value, dst
        self._ones, self._others = ones, others

    def write(self, step: Step) -> str:
        """Write the step's nodes, and return its result."""
        match step:
            case Affine():
                self._affine(step.scale, step.shift)
            case Clip():
                self._clip(step.lo, step.hi)
            case Round():
                self._node(kinds.ROUND, self._value)
            case PRelu():
                self._node(kinds.PRELU, self._value, self._vec(step.slope))
            case Sum():
                self._sum(step)
            case Binary():
                self._binary(step)
            case Eltwise():
                self._eltwise(step)
            case _:
                self._refuse(str(step))
        return self._dst

    def _node(self, kind: Kind, *reads: str, dst: str = "", **attributes: object) -> str:
        dst = dst or self._dst
        name = f"{dst}:{kind.name}"  # the layer has that of the last result
        return self._writing.node(kind, reads, dst, name, **attributes)

    def _inner(self) -> str:
        return self._writing.free(f"{self._dst}:part")

    def _refuse(self, got: str) -> None:
        raise ArgumentError("model", f"{got} in the chain of {shown(self._dst)}", "a step of ONNX")

    def _number(self, value: float) -> str:
        return self._writing.constant(f"{self._dst}:number", np.asarray(np.float32(value)))

    def _vec(self, vec: Vec) -> str:
        values = np.asarray(vec.values(), np.float32)
        values = values.reshape(()) if vec.is_per_tensor else values.reshape(-1, *self._ones)
        return self._writing.constant(f"{self._dst}:constant", values)

    def _affine(self, scale: Vec, shift: Vec) -> None:
        value = self._value
        has_shift = not shift.is_all(0.0)
        if not scale.is_all(1.0) or not has_shift:
            value = self._node(
                kinds.MUL, value, self._vec(scale), dst=self._inner() if has_shift else ""
            )
        if has_shift:
            self._node(kinds.ADD, value, self._vec(shift))

    def _clip(self, lo: Vec, hi: Vec) -> None:
        if lo.is_per_tensor and hi.is_per_tensor:
            reads = [self._number(v.least) if math.isfinite(v.least) else "" for v in (lo, hi)]
            self._node(kinds.CLIP, self._value, *reads)
            return
        above = self._node(kinds.MAX, self._value, self._vec(lo), dst=self._inner())
        self._node(kinds.MIN, above, self._vec(hi))

    def _sum(self, step: Sum) -> None:
        other = self._others.get("residual")
        if other is None or step.dtype is not None:
            self._refuse(f"{step} without a tensor of float32")
            return
        if step.zero_point:
            other = self._node(kinds.SUB, other, self._number(step.zero_point), dst=self._inner())
        if step.scale != 1.0:
            other = self._node(kinds.MUL, other, self._number(step.scale), dst=self._inner())
        self._node(kinds.ADD, self._value, other)

    def _binary(self, step: Binary) -> None:
        if step.alg not in BINARY:
            self._refuse(str(step))
        operand = step.operand
        if isinstance(operand, Leaf):
            if operand.extent != "full" or operand.dtype != "f32":
                self._refuse(f"{operand.dtype} {operand.extent} of {step}")
            other = self._others[operand.name]
        else:
            other = self._vec(operand)
        self._node(BINARY[step.alg], self._value, other)

    def _eltwise(self, step: Eltwise) -> None:
        value = self._value
        for kind in _WITHOUT_NUMBERS:
            if kind.step is not None and kind.step({}) == step:
                self._node(kind, value)
                return
        if step.alg in _FUNCTIONS:
            kind, names = _FUNCTIONS[step.alg]
            self._node(kind, value, **{name: getattr(step, name) for name in names})
            return
        match step.alg:
            case "gelu_erf" | "gelu_tanh":
                how = "tanh" if step.alg == "gelu_tanh" else "none"
                self._node(kinds.GELU, value, approximate=how)
            case "hardswish" | "swish":
                self._node(kinds.MUL, value, self._gate(step))
            case "clip" | "clip_v2":
                self._clip(Vec(step.alpha), Vec(step.beta))
            case "linear":
                self._affine(Vec(step.alpha), Vec(step.beta))
            case "square":
                self._node(kinds.MUL, value, value)
            case _:
                self._refuse(str(step))

    def _gate(self, step: Eltwise) -> str:
        """Write what x is multiplied with in a hardswish or swish."""
        value, alpha = self._value, step.alpha
        if step.alg == "hardswish":
            numbers = {"alpha": alpha, "beta": step.beta}
            return self._node(kinds.HARD_SIGMOID, value, dst=self._inner(), **numbers)
        if alpha != 1.0:
            value = self._node(kinds.MUL, value, self._number(alpha), dst=self._inner())
        return self._node(kinds.SIGMOID, value, dst=self._inner())
