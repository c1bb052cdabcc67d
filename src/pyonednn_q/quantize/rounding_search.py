"""Codes rounded up or down, whichever way makes a layer's output error less.

    from nearest rounding, input after input, a channel takes the other neighbour if that lowers
    Σ ((wei_q − wei) · src)² = (wei_q − wei) · G · (wei_q − wei),     G = Σ srcᵀ · src

A search, no gradients; after AdaRound (Nagel et al., 2020) in aim, not in method.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.argument import whole
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.quantize.group_codes import finite_values

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["searched_by_products", "searched_rounding"]

_WHOLE = 2.0**-16  # of a step: 127 rounded to float32, and as much again


def searched_rounding(
    src: ArrayLike,
    wei: ArrayLike,
    scale: ArrayLike,
    *,
    qmin: int = -127,
    qmax: int = 127,
    sweeps: int = 4,
) -> Array:
    """Return codes, each rounded down or up, with a smaller error of the layer's outputs.

    A bounded search without gradients, not AdaRound itself: from nearest rounding, input after
    input, a channel takes the other neighbour if that lowers Σ ((wei_q − wei) · src)² over the
    samples. It ends when nothing moves, or after `sweeps`; the error never grows.

    Parameters
    ----------
    src : (N, K) array_like
        Samples of the real source: rows that weights are multiplied with.
    wei : (C, K) array_like
        Real weights, one row for each output channel; a convolution's as patches.
    scale : float or (C,) array_like
        Real value of one step, above 0.
    qmin, qmax : int
        Lowest and highest code, within s8.
    sweeps : int
        Largest number of passes over all inputs.

    Returns
    -------
    (C, K) ndarray of int8

    Raises
    ------
    ArgumentError, ShapeError
        Naming the argument.

    Examples
    --------
    >>> searched_rounding([[1.0, 1.0]], [[0.4, 0.4]], 1.0)  # to nearest, both would be 0
    array([[1, 0]], dtype=int8)
    """
    values, samples = finite_values("wei", wei), finite_values("src", src)
    if values.ndim != 2 or samples.ndim != 2 or samples.shape[1:] != values.shape[1:]:
        raise ShapeError("src", f"shape {samples.shape}", f"(N, K) of weights {values.shape}")
    products = samples.T @ samples
    return searched_by_products(products, values, scale, qmin=qmin, qmax=qmax, sweeps=sweeps)


def searched_by_products(
    products: ArrayLike,
    wei: ArrayLike,
    scale: ArrayLike,
    *,
    qmin: int = -127,
    qmax: int = 127,
    sweeps: int = 4,
) -> Array:
    """Return the result of `searched_rounding`, from sums that more samples can be added to.

    Parameters
    ----------
    products : (K, K) array_like
        src.T @ src, over all samples.
    wei, scale, qmin, qmax, sweeps
        Arguments of `searched_rounding`.

    Returns
    -------
    (C, K) ndarray of int8

    Raises
    ------
    ArgumentError, ShapeError
        Naming the argument.
    """
    values, gram = finite_values("wei", wei), finite_values("products", products)
    steps = finite_values("scale", scale)
    lowest, highest = whole("qmin", qmin, lo=-128, hi=0), whole("qmax", qmax, lo=1, hi=127)
    sweeps = whole("sweeps", sweeps, lo=1, hi=1000)
    if values.ndim != 2 or gram.shape != values.shape[1:] * 2:
        raise ShapeError("products", f"shape {gram.shape}", f"(K, K) of weights {values.shape}")
    if steps.shape not in {(), values.shape[:1]} or not (steps > 0.0).all():
        raise ArgumentError("scale", f"shape {steps.shape}", "one above 0, or one of each channel")
    ratio = values / (steps[:, None] if steps.ndim else steps)
    codes = np.clip(np.rint(ratio), lowest, highest)
    # On the other side; what is whole but for rounding stays, or the last bit of a scale decides.
    apart = np.where(np.abs(ratio - codes) > _WHOLE, ratio - codes, 0.0)
    other = np.clip(codes + np.sign(apart), lowest, highest)
    slope = (codes - ratio) @ gram
    for _ in range(sweeps):
        moved = False
        for at in range(values.shape[1]):
            change = other[:, at] - codes[:, at]
            better = change * (2.0 * slope[:, at] + change * gram[at, at]) < 0.0
            if better.any():
                moved = True
                step = np.where(better, change, 0.0)
                slope += step[:, None] * gram[at]
                codes[:, at], other[:, at] = (
                    np.where(better, other[:, at], codes[:, at]),
                    np.where(better, codes[:, at], other[:, at]),
                )
        if not moved:
            break
    return codes.astype(np.int8)
