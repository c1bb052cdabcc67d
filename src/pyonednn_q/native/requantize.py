"""Requantizers in C++: s32 accumulators to integers, as one pass over memory.

What each kind computes is said in `requantize.value` and stated in NumPy in
`requantize.statement`; tests hold the two equal.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import instance
from pyonednn_q.errors import AliasError, ArgumentError, DTypeError, LayoutError, ShapeError
from pyonednn_q.native import runtime
from pyonednn_q.native.order import lie_alike, memory_order
from pyonednn_q.requantize.value import Requantizer

if TYPE_CHECKING:
    from pyonednn_q._core import Requantizer as Loops

Array = np.ndarray[Any, Any]


def requantize(acc: Array, requantizer: Requantizer, *, out: Array | None = None) -> Array:
    """Return integers of the requantizer's dtype for accumulators, in the same layout.

    Parameters
    ----------
    acc : ndarray of int32
        The s32 sums, in any order of dimensions in memory without gaps; another layout is copied
        first.
    requantizer : Requantizer
        The arithmetic and its constants.
    out : ndarray, optional
        Array of the requantizer's dtype, of the shape and layout of `acc`, written in place and
        returned.

    Raises
    ------
    ArgumentError
        An accumulator leaves 32 bits on the way, where the original overflows; `out` holds nothing
        of use then.
    DTypeError, ShapeError, LayoutError, AliasError
        Naming the argument.
    """
    if not isinstance(acc, np.ndarray):
        raise ArgumentError("acc", type(acc).__name__, "a NumPy array")
    if acc.dtype != np.int32:
        raise DTypeError("acc", str(acc.dtype), "int32")
    instance("requantizer", requantizer, Requantizer)
    requantizer.check(acc.shape)
    order = memory_order(acc)
    if order is None:
        acc = np.ascontiguousarray(acc)
        order = tuple(range(acc.ndim))
    dtype = dtypes.numpy_dtype(requantizer.dtype)
    dst = np.empty_like(acc, dtype) if out is None else _checked_out(out, acc, dtype)
    if acc.size:
        physical = [acc.shape[dimension] for dimension in order]
        outer, inner = _around(requantizer, physical, order)
        _prepared(requantizer).run(acc.transpose(order), dst.transpose(order), outer, inner)
    return dst


@functools.lru_cache(maxsize=256)
def _prepared(requantizer: Requantizer) -> Loops:
    """Return the loops and tables of a requantizer; a layer's is made once."""
    multiplier, bias = requantizer.multiplier, requantizer.bias
    none = np.zeros(requantizer.channels, np.int32)
    real = requantizer.kind.startswith("onednn")
    whole = multiplier.dtype.kind == "i"
    factor = multiplier.astype(np.float64)
    if requantizer.kind == "exact":
        factor = np.ldexp(factor / requantizer.last, requantizer.shift)
    return runtime.core.Requantizer(
        kind=requantizer.kind,
        rounding=requantizer.rounding,
        dtype=requantizer.dtype,
        lo=requantizer.lo,
        hi=requantizer.hi,
        multiplier=multiplier if whole else none,
        factor=factor,
        shift=requantizer.shift,
        then=requantizer.then,
        last=requantizer.last,
        bias=none if real or bias is None else bias,
        real_bias=bias if real and bias is not None else none,
        zero_point=requantizer.zero_point,
    )


def _around(
    requantizer: Requantizer, physical: list[int], order: tuple[int, ...]
) -> tuple[int, int]:
    """How many values lie before and after the channels in memory."""
    if requantizer.axis is None:
        return 1, int(np.prod(physical))
    at = order.index(requantizer.axis % len(order))
    return int(np.prod(physical[:at])), int(np.prod(physical[at + 1 :]))


def _checked_out(out: object, acc: Array, dtype: np.dtype[Any]) -> Array:
    if not isinstance(out, np.ndarray):
        raise ArgumentError("out", type(out).__name__, "a NumPy array")
    if out.dtype != dtype:
        raise DTypeError("out", str(out.dtype), str(dtype))
    if out.shape != acc.shape:
        raise ShapeError("out", str(out.shape), str(acc.shape))
    if not out.flags.writeable:
        raise ArgumentError("out", "a read-only array", "a writeable one")
    if not lie_alike(out, acc):
        wanted = tuple(stride // acc.itemsize * out.itemsize for stride in acc.strides)
        raise LayoutError("out", f"strides {out.strides}", f"strides {wanted}, as in acc")
    if np.may_share_memory(acc, out):
        raise AliasError(argument="out", got="memory of acc", wanted="memory of its own")
    return out
