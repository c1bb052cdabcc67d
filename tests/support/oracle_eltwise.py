"""Every eltwise algorithm in float64, with what is known about the kernels' float32 error.

Formulas: the table of oneDNN's eltwise page. Kernel errors of the transcendental algorithms are
maxima over every fifth float32 of magnitude 2**-10 to 12, measured on the kernels for SSE41, AVX2
and AVX-512 in 3.13.2 (3.7.2 has the same); tests/native re-measures them. They are absolute: near a
zero of the function a relative error has no useful maximum. Outside the measured domain the error
is infinite, which no comparison accepts.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from support.oracle_tracked import (
    SUBNORMAL,
    UNIT,
    Tracked,
    monotone,
    mul,
    multiply_add,
    rounded,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.oracle_tracked import F64

    Formula = Callable[[F64, float, float], F64]

MEASURED_DOMAIN = 12.0
SMALLEST_LOG = 2.0**-10  # the smallest x measured for log
LEVELS = ("sse41", "avx2", "avx512")
# alg -> largest |kernel - exact| in units of 2**-24 (half an ulp of 1.0) on each level, rounded up.
# SSE41 has no fused multiply-add; AVX-512 has a polynomial of its own for gelu_erf.
KERNEL_ERRORS: dict[str, tuple[float, float, float]] = {
    "tanh": (1.25, 1.25, 1.25),
    "logistic": (1.6, 1.6, 1.6),
    "swish": (14, 14, 14),
    "elu": (2.1, 1.9, 1.9),  # times |alpha|
    "gelu_tanh": (8.5, 8.5, 8.5),
    "gelu_erf": (8, 6.5, 22),
    "mish": (21.5, 21.5, 21.5),
    "soft_relu": (19.5, 18, 18),
    "log": (125, 62, 62),
    "exp": (11.5, 3.1, 3.1),  # relative to its value, for it grows
}
TRANSCENDENTAL = frozenset(KERNEL_ERRORS)
_GELU_TANH_FIT = 0.044715
_ERF = np.frompyfunc(math.erf, 1, 1)


def _logistic(x: F64, alpha: float, beta: float) -> F64:
    del alpha, beta
    return np.asarray(1.0 / (1.0 + np.exp(-x)), dtype=np.float64)


def _soft_relu(x: F64, alpha: float, beta: float) -> F64:
    del beta
    return np.asarray(np.logaddexp(0.0, alpha * x) / alpha, dtype=np.float64)


def _gelu_tanh(x: F64, alpha: float, beta: float) -> F64:
    del alpha, beta
    inner = math.sqrt(2 / math.pi) * x * (1 + _GELU_TANH_FIT * x * x)
    return np.asarray(0.5 * x * (1 + np.tanh(inner)), dtype=np.float64)


def _gelu_erf(x: F64, alpha: float, beta: float) -> F64:
    del alpha, beta
    return 0.5 * x * (1 + np.asarray(_ERF(x / math.sqrt(2)), dtype=np.float64))


def _hardsigmoid(x: F64, alpha: float, beta: float) -> F64:
    return np.clip(alpha * x + beta, 0.0, 1.0)


_FORMULAS: dict[str, Formula] = {
    "relu": lambda x, a, _: np.where(x > 0, x, a * x),
    "tanh": lambda x, _, __: np.tanh(x),
    "elu": lambda x, a, _: np.where(x > 0, x, a * np.expm1(np.minimum(x, 0.0))),
    "square": lambda x, _, __: x * x,
    "abs": lambda x, _, __: np.abs(x),
    "sqrt": lambda x, _, __: np.sqrt(x),
    "linear": lambda x, a, b: a * x + b,
    "soft_relu": _soft_relu,
    "hardsigmoid": _hardsigmoid,
    "logistic": _logistic,
    "exp": lambda x, _, __: np.exp(x),
    "gelu_tanh": _gelu_tanh,
    "gelu_erf": _gelu_erf,
    "swish": lambda x, a, _: x * _logistic(a * x, 0, 0),
    "log": lambda x, _, __: np.log(x),
    "clip": lambda x, a, b: np.minimum(np.maximum(x, a), b),
    "clip_v2": lambda x, a, b: np.minimum(np.maximum(x, a), b),
    "pow": lambda x, a, b: a * np.power(x, b),
    "round": lambda x, _, __: np.rint(x),
    "mish": lambda x, _, __: x * np.tanh(np.logaddexp(0.0, x)),
    "hardswish": lambda x, a, b: x * _hardsigmoid(x, a, b),
}
ALGS = frozenset(_FORMULAS)
# Bounds of |f(x) - f(x')| / |x - x'| for the functions that are not monotone.
_SLOPES: dict[str, float] = {
    "abs": 1.0,
    "gelu_tanh": 1.13,
    "gelu_erf": 1.13,
    "swish": 1.1,
    "mish": 1.1,
}


def kernel_error(alg: str) -> float:
    """Return the largest error of any level, in units of 2**-24.

    A process of any level may run kernels of the levels below, and an oracle is not told which.
    """
    return max(KERNEL_ERRORS[alg])


def evaluate(alg: str, x: F64, alpha: float = 0.0, beta: float = 0.0) -> F64:
    """Return the exact meaning of an eltwise algorithm on float64 values."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return np.asarray(_FORMULAS[alg](x, alpha, beta), dtype=np.float64)


