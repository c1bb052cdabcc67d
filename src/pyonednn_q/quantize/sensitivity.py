"""Sensitivity of a layer to fewer bits, Tr(H)/n · ‖Q(W) − W‖², and the trace of its Hessian.

Hutchinson: Tr(H) = E[vᵀ H v] over vectors v of random signs, from products H v alone. Source:
HAWQ-v2 (Dong et al., 2020), as NNCF had it up to 2.18. There each probe's sum of products begins
with a normal vector of its own, which is not copied: it biases nothing, its share of the average
trace has the mean 0 and the deviation 1 / (samples · √weights), divided by √probes in the mean.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.argument import function, integers, numbers, real, whole
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, Error, ShapeError
from pyonednn_q.quantize.integer_weights import integer_weights
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["hutchinson_trace", "perturbation", "sensitivity"]

_SMALL = 1e-6
_FLOAT_BITS = 8  # below which, and at which, weights are integers


def perturbation(wei: ArrayLike, bits: int, *, axis: int = 0) -> float:
    """Return ‖Q(W) − W‖²: the squared error of weights in a number of bits.

    Parameters
    ----------
    wei : array_like
        Real weights.
    bits : int
        2 to 8: symmetric integers per channel; 16: bfloat16; 32: float32, without error.
    axis : int
        Axis of the output channels.

    Raises
    ------
    ArgumentError, ShapeError
        Naming the argument.

    Examples
    --------
    >>> perturbation([[1.0, 0.4]], 2), perturbation([[1.0, 0.4]], 32)
    (0.16000000000000003, 0.0)
    """
    values = numbers("wei", wei).astype(np.float64)
    bits = whole("bits", bits, lo=2, hi=32)
    if bits == 32:
        return 0.0
    if bits == 16:
        with np.errstate(over="ignore"):
            single = np.ascontiguousarray(values.astype(np.float32))
        if not np.isfinite(single).all():
            raise ArgumentError("wei", "values that float32 does not hold", "finite numbers")
        pattern = single.view(np.uint32)
        # To nearest, ties to even, in the upper 16 bits.
        lifted = pattern + np.uint32(0x7FFF) + ((pattern >> np.uint32(16)) & np.uint32(1))
        became = (lifted & np.uint32(0xFFFF0000)).view(np.float32)
        return float(np.square(became.astype(np.float64) - values).sum())
    bits = whole("bits", bits, lo=2, hi=_FLOAT_BITS)
    return float(np.square(integer_weights(values, bits, axis=axis).dequantize() - values).sum())


def hutchinson_trace(
    hvp: Callable[[Array], ArrayLike],
    shape: tuple[int, ...],
    *,
    probes: int = 200,
    tolerance: float = 1e-4,
    seed: int = 0,
) -> float:
    """Return an estimate of the trace of a Hessian, from Hessian-vector products.

    Parameters
    ----------
    hvp : callable
        Function from a vector to the Hessian times the vector, both of `shape`.
    shape : tuple of int
        Shape of the weights.
    probes : int
        Largest number of vectors of random signs.
    tolerance : float
        The estimate ends when a probe changes the running mean by less than this share of it (from
        the second probe on); 0: never.
    seed : int
        Seed of the signs.

    Raises
    ------
    ArgumentError, ShapeError
        Naming the argument; what `hvp` raises becomes an error about it.

    Notes
    -----
    Exact, whatever the signs, where the Hessian is diagonal. Else the variance of a probe is
    twice the sum of squares off the diagonal.

    Examples
    --------
    >>> hutchinson_trace(lambda v: np.array([1.0, 2.0, 4.0]) * v, (3,))
    7.0
    """
    function("hvp", hvp)
    dims = integers("shape", shape)
    # NumPy's arrays have 32 dimensions at the most, or 64.
    if len(dims) > 32 or min(dims, default=1) < 1 or np.prod(dims, dtype=float) > 2.0**31:
        raise ShapeError("shape", shown(dims), "up to 32 dims of at least 1, for 2^31 numbers")
    most = whole("probes", probes, lo=1)
    share = real("tolerance", tolerance)
    signs = np.random.default_rng(whole("seed", seed, lo=0))
    total = mean = 0.0
    for done in range(1, most + 1):
        vector = signs.integers(0, 2, dims) * 2.0 - 1.0
        try:
            product = numbers("hvp", hvp(vector)).astype(np.float64)
        except Error:
            raise
        except Exception as error:
            got = f"a function that raises {type(error).__name__}"
            raise ArgumentError("hvp", got, "one that takes a vector") from error
        if product.shape != dims or not np.isfinite(product).all():
            got = f"a product of shape {product.shape}"
            raise ShapeError("hvp", got, f"finite numbers of shape {dims}")
        total += float((vector * product).sum())
        before, mean = mean, total / done
        if done > 1 and abs(mean - before) / (abs(before) + _SMALL) < share:
            break
    return mean


def sensitivity(wei: ArrayLike, bits: int, trace: float, *, axis: int = 0) -> float:
    """Return trace / number of weights · ‖Q(W) − W‖²: the expected increase of the loss.

    Parameters
    ----------
    wei : array_like
        Real weights.
    bits : int
        Bits of a weight, as in `perturbation`.
    trace : float
        Trace of the loss's Hessian in these weights, from `hutchinson_trace`.
    axis : int
        Axis of the output channels.

    Raises
    ------
    ArgumentError, ShapeError
        Naming the argument.
    """
    lost = perturbation(wei, bits, axis=axis)
    return real("trace", trace, wide=True) / max(np.size(wei), 1) * lost
