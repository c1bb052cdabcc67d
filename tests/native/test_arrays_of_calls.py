"""prepare(arrays=...): arrays of calls that lie otherwise than the primitive takes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.primitive.post_ops import SumPostOp
from pyonednn_q.primitive.tensor import TensorSpec

RNG = np.random.default_rng(11)
DIMS, WEI = (2, 16, 7, 5), (32, 16, 3, 3)
OUT = (2, 32, 7, 5)
PROBLEM = pq.primitive.ConvProblem.of(DIMS, WEI, padding=1, dst="s32")


def codes(*dims: int) -> Any:
    return RNG.integers(-9, 10, dims).astype(np.int8)


def source(*dims: int) -> Any:
    return RNG.integers(0, 256, dims).astype(np.uint8)


def test_another_layout_is_copied_in_and_out_by_the_library() -> None:
    wei, src = codes(*WEI), source(*DIMS)
    dense = {"src": TensorSpec.dense(DIMS, "u8"), "dst": TensorSpec.dense(OUT, "s32")}
    usual = pq.prepare(PROBLEM, wei=wei)
    given = pq.prepare(PROBLEM, wei=wei, arrays=dense)
    assert (usual.copied, set(given.copied)) == ({}, {"src", "dst"})
    assert given.layout("src") == dense["src"]
    out = given.empty()
    assert out.flags.c_contiguous
    assert given(src, out=out) is out
    assert given.copies == {"src": 0, "dst": 0}  # none in Python
    np.testing.assert_array_equal(out, usual(src))
    assert set(given.time_copies(3)) == {"src", "dst"}
    assert min(given.time_copies(3).values()) > 0
    assert "in each call" in given.describe()
    with pytest.raises(pq.ArgumentError, match="calls"):
        given.time_copies(0)


def test_a_sum_reads_what_the_array_held() -> None:
    attr = pq.primitive.Attr(post_ops=(SumPostOp(1.0),))
    wei, src = codes(*WEI), source(*DIMS)
    dense = {"dst": TensorSpec.dense(OUT, "s32")}
    given = pq.prepare(PROBLEM, attr, wei=wei, arrays=dense)
    before = RNG.integers(-99, 100, OUT).astype(np.int32)
    out = before.copy()
    given(src, out=out)
    np.testing.assert_array_equal(out, before + pq.prepare(PROBLEM, wei=wei)(src))


def test_channels_that_arrays_lack_hold_zeros() -> None:
    """Weights of 1 would show anything else; the second call finds what the first left."""
    problem = pq.primitive.ConvProblem.of((1, 8, 6, 5), (16, 8, 3, 3), padding=1, dst="s32")
    arrays = {"src": TensorSpec.channels_last((1, 3, 6, 5), "u8")}
    wide = pq.prepare(problem, wei=np.ones((16, 8, 3, 3), np.int8), arrays=arrays)
    narrow = pq.primitive.ConvProblem.of((1, 3, 6, 5), (16, 3, 3, 3), padding=1, dst="s32")
    usual = pq.prepare(narrow, wei=np.ones((16, 3, 3, 3), np.int8))
    for _ in range(3):
        src = source(1, 3, 6, 5)
        np.testing.assert_array_equal(wide(src), usual(src))


def test_other_dims_over_the_same_bytes_cost_nothing() -> None:
    problem = pq.primitive.MatMulProblem.of((70, 16), (16, 32), dst="s32")
    wei = codes(32, 16, 1, 1)
    usual = pq.prepare(pq.primitive.ConvProblem.of(DIMS, wei.shape, dst="s32"), wei=wei)
    given = pq.prepare(problem, wei=np.ascontiguousarray(wei[:, :, 0, 0].T))
    seen = given.seen_as(
        {"src": TensorSpec.channels_last(DIMS, "u8"), "dst": TensorSpec.channels_last(OUT, "s32")}
    )
    assert seen.copied == {}
    src = usual.empty("src")
    src[...] = source(*DIMS)
    dst = seen.hot(src, None, None)
    assert (dst.shape, dst.strides) == (OUT, usual.empty().strides)
    np.testing.assert_array_equal(dst, usual(src))
    np.testing.assert_array_equal(seen(np.ascontiguousarray(src)), usual(src))


def test_the_library_may_choose() -> None:
    problem = pq.primitive.ConvProblem.of(DIMS, WEI, src="f32", wei="f32", dst="f32", padding=1)
    arrays = {"src": problem.src, "dst": problem.dst}
    free = replace(problem, src=TensorSpec(DIMS, "f32"), dst=TensorSpec(OUT, "f32"))
    wei, src = codes(*WEI).astype(np.float32), source(*DIMS).astype(np.float32)
    expected = pq.prepare(problem, wei=wei)(src)
    for offer in pq.native.implementations(free):
        if offer.kind != "reference" and not offer.guards:
            made = pq.prepare(free, wei=wei, implementation=offer.impl, arrays=arrays)
            np.testing.assert_array_equal(made(src), expected)
            chosen = made.chosen_problem()
            assert isinstance(chosen, pq.primitive.ConvProblem)
            assert (chosen.src.strides is None) == ("packed" in made.copied.get("src", ""))


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (TensorSpec.channels_last((2, 17, 7, 5), "u8"), pq.errors.ShapeError),
        (TensorSpec.channels_last((2, 16, 7), "u8"), pq.errors.ShapeError),
        (TensorSpec.channels_last(DIMS, "s8"), pq.errors.DTypeError),
        (TensorSpec(DIMS, "u8"), pq.errors.LayoutError),
    ],
)
def test_arrays_that_cannot_be_seen_so_are_refused(spec: TensorSpec, error: type) -> None:
    with pytest.raises(error, match="src"):
        pq.prepare(PROBLEM, wei=codes(*WEI), arrays={"src": spec})
