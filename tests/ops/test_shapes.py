"""What operators keep for the shapes of their sources: bounded, and right when it was let go."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q import QParams
from pyonednn_q.errors import ArgumentError
from support.children import child
from support.frames import frames
from support.lives import pages_kept_by_shapes
from support.threads import run_together

RNG = np.random.default_rng(3)
WEI = RNG.integers(-4, 5, (16, 8)).astype(np.int8)
Q: dict[str, Any] = {"src_q": QParams(1.0, 0, "u8"), "wei_q": QParams(1.0, 0, "s8")}
ROWS = [RNG.integers(0, 30, (rows, 16)).astype(np.uint8) for rows in range(40)]


@pytest.fixture(autouse=True)
def limits() -> Iterator[None]:
    before = pq.ops.shape_statistics()
    gc.collect()
    pq.ops.clear_shapes()
    yield
    pq.ops.limit_shapes(before.limit, before.limit_bytes)


def is_right(dst: Any, src: Any) -> bool:
    return bool(np.array_equal(dst, src.astype(np.int64) @ WEI))


def rows_of(operator: pq.MatMul) -> list[int]:
    return sorted(dims[0] for dims in operator.shapes)


def room_for(shapes: int) -> None:
    """Let so many shapes stay beside those that others keep."""
    pq.ops.limit_shapes(pq.ops.shape_statistics().held + shapes)


def test_shapes_used_longest_ago_go() -> None:
    operator = pq.MatMul(WEI, **Q)
    room_for(4)
    for rows in (1, 2, 3, 4, 1, 5, 6):
        assert is_right(operator(ROWS[rows]), ROWS[rows])
    assert rows_of(operator) == [1, 4, 5, 6]
    for src in ROWS[1:8]:
        assert is_right(operator(src), src)


def test_a_shape_in_use_without_python_stays() -> None:
    """Calls of the last shape come by no list of shapes, and are not the oldest for that."""
    operator, other = pq.MatMul(WEI, **Q), pq.MatMul(WEI, **Q)
    room_for(3)
    operator(ROWS[1])
    for src in ROWS[1:10]:
        other(src)
        assert frames(lambda: operator(ROWS[1])) == []
    assert rows_of(operator) == [1]
    assert rows_of(other) == [8, 9]


def test_bytes_are_bounded() -> None:
    operator = pq.MatMul(WEI, **Q)
    before = pq.ops.shape_statistics()
    for src in ROWS[1:11]:
        operator(src)
    now = pq.ops.shape_statistics()
    assert now.held == before.held + 10
    each = (now.held_bytes - before.held_bytes) // 10
    assert each >= 512 << 10
    pq.ops.limit_shapes(nbytes=before.held_bytes + 4 * each + each // 2)
    assert rows_of(operator) == [7, 8, 9, 10]
    assert pq.ops.shape_statistics().dropped == now.dropped + 6
    assert pq.ops.shape_statistics().held_bytes <= pq.ops.shape_statistics().limit_bytes


def test_maps_of_a_zero_point_count() -> None:
    """A padded convolution subtracts a map of the size of its result."""
    wei = RNG.integers(-4, 5, (16, 16, 3, 3)).astype(np.int8)
    q: dict[str, Any] = {"src_q": QParams(1.0, 3, "u8"), "wei_q": QParams(1.0, 0, "s8")}
    held, operators = [pq.ops.shape_statistics().held_bytes], []
    for by in ("attribute", "map"):
        operators.append(pq.Conv(wei, **q, padding=1, zero_point=by))
        operators[-1](np.ones((1, 16, 80, 80), np.uint8))
        held.append(pq.ops.shape_statistics().held_bytes)
    by_attribute, by_map = np.diff(held)
    nbytes = 16 * 80 * 80 * 4
    assert nbytes // 2 < by_map - by_attribute < nbytes * 2


def test_only_the_last_shape_stays_where_none_may() -> None:
    operator = pq.MatMul(WEI, **Q)
    pq.ops.limit_shapes(0)
    for src in ROWS[1:5]:
        assert is_right(operator(src), src)
        assert list(operator.shapes) == [src.shape]
    assert frames(lambda: operator(ROWS[4])) == []


def test_clearing() -> None:
    operator = pq.MatMul(WEI, **Q)
    for src in ROWS[1:5]:
        operator(src)
    pq.ops.clear_shapes()
    assert rows_of(operator) == [4]
    before = pq.ops.shape_statistics().held
    operator.clear()
    assert not operator.shapes
    assert not operator.wei_bytes
    assert pq.ops.shape_statistics().held == before - 1
    for src in ROWS[1:5]:
        assert is_right(operator(src), src)


def test_operators_that_finish_in_integers_are_bounded_and_cleared() -> None:
    q = {**Q, "src_q": QParams(1.0, 3, "u8"), "dst_q": QParams(64.0, 0, "s8")}
    operator = pq.MatMul(WEI, **q, requantize="tflite_1step")
    want = [np.array(operator(src)) for src in ROWS[1:6]]
    pq.ops.limit_shapes(0)
    assert len(rows_of(operator)) == 1
    for src, dst in zip(ROWS[1:6], want, strict=True):
        assert np.array_equal(operator(src), dst)
    copies = [pickle.loads(pickle.dumps(operator)), copy.deepcopy(operator), copy.copy(operator)]
    operator.clear()
    assert not operator.shapes
    for one in (operator, *copies):
        assert np.array_equal(one(ROWS[3]), want[2])


def test_what_goes_frees_its_primitive_at_once() -> None:
    """Not when the garbage collector comes."""
    operator = pq.MatMul(WEI, **Q)
    room_for(1)
    gone = weakref.ref(operator.prepare((1, 16)).primitive)
    gc.disable()
    try:
        for src in ROWS[1:4]:
            operator(src)
        assert gone() is None
    finally:
        gc.enable()


def test_shapes_go_with_their_operator() -> None:
    before = pq.ops.shape_statistics().held
    operator = pq.MatMul(WEI, **Q)
    operator(ROWS[1])
    assert pq.ops.shape_statistics().held == before + 1
    del operator
    gc.collect()
    assert pq.ops.shape_statistics().held == before


def test_functional_calls_are_bounded_too() -> None:
    pq.ops.operator_cache_clear()
    gc.collect()
    room_for(4)
    most = pq.ops.shape_statistics().limit
    for src in ROWS[1:30]:
        assert is_right(pq.matmul(src, WEI, **Q), src)
        assert pq.ops.shape_statistics().held <= most
    pq.ops.operator_cache_clear()


def test_what_is_dropped_amid_a_call_is_right_until_its_end() -> None:
    """Threads that take each other's shapes away."""
    operator = pq.MatMul(WEI, **Q)
    pq.ops.limit_shapes(0)

    def work(index: int) -> bool:
        src = ROWS[1 + index]
        return is_right(operator(src), src)

    results = run_together(4, work, rounds=60)
    assert results == [[True] * 60] * 4


