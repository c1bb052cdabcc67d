"""Functional calls: how they find their operator, and what is compared, kept and forgotten."""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.expr.steps import Binary, Chain, Eltwise, Leaf, Sum
from pyonednn_q.ops.cache import OperatorCache
from pyonednn_q.ops.functional import (
    conv,
    matmul,
    operator_cache_clear,
    operator_cache_info,
    operator_cache_limit,
)
from pyonednn_q.qparams import QParams
from support.calls.call import Call

RNG = np.random.default_rng(9)
SRC = RNG.integers(0, 30, (3, 8)).astype(np.uint8)
Q: dict[str, Any] = {"src_q": QParams(0.5, 2, "u8"), "wei_q": QParams(0.25, 0, "s8")}

pytestmark = pytest.mark.usefixtures("empty_cache")


@pytest.fixture
def content_is_not_hashed(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    def refuse(*_: object) -> None:
        raise AssertionError("the content was hashed")

    return lambda: monkeypatch.setattr("pyonednn_q.ops.cache._digest", refuse)


def weights() -> Any:
    return RNG.integers(-4, 5, (8, 16)).astype(np.int8)


def frozen(array: Any) -> Any:
    array.flags.writeable = False
    return array


def check(wei: Any, bias: Any = None) -> None:
    """Call twice; each result is that of the content of now."""
    want = Call("matmul", SRC, np.array(wei), None if bias is None else np.array(bias), **Q)
    for _ in range(2):
        want.meaning().check_equal(matmul(SRC, wei, bias, **Q))


LAYOUTS: dict[str, Callable[[], Any]] = {
    "rows": weights,
    "columns": lambda: np.asfortranarray(weights()),
    "every other column": lambda: np.repeat(weights(), 2, axis=1)[:, ::2],
    "every other row": lambda: np.repeat(weights(), 2, axis=0)[::2],
    "backwards": lambda: weights()[::-1, ::-1],
    "a part": lambda: np.tile(weights(), (2, 2))[:8, :16],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_write_anywhere_is_noticed(layout: str) -> None:
    wei = LAYOUTS[layout]()
    for index in [(0, 0), (0, 1), (1, 0), (4, 7), (7, 14), (7, 15)]:
        wei[index] += 1
        check(wei)


def test_a_write_past_the_first_of_many_bytes_is_noticed() -> None:
    """Large weights are compared without the GIL."""
    src = RNG.integers(0, 9, (2, 1024)).astype(np.uint8)
    wei = RNG.integers(-4, 5, (1024, 768)).astype(np.int8)
    for index in (-1, 0, wei.size // 2):
        wei.flat[index] += 1
        want = Call("matmul", src, wei.copy(), **Q).meaning()
        for _ in range(2):
            want.check_equal(matmul(src, wei, **Q))


def test_constant_weights_are_not_read() -> None:
    """What docs/calls_in_use.md says: whoever writes them all the same is not noticed."""
    for own in (True, False):
        if own:
            wei = weights()
            written = wei[:]  # taken while it could be
            frozen(wei)
        else:
            data = weights().tobytes()
            wei = np.frombuffer(data, np.int8).reshape(8, 16)
            address = wei.__array_interface__["data"][0]
            buffer = (ctypes.c_int8 * wei.size).from_address(address)
            written = np.ctypeslib.as_array(buffer).reshape(8, 16)
        before = matmul(SRC, wei, **Q).copy()
        written[0, 0] ^= 3
        np.testing.assert_array_equal(matmul(SRC, wei, **Q), before)
        np.testing.assert_array_equal(matmul(SRC, wei[:], **Q), before)
        operator_cache_clear()
        check(wei)


def views_of_writable_memory(tmp_path: Path) -> dict[str, tuple[Any, Any]]:
    """Read-only arrays, each with one that can write its memory."""
    base, other, data = weights(), weights(), bytearray(weights().tobytes())
    file = tmp_path / "wei.npy"
    np.save(file, weights())
    through = np.frombuffer(data, np.int8).reshape(8, 16)
    locked = np.frombuffer(memoryview(data).toreadonly(), np.int8).reshape(8, 16)
    return {
        "a view": (frozen(base[:]), base),
        "a transposed view of a view": (frozen(other.T[:]).T, other),
        "a bytearray": (frozen(locked), through),
        "a file": (np.load(file, mmap_mode="r"), np.load(file, mmap_mode="r+")),
    }


@pytest.mark.parametrize(
    "which", ["a view", "a transposed view of a view", "a bytearray", "a file"]
)
def test_read_only_views_of_writable_memory_are_compared(which: str, tmp_path: Path) -> None:
    seen, written = views_of_writable_memory(tmp_path)[which]
    assert not seen.flags.writeable
    check(seen)
    for index in [(0, 0), (7, 15)]:
        written[index] += 1
        check(seen)


@pytest.mark.parametrize("mode", ["r+", "c"])
def test_weights_in_a_mapped_file_are_compared(mode: Any, tmp_path: Path) -> None:
    """A private mapping follows the file until its page is written."""
    file = tmp_path / "wei.npy"
    np.save(file, RNG.integers(-4, 5, (1024, 768)).astype(np.int8))
    src = RNG.integers(0, 9, (2, 1024)).astype(np.uint8)
    wei, through = np.load(file, mmap_mode=mode), np.load(file, mmap_mode="r+")
    for index, written in enumerate((wei, through) * 8):
        written.flat[index * 4096 + 7] ^= 1
        want = Call("matmul", src, np.array(wei), **Q).meaning()
        for _ in range(6):
            want.check_equal(matmul(src, wei, **Q))


def test_arrays_that_become_writable_are_compared_again() -> None:
    wei = frozen(weights())
    check(wei)
    wei.flags.writeable = True
    wei[3, 3] += 1
    check(wei)
    wei[3, 3] += 1
    frozen(wei)  # with what was written since the last call
    check(wei)
    view = wei.T.T
    check(view)


def test_constant_bias_and_written_weights() -> None:
    wei, bias = weights(), frozen(np.arange(16).astype(np.float32))
    check(wei, bias)
    wei[1, 1] += 1
    check(wei, bias)
    check(frozen(wei), bias)
    check(wei, frozen(bias + np.float32(1)))


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")
def test_an_array_reshaped_in_place_is_noticed() -> None:
    wei = frozen(weights())
    check(wei)
    wei.shape = (16, 8)
    with pytest.raises(ShapeError, match="src"):
        matmul(SRC, wei, **Q)


def test_other_views_of_the_same_memory_are_the_same(
    content_is_not_hashed: Callable[[], None],
) -> None:
    stored = np.ascontiguousarray(weights().T)
    want = matmul(SRC, stored.T, **Q).copy()
    content_is_not_hashed()
    for _ in range(3):
        np.testing.assert_array_equal(matmul(SRC, stored.T, **Q), want)


def test_equal_options_are_the_same(content_is_not_hashed: Callable[[], None]) -> None:
    wei = weights()

    def call() -> Any:
        post = Chain(Eltwise("relu"))
        q: dict[str, Any] = {"src_q": QParams(0.5, 2, "u8"), "wei_q": QParams(0.25, 0, "s8")}
        return matmul(SRC, wei, **q, post=post)

    want = call().copy()
    content_is_not_hashed()
    for _ in range(3):
        np.testing.assert_array_equal(call(), want)


@pytest.mark.parametrize("stride", [1, (1, 1)])
def test_the_very_same_options_are_found_at_the_first_look(
    stride: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    src, wei = np.ones((1, 8, 6, 6), np.uint8), np.ones((16, 8, 3, 3), np.int8)
    want = conv(src, wei, **Q, stride=stride).copy()

    def refuse(*_: object) -> None:
        raise AssertionError("looked a second time")

    monkeypatch.setattr(OperatorCache, "operator", refuse)
    np.testing.assert_array_equal(conv(src, wei, **Q, stride=stride), want)


def test_weights_in_a_buffer_are_compared(content_is_not_hashed: Callable[[], None]) -> None:
    wei = weights()
    want = matmul(SRC, memoryview(wei), **Q).copy()
    wei[0, 0] ^= 1
    assert (matmul(SRC, memoryview(wei), **Q) != want).any()
    wei[0, 0] ^= 1
    want = matmul(SRC, memoryview(wei), **Q).copy()
    content_is_not_hashed()
    np.testing.assert_array_equal(matmul(SRC, memoryview(wei), **Q), want)


def test_lists_may_change_between_calls() -> None:
    src, wei = np.ones((1, 8, 6, 6), np.uint8), np.ones((16, 8, 3, 3), np.int8)
    stride = [1, 1]
    assert conv(src, wei, **Q, stride=stride).shape == (1, 16, 4, 4)
    assert conv(src, wei, **Q, stride=stride).shape == (1, 16, 4, 4)
    stride[:] = [2, 2]
    assert conv(src, wei, **Q, stride=stride).shape == (1, 16, 2, 2)


def test_weights_that_can_be_written_are_not_kept_alive() -> None:
    wei = weights()
    gone = weakref.ref(wei)
    matmul(SRC, wei, **Q)
    matmul(SRC, wei, **Q)
    del wei
    gc.collect()
    assert gone() is None


def test_an_operator_in_use_is_not_the_oldest() -> None:
    operator_cache_limit(3)
    first, *others = [weights() for _ in range(4)]
    for wei in (first, *others[:2], first, first, others[2]):
        matmul(SRC, wei, **Q)
    before = operator_cache_info().misses
    matmul(SRC, first, **Q)
    assert operator_cache_info().misses == before
    matmul(SRC, others[0], **Q)
    assert operator_cache_info().misses == before + 1


def test_what_is_compared_is_counted() -> None:
    wei, bias = weights(), np.ones(16, np.float32)
    constant = frozen(wei.copy())
    for array in (wei, constant):
        matmul(SRC, array, bias, **Q)
    before = operator_cache_info().compared_bytes
    for times in range(1, 4):
        matmul(SRC, wei, bias, **Q)
        found = operator_cache_info().compared_bytes - before
        assert found == times * (wei.nbytes + bias.nbytes)
    before = operator_cache_info().compared_bytes
    for _ in range(3):
        matmul(SRC, constant, frozen(bias), **Q)
    assert operator_cache_info().compared_bytes - before <= bias.nbytes  # writable a moment ago
    operator_cache_clear()
    assert operator_cache_info().compared_bytes == 0


def held() -> int:
    """Options that something refers to."""
    gc.collect()
    # By type: what isinstance asks, a dead weakref.proxy cannot answer.
    return sum(issubclass(type(thing), QParams) for thing in gc.get_objects())


def test_the_memory_of_calls_is_bounded() -> None:
    """Every call brings new options and new weights."""
    operator_cache_limit(2)
    made, before = weights(), held()
    for _ in range(200):
        matmul(SRC, made.copy(), src_q=QParams(0.5, 2, "u8"), wei_q=QParams(0.25, 0, "s8"))
    found = operator_cache_info()
    assert (found.size, found.misses) == (1, 1)
    assert held() - before < 100


def test_threads_may_forget_what_others_find() -> None:
    src = RNG.integers(0, 9, (2, 1024)).astype(np.uint8)
    many = [RNG.integers(-4, 5, (1024, 512)).astype(np.int8) for _ in range(3)]
    want = [matmul(src, wei, **Q).copy() for wei in many]
    wrong: list[object] = []

    def work(index: int) -> None:
        try:
            for turn in range(40):
                at = (index + turn) % len(many)
                if not np.array_equal(matmul(src, many[at], **Q), want[at]):
                    wrong.append((index, turn))
                if turn % 10 == index:
                    operator_cache_clear()
        except BaseException as error:
            wrong.append(error)
            raise

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


ONES = np.ones((8, 16), np.int8)
BIAS = np.arange(16, dtype=np.float32)
product: Any = matmul  # to be called as its types forbid

WAYS: dict[str, Callable[[], Any]] = {
    "in order": lambda: product(SRC, ONES, BIAS, **Q),
    "bias by name": lambda: product(SRC, ONES, bias=BIAS, **Q),
    "all by name": lambda: product(wei=ONES, src=SRC, bias=BIAS, **Q),
    "into out": lambda: product(SRC, ONES, BIAS, out=np.empty((3, 16), np.float32), **Q),
    "with nothing": lambda: product(SRC, ONES, BIAS, out=None, residual=None, operands=None, **Q),
    "with an option": lambda: product(SRC, ONES, BIAS, dst_q=None, **Q),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_write_a_call_is_found(way: str) -> None:
    want = Call("matmul", SRC, ONES, BIAS, **Q).meaning()
    for _ in range(4):
        want.check_equal(WAYS[way]())
    found = operator_cache_info()
    assert (found.hits, found.misses) == (3, 1)


def test_out_and_residual_go_where_they_belong() -> None:
    post = Chain(Sum())
    plain = np.array(matmul(SRC, ONES, **Q))
    out, residual = np.empty((3, 16), np.float32), np.ones((3, 16), np.float32)
    for _ in range(3):
        assert matmul(SRC, ONES, out=out, residual=residual, post=post, **Q) is out
        assert np.array_equal(out, plain + 1)
        assert np.array_equal(residual, np.ones((3, 16)))
    for _ in range(3):
        out.fill(2)
        assert matmul(SRC, ONES, out=out, post=post, **Q) is out
        assert np.array_equal(out, plain + 2)


def test_operands_of_a_chain() -> None:
    post = Chain(Binary("mul", Leaf("r", "f32")))
    plain = np.array(matmul(SRC, ONES, **Q))
    two = np.full((3, 16), 2, np.float32)
    for _ in range(3):
        assert np.array_equal(matmul(SRC, ONES, operands={"r": two}, post=post, **Q), plain * 2)
    with pytest.raises(ArgumentError, match="r: got nothing"):
        matmul(SRC, ONES, post=post, **Q)


@pytest.mark.parametrize("known", [False, True])
def test_wrong_arguments_are_refused_as_by_any_function(known: bool) -> None:
    if known:
        for _ in range(2):
            matmul(SRC, ONES, **Q)
    with pytest.raises(TypeError, match=r"matmul\(\) missing 1 required positional argument"):
        product(SRC, **Q)
    with pytest.raises(TypeError, match="multiple values for argument 'wei'"):
        product(SRC, ONES, wei=ONES, **Q)
    with pytest.raises(TypeError, match="unexpected keyword argument 'none_such'"):
        product(SRC, ONES, none_such=1, **Q)
    with pytest.raises(ArgumentError, match="src"):
        matmul("text", ONES, **Q)
    with pytest.raises(ArgumentError, match="wei"):
        matmul(SRC, "text", **Q)
