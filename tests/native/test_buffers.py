"""Results recycle their memory, and the fast way through gives what the careful one gives."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from pyonednn_q import native
from pyonednn_q.errors import ArgumentError
from pyonednn_q.native.runtime import buffer_statistics, clear_buffers, limit_buffers
from pyonednn_q.primitive.problem import ConvProblem

Array = np.ndarray[Any, Any]

RNG = np.random.default_rng(11)
WEI = RNG.integers(-4, 5, (16, 8, 1, 1)).astype(np.int8)
PROBLEM = ConvProblem.of((1, 8, 32, 32), (16, 8, 1, 1), dst="s32")


@pytest.fixture
def pool() -> Iterator[None]:
    limit = buffer_statistics().limit
    clear_buffers()
    yield
    limit_buffers(limit)
    clear_buffers()


@pytest.fixture(scope="module")
def conv() -> native.Prepared:
    return native.prepare(PROBLEM, wei=WEI)


@pytest.fixture(scope="module")
def src(conv: native.Prepared) -> Array:
    filled = conv.empty("src")
    filled[...] = RNG.integers(0, 20, filled.shape)
    return filled


@pytest.mark.usefixtures("pool")
def test_memory_of_a_dead_result_is_used_again(conv: native.Prepared, src: Array) -> None:
    first = conv(src)
    address, wanted = first.ctypes.data, first.copy()
    del first
    assert buffer_statistics().held == 1
    again = conv(src)
    assert again.ctypes.data == address
    np.testing.assert_array_equal(again, wanted)


@pytest.mark.usefixtures("pool")
def test_memory_stays_with_whoever_looks_at_it(conv: native.Prepared, src: Array) -> None:
    view = conv(src)[0, 3]
    wanted = view.copy()
    for _ in range(5):
        other = conv(np.zeros_like(src))
        assert not np.shares_memory(view, other)
    np.testing.assert_array_equal(view, wanted)


@pytest.mark.usefixtures("pool")
def test_statistics_count_what_happened(conv: native.Prepared, src: Array) -> None:
    before = buffer_statistics()
    for _ in range(10):
        conv(src)
    after = buffer_statistics()
    assert after.taken - before.taken == 10
    assert after.reused - before.reused == 9
    nbytes = 16 * 32 * 32 * 4
    assert nbytes <= after.held_bytes <= nbytes * 5 // 4
    clear_buffers()
    assert (buffer_statistics().held, buffer_statistics().held_bytes) == (0, 0)


@pytest.mark.usefixtures("pool")
def test_the_limit_bounds_what_waits(conv: native.Prepared, src: Array) -> None:
    nbytes = conv(src).nbytes
    limit_buffers(3 * nbytes)
    results = [conv(src) for _ in range(8)]
    del results
    assert 2 <= buffer_statistics().held <= 3
    limit_buffers(0)
    assert buffer_statistics().held == 0
    del src
    reused = buffer_statistics().reused
    conv(conv.empty("src"))
    assert buffer_statistics().reused == reused


def test_a_bad_limit_is_refused() -> None:
    with pytest.raises(ArgumentError, match="nbytes"):
        limit_buffers(-1)


def test_results_lie_as_the_layout_says(conv: native.Prepared, src: Array) -> None:
    dst, spec = conv(src), conv.layout("dst")
    assert spec.strides is not None
    assert dst.shape == spec.dims
    assert dst.strides == tuple(4 * stride for stride in spec.strides)
    assert dst.dtype == np.int32
    assert dst.flags.writeable
    assert dst.flags.aligned


def test_what_only_nearly_fits_takes_the_careful_way(conv: native.Prepared, src: Array) -> None:
    wanted = conv(src)
    copies = conv.copies["src"]

    class Own(np.ndarray[Any, Any]):
        pass

    np.testing.assert_array_equal(conv(src.view(Own)), wanted)
    assert conv.copies["src"] == copies
    rows = np.ascontiguousarray(src)
    assert rows.strides != src.strides
    np.testing.assert_array_equal(conv(rows), wanted)
    assert conv.copies["src"] == copies + 1
    odd = np.zeros(src.nbytes + 1, np.uint8)[1:].reshape(1, 32, 32, 8).transpose(0, 3, 1, 2)
    odd[...] = src
    np.testing.assert_array_equal(conv(odd), wanted)


def test_calls_keep_no_references(conv: native.Prepared, src: Array) -> None:
    out = conv.empty("dst")
    kept = (None, NotImplemented, np.dtype(np.int32), np.dtype(np.uint8), src, out)

    def counts() -> list[int]:
        gc.collect()  # garbage of other tests refers to None too: it must not go in between
        return [sys.getrefcount(thing) for thing in kept]

    def calls() -> None:
        for _ in range(200):
            conv(src)
            assert conv(src, out=out) is out
            conv(np.ascontiguousarray(src))
            with pytest.raises(ArgumentError):
                conv(src, out=src)

    calls()
    before = counts()
    calls()
    assert all(abs(now - then) < 50 for now, then in zip(counts(), before, strict=True))
