"""Calls that skip Python mean what `__call__` says, and leave it whatever is not theirs."""

from __future__ import annotations

import copy
import gc
import sys
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pyonednn_q import Conv, MatMul, QParams, prepare
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.expr.steps import Binary, Chain, Leaf
from pyonednn_q.native.runtime import HotCallable
from pyonednn_q.primitive.attr import Attr
from pyonednn_q.primitive.dense import MatMulProblem
from support.frames import frames

if TYPE_CHECKING:
    from pyonednn_q.native import Prepared

Array = np.ndarray[Any, Any]


@pytest.fixture
def prepared() -> Prepared:
    wei = np.arange(-16, 16, dtype=np.int8).reshape(4, 8)
    return prepare(MatMulProblem.of((2, 4), (4, 8)), Attr(), wei=wei)


@pytest.fixture
def operator() -> MatMul:
    wei = np.arange(-16, 16, dtype=np.int8).reshape(4, 8)
    q = QParams(0.5, 0, "u8")
    return MatMul(wei, src_q=q, wei_q=QParams(0.25, 0, "s8"), dst_q=QParams(1.0, 100, "u8"))


def callable_of(called: Any) -> Any:
    """Return the same without its types, to be called as they forbid."""
    return called


SRC = np.arange(8, dtype=np.uint8).reshape(2, 4)


def test_a_prepared_call_enters_no_python(prepared: Prepared) -> None:
    out = prepared.empty()
    assert frames(lambda: prepared(SRC, out=out)) == []
    assert frames(lambda: prepared(SRC)) == []
    assert frames(lambda: prepared(SRC, out=None)) == []
    assert np.array_equal(prepared(SRC), out)
    assert prepared(SRC, out=out) is out


def test_an_operator_enters_no_python_from_its_second_call_on(operator: MatMul) -> None:
    first = operator(SRC)
    assert frames(lambda: operator(SRC)) == []
    assert frames(lambda: operator(SRC, out=first)) == []
    assert np.array_equal(operator(SRC), first)


def test_a_plan_enters_no_python_where_it_is_a_primitive(operator: MatMul) -> None:
    planned = operator.prepare(SRC.shape)
    assert frames(lambda: planned(SRC)) == []
    assert np.array_equal(planned(SRC), operator(SRC))
    wei = operator.weights.values
    q: dict[str, Any] = {"src_q": QParams(0.5, 0, "u8"), "wei_q": QParams(0.25, 0, "s8")}
    with_leaf = MatMul(wei, **q, post=Chain(Binary("mul", Leaf("r", "f32"))))
    twice = np.full((2, 8), 2, np.float32)
    planned = with_leaf.prepare(SRC.shape)
    assert "__call__" in frames(lambda: planned(SRC, r=twice))
    assert np.array_equal(planned(SRC, r=twice), 2 * MatMul(wei, **q)(SRC))
    with pytest.raises(ArgumentError, match="r: got nothing"):
        planned(SRC)


def test_what_does_not_fit_is_answered_by_python(prepared: Prepared, operator: MatMul) -> None:
    wanted = prepared(SRC)
    wide = np.zeros((2, 8), np.uint8)
    wide[:, ::2] = SRC
    assert "__call__" in frames(lambda: prepared(wide[:, ::2]))
    assert np.array_equal(prepared(wide[:, ::2]), wanted)
    with pytest.raises(DTypeError, match="src"):
        prepared(SRC.astype(np.int16))
    with pytest.raises(ArgumentError, match="inputs"):
        prepared(SRC, SRC)
    with pytest.raises(ArgumentError, match="inputs"):
        prepared(*[SRC] * 12)
    operator(SRC)
    with pytest.raises(ShapeError):
        operator(SRC[:, :3])


def test_names_of_arguments_are_those_of_the_signature(
    prepared: Prepared, operator: MatMul
) -> None:
    wanted = operator(SRC)
    untyped = callable_of(operator)
    assert np.array_equal(operator(src=SRC), wanted)
    assert np.array_equal(operator(SRC, residual=None, out=None), wanted)
    assert np.array_equal(operator(*(SRC,), **{str(b"out", "ascii"): None}), wanted)
    with pytest.raises(TypeError, match="positional"):
        untyped(SRC, wanted)
    with pytest.raises(TypeError, match="src"):
        untyped()
    with pytest.raises(ArgumentError, match="'scale'"):
        operator(SRC, scale=SRC)
    with pytest.raises(TypeError, match="unexpected keyword"):
        callable_of(prepared)(SRC, into=None)


def test_called_by_its_name_it_gives_the_same(prepared: Prepared, operator: MatMul) -> None:
    assert np.array_equal(type(prepared).__call__(prepared, SRC), prepared(SRC))
    assert np.array_equal(MatMul.__call__(operator, SRC), operator(SRC))
    assert "src" in str(MatMul.__call__.__doc__)


