"""Which implementations store bare s32 sums as they are: the table, on this process's ISA.

Odd shapes of large weights, for every implementation that the library offers and the table names:
equal to sums in int64 that float32 could not hold.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.acc.split import stores_sums
from pyonednn_q.errors import UnsupportedError
from pyonednn_q.faults import guards
from pyonednn_q.native import runtime
from pyonednn_q.primitive.attr import Attr
from pyonednn_q.primitive.problem import (
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
)
from support import unguarded

pytestmark = pytest.mark.executed

Array = np.ndarray[Any, Any]
KINDS = ("convolution", "deconvolution", "inner_product", "matmul")
OUTPUTS = (1, 2, 7, 8, 9, 15, 16, 17, 24, 32, 33, 64)


def drawn(rng: np.random.Generator, kind: str) -> Any:
    """A problem whose sums reach beyond 2^24 with every weight at 48 or more."""
    outputs = int(rng.choice(OUTPUTS))
    if kind in {"inner_product", "matmul"}:
        rows, inner = int(rng.choice(OUTPUTS)), int(rng.integers(2000, 6000))
        if kind == "inner_product":
            return InnerProductProblem.of((rows, inner), outputs, dst="s32")
        lead = (2,) if rng.random() < 0.3 else ()
        return MatMulProblem.of((*lead, rows, inner), (*lead, inner, outputs), dst="s32")
    size = int(rng.choice([1, 2, 3, 5]))
    groups = int(rng.choice([1, 1, 2, 3]))
    channels = int(2**25 / (200 * 48 * size * size) * rng.uniform(1.0, 1.5))
    channels = -(-channels // 16) * 16 if rng.random() < 0.4 else channels
    wei = (outputs, channels, size, size)
    make = ConvProblem if kind == "convolution" else DeconvProblem
    return make.of(
        (int(rng.integers(1, 3)), groups * channels, *rng.integers(3, 8, 2).tolist()),
        wei if groups == 1 else (groups, *wei),
        dst="s32",
        stride=int(rng.choice([1, 1, 2])),
        padding=int(rng.integers(0, (size + 1) // 2)),
        dilation=int(rng.choice([1, 1, 2])) if size < 5 else 1,
    )


def windowed(problem: Any, src: Array, wei: Array) -> Array:
    """Sums of a convolution or deconvolution, tap by tap, in float64: exact below 2^53."""
    window, groups = problem.window, problem.groups
    n, places = src.shape[0], problem.dst.dims[2:]
    factors = wei.reshape(groups, -1, *wei.shape[-3:]).astype(np.float64)
    given = src.reshape(n, groups, -1, *src.shape[2:]).astype(np.float64)
    dst = np.zeros((n, groups, factors.shape[1], *places))
    lengths = src.shape[2:]
    for tap in np.ndindex(*window.kernel):
        reach = [tap[axis] * window.dilation[axis] - window.padding_lo[axis] for axis in (0, 1)]
        from_, to = [], []
        for axis in (0, 1):
            stride = window.stride[axis]
            if problem.kind == "convolution":
                at = np.arange(places[axis]) * stride + reach[axis]
                inside = (at >= 0) & (at < lengths[axis])
                from_.append(at[inside])
                to.append(np.flatnonzero(inside))
            else:
                at = np.arange(lengths[axis]) * stride + reach[axis]
                inside = (at >= 0) & (at < places[axis])
                from_.append(np.flatnonzero(inside))
                to.append(at[inside])
        seen = given[:, :, :, from_[0][:, None], from_[1]]
        made = np.einsum("ngihw,goi->ngohw", seen, factors[:, :, :, tap[0], tap[1]], optimize=True)
        dst[:, :, :, to[0][:, None], to[1]] += made
    return dst.reshape(n, -1, *places).astype(np.int64)


def exact(problem: Any, src: Array, wei: Array) -> Array:
    if problem.kind in {"convolution", "deconvolution"}:
        return windowed(problem, src, wei)
    factors = wei if problem.kind == "matmul" else wei.T
    return (src.astype(np.float64) @ factors.astype(np.float64)).astype(np.int64)


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("kind", KINDS)
def test_sums_are_stored_as_they_are(kind: str, seed: int) -> None:
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    problem = drawn(rng, kind)
    src = rng.integers(200, 256, problem.src.dims).astype(np.uint8)
    wei = rng.integers(48, 64, problem.wei.dims).astype(np.int8)  # exact on every CPU
    wanted = exact(problem, src, wei)

    def named(impl: str) -> bool:
        known = stores_sums(problem, impl, runtime.version())
        return known and not guards.matching(problem, Attr(), runtime.facts(), impl)

    try:
        found = list(unguarded.results(problem, Attr(), {"src": src, "wei": wei}, {}, named))
    except UnsupportedError:
        return
    for impl, got in found:
        assert np.array_equal(got, wanted), f"{impl}, {problem.text()}"
    if found and np.abs(wanted).max() > 2**24:
        assert (np.rint(wanted.astype(np.float32)) != wanted).any()
