"""Convolution and deconvolution as loops over kernel taps, in float64.

Both are linear in src and wei, know nothing about quantization and take plain arrays: src
(N, IC, *spatial), wei (OC, IC, *k) or (G, OC/G, IC/G, *k). Integers stay exact below 2**53.
"""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyonednn_q.primitive.problem import ConvProblem, DeconvProblem
    from support.oracle_tracked import F64


def _grouped(src: F64, wei: F64) -> tuple[F64, F64]:
    """Give both operands an explicit group axis: (N, G, IC/G, *), (G, OC/G, IC/G, *)."""
    if wei.ndim == src.ndim:
        wei = wei[np.newaxis]
    groups = wei.shape[0]
    return src.reshape(src.shape[0], groups, wei.shape[2], *src.shape[2:]), wei


def _mix_channels(src: F64, tap: F64) -> F64:
    """Contract the channels of one tap: (N, G, IC/G, *sp) with (G, OC/G, IC/G)."""
    batch, groups, channels = src.shape[:3]
    flat = src.reshape(batch, groups, channels, math.prod(src.shape[3:]))
    mixed: F64 = np.matmul(tap[np.newaxis], flat)
    return mixed.reshape(batch, groups, tap.shape[1], *src.shape[3:])


def _tap(wei: F64, position: tuple[int, ...]) -> F64:
    """Weights of one kernel position: (G, OC/G, IC/G)."""
    index: tuple[Any, ...] = (..., *position)
    taken: F64 = wei[index]
    return taken


def _taps(kernel: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    return product(*(range(size) for size in kernel))


def convolve(src: F64, wei: F64, problem: ConvProblem) -> F64:
    """dst[n, oc, o] = sum over ic, k of src[n, ic, o * s - lo + k * d] * wei[oc, ic, k]."""
    if 0 in problem.dst.dims or 0 in src.shape:
        return np.zeros(problem.dst.dims)
    src, wei = _grouped(src, wei)
    pads = list(zip(problem.padding_lo, problem.padding_hi, strict=True))
    src = np.pad(src, [(0, 0)] * 3 + [(max(lo, 0), max(hi, 0)) for lo, hi in pads])
    out = problem.dst.dims[2:]
    dst: F64 = np.zeros((src.shape[0], wei.shape[0], wei.shape[1], *out))
    for tap in _taps(wei.shape[3:]):
        window = [slice(None)] * 3
        for axis, position in enumerate(tap):
            start = position * problem.dilation[axis]
            stride = problem.stride[axis]
            window.append(slice(start, start + (out[axis] - 1) * stride + 1, stride))
        dst += _mix_channels(src[tuple(window)], _tap(wei, tap))
    return dst.reshape(problem.dst.dims)


def deconvolve(src: F64, wei: F64, problem: DeconvProblem) -> F64:
    """Scatter form: dst[n, oc, i * s - lo + k * d] += src[n, ic, i] * wei[oc, ic, k]."""
    if 0 in problem.dst.dims or 0 in src.shape:
        return np.zeros(problem.dst.dims)
    src, wei = _grouped(src, wei)
    inner, kernel = src.shape[3:], wei.shape[3:]
    full = [
        (size - 1) * stride + (k - 1) * dilation + 1
        for size, stride, k, dilation in zip(
            inner, problem.stride, kernel, problem.dilation, strict=True
        )
    ]
    # The canvas also covers an output that reaches past the last written position.
    reach = [
        max(size, lo + out)
        for size, lo, out in zip(full, problem.padding_lo, problem.dst.dims[2:], strict=True)
    ]
    canvas: F64 = np.zeros((src.shape[0], wei.shape[0], wei.shape[1], *reach))
    for tap in _taps(kernel):
        window = [slice(None)] * 3
        for axis, position in enumerate(tap):
            start = position * problem.dilation[axis]
            stride = problem.stride[axis]
            window.append(slice(start, start + (inner[axis] - 1) * stride + 1, stride))
        canvas[tuple(window)] += _mix_channels(src, _tap(wei, tap))
    crop = [slice(None)] * 3 + [
        slice(lo, lo + out)
        for lo, out in zip(problem.padding_lo, problem.dst.dims[2:], strict=True)
    ]
    cropped: F64 = canvas[tuple(crop)]
    return cropped.reshape(problem.dst.dims)
