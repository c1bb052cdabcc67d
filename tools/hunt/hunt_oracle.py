"""What the problems of the hunt mean: exact integers, from the formula alone.

    acc = Σ (src − src_zp) · (wei − wei_zp)
    x   = src_scale · wei_scale · acc + bias, then the post-ops in their order
    dst = saturate(rne(x / dst_scale + dst_zp)); a float dst is x / dst_scale

It knows nothing of the package. All scales are powers of two and all values so small that float32
holds every number on the way, whatever the order: only one answer is right, bit for bit.
"""

from __future__ import annotations

import ctypes
import math
import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]
Dims = tuple[int, ...]

RANGES = {
    "u8": (0, 255),
    "s8": (-128, 127),
    "u4": (0, 15),
    "s4": (-8, 7),
    "s32": (-(2**31), 2**31 - 1),
}


@dataclass(frozen=True)
class Factor:
    """Scales or zero points of one tensor.

    Attributes
    ----------
    mask, groups, dtype
        As the library is told.
    values : ndarray
        One-dimensional, row-major over what `mask` and `groups` leave.
    full : ndarray
        The same, broadcastable to the tensor of a `Sample`.
    """

    mask: int
    values: Array
    full: Array
    groups: Dims = ()
    dtype: str = ""


@dataclass(frozen=True)
class PostOp:
    """One step behind the sum of products.

    Attributes
    ----------
    alg : str
        relu, linear, clip, sum, add, mul, max or min.
    alpha, beta : float
        Slope of relu; alpha · x + beta; bounds of clip; scale and zero point of sum.
    operand : ndarray or None
        Of add, mul, max and min: of dst's rank.
    """

    alg: str
    alpha: float = 0.0
    beta: float = 0.0
    operand: Array | None = None


@dataclass(frozen=True)
class Sample:
    """A problem with all its numbers.

    Attributes
    ----------
    kind : str
        convolution, deconvolution, inner_product or matmul.
    src, wei : ndarray
        Codes: (N, C, spatial) and (OC, IC / groups, spatial), or (..., M, K) and (..., K, N).
    types : dict
        Data types of src, wei, dst and bias.
    bias : ndarray or None
        Real values, broadcastable to dst.
    before : ndarray or None
        What dst holds before a sum.
    tail : tuple of int
        By how much the dst of a deconvolution is longer than the least.
    """

    kind: str
    src: Array
    wei: Array
    types: dict[str, str]
    groups: int = 1
    stride: Dims = ()
    dilation: Dims = ()
    lo: Dims = ()
    hi: Dims = ()
    tail: Dims = ()
    scales: dict[str, Factor] = field(default_factory=dict)
    points: dict[str, Factor] = field(default_factory=dict)
    bias: Array | None = None
    post_ops: tuple[PostOp, ...] = ()
    before: Array | None = None

    @property
    def dst_dims(self) -> Dims:
        """Dimensions of the result."""
        src, wei = self.src.shape, self.wei.shape
        if self.kind == "matmul":
            batch = np.broadcast_shapes(src[:-2], wei[:-2])
            return (*batch, src[-2], wei[-1])
        if self.kind == "inner_product":
            return (src[0], wei[0])
        return (src[0], wei[0], *(self._length(axis) for axis in range(len(src) - 2)))

    def _length(self, axis: int) -> int:
        length, step = int(self.src.shape[axis + 2]), self.stride[axis]
        padding = self.lo[axis] + self.hi[axis]
        reach = (int(self.wei.shape[axis + 2]) - 1) * self.dilation[axis] + 1
        if self.kind == "convolution":
            return (length + padding - reach) // step + 1
        return (length - 1) * step + reach - padding + self.tail[axis]


class InexactError(Exception):
    """A number that float32 does not hold: more than one answer would be right."""


def expected(sample: Sample) -> Array:
    """Return the one right result."""
    bare = not (sample.scales or sample.points or sample.post_ops or sample.bias is not None)
    dst = sample.types["dst"]
    x = _products(sample)
    if bare and dst == "s32":
        return x.astype(np.int32)
    _check(x)
    if sample.bias is not None:
        x = _check(x + sample.bias)
    for step in sample.post_ops:
        x = _check(_applied(step, x, sample.before))
    if "dst" in sample.scales:
        x = x / sample.scales["dst"].full
    if "dst" in sample.points:
        x = x + sample.points["dst"].full
    if dst not in RANGES:
        return _check(x).astype(np.float32 if dst == "f32" else ml_dtypes.bfloat16)
    stored = np.clip(np.rint(x), *RANGES[dst])
    return stored.astype({"u8": np.uint8, "s8": np.int8, "s32": np.int32}[dst])


def _check(x: Array) -> Array:
    if not np.array_equal(x.astype(np.float32), x):
        raise InexactError
    return x


def _applied(step: PostOp, x: Array, before: Array | None) -> Array:
    alpha, beta = step.alpha, step.beta
    if step.operand is not None:
        combine: Any = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
        result: Array = combine[step.alg](x, step.operand.astype(np.float64))
        return result
    if step.alg == "relu":
        return np.where(x > 0, x, alpha * x)
    if step.alg == "linear":
        return alpha * x + beta
    if step.alg == "clip":
        return np.clip(x, alpha, beta)
    assert step.alg == "sum"
    assert before is not None
    return x + alpha * (before.astype(np.float64) - beta)


