"""Chains run by primitives of their own, on arrays of any layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.compose.stages import RESIDUAL, SRC, stages
from pyonednn_q.expr.evaluate import evaluate
from pyonednn_q.expr.steps import Binary, Chain, Leaf, Round, Sum
from pyonednn_q.ops.staged import Flat, Staged
from pyonednn_q.primitive.tensor import TensorSpec
from support.oracle_numbers import convert, numpy_dtype
from support.plans.random_chains import random_chain

C = 16
SPECS = {
    "rows": (TensorSpec.dense((7, C), "f32"), 1, (7, C)),
    "batched": (TensorSpec.dense((2, 5, C), "f32"), 2, (10, C)),
    "channels last": (TensorSpec.channels_last((2, C, 3, 5), "f32"), 1, (30, C)),
    "row-major": (TensorSpec.dense((2, C, 3, 5), "f32"), 1, (2, C, 15)),
    "one row": (TensorSpec.dense((1, C, 1, 1), "f32"), 1, (1, C)),
    "columns": (TensorSpec((7, C), "f32", (1, 7)), 1, (1, C, 7)),
}


@pytest.mark.parametrize("name", SPECS)
def test_flat_arrays_share_memory(name: str) -> None:
    spec, axis, dims = SPECS[name]
    flat = Flat.of(spec, axis)
    assert flat.dims == dims
    memory = np.arange(spec.size, dtype=np.float32)
    assert spec.strides is not None
    array = np.lib.stride_tricks.as_strided(memory, spec.dims, [4 * s for s in spec.strides])
    view = flat.view(array)
    np.testing.assert_array_equal(view.ravel(), memory)
    assert np.shares_memory(view, memory)
    np.testing.assert_array_equal(flat.back(view), array)
    assert np.shares_memory(flat.back(view), memory)


@pytest.mark.parametrize("name", ["rows", "batched", "columns"])
def test_a_value_for_each_row_stands_beside_it(name: str) -> None:
    spec, axis, dims = SPECS[name]
    flat, rng = Flat.of(spec, axis), np.random.default_rng(4)
    x = rng.integers(-99, 99, spec.dims).astype(np.float32)
    rows = np.arange(1, 1 + spec.dims[-2], dtype=np.float32)
    chain = Chain(Round(), Binary("mul", Leaf("r", "f32", "per_row")))
    given = {SRC: flat.view(x), "r": flat.operand(rows, "per_row")}
    got = flat.back(Staged(stages(chain, dims, "f32"))(given))
    np.testing.assert_array_equal(got, x * rows[:, None])


@pytest.mark.parametrize("dst", ["u8", "s8", "s32", "f32"])
@pytest.mark.parametrize("name", SPECS)
def test_random_chains(name: str, dst: str) -> None:
    spec, axis, dims = SPECS[name]
    flat, rng = Flat.of(spec, axis), np.random.default_rng(2)
    for _ in range(10):
        chain = random_chain(rng, C)
        x = rng.integers(-400, 400, spec.dims).astype(np.float32) / 8
        before = rng.integers(0, 50, spec.dims).astype(numpy_dtype(dst))
        staged = Staged(stages(chain, dims, dst, residual=dst))
        given: dict[str, Any] = {SRC: flat.view(x)}
        if any(isinstance(step, Sum) for step in chain):
            given[RESIDUAL] = flat.view(before)
        got = flat.back(staged(given))
        want = evaluate(chain, x, axis=axis, dst_before=before.astype(np.float64))
        np.testing.assert_array_equal(got, convert(want, dst))
