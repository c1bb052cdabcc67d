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
    """Return a convolution of src, dst = store(post(src_scale · wei_scale · acc + bias)).

    Parameters
    ----------
    src : (N, IC, spatial) tensor
        Codes of the type of `src_q`, or floats, which the call quantizes.
    wei : (OC, IC / groups, spatial) tensor
        Codes of `wei_q`, s8 or u8; floats without `src_q` and `wei_q`.
    bias : (OC,) tensor, optional
        Real values in floats, or s32 in units of src_scale · wei_scale.
    out : (N, OC, spatial) tensor, optional
        Tensor that is written and returned as it was given.
    residual : (N, OC, spatial) tensor, optional
        Tensor that a Sum of `post` reads; it is not changed.
    operands : mapping of str to tensor, optional
        The chain's leaves, by name.
    **options
        Options of `Conv`, such as `src_q`, `wei_q`, `dst_q`, `post`, `stride` and `padding`.

    Returns
    -------
    (N, OC, spatial) ndarray
        dst, of `dst_q`'s type or of `dst` (f32).

    Raises
    ------
    ArgumentError, UnsupportedError
        Errors of `Conv` and of its calls; all name the argument or the reason.

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
    """Return a deconvolution of src, dst = store(post(src_scale · wei_scale · acc + bias)).

    Parameters
    ----------
    src : (N, IC, spatial) tensor
        Codes of the type of `src_q`, or floats, which the call quantizes.
    wei : (OC, IC / groups, spatial) tensor
        Codes of `wei_q`, s8 or u8; floats without `src_q` and `wei_q`.
    bias : (OC,) tensor, optional
        Real values in floats, or s32 in units of src_scale · wei_scale.
    out, residual, operands, **options
        Arguments of `conv`; `out` and `residual` are (N, OC, spatial).

    Returns
    -------
    (N, OC, spatial) ndarray
        dst, of `dst_q`'s type or of `dst` (f32).

    Raises
    ------
    ArgumentError, UnsupportedError
        Errors of `Deconv` and of its calls; all name the argument or the reason.
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
    """Return an inner product: acc[n, oc] = Σ src[n, i] · wei[oc, i], then as in `conv`.

    Parameters
    ----------
    src : (N, IC) or (N, IC, spatial) tensor
        Codes of the type of `src_q`, or floats, which the call quantizes.
    wei : (OC, IC) or (OC, IC, spatial) tensor
        Codes of `wei_q`, s8 or u8; floats without `src_q` and `wei_q`.
    bias : (OC,) tensor, optional
        Real values in floats, or s32 in units of src_scale · wei_scale.
    out, residual, operands, **options
        Arguments of `conv` without a window; `out` and `residual` are (N, OC).

    Returns
    -------
    (N, OC) ndarray
        dst, of `dst_q`'s type or of `dst` (f32).

    Raises
    ------
    ArgumentError, UnsupportedError
        Errors of `InnerProduct` and of its calls; all name the argument or the reason.
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
    """Return a matmul: acc[..., m, n] = Σ src[..., m, k] · wei[..., k, n], then as in `conv`.

    Parameters
    ----------
    src : (..., M, K) tensor
        Codes of the type of `src_q`, or floats, which the call quantizes.
    wei : (K, N) or (..., K, N) tensor
        Codes of `wei_q`, s8 or u8; floats without `src_q` and `wei_q`.
    bias : (N,) tensor, optional
        Real values in floats, or s32 in units of src_scale · wei_scale.
    out, residual, operands, **options
        Arguments of `conv` without a window; `out` and `residual` are (..., M, N).

    Returns
    -------
    (..., M, N) ndarray
        dst, of `dst_q`'s type or of `dst` (f32).

    Raises
    ------
    ArgumentError, UnsupportedError
        Errors of `MatMul` and of its calls; all name the argument or the reason.
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
    """Return counts of the cache behind the functional calls."""
    return _CACHE.info()


def operator_cache_limit(size: int) -> None:
    """Set how many operators the functional calls keep (256 at first); 0 keeps none.

    Parameters
    ----------
    size : int
        Number of operators, 0 or more.

    Raises
    ------
    ArgumentError
        `size` is no such number.

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
