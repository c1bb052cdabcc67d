"""Weights whose scales and zero points are those of groups along the inner dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import instance
from pyonednn_q.dtypes import F32_LEAST, Array
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.expr.vec import Vec
from pyonednn_q.ops.settings import Settings
from pyonednn_q.ops.staged import SourceLevels
from pyonednn_q.ops.weights import Weights
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.ranges import Dynamic

if TYPE_CHECKING:
    from pyonednn_q.native.group_product import GroupProduct

_MOST = (2**31 - 1) // (255 * 255)  # products of differences of codes, whose sum fits into 32 bits
_HOLDER = {"s4": "s8", "u4": "u8", "s8": "s8", "u8": "u8"}


def weights_in_groups(
    wei: Array, wei_q: QParams, kind: str, axis: int, settings: Settings
) -> Weights:
    """Return codes of weights in groups, checked; what they are worth stays in `wei_q`.

    Parameters
    ----------
    wei : ndarray
        Codes, in the caller's dims; those of 4 bits also in int8 (s4) or uint8 (u4).
    wei_q : QParams
        Scales in blocks along the input channels.
    kind : str
        Kind of the operator.
    axis : int
        Axis of the output channels: 0 or -1.
    settings : Settings
        Further settings of the operator.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument.
    """
    size = wei_q.block[0]
    if kind not in {"matmul", "inner_product"}:
        wanted = "one scale for each output channel; MatMul and InnerProduct take groups"
        raise ArgumentError("wei_q", f"groups of {size}", wanted)
    _check_settings(settings)
    if wei.ndim != 2:
        raise ShapeError("wei", str(wei.shape), "two dimensions, with weights in groups")
    inner = 1 if axis == 0 else 0
    assert wei_q.axis is not None
    if wei_q.axis % 2 != inner:
        wanted = f"{inner}, the input channels: groups of outputs have a scale for each channel"
        raise ArgumentError("wei_q", f"groups along axis {wei_q.axis}", wanted)
    dims = list(wei.shape)
    if dims[inner] % size:
        wanted = f"a divisor of {dims[inner]} input channels; or wei padded with its zero points"
        raise ShapeError("wei_q", f"groups of {size}", wanted)
    dims[inner] //= size
    scale = np.asarray(wei_q.scale)
    if scale.shape != tuple(dims):
        raise ShapeError("wei_q", f"scales of shape {scale.shape}", f"{tuple(dims)}, one a group")
    if size > _MOST:
        raise ShapeError("wei_q", f"groups of {size}", f"at most {_MOST}: sums stay in 32 bits")
    sizes = np.abs(scale)
    if sizes.min() < F32_LEAST or sizes.max() > np.finfo(np.float32).max:
        raise ArgumentError("wei_q", f"a scale of {sizes.min()}", "scales that float32 holds")
    note = f"weights of {wei_q.dtype} in groups of {size}: exact sums of each, by a kernel of ours"
    return Weights(_codes(wei, wei_q.dtype), wei_q.dtype, Vec(1.0), Vec(0.0), note)


class PackedWeights(Weights):
    """Weights in groups that lie packed alone, and are unpacked for who asks for their codes.

    Parameters
    ----------
    weights : Weights
        The same, whose values may go.
    product : GroupProduct
        Product that holds the codes.
    is_turned : bool
        Whether the caller has them as (K, N).
    """

    __slots__ = ("is_turned", "product")
    is_turned: bool
    product: GroupProduct

    def __init__(self, weights: Weights, product: GroupProduct, *, is_turned: bool) -> None:
        for name in ("dtype", "scale", "zero_point", "note", "parts"):
            object.__setattr__(self, name, getattr(weights, name))
        object.__setattr__(self, "product", product)
        object.__setattr__(self, "is_turned", is_turned)

    def __reduce__(self) -> tuple[type[Weights], tuple[object, ...]]:
        # What is packed belongs to a process.
        own = (self.dtype, self.scale, self.zero_point, self.note, self.parts)
        return Weights, (self.values, *own)

    if not TYPE_CHECKING:  # a property in the place of a field

        @property
        def values(self) -> Array:
            """Codes, in the caller's dims."""
            codes = self.product.codes()
            return codes.T if self.is_turned else codes

    @property
    def dims(self) -> tuple[int, ...]:
        """Dims of the values."""
        return self.product.dims[::-1] if self.is_turned else self.product.dims


def _codes(wei: Array, dtype: str) -> Array:
    """Return a copy of codes in a byte each."""
    if dtype not in _HOLDER:
        raise DTypeError("wei_q", dtype, f"one of {', '.join(_HOLDER)}, with groups")
    holder = _HOLDER[dtype]
    wanted = f"{dtypes.numpy_dtype(holder)}, which holds codes of {dtype}, as wei_q says"
    if dtypes.from_numpy(wei.dtype, "wei", wanted) not in {dtype, holder}:
        raise DTypeError("wei", str(wei.dtype), wanted)
    codes = wei.astype(dtypes.numpy_dtype(holder))
    lo, hi = dtypes.qmin(dtype), dtypes.qmax(dtype)
    beyond = codes[(codes < lo) | (codes > hi)]
    if beyond.size:
        raise ArgumentError("wei", f"{beyond.flat[0]}", f"codes from {lo} to {hi}, as wei_q says")
    codes.flags.writeable = False
    return codes


def _check_settings(settings: Settings) -> None:
    """Refuse what the kernel does not do."""
    src_q = settings.src_q
    if src_q is None or isinstance(src_q, SourceLevels):
        got = "None" if src_q is None else "levels of a FakeQuantize"
        raise ArgumentError("src_q", got, "Dynamic('s8', 'per_row'), or QParams: sums are of codes")
    if not isinstance(src_q, Dynamic):
        instance("src_q", src_q, QParams)
    wanted = "with weights in groups: another layer behind this one"
    if settings.dst != "f32":
        raise DTypeError("dst", settings.dst, f"f32 {wanted}")
    if settings.post.steps:
        raise ArgumentError("post", str(settings.post), f"none {wanted}")
    for name in ("requantize", "exact_rounding"):
        value = getattr(settings, name)
        if value:
            raise ArgumentError(name, str(value), f"none {wanted}")
