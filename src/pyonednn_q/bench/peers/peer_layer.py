"""Layer: one convolution or product with everything that it reads, as any runtime may be given it.

x   = src_scale · wei_scale · Σ (src − src_zero_point) · (wei − wei_zero_point) + bias
x   = x + scale · (residual − zero_point), if there is one; max(x, 0), if there is a relu
dst = saturate(rne(x / dst_scale + dst_zero_point))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import Error

__all__ = ["PeerError", "PeerLayer", "PeerRun", "Residual"]


class PeerError(Error):
    """A peer cannot compute a layer, or cannot be used at all.

    Parameters
    ----------
    peer : str
        Name of the runtime.
    why : str
        Reason, as the rest of a sentence that begins with the name.
    """

    def __init__(self, peer: str, why: str) -> None:
        super().__init__(f"{peer} {why}")
        self.peer = peer
        self.why = why


@dataclass(frozen=True, eq=False, slots=True)
class Residual:
    """Tensor that is added before the result is stored: scale · (values − zero_point)."""

    values: Array
    scale: float
    zero_point: int


@dataclass(frozen=True, eq=False, slots=True)
class PeerLayer:
    """A layer in plain values.

    Attributes
    ----------
    kind : {"conv", "deconv", "ip", "matmul"}
        Kind, as in `Shape`.
    src, wei : ndarray
        Tensors in logical dims; weights of (de)convolutions are (OC, IC / groups, spatial).
    bias : ndarray or None
        Floating: real values; integer: units of the accumulator.
    src_scale, src_zero_point : float and int
        Real value of one step of src, and its code for real 0.
    wei_scale : ndarray or float
        One value, or one per output channel.
    wei_zero_point : int
        The code of the weights that stands for real 0.
    dst : str
        Data type of the result.
    dst_scale, dst_zero_point : float and int
        Real value of one step of dst, and its code for real 0.
    stride, dilation : tuple of int
        One per spatial dimension; a dilation of 1 is dense.
    padding : tuple of (int, int)
        (before, behind) each spatial dimension, in elements.
    out_padding : tuple of int
        Places that dst of a deconvolution has more than the least, along each dimension.
    groups : int
        Number of groups of channels.
    relu : bool
        Whether a relu follows.
    residual : Residual or None
        Residual, added before the tail.
    channels_last : bool
        Whether src and dst of (de)convolutions lie channels last in memory.
    constant_wei : bool
        The weights are known before the call.
    group : int
        Number of weights of a column that share a scale: then src is float32, weights are codes (K,
        N) of `bits`, and `wei_scale` is (K / group, N). 0: no groups.
    bits : int
        Width of such codes, in a byte each.
    """

    kind: str
    src: Array
    wei: Array
    bias: Array | None = None
    src_scale: float = 1.0
    src_zero_point: int = 0
    wei_scale: Array | float = 1.0
    wei_zero_point: int = 0
    dst: str = "f32"
    dst_scale: float = 1.0
    dst_zero_point: int = 0
    stride: tuple[int, ...] = ()
    dilation: tuple[int, ...] = ()
    padding: tuple[tuple[int, int], ...] = ()
    out_padding: tuple[int, ...] = ()
    groups: int = 1
    relu: bool = False
    residual: Residual | None = None
    channels_last: bool = True
    constant_wei: bool = True
    group: int = 0
    bits: int = 8

    @property
    def is_int8(self) -> bool:
        """Whether products are of integers."""
        return self.src.dtype.kind in "iu"

    @property
    def is_windowed(self) -> bool:
        """Whether it is a convolution or a deconvolution."""
        return self.kind in {"conv", "deconv"}

    @property
    def dst_dtype(self) -> np.dtype[Any]:
        """Data type of the result, as NumPy's."""
        return np.dtype(dtypes.numpy_dtype(self.dst))

    def bias_in_acc(self) -> Array | None:
        """Return the bias as int32 in units of the accumulator, rounded if it is not."""
        if self.bias is None or self.bias.dtype.kind == "i":
            return self.bias
        units = np.rint(self.bias / (self.src_scale * self.wei_scale))
        return np.asarray(units.astype(np.int32))

    def bias_real(self) -> Array | None:
        """Return the bias as float32 real values."""
        if self.bias is None or self.bias.dtype.kind == "f":
            return self.bias
        return np.asarray((self.bias * (self.src_scale * self.wei_scale)).astype(np.float32))

    def check_types(self, peer: str, *, takes_groups: bool = False) -> None:
        """Refuse what is neither FP32 nor INT8: peers are compared in these, and some in groups.

        Raises
        ------
        PeerError
        """
        if self.group and not takes_groups:
            raise PeerError(peer, "is not asked for weights in groups")
        if self.src.dtype.name not in {"float32", "uint8", "int8"}:
            raise PeerError(peer, "is compared in f32 and INT8 only")


@dataclass(frozen=True, slots=True)
class PeerRun:
    """A layer made ready. Keep it while `run` is used: it owns the memory.

    Attributes
    ----------
    run : callable
        Computes it once, from where src lies to where the peer keeps its result: what is timed.
    read : callable
        Returns dst in logical dims, from what `run` returned.
    memory : tuple
        Arrays that the peer reads and writes without owning them.
    """

    run: Callable[[], Any]
    read: Callable[[Any], Array]
    memory: tuple[object, ...] = ()

    def result(self) -> Array:
        """Compute once and return dst."""
        return self.read(self.run())
