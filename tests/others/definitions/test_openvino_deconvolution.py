"""A deconvolution in int8, with a bias, and a FakeQuantize per channel behind it.

Accepted: equal, but next to ties, to a scatter written out in NumPy with the bias as a true bias;
and within one code of the float model that a float runtime would compute: dequantized tensors,
scattered in float32, the bias, and FakeQuantize in float32. It takes no post-op at all.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from pyonednn_q.compose.composer import compose
from pyonednn_q.compose.plan import Plan
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.primitive.dense_facts import PrimitiveFacts
from pyonednn_q.primitive.problem import DeconvProblem
from support.definitions.runs import Run
from support.plans.runs import Layer

OC = 16
UNIT = 2.0**-24  # one rounding to float32, relatively
RNG = np.random.default_rng(13)
SRC_SCALE, WEI_SCALE = 0.0173, RNG.uniform(0.002, 0.03, OC)
BIAS = RNG.uniform(-0.4, 0.4, OC)
LIMITS = {"u8": (0, 255), "s8": (-128, 127)}

# (src, wei, strides, padding, dilation); weights of rank 5 have groups first.
SHAPES: dict[str, tuple[Any, ...]] = {
    "2x2 by 2": ((2, 8, 5, 4), (OC, 8, 2, 2), 2, 0, 1),
    "4x4 by 2, padded": ((1, 8, 5, 5), (OC, 8, 4, 4), 2, 1, 1),
    "3x3 by 1, padded on three sides": ((2, 8, 6, 5), (OC, 8, 3, 3), 1, ((1, 2), (0, 1)), 1),
    "3x3 by 3": ((1, 16, 4, 4), (OC, 16, 3, 3), 3, 0, 1),
    "3x3 by 2, dilated": ((1, 8, 5, 5), (OC, 8, 3, 3), 2, 1, 2),
    "two groups": ((1, 16, 5, 4), (2, OC // 2, 8, 2, 2), 2, 0, 1),
}


def scattered(src: Any, wei: Any, of: Any) -> Any:
    """Every source element, times every tap, added where the tap lands. In the type of src."""
    if wei.ndim == src.ndim:
        wei = wei[None]
    groups, oc, ic = wei.shape[:3]
    out = np.zeros(of.dst.dims, src.dtype)
    height, width = out.shape[2:]
    (top, left), strides = of.padding_lo, of.stride
    for y, x in product(*map(range, src.shape[2:])):
        for ky, kx in product(*map(range, wei.shape[3:])):
            row = y * strides[0] - top + ky * of.dilation[0]
            column = x * strides[1] - left + kx * of.dilation[1]
            if not (0 <= row < height and 0 <= column < width):
                continue
            for g in range(groups):
                part = src[:, g * ic : (g + 1) * ic, y, x] @ wei[g, :, :, ky, kx].T
                out[:, g * oc : (g + 1) * oc, row, column] += part
    return out


def along(values: Any) -> Any:
    return np.reshape(values, (1, -1, 1, 1))


@cache
def layer_of(name: str, src: str) -> Layer:
    dims, wei, strides, padding, dilation = SHAPES[name]
    of = DeconvProblem.of(
        dims, wei, stride=strides, padding=padding, dilation=dilation, src=src, dst="f32"
    )
    rng = np.random.default_rng(13)
    low, high = (0, 256) if src == "u8" else (-128, 128)
    values = rng.integers(low, high, dims).astype(np.uint8 if src == "u8" else np.int8)
    # Small even weights: exact without VNNI as well, for any source.
    weights = (2 * rng.integers(-20, 21, wei)).astype(np.int8)
    return Layer(of, values, weights, np.zeros(of.dst.dims, np.float32), {})


@cache
def dequantized(name: str, src: str) -> Any:
    """The real value of every sum, from the scatter in integers."""
    layer = layer_of(name, src)
    acc = scattered(layer.src.astype(np.int64), layer.wei.astype(np.int64), layer.problem)
    return SRC_SCALE * along(WEI_SCALE) * acc


def quantizer(name: str, src: str, dst: str) -> FakeQuantize:
    """Ranges per channel that most of what is seen falls into."""
    width = 0.8 * abs(dequantized(name, src) + along(BIAS)).max(axis=(0, 2, 3))
    low = 0 * width if dst == "u8" else -width * (128 / 127)
    return FakeQuantize(low, width, *LIMITS[dst])


def composed(name: str, src: str, fq: FakeQuantize, dst: str) -> tuple[Layer, Plan]:
    layer = layer_of(name, src)
    of = replace(layer.problem, dst=replace(layer.problem.dst, dtype=dst))
    facts = PrimitiveFacts.of(
        of, wei=layer.wei, src_scale=SRC_SCALE, wei_scale=WEI_SCALE, bias=BIAS
    )
    return replace(layer, problem=of), compose(fq.chain(), facts, strict=True)


@cache
def float_model(name: str, src: str, dst: str) -> Any:
    """What a float runtime computes: dequantized tensors, everything in float32."""
    layer, fq = layer_of(name, src), quantizer(name, src, dst)
    scales = WEI_SCALE.reshape(*layer.wei.shape[:-3], 1, 1, 1)
    floats = (SRC_SCALE * layer.src).astype(np.float32)
    weights = (scales * layer.wei).astype(np.float32)
    summed = scattered(floats, weights, layer.problem) + along(BIAS).astype(np.float32)
    first, last = LIMITS[dst]
    low, high = (along(v.spread(OC)).astype(np.float32) for v in (fq.input_low, fq.input_high))
    level = np.rint((np.clip(summed, low, high) - low) / (high - low) * np.float32(255))
    return np.rint(level / np.float32(255) * np.float32(last - first) + first)


@pytest.mark.parametrize("dst", LIMITS)
@pytest.mark.parametrize("src", ["u8", "s8"])
@pytest.mark.parametrize("name", SHAPES)
def test_equal_to_the_scatter_but_next_to_ties(name: str, src: str, dst: str, run: Run) -> None:
    """Next to a tie: nearer than what float32 rounds of scale, product, bias and sum."""
    fq = quantizer(name, src, dst)
    layer, plan = composed(name, src, fq, dst)
    assert plan.post_ops == ()
    assert plan.has_bias
    got = run(layer, plan).astype(int)
    first, last = LIMITS[dst]
    low, high = (along(v.spread(OC)) for v in (fq.input_low, fq.input_high))
    step = (high - low) / 255
    product, shift = dequantized(name, src) / step, (along(BIAS) - low) / step + first
    place = np.clip(product + shift, first, last)
    reach = UNIT * (2 * abs(product) + abs(shift) + abs(product + shift)) * (1 + 2.0**-20)
    near = np.abs(place - np.floor(place) - 0.5) <= reach
    assert (np.abs(got - np.rint(place)) <= near).all()
    assert near.mean() < 0.01


@pytest.mark.parametrize("dst", LIMITS)
@pytest.mark.parametrize("src", ["u8", "s8"])
@pytest.mark.parametrize("name", SHAPES)
def test_within_one_code_of_the_float_model(name: str, src: str, dst: str, run: Run) -> None:
    layer, plan = composed(name, src, quantizer(name, src, dst), dst)
    off = np.abs(run(layer, plan).astype(int) - float_model(name, src, dst))
    assert off.max() <= 1
    assert off.mean() < 0.01


@pytest.mark.parametrize("src", ["u8", "s8"])
def test_dequantized_into_float(src: str, run: Run) -> None:
    """The same FakeQuantize back to real values: its levels, within 2 ulp of the upper end."""
    name = "4x4 by 2, padded"
    levels = quantizer(name, src, "s8")
    fq = FakeQuantize(*(levels.input_low, levels.input_high) * 2)
    layer, plan = composed(name, src, fq, "f32")
    low, high = (along(v.spread(OC)) for v in (fq.input_low, fq.input_high))
    step = (high - low) / 255
    place = np.clip((dequantized(name, src) + along(BIAS) - low) / step, 0, 255)
    clear = np.abs(place % 1 - 0.5) > 2.0**-12
    want = np.rint(place) * step + low
    wrong = abs(run(layer, plan) - want) > 2 * np.spacing(high.astype(np.float32))
    assert not wrong[clear].any()
    assert clear.mean() > 0.99


def test_the_scatter_is_not_the_one_with_flipped_weights() -> None:
    layer = layer_of("4x4 by 2, padded", "u8")
    src, wei = layer.src.astype(np.int64), layer.wei.astype(np.int64)
    flipped = scattered(src, wei[..., ::-1, ::-1], layer.problem)
    assert (scattered(src, wei, layer.problem) != flipped).any()
