"""Layers whose sums lie where requantization rules part, and exact sums of them.

The first image of a layer is all zero point, so that its sums are the biases: those are put beside
ties, where the rule in question and its rivals give different integers. The other images are drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pyonednn_q.primitive.problem import ConvProblem, DeconvProblem
from pyonednn_q.requantize import requantize
from support import oracle_convolution
from support.oracle_numbers import numpy_dtype

Array = np.ndarray[Any, Any]

# Every rule that could be meant; the oracles must tell the right one from all others.
RULES = (
    "exact_half_away",
    "snps_inner_product_onnx",
    "tflite_1step",
    "tflite_1step_single",
    "tflite_2step",
    "tflite_2step_single",
    "tflite_2up",
    "tflite_2up_single",
    "caffe2",
    "onnxruntime",
    "onednn",
)
# Slow: the rint of a double, which differs at ties only, looks for its points too.
_SEARCHED = tuple(rule for rule in RULES if rule != "exact_half_away")
# Octaves of M = src_scale · wei_scale / dst_scale. Small ones make float rounding visible, large
# ones two roundings, powers of two ties.
KINDS = {
    "wide": (-15.0, -2.0),
    "small": (-16.0, -11.0),
    "large": (-2.0, 0.0),
    "dyadic": (-8.0, -2.0),
}
LIMITS = {"s8": (-128, 127), "u8": (0, 255)}
_KERNELS = {"conv": 3, "pointwise": 1, "depthwise": 3, "deconv": 3, "inner_product": 1}


@dataclass(frozen=True)
class Layer:
    """A layer in logical order: (N, C, spatial) and (OC, IC / groups, spatial).

    acc: exact sums, bias included. Scales are float32; wei_scale has one value per output channel,
    all of them equal per tensor.
    """

    op: str
    dtype: str
    granularity: str
    src: Array
    wei: Array
    bias: Array
    acc: Array
    src_scale: Any
    wei_scale: Array
    dst_scale: Any
    src_zero_point: int
    wei_zero_point: int
    dst_zero_point: int

    @property
    def channels(self) -> int:
        """Number of output channels."""
        return len(self.bias)

    @property
    def constants(self) -> dict[str, Any]:
        """Scales and zero point of the sums, as `requantizer` takes them."""
        per_tensor = self.granularity == "per_tensor"
        return {
            "src_scale": self.src_scale,
            "wei_scale": self.wei_scale[0] if per_tensor else self.wei_scale,
            "dst_scale": self.dst_scale,
            "dst_zero_point": self.dst_zero_point,
            "dst_dtype": self.dtype,
        }

    def expected(self, rule: str) -> Array:
        """Return what a rule makes of the sums, by its NumPy statement."""
        return requantize(self.acc, rule, **self.constants)


def drawn(
    rng: np.random.Generator,
    op: str,
    dtype: str,
    granularity: str,
    rule: str,
    kind: str = "wide",
    *,
    channels: int = 21,
    images: int = 3,
) -> Layer:
    """Return a layer with sums that tell `rule` from the others.

    dtype: s8 weights are symmetric, u8 ones have a zero point, as TFLite's older scheme. They have
    seven bits, so that runtimes without VNNI do not saturate.
    """
    lo, hi = LIMITS[dtype]
    src_point, dst_point = (int(point) for point in rng.integers(lo + 20, hi - 20, 2))
    wei_point = 0 if dtype == "s8" else int(rng.integers(100, 156))
    src_scale, wei_scale, dst_scale = _scales(rng, granularity, kind, channels)
    groups = channels if op == "depthwise" else 1
    side, k = (1 if op == "inner_product" else 5), _KERNELS[op]
    src = rng.integers(lo, hi + 1, (images, channels, side, side)).astype(numpy_dtype(dtype))
    src[0] = src_point
    wei = rng.integers(-63, 64, (channels, channels // groups, k, k)) + wei_point
    wei = wei.astype(numpy_dtype(dtype))
    fixed = {"src_scale": src_scale, "dst_scale": dst_scale, "dst_zero_point": dst_point}
    bias = _telling(rng, rule, wei_scale, {**fixed, "dst_dtype": dtype})
    sums = _sums(op, src.astype(np.float64) - src_point, wei.astype(np.float64) - wei_point, groups)
    acc = sums.astype(np.int64) + bias.reshape(1, -1, 1, 1)
    assert np.abs(acc).max() < 2**30
    return Layer(
        op,
        dtype,
        granularity,
        src,
        wei,
        bias,
        acc.astype(np.int32),
        src_scale,
        wei_scale,
        dst_scale,
        src_point,
        wei_point,
        dst_point,
    )


def _scales(
    rng: np.random.Generator, granularity: str, kind: str, channels: int
) -> tuple[Any, Array, Any]:
    count = 1 if granularity == "per_tensor" else channels
    if kind == "dyadic":
        src, dst = np.float32(0.0625), np.float32(0.125)
        multiplier = 2.0 ** np.rint(rng.uniform(*KINDS[kind], count))
    else:
        src, dst = rng.uniform(0.01, 0.2, 2).astype(np.float32)
        multiplier = 2.0 ** rng.uniform(*KINDS[kind], count)
    wei = (multiplier * float(dst) / float(src)).astype(np.float32)
    return src, np.broadcast_to(wei, (channels,)), dst


def _sums(op: str, src: Array, wei: Array, groups: int) -> Array:
    dims = wei.shape if groups == 1 else (groups, wei.shape[0] // groups, *wei.shape[1:])
    if op == "deconv":
        problem = DeconvProblem.of(src.shape, dims, src="s32", wei="s32", dst="f32", stride=2)
        return oracle_convolution.deconvolve(src, wei.reshape(dims), problem)
    window = ConvProblem.of(src.shape, dims, src="s32", wei="s32", dst="f32")
    return oracle_convolution.convolve(src, wei.reshape(dims), window)


def _telling(rng: np.random.Generator, rule: str, wei_scale: Array, fixed: dict[str, Any]) -> Array:
    """Return a sum for every channel: one that parts the rule from another, each in its turn."""
    lo, hi = LIMITS[fixed["dst_dtype"]]
    real = float(fixed["src_scale"]) * wei_scale.astype(np.float64) / float(fixed["dst_scale"])
    ties = np.arange(lo, hi) + 0.5 - fixed["dst_zero_point"]
    near = np.rint(ties / real[:, np.newaxis])[..., np.newaxis] + np.arange(-1, 2)
    sums = near.reshape(len(real), -1).astype(np.int32)
    constants = {**fixed, "wei_scale": wei_scale, "axis": 0}
    right = requantize(sums, rule, **constants)
    parted = [requantize(sums, each, **constants) != right for each in _SEARCHED if each != rule]
    found = np.empty(len(real), np.int32)
    for channel, candidates in enumerate(sums):
        choices = [where[channel] for where in parted if where[channel].any()]
        where = choices[channel % len(choices)] if choices else np.ones(len(candidates), bool)
        found[channel] = rng.choice(candidates[where])
    return found
