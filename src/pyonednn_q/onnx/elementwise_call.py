"""Functions of one place by their public meaning in NumPy, where the package onnx is not installed.

So tables of codes are made of what networks hold: arithmetic as float32 rounds it, functions of
oneDNN's table (`expr.algs`), quantizers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.expr.algs import ALGS
from pyonednn_q.expr.steps import Affine, Eltwise
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import GraphNode
from pyonednn_q.graph.kind import Kind
from pyonednn_q.onnx.linear import dequantize_linear, quantize_linear

__all__ = ["elementwise_call"]

Values = dict[str, Array]

_OF_TWO: Mapping[Kind, Callable[[Array, Array], Array]] = MappingProxyType(
    {
        kinds.ADD: np.add,
        kinds.SUB: np.subtract,
        kinds.MUL: np.multiply,
        kinds.DIV: np.divide,
        kinds.MAX: np.maximum,
        kinds.MIN: np.minimum,
        kinds.PRELU: lambda x, slope: np.where(x >= 0, x, slope * x),
    }
)
_OF_ONE: Mapping[Kind, Callable[[Array], Array]] = MappingProxyType(
    {
        kinds.EXP: ALGS["exp"],
        kinds.IDENTITY: np.asarray,
        kinds.LOG: ALGS["log"],
        kinds.RECIPROCAL: np.reciprocal,
        kinds.ROUND: np.rint,
        kinds.SQRT: ALGS["sqrt"],
    }
)


def elementwise_call(node: GraphNode) -> Callable[[Values], tuple[Array, ...]] | None:
    """Return a call of one node; None if it is not an elementwise float32 function.

    Parameters
    ----------
    node : GraphNode
        A node of opset 13 or later.
    """
    function = _function(node)
    if function is None or len(node.outputs) != 1:
        return None

    def call(values: Values) -> tuple[Array, ...]:
        inputs = [values[name] if name else None for name in node.inputs]
        with np.errstate(all="ignore"):
            return (np.asarray(function(*inputs)),)

    return call


def _function(node: GraphNode) -> Callable[..., Array] | None:
    row, told = node.row, node.attributes
    if row.is_quantizer and not node.domain:
        run = quantize_linear if row is kinds.QUANTIZE else dequantize_linear
        return lambda *inputs: run(*inputs, **told)
    if row is kinds.CLIP:
        return _clipped
    step = None if row.step is None else row.step(told)
    if isinstance(step, Eltwise):
        alg, numbers = ALGS[step.alg], (step.alpha, step.beta)
        return lambda x: alg(x, *numbers)
    if isinstance(step, Affine):  # the opposite
        return np.negative
    return _OF_TWO.get(row) or _OF_ONE.get(row)


def _clipped(x: Array, lo: Array | None = None, hi: Array | None = None) -> Array:
    x = x if lo is None else np.maximum(x, lo)
    return x if hi is None else np.minimum(x, hi)
