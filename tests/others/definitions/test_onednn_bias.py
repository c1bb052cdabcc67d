"""What a bias is: in real units, as oneDNN v3 takes it, or in units of the accumulator.

Accepted: both, chosen by name (`bias_in_acc`). A sum of 200 with scales 0.5 and 0.1 and a bias of
100 is 110 in real units, and 15 as an integer that the scales multiply; the primitive itself adds
an f32 or s32 bias after the scales, unscaled.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pyonednn_q.compose.composer import compose
from pyonednn_q.compose.plan import Plan
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.steps import Chain
from pyonednn_q.expr.vec import Vec
from pyonednn_q.primitive.attr import Attr, Scale
from pyonednn_q.primitive.dense_facts import PrimitiveFacts
from pyonednn_q.primitive.problem import ConvProblem
from support.definitions.runs import Run, sums
from support.oracle_numbers import convert
from support.plans.chains import CHANNELS as C
from support.plans.problems import USUAL_KINDS, problem
from support.plans.runs import Layer
from support.unguarded import results

SRC_SCALE, WEI_SCALE, BIAS = 0.5, 0.1, 100
MEANINGS = {False: 110.0, True: 15.0}


def example(dst: str = "f32") -> Layer:
    """A 1x1 convolution whose sums are all 200."""
    of = ConvProblem.of((1, C, 2, 2), (C, C, 1, 1), dst=dst)
    src, wei = np.full(of.src.dims, 5, np.uint8), np.zeros(of.wei.dims, np.int8)
    wei[:, :4] = 10
    return Layer(of, src, wei, np.zeros(0), {})


def composed(layer: Layer, bias: Any, in_acc: bool, **more: Any) -> Plan:
    facts = PrimitiveFacts.of(layer.problem, wei=layer.wei, bias=bias, bias_in_acc=in_acc, **more)
    return compose(Chain(), facts, strict=True)


@pytest.mark.parametrize("dst", ["f32", "u8"])
@pytest.mark.parametrize("in_acc", MEANINGS)
def test_110_or_15(in_acc: bool, dst: str, run: Run) -> None:
    layer = example(dst)
    assert (sums(layer) == 200).all()
    plan = composed(layer, BIAS, in_acc, src_scale=SRC_SCALE, wei_scale=WEI_SCALE)
    # 0.1 is no float32 number: its rounding, and those of the product and the sum.
    room = 2 * np.spacing(np.float32(MEANINGS[in_acc])) if dst == "f32" else 0
    assert (abs(run(layer, plan) - MEANINGS[in_acc]) <= room).all()


def test_real_units_are_the_default() -> None:
    facts = PrimitiveFacts("convolution", C, wei_scale=Vec(WEI_SCALE), bias=Vec(BIAS))
    assert not facts.bias_in_acc
    assert compose(Chain(), facts).bias_values() == pytest.approx(np.full(C, 100.0))


@pytest.mark.executed
@pytest.mark.parametrize("dtype", ["f32", "s32"])
def test_the_primitive_adds_its_bias_unscaled(dtype: str) -> None:
    """Of either type, on every implementation: 200 · 0.5 · 0.1 + 100."""
    layer = example()
    of = ConvProblem.of((1, C, 2, 2), (C, C, 1, 1), dst="f32", bias=dtype)
    arrays = {
        "src": layer.src,
        "wei": layer.wei,
        "bias": np.full(C, BIAS, np.float32 if dtype == "f32" else np.int32),
    }
    attr = Attr(src_scale=Scale(), wei_scale=Scale())
    scales = {"src_scale": SRC_SCALE, "wei_scale": WEI_SCALE}
    values = {name: np.array([scale], np.float32) for name, scale in scales.items()}
    for impl, answer in results(of, attr, arrays, values):
        assert (abs(answer - 110) <= 2 * np.spacing(np.float32(110))).all(), impl


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("in_acc", MEANINGS)
@pytest.mark.parametrize("kind", USUAL_KINDS)
def test_every_primitive_on_dyadic_numbers(kind: str, in_acc: bool, later: bool, run: Run) -> None:
    """Per channel, with a FakeQuantize behind it, known early or late: exactly the formula."""
    layer = Layer.of(problem(kind, "u8", bias="f32" if later else None), seed=6)
    wei_scale, bias = np.resize([0.5, 0.25, 1.0], C), np.arange(C) * 3.0 - 20
    step = np.resize([0.5, 1.0], C)
    chain = FakeQuantize(0, 255 * step, 0, 255).chain()
    facts = PrimitiveFacts.of(
        layer.problem, wei=layer.wei, src_scale=SRC_SCALE, wei_scale=wei_scale,
        bias=None if later else bias, bias_in_acc=in_acc,
    )  # fmt: skip
    plan = compose(chain, facts, strict=True)
    assert plan.post_ops == ()
    dims = (1, -1, *(1,) * (layer.problem.dst.ndim - 2))
    scale, b = (np.reshape(v, dims) for v in (SRC_SCALE * wei_scale, bias))
    acc = sums(replace(layer, problem=replace(layer.problem, bias=None)))
    x = scale * (acc + b) if in_acc else scale * acc + b
    want = convert(np.clip(x / np.reshape(step, dims), 0, 255), "u8")
    np.testing.assert_array_equal(run(layer, plan, bias if later else None), want)
