"""Taps: which weights belong to a channel of dst, and which of them meet the source at each place.

    Σ (src_q − z) · wei_q = Σ src_q · wei_q − z · Σ wei_q        over the taps that meet the source

Where every tap meets it everywhere (no padding; a matrix product), the last sum is one number per
output channel. Elsewhere (padded places hold real 0; a deconvolution reaches some places with some
taps) it is a map.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.primitive.convolution import ConvProblem, DeconvProblem
from pyonednn_q.primitive.dense import InnerProductProblem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyonednn_q.primitive.dense_facts import DenseProblem

    Array = NDArray[Any]


def channel_rows(problem: DenseProblem, wei: Array) -> Array:
    """Return weights as (output channels, rest); for matmul, columns are channels."""
    if problem.kind == "matmul":
        return np.moveaxis(wei, -1, 0).reshape(wei.shape[-1], -1)
    return wei.reshape(problem.dst.dims[1], -1)


def from_channel_rows(problem: DenseProblem, rows: Array) -> Array:
    """Return weights in the problem's dims; the inverse of `channel_rows`."""
    dims = problem.wei.dims
    if problem.kind == "matmul":
        return np.ascontiguousarray(np.moveaxis(rows.reshape(dims[-1], *dims[:-1]), 0, -1))
    return rows.reshape(dims)


def meets_everywhere(problem: DenseProblem) -> bool:
    """Tell whether every tap meets the source at every place of dst.

    Examples
    --------
    >>> from pyonednn_q.primitive.problem import ConvProblem
    >>> dims = (1, 8, 9, 9), (8, 8, 3, 3)
    >>> [meets_everywhere(ConvProblem.of(*dims, padding=padding)) for padding in (0, 1)]
    [True, False]
    """
    if isinstance(problem, (ConvProblem, DeconvProblem)):
        return all(bool(meets.all()) for meets in _meetings(problem))
    return isinstance(problem, InnerProductProblem) or max(problem.wei.dims[:-2], default=1) == 1


def wei_sums(problem: DenseProblem, wei: Array) -> Array:
    """Return, in dst's dims, the sum of the weights that meet the source at each place.

    Exact for integers. Dimensions along which it does not change may be 1.

    Examples
    --------
    >>> from pyonednn_q.primitive.problem import ConvProblem
    >>> problem = ConvProblem.of((1, 1, 3), (1, 1, 3), padding=1)
    >>> wei_sums(problem, np.array([[[1, 2, 4]]])).tolist()
    [[[6.0, 7.0, 3.0]]]
    """
    values = wei.astype(np.float64)
    if isinstance(problem, (ConvProblem, DeconvProblem)):
        per_group = problem.ic // problem.groups
        kernel = problem.window.kernel
        sums = values.reshape(problem.oc, per_group, *kernel).sum(axis=1)
        for meets in _meetings(problem):
            # The first kernel dimension goes, its places come last.
            sums = np.tensordot(sums, meets.astype(np.float64), axes=(1, 0))
        return np.asarray(sums[np.newaxis])
    if isinstance(problem, InnerProductProblem):
        return np.asarray(values.reshape(1, problem.oc, -1).sum(axis=2))
    return np.asarray(values.sum(axis=-2, keepdims=True))


def _meetings(problem: ConvProblem | DeconvProblem) -> list[Array]:
    """Return, for every spatial dimension, whether a tap (row) meets the source at a place."""
    window, found = problem.window, []
    is_conv = isinstance(problem, ConvProblem)
    for axis, taps in enumerate(window.kernel):
        length, places = problem.src.dims[2 + axis], problem.dst.dims[2 + axis]
        stride, low = window.stride[axis], window.padding_lo[axis]
        reach = np.arange(taps)[:, np.newaxis] * window.dilation[axis]
        place = np.arange(places)[np.newaxis, :]
        if is_conv:
            at, on_grid = place * stride - low + reach, True
        else:
            at, rest = np.divmod(place + low - reach, stride)
            on_grid = rest == 0
        found.append((at >= 0) & (at < length) & on_grid)
    return found
