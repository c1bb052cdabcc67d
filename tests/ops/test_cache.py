"""The operators behind functional calls: found again, forgotten, never stale."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.steps import Binary, Chain, Eltwise, Leaf
from pyonednn_q.native import runtime
from pyonednn_q.ops.functional import (
    conv,
    inner_product,
    matmul,
    operator_cache_clear,
    operator_cache_info,
    operator_cache_limit,
)
from pyonednn_q.qparams import QParams
from support.calls.call import Call
from support.isa import takes
from support.oracle_numbers import numpy_dtype

RNG = np.random.default_rng(5)
SRC = RNG.integers(0, 30, (3, 8)).astype(np.uint8)
SRC_Q, WEI_Q = QParams(0.5, 2, "u8"), QParams(0.25, 0, "s8")
Q: dict[str, Any] = {"src_q": SRC_Q, "wei_q": WEI_Q}

pytestmark = pytest.mark.usefixtures("empty_cache")


def counted(call: Any) -> tuple[int, int]:
    """Hits and misses of what is called."""
    before = operator_cache_info()
    call()
    after = operator_cache_info()
    return after.hits - before.hits, after.misses - before.misses


def weights() -> Any:
    return RNG.integers(-4, 5, (8, 16)).astype(np.int8)


def test_the_same_weights_make_one_operator() -> None:
    wei = weights()
    assert counted(lambda: matmul(SRC, wei, **Q)) == (0, 1)
    assert counted(lambda: matmul(SRC, wei, **Q)) == (1, 0)
    assert counted(lambda: matmul(SRC[:1], wei, **Q)) == (1, 0)
    equal: dict[str, Any] = {"src_q": QParams(0.5, 2, "u8"), "wei_q": QParams(0.25, 0, "s8")}
    assert counted(lambda: matmul(SRC, wei.copy(), **equal)) == (1, 0)
    assert operator_cache_info().size == 1


def test_whatever_differs_makes_another() -> None:
    wei = weights()
    post = Chain(Eltwise("relu"))
    calls: list[Any] = [
        lambda: matmul(SRC, wei, **Q),
        lambda: inner_product(SRC, np.ascontiguousarray(wei.T), **Q),
        lambda: matmul(SRC, wei + np.int8(1), **Q),
        lambda: matmul(SRC, wei, np.ones(16, np.float32), **Q),
        lambda: matmul(SRC, wei, np.ones(16, np.int32), **Q),
        lambda: matmul(SRC, wei, **Q, post=post),
        lambda: matmul(SRC, wei, **Q, dst="s32"),
        lambda: matmul(SRC, wei, src_q=QParams(0.5, 3, "u8"), wei_q=WEI_Q),
        lambda: matmul(SRC, wei, **Q, policy="bitwise"),
    ]
    for call in calls:
        assert counted(call) == (0, 1)
    for call in calls:
        assert counted(call)[1] == 0


@pytest.mark.parametrize("what", ["wei", "bias"])
def test_weights_that_were_written_are_noticed(what: str) -> None:
    given: dict[str, Any] = {"wei": weights(), "bias": np.arange(16).astype(np.float32)}
    for round_ in range(4):
        given[what].flat[-1 - round_] += 1
        want = Call("matmul", SRC, given["wei"].copy(), given["bias"].copy(), **Q).meaning()
        for _ in range(2):
            want.check_equal(matmul(SRC, given["wei"], given["bias"], **Q))


def test_weights_in_place_of_others_are_noticed() -> None:
    """An array that is gone leaves its id to the next one."""
    for index in range(20):
        wei = np.full((8, 16), index - 10, np.int8)
        Call("matmul", SRC, wei, **Q).meaning().check_equal(matmul(SRC, wei, **Q))
        del wei


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
def test_floating_weights(dtype: str) -> None:
    kind = numpy_dtype(dtype)
    src, wei = SRC.astype(kind), weights().astype(kind)
    if not takes(runtime.isa(), dtype):
        pytest.skip(f"no {dtype} on {runtime.isa().text()}")
    want = Call("matmul", src, wei).meaning()
    for _ in range(2):
        want.check_equal(matmul(src, wei))
    assert operator_cache_info().misses == 1


def test_weights_of_any_layout_make_one_operator() -> None:
    wei = weights()
    want = Call("matmul", SRC, wei, **Q).meaning()
    for same in (wei, np.asfortranarray(wei), np.repeat(wei, 2, axis=1)[:, ::2], wei[::-1][::-1]):
        want.check_equal(matmul(SRC, same, **Q))
    assert operator_cache_info().misses == 1


def test_operators_used_longest_ago_go() -> None:
    operator_cache_limit(3)
    kept = [weights() for _ in range(5)]
    for wei in kept:
        matmul(SRC, wei, **Q)
    assert operator_cache_info().size == 3
    assert counted(lambda: matmul(SRC, kept[4], **Q)) == (1, 0)
    assert counted(lambda: matmul(SRC, kept[0], **Q)) == (0, 1)
    operator_cache_limit(0)
    assert operator_cache_info().size == 0
    Call("matmul", SRC, kept[0], **Q).meaning().check_equal(matmul(SRC, kept[0], **Q))
    assert operator_cache_info().size == 0


def test_clearing_forgets() -> None:
    wei = weights()
    matmul(SRC, wei, **Q)
    operator_cache_clear()
    assert operator_cache_info().size == 0
    assert counted(lambda: matmul(SRC, wei, **Q)) == (0, 1)


def test_bad_limits_are_refused() -> None:
    sizes: tuple[Any, ...] = (-1, 1.5, "many", None)
    for size in sizes:
        with pytest.raises(ArgumentError, match="size"):
            operator_cache_limit(size)


@pytest.mark.parametrize("operands", [3, "r", [("r", 1)], {3: np.ones(1, np.float32)}])
def test_operands_that_are_no_mapping_are_refused(operands: Any) -> None:
    post = Chain(Binary("add", Leaf("r", "f32", "per_tensor")))
    with pytest.raises(ArgumentError, match="operands"):
        matmul(SRC, weights(), **Q, post=post, operands=operands)


@pytest.mark.parametrize("name", ["src", "out", "residual"])
def test_operands_called_as_an_argument_are_refused(name: str) -> None:
    post = Chain(Binary("add", Leaf("r", "f32", "per_tensor")))
    with pytest.raises(ArgumentError, match=f"operands: got a leaf called '{name}'"):
        matmul(SRC, weights(), **Q, post=post, operands={"r": np.ones(1, "f4"), name: None})


def test_options_that_cannot_be_kept_are_refused() -> None:
    src, wei = np.ones((1, 8, 4, 4), np.uint8), np.ones((16, 8, 3, 3), np.int8)
    values: tuple[Any, ...] = ({1, 2}, {}, [np.array([1])])
    for value in values:
        with pytest.raises(ArgumentError):
            conv(src, wei, **Q, stride=value)
    np.testing.assert_array_equal(
        conv(src, wei, **Q, stride=[1, 1]), conv(src, wei, **Q, stride=(1, 1))
    )


def test_refused_calls_leave_nothing_behind() -> None:
    for _ in range(3):
        with pytest.raises(ArgumentError):
            matmul(SRC, weights(), **Q, self_check=cast("bool", 1))
    assert operator_cache_info().size == 0
