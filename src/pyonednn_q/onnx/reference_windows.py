"""Pools of ONNX in NumPy: windows with any pads, strides and dilations, of any number of dims."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from pyonednn_q.dtypes import Array

__all__ = ["POOLS"]

_LEFT_OUT_SINCE = 22  # windows that begin behind the source; onnxruntime has none in any opset

Dims = tuple[int, ...]


class PoolWindows(NamedTuple):
    """Positions of windows over the spatial dims of a source.

    Attributes
    ----------
    kernel, stride, dilation, lo, hi : tuple of int
        One for each spatial dim; `lo` and `hi` are pads.
    src, dst : tuple of int
        Lengths of the source, and how many windows there are.
    """

    kernel: Dims
    stride: Dims
    dilation: Dims
    lo: Dims
    hi: Dims
    src: Dims
    dst: Dims

    @classmethod
    def of(cls, src: Dims, attributes: Mapping[str, Any], opset: int) -> PoolWindows:
        """Return the windows that a pool's attributes say; refuse those in which others disagree.

        That is ONNX's text of an opset with its own inference of dims, and with onnxruntime.
        """
        count = len(src)
        kernel = tuple(attributes["kernel_shape"])
        stride = tuple(attributes.get("strides") or (1,) * count)
        dilation = tuple(attributes.get("dilations") or (1,) * count)
        pads = tuple(attributes.get("pads") or (0,) * 2 * count)
        auto = attributes.get("auto_pad") or "NOTSET"
        if not len(kernel) == len(stride) == len(dilation) == len(pads) / 2 == count:
            message = f"windows of {len(kernel)} dims over {count}"
            raise RuntimeError(message)
        reach = tuple((k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True))
        if auto in {"SAME_UPPER", "SAME_LOWER"}:
            dst = tuple(-(-n // s) for n, s in zip(src, stride, strict=True))
            more = [(o - 1) * s + r - n for o, s, r, n in zip(dst, stride, reach, src, strict=True)]
            if min(more, default=0) < 0:
                message = f"{auto} of windows {kernel} with strides {stride}: runtimes disagree"
                raise RuntimeError(message)
            less, rest = tuple(m // 2 for m in more), tuple(m - m // 2 for m in more)
            lo, hi = (less, rest) if auto == "SAME_UPPER" else (rest, less)
            return cls(kernel, stride, dilation, lo, hi, src, dst).seeing(attributes)
        lo, hi = pads[:count], pads[count:]
        if auto == "VALID":
            lo = hi = (0,) * count
        rows = zip(src, lo, hi, reach, stride, strict=True)
        ceils = bool(attributes.get("ceil_mode", 0))
        dst = tuple(_count(*row, opset=opset, auto=auto, ceils=ceils) for row in rows)
        if min(dst, default=1) < 1:
            message = f"windows that reach over {reach} in {src}: there is no room"
            raise RuntimeError(message)
        return cls(kernel, stride, dilation, lo, hi, src, dst).seeing(attributes)

    def seeing(self, attributes: Mapping[str, Any]) -> PoolWindows:
        """Return itself, whose windows all hold an element, or one that counts as such."""
        whole = bool(attributes.get("count_include_pad", 0))
        for k, s, d, lo, hi, n, count in zip(*self, strict=True):
            places = (np.arange(count) * s - lo)[:, None] + np.arange(k) * d
            first, last = (-lo, n + hi) if whole else (0, n)
            if not ((places >= first) & (places < last)).any(axis=1).all():
                message = "windows of pads alone: of nothing there is neither mean nor maximum"
                raise RuntimeError(message)
        return self

    def taps(self, values: Array, outside: Any) -> Iterator[tuple[Dims, Array]]:  # noqa: ANN401
        """Yield each position of the kernel, and the source values there for every window."""
        ends = [
            max((o - 1) * s + (k - 1) * d + 1 - lo, n)
            for o, s, k, d, lo, n in zip(
                self.dst, self.stride, self.kernel, self.dilation, self.lo, self.src, strict=True
            )
        ]
        sides = [
            (0, 0),
            (0, 0),
            *((lo, end - n) for lo, end, n in zip(self.lo, ends, self.src, strict=True)),
        ]
        padded = np.pad(values, sides, constant_values=outside)
        for place in product(*(range(k) for k in self.kernel)):
            at = [p * d for p, d in zip(place, self.dilation, strict=True)]
            steps = zip(at, self.dst, self.stride, strict=True)
            places = (slice(p, p + (n - 1) * s + 1 if n else p, s) for p, n, s in steps)
            index = (slice(None), slice(None), *places)
            yield place, padded[index]

    def sums(self, values: Array) -> Array:
        """Return the sum in every window; values outside count as 0."""
        total = np.zeros((*values.shape[:2], *self.dst), values.dtype)
        for _, tap in self.taps(values, 0):
            total += tap
        return total

    def counts(self, *, pads: bool, dtype: np.dtype[Any]) -> Array:
        """Return the number of positions of each window inside the source, or its pads, too."""
        lengths = self.src
        if pads:
            lengths = tuple(map(sum, zip(self.src, self.lo, self.hi, strict=True)))
        own = self._replace(src=lengths, lo=(0,) * len(lengths)) if pads else self
        return own.sums(np.ones((1, 1, *lengths), dtype))


def _count(
    length: int,
    lo: int,
    hi: int,
    reach: int,
    stride: int,
    *,
    opset: int,
    auto: str,
    ceils: bool,
) -> int:
    """Return the number of windows; since opset 22 none begins after source and pads."""
    room = length + lo + hi - reach
    whole = room // stride + 1
    if not ceils:
        return whole
    count = -(-room // stride) + 1
    if auto == "VALID" and count > whole:
        message = "VALID with ceil_mode: ONNX's text and its inference of dims disagree"
        raise RuntimeError(message)
    is_behind = (count - 1) * stride >= length + lo
    if is_behind and opset < _LEFT_OUT_SINCE:
        message = f"windows that begin behind the source, as opset {opset} has them"
        raise RuntimeError(message)
    return count - is_behind


def _opset(self: Any) -> int:  # noqa: ANN401
    return int(self.run_params["opsets"][""])


def _max_pool(
    self: Any,  # noqa: ANN401
    x: Array,
    **attributes: Any,  # noqa: ANN401
) -> tuple[Array, ...]:
    windows = PoolWindows.of(x.shape[2:], attributes, _opset(self))
    least = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    largest = np.full((*x.shape[:2], *windows.dst), least, x.dtype)
    if len([*filter(None, self.onnx_node.output)]) < 2:
        for _, tap in windows.taps(x, least):
            np.maximum(largest, tap, out=largest)
        return (largest,)
    spatial = windows.src
    places: Array = np.arange(math.prod(spatial))
    is_turned = bool(attributes.get("storage_order", 0))
    places = places.reshape(spatial[::-1]).T if is_turned else places.reshape(spatial)
    bases = np.arange(math.prod(x.shape[:2])) * math.prod(spatial)
    flat = bases.reshape(*x.shape[:2], *(1,) * len(spatial)) + places
    index = np.full(largest.shape, -1, np.int64)
    for (_, tap), (_, at) in zip(windows.taps(x, least), windows.taps(flat, -1), strict=True):
        is_larger = (at >= 0) & ((tap > largest) | (index < 0))
        largest, index = np.where(is_larger, tap, largest), np.where(is_larger, at, index)
    return largest, index


def _average_pool(self: Any, x: Array, **attributes: Any) -> tuple[Array]:  # noqa: ANN401
    windows = PoolWindows.of(x.shape[2:], attributes, _opset(self))
    pads = bool(attributes.get("count_include_pad", 0))
    counts = windows.counts(pads=pads, dtype=x.dtype)
    return ((windows.sums(x) / counts).astype(x.dtype),)


def _lp_pool(self: Any, x: Array, **attributes: Any) -> tuple[Array]:  # noqa: ANN401
    power = attributes.get("p") or 2
    sums = PoolWindows.of(x.shape[2:], attributes, _opset(self)).sums(np.abs(x) ** power)
    return ((sums ** (1 / power)).astype(x.dtype),)


def _global(function: Callable[..., Any]) -> Callable[..., tuple[Array]]:
    def run(_: object, x: Array, p: int | None = None) -> tuple[Array]:
        places = tuple(range(2, x.ndim))
        more: Iterable[int] = () if p is None else (p,)
        return (np.asarray(function(x, places, *more), x.dtype),)

    return run


def _largest(x: Array, places: Dims) -> Array:
    return np.asarray(x.max(axis=places, keepdims=True))


def _mean(x: Array, places: Dims) -> Array:
    return np.asarray(x.mean(axis=places, keepdims=True))


def _norm(x: Array, places: Dims, power: int) -> Array:
    return np.asarray((np.abs(x) ** power).sum(axis=places, keepdims=True) ** (1 / power))


POOLS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "AveragePool": _average_pool,
        "GlobalAveragePool": _global(_mean),
        "GlobalLpPool": _global(_norm),
        "GlobalMaxPool": _global(_largest),
        "LpPool": _lp_pool,
        "MaxPool": _max_pool,
    }
)
