"""The window that convolution, deconvolution and pooling slide over the spatial dimensions.

Lengths, per dimension, with the kernel reaching over  r = (kernel − 1) · dilation + 1:

    convolution, pooling    out = floor((in + lo + hi − r) / stride) + 1
    deconvolution           out = (in − 1) · stride − lo − hi + r
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pyonednn_q.argument import integers, items
from pyonednn_q.errors import ShapeError
from pyonednn_q.shown import shown

Dims = tuple[int, ...]
PerDim = int | Iterable[int]
Padding = int | Iterable[int | Iterable[int]]

_MOST = 2**31 - 1  # the library's own integers


@dataclass(frozen=True, slots=True)
class Window:
    """Kernel, stride, dilation (1: dense) and padding, one value per spatial dimension.

    Attributes
    ----------
    reach : tuple of int
        Extent of the kernel over its input, along each dimension.

    Raises
    ------
    ShapeError
        A wrong number of values, a kernel, stride or dilation below 1, a negative padding.
    """

    kernel: Dims
    stride: Dims
    dilation: Dims
    padding_lo: Dims
    padding_hi: Dims
    reach: Dims = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("kernel", "stride", "dilation", "padding_lo", "padding_hi"):
            values = getattr(self, name)
            lowest = 0 if name.startswith("padding") else 1
            if len(values) != len(self.kernel):
                wanted = f"{len(self.kernel)} values, one per spatial dimension"
                raise ShapeError(name, str(values), wanted)
            if values and min(values) < lowest:
                raise ShapeError(name, str(values), f"values of at least {lowest}")
        reach: Dims = ()
        for taps, gap in zip(self.kernel, self.dilation, strict=True):
            reach += ((taps - 1) * gap + 1,)
        object.__setattr__(self, "reach", reach)

    def gathered(self, lengths: Dims) -> Dims:
        """Return the output lengths of a convolution or pooling; less than 1: it does not fit."""
        sides = zip(self.padding_lo, self.padding_hi, self.reach, self.stride, strict=True)
        counts: Dims = ()
        for length, (lo, hi, reach, stride) in zip(lengths, sides, strict=True):
            counts += ((length + lo + hi - reach) // stride + 1,)
        return counts

    def misses(self, lengths: Dims) -> bool:
        """Tell whether some window of a pooling reaches over padding alone."""
        rows = zip(
            lengths,
            self.gathered(lengths),
            self.kernel,
            self.stride,
            self.dilation,
            self.padding_lo,
            self.padding_hi,
            strict=True,
        )
        for length, count, kernel, stride, dilation, lo, hi in rows:
            for at in range(count) if lo or hi else ():
                begin = at * stride - lo
                first = max(-(begin // dilation), 0)  # tap that is not before the source
                if first >= kernel or begin + first * dilation >= length:
                    return True
        return False

    def exceeds(self) -> bool:
        """Tell whether padding is as wide as the kernel reaches, on some side."""
        rows = zip(self.padding_lo, self.padding_hi, self.reach, strict=True)
        return any(max(lo, hi) >= reach for lo, hi, reach in rows)

    def spread(self, lengths: Dims) -> Dims:
        """Return the output lengths of a deconvolution, the smallest that use all of the input."""
        return tuple(
            (length - 1) * stride - lo - hi + reach
            for length, lo, hi, reach, stride in zip(
                lengths, self.padding_lo, self.padding_hi, self.reach, self.stride, strict=True
            )
        )


def per_dim(argument: str, value: PerDim, count: int) -> Dims:
    """Return one value per spatial dimension, at least 1, from one for all, or from as many."""
    values = _whole(argument, value if isinstance(value, Iterable) else (value,) * count, value)
    if len(values) != count:
        raise ShapeError(argument, shown(values), f"{count} values, one per spatial dimension")
    if values and min(values) < 1:
        raise ShapeError(argument, shown(values), "values of at least 1")
    return values


def padding_sides(value: Padding, count: int) -> tuple[Dims, Dims]:
    """Return (lo, hi), each of one value per spatial dimension.

    Parameters
    ----------
    value : int or sequence
        Padding for all sides; one per dimension; (lo, hi) per dimension; or, as ONNX has them, the
        low sides of all dimensions and then the high ones.
    count : int
        Number of spatial dimensions.

    Raises
    ------
    ShapeError
        Anything else, or a negative padding.

    Examples
    --------
    >>> padding_sides(((0, 1), (2, 3)), 2), padding_sides([0, 2, 1, 3], 2)
    (((0, 2), (1, 3)), ((0, 2), (1, 3)))
    """
    row = value if isinstance(value, Iterable) else (value,) * count
    try:
        sides = items("padding", row, object)
    except ShapeError:
        raise _refused("padding", value) from None
    is_flat = len(sides) == 2 * count and not any(isinstance(side, Iterable) for side in sides)
    if is_flat:
        flat = _whole("padding", sides, value)
        pairs: list[Dims] = list(zip(flat[:count], flat[count:], strict=True))
    else:
        pairs = []
        for side in sides:
            pair = side if isinstance(side, Iterable) else (side, side)
            pairs.append(_whole("padding", pair, value))
    if len(pairs) != count or any(len(pair) != 2 or min(pair) < 0 for pair in pairs):
        wanted = f"0 or more: one value, {count}, (lo, hi) for each dimension, or {2 * count}"
        raise ShapeError("padding", shown(value), wanted)
    lo, hi = zip(*pairs, strict=True) if pairs else ((), ())
    return lo, hi


def kept(name: str, value: Any) -> Any:  # noqa: ANN401 - one number, a row, or a table
    """Return a part of a window as its caller wrote it, of numbers and tuples of them."""
    if not isinstance(value, Iterable):
        return value
    try:
        rows = items(name, value, object)
    except ShapeError:
        raise _refused(name, value) from None
    return tuple(_whole(name, row, value) if isinstance(row, Iterable) else row for row in rows)


def _whole(argument: str, row: Iterable[Any], value: object) -> Dims:
    """Return integers of a part of a window; `value` is the part as its caller wrote it."""
    try:
        values = integers(argument, row)
    except ShapeError:
        raise _refused(argument, value) from None
    if max(values, default=0) > _MOST:
        raise _refused(argument, value)
    return values


def _refused(argument: str, value: object) -> ShapeError:
    number, each = f"a whole number up to {_MOST}", "one for each spatial dimension"
    is_padding = argument == "padding"
    wanted = f"{number}, {each}, or (lo, hi) for each" if is_padding else f"{number}, or {each}"
    return ShapeError(argument, shown(value), wanted)
