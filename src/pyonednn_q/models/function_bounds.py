"""Bounds of the errors of float32 functions, in the kernels of either runtime.

Nobody documents the errors of kernels, so they are measured: of oneDNN's in `predict.float_bounds`,
of onnxruntime's in `graph.kinds`, in the same form, units · 2^-24 · max(1, |f(x)|) over floats of
magnitude 2^-30 to 2^7 (`tools/measure/function_errors.py`; tests/models/test_function_bounds.py
measures again). What softmax and layer normalization make of exponentials, sums and a root follows
from those and from the model of `float_bounds`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.dtypes import F32_LEAST, F32_UNIT, Array
from pyonednn_q.expr.algs import ALGS
from pyonednn_q.graph import kinds
from pyonednn_q.predict.float_bounds import BOUNDS, EXP_LOSES

if TYPE_CHECKING:
    from pyonednn_q.graph.graph import GraphNode

__all__ = ["function_bounds", "function_values", "gamma"]

Values = Mapping[str, Array]

_LEAST = 2 * F32_LEAST  # kernels have 0 for smaller exponentials
_ERF = np.frompyfunc(math.erf, 1, 1)
_HARD = 3.0  # where HardSwish becomes 0 and x
_OF_NORM = 8  # a sum with epsilon, a root, gain, product, mean, shift; and that gain in scales
_ROUNDED = 3 * F32_UNIT  # a product with a constant that is rounded itself, and a sum


def gamma(terms: int) -> float:
    """Return the error bound of sums of so many terms, in parts of their magnitudes."""
    return terms * F32_UNIT / (1 - terms * F32_UNIT)


def function_values(part: GraphNode, own: Values) -> Array | None:
    """Return a function's values in float64; None where ONNX's reference has them as exactly."""
    if part.row is kinds.ERF:
        return np.asarray(_ERF(own[part.inputs[0]]), np.float64)
    if part.row is kinds.GELU and _is_erf(part):
        return np.asarray(ALGS["gelu_erf"](own[part.inputs[0]]), np.float64)
    return None


def function_bounds(part: GraphNode, own: Values, off: list[Any], exact: Array) -> Array | None:
    """Return bounds of the errors of a function's float32 results.

    Parameters
    ----------
    part : GraphNode
        The function.
    own : mapping of str to ndarray
        Sources, in float64.
    off : list of ndarray or float
        Largest error of each source.
    exact : ndarray of float64
        Exact values of the node.

    Returns
    -------
    ndarray or None
        Bounds in the dims of `exact`, in real units. None: of functions whose error is not known.
    """
    # Where a divisor is 0, or an exponential leaves float64, a bound is infinite or none.
    with np.errstate(all="ignore"):
        return _bounds(part, own, off, exact)


def _bounds(part: GraphNode, own: Values, off: list[Any], exact: Array) -> Array | None:
    match part.row.bound:
        case "softmax":
            return _of_softmax(part, own[part.inputs[0]], off[0], exact)
        case "layer_norm" | "norm" as norm:
            of_norm = _of_layer_norm if norm == "layer_norm" else _of_batch_norm
            return of_norm(part, own, off, exact)
        case "quotient" if exact.dtype.kind == "f":
            least = np.abs(own[part.inputs[1]].astype(np.float64)) - off[1]
            moved = np.where(least > 0, (off[0] + np.abs(exact) * off[1]) / least, np.inf)
            return np.asarray(moved + 2 * F32_UNIT * (np.abs(exact) + moved))
        case "line":
            return _of_line(part, own[part.inputs[0]], off[0])
        case "hard_swish":
            x = own[part.inputs[0]]
            of_line = np.where(np.abs(x) <= _HARD + off[0], _ROUNDED * (np.abs(x) / 6 + 0.5), 0.0)
            return np.asarray(1.5 * off[0] + np.abs(x) * of_line + 2 * F32_UNIT * np.abs(exact))
        case "exponential":
            return np.asarray(exact * np.expm1(off[0]) + _of_exp(own[part.inputs[0]], exact))
        case "function" if _is_erf(part):
            row = part.row
            units = max((row.units, *(BOUNDS[row.alg].units if row.alg else ())))
            size = np.maximum(1.0, np.abs(exact))
            return np.asarray(row.slope * off[0] + units * F32_UNIT * size)
    return None


def _of_batch_norm(part: GraphNode, own: Values, off: list[Any], exact: Array) -> Array | None:
    """Return the bound of a batch norm, whose gain a layer before it may hold in its scales."""
    if any(part.outputs[1:]):
        return None
    along = (-1, *(1,) * (exact.ndim - 2))
    gain, shift, mean, var = (
        own[name].astype(np.float64).reshape(along) for name in part.inputs[1:5]
    )
    gain = np.abs(gain) / np.sqrt(var + float(part.attributes.get("epsilon", 1e-5)))
    source = np.abs(own[part.inputs[0]].astype(np.float64)) + off[0]
    sizes = gain * (source + np.abs(mean)) + np.abs(shift)
    return np.asarray(gain * off[0] + gamma(_OF_NORM) * (sizes + np.abs(exact)))


def _is_erf(part: GraphNode) -> bool:
    return part.attributes.get("approximate", "none") in {"none", b"none"}


def _of_line(part: GraphNode, x: Array, off: Any) -> Array:  # noqa: ANN401
    alpha = float(part.attributes.get("alpha", 0.2))
    beta = float(part.attributes.get("beta", 0.5))
    return np.asarray(abs(alpha) * off + _ROUNDED * (np.abs(alpha * x) + abs(beta)))


def _of_exp(x: Array, exact: Array) -> Array:
    ours = max(BOUNDS["exp"].units) + max(EXP_LOSES) * np.abs(x)
    return np.asarray(np.maximum(ours, kinds.EXP.units) * F32_UNIT * exact + _LEAST)


def _of_softmax(
    part: GraphNode,
    x: Array,
    off: Any,  # noqa: ANN401
    exact: Array,
) -> Array | None:
    axis = int(part.attributes.get("axis", -1))
    less = x - x.max(axis=axis, keepdims=True)
    powers = np.exp(less)
    # Of x, of the greatest, and of their difference; then of the exponential of what came out.
    moved = np.abs(less) * F32_UNIT + 2 * np.max(off, initial=0.0)
    each = powers * np.expm1(moved) + _of_exp(less, powers) * np.exp(moved)
    total = powers.sum(axis=axis, keepdims=True)
    if not np.allclose(powers / total, exact, rtol=1e-9, atol=0.0):
        return None  # before opset 13 it was one over all axes from there on
    lost = each.sum(axis=axis, keepdims=True) + gamma(x.shape[axis]) * total
    # Of arguments that are off by as much as that, nothing is known.
    least = np.where(total > lost, total - lost, np.nan)
    apart = np.nan_to_num((each + exact * lost) / least, nan=np.inf)
    # A quotient, or a product with a reciprocal: two roundings.
    return np.asarray(apart + 2 * F32_UNIT * (exact + apart))


def _of_layer_norm(part: GraphNode, own: Values, off: list[Any], exact: Array) -> Array | None:
    if any(np.any(each) for each in off[1:]):
        return None
    x = own[part.inputs[0]]
    axes = tuple(range(int(part.attributes.get("axis", -1)) % x.ndim, x.ndim))
    epsilon = float(part.attributes.get("epsilon", 1e-5))
    moved = float(np.max(off[0], initial=0.0))
    most = gamma(math.prod(x.shape[axis] for axis in axes) + 4)

    def mean(of: Array) -> Array:
        return np.asarray(of.mean(axis=axes, keepdims=True))

    apart = x - mean(x) if part.row is kinds.LAYER_NORM else x
    variance, squares = mean(apart * apart), mean(x * x)
    off_mean = most * mean(np.abs(x)) + moved
    # Of the squares' mean less the mean's square, as of the mean of squared distances.
    off_variance = 4 * most * squares + 4 * moved * np.sqrt(variance) + 4 * moved**2
    root = np.sqrt(variance + epsilon)
    least = np.sqrt(np.maximum(variance + epsilon - off_variance, 0.0))
    size = np.abs(apart) / root
    off_normal = (off_mean + moved + F32_UNIT * np.abs(apart)) / least
    off_normal += size * (root / least - 1) + 4 * F32_UNIT * size
    gain = np.abs(own[part.inputs[1]])
    return np.asarray(
        gain * off_normal + 2 * F32_UNIT * (gain * (size + off_normal) + np.abs(exact))
    )
