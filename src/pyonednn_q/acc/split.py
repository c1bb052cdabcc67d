"""The accumulator asked for as it is, in s32: who can store it, and in how many parts.

    dst = saturate(Σ (src_q − src_zp) · (wei_q − wei_zp) + bias + dst_zp)        whole numbers

Float32 holds whole numbers up to 2^24. Where nothing on the way can be larger, bias and zero points
are the primitive's own. Beyond, it is asked for bare sums of codes, and the rest is added to those
as integers. Bare sums go through float32, too, on most kernels (`STORES_SUMS` names the others), so
they are computed in parts of the input channels: each small enough, their sum exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.expr.vec import Vec
from pyonednn_q.primitive.dense_facts import acc_interval
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.qparams import along

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import ArrayLike

    from pyonednn_q.primitive.dense_facts import DenseProblem
    from pyonednn_q.primitive.isa import Version

CODES = 255  # of 8 bits, as kernels multiply them: an s8 source is one of u8 less 128

# Implementations that store bare s32 sums of u8 sources as they are, by how their names begin: of
# which primitives, and from which version on. Measured with sums up to 2^29, on 3.7 and 3.13,
# without AMX.
STORES_SUMS: tuple[tuple[str, tuple[str, ...], Version], ...] = (
    ("brg_conv_fwd:", ("convolution",), (3, 13, 0)),  # 3.7: not what only some taps reach
    ("brgconv_1x1:", ("convolution",), (3, 7, 0)),
    ("brg_deconv:", ("deconvolution",), (3, 13, 0)),
    ("brg_matmul:", ("inner_product", "matmul"), (3, 7, 0)),
    ("brgemm:", ("inner_product",), (3, 7, 0)),
    ("x64:gemm_s8u8s32:", ("inner_product",), (3, 7, 0)),
)


def stores_sums(problem: DenseProblem, impl: str, version: tuple[int, ...]) -> bool:
    """Tell whether an implementation is known to store bare s32 sums as they are.

    Parameters
    ----------
    problem : ConvProblem, DeconvProblem, InnerProductProblem or MatMulProblem
        Problem to compute.
    impl : str
        oneDNN's name of the implementation.
    version : tuple of int
        Version of oneDNN.
    """
    return problem.src.dtype == "u8" and any(
        impl.startswith(name) and "amx" not in impl and problem.kind in kinds and version >= since
        for name, kinds, since in STORES_SUMS
    )


@dataclass(frozen=True, slots=True)
class Part:
    """Some of the products that an accumulator adds up.

    Attributes
    ----------
    problem : ConvProblem, DeconvProblem, InnerProductProblem or MatMulProblem
        Problem over some input channels, or over all.
    wei : ndarray of int8
        Weights in the problem's dims; 0 for products of another part.
    start, stop : int
        First of these input channels, and the one after the last.
    """

    problem: DenseProblem
    wei: Array
    start: int
    stop: int

    def source(self, src: Array) -> Array:
        """Return the channels of a source that this part takes."""
        if self.problem.src.dims == src.shape:
            return src
        axis = self.problem.channel_axis
        return np.moveaxis(np.moveaxis(src, axis, 0)[self.start : self.stop], 0, axis)


def parts(problem: DenseProblem, wei: Array, most: int, *, narrow: bool = True) -> tuple[Part, ...]:
    """Return parts of which no sum of products of codes reaches `most`, whatever the source.

    Parameters
    ----------
    problem : ConvProblem, DeconvProblem, InnerProductProblem or MatMulProblem
        Problem without bias, with s32 results.
    wei : ndarray of int8
        Weights in the problem's dims.
    most : int
        Above 255 · 128.
    narrow : bool
        Each part is a problem of fewer channels, where there are no groups of them. Otherwise, it
        is the same problem, with weights of 0.

    Examples
    --------
    >>> from pyonednn_q.primitive.problem import MatMulProblem
    >>> wei = np.full((1000, 2), 100, np.int8)
    >>> found = parts(MatMulProblem.of((1, 1000), wei.shape), wei, 2**24)
    >>> [(part.start, part.stop) for part in found]
    [(0, 657), (657, 1000)]
    """
    axis = problem.wei_channel_axis
    channels = np.moveaxis(wei, axis, 0)
    outputs = axis if problem.row_axis is None else channels.ndim - 1
    limit = (most - 1) // CODES
    if int(_loads(np.moveaxis(channels, 0, -1), outputs).max(initial=0)) <= limit:
        return (Part(problem, wei, 0, len(channels)),)
    narrow = narrow and not problem.has_groups
    pieces = []
    for start, stop in _runs((_loads(channel, outputs) for channel in channels), limit):
        blocks = iter((channels[start:stop],))
        if stop - start == 1:
            blocks = _by_taps(channels[start], outputs, limit)
        for block in blocks:
            if narrow:
                taken = block
            else:
                taken = np.zeros_like(channels)
                taken[start:stop] = block
            pieces.append(_part(problem, np.moveaxis(taken, 0, axis), start, stop))
    return tuple(pieces)


def centred(wei: Array, point: ArrayLike, axis: int) -> Array:
    """Return codes less their zero point, in 16 bits.

    Parameters
    ----------
    wei : ndarray of uint8 or int8
        Codes.
    point : array_like of int
        Zero point of the tensor, or one per channel.
    axis : int
        Dimension of the channels.
    """
    points = np.asarray(point, np.int16)
    if points.ndim:
        points = along(points, axis, wei.ndim)
    return np.asarray(wei.astype(np.int16) - points)


def terms(wei: Array, limits: tuple[int, int]) -> tuple[Array, ...]:
    """Return as many arrays of s8 codes within limits as it takes for their sum to be the weights.

    Parameters
    ----------
    wei : ndarray of int16
        Weights less their zero point.
    limits : (int, int)
        Least and greatest code of a term: below 0, and above.

    Examples
    --------
    >>> [term.tolist() for term in terms(np.array([5, 200, -130], np.int16), (-128, 127))]
    [[5, 127, -128], [0, 73, -2]]
    """
    all_terms: list[Array] = []
    rest = wei
    while not all_terms or rest.any():
        term = np.clip(rest, *limits)
        rest = rest - term
        all_terms.append(term.astype(np.int8))
    return tuple(all_terms)


def addend(
    problem: DenseProblem, wei: Array, bias: Array | None, src_point: int = 0
) -> Array | None:
    """Return the addend of the sums of codes: bias, zero point of dst, and that of the source.

    Parameters
    ----------
    problem : ConvProblem, DeconvProblem, InnerProductProblem or MatMulProblem
        Problem that runs.
    wei : ndarray
        Codes of weights, less their zero point, in its dims.
    bias : (channels,) ndarray of integers, or None
        Bias in units of the sums.
    src_point : int
        Zero point of the source.

    Returns
    -------
    ndarray of int64, or None
        Addend in dst's dims, 1 where it does not change; ``None`` where nothing is added.
    """
    total = np.zeros((1,) * problem.dst.ndim, np.int64)
    if bias is not None:
        total = total + along(bias.astype(np.int64), problem.channel_axis, problem.dst.ndim)
    if src_point:
        total = total - src_point * problem.wei_sums(wei).astype(np.int64)
    return total if total.any() else None


def beyond_32_bits(
    problem: DenseProblem, wei: Array, bias: Array | None, src_point: int = 0
) -> tuple[int, ...]:
    """Return the channels in which some source leads a sum, or its sum with the bias, beyond s32.

    Parameters are those of `addend`.
    """
    acc = acc_interval(problem, wei, src_point)
    shift = Vec(0.0 if bias is None else bias.astype(np.float64))
    leaves = np.zeros(problem.oc, bool)
    for lo, hi in ((acc.lo, acc.hi), (acc.lo + shift, acc.hi + shift)):
        leaves |= (lo.values() < -(2**31)) | (hi.values() >= 2**31)
    return tuple(np.flatnonzero(leaves).tolist())


def _loads(wei: Array, outputs: int) -> Array:
    """Return Σ|wei| over all but the leading `outputs` axes."""
    sizes = np.abs(wei.astype(np.int16))
    return np.asarray(sizes.reshape(*wei.shape[:outputs], -1).sum(axis=-1, dtype=np.int64))


def _runs(loads: Iterable[Array], limit: int) -> Iterator[tuple[int, int]]:
    """Give (start, stop) of neighbours that together stay within a limit; at least one each."""
    start = stop = 0
    total: Array = np.zeros(1, np.int64)
    for load in loads:
        if stop > start and int((total + load).max(initial=0)) > limit:
            yield start, stop
            start, total = stop, np.zeros(1, np.int64)
        total, stop = total + load, stop + 1
    yield start, stop


def _by_taps(channel: Array, outputs: int, limit: int) -> Iterator[Array]:
    """Give the weights of one channel in turns, 0 elsewhere: as many taps as stay in the limit."""
    flat = channel.reshape(*channel.shape[:outputs], -1)
    taps = (np.abs(flat[..., tap].astype(np.int64)) for tap in range(flat.shape[-1]))
    for start, stop in _runs(taps, limit):
        only = np.zeros_like(flat)
        only[..., start:stop] = flat[..., start:stop]
        yield only.reshape(1, *channel.shape)


def _part(problem: DenseProblem, wei: Array, start: int, stop: int) -> Part:
    wei = np.ascontiguousarray(wei)
    if wei.shape == problem.wei.dims:
        return Part(problem, wei, start, stop)
    dims = list(problem.src.dims)
    dims[problem.channel_axis] = stop - start
    is_last = problem.src == TensorSpec.channels_last(problem.src.dims, problem.src.dtype)
    lie = TensorSpec.channels_last if is_last else TensorSpec.dense
    spec = TensorSpec(wei.shape, problem.wei.dtype)
    part = replace(problem, src=lie(dims, problem.src.dtype), wei=spec)
    return Part(part, wei, start, stop)
