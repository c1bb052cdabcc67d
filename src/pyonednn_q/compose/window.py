"""The window that convolution, deconvolution and pooling slide over the spatial dimensions.

Lengths, per dimension, with the kernel reaching over  r = (kernel − 1) · dilation + 1:

    convolution, pooling    out = floor((in + lo + hi − r) / stride) + 1
    deconvolution           out = (in − 1) · stride − lo − hi + r
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyonednn_q.compose.argument import integers, ordered
from pyonednn_q.errors import ShapeError

Dims = tuple[int, ...]
PerDim = int | Iterable[int]
Padding = int | Iterable[int | Iterable[int]]


@dataclass(frozen=True, slots=True)
class Window:
    """Kernel, strides, dilation (1: dense) and padding, one value per spatial dimension.

    Raises
    ------
    ShapeError
        A wrong number of values, a kernel, stride or dilation below 1, a negative padding.
    """

    kernel: Dims
    strides: Dims
    dilation: Dims
    padding_lo: Dims
    padding_hi: Dims

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            values = getattr(self, name)
            lowest = 0 if name.startswith("padding") else 1
            if len(values) != len(self.kernel):
                wanted = f"{len(self.kernel)} values, one per spatial dimension"
                raise ShapeError(name, str(values), wanted)
            if values and min(values) < lowest:
                raise ShapeError(name, str(values), f"values of at least {lowest}")

    @property
    def reach(self) -> Dims:
        """How far the kernel reaches over its input."""
        taps = zip(self.kernel, self.dilation, strict=True)
        return tuple((kernel - 1) * dilation + 1 for kernel, dilation in taps)

    def gathered(self, lengths: Dims) -> Dims:
        """Return the output lengths of a convolution or pooling; less than 1: it does not fit."""
        return tuple(
            (length + lo + hi - reach) // stride + 1
            for length, lo, hi, reach, stride in zip(
                lengths, self.padding_lo, self.padding_hi, self.reach, self.strides, strict=True
            )
        )

    def spread(self, lengths: Dims) -> Dims:
        """Return the output lengths of a deconvolution, the smallest that use all of the input."""
        return tuple(
            (length - 1) * stride - lo - hi + reach
            for length, lo, hi, reach, stride in zip(
                lengths, self.padding_lo, self.padding_hi, self.reach, self.strides, strict=True
            )
        )


def per_dim(argument: str, value: PerDim, count: int) -> Dims:
    """Return one value per spatial dimension from one for all, or from as many."""
    ordered("padding", value)
    if not isinstance(value, Iterable):
        value = (value,) * count
    return integers(argument, value)


def padding_sides(value: Padding, count: int) -> tuple[Dims, Dims]:
    """Return (lo, hi) from one value for all, one per dimension, or (lo, hi) per dimension.

    Examples
    --------
    >>> padding_sides(((0, 1), (2, 3)), 2)
    ((0, 2), (1, 3))
    """
    ordered("padding", value)
    if not isinstance(value, Iterable):
        value = (value,) * count
    sides = [
        integers("padding", side) if isinstance(side, Iterable) else integers("padding", [side] * 2)
        for side in value
    ]
    if any(len(side) != 2 for side in sides):
        raise ShapeError(argument="padding", got=str(value), wanted="(lo, hi) per dimension")
    return tuple(lo for lo, _ in sides), tuple(hi for _, hi in sides)