def apply(alg: str, x: Tracked, alpha: float, beta: float) -> Tracked:
    """Apply one eltwise step to a tracked value; alpha and beta are float32 in the library."""
    alpha, beta = float(np.float32(alpha)), float(np.float32(beta))
    if alg in _ROUNDED:
        return _ROUNDED[alg](x, alpha, beta)
    value = evaluate(alg, x.value, alpha, beta)
    if alg in _SLOPES:
        carried = Tracked(value, x.error * _SLOPES[alg])
    else:
        lo = evaluate(alg, x.value - x.error, alpha, beta)
        hi = evaluate(alg, x.value + x.error, alpha, beta)
        carried = monotone(x, lo, value, hi)
    if alg in {"abs", "clip", "clip_v2", "round"}:
        return carried  # selects or rounds to an integer: no rounding of its own
    return Tracked(value, carried.error + _kernel_error(alg, x.value, value, alpha, beta))


def _kernel_error(alg: str, x: F64, y: F64, alpha: float, beta: float) -> F64:
    if alg == "sqrt":
        return rounded(y, np.zeros_like(y)).error
    if alg == "pow":
        # Powers with a dedicated instruction are exact when representable, others never are.
        plain = beta in {0.0, 0.5, 1.0, 2.0}
        root = evaluate("pow", x, 1.0, beta)
        first = rounded(root, np.zeros_like(y)).error * abs(alpha)
        own = rounded(y, first).error
        return own if plain else own + 2 * UNIT * np.abs(y)
    if alg == "exp":
        bound = kernel_error(alg) * UNIT * y + SUBNORMAL
    else:
        bound = np.full_like(y, kernel_error(alg) * UNIT * (abs(alpha) if alg == "elu" else 1.0))
    measured = np.abs(x * (alpha if alg in {"swish", "soft_relu"} else 1.0)) <= MEASURED_DOMAIN
    if alg == "log":
        measured &= x >= SMALLEST_LOG
    bound = np.where(measured, bound, np.inf)
    return np.where(x > 0, 0.0, bound) if alg == "elu" else bound


def _relu(x: Tracked, alpha: float, beta: float) -> Tracked:
    del beta
    below = mul(x, Tracked.exact(alpha))
    value = np.where(x.value > 0, x.value, below.value)
    # Near zero either side may be taken; both lie within the larger slope of each other.
    error = np.where(x.value > 0, x.error * max(1.0, abs(alpha)), below.error)
    error = np.where((x.value <= 0) & (x.error > 0), np.maximum(error, x.error), error)
    return Tracked(value, error)


def _square(x: Tracked, alpha: float, beta: float) -> Tracked:
    del alpha, beta
    return mul(x, x)


def _linear(x: Tracked, alpha: float, beta: float) -> Tracked:
    return multiply_add(x, Tracked.exact(alpha), Tracked.exact(beta))


def _hardsigmoid_step(x: Tracked, alpha: float, beta: float) -> Tracked:
    inner = _linear(x, alpha, beta)
    return Tracked(np.clip(inner.value, 0.0, 1.0), inner.error)


def _hardswish(x: Tracked, alpha: float, beta: float) -> Tracked:
    return mul(x, _hardsigmoid_step(x, alpha, beta))


_ROUNDED: dict[str, Callable[[Tracked, float, float], Tracked]] = {
    "relu": _relu,
    "square": _square,
    "linear": _linear,
    "hardsigmoid": _hardsigmoid_step,
    "hardswish": _hardswish,
}
