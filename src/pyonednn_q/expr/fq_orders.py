"""FakeQuantize of arrays, in the orders in which runtimes compute it.

``core`` is the definition, bracket by bracket. ``fma`` is OpenVINO's CPU node and ``subgraph`` its
fused elementwise code: the same real function, rounded otherwise: codes differ next to a tie.
``cpu`` is what that node computes for ranges of any shape: ``fma`` for one value or one for each
channel, along dimension 1, and ``core`` for others, as measured of 2026.4; those along one inner
dimension it refuses. ``nncf`` is the training tool's::

    s = n/(ih - il);  round((clamp(x, il, il + (ih - il)) - il)*s - round(-il*s))/s
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyonednn_q.argument import broadcast, numbers, one_of, whole
from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.evaluate import fma32

FqOrder: TypeAlias = Literal["core", "fma", "subgraph", "cpu", "nncf"]
Array: TypeAlias = NDArray[Any]


def fake_quantize(
    x: ArrayLike,
    input_low: ArrayLike,
    input_high: ArrayLike,
    output_low: ArrayLike,
    output_high: ArrayLike,
    *,
    levels: int,
    order: FqOrder = "core",
) -> Array:
    """FakeQuantize of arrays, in the float type of x.

    Parameters
    ----------
    x : array_like
        Real values, of any shape, float32 or float64. Anything else is converted to float32.
    input_low, input_high, output_low, output_high : array_like
        Ends of the ranges in real units, which broadcast to x. An empty input range (low == high)
        is a threshold: x at most the range gives output_low, above it output_high. A reversed one
        follows the definition.
    levels : int
        Number of levels that the range is divided into, at least 2.
    order : {"core", "fma", "subgraph", "cpu", "nncf"}
        Name of the order of roundings; all but "core" need input_low < input_high and round as
        float32 does. "nncf" has no output range but the input range.

    Returns
    -------
    ndarray
        Values of x's shape and float type. NaN stays NaN in "core" and "nncf", becomes output_high
        in the others.

    Examples
    --------
    >>> fake_quantize(np.float32([-1, 0.2, 9]), 0, 1, 0, 255, levels=256).tolist()
    [0.0, 51.0, 255.0]
    """
    value = numbers("x", x)
    one_of("order", order, (*_ORDERS, "cpu"))
    kind = np.float64 if value.dtype == np.float64 and order == "core" else np.float32
    count = whole("levels", levels, lo=2)
    names = ("input_low", "input_high", "output_low", "output_high")
    ranges: list[Array] = []
    shapes: list[tuple[int, ...]] = []
    with np.errstate(over="ignore"):
        value = value.astype(kind)
        range_ends = (input_low, input_high, output_low, output_high)
        for name, ends in zip(names, range_ends, strict=True):
            end = numbers(name, ends).astype(kind)
            shapes.append(end.shape)
            ranges.append(broadcast(name, end, value.shape))
            if not np.isfinite(ranges[-1]).all():
                raise ArgumentError(name, "a value that is not finite", "finite ranges")
    if order != "core" and not (ranges[0] < ranges[1]).all():
        raise ArgumentError("input_low", "an empty or reversed range", f"low < high in {order!r}")
    if order == "cpu":
        order = _on_cpu(shapes, value.ndim)
    if order == "nncf" and not all((ranges[i] == ranges[i + 2]).all() for i in (0, 1)):
        raise ArgumentError("output_low", "another range than that of inputs", "the same in 'nncf'")
    with np.errstate(all="ignore"):
        result = _ORDERS[order](value, ranges, np.asarray(kind(count - 1)))
    return np.broadcast_to(result, value.shape)


def _core(x: Array, ranges: list[Array], n: Array) -> Array:
    il, ih, ol, oh = ranges
    level = np.rint((x - il) / (ih - il) * n)
    inside = level / n * (oh - ol) + ol
    return np.where(x <= np.minimum(il, ih), ol, np.where(x > np.maximum(il, ih), oh, inside))


def _fma(x: Array, ranges: list[Array], n: Array) -> Array:
    il, ih, ol, oh = ranges
    isc, ish, osc = n / (ih - il), (-il * n) / (ih - il), (oh - ol) / n
    # fmin, then fmax: the vector instructions return the bound when x is NaN.
    level = np.rint(fma32(isc, np.fmax(np.fmin(x, ih), il), ish))
    return fma32(osc, level, ol)


def _subgraph(x: Array, ranges: list[Array], n: Array) -> Array:
    il, ih, ol, oh = ranges
    isc, osc = n / (ih - il), (oh - ol) / n
    level = np.rint(np.fmax(np.fmin(x, ih), il) * isc - il * isc)
    return fma32(osc, level, ol)


def _nncf(x: Array, ranges: list[Array], n: Array) -> Array:
    low, width = ranges[0], ranges[1] - ranges[0]
    scale = n / width
    point = np.rint(-low * scale)
    return np.asarray(np.rint((np.clip(x, low, low + width) - low) * scale - point) / scale)


def _on_cpu(shapes: list[tuple[int, ...]], ndim: int) -> FqOrder:
    """Return the order of OpenVINO's CPU node for ranges of these shapes."""
    along = {ndim - at for s in shapes for at, size in enumerate(reversed(s), start=1) if size != 1}
    if along <= {1}:
        return "fma"
    if len(along) == 1 and 1 < min(along) < ndim - 1:
        got = f"ranges along dimension {min(along)} alone"
        raise ArgumentError("input_low", got, "others: OpenVINO's CPU node refuses them")
    return "core"


_ORDERS = {"core": _core, "fma": _fma, "subgraph": _subgraph, "nncf": _nncf}
