"""Round and clip of a FakeQuantize of 256 levels, left to the store into u8 or s8.

Accepted: the same integers with them and without them, whatever the numbers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pyonednn_q.compose.plan import Plan
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.steps import Affine, Eltwise, PRelu, Step, Sum
from pyonednn_q.primitive.post_ops import EltwisePostOp
from support.definitions.composing import SLOPE, along, composed, entering, has_tie, layer_to, ops
from support.definitions.runs import Run
from support.plans.chains import CHANNELS as C

LIMITS = {"u8": (0.0, 255.0), "s8": (-128.0, 127.0)}
BEFORE: dict[str, tuple[Step, ...]] = {
    "nothing": (),
    "a scale and a shift per channel": (Affine(np.resize([0.7, -1.3], C), np.linspace(-9, 9, C)),),
    "leaky relu": (Eltwise("relu", 0.3),),
    "prelu and an addition": (PRelu(SLOPE), Affine(1.0, 0.3)),
    "a residual": (Sum(0.7),),
}


def spelt_out(plan: Plan, dst: str) -> Plan:
    """The same plan with the round and the clip that it leaves to the store."""
    said = (EltwisePostOp("round"), EltwisePostOp("clip", *LIMITS[dst]))
    return replace(plan, attr=replace(plan.attr, post_ops=(*plan.post_ops, *said)))


def fq_for(dst: str, step: Any) -> FakeQuantize:
    low, high = LIMITS[dst]
    return FakeQuantize(low * step, high * step, low, high)


@pytest.mark.parametrize("granularity", ["per tensor", "per channel"])
@pytest.mark.parametrize("numbers", ["dyadic", "any"])
@pytest.mark.parametrize("name", BEFORE)
@pytest.mark.parametrize("dst", LIMITS)
def test_same_integers_with_and_without(
    dst: str, name: str, numbers: str, granularity: str, run: Run
) -> None:
    layer = layer_to(dst)
    step: Any = np.resize([0.25, 0.5, 0.125] if numbers == "dyadic" else [0.23, 0.41, 0.137], C)
    if granularity == "per tensor":
        step = float(step[0])
    plan = composed(layer, *BEFORE[name], fq_for(dst, step).chain())
    assert not {"eltwise_round", "eltwise_clip"} & {op.split(":")[0] for op in ops(plan)}
    without, with_both = run(layer, plan), run(layer, spelt_out(plan, dst))
    np.testing.assert_array_equal(without, with_both)
    assert {int(limit) for limit in LIMITS[dst]} <= set(without.reshape(-1).tolist())


@pytest.mark.parametrize("dst", LIMITS)
def test_ties_go_to_even_both_ways(dst: str, run: Run) -> None:
    layer, step = layer_to(dst), np.resize([0.5, 1.0, 0.5], C)
    plan = composed(layer, fq_for(dst, step).chain())
    place = np.clip(entering(layer) / along(step), *LIMITS[dst])
    assert has_tie(place)
    for built in (plan, spelt_out(plan, dst)):
        np.testing.assert_array_equal(run(layer, built), np.rint(place))