def _products(sample: Sample) -> Array:
    """Return src_scale · wei_scale · acc in float64, which holds such sums exactly."""
    src, wei = (_real(sample, name) for name in ("src", "wei"))
    if sample.kind == "matmul":
        return np.asarray(src @ wei)
    if sample.kind == "inner_product":
        return np.asarray(src.reshape(len(src), -1) @ wei.reshape(len(wei), -1).T)
    return (
        _gathered(sample, src, wei) if sample.kind == "convolution" else _spread(sample, src, wei)
    )


def _real(sample: Sample, name: str) -> Array:
    codes: Array = getattr(sample, name)
    real = codes.astype(np.float64)
    if name in sample.points:
        real = real - sample.points[name].full
    if name in sample.scales:
        real = real * sample.scales[name].full
    return real


def _gathered(sample: Sample, src: Array, wei: Array) -> Array:
    """Convolve: every window of the padded source, laid side by side, times the weights."""
    lengths = src.shape[2:]
    sides = list(zip(sample.lo, lengths, sample.hi, strict=True))
    padded = np.zeros((*src.shape[:2], *(sum(side) for side in sides)))
    padded[all_of_two(slice(lo, lo + length) for lo, length, _ in sides)] = src
    kernel, out = wei.shape[2:], sample.dst_dims[2:]
    step = padded.strides[2:]
    windows = np.lib.stride_tricks.as_strided(
        padded,
        (*src.shape[:2], *kernel, *out),
        (
            *padded.strides[:2],
            *(by * gap for by, gap in zip(step, sample.dilation, strict=True)),
            *(by * stride for by, stride in zip(step, sample.stride, strict=True)),
        ),
    )
    groups = sample.groups
    columns = windows.reshape(len(src), groups, -1, math.prod(out))
    acc = wei.reshape(groups, wei.shape[0] // groups, -1) @ columns
    return np.asarray(acc.reshape(sample.dst_dims))


def _spread(sample: Sample, src: Array, wei: Array) -> Array:
    """Deconvolve: every source value times the weights, added up where its taps lie."""
    groups, kernel, lengths = sample.groups, wei.shape[2:], src.shape[2:]
    oc = wei.shape[0] // groups
    rows = wei.reshape(groups, oc, wei.shape[1], -1).transpose(0, 1, 3, 2)
    rows = rows.reshape(groups, -1, wei.shape[1])
    parts = rows @ src.reshape(len(src), groups, wei.shape[1], -1)
    parts = parts.reshape(len(src), groups * oc, *kernel, *lengths)
    sizes = [
        (length - 1) * step + (taps - 1) * gap + 1 + tail
        for length, step, taps, gap, tail in zip(
            lengths, sample.stride, kernel, sample.dilation, sample.tail, strict=True
        )
    ]
    by_tap = np.moveaxis(parts, range(2, 2 + len(kernel)), range(len(kernel)))
    whole = np.zeros((len(src), groups * oc, *sizes))
    windows = list(zip(sample.dilation, lengths, sample.stride, strict=True))
    for tap in np.ndindex(*kernel):
        places = all_of_two(
            slice(at * gap, at * gap + (length - 1) * step + 1, step)
            for at, (gap, length, step) in zip(tap, windows, strict=True)
        )
        whole[places] += by_tap[tap]
    dst = zip(sample.lo, sample.dst_dims[2:], strict=True)
    cropped: Array = whole[all_of_two(slice(lo, lo + length) for lo, length in dst)]
    return cropped


def all_of_two(spatial: Iterator[slice]) -> tuple[slice, ...]:
    """Return the index of those places of every channel of every image."""
    return (slice(None), slice(None), *spatial)


_MARGIN = 4096  # bytes around an array, and its alignment


def amid_other_bytes(array: Array) -> Array:
    """Copy an array to where other bytes lie before and behind it: they are not to be written."""
    around = np.full(_span(array) + 3 * _MARGIN, 0x55, np.uint8)
    return _copied(array, around, _MARGIN + -around.ctypes.data % _MARGIN)


def before_no_memory(array: Array) -> Array:
    """Copy an array to where nothing may be read behind it: a kernel that does ends the process."""
    span = _span(array)
    inner = -(-span // mmap.PAGESIZE) * mmap.PAGESIZE
    pages = mmap.mmap(-1, inner + mmap.PAGESIZE)
    around = np.frombuffer(pages, np.uint8, inner)
    around.fill(0x55)
    end = ctypes.c_void_p(around.ctypes.data + inner)
    if ctypes.CDLL(None).mprotect(end, ctypes.c_size_t(mmap.PAGESIZE), 0):
        message = "mprotect: the page behind an array stays readable"
        raise OSError(message)
    return _copied(array, around, inner - span)


def _span(array: Array) -> int:
    steps = zip(array.shape, array.strides, strict=True)
    return int(array.itemsize + sum((length - 1) * stride for length, stride in steps))


def _copied(array: Array, around: Array, first: int) -> Array:
    copy: Array = np.ndarray(array.shape, array.dtype, around, first, array.strides)
    copy[...] = array
    return copy
