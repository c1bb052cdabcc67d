"""Corrections that bring quantized layers nearer to float ones: pure functions of statistics.

corrected_bias   bias + mean over samples of (wei − wei_q) · src
equalized        channel c between two layers: r = sqrt(max|w1_c| / max|w2_c|),
                 w1_c / r, b1_c / r, w2_c · r (Nagel et al., 2019); for relu and the like
smoothed         s_c = max|src_c|^α / max|wei_c|^(1−α); src / s, wei · s (Xiao et al., 2023)
folded_batch_norm  wei · γ/sqrt(var + ε), (bias − mean) · γ/sqrt(var + ε) + β
channel_moments  mean and variance of each channel over sample batches, for it
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.argument import each, real, whole
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.qparams import along
from pyonednn_q.quantize.group_codes import finite_values

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike

__all__ = [
    "channel_moments",
    "corrected_bias",
    "equalized",
    "folded_batch_norm",
    "smoothed",
]


def corrected_bias(
    wei: ArrayLike, bias: ArrayLike, quantized: ArrayLike, src_mean: ArrayLike
) -> Array:
    """Return the bias that gives a quantized layer the mean result of the float layer.

    Parameters
    ----------
    wei : (C, ...) array_like
        Real weights.
    bias : (C,) array_like
        Real bias.
    quantized : (C, ...) array_like
        Real values of the codes (`IntegerWeights.dequantize`).
    src_mean : array_like
        Mean of the real source over samples, and over places where a convolution shares weights:
        broadcasts to one channel's weights; (IC, 1, 1) of a convolution.

    Raises
    ------
    ArgumentError, ShapeError
        Naming the argument.

    Examples
    --------
    >>> corrected_bias([[0.30, 0.52]], [1.0], [[0.25, 0.50]], [2.0, 1.0])
    array([1.12])
    """
    codes = finite_values("quantized", quantized)
    real_wei, codes = _same("quantized", finite_values("wei", wei), codes)
    values = finite_values("bias", bias)
    if values.shape != real_wei.shape[:1] or real_wei.ndim < 2:
        raise ShapeError("bias", f"shape {values.shape}", f"{real_wei.shape[:1]}, and wei (C, ...)")
    mean = finite_values("src_mean", src_mean)
    try:
        lost = (real_wei - codes) * mean
    except ValueError:
        wanted = f"what broadcasts to {real_wei.shape[1:]}"
        raise ShapeError("src_mean", f"shape {mean.shape}", wanted) from None
    if lost.shape != real_wei.shape:
        raise ShapeError("src_mean", f"shape {mean.shape}", f"fits {real_wei.shape[1:]}")
    return np.asarray(values + lost.reshape(len(lost), -1).sum(axis=1))


def equalized(first: ArrayLike, bias: ArrayLike, second: ArrayLike) -> tuple[Array, Array, Array]:
    """Return two layers' weights with similar ranges of shared channels, and the first's bias.

    Parameters
    ----------
    first : (C, ...) array_like
        Weights of the first layer, output channels first.
    bias : (C,) array_like
        Bias of the first layer.
    second : (OC, C, ...) array_like
        Weights of the second layer, which reads these channels. Between the two may be homogeneous
        functions: relu, leaky relu, pooling.

    Returns
    -------
    first, bias, second : ndarray of float64
        New weights and bias; a channel that is 0 in one of the layers is unchanged.

    Raises
    ------
    ArgumentError, ShapeError
        Naming the argument.

    Examples
    --------
    >>> first, bias, second = equalized([[4.0], [1.0]], [4.0, 1.0], [[1.0, 1.0]])
    >>> first.ravel(), bias, second.ravel()
    (array([2., 1.]), array([2., 1.]), array([2., 1.]))
    """
    before, after = finite_values("first", first), finite_values("second", second)
    shift = finite_values("bias", bias)
    channels = before.shape[:1]
    if before.ndim < 2 or after.ndim < 2 or after.shape[1:2] != channels or not before.size:
        got = f"shapes {before.shape} and {after.shape}"
        raise ShapeError("second", got, "(C, ...) of the first and (OC, C, ...)")
    if shift.shape != channels or not after.size:
        raise ShapeError("bias", f"shape {shift.shape}", f"{channels}")
    tops = np.abs(before.reshape(len(before), -1)).max(axis=1)
    reads = np.abs(np.moveaxis(after, 1, 0).reshape(len(before), -1)).max(axis=1)
    both = (tops > 0.0) & (reads > 0.0)
    ratio = np.sqrt(np.where(both, tops, 1.0)) / np.sqrt(np.where(both, reads, 1.0))
    return (
        before / along(ratio, 0, before.ndim),
        shift / ratio,
        after * along(ratio, 1, after.ndim),
    )


def smoothed(src_max: ArrayLike, wei: ArrayLike, alpha: float = 0.5) -> tuple[Array, Array]:
    """Return a divisor for each input channel, and the weights multiplied by it (SmoothQuant).

    Parameters
    ----------
    src_max : (IC,) array_like
        Largest magnitude of each input channel, from an `estimator` with that axis.
    wei : (OC, IC, ...) array_like
        Real weights.
    alpha : float
        Exponent of SmoothQuant, 0 to 1: how much of the range moves from source to weights.

    Returns
    -------
    divisor : (IC,) ndarray
        Divisors; 1 for channels in which source or weights are 0.
    wei : ndarray
        Weights times divisors: with ``src / divisor``, the layer computes the same.

    Raises
    ------
    ArgumentError, ShapeError
        Naming the argument.

    Examples
    --------
    >>> smoothed([100.0, 1.0], [[1.0, 1.0]])
    (array([10.,  1.]), array([[10.,  1.]]))
    """
    tops, values = finite_values("src_max", src_max), finite_values("wei", wei)
    share = real("alpha", alpha)
    if not 0.0 <= share <= 1.0:
        raise ArgumentError("alpha", f"{share}", "a number from 0 to 1")
    if values.ndim < 2 or tops.shape != values.shape[1:2] or not values.size:
        raise ShapeError("src_max", f"shape {tops.shape}", f"(IC,) of weights {values.shape}")
    if (tops < 0.0).any():
        raise ArgumentError("src_max", f"{tops.min()}", "magnitudes")
    reads = np.abs(np.moveaxis(values, 1, 0).reshape(len(tops), -1)).max(axis=1)
    both = (tops > 0.0) & (reads > 0.0)
    divisor = np.where(both, tops, 1.0) ** share / np.where(both, reads, 1.0) ** (1.0 - share)
    divisor = np.where(both, divisor, 1.0)
    return divisor, values * along(divisor, 1, values.ndim)


def folded_batch_norm(
    wei: ArrayLike,
    bias: ArrayLike,
    mean: ArrayLike,
    variance: ArrayLike,
    gamma: ArrayLike,
    beta: ArrayLike,
    epsilon: float = 1e-5,
) -> tuple[Array, Array]:
    """Return weights and bias of a layer that includes the batch norm after it.

    Parameters
    ----------
    wei : (C, ...) array_like
        Real weights, output channels first.
    bias, mean, variance, gamma, beta : (C,) array_like
        Bias of the layer; mean, variance, factor and summand of the batch norm; `channel_moments`
        of the layer's results over sample batches, as `mean` and `variance`, adapt the statistics
        to them.
    epsilon : float
        Number that is added to the variance.

    Returns
    -------
    wei, bias : ndarray of float64

    Raises
    ------
    ArgumentError, ShapeError
        Naming the argument.

    Examples
    --------
    >>> folded_batch_norm([[2.0]], [1.0], [3.0], [4.0], [1.0], [0.5], 0.0)
    (array([[1.]]), array([-0.5]))
    """
    values = finite_values("wei", wei)
    if values.ndim < 2:
        raise ShapeError("wei", f"shape {values.shape}", "(C, ...)")
    named = {"bias": bias, "mean": mean, "variance": variance, "gamma": gamma, "beta": beta}
    constants = {name: finite_values(name, value) for name, value in named.items()}
    for name, value in constants.items():
        if value.shape != values.shape[:1]:
            raise ShapeError(name, f"shape {value.shape}", f"{values.shape[:1]}")
    spread = constants["variance"] + real("epsilon", epsilon)
    if not (spread > 0.0).all():
        raise ArgumentError("variance", f"{spread.min()} with epsilon", "numbers above 0")
    factor = constants["gamma"] / np.sqrt(spread)
    shift = (constants["bias"] - constants["mean"]) * factor + constants["beta"]
    return values * along(factor, 0, values.ndim), shift


def channel_moments(
    batches: Iterable[ArrayLike], axis: int = 1, *, samples: int | None = None
) -> tuple[Array, Array]:
    """Return the mean and the variance of each channel, in one pass over sample batches.

    From the results of a layer, these are the statistics of the batch norm after it: passed to
    `folded_batch_norm`, they adapt it to quantized weights or to other data.

    Parameters
    ----------
    batches : iterable of array_like
        Finite real values, samples along dimension 0; read once, and joined by Chan's formula.
    axis : int
        Dimension of the channels.
    samples : int, optional
        Number of samples after which reading stops, at least 1.

    Returns
    -------
    mean, variance : (C,) ndarray of float64
        The variance divides by the number of values, as batch norms normalise in training.

    Raises
    ------
    ArgumentError, ShapeError
        Naming the argument: no batches, values that are not finite, other channels than before.

    Examples
    --------
    >>> channel_moments([[[1.0, 10.0], [3.0, 10.0]], [[5.0, 10.0]]])
    (array([ 3., 10.]), array([2.66666667, 0.        ]))
    """
    axis = whole("axis", axis)
    most = None if samples is None else whole("samples", samples, lo=1)
    seen = count = 0
    mean, squares = np.zeros(0), np.zeros(0)
    for batch in each("batches", batches):
        values = finite_values("batches", batch)
        if not values.size or not -values.ndim <= axis < values.ndim:
            raise ShapeError("batches", f"shape {values.shape}", f"values along a dimension {axis}")
        rows = np.moveaxis(values, axis, -1).reshape(-1, values.shape[axis])
        if count and rows.shape[1] != mean.size:
            raise ShapeError("batches", f"{rows.shape[1]} channels", f"{mean.size}, as before")
        if not count:
            mean, squares = np.zeros(rows.shape[1]), np.zeros(rows.shape[1])
        both = count + len(rows)
        with np.errstate(over="ignore", invalid="ignore"):
            here = rows.mean(axis=0)
            apart = here - mean
            squares += np.square(rows - here).sum(axis=0) + np.square(apart) * (
                count * len(rows) / both
            )
            mean += apart * (len(rows) / both)
        if not (np.isfinite(mean).all() and np.isfinite(squares).all()):
            raise ArgumentError(
                "batches",
                f"values up to {np.abs(rows).max():g}",
                "numbers whose squares are finite",
            )
        count, seen = both, seen + len(values)
        if most is not None and seen >= most:
            break
    if not count:
        raise ArgumentError("batches", "none", "at least one")
    return mean, squares / count


def _same(name: str, first: Array, second: Array) -> tuple[Array, Array]:
    if first.shape != second.shape:
        raise ShapeError(name, f"shape {second.shape}", f"{first.shape}")
    return first, second
