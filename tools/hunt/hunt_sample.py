"""Samples of the hunt: odd shapes on purpose, and numbers with only one right answer."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np

from hunt_oracle import RANGES, Array, Dims, Factor, PostOp, Sample

Rng = np.random.Generator

# Around every block size of the kernels; the small ones more often.
SIZES = (1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 8, 9, 15, 16, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65)
WIDE = (96, 112, 127, 128, 129)
KERNELS = (1, 1, 2, 3, 3, 3, 4, 5, 7, 8)
LENGTHS = (1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 17)
KINDS = ("convolution",) * 9 + ("deconvolution",) * 4 + ("inner_product",) * 2 + ("matmul",) * 6
_MOST_WEIGHTS, _MOST_PRODUCTS = 60_000, 1_500_000
_NUMPY: dict[str, Any] = {"u8": "u1", "s8": "i1", "u4": "u1", "s4": "i1", "s32": "i4"}
_NUMPY |= {"f32": "f4", "bf16": ml_dtypes.bfloat16}


@dataclass(frozen=True)
class LayerShape:
    """Dimensions of a sample, before it has numbers."""

    kind: str
    src: Dims
    wei: Dims
    window: dict[str, Any]

    @property
    def terms(self) -> int:
        """Most products that a sum has."""
        return self.src[-1] if self.kind == "matmul" else math.prod(self.wei[1:])

    @property
    def channel_axis(self) -> int:
        """Axis of the weights along which output channels lie."""
        return len(self.wei) - 1 if self.kind == "matmul" else 0

    def is_small(self) -> bool:
        """Tell whether it takes little time."""
        probe = np.zeros(())
        sample = Sample(
            self.kind,
            np.broadcast_to(probe, self.src),
            np.broadcast_to(probe, self.wei),
            {},
            **self.window,
        )
        if min(sample.dst_dims) < 1:
            return False
        places = math.prod(self.src if self.kind == "deconvolution" else sample.dst_dims)
        each = math.prod(self.wei) // self.src[1] if self.kind == "deconvolution" else self.terms
        small = math.prod(self.wei) <= _MOST_WEIGHTS and places * each <= _MOST_PRODUCTS
        return small and math.prod(sample.dst_dims) <= _MOST_WEIGHTS


def draw(rng: Rng, *, wide: bool, region: Callable[[Rng], LayerShape] | None = None) -> Sample:
    """Draw a sample.

    Parameters
    ----------
    rng : Generator
        Gives the same sample whenever it starts at the same place.
    wide : bool
        Whether pairs of products may exceed 16 bits.
    region : callable, optional
        What draws shapes in place of those that are odd in any way.
    """
    drawn = str(one(rng, KINDS))
    while not (shape := _shape(drawn, rng) if region is None else region(rng)).is_small():
        pass
    kind = shape.kind
    types = _types(kind, rng)
    is_plain = rng.random() < 0.35
    has_points = not is_plain and kind != "inner_product" and rng.random() < 0.45
    has_scales, has_more = not is_plain and rng.random() < 0.5, not is_plain and rng.random() < 0.6
    bare = types["dst"] == "s32" and not (has_points or has_scales or has_more)
    room = 31 if bare else 24 - 8 * has_more - 2 * has_scales
    src, wei = _codes(rng, shape, types, 2.0**room / shape.terms, wide=wide)
    sample = Sample(kind, src, wei, types, **shape.window)
    if has_points:
        sample = _with_points(rng, sample)
    if has_scales:
        sample = _with_scales(rng, sample, shape.channel_axis)
    if has_more:
        sample = _with_post_ops(rng, _with_bias(rng, sample))
    return _stored(rng, sample)


def one(rng: Rng, choices: Any) -> Any:  # noqa: ANN401 - whatever is in it
    """Give one of several, all as likely."""
    return choices[int(rng.integers(len(choices)))]


def _many(rng: Rng, choices: Any, count: int) -> Dims:  # noqa: ANN401
    return tuple(int(one(rng, choices)) for _ in range(count))


# --- shapes -------------------------------------------------------------------------------------


def _shape(kind: str, rng: Rng) -> LayerShape:
    if kind == "matmul":
        return _matmul(rng)
    if kind == "inner_product":
        spatial = int(one(rng, (0, 0, 1, 2, 2, 3)))
        inner = (_size(rng), *_many(rng, (1, 2, 3, 4, 7), spatial))
        return LayerShape(kind, (int(one(rng, SIZES)), *inner), (_size(rng), *inner), {})
    groups, ic, oc = _channels(rng)
    spatial = int(one(rng, (1, 2, 2, 3, 3)))
    kernel = _many(rng, KERNELS if spatial < 3 else KERNELS[:6], spatial)
    lengths = _many(rng, LENGTHS if spatial < 3 else LENGTHS[:8], spatial)
    strides = _strides(rng, kernel)
    dilation = _many(rng, (1, 1, 2, 3), spatial) if rng.random() < 0.3 else (1,) * spatial
    lo, hi, tail = [0] * spatial, [0] * spatial, [0] * spatial
    is_padded = rng.random() < 0.6
    for axis in range(spatial):
        reach = (kernel[axis] - 1) * dilation[axis] + 1
        if is_padded:
            most = reach if rng.random() < 0.15 else reach - 1
            lo[axis], hi[axis] = (int(rng.integers(0, min(most, 4) + 1)) for _ in range(2))
        if kind == "convolution":
            # A kernel larger than the image needs padding to fit.
            missing = max(0, reach - lengths[axis] - lo[axis] - hi[axis])
            lo[axis] += missing // 2
            hi[axis] += missing - missing // 2
        elif strides[axis] > 1 and rng.random() < 0.2:
            tail[axis] = int(rng.integers(0, strides[axis]))
    window = {"groups": groups, "stride": strides, "dilation": dilation}
    window |= {"lo": tuple(lo), "hi": tuple(hi), "tail": tuple(tail)}
    batch = int(one(rng, (1, 1, 1, 2, 3)))
    return LayerShape(kind, (batch, groups * ic, *lengths), (groups * oc, ic, *kernel), window)


def _strides(rng: Rng, kernel: Dims) -> Dims:
    """Give strides: none, any, those that skip rows or columns, or those of the kernel itself."""
    of = rng.random()
    if of < 0.4:
        return (1,) * len(kernel)
    if of < 0.8:
        return _many(rng, (1, 1, 1, 2, 2, 3, 4), len(kernel))
    more = _many(rng, (0, 0, 1, 2), len(kernel))
    return tuple(length + skipped for length, skipped in zip(kernel, more, strict=True))


def _size(rng: Rng) -> int:
    return int(one(rng, WIDE if rng.random() < 0.12 else SIZES))


def _channels(rng: Rng) -> Dims:
    """Give groups, and input and output channels of each."""
    of = rng.random()
    if of < 0.5:
        return 1, _size(rng), _size(rng)
    if of < 0.65:
        return _size(rng), 1, 1
    groups = int(one(rng, (2, 2, 3, 4, 5, 8, 16)))
    if of < 0.8:
        return groups, 1, _size(rng)
    return groups, int(one(rng, SIZES)), int(one(rng, SIZES))


def _matmul(rng: Rng) -> LayerShape:
    m, k, n = int(one(rng, (*SIZES, 1, 1, 1))), _size(rng), _size(rng)
    if rng.random() < 0.1:
        k = int(one(rng, (255, 256, 257, 300, 513)))
    batch = _many(rng, (1, 2, 3), int(one(rng, (0, 0, 0, 1, 1, 2, 2))))
    left, right = (tuple(1 if rng.random() < 0.25 else b for b in batch) for _ in range(2))
    if rng.random() < 0.4:
        left, right = batch, (1,) * len(batch)
    return LayerShape("matmul", (*left, m, k), (*right, k, n), {})


# --- numbers ------------------------------------------------------------------------------------


def _types(kind: str, rng: Rng) -> dict[str, str]:
    types = {"src": str(one(rng, ("u8", "s8"))), "wei": "s8"}
    types["dst"] = str(one(rng, ("s32", "s32", "f32", "f32", "u8", "s8")))
    if kind == "matmul" and rng.random() < 0.25:
        types["wei"] = str(one(rng, ("s4", "s4", "u4", "u4", "u8")))
        if types["wei"] != "u8" and rng.random() < 0.6:
            types["dst"] = "f32"
    if types["dst"] == "f32" and rng.random() < 0.1:
        types["dst"] = "bf16"
    if rng.random() < 0.06:
        floats = str(one(rng, ("f32", "bf16")))
        types |= {"src": floats, "wei": floats, "dst": str(one(rng, ("f32", floats)))}
    return types


def _codes(
    rng: Rng, shape: LayerShape, types: dict[str, str], most: float, *, wide: bool
) -> tuple[Array, Array]:
    """Give codes whose sums stay below `most` times the number of terms."""
    lo, hi = RANGES.get(types["src"], (-100, 100))
    reach = int(min(255, max(1, most)))
    if rng.random() < 0.5:
        reach = int(min(reach, one(rng, (1, 3, 20, 100))))
    src = rng.integers(max(lo, -reach), min(hi, reach) + 1, shape.src)
    lo, hi = RANGES.get(types["wei"], (-100, 100))
    # Differences to zero points reach as far as the type.
    reach = int(max(1, min(127, most / 255)))
    if wide and rng.random() < 0.5:
        wei = rng.integers(max(lo, -reach), min(hi, reach) + 1, shape.wei)
    elif types["wei"] in ("s4", "u4"):
        wei = rng.integers(lo, hi + 1, shape.wei)
    else:
        # Exact without VNNI, too: even, and no pair beyond 16 bits.
        reach = min(reach // 2, int(one(rng, (1, 2, 7, 31))))
        wei = 2 * rng.integers(max(lo // 2, -reach), reach + 1, shape.wei)
    return src.astype(_NUMPY[types["src"]]), wei.astype(_NUMPY[types["wei"]])


def _factor(values: Array, mask: int, full: Array, groups: Dims = (), dtype: str = "") -> Factor:
    return Factor(mask, values.reshape(-1), full.astype(np.float64), groups, dtype)


def _single(value: float, dtype: str) -> Factor:
    values = np.full(1, value, _NUMPY[dtype])
    return _factor(values, 0, values, dtype=dtype)


def _with_points(rng: Rng, sample: Sample) -> Sample:
    points = {}
    is_product = sample.kind == "matmul"
    for name, chance in (("src", 0.75), ("wei", 0.4 if is_product else 0.02), ("dst", 0.4)):
        dtype = sample.types[name]
        if dtype not in RANGES or dtype == "s32" or rng.random() > chance:
            continue
        lo, hi = RANGES[dtype]
        value = int(rng.integers(lo, hi + 1)) if rng.random() < 0.8 else int(one(rng, (lo, hi, 0)))
        points[name] = _single(value, "s32")
    return replace(sample, points=points)


def _with_scales(rng: Rng, sample: Sample, axis: int) -> Sample:
    if sample.kind == "matmul" and rng.random() < 0.3:
        return _with_groups(rng, sample)
    scales = {}
    if rng.random() < 0.7:
        scales["src"] = _single(2.0 ** int(rng.integers(-1, 2)), "f32")
    if rng.random() < 0.8:
        channels = sample.wei.shape[axis]
        powers = 2.0 ** rng.integers(-2, 2, channels).astype(np.float32)
        if rng.random() < 0.3:
            scales["wei"] = _single(powers[0], "f32")
        else:
            full = powers.reshape([-1 if at == axis else 1 for at in range(sample.wei.ndim)])
            mask = 1 << axis
            if sample.groups > 1:
                mask = 3  # of the grouped weights, which have a dimension more
            scales["wei"] = _factor(powers, mask, full, dtype="f32")
    return replace(sample, scales=scales)


def _with_groups(rng: Rng, sample: Sample) -> Sample:
    """Scale groups of rows of the weights, and perhaps groups of columns of the source or rows."""
    (m, k), n, ndim = sample.src.shape[-2:], sample.wei.shape[-1], sample.src.ndim
    both = 3 << (ndim - 2)
    sizes = [size for size in (1, 2, 4, 8, 16, 32, 64, k) if k % size == 0]
    size = int(one(rng, sizes))
    powers = 2.0 ** rng.integers(-2, 2, (k // size, n)).astype(np.float32)
    scales = {"wei": _factor(powers, both, powers.repeat(size, 0), (size, 1), "f32")}
    points = dict(sample.points)
    if "wei" in points:
        lo, hi = RANGES[sample.types["wei"]]
        codes = rng.integers(lo, hi + 1, (k // size, n)).astype(np.int32)
        dtype = str(one(rng, ("s32", sample.types["wei"])))
        points["wei"] = _factor(codes, both, codes.repeat(size, 0), (size, 1), dtype)
    of = rng.random()
    if of < 0.3:
        scales["src"] = _single(2.0 ** int(rng.integers(-1, 2)), "f32")
    elif of < 0.7:
        size = int(one(rng, (*sizes, k, k)))
        powers = 2.0 ** rng.integers(-1, 2, (m, k // size)).astype(np.float32)
        scales["src"] = _factor(powers, both, powers.repeat(size, 1), (1, size), "f32")
    return replace(sample, scales=scales, points=points)


def _along_channels(rng: Rng, sample: Sample, values: Any) -> Array:  # noqa: ANN401
    dims = sample.dst_dims
    axis = len(dims) - 1 if sample.kind == "matmul" else 1
    shape = [length if at == axis else 1 for at, length in enumerate(dims)]
    return rng.choice(np.asarray(values, np.float32), shape).astype(np.float32)


def _with_bias(rng: Rng, sample: Sample) -> Sample:
    if rng.random() < 0.5:
        return sample
    dtype = str(one(rng, ("f32", "f32", "f32", "s32", "s8", "u8")))
    values = _along_channels(rng, sample, np.arange(0 if dtype == "u8" else -60, 61))
    return replace(sample, bias=values, types={**sample.types, "bias": dtype})


def _with_post_ops(rng: Rng, sample: Sample) -> Sample:
    dims, steps, before = sample.dst_dims, [], None
    for _ in range(int(one(rng, (0, 1, 1, 2)))):
        alg = str(one(rng, ("relu", "relu", "linear", "clip", "sum", "sum", "add", "mul", "max")))
        if alg == "sum":
            if before is not None:
                continue
            stored = sample.types["dst"]
            lo, hi = RANGES.get(stored, (-99, 99))
            before = rng.integers(max(lo, -99), min(hi, 99) + 1, dims).astype(_NUMPY[stored])
            point = int(one(rng, (0, 0, 3))) if stored in ("u8", "s8") else 0
            steps.append(PostOp("sum", float(one(rng, (1.0, 1.0, 0.5, 2.0))), float(point)))
        elif alg in ("add", "mul", "max"):
            values = (0.5, 1.0, 2.0, -1.0) if alg == "mul" else np.arange(-20, 21)
            operand = _along_channels(rng, sample, values)
            if alg == "add" and rng.random() < 0.5:
                operand = rng.integers(-20, 21, dims).astype(np.float32)
            elif rng.random() < 0.2:
                operand = operand.reshape(-1)[:1].reshape((1,) * len(dims))
            steps.append(PostOp(alg, operand=operand))
        elif alg == "clip":
            steps.append(PostOp(alg, float(one(rng, (-64, -6, 0))), float(one(rng, (6, 90)))))
        elif alg == "relu":
            steps.append(PostOp(alg, float(one(rng, (0.0, 0.0, 0.5)))))
        else:
            steps.append(PostOp(alg, float(one(rng, (0.5, 1, 2, -1))), float(one(rng, (0, 3)))))
    return replace(sample, post_ops=tuple(steps), before=before)


def _stored(rng: Rng, sample: Sample) -> Sample:
    """Scale what an 8-bit result would only saturate."""
    if sample.types["dst"] not in ("u8", "s8"):
        return sample
    spread = max(1.0, float(np.abs(sample.src).max()) * float(np.abs(sample.wei).max()))
    terms = sample.src.shape[-1] if sample.kind == "matmul" else math.prod(sample.wei.shape[1:])
    power = round(math.log2(spread * math.sqrt(terms) / 60 + 1))
    if power == 0 or rng.random() < 0.2:
        return sample
    scales = {**sample.scales, "dst": _single(2.0 ** min(power, 12), "f32")}
    return replace(sample, scales=scales)
