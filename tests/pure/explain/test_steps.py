"""Every kind of step that a description may name becomes the step it stands for."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from pyonednn_q.explain import read
from pyonednn_q.explain.step_tables import STEPS as KINDS
from pyonednn_q.expr.algs import ALGS
from pyonednn_q.expr.fake_quantize import FakeQuantize
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

PER_CHANNEL = {"cycle": [1, 2]}
SPREAD = Vec([1, 2, 1])

STEPS: list[tuple[object, Step | Chain]] = [
    ({"step": "affine"}, Affine()),
    ({"step": "affine", "scale": [1, 2, 3], "shift": -4}, Affine([1, 2, 3], -4)),
    ({"step": "multiply", "value": 3}, Binary("mul", 3)),
    ({"step": "divide", "value": PER_CHANNEL}, Binary("div", SPREAD)),
    ({"step": "add", "value": [3]}, Binary("add", 3)),
    ({"step": "subtract", "value": PER_CHANNEL}, Binary("sub", SPREAD)),
    ({"step": "maximum", "value": 0}, Binary("max", 0)),
    ({"step": "minimum", "value": 0.5}, Binary("min", 0.5)),
    ({"step": "clip"}, Clip()),
    ({"step": "clip", "lo": PER_CHANNEL}, Clip(SPREAD, inf)),
    ({"step": "clip", "hi": 6}, Clip(-inf, 6)),
    ("round", Round()),
    ("relu", Eltwise("relu")),
    ({"step": "relu", "alpha": 0.1}, Eltwise("relu", 0.1)),
    ({"step": "prelu", "slope": PER_CHANNEL}, PRelu(SPREAD)),
    ("sum", Sum()),
    ({"step": "sum", "scale": 0.5, "zero_point": 3, "dtype": "s8"}, Sum(0.5, 3, "s8")),
    ({"step": "binary", "alg": "max", "value": 3}, Binary("max", 3)),
    ({"step": "binary", "alg": "add", "leaf": "r"}, Binary("add", Leaf("r"))),
    (
        {"step": "binary", "alg": "mul", "leaf": "g", "dtype": "s8", "extent": "per_channel"},
        Binary("mul", Leaf("g", "s8", "per_channel")),
    ),
    ({"step": "eltwise", "alg": "clip", "alpha": 0, "beta": 6}, Eltwise("clip", 0, 6)),
    ({"step": "eltwise", "alg": "relu"}, Eltwise("relu")),
    ("gelu_erf", Eltwise("gelu_erf")),
    ({"step": "hardswish", "alpha": 0.25, "beta": 0.5}, Eltwise("hardswish", 0.25, 0.5)),
    (
        {"step": "fake_quantize", "input_low": 0, "input_high": PER_CHANNEL},
        FakeQuantize(0, SPREAD, 0, SPREAD).chain(),
    ),
    (
        {"step": "fake_quantize", "input_low": 0, "input_high": 1, "output_high": 15, "levels": 16},
        FakeQuantize(0, 1, 0, 15, 16).chain(),
    ),
    (
        {"step": "fake_quantize", "symmetric": 1.27, "output_low": -128, "output_high": 127},
        FakeQuantize.symmetric(1.27, output_low=-128, output_high=127).chain(),
    ),
]  # fmt: skip


def chain_of(step: object) -> Chain:
    """Return the chain of a layer of three output channels with one step."""
    layer = {"op": "matmul", "src": {"dims": [2, 4]}, "wei": {"dims": [4, 3]}, "dst": "f32"}
    return read({**layer, "chain": [step]}).chain


@pytest.mark.parametrize(("value", "step"), STEPS, ids=lambda value: str(value)[:60])
def test_step(value: object, step: Step | Chain) -> None:
    assert chain_of(value) == Chain(step)


def test_every_kind_is_tried() -> None:
    tried = {value["step"] if isinstance(value, dict) else value for value, _ in STEPS}
    assert set(KINDS) - set(ALGS) <= tried


@pytest.mark.parametrize("alg", ALGS)
def test_every_algorithm_is_a_step(alg: str) -> None:
    keys = ("alpha", "beta")[: ALGS[alg].parameters]
    numbers: dict[str, Any] = dict(zip(keys, (0.25, 0.5), strict=False))
    step = Eltwise(alg, **numbers)
    assert chain_of({"step": "eltwise", "alg": alg, **numbers}) == Chain(step)
    if alg not in {"clip", "round"}:  # steps of their own
        assert chain_of({"step": alg, **numbers}) == Chain(step)
