"""What weights add up to where they meet the source, against a source of ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ShapeError
from pyonednn_q.primitive.problem import (
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
)
from support.oracle_accumulate import reduction


def drawn(rng: np.random.Generator) -> Any:
    """Draw a window of 1 to 3 dimensions, with groups now and then; None if nothing comes out."""
    spatial, groups = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    kernel = rng.integers(1, 4, spatial).tolist()
    wei = [groups, 2, 3, *kernel] if groups > 1 else [2, 3, *kernel]
    cls = (ConvProblem, DeconvProblem)[int(rng.integers(2))]
    try:
        return cls.of(
            (2, 3 * groups, *rng.integers(3, 7, spatial).tolist()),
            wei,
            stride=rng.integers(1, 4, spatial).tolist(),
            dilation=rng.integers(1, 3, spatial).tolist(),
            padding=rng.integers(0, 2, (spatial, 2)).tolist(),
        )
    except ShapeError:
        return None


PLAIN = (
    InnerProductProblem.of((2, 3, 4, 5), 6),
    MatMulProblem.of((4, 5), (5, 6)),
    MatMulProblem.of((2, 4, 5), (1, 5, 6)),
    MatMulProblem.of((2, 4, 5), (2, 5, 6)),
)


def agrees(problem: Any, rng: np.random.Generator) -> bool:
    """Compare, and return whether every tap meets the source everywhere."""
    wei = rng.integers(-5, 6, problem.wei.dims).astype(np.int8)
    ones = np.ones(problem.src.dims)
    want = reduction(problem)(ones, wei.astype(np.float64))
    np.testing.assert_array_equal(np.broadcast_to(problem.wei_sums(wei), want.shape), want)
    rows = problem.channel_rows(wei)
    assert rows.shape[0] == problem.dst.dims[-1 if problem.kind == "matmul" else 1]
    np.testing.assert_array_equal(problem.from_channel_rows(rows), wei)
    if problem.meets_everywhere():
        aligned = [1] * want.ndim
        aligned[-1 if problem.kind == "matmul" else 1] = -1
        same = np.broadcast_to(rows.astype(float).sum(axis=1).reshape(aligned), want.shape)
        np.testing.assert_array_equal(want, same)
    else:
        taps = reduction(problem)(ones, np.ones(problem.wei.dims))
        assert taps.min() < taps.max() or taps.min() < rows.shape[1]
    return bool(problem.meets_everywhere())


def test_windows() -> None:
    rng, everywhere, count = np.random.default_rng(0), 0, 0
    while count < 300:
        problem = drawn(rng)
        if problem is not None:
            everywhere += agrees(problem, rng)
            count += 1
    assert 10 < everywhere < 200


@pytest.mark.parametrize("problem", PLAIN, ids=lambda problem: problem.text())
def test_products(problem: Any) -> None:
    agrees(problem, np.random.default_rng(1))


def test_a_batch_of_weights_has_no_one_sum() -> None:
    assert [problem.meets_everywhere() for problem in PLAIN] == [True, True, True, False]
