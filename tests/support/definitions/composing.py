"""What the tests of composing share: one small convolution, constants, and readings of a plan.

Tensors are small whole numbers and constants dyadic, so float32 is exact and ties occur.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.compose.composer import compose
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.steps import Chain, Eltwise, Step
from pyonednn_q.primitive.dense_facts import PrimitiveFacts
from support.definitions.runs import sums
from support.oracle_numbers import convert
from support.plans.chains import CHANNELS as C
from support.plans.problems import problem
from support.plans.runs import Layer

if TYPE_CHECKING:
    from pyonednn_q.compose.plan import Plan
    from support.definitions.runs import Run

SCALE = np.resize([0.5, 0.25, 1.0], C)  # of the weights
STEP = np.resize([0.25, 0.5, 1.0], C)  # of a FakeQuantize per channel
SIGNED = np.resize([0.5, -2.0, 1.0, -0.25], C)
SHIFT = np.resize([1.0, -2.0, 0.5, 3.0, 0.0], C)
ONES = np.ones(C)
POSITIVE, SLOPE = abs(SIGNED), np.resize([0.25, 0.5], C)
LOW, HIGH, BIAS = -abs(SHIFT), 1 + abs(SHIFT), 2.5 * SHIFT
BLOCK = Eltwise("hardswish", 0.25, 0.5)  # lets nothing pass, and is exact on dyadic numbers
BLOCKED = "eltwise_hardswish:0.25:0.5"


def layer_to(dst: str, src: str = "u8") -> Layer:
    return Layer.of(problem("convolution", dst, src, bias=None), seed=8)


def composed(layer: Layer, *steps: Step | Chain, bias: Any = None, **options: Any) -> Plan:
    facts = PrimitiveFacts.of(layer.problem, wei=layer.wei, wei_scale=SCALE, bias=bias)
    return compose(Chain(*steps), facts, strict=True, **options)


def along(values: Any) -> Any:
    """A constant as NumPy broadcasts it."""
    return np.reshape(values, (1, -1, 1, 1))


def entering(layer: Layer, bias: Any = 0.0) -> Any:
    """What the chain receives: weight scale times sum, plus bias."""
    return along(SCALE) * sums(layer) + along(bias)


def block(x: Any) -> Any:
    return x * np.clip(0.25 * x + 0.5, 0, 1)


def bent(x: Any, slope: Any) -> Any:
    return np.where(x >= 0, x, along(slope) * x)


def ops(plan: Plan) -> list[str]:
    """The post-ops as text; an operand only says whether it is one number for all channels."""
    per_channel, one = f":f32:1x{C}x1x1", ":f32:1x1x1x1"
    texts = (op.text().removesuffix(per_channel) for op in plan.post_ops)
    return [text.replace(one, " of one number") for text in texts]


def check(run: Run, layer: Layer, plan: Plan, y: Any) -> None:
    """Compare with the chain as it was written: for an integer dst, rounded and saturated."""
    np.testing.assert_array_equal(run(layer, plan), convert(y, plan.facts.dst))


def fq(low: int, levels: int, step: Any = STEP, *, out: float = 1.0) -> Chain:
    """Levels from `low`, of a width per channel; stored as levels times `out`."""
    top = low + levels - 1
    return FakeQuantize(low * step, top * step, low * out, top * out, levels).chain()


def levels_of(x: Any, low: int, levels: int, step: Any = STEP) -> Any:
    """What that stores, counted from 0 as the definition does."""
    place = np.clip(x / along(step), low, low + levels - 1)
    assert has_tie(place), "nothing decides which way ties go"
    return np.rint(place - low) + low


def has_tie(y: Any) -> bool:
    return bool((y % 1 == 0.5).any())


def refusals(plan: Plan) -> str:
    return "\n".join(record.reason for record in plan.records if not record.fired)


def fired(plan: Plan) -> set[str]:
    return {record.rule for record in plan.records if record.fired}


@dataclass(frozen=True, eq=False)
class Case:
    """A chain, what is left of it, and what it means.

    Attributes
    ----------
    steps : tuple of Step or Chain
        As they are appended.
    left : sequence of str
        The post-ops of the plan.
    meaning : callable
        What enters the chain, and what dst held, to what is stored; in NumPy.
    refused : str
        Part of the reason for which the rule did not fire.
    dst : str
        Data type of dst.
    options : mapping
        Of `composed`.
    """

    steps: tuple[Step | Chain, ...]
    left: list[str]
    meaning: Callable[[Any, Any], Any]
    refused: str = ""
    dst: str = "f32"
    options: Mapping[str, Any] = field(default_factory=dict)

    def judge(self, run: Run) -> None:
        """Compose, compare the post-ops, run, and compare every element."""
        layer = layer_to(self.dst)
        plan = composed(layer, *self.steps, **self.options)
        assert ops(plan) == self.left
        assert self.refused in refusals(plan)
        x = entering(layer, self.options.get("bias", 0.0))
        check(run, layer, plan, self.meaning(x, layer.before.astype(np.float64)))


def case(*steps: Step | Chain, left: list[str], meaning: Any, **more: Any) -> Case:
    """Write a case with its steps first."""
    return Case(steps, left, meaning, **more)
