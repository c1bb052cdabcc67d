"""Casts between float32 and 16 bits, and copies of 16-bit tensors: every bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q import dtypes
from pyonednn_q.native import runtime
from pyonednn_q.native.passes import Cast, is_cast
from pyonednn_q.primitive.tensor import TensorSpec

HALVES = ("bf16", "f16")
ALL_HALVES = np.arange(2**16, dtype=np.uint16)


def cast(src: str, dst: str, array: Any, **more: Any) -> Any:
    dims = array.shape
    return Cast(TensorSpec.dense(dims, src), TensorSpec.dense(dims, dst))(array, **more)


def around(half: str) -> Any:
    """Every number of 16 bits, what lies halfway to the next, and neighbours of both."""
    numbers = ALL_HALVES.view(dtypes.numpy_dtype(half)).astype(np.float32)
    numbers = np.sort(numbers[np.isfinite(numbers)])
    middles = ((numbers[:-1].astype(np.float64) + numbers[1:]) / 2).astype(np.float32)
    exact = np.concatenate([numbers, middles])
    beyond = np.array([np.inf, -np.inf, np.nan, 3.4e38, 65519.996, 65520, 1e-45], np.float32)
    up, down = np.nextafter(exact, np.float32(np.inf)), np.nextafter(exact, np.float32(-np.inf))
    return np.concatenate([exact, up, down, beyond])


@pytest.mark.parametrize("half", HALVES)
def test_to_16_bits_is_as_numpy_has_it(half: str) -> None:
    values = around(half)
    wanted_dtype = dtypes.numpy_dtype(half)
    with np.errstate(over="ignore"):
        wanted = values.astype(wanted_dtype)
    got = cast("f32", half, values)
    assert got.dtype == wanted_dtype
    is_number = ~np.isnan(values)
    assert np.array_equal(got.view(np.uint16)[is_number], wanted.view(np.uint16)[is_number])
    assert np.isnan(got.astype(np.float32)[~is_number]).all()


def test_nan_whose_bits_are_cut_stays_nan() -> None:
    values = np.array([0x7F800001, 0xFF800001, 0x7FFFFFFF], np.uint32).view(np.float32)
    for half in HALVES:
        assert np.isnan(cast("f32", half, values).astype(np.float32)).all()


@pytest.mark.parametrize("half", HALVES)
def test_from_16_bits_is_exact(half: str) -> None:
    halves = ALL_HALVES.view(dtypes.numpy_dtype(half))
    wanted, got = halves.astype(np.float32), cast(half, "f32", halves)
    is_number = ~np.isnan(wanted)
    assert np.array_equal(got.view(np.uint32)[is_number], wanted.view(np.uint32)[is_number])
    assert np.isnan(got[~is_number]).all()
    assert np.array_equal(cast("f32", half, got).view(np.uint16)[is_number], ALL_HALVES[is_number])


def test_results_go_where_they_are_wanted() -> None:
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    out = np.zeros((3, 4), np.float16)
    assert cast("f32", "f16", values, out=out) is out
    assert np.array_equal(out, values)
    apart = np.zeros((3, 8), np.float16)[:, ::2]
    assert cast("f32", "f16", values[::-1], out=apart) is apart
    assert np.array_equal(apart, values[::-1])
    with pytest.raises(pq.errors.ShapeError, match=r"^out: "):
        cast("f32", "f16", values, out=np.zeros(12, np.float16))
    with pytest.raises(pq.errors.DTypeError, match=r"^out: "):
        cast("f32", "f16", values, out=np.zeros((3, 4), np.float32))
    with pytest.raises(pq.errors.DTypeError, match=r"^src: "):
        cast("f32", "f16", values.astype(np.float64))


def test_what_is_a_cast() -> None:
    def reorder(src: str, dst: str, *, moved: bool = False) -> pq.primitive.ReorderProblem:
        to = TensorSpec.channels_last if moved else TensorSpec.dense
        return pq.primitive.ReorderProblem(
            TensorSpec.dense((1, 4, 3, 3), src), to((1, 4, 3, 3), dst)
        )

    assert is_cast(reorder("f32", "f16"))
    assert is_cast(reorder("bf16", "f32"))
    assert not is_cast(reorder("f32", "f16", moved=True))
    assert not is_cast(reorder("bf16", "f16"))
    assert not is_cast(reorder("f32", "s8"))
    assert not is_cast(reorder("f32", "f32"))


def test_the_extension_checks_what_it_is_given() -> None:
    with pytest.raises(pq.errors.DTypeError, match=r"^type: got f8"):
        runtime.core.narrow("f8", np.zeros(3, np.float32), np.zeros(3, np.uint16))
    with pytest.raises(pq.errors.ShapeError, match=r"^halves: got 2"):
        runtime.core.narrow("f16", np.zeros(3, np.float32), np.zeros(2, np.uint16))
    with pytest.raises(pq.errors.ShapeError, match=r"^halves: got 4"):
        runtime.core.widen("bf16", np.zeros(4, np.uint16), np.zeros(3, np.float32))


@pytest.mark.parametrize("half", HALVES)
def test_row_major_results_keep_every_bit(half: str) -> None:
    """The library's own copies of 16-bit tensors lost -0 below AVX-512."""
    problem = pq.primitive.DeconvProblem.of((1, 32, 6, 7), (32, 32, 3, 3), dst=half)
    values = np.resize(np.array([1, -1, -0.0, np.inf, np.nan, 2.0**-20, 1e-40], np.float32), 32)
    per_channel = TensorSpec((1, 32, 1, 1), "f32")
    attr = pq.primitive.Attr(
        post_ops=(
            pq.primitive.BinaryPostOp("mul", per_channel),
            pq.primitive.EltwisePostOp("round"),
        )
    )
    rng = np.random.default_rng(0)
    try:
        primitive = pq.prepare(
            problem,
            attr,
            wei=(2 * rng.integers(-20, 21, (32, 32, 3, 3))).astype(np.int8),
            values={"post_op_0": values.reshape(1, 32, 1, 1)},
        )
    except pq.UnsupportedError:
        pytest.skip(f"no kernel stores {half} on {runtime.isa().text()}")
    src = rng.integers(0, 256, (1, 32, 6, 7)).astype(np.uint8)
    wanted = primitive(src)
    dense = TensorSpec.dense(problem.dst.dims, half)
    got = primitive.seen_as({"dst": dense})(src)
    assert got.strides != wanted.strides
    assert np.array_equal(got.view(np.uint16), np.ascontiguousarray(wanted).view(np.uint16))
    assert len(np.unique(got.view(np.uint16))) > 20


@pytest.mark.parametrize("half", HALVES)
def test_a_slow_reorder_is_refused(half: str) -> None:
    """What the library has no instructions for, it converts number by number."""
    problem = pq.primitive.ReorderProblem(
        TensorSpec.channels_last((1, 8, 4, 4), half), TensorSpec.dense((1, 8, 4, 4), "f32")
    )
    src = np.arange(128, dtype=np.float32).reshape(1, 8, 4, 4).astype(dtypes.numpy_dtype(half))
    primitive = pq.prepare(problem, pq.primitive.Attr(), allow_reference=True)
    assert np.array_equal(primitive(src), src.astype(np.float32))
    if primitive.impl.startswith("simple"):
        with pytest.raises(pq.errors.ReferenceKernelError):
            pq.prepare(problem, pq.primitive.Attr())
    else:
        assert pq.prepare(problem, pq.primitive.Attr()).impl == primitive.impl
