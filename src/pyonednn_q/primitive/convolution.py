"""Convolution and deconvolution."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from pyonednn_q.errors import ShapeError
from pyonednn_q.primitive.window import Dims, Window
from pyonednn_q.primitive.windowed import WindowedProblem

if TYPE_CHECKING:
    from pyonednn_q.dtypes import Array
    from pyonednn_q.primitive.dense_operation import DenseKind


class ConvProblem(WindowedProblem):
    """dst[n, oc, o] = Σ src[n, ic, o · stride − lo + k · dilation] · wei[oc, ic, k].

    Parameters
    ----------
    src, dst : TensorSpec
        (N, IC, spatial) and (N, OC, spatial).
    wei : TensorSpec
        (OC, IC, kernel) or (G, OC/G, IC/G, kernel).
    bias : TensorSpec or None
        (OC,).
    stride, dilation, padding_lo, padding_hi : tuple of int
        One per spatial dimension. A dilation of 1 is dense.

    Raises
    ------
    ShapeError
        Anything that does not fit.

    Examples
    --------
    >>> ConvProblem.of((1, 64, 56, 56), (64, 64, 3, 3), padding=1).dst.dims
    (1, 64, 56, 56)
    """

    __slots__ = ()

    kind: ClassVar[DenseKind] = "convolution"
    _lengths = staticmethod(Window.gathered)

    @property
    def product(self) -> tuple[int, int, int] | None:
        """(M, K, N) of the matrix product over the same memory: of 1x1, channels last."""
        is_point = max(self.window.kernel) == 1 == max(self.stride)
        padding = max(self.padding_lo + self.padding_hi)
        if not is_point or padding or self.has_groups or not self.src.is_channels_last:
            return None
        return self.src.size // max(self.ic, 1), self.ic, self.oc

    @property
    def flat_padding(self) -> tuple[Dims, Dims]:
        """Its own."""
        return self.padding_lo, self.padding_hi

    def _at(self, axis: int, places: Array, taps: Array) -> Array:
        return places * self.stride[axis] - self.padding_lo[axis] + taps

    @property
    def macs(self) -> int:
        """Multiplications; those with padding are counted, as is usual for networks."""
        # Each place of dst meets all taps of its group.
        return self.dst.size * (self.wei.size // self.oc)

    def _check_lengths(self) -> None:
        lengths = self.window.gathered(self.src.dims[2:])
        if self.dst.dims[2:] != lengths:
            wanted = f"spatial dimensions {lengths}"
            raise ShapeError(argument="dst", got=str(self.dst.dims), wanted=wanted)


class DeconvProblem(WindowedProblem):
    """dst[n, oc, i · stride − lo + k · dilation] += src[n, ic, i] · wei[oc, ic, k].

    Parameters
    ----------
    src, dst : TensorSpec
        (N, IC, spatial) and (N, OC, spatial). dst may be up to stride − 1 longer than the least.
    wei : TensorSpec
        (OC, IC, kernel) or (G, OC/G, IC/G, kernel): output channels first, as in a convolution.
    bias : TensorSpec or None
        (OC,).
    stride, dilation, padding_lo, padding_hi : tuple of int
        One per spatial dimension. A dilation of 1 is dense.

    Raises
    ------
    ShapeError
        Anything that does not fit.

    Examples
    --------
    >>> DeconvProblem.of((1, 64, 28, 28), (64, 64, 4, 4), stride=2, padding=1).dst.dims
    (1, 64, 56, 56)
    """

    __slots__ = ()

    kind: ClassVar[DenseKind] = "deconvolution"
    _may_spread = True
    _lengths = staticmethod(Window.spread)

    @property
    def flat_padding(self) -> tuple[Dims, Dims]:
        """The rest of the reach, on both sides."""
        sides = (self.padding_lo, self.padding_hi)
        lo, hi = (
            tuple(reach - 1 - side for reach, side in zip(self.window.reach, one, strict=True))
            for one in sides
        )
        return lo, hi

    def _at(self, axis: int, places: Array, taps: Array) -> Array:
        at, rest = np.divmod(places + self.padding_lo[axis] - taps, self.stride[axis])
        return np.where(rest == 0, at, -1)

    @property
    def macs(self) -> int:
        """Multiplications; those with padding are counted, as is usual for networks."""
        # Each element of src meets all taps of its group.
        return self.src.size * (self.wei.size // self.ic)

    def _check_lengths(self) -> None:
        # The convolution back must land on src: this is what allows for the extra stride − 1.
        if self.window.gathered(self.dst.dims[2:]) != self.src.dims[2:]:
            least = self.window.spread(self.src.dims[2:])
            wanted = f"spatial dimensions {least}, or up to stride - 1 more"
            raise ShapeError(argument="dst", got=str(self.dst.dims), wanted=wanted)
