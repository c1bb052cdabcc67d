"""Alg: one row per elementwise algorithm of oneDNN, with its meaning and what is known of it.

Functions take an array and two numbers of the same dtype, so that float32 arrays are computed in
float32, operation by operation. Rows marked ``transcendental`` are computed in float64 instead and
rounded once: no two implementations of them agree in the last bit, so no order can be pinned.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Function: TypeAlias = Callable[..., Array]

_INF = math.inf
_ALL = (-_INF, _INF)
_POSITIVE = (0.0, _INF)


@dataclass(frozen=True, slots=True)
class Alg:
    """One elementwise algorithm: y = function(x, alpha, beta).

    Attributes
    ----------
    function : callable
        Takes the array and as many of (alpha, beta) as the algorithm reads.
    parameters : int
        Number of parameters that the algorithm reads: 0, 1 or 2. The others must be zero, so that
        equal steps compare equal.
    image : callable
        (alpha, beta) to the interval that holds every result.
    rises : callable
        (alpha, beta) to whether the function never falls.
    transcendental : bool
        Whether float32 results are rounded once from float64.
    """

    name: str
    function: Function
    parameters: int
    image: Callable[[float, float], tuple[float, float]]
    rises: Callable[[float, float], bool]
    transcendental: bool = False

    def __call__(self, x: Array, alpha: float = 0.0, beta: float = 0.0) -> Array:
        """Apply to a float64 or float32 array; the result has the same dtype."""
        kind = np.float64 if self.transcendental else x.dtype.type
        parameters = [kind(value) for value in (alpha, beta)[: self.parameters]]
        y = self.function(x.astype(kind, copy=False), *parameters)
        return np.asarray(y, dtype=x.dtype)


def _relu(x: Array, alpha: Array) -> Array:
    # Kernels use max for a zero slope, and 0 * -inf is not a number.
    return np.maximum(x, alpha) if alpha == 0 else np.where(x > 0, x, alpha * x)


def _elu(x: Array, alpha: Array) -> Array:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _linear(x: Array, alpha: Array, beta: Array) -> Array:
    return np.asarray(alpha * x + beta)


def _soft_relu(x: Array, alpha: Array) -> Array:
    return np.asarray(np.logaddexp(0.0, alpha * x) / alpha)


def _hardsigmoid(x: Array, alpha: Array, beta: Array) -> Array:
    return np.asarray(np.clip(alpha * x + beta, x.dtype.type(0), x.dtype.type(1)))


def _hardswish(x: Array, alpha: Array, beta: Array) -> Array:
    return np.asarray(x * _hardsigmoid(x, alpha, beta))


def _logistic(x: Array) -> Array:
    # Two branches: exp never overflows, and small results keep their relative precision.
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


def _swish(x: Array, alpha: Array) -> Array:
    return x * _logistic(alpha * x)


def _mish(x: Array) -> Array:
    return x * np.tanh(np.logaddexp(0.0, x))


def _gelu_tanh(x: Array) -> Array:
    return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)))


def _gelu_erf(x: Array) -> Array:
    erf = np.frompyfunc(math.erf, 1, 1)(x / math.sqrt(2.0))
    return 0.5 * x * (1.0 + np.asarray(erf, dtype=np.float64))


def _pow(x: Array, alpha: Array, beta: Array) -> Array:
    return np.asarray(alpha * np.power(x, beta))


def _clip(x: Array, alpha: Array, beta: Array) -> Array:
    return np.minimum(np.maximum(x, alpha), beta)


def _always(_: float, __: float) -> bool:
    return True


def _never(_: float, __: float) -> bool:
    return False


def _alpha_not_negative(alpha: float, _: float) -> bool:
    return alpha >= 0.0


def _image(lo: float, hi: float) -> Callable[[float, float], tuple[float, float]]:
    return lambda _alpha, _beta: (lo, hi)


def _relu_image(alpha: float, _: float) -> tuple[float, float]:
    return _ALL if alpha > 0.0 else _POSITIVE


def _elu_image(alpha: float, _: float) -> tuple[float, float]:
    return (min(-alpha, 0.0), _INF)


def _soft_relu_image(alpha: float, _: float) -> tuple[float, float]:
    return _POSITIVE if alpha > 0.0 else (-_INF, 0.0)


def _swish_image(alpha: float, _: float) -> tuple[float, float]:
    # The minimum of x * logistic(x) is -0.27847.
    return (-0.2785 / alpha, _INF) if alpha > 0.0 else _ALL


def _clip_image(alpha: float, beta: float) -> tuple[float, float]:
    return (alpha, beta)


_UNIT = _image(0.0, 1.0)
_ANY = _image(*_ALL)
_NOT_NEGATIVE = _image(*_POSITIVE)

_ROWS = (
    Alg("relu", _relu, 1, _relu_image, _alpha_not_negative),
    Alg("tanh", np.tanh, 0, _image(-1.0, 1.0), _always, transcendental=True),
    Alg("elu", _elu, 1, _elu_image, _alpha_not_negative, transcendental=True),
    Alg("square", np.square, 0, _NOT_NEGATIVE, _never),
    Alg("abs", np.abs, 0, _NOT_NEGATIVE, _never),
    Alg("sqrt", np.sqrt, 0, _NOT_NEGATIVE, _always),
    Alg("linear", _linear, 2, _ANY, _alpha_not_negative),
    Alg("soft_relu", _soft_relu, 1, _soft_relu_image, _always, transcendental=True),
    Alg("hardsigmoid", _hardsigmoid, 2, _UNIT, _alpha_not_negative),
    Alg("logistic", _logistic, 0, _UNIT, _always, transcendental=True),
    Alg("exp", np.exp, 0, _NOT_NEGATIVE, _always, transcendental=True),
    Alg("gelu_tanh", _gelu_tanh, 0, _image(-0.171, _INF), _never, transcendental=True),
    Alg("gelu_erf", _gelu_erf, 0, _image(-0.171, _INF), _never, transcendental=True),
    Alg("swish", _swish, 1, _swish_image, _never, transcendental=True),
    Alg("log", np.log, 0, _ANY, _always, transcendental=True),
    Alg("clip", _clip, 2, _clip_image, _always),
    Alg("clip_v2", _clip, 2, _clip_image, _always),
    Alg("pow", _pow, 2, _ANY, _never, transcendental=True),
    Alg("round", np.rint, 0, _ANY, _always),
    Alg("mish", _mish, 0, _image(-0.309, _INF), _never, transcendental=True),
    Alg("hardswish", _hardswish, 2, _ANY, _never),
)

ALGS: dict[str, Alg] = {row.name: row for row in _ROWS}
