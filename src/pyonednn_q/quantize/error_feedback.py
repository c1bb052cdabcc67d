"""GPTQ: codes one input after another, whose errors those that follow make up for.

    H      = products + damping · mean(diag(products)) · I,     products = srcᵀ · src
    code_j = clamp(rne(wei_j / scale) + zero_point)
    wei_k −= (wei_j − real(code_j)) · [H_F⁻¹]_jk / [H_F⁻¹]_jj      for all k of F, the inputs left

Then codes move by a step, input after input, where that lowers Σ ((real − wei) · src)², until none
does or after `sweeps`: what a channel's errors add up to, after AdaRound's aim, without gradients.

Inputs go by descending moment: what matters most is rounded first, while all others can make up for
it. Scales are those of the weights as they were, so that groups stay neighbours: a checkpoint whose
groups follow that order has them apart, and no kernel of ours takes those. H_F⁻¹ comes from one
Cholesky factor of H⁻¹. Source: "GPTQ" (Frantar et al., 2022), equations 2 and 3 and section 3.3.
"""

from __future__ import annotations

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.dtypes import Array

__all__ = ["fed_back_codes", "moved_codes", "output_errors"]

_BLOCK = 128  # inputs whose effect on all others is summed before it is taken off
_DAMPING = 0.01
_MORE = 10.0
_WORTH = 2.0**-42  # of a step's own square: less is rounding of float64


def fed_back_codes(
    wei: Array,
    products: Array,
    scale: Array,
    zero_point: Array,
    dtype: str,
    damping: float = _DAMPING,
) -> Array:
    """Return codes whose errors were fed back into the weights that came after.

    Parameters
    ----------
    wei : (OC, IC) ndarray of float64
        Real weights.
    products : (IC, IC) ndarray of float64
        src.T @ src over samples. Inputs that are 0 in all of them get their nearest codes.
    scale, zero_point : (OC, groups) ndarray
        Scale and zero point of each group of neighbours.
    dtype : {"s4", "s8", "u4", "u8"}
        Data type of the codes.
    damping : float
        Parts of the mean moment that are added to each; more where the sum cannot be inverted.

    Returns
    -------
    (OC, IC) ndarray of float64
    """
    size = wei.shape[1] // scale.shape[1]
    moments = np.diag(products)
    order = np.argsort(-moments, kind="stable")
    factor = _factor(products[np.ix_(order, order)], damping)
    left = wei[:, order]
    codes = np.empty_like(wei)
    limits = dtypes.qmin(dtype), dtypes.qmax(dtype)
    for start in range(0, len(order), _BLOCK):
        stop = min(start + _BLOCK, len(order))
        errors = np.empty((len(wei), stop - start))
        for at in range(start, stop):
            group = order[at] // size
            step, point = scale[:, group], zero_point[:, group]
            own = np.clip(np.rint(left[:, at] / step) + point, *limits)
            codes[:, order[at]] = own
            error = (left[:, at] - step * (own - point)) / factor[at, at]
            left[:, at + 1 : stop] -= np.outer(error, factor[at, at + 1 : stop])
            errors[:, at - start] = error
        left[:, stop:] -= errors @ factor[start:stop, stop:]
    return codes


def moved_codes(
    wei: Array,
    products: Array,
    codes: Array,
    scale: Array,
    zero_point: Array,
    dtype: str,
    sweeps: int = 4,
) -> Array:
    """Return codes of which some moved by a step, so that outputs err less.

    Parameters
    ----------
    wei, products, scale, zero_point, dtype
        Arguments of `fed_back_codes`.
    codes : (OC, IC) ndarray of float64
        Codes to begin with.
    sweeps : int
        Largest number of passes over all inputs.

    Returns
    -------
    (OC, IC) ndarray of float64
    """
    size = wei.shape[1] // scale.shape[1]
    step, point = (np.repeat(each, size, axis=1) for each in (scale, zero_point))
    moved: Array = codes.copy()
    limits = dtypes.qmin(dtype), dtypes.qmax(dtype)
    slope = (step * (moved - point) - wei) @ products
    for _ in range(sweeps):
        is_done = True
        for at in range(wei.shape[1]):
            own, square = step[:, at], products[at, at]
            # The way down; a step further than twice the distance would be further off.
            way = -np.sign(slope[:, at] * own)
            gain = way * own * (2.0 * slope[:, at] + way * own * square)
            after = moved[:, at] + way
            better = (gain < -_WORTH * square * own * own) & (after >= limits[0])
            better &= after <= limits[1]
            if better.any():
                is_done = False
                change = np.where(better, way, 0.0)
                moved[:, at] += change
                slope += (change * own)[:, None] * products[at]
        if is_done:
            break
    return moved


def output_errors(apart: Array, products: Array) -> Array:
    """Return Σ (apart · src)² over samples, of each output channel.

    Parameters
    ----------
    apart : (OC, IC) ndarray of float64
        Errors of the weights.
    products : (IC, IC) ndarray of float64
        src.T @ src over the samples.
    """
    return np.asarray(np.maximum(((apart @ products) * apart).sum(axis=1), 0.0))


def _factor(products: Array, damping: float) -> Array:
    """Return the upper Cholesky factor of the inverse of H."""
    moments = np.diag(products)
    mean = float(moments.mean()) or 1.0
    hessian = products + np.diag(np.where(moments > 0.0, 0.0, mean))
    while True:
        try:
            inverse = np.linalg.inv(hessian + damping * mean * np.eye(len(hessian)))
            return np.asarray(np.linalg.cholesky((inverse + inverse.T) / 2.0).T)
        except np.linalg.LinAlgError:
            damping = max(damping, 2.0**-52) * _MORE
