"""The crops of a FakeQuantize per channel, moved behind the round, are one pair of bounds.

Accepted: the codes are the same, and one clip is stored, per tensor, although every channel has a
range of its own; also where the range lies anywhere, is stretched, or is met by a negative factor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.compose.composer import NO_RULES
from pyonednn_q.expr.evaluate import evaluate
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.steps import Affine, Chain, Clip
from pyonednn_q.rewrite.catalogue import normalise
from support.definitions import rational
from support.definitions.composing import along, composed, entering, layer_to, ops
from support.definitions.runs import Run
from support.plans.chains import CHANNELS as C

UNIT = 2.0**-24  # one float32 rounding, relatively
LEVELS = (16, 255, 256)
BOUNDS = {"eltwise_clip", "eltwise_relu", "binary_max", "binary_min"}


def ranges(form: str, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    width = rng.uniform(5.0, 90.0, C)
    if form == "from zero":
        return 0 * width, width
    if form == "stretched":
        return -width * (128 / 127), width
    return (low := rng.uniform(-40.0, 20.0, C)), low + width


@pytest.mark.parametrize("factor", [1.0, -1.0, "both signs"])
@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("form", ["from zero", "stretched", "anywhere"])
def test_codes_are_the_same_and_one_clip_is_stored(
    form: str, levels: int, factor: Any, run: Run
) -> None:
    """Equal but where float32 rounds scale, product, shift and sum across a tie."""
    layer, n = layer_to("f32"), levels - 1
    low, high = ranges(form, levels)
    if factor == "both signs":
        factor = np.resize([1.0, -2.0, 0.5], C)
    plan = composed(layer, Affine(factor), FakeQuantize(low, high, 0, n, levels).chain())
    assert ops(plan) == ["eltwise_round", f"eltwise_clip:0.0:{float(n)}"]
    x = along(factor) * entering(layer)
    scale, shift = along(n / (high - low)), along(-low * n / (high - low))
    place = np.clip(x * scale + shift, 0, n)
    got = run(layer, plan)
    reach = UNIT * (2 * abs(x * scale) + abs(shift) + abs(x * scale + shift))
    differs = got != np.rint(place)
    assert (np.abs(place - np.floor(place) - 0.5)[differs] <= reach[differs]).all()
    assert (np.abs(got - np.rint(place)) <= 1).all()
    assert {0.0, float(n)} <= set(got.reshape(-1).tolist()), "a bound that nothing meets"


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("factor", [1.0, -0.5, np.resize([1.0, -2.0, 0.5], C)])
def test_codes_are_the_same_on_ties(factor: Any, levels: int) -> None:
    """Dyadic ranges, in float64: the definition in rational arithmetic, element by element."""
    low = np.resize([-3.0, 0.5, 0.0, -20.0], C)
    step = np.resize([0.25, 0.5, 1.0], C)
    fq = FakeQuantize(low, low + (levels - 1) * step, 0, levels - 1, levels)
    normal = normalise(Chain(Affine(factor), fq.chain()))
    clips = [item for item in normal.chain if isinstance(item, Clip)]
    assert clips == [Clip(0, levels - 1)]
    x = np.arange(-600, 600) / 16.0
    got = evaluate(normal.chain, np.repeat(x[:, None], C, axis=1))
    for channel in range(12):
        met = Affine(factor).scale.spread(C)[channel] * x
        bounds = (low[channel], low[channel] + (levels - 1) * step[channel], 0, levels - 1)
        want = rational.apply(rational.exact, met, bounds, levels)
        np.testing.assert_array_equal(got[:, channel], want)


@pytest.mark.parametrize("reversed_output", [False, True])
def test_a_dequantizing_one_as_well(reversed_output: bool, run: Run) -> None:
    """The way out of the levels, falling or rising, comes after that clip and changes nothing."""
    layer, step = layer_to("f32"), np.resize([0.25, 0.5, 1.0], C)
    low, high = -8 * step, 7 * step
    out = (high, low) if reversed_output else (low, high)
    plan = composed(layer, FakeQuantize(low, high, *out, 16).chain())
    bounds = [op for op in ops(plan) if op.split(":")[0] in BOUNDS]
    assert len(bounds) == 1
    assert bounds[0].startswith("eltwise_clip")
    level = np.rint(np.clip(entering(layer) / along(step), -8, 7) + 8)
    want = along(out[0]) + level / 15 * along(out[1] - out[0])
    np.testing.assert_array_equal(run(layer, plan), want)


def test_before_the_round_it_would_be_two_operands() -> None:
    """What that saves: step by step, a max and a min with an operand per channel."""
    low, high = ranges("anywhere", 1)
    chain = FakeQuantize(low, high, 0, 255).chain()
    naive = composed(layer_to("f32"), chain, rules=NO_RULES)
    assert [op for op in ops(naive) if op.split(":")[0] in BOUNDS] == ["binary_max", "binary_min"]
