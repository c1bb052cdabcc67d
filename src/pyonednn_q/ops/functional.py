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

from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError
from pyonednn_q.ops.arrays import check_name
from pyonednn_q.ops.cache import CacheInfo, OperatorCache
from pyonednn_q.ops.conv import Conv, Deconv
from pyonednn_q.ops.dense import InnerProduct, MatMul
from pyonednn_q.ops.options import CodeOptions, ConvOptions, filled, takes

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Unpack

    from pyonednn_q.ops.operator import Operator

Tensor = Any  # NumPy array, CPU tensor with __dlpack__, or buffer
Operands = Any  # mapping of str to such tensors

_CACHE = OperatorCache()


@takes(ConvOptions)
def conv(
    src: Tensor,
    wei: Tensor,
    bias: Tensor = None,
    *,
    out: Tensor = None,
    residual: Tensor = None,
    operands: Operands = None,
    **options: Unpack[ConvOptions],
) -> Array:
    """Return a convolution of src, followed by a chain.

    Parameters
    ----------
    src : (N, IC, spatial) tensor
        Source of a call of `Conv`.
    wei : (OC, IC / groups, spatial) tensor
        Weights of `Conv`.
    bias : (OC,) tensor, optional
        Bias of `Conv`.
    out, residual : tensor, optional
        Arrays of a call of `Conv`. `out` is returned as it was given.
    operands : mapping of str to tensor, optional
        The chain's leaves, by name.
    **options
        Options of `Conv`.

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
    every = filled("conv", ConvOptions, options)
    return _call(Conv, src, wei, bias, out, residual, operands, every)


@takes(ConvOptions)
def deconv(
    src: Tensor,
    wei: Tensor,
    bias: Tensor = None,
    *,
    out: Tensor = None,
    residual: Tensor = None,
    operands: Operands = None,
    **options: Unpack[ConvOptions],
) -> Array:
    """Return a deconvolution of src, followed by a chain.

    Parameters
    ----------
    src : (N, IC, spatial) tensor
        Source of a call of `Deconv`.
    wei : (OC, IC / groups, spatial) tensor
        Weights of `Deconv`.
    bias : (OC,) tensor, optional
        Bias of `Deconv`.
    out, residual, operands
        Arguments of `conv`.
    **options
        Options of `Deconv`.
    """
    every = filled("deconv", ConvOptions, options)
    return _call(Deconv, src, wei, bias, out, residual, operands, every)


@takes(CodeOptions)
def inner_product(
    src: Tensor,
    wei: Tensor,
    bias: Tensor = None,
    *,
    out: Tensor = None,
    residual: Tensor = None,
    operands: Operands = None,
    **options: Unpack[CodeOptions],
) -> Array:
    """Return Σ src[n, i] · wei[oc, i], followed by a chain.

    Parameters
    ----------
    src : (N, IC) or (N, IC, spatial) tensor
        Source of a call of `InnerProduct`.
    wei : (OC, IC) or (OC, IC, spatial) tensor
        Weights of `InnerProduct`.
    bias : (OC,) tensor, optional
        Bias of `InnerProduct`.
    out, residual, operands
        Arguments of `conv`.
    **options
        Options of `InnerProduct`.
    """
    every = filled("inner_product", CodeOptions, options)
    return _call(InnerProduct, src, wei, bias, out, residual, operands, every)


@takes(CodeOptions)
def matmul(
    src: Tensor,
    wei: Tensor,
    bias: Tensor = None,
    *,
    out: Tensor = None,
    residual: Tensor = None,
    operands: Operands = None,
    **options: Unpack[CodeOptions],
) -> Array:
    """Return src · wei, followed by a chain.

    Parameters
    ----------
    src : (..., M, K) tensor
        Source of a call of `MatMul`.
    wei : (K, N) or (..., K, N) tensor
        Weights of `MatMul`.
    bias : (N,) tensor, optional
        Bias of `MatMul`.
    out, residual, operands
        Arguments of `conv`.
    **options
        Options of `MatMul`.
    """
    every = filled("matmul", CodeOptions, options)
    return _call(MatMul, src, wei, bias, out, residual, operands, every)


def kept(
    make: Callable[..., Operator],
    wei: Tensor,
    bias: Tensor = None,
    **options: Any,  # noqa: ANN401 - of make
) -> Operator:
    """Return the operator ``make(wei, bias, **options)``, kept as those of the calls above.

    Parameters
    ----------
    make : callable
        A function of a module, which makes an operator of weights, bias and options.
    wei, bias : tensor
        Compared with those of earlier calls, as the functional calls compare theirs.
    **options
        Options of `make`, hashable or lists; the same objects are found without comparing.
    """
    return _CACHE.find(make, wei, bias, options) or _CACHE.operator(make, wei, bias, options)


def operator_cache_info() -> CacheInfo:
    """Return what the cache behind the functional calls holds and did."""
    return _CACHE.info()


def operator_cache_limit(size: int) -> None:
    """Set how many operators the functional calls keep (256 at first); 0 keeps none.

    Examples
    --------
    >>> operator_cache_clear()
    >>> operator_cache_limit(64)
    >>> operator_cache_info().size, operator_cache_info().limit
    (0, 64)
    >>> operator_cache_limit(256)
    """
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
    operator = _CACHE.find(make, wei, bias, options) or _CACHE.operator(make, wei, bias, options)
    if operands is None:
        if residual is None:
            return operator(src, out=out)
        return operator(src, out=out, residual=residual)
    if not (isinstance(operands, Mapping) and all(isinstance(name, str) for name in operands)):
        wanted = "a mapping: the arrays of the chain's leaves, by name"
        raise ArgumentError("operands", type(operands).__name__, wanted)
    for name in operands:
        check_name("operands", name)
    return operator(src, out=out, residual=residual, **operands)
