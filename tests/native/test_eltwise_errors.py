"""The oracle's table of kernel errors, measured again on whatever runs here."""

from __future__ import annotations

import numpy as np
import pytest

from pyonednn_q import native
from pyonednn_q.primitive.attr import Attr
from pyonednn_q.primitive.problem import EltwiseProblem
from pyonednn_q.primitive.tensor import TensorSpec
from support import oracle_eltwise
from support.oracle_tracked import UNIT

POINTS = 1 << 18


def grid(alg: str) -> np.ndarray:
    """Points over the measured domain, half of them evenly spread and half dense near zero."""
    rng = np.random.default_rng(0)
    wide = rng.uniform(-oracle_eltwise.MEASURED_DOMAIN, oracle_eltwise.MEASURED_DOMAIN, POINTS // 2)
    near = np.exp2(rng.uniform(-10, 3.5, POINTS // 2)) * rng.choice([-1.0, 1.0], POINTS // 2)
    x = np.concatenate([wide, near]).astype(np.float32)
    return np.maximum(np.abs(x), oracle_eltwise.SMALLEST_LOG) if alg == "log" else x


def level_of(impl: str) -> int:
    """Which column of the table a kernel's name belongs to; AVX10 is AVX-512 under a new name."""
    named = impl.replace("avx10", "avx512")
    return next(at for at, level in enumerate(oracle_eltwise.LEVELS) if level in named)


@pytest.mark.parametrize("alg", sorted(oracle_eltwise.TRANSCENDENTAL))
def test_kernel_stays_within_the_table_and_the_table_is_sharp(alg: str) -> None:
    x = grid(alg)
    alpha = 1.0 if alg in {"elu", "swish", "soft_relu"} else 0.0
    spec = TensorSpec.dense(x.shape, "f32")
    call = native.prepare(EltwiseProblem(spec, spec, alg, alpha, 0.0), Attr())
    exact = oracle_eltwise.evaluate(alg, x.astype(np.float64), alpha)
    error = np.abs(call(x).astype(np.float64) - exact)
    if alg == "exp":
        error /= exact
    allowed = oracle_eltwise.KERNEL_ERRORS[alg][level_of(call.impl)]
    worst = float(error.max()) / UNIT
    assert 0.8 * allowed <= worst <= allowed, call.impl