def test_clearing_beside_calls() -> None:
    operator = pq.MatMul(WEI, **Q)
    stop = threading.Event()

    def clear() -> None:
        while not stop.wait(0.001):
            operator.clear()
            pq.ops.clear_shapes()

    thread = threading.Thread(target=clear)
    thread.start()
    try:
        assert all(is_right(operator(src), src) for _ in range(6) for src in ROWS[1:])
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("limit", [{"count": -1}, {"nbytes": -1}, {"count": 1.5}, {"nbytes": "1"}])
def test_bad_limits_are_refused(limit: Any) -> None:
    with pytest.raises(ArgumentError, match=next(iter(limit))):
        pq.ops.limit_shapes(**limit)


@pytest.mark.stress
@pytest.mark.parametrize("functional", [False, True])
def test_memory_is_flat_over_ten_thousand_shapes(functional: bool) -> None:
    # oneDNN's own cache keeps 1024 primitives, whoever lets go of them.
    with child({"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "16"}) as ask:
        ask(pages_kept_by_shapes, 0, 2_000, functional)
        kept = [
            ask(pages_kept_by_shapes, start, 1_000, functional)
            for start in range(2_000, 10_000, 1_000)
        ]
    # A primitive of 300 KB from every hundredth shape would be 750 pages in each round.
    assert sorted(kept)[len(kept) // 2] < 512, f"pages more after each 1000 shapes: {kept}"
