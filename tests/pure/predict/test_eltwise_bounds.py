"""Bounds of functions: as the page of kernel models states them, rounded outward, over all of x."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pyonednn_q.expr.algs import ALGS
from pyonednn_q.predict.float_bounds import BOUNDS, LEVELS, level, spread
from pyonednn_q.primitive.isa import InstructionSet

Array = np.ndarray[Any, Any]
UNIT, LEAST = 2.0**-24, 2.0**-125
# Functions with parameters: some of them.
PARAMETERS: dict[str, list[tuple[float, float]]] = {
    "elu": [(0.375, 0.0), (-2.0, 0.0)],
    "swish": [
        (1.0, 0.0),
        (-1.0, 0.0),
        (2.0**-6, 0.0),
        (2.0**-7, 0.0),
        (-(2.0**-7), 0.0),
        (0.0, 0.0),
    ],
    "soft_relu": [(1.0, 0.0), (-0.5, 0.0), (4.0, 0.0)],
    "pow": [(1.25, 2.0), (1.25, 0.5), (-1.25, 1.75), (1.0, -1.0), (1.25, 0.0)],
}
CASES = [(alg, *pair) for alg in BOUNDS for pair in PARAMETERS.get(alg, [(0.0, 0.0)])]
EXP_LOSES = (0.95, 0.042, 0.042)


def off(alg: str, x: float, y: float, alpha: float, at: int) -> float:
    """How far a kernel may be off, as docs/reference/kernel_models.md has it."""
    units = BOUNDS[alg].units[at]
    if alg == "exp":
        return (units + EXP_LOSES[at] * abs(x)) * UNIT * abs(y) + LEAST
    if alg == "pow":
        return units * UNIT * abs(y) + LEAST
    if alg == "elu":
        return 0.0 if x > 0 else units * UNIT * abs(alpha)
    if alg == "soft_relu":
        return (130.0 if alpha * x < -16 else units) * UNIT * max(1 / abs(alpha), abs(y))
    if alg == "swish" and abs(alpha) < 0.01:
        # A logistic function with the error of exp, of a product that was rounded, times x.
        return (6 + (1 + EXP_LOSES[at]) * abs(alpha * x)) * UNIT * abs(y) + abs(x) * LEAST
    return units * UNIT * max(1.0, abs(y))


def outward(value: float, way: float) -> float:
    """Round to float32, away from what lies between."""
    near = np.float32(value)
    beyond = float(near) > value if way < 0 else float(near) < value
    return float(np.nextafter(near, np.float32(way * math.inf)) if beyond else near)


def places(alg: str) -> list[float]:
    small = [0.0, 2.0**-20, 0.25, 0.75, 1.0, 1.5, 3.0, 7.5, 15.0, 16.0, 17.0, 33.0]
    if alg == "log":
        return small[1:]
    return small if alg == "pow" else [*small, *(-x for x in small[1:])]


@pytest.mark.parametrize(("alg", "alpha", "beta"), CASES)
@pytest.mark.parametrize("at", range(3))
def test_a_place_has_the_ends_that_the_page_states(
    alg: str, alpha: float, beta: float, at: int
) -> None:
    x = np.array(places(alg), np.float32)
    with np.errstate(all="ignore"):
        exact = ALGS[alg](x.astype(np.float64), alpha, beta)
    lo, hi = spread(alg, x, x, alpha, beta, at)
    for place, y, low, high in zip(
        x.tolist(), exact.tolist(), lo.tolist(), hi.tolist(), strict=True
    ):
        error = off(alg, place, y, alpha, at) if math.isfinite(y) else 0.0
        assert low == outward(min(y - error, 3.4e38), -1)
        assert high == outward(max(y + error, -3.4e38), 1)


@pytest.mark.parametrize(("alg", "alpha", "beta"), CASES)
def test_ends_hold_what_lies_between_the_ends_of_x(alg: str, alpha: float, beta: float) -> None:
    rng = np.random.default_rng(1)
    lo = rng.uniform(0.001 if alg in {"log", "pow"} else -6, 4, 200).astype(np.float32)
    hi = (lo + rng.uniform(0, 3, 200)).astype(np.float32)
    below, above = spread(alg, lo, hi, alpha, beta, 2)
    x = np.concatenate([np.linspace(lo.astype(np.float64), hi, 500), [np.clip(0.0, lo, hi)]])
    y = ALGS[alg](x, alpha, beta)
    assert ((below <= y) & (y <= above)).all()
    # No wider than the function itself and two errors.
    width = y.max(0) - y.min(0)
    assert (above - below <= width + 1e-4 * np.maximum(1, np.abs(y).max(0))).all()


@pytest.mark.parametrize(("alg", "alpha", "beta"), CASES)
def test_a_function_turns_where_it_is_said_to_and_nowhere_else(
    alg: str, alpha: float, beta: float
) -> None:
    turns = sorted(BOUNDS[alg].turns(alpha, beta))
    least = 2.0**-10 if alg in {"log", "pow"} else -4.0
    x = np.linspace(least, 8.0, 4001)
    rises = np.sign(np.diff(ALGS[alg](x, alpha, beta)))
    changes = x[1:-1][(rises[1:] * rises[:-1]) < 0]
    seen = [turn for turn in turns if least < turn < 8.0]
    assert len(changes) == len(seen)
    step = 1e-4
    for turn in seen:
        left, here, right = ALGS[alg](np.array([turn - step, turn, turn + step]), alpha, beta)
        assert (here - left) * (here - right) > 0


def test_pow_turns_at_0_where_its_domain_ends() -> None:
    least, most = np.array([-2.0], np.float32), np.array([3.0], np.float32)
    lo, hi = spread("pow", least, most, 1.0, 2.0, 2)
    assert lo[0] <= 0.0
    assert abs(lo[0]) < 1e-30
    assert 9.0 < hi[0] <= 9.0 + 2 * np.spacing(np.float32(9.0))


def test_ends_stay_finite_where_the_function_does() -> None:
    x = np.array([88.7, 1000.0], np.float32)
    lo, hi = spread("exp", x, x, 0.0, 0.0, 2)
    assert np.isfinite(lo).all()
    assert lo[1] == np.float32(3.4e38)
    real = np.exp(np.float64(x[0]))
    assert real < hi[0] <= real + 8 * np.spacing(np.float32(real))
    assert hi[1] == math.inf
    zero = np.zeros(1, np.float32)
    down = spread("log", zero, zero, 0.0, 0.0, 2)
    assert (down[0][0], down[1][0]) == (-math.inf, outward(-3.4e38, 1))


@pytest.mark.parametrize(
    ("impl", "isa", "wanted"),
    [
        ("jit_uni_int8:sse41", "AVX512_CORE", "sse41"),
        ("jit_uni_int8:avx2", "AVX512_CORE", "avx2"),
        ("jit_uni_int8:avx2", "AVX2", "avx2"),
        ("brg_matmul:avx2_vnni", "AVX512_CORE_AMX", "avx512"),
        ("brg_matmul:avx2_vnni", "AVX2_VNNI", "avx2"),
        ("gemm:jit", "SSE41", "sse41"),
        ("gemm:jit", "AVX", "sse41"),
        ("gemm:jit", "AVX2", "avx2"),
        ("gemm:jit", "AVX512_CORE", "avx512"),
        ("brgemm:avx512_core", "AVX512_CORE", "avx512"),
    ],
)
def test_levels_of_code(impl: str, isa: str, wanted: str) -> None:
    assert LEVELS[level(impl, InstructionSet(isa))] == wanted
