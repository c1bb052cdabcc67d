"""The bounds of what kernels make of functions, measured again on whatever runs here."""

from __future__ import annotations

import numpy as np
import pytest

from pyonednn_q import native
from pyonednn_q.expr.algs import ALGS
from pyonednn_q.native import runtime
from pyonednn_q.predict.float_bounds import BOUNDS, level, spread
from pyonednn_q.primitive.attr import Attr
from pyonednn_q.primitive.problem import EltwiseProblem
from pyonednn_q.primitive.tensor import TensorSpec

POINTS = 1 << 18
# Functions with parameters: some of them.
PARAMETERS = {
    "elu": [(0.37, 0.0), (-2.0, 0.0)],
    "swish": [(1.0, 0.0), (0.05, 0.0), (1e-3, 0.0), (1e-5, 0.0), (-1.0, 0.0)],
    "soft_relu": [(1.0, 0.0), (-0.5, 0.0), (10.0, 0.0)],
    "pow": [(1.3, 2.0), (1.3, 0.5), (-1.3, 1.7), (1.0, -1.0), (1.3, 0.0)],
}


def points(alg: str) -> np.ndarray:
    """Floats of every magnitude, half of them where functions bend."""
    rng = np.random.default_rng(0)
    far = np.exp2(rng.uniform(-100, 100, POINTS // 4))
    near = np.exp2(rng.uniform(-10, 7, POINTS - POINTS // 4))
    x = np.concatenate([far, near]) * rng.choice([-1.0, 1.0], POINTS)
    return np.asarray(np.abs(x) if alg in {"log", "pow"} else x, dtype=np.float32)


@pytest.mark.parametrize("alg", sorted(BOUNDS))
def test_kernels_stay_within_bounds_that_halves_would_not_hold(alg: str) -> None:
    x, worst = points(alg), 0.0
    for alpha, beta in PARAMETERS.get(alg, [(0.0, 0.0)]):
        spec = TensorSpec.dense(x.shape, "f32")
        call = native.prepare(EltwiseProblem(spec, spec, alg, alpha, beta), Attr())
        lo, hi = spread(alg, x, x, alpha, beta, level(call.impl, runtime.isa()))
        got = call(x)
        assert ((lo <= got) & (got <= hi)).all(), f"{call.impl} {alg} {alpha} {beta}"
        with np.errstate(all="ignore"):
            exact = ALGS[alg](
                x.astype(np.float64), float(np.float32(alpha)), float(np.float32(beta))
            )
            room = np.where(got > exact, hi - exact, exact - lo)
            used = np.abs(got - exact) / room
        usual = np.isfinite(used) & (np.abs(exact) > 2.0**-100) & (np.abs(exact) < 2.0**100)
        worst = max(worst, float(used[usual].max()))
    assert worst > 0.5


@pytest.mark.parametrize("alg", sorted(BOUNDS))
def test_ends_hold_what_lies_between_the_ends_of_x(alg: str) -> None:
    rng = np.random.default_rng(1)
    lo = rng.uniform(0.001 if alg in {"log", "pow"} else -6, 4, 300).astype(np.float32)
    hi = lo + rng.uniform(0, 3, 300).astype(np.float32)
    alpha, beta = PARAMETERS.get(alg, [(0.0, 0.0)])[0]
    below, above = spread(alg, lo, hi, alpha, beta, 2)
    for part in np.linspace(0, 1, 40):
        x = lo.astype(np.float64) * (1 - part) + hi.astype(np.float64) * part
        y = ALGS[alg](x, float(np.float32(alpha)), float(np.float32(beta)))
        assert ((below <= y) & (y <= above)).all()
    # No wider than the function itself and two errors.
    both = ALGS[alg](np.linspace(lo, hi, 2000).astype(np.float64), alpha, beta)
    width = both.max(0) - both.min(0)
    assert (above - below <= width + 1e-4 * np.maximum(1, np.abs(both).max(0))).all()
