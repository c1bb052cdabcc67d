"""The seven steps and Chain: constructors that reject nonsense, and their text."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.expr.steps import (
    Affine,
    Binary,
    Chain,
    Clip,
    Eltwise,
    Leaf,
    PRelu,
    Round,
    Step,
    Sum,
)
from pyonednn_q.expr.vec import Vec

INF, NAN = float("inf"), float("nan")

STEPS: tuple[tuple[Step, str], ...] = (
    (Affine(), "x"),
    (Affine(2), "2*x"),
    (Affine(1, -0.5), "x - 0.5"),
    (Affine(-2, 3), "-2*x + 3"),
    (Affine([1, 2], [0, -1]), "[1, 2]*x + [0, -1]"),
    (Affine(0, 3), "constant 3"),
    (Clip(0, 6), "clip(x, 0, 6)"),
    (Clip(0), "max(x, 0)"),
    (Clip(hi=[1, 2]), "min(x, [1, 2])"),
    (Round(), "round(x)"),
    (Eltwise("relu"), "relu(x)"),
    (Eltwise("relu", 0.1), "relu(x, 0.1)"),
    (Eltwise("tanh"), "tanh(x)"),
    (Eltwise("hardswish", 0.25, 0.5), "hardswish(x, 0.25, 0.5)"),
    (PRelu([0.5, 0.25]), "prelu(x, [0.5, 0.25])"),
    (Sum(), "x + dst"),
    (Sum(0.5, 3, "u8"), "x + 0.5*(dst as u8 - 3)"),
    (Sum(2, -3), "x + 2*(dst + 3)"),
    (Binary("add", Leaf("res")), "x + res"),
    (Binary("max", [1, 2]), "max(x, [1, 2])"),
    (Binary("ge", 0.5), "x >= 0.5"),
)

NONSENSE: tuple[tuple[Callable[[], object], type[Exception], str], ...] = (
    (lambda: Affine(INF), ArgumentError, "scale: got inf; wanted finite numbers"),
    (lambda: Affine(1, [0, -INF]), ArgumentError, "shift"),
    (lambda: Affine([1, 2], [1, 2, 3]), ShapeError, "shift: got 3 channels; wanted 2"),
    (lambda: Clip(1, 0), ArgumentError, "lo: got lo 1 with hi 0; wanted lo <= hi"),
    (lambda: Clip([0, 3], [2, 2]), ArgumentError, "lo <= hi in every channel"),
    (lambda: Clip(INF), ArgumentError, "nothing is above"),
    (lambda: Clip(hi=-INF), ArgumentError, "nothing is below"),
    (lambda: Clip([0, INF], INF), ArgumentError, "nothing is above"),
    (lambda: Clip(NAN), ArgumentError, "NaN"),
    (lambda: Clip([0, 1], [3, 4, 5]), ShapeError, "hi: got 3 channels"),
    (lambda: Eltwise("reluu"), ArgumentError, "alg: got 'reluu'; wanted one of abs, clip"),
    (lambda: Eltwise("relu", NAN), ArgumentError, "alpha: got nan"),
    (lambda: Eltwise("relu", INF), ArgumentError, "alpha: got inf"),
    (lambda: Eltwise("relu", 0, 1), ArgumentError, "beta: got 1; wanted 0: relu ignores it"),
    (lambda: Eltwise("tanh", 2), ArgumentError, "alpha: got 2; wanted 0"),
    (lambda: Eltwise("clip", 1, 0), ArgumentError, "alpha: got 1; wanted at most beta = 0"),
    (lambda: Eltwise("clip", NAN, 0), ArgumentError, "alpha: got nan"),
    (lambda: Eltwise("soft_relu"), ArgumentError, "divides by alpha"),
    (lambda: PRelu([0.5, INF]), ArgumentError, "slope"),
    (lambda: Sum(INF), ArgumentError, "scale"),
    (lambda: Sum(1, untyped(0.5)), ArgumentError, "zero_point: got 0.5"),
    (lambda: Sum(1, 0, "u4"), DTypeError, "dtype: got 'u4'"),
    (lambda: Binary(untyped("pow"), 1), ArgumentError, "alg: got 'pow'"),
    (lambda: Binary("div", [1, 0]), ArgumentError, "no zero: it divides"),
    (lambda: Binary("add", INF), ArgumentError, "operand"),
    (lambda: Leaf("not a name"), ArgumentError, "name"),
    (lambda: Leaf("x", "f64"), DTypeError, "dtype"),
    (lambda: Leaf("x", "f32", untyped("row")), ArgumentError, "extent"),
    (lambda: Chain(Affine([1, 2]), Round(), Clip([0, 1, 2])), ShapeError, r"steps\[2\]: got 3"),
    (lambda: Chain(untyped("relu")), ArgumentError, "steps: got str"),
)


@pytest.mark.parametrize(("step", "text"), STEPS, ids=str)
def test_text(step: Step, text: str) -> None:
    assert str(step) == text


@pytest.mark.parametrize(("step", "text"), STEPS, ids=str)
def test_steps_are_values(step: Step, text: str) -> None:
    again = pickle.loads(pickle.dumps(step))
    assert (again, hash(again), str(again)) == (step, hash(step), text)
    assert step not in [other for other, _ in STEPS if other is not step]


@pytest.mark.parametrize(("make", "error", "problem"), NONSENSE)
def test_nonsense_is_rejected(
    make: Callable[[], object], error: type[Exception], problem: str
) -> None:
    with pytest.raises(error, match=problem):
        make()


def test_steps_are_frozen() -> None:
    with pytest.raises(AttributeError):
        Affine(2).scale = Vec(3)  # type: ignore[misc]


@pytest.mark.parametrize("lo", [0, 0.0, np.float64(0), [0.0, 0.0], Vec(0)])
def test_constants_may_be_anything_that_is_one(lo: Any) -> None:
    assert Clip(lo, 6) == Clip(0, 6)


class TestChain:
    CHAIN = Chain(Affine([1, 2]), Round(), Clip(0, 6))

    def test_is_a_sequence(self) -> None:
        assert len(self.CHAIN) == 3
        assert self.CHAIN[1] == Round()
        assert self.CHAIN[1:] == Chain(Round(), Clip(0, 6))
        assert list(self.CHAIN) == list(self.CHAIN.steps)

    def test_splices_chains(self) -> None:
        assert Chain(self.CHAIN, Round()) == self.CHAIN + Chain(Round())

    def test_knows_its_channels(self) -> None:
        assert (self.CHAIN.channels, Chain().channels) == (2, None)

    def test_prints_as_a_pipeline(self) -> None:
        assert str(self.CHAIN) == "[1, 2]*x > round(x) > clip(x, 0, 6)"
        assert str(Chain()) == "x"


def untyped(value: Any) -> Any:
    """Pass what the type checker would not let through."""
    return value


def test_a_sum_takes_any_whole_number_as_zero_point() -> None:
    """A chain's zero points are exact; what a type holds is for those to say who have one."""
    assert Sum(1.0, 2**130).zero_point == 2**130
