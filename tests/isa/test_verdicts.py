"""Verdicts without an implementation, against whatever this process runs.

Groups of odd sizes, single channels, batches and layouts, where the library's choice is no common
kernel, with sources at the ends of their type: an output that is wrong lies in a flagged channel,
and `as_if` has what was computed, or declines.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pyonednn_q.acc.emulation import as_if
from pyonednn_q.acc.verdict import saturation
from pyonednn_q.errors import ArgumentError, UnsupportedError
from pyonednn_q.native import prepare, runtime
from pyonednn_q.primitive.problem import ConvProblem, DeconvProblem, MatMulProblem
from pyonednn_q.primitive.tensor import TensorSpec

pytestmark = pytest.mark.executed

Array = np.ndarray[Any, Any]
COUNTS = (1, 2, 3, 5, 8, 16, 17)


def drawn(rng: np.random.Generator, dtype: str) -> Any:
    def one(*values: int) -> int:
        return int(rng.choice(values))

    if rng.random() < 0.2:
        rows, inner, columns = one(*COUNTS), one(2, 33, 385, 700), one(1, 2, 3, 4, 16)
        return MatMulProblem.of((rows, inner), (inner, columns), src=dtype, dst="s32")
    spatial, groups = one(1, 2, 3, 3), one(1, 2, 3, 17, 33)
    inputs, outputs = (1, 1) if rng.random() < 0.4 else (one(*COUNTS), one(*COUNTS))
    kernel = tuple(one(1, 2, 3, 5) for _ in range(spatial))
    make = ConvProblem if rng.random() < 0.8 else DeconvProblem
    return make.of(
        (1, groups * inputs, *(max(kernel[axis], one(3, 5, 7)) for axis in range(spatial))),
        (groups, outputs, inputs, *kernel),
        src=dtype,
        dst="s32",
        padding=[one(0, 0, 1) if length > 1 else 0 for length in kernel],
        stride=[one(1, 1, 2) for _ in kernel],
    )


def run(problem: Any, src: Array, wei: Array) -> Array | None:
    """What the library's own choice gives."""
    try:
        call = prepare(problem, wei=wei, saturation="allow")
    except UnsupportedError:
        return None
    return call(src)


def check(problem: Any, src: Array, wei: Array) -> None:
    """What is wrong lies in a flagged channel, and `as_if` has what was computed, or declines."""
    got = run(problem, src, wei)
    if got is None:
        pytest.skip("no implementation but a reference loop")
    verdict = saturation(problem, wei, runtime.isa())
    wrong = got != as_if(problem, src, wei, "AVX512_CORE_VNNI")
    axis = 1 if problem.kind != "matmul" else got.ndim - 1
    others = tuple(one for one in range(got.ndim) if one != axis)
    assert set(np.flatnonzero(wrong.any(axis=others)).tolist()) <= set(verdict.flagged)
    try:
        emulated = as_if(problem, src, wei, runtime.isa())
    except ArgumentError as error:
        assert error.argument == "impl"  # noqa: PT017 - it may decline
    else:
        assert np.array_equal(got, emulated)


@pytest.mark.parametrize("dtype", ["u8", "s8"])
@pytest.mark.parametrize("seed", range(60))
def test_what_is_wrong_is_flagged(dtype: str, seed: int) -> None:
    rng = np.random.default_rng([seed, len(dtype), ord(dtype[0])])
    problem = drawn(rng, dtype)
    lo, hi = (0, 255) if dtype == "u8" else (-128, 127)
    most = int(rng.choice([127, 127, 90, 66]))
    wei = rng.integers(-most - 1, most + 1, problem.wei.dims).astype(np.int8)
    assert saturation(problem, wei, "AVX512_CORE_VNNI").is_exact
    for part in (0.05, 0.5, 0.95):
        ends = rng.random(problem.src.dims) < part
        src = np.where(ends, lo, hi).astype(np.uint8 if dtype == "u8" else np.int8)
        check(problem, src, wei)


def test_of_one_input_channel_two_kernels_sum_apart() -> None:
    """AVX-512 has two for these windows; one pairs taps, the other nothing at all."""
    rng = np.random.default_rng(0)
    one_channel: tuple[Any, ...] = (
        ((2, 1, 6, 4), (1, 1, 3, 2), {"stride": 2}),
        ((3, 1, 3, 2), (32, 1, 3, 1), {"stride": (2, 1), "padding": ((2, 2), (1, 2))}),
        ((1, 1, 4, 6), (4, 1, 3, 4), {"stride": (2, 3), "padding": (1, 0)}),
        ((1, 1, 9, 8), (4, 1, 3, 2), {"stride": 3, "padding": ((1, 0), (1, 2))}),
        ((1, 1, 5), (4, 1, 3), {"stride": 2, "padding": ((2, 0),)}),
    )
    for src_dims, wei_dims, window in one_channel:
        problem = ConvProblem.of(src_dims, wei_dims, src="u8", dst="s32", **window)
        for ends in (np.array([255]), np.array([0, 255])):
            src = rng.choice(ends, src_dims).astype(np.uint8)
            check(problem, src, np.full(wei_dims, 127, np.int8))


def test_of_batches_a_matrix_product_may_sum() -> None:
    """It cuts sums of an odd half in two; generated code does not."""
    problem = MatMulProblem.of((3, 1, 16, 385), (1, 1, 385, 2), src="u8", dst="s32")
    rng = np.random.default_rng(0)
    wei = rng.choice([127, 126, 101, 65, 64, -64, -65, -127, -128], problem.wei.dims)
    check(problem, np.full(problem.src.dims, 255, np.uint8), wei.astype(np.int8))


def test_of_weights_in_a_layout_a_product_of_patches_may_sum() -> None:
    """It pairs taps of a single channel, where generated code pairs nothing."""
    dims = (1, 1, 3, 3)
    plain = ConvProblem.of((1, 1, 7, 7), dims, src="u8", dst="s32", dilation=2, layout="dense")
    problem = replace(plain, wei=TensorSpec.dense(dims, "s8"))
    check(problem, np.full(problem.src.dims, 255, np.uint8), np.full(dims, 127, np.int8))
