"""A case as the layer that peers are given: the same arrays that our own primitive has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.bench.data import Sample, channels, quantize
from pyonednn_q.bench.peers.peer_layer import PeerError, PeerLayer, Residual
from pyonednn_q.bench.tail import residual_scale
from pyonednn_q.quantize.group_codes import group_codes

if TYPE_CHECKING:
    from pyonednn_q.bench.case import Case

__all__ = ["layer_of"]

_TAILS = ((), ("relu",), ("sum",), ("sum", "relu"))


def layer_of(peer: str, case: Case, sample: Sample) -> PeerLayer:
    """Return the layer of a case.

    Raises
    ------
    PeerError
        A tail or a type that peers are not asked for.
    """
    words, shape, precision = _words(case), case.shape, case.precision
    if precision.group:
        return _grouped(peer, case, sample)
    if words not in _TAILS:
        raise PeerError(peer, f"is not asked for the tail {case.tail.name}")
    if not precision.is_int8 and precision.name != "f32":
        raise PeerError(peer, "is compared in f32 and INT8 only")
    operands = quantize(case, sample)
    ending = case.tail.ending(channels(shape), precision)
    wei = operands.wei
    if shape.has_groups:
        wei = wei.reshape(-1, *wei.shape[2:])
    residual = None
    if case.tail.reads_dst:
        scale = residual_scale(precision.dst) if precision.is_int8 else 1.0
        residual = Residual(operands.dst, scale, 0)
    return PeerLayer(
        shape.kind,
        operands.src,
        wei,
        None if shape.has_two_sources else sample.bias,
        src_scale=operands.src_scale,
        wei_scale=np.asarray(operands.wei_scale),
        dst=precision.dst,
        dst_scale=ending.dst_scale,
        dst_zero_point=ending.dst_zero_point,
        stride=shape.stride,
        dilation=shape.dilation,
        padding=shape.padding,
        out_padding=shape.out_padding,
        groups=shape.groups,
        relu="relu" in words,
        residual=residual,
        channels_last=case.layout == "channels_last",
        constant_wei=not shape.has_two_sources,
    )


def _grouped(peer: str, case: Case, sample: Sample) -> PeerLayer:
    """Return a product with weights in groups: the codes and scales of ours, as (K, N)."""
    shape, precision = case.shape, case.precision
    if shape.kind not in {"matmul", "ip"} or shape.has_two_sources or case.tail.words:
        raise PeerError(peer, "is asked for plain products with weights in groups")
    if not precision.wei.startswith("s"):
        raise PeerError(peer, "is asked for groups without zero points")
    wei = sample.wei.reshape(sample.wei.shape[-2:]) if shape.kind == "matmul" else None
    if wei is None:
        wei = sample.wei.reshape(shape.wei[0], -1).T
    bits = dtypes.bits(precision.wei)
    codes, wei_q = group_codes(wei, precision.group, bits, axis=-1)
    return PeerLayer(
        "matmul",
        sample.src.reshape(-1, len(codes)),
        codes,
        sample.bias,
        wei_scale=np.asarray(wei_q.scale, np.float32),
        group=precision.group,
        bits=bits,
    )


def _words(case: Case) -> tuple[str, ...]:
    """Return the words of the tail without a last quantization that is the store itself."""
    *before, last = case.tail.words or ("",)
    dst = case.precision.dst
    if case.precision.is_int8 and dtypes.is_integer(dst) and last in {"fq", f"fq_{dst}"}:
        return tuple(before)
    return case.tail.words
