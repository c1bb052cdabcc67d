"""Pools as the standard's text has them, one window after the other, in float64.

Nothing here is shared with the package: where a window lies is written down once more, from the
formulas in the text of MaxPool, AveragePool and LpPool.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Dims = tuple[int, ...]

IGNORED_SINCE = 22  # "Sliding windows that would start in the right padded region are ignored."


class NotSaid(Exception):
    """What the text leaves open, or contradicts."""


@dataclass(frozen=True)
class Windows:
    """Where windows lie: kernel, stride, dilation, pads, and how many windows each dim has."""

    kernel: Dims
    stride: Dims
    dilation: Dims
    lo: Dims
    hi: Dims
    dst: Dims


def windows(opset: int, src: Dims, given: Mapping[str, Any]) -> Windows:
    """Return the windows that attributes say."""
    count = len(src)
    kernel = tuple(given["kernel_shape"])
    stride = tuple(given.get("strides", [1] * count))
    dilation = tuple(given.get("dilations", [1] * count))
    pads = tuple(given.get("pads", [0] * 2 * count))
    auto = given.get("auto_pad", "NOTSET")
    lo, hi, dst = [], [], []
    for at in range(count):
        length, step = src[at], stride[at]
        reach = (kernel[at] - 1) * dilation[at] + 1
        before, after = (pads[at], pads[at + count]) if auto == "NOTSET" else (0, 0)
        if auto.startswith("SAME"):
            number = -(-length // step)
            pad = (number - 1) * step + reach - length
            if pad < 0:
                raise NotSaid("pads below 0 to share")
            before = pad // 2 if auto == "SAME_UPPER" else pad - pad // 2
            after = pad - before
        elif auto == "VALID":
            number = -(-(length - reach + 1) // step)
        elif given.get("ceil_mode", 0):
            number = math.ceil((length + before + after - reach) / step + 1)
            behind = (number - 1) * step >= length + before
            if opset >= IGNORED_SINCE and behind:
                number -= 1
        else:
            number = math.floor((length + before + after - reach) / step + 1)
        lo.append(before)
        hi.append(after)
        dst.append(number)
    return Windows(kernel, stride, dilation, *map(tuple, (lo, hi, dst)))


@dataclass(frozen=True)
class Pooled:
    """Values of all windows, in float64, how far float sums may be off, and places of maxima."""

    values: Array
    apart: Array
    places: Array


def pooled(
    operator: str, opset: int, x: Array, given: Mapping[str, Any], roundings: float
) -> Pooled:
    """Return what the text has.

    roundings: 2^-24 of float32; each sum of n numbers is off by no more than so much of their
    magnitudes in any order of additions, n + 4 times.
    """
    over = windows(opset, x.shape[2:], given)
    if min(over.dst) < 1:
        raise NotSaid("no window")
    wide = x.astype(np.float64) if x.dtype.kind == "f" else x
    values = np.zeros((*x.shape[:2], *over.dst))
    apart, places = np.zeros(values.shape), np.zeros(values.shape, np.int64)
    strides = _strides(x.shape[2:], turned=bool(given.get("storage_order", 0)))
    whole = bool(given.get("count_include_pad", 0))
    for window in product(*map(range, over.dst)):
        begin = [w * s - p for w, s, p in zip(window, over.stride, over.lo, strict=True)]
        inside, elements = [], 0
        for tap in product(*map(range, over.kernel)):
            at = tuple(b + t * d for b, t, d in zip(begin, tap, over.dilation, strict=True))
            row = list(zip(at, x.shape[2:], over.lo, over.hi, strict=True))
            if all(0 <= a < n for a, n, _, _ in row):
                inside.append(at)
            elements += all(-lo <= a < n + hi for a, n, lo, hi in row)
        if not (elements if operator == "AveragePool" and whole else inside):
            raise NotSaid("a window of pads alone")
        index: Any = (slice(None), slice(None), *np.array(inside, int).reshape(-1, len(at)).T)
        taken = wide[index]
        to: Any = (slice(None), slice(None), *window)
        if operator == "MaxPool":
            values[to] = taken.max(axis=2)
            first = taken.argmax(axis=2)
            flat = np.array([sum(map(math.prod, zip(a, strides, strict=True))) for a in inside])
            places[to] = flat[first]
        elif operator == "AveragePool":
            number = elements if whole else len(inside)
            values[to] = taken.sum(axis=2) / number
            most = np.abs(taken).sum(axis=2) / number
            apart[to] = (len(inside) + 4) * roundings * most
        else:
            power = given.get("p", 2)
            values[to] = (np.abs(taken) ** power).sum(axis=2) ** (1 / power)
            # Each power of a kernel of its own is off by some units, of magnitudes alone.
            apart[to] = (len(inside) + 32) * roundings * values[to]
    return Pooled(values, apart, places + _bases(x.shape))


def _strides(lengths: Dims, *, turned: bool) -> Dims:
    rest = [math.prod(lengths[:at]) if turned else math.prod(lengths[at + 1 :])
            for at in range(len(lengths))]  # fmt: skip
    return tuple(rest)


def _bases(dims: Dims) -> Array:
    bases = np.arange(dims[0] * dims[1]) * math.prod(dims[2:])
    return bases.reshape(*dims[:2], *(1,) * len(dims[2:]))
