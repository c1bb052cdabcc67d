"""conv, deconv, inner_product, matmul: one call, weights and all.

Behind them are the operators `Conv`, `Deconv`, `InnerProduct` and `MatMul`, kept for the next call
with the same weights and options. Use those directly where a call must cost nothing beside the
primitive: here weights are made sure to be those of the last call, by comparing each byte, unless
nothing can write them: read-only arrays that own their memory or lie over bytes, and read-only
views of such arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.errors import ArgumentError
from pyonednn_q.ops.cache import CacheInfo, OperatorCache
from pyonednn_q.ops.conv import Conv, Deconv
from pyonednn_q.ops.dense import InnerProduct, MatMul
from pyonednn_q.ops.operands import check_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyonednn_q.ops.operator import Operator

__all__ = [
    "conv",
    "deconv",
    "inner_product",
    "matmul",
    "operator_cache_clear",
    "operator_cache_info",
    "operator_cache_limit",
]

Array = np.ndarray[Any, Any]
Tensor = Any  # NumPy array, CPU tensor with __dlpack__, or buffer
Operands = Any  # mapping of str to such tensors

_CACHE = OperatorCache()


def conv(
    src: Tensor,
    wei: Tensor,
    bias: Tensor = None,
    *,
    out: Tensor = None,
    residual: Tensor = None,
    operands: Operands = None,
    **options: Any,  # noqa: ANN401
) -> Array:
    """Return a convolution of src, followed by a chain.

    Parameters
    ----------
    src : (N, IC, spatial) tensor
        As `Conv` is called with.
    wei : (OC, IC / groups, spatial) tensor
        As `Conv` takes them.
    bias : (OC,) tensor, optional
        As `Conv` takes it.
    out, residual : tensor, optional
        As `Conv` is called with.
    operands : mapping of str to tensor, optional
        The chain's leaves, by name.
    **options
        All other parameters of `Conv`.

    Returns
    -------
    ndarray
        dst.

    Examples
    --------
    >>> src = np.full((1, 8, 4, 4), 2, np.uint8)
    >>> wei = np.ones((16, 8, 3, 3), np.int8)
    >>> from pyonednn_q.qparams import QParams
    >>> dst = conv(src, wei, src_q=QParams(0.5, 0, "u8"), wei_q=QParams(0.25, 0, "s8"))
    >>> dst.shape, dst.dtype, float(dst[0, 0, 0, 0])
    ((1, 16, 2, 2), dtype('float32'), 18.0)
    """
    return _call(Conv, src, wei, bias, out, residual, operands, options)


def deconv(
    src: Tensor,
    wei: Tensor,
    bias: Tensor = None,
    *,
    out: Tensor = None,
    residual: Tensor = None,
    operands: Operands = None,
    **options: Any,  # noqa: ANN401
) -> Array:
    """Return a deconvolution of src, followed by a chain; parameters as of `conv`.

    Weights are (OC, IC / groups, spatial), as oneDNN has them.
    """
    return _call(Deconv, src, wei, bias, out, residual, operands, options)


def inner_product(
    src: Tensor,
    wei: Tensor,
    bias: Tensor = None,
    *,
    out: Tensor = None,
    residual: Tensor = None,
    operands: Operands = None,
    **options: Any,  # noqa: ANN401
) -> Array:
    """Return Σ src[n, i] · wei[oc, i], followed by a chain; options as of `conv`.

    Parameters
    ----------
    src : (N, IC) or (N, IC, spatial) tensor
        As `InnerProduct` is called with.
    wei : (OC, IC) or (OC, IC, spatial) tensor
        As `InnerProduct` takes them.
    bias : (OC,) tensor, optional
        As `Conv` takes it.
    """
    return _call(InnerProduct, src, wei, bias, out, residual, operands, options)


def matmul(
    src: Tensor,
    wei: Tensor,
    bias: Tensor = None,
    *,
    out: Tensor = None,
    residual: Tensor = None,
    operands: Operands = None,
    **options: Any,  # noqa: ANN401
) -> Array:
    """Return src · wei, followed by a chain; options as of `conv`.

    Parameters
    ----------
    src : (..., M, K) tensor
        As `MatMul` is called with.
    wei : (K, N) or (..., K, N) tensor
        As `MatMul` takes them.
    bias : (N,) tensor, optional
        As `Conv` takes it.
    """
    return _call(MatMul, src, wei, bias, out, residual, operands, options)


def operator_cache_info() -> CacheInfo:
    """Return what the cache behind the functional calls holds and did."""
    return _CACHE.info()


def operator_cache_limit(size: int) -> None:
    """Set how many operators the functional calls keep (256 at first); 0 keeps none."""
    _CACHE.limit(size)


def operator_cache_clear() -> None:
    """Forget the operators of functional calls, with their packed weights."""
    _CACHE.clear()


def _call(
    make: Callable[..., Operator],
    src: Tensor,
    wei: Tensor,
    bias: Tensor,
    out: Tensor,
    residual: Tensor,
    operands: Operands,
    options: dict[str, Any],
) -> Array:
    operator = _CACHE.find(make, wei, bias, options)
    if operator is None:
        operator = _CACHE.operator(make, wei, bias, options)
    if operands is None:
        if residual is None:
            return operator(src, out=out)
        return operator(src, out=out, residual=residual)
    if not (isinstance(operands, Mapping) and all(isinstance(name, str) for name in operands)):
        wanted = "a mapping: the arrays of the chain's leaves, by name"
        raise ArgumentError("operands", type(operands).__name__, wanted)
    check_names("operands", operands)
    return operator(src, out=out, residual=residual, **operands)
