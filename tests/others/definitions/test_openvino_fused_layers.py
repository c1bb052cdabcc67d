"""A quantized layer with its chain, run as one primitive.

Accepted, for convolution (1x1, grouped, depthwise too), deconvolution, inner product and matmul:
dst is FakeQuantize of the float layer of the dequantized tensors, off by one only at ties, that
is where the float32 roundings of the primitive reach across one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from pyonednn_q.compose.composer import compose
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.steps import Affine, Chain, Eltwise, Step, Sum
from pyonednn_q.primitive.dense_facts import PrimitiveFacts
from support.definitions.runs import Run
from support.oracle_convolution import convolve, deconvolve
from support.plans.chains import CHANNELS as C
from support.plans.problems import USUAL_KINDS, problem
from support.plans.runs import Layer

UNIT = 2.0**-24  # one rounding to float32, relatively
RNG = np.random.default_rng(14)
SRC_SCALE, WEI_SCALE = 0.0371, RNG.uniform(0.01, 0.06, C)
BIAS = RNG.uniform(-0.5, 0.5, C)
MUL, ADD = RNG.uniform(0.4, 1.7, C), RNG.uniform(-0.3, 0.3, C)
LEAK, SIGMA = 0.3, 0.0137
LIMITS = {"u8": (0, 255), "s8": (-128, 127)}


@dataclass(frozen=True)
class Between:
    """Steps between the layer and its FakeQuantize.

    ``meaning`` takes the layer's value, its product and its bias apart, what dst held and a layout
    for channels. It returns product, rest and value of the result: that is what float32 rounds.
    """

    steps: tuple[Step, ...]
    meaning: Callable[[Any, Any, Any, Any], tuple[Any, Any]]


CHAINS = {
    "nothing": Between((), lambda p, b, _, __: (p, b)),
    "leaky relu": Between(
        (Eltwise("relu", LEAK),),
        lambda p, b, _, __: (np.where(p + b >= 0, p, LEAK * p), np.where(p + b >= 0, b, LEAK * b)),
    ),
    "multiplication and addition per channel": Between(
        (Affine(MUL, ADD),), lambda p, b, _, ch: (ch(MUL) * p, ch(MUL) * b + ch(ADD))
    ),
    "residual": Between((Sum(SIGMA),), lambda p, b, before, _: (p, b + SIGMA * before)),
}


def float_layer(layer: Layer, zero_point: int) -> Any:
    """Convolve the dequantized tensors, in float64: no integer is summed."""
    of = layer.problem
    src = SRC_SCALE * (layer.src.astype(np.float64) - zero_point)
    wei: Any = layer.wei.astype(np.float64)
    if of.kind == "matmul":
        return src @ (wei * WEI_SCALE)
    lead = 2 if wei.ndim > of.dst.ndim else 1
    wei = wei * WEI_SCALE.reshape(*wei.shape[:lead], *(1,) * (wei.ndim - lead))
    if of.kind == "inner_product":
        return src @ wei.T
    return (convolve if of.kind == "convolution" else deconvolve)(src, wei, of)


def channels(layer: Layer) -> Callable[[Any], Any]:
    dims = (1, -1, *(1,) * (layer.problem.dst.ndim - 2))
    return lambda values: np.reshape(values, dims)


def judge(
    layer: Layer, between: Between, per_channel: bool, run: Run, zero_point: int | None = None
) -> None:
    ch, dst = channels(layer), layer.problem.dst.dtype
    product, rest = between.meaning(
        float_layer(layer, zero_point or 0), ch(BIAS), layer.before.astype(np.float64), ch
    )
    y = product + rest
    others = tuple(axis for axis in range(y.ndim) if axis != 1)
    width = 0.9 * abs(y).max(axis=others if per_channel else None)
    first, last = LIMITS[dst]
    low = 0 * width if dst == "u8" else -width * (128 / 127)
    fq = FakeQuantize(low, width, first, last)
    facts = PrimitiveFacts.of(
        layer.problem, wei=layer.wei, src_scale=SRC_SCALE, wei_scale=WEI_SCALE, bias=BIAS,
        src_zero_point=zero_point,
    )  # fmt: skip
    plan = compose(Chain(*between.steps, fq.chain()), facts, strict=True)
    assert len(plan.post_ops) <= len(between.steps)

    got, want = run(layer, plan).astype(int), fq(y)
    step = (ch(width) if per_channel else width) - (ch(low) if per_channel else low)
    step = step / 255
    place = np.clip(y / step, first, last)
    # Roundings: of scale, bias and residual scale as constants; of each product, sum and bend.
    reach = UNIT * (3 * abs(product) + 4 * abs(rest) + 2 * abs(y)) / step
    tie = np.abs(place - np.floor(place) - 0.5) <= reach
    assert (np.abs(got - want) <= tie).all()
    assert tie.mean() < 0.01, "too many ties to tell"
    assert ((first < got) & (got < last)).mean() > 0.1, "too little inside the range"


# A scale per channel does not pass a sum (test_openvino_folded_scales.py): no pair of these two.
RANGES = [
    (name, per) for name in CHAINS for per in (False, True) if (name, per) != ("residual", True)
]


@pytest.mark.parametrize(("name", "per_channel"), RANGES)
@pytest.mark.parametrize("dst", LIMITS)
@pytest.mark.parametrize("kind", USUAL_KINDS)
def test_dst_is_fake_quantize_of_the_float_layer(
    kind: str, name: str, dst: str, per_channel: bool, run: Run
) -> None:
    judge(Layer.of(problem(kind, dst), seed=14), CHAINS[name], per_channel, run)


@pytest.mark.parametrize("kind", USUAL_KINDS)
def test_signed_sources(kind: str, run: Run) -> None:
    judge(Layer.of(problem(kind, "u8", "s8"), seed=15), CHAINS["nothing"], True, run)


@pytest.mark.parametrize("zero_point", [1, 5])
@pytest.mark.parametrize("kind", ["convolution", "1x1", "matmul"])
def test_source_zero_points(kind: str, zero_point: int, run: Run) -> None:
    """Padding holds the zero point, so that it dequantizes to 0."""
    layer = Layer.of(problem(kind, "u8"), seed=16)
    judge(layer, CHAINS["leaky relu"], True, run, zero_point)


def test_an_error_of_one_code_is_noticed(run: Run) -> None:
    layer = Layer.of(problem("convolution", "u8"), seed=14)
    wrong = replace(CHAINS["nothing"], meaning=lambda p, b, _, __: (p, b + 0.01))
    with pytest.raises(AssertionError):
        judge(layer, wrong, True, run)
