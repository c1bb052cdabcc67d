"""Functional calls that are known skip Python, and else are the functions they seem."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import pydoc
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q import QParams, native
from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.chain import Chain
from pyonednn_q.expr.steps import Binary, Leaf, Sum
from support.frames import frames

SRC = np.arange(8, dtype=np.uint8).reshape(2, 4)
WEI = np.arange(-16, 16, dtype=np.int8).reshape(4, 8)
BIAS = np.arange(8, dtype=np.float32)
Q: dict[str, Any] = {"src_q": QParams(0.5, 0, "u8"), "wei_q": QParams(0.25, 0, "s8")}
# Both factors are powers of two: float64 has all of these results.
DST = (SRC.astype(np.float64) @ WEI / 8).astype(np.float32)
FUNCTIONS = (pq.conv, pq.deconv, pq.inner_product, pq.matmul)
matmul: Any = pq.matmul  # to be called as its types forbid


@pytest.fixture(autouse=True)
def empty_cache() -> Iterator[None]:
    pq.operator_cache_clear()
    yield
    pq.operator_cache_clear()


WAYS: dict[str, Callable[[], Any]] = {
    "in order": lambda: matmul(SRC, WEI, BIAS, **Q),
    "bias by name": lambda: matmul(SRC, WEI, bias=BIAS, **Q),
    "all by name": lambda: matmul(wei=WEI, src=SRC, bias=BIAS, **Q),
    "into out": lambda: matmul(SRC, WEI, BIAS, out=np.empty((2, 8), np.float32), **Q),
    "with nothing": lambda: matmul(SRC, WEI, BIAS, out=None, residual=None, operands=None, **Q),
    "with an option": lambda: matmul(SRC, WEI, BIAS, dst_q=None, **Q),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_known_call_enters_no_python(way: str) -> None:
    call = WAYS[way]
    assert np.array_equal(call(), DST + BIAS)
    call()  # that primitive has run: from now on it is hot
    assert frames(call) == []
    assert np.array_equal(call(), DST + BIAS)
    assert pq.operator_cache_info().hits == 3


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: str(function.__name__))
def test_each_finds_its_own(function: Callable[..., Any]) -> None:
    dense = function in (pq.inner_product, pq.matmul)
    src, wei = (np.full(dims, 2, np.uint8) for dims in ((3, 4), (4, 4)))
    if not dense:
        src, wei = src[..., None, None], wei[..., None, None]
    wei = wei.view(np.int8)

    def call() -> Any:
        return function(src, wei, **Q)

    for _ in range(2):
        call()
    assert frames(call) == []
    assert call().reshape(3, 4).tolist() == [[2.0] * 4] * 3


def test_out_and_residual_go_where_they_belong() -> None:
    post = Chain(Sum())
    out, residual = np.empty((2, 8), np.float32), np.ones((2, 8), np.float32)
    for _ in range(3):
        assert matmul(SRC, WEI, out=out, residual=residual, post=post, **Q) is out
        assert np.array_equal(out, DST + 1)
        assert np.array_equal(residual, np.ones((2, 8)))
    for _ in range(3):
        out.fill(2)
        assert matmul(SRC, WEI, out=out, post=post, **Q) is out
        assert np.array_equal(out, DST + 2)


def test_calls_with_operands_are_python_s() -> None:
    post = Chain(Binary("mul", Leaf("r", "f32")))
    two = np.full((2, 8), 2, np.float32)
    for _ in range(3):
        assert np.array_equal(matmul(SRC, WEI, operands={"r": two}, post=post, **Q), DST * 2)
    assert pq.operator_cache_info().hits == 2
    with pytest.raises(ArgumentError, match="r: got nothing"):
        matmul(SRC, WEI, post=post, **Q)


def test_names_that_are_not_interned_are_the_same_names() -> None:
    name = "".join("out")
    assert name is not sys.intern("out")
    out = np.empty((2, 8), np.float32)
    for _ in range(3):
        assert matmul(SRC, WEI, **{name: out}, **Q) is out
    assert np.array_equal(out, DST)


@pytest.mark.parametrize("known", [False, True])
def test_wrong_arguments_are_refused_as_by_any_function(known: bool) -> None:
    if known:
        for _ in range(2):
            matmul(SRC, WEI, **Q)
    with pytest.raises(TypeError, match=r"matmul\(\) missing 1 required positional argument"):
        matmul(SRC, **Q)
    with pytest.raises(TypeError, match=r"matmul\(\) missing 2 required positional arguments"):
        matmul()
    with pytest.raises(TypeError, match="multiple values for argument 'wei'"):
        matmul(SRC, WEI, wei=WEI, **Q)
    with pytest.raises(TypeError, match=r"matmul\(\) takes from 2 to 3 positional arguments but 4"):
        matmul(SRC, WEI, None, None, **Q)
    with pytest.raises(ArgumentError, match="none_such"):
        matmul(SRC, WEI, none_such=1, **Q)
    with pytest.raises(ArgumentError, match="none_0"):
        matmul(SRC, WEI, **{f"none_{i}": i for i in range(100)}, **Q)
    with pytest.raises(ArgumentError, match="src"):
        matmul("text", WEI, **Q)
    with pytest.raises(ArgumentError, match="wei"):
        matmul(SRC, "text", **Q)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: str(function.__name__))
def test_they_are_functions_to_look_at(function: Any) -> None:
    name = function.__name__
    assert function.__module__ == "pyonednn_q.ops.functional"
    assert repr(function).startswith(f"<function {name} at ")
    parameters = list(inspect.signature(function).parameters)
    assert parameters == ["src", "wei", "bias", "out", "residual", "operands", "options"]
    assert inspect.isroutine(function)
    assert inspect.getsource(function).count(f"def {name}(") == 1
    page = pydoc.plain(pydoc.render_doc(function))
    assert page.index(f"{name}(") < page.index("src: 'Tensor'") < page.index("Return ")
    assert pickle.loads(pickle.dumps(function)) is function
    assert copy.copy(function) is copy.deepcopy(function) is function
    assert weakref.ref(function)() is function


def test_as_an_attribute_of_a_class_they_are_methods() -> None:
    class Tensor(np.ndarray[Any, Any]):
        product = pq.matmul

    tensor: Any = SRC.view(Tensor)
    for _ in range(3):
        assert np.array_equal(tensor.product(WEI, **Q), DST)


def test_nobody_else_makes_them() -> None:
    with pytest.raises(TypeError, match="cannot create"):
        type(matmul)()
    with pytest.raises(TypeError, match="incompatible function arguments"):
        native.runtime.core().hot_function(len, len, None)


def test_they_let_go() -> None:
    core = native.runtime.core()

    class Kept:
        def __call__(self, *_: object, **__: object) -> object:
            return self

    kept = Kept()
    found = weakref.ref(kept)
    hot = core.hot_function(kept, kept, core.KnownCalls())
    assert hot(1, 2, some="option") is kept
    hot.itself = hot
    references = sys.getrefcount(SRC)
    for _ in range(100):
        hot(SRC, SRC, out=SRC, other=SRC)
    assert sys.getrefcount(SRC) == references
    del kept, hot
    gc.collect()
    assert found() is None
