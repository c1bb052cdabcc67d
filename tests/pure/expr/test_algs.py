"""What the table of functions says of each, against its values on a grid."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pyonednn_q.expr.algs import ALGS

GRID = np.arange(-2048, 2049) / 32.0
POSITIVE = GRID[GRID > 0]
PARAMETERS: dict[str, list[tuple[float, float]]] = {
    "relu": [(0.0, 0.0), (0.25, 0.0), (-0.5, 0.0)],
    "elu": [(0.0, 0.0), (2.0, 0.0), (-2.0, 0.0)],
    "linear": [(0.0, 3.0), (0.5, -1.0), (-0.5, 1.0)],
    "soft_relu": [(1.0, 0.0), (-1.0, 0.0), (4.0, 0.0)],
    "hardsigmoid": [(0.0, 0.25), (0.25, 0.5), (-0.25, 0.5)],
    "hardswish": [(1 / 6, 0.5), (-0.25, 0.5)],
    "swish": [(1.0, 0.0), (4.0, 0.0), (-1.0, 0.0)],
    "clip": [(-1.0, 6.0)],
    "clip_v2": [(-1.0, 6.0)],
    "pow": [(2.0, 2.0), (-1.0, 0.5)],
}
CASES = [(alg, *pair) for alg in ALGS for pair in PARAMETERS.get(alg, [(0.0, 0.0)])]
# Ends that a function comes near to, where its image has ends at all.
NEAR: dict[str, float] = {"gelu_tanh": 1e-3, "gelu_erf": 2e-3, "mish": 2e-4, "swish": 1e-4}
NEVER_SAID_TO_RISE = {"hardswish", "pow", "swish"}


@pytest.mark.parametrize(("alg", "alpha", "beta"), CASES)
def test_images_hold_all_values_and_little_else(alg: Any, alpha: float, beta: float) -> None:
    x = POSITIVE if alg in {"log", "sqrt", "pow"} else GRID
    y = ALGS[alg](x, alpha, beta)
    lo, hi = ALGS[alg].image(alpha, beta)
    assert lo <= y.min() <= y.max() <= hi
    if np.isfinite(lo) and not (alg in {"linear", "hardsigmoid"} and alpha == 0.0):
        assert y.min() - lo <= NEAR.get(alg, 0.2)
    if np.isfinite(hi) and not (alg == "hardsigmoid" and alpha == 0.0):
        assert hi - y.max() <= 0.2


@pytest.mark.parametrize(("alg", "alpha", "beta"), CASES)
def test_a_function_that_is_said_to_rise_never_falls(alg: Any, alpha: float, beta: float) -> None:
    x = POSITIVE if alg in {"log", "sqrt", "pow"} else GRID
    steps = np.diff(ALGS[alg](x, alpha, beta))
    rises = ALGS[alg].rises(alpha, beta)
    if alg in NEVER_SAID_TO_RISE:
        assert not rises
    else:
        assert rises is bool((steps >= 0.0).all())


def test_exact_functions_keep_float32_and_others_are_rounded_once() -> None:
    x = (GRID / 7.0).astype(np.float32)
    for name, alg in ALGS.items():
        if name in {"log", "sqrt", "pow"}:
            continue
        alpha, beta = PARAMETERS.get(name, [(0.0, 0.0)])[-1]
        y = alg(x, alpha, beta)
        assert y.dtype == np.float32
        if alg.transcendental:
            assert np.array_equal(y, alg(x.astype(np.float64), alpha, beta).astype(np.float32))


@pytest.mark.parametrize("alg", ["exp", "log", "tanh"])
def test_float32_results_are_the_nearest(alg: Any) -> None:
    """But for those next to a tie, which float64 may take for one."""
    x = np.random.default_rng(4).uniform(0.01, 20.0, 5000).astype(np.float32)
    real = np.array([getattr(math, alg)(float(value)) for value in x])
    assert np.array_equal(ALGS[alg](x), real.astype(np.float32))


def test_parameters_that_are_not_given_are_0() -> None:
    assert ALGS["linear"](np.array([1.5, -2.0]), 2.0).tolist() == [3.0, -4.0]
    assert ALGS["linear"](np.array([1.5, -2.0])).tolist() == [0.0, 0.0]


def test_float32_is_enough_for_what_takes_no_series() -> None:
    """All others are computed in float64, then rounded."""
    by_series = {"tanh", "elu", "soft_relu", "logistic", "exp", "gelu_tanh", "gelu_erf", "swish"}
    by_series |= {"log", "pow", "mish"}
    assert {name for name, alg in ALGS.items() if alg.transcendental} == by_series