class Doubled(MatMul):
    """Overrides the call, and inherits the hot way."""

    def __call__(self, src: Any, **named: Any) -> Array:
        return np.multiply(super().__call__(src, **named), 2)


class Twice:
    """The same from the side."""

    def __call__(self, src: Any, **named: Any) -> Array:
        after: Any = super()
        dst: Array = after.__call__(src, **named)
        return np.multiply(dst, 2)


class Mixed(Twice, MatMul):
    """Has its call from a class that knows nothing of hot ways."""


class Named(MatMul):
    """Overrides nothing."""


class OfMixed(Mixed):
    """Inherits what was overridden."""


@pytest.mark.parametrize("kind", [Doubled, Mixed, OfMixed])
def test_calls_that_are_overridden_are_called(kind: type[MatMul], operator: MatMul) -> None:
    wei = operator.weights.values
    other = kind(wei, src_q=QParams(0.5, 0, "u8"), wei_q=QParams(0.25, 0, "s8"))
    plain = MatMul(wei, src_q=QParams(0.5, 0, "u8"), wei_q=QParams(0.25, 0, "s8"))
    for _ in range(3):
        assert np.array_equal(other(SRC), 2 * plain(SRC))


def test_calls_that_are_inherited_stay_hot(operator: MatMul) -> None:
    wei = operator.weights.values
    other = Named(wei, src_q=QParams(0.5, 0, "u8"), wei_q=QParams(0.25, 0, "s8"))
    other(SRC)
    assert frames(lambda: other(SRC)) == []


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python 3.12 takes the flag back")
def test_a_call_assigned_later_is_called(operator: MatMul) -> None:
    class Later(MatMul):
        pass

    other = Later(operator.weights.values, src_q=QParams(0.5, 0, "u8"), wei_q=QParams(1.0, 0, "s8"))
    other(SRC)
    callable_of(Later).__call__ = lambda *_, **__: "assigned"
    assert other(SRC) == "assigned"


class Recorder(HotCallable, hot=True):
    """What reaches whom."""

    def __init__(self) -> None:
        self.seen: list[object] = []

    def __call__(self, *inputs: object, **named: object) -> object:
        self.seen.append((inputs, named))
        return "python"

    def hot(self, *args: object) -> object:
        self.seen.append(args)
        return "hot" if args[0] == 1 else NotImplemented


def test_who_is_asked() -> None:
    recorder = Recorder()
    assert recorder(1) == "python"
    assert recorder._hot is None
    recorder._hot = recorder.hot
    recorder.seen.clear()
    assert recorder(1) == "hot"
    assert recorder(1, 2, out=3) == "hot"
    assert recorder(1, out=3, residual=2) == recorder(1, residual=2, out=3) == "hot"
    assert recorder(4, out=5) == "python"
    assert recorder(1, out=2, more=3) == "python"
    assert recorder(*range(1, 10)) == "python"
    assert recorder.seen == [
        (1, None, None),
        (1, 2, None, 3),
        *2 * [(1, 2, 3)],
        (4, None, 5),
        ((4,), {"out": 5}),
        ((1,), {"out": 2, "more": 3}),
        (tuple(range(1, 10)), {}),
    ]
    del recorder._hot
    assert recorder(1) == "python"
    with pytest.raises(TypeError, match="cold"):
        type("Other", (HotCallable,), {}, cold=True)


def test_what_the_hot_way_raises_is_raised() -> None:
    recorder = Recorder()

    def fail(*_: object) -> None:
        recorder._hot = None  # the function is still running
        msg = "hot"
        raise ValueError(msg)

    recorder._hot = fail
    with pytest.raises(ValueError, match="hot"):
        recorder(1)
    assert recorder(1) == "python"


def test_cycles_through_the_hot_way_are_collected() -> None:
    recorder = Recorder()
    recorder._hot = recorder.hot
    gone = weakref.ref(recorder)
    del recorder
    gc.collect()
    assert gone() is None


def test_no_reference_is_left_or_lost(prepared: Prepared) -> None:
    out = prepared.empty()
    wide = np.zeros((2, 8), np.uint8)[:, ::2]
    prepared(SRC, out=out)
    counted: tuple[object, ...] = (out, SRC, wide, prepared, prepared._hot)
    before = [sys.getrefcount(item) for item in counted]
    for _ in range(100):
        prepared(SRC, out=out)
        prepared(wide, out=out)
        prepared(SRC)
    assert [sys.getrefcount(item) for item in counted] == before


def test_copies_are_as_hot(prepared: Prepared, operator: MatMul) -> None:
    other = copy.copy(prepared)
    assert frames(lambda: other(SRC)) == []
    assert np.array_equal(other(SRC), prepared(SRC))
    again = copy.copy(operator)
    assert np.array_equal(again(SRC), operator(SRC))
    assert frames(lambda: again(SRC)) == []


def test_signatures_are_those_of_python() -> None:
    for kind in (Conv, MatMul):
        assert "residual" in kind.__call__.__annotations__
