"""Layers with weights in groups: drawn problems, and what they mean.

The meaning is written out in NumPy's int64 and float32, and shares no code with the package.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import pyonednn_q as pq
from pyonednn_q.ops.predicted import model_of

F = np.float32
DTYPES = {"s4": (-8, 7), "u4": (0, 15), "s8": (-128, 127), "u8": (0, 255)}
SOURCES = (
    pq.Dynamic("s8", "per_row"),
    pq.Dynamic("u8", "per_row"),
    pq.Dynamic("s8", "per_group"),
    pq.Dynamic("u8", "per_group"),
    pq.Dynamic("u8", "per_tensor"),
    pq.QParams(0.02, 0, "s8"),
    pq.QParams(0.02, 117, "u8"),
)


@dataclass(frozen=True)
class GroupCase:
    """Codes (K, N), what they are worth, and how sources are quantized."""

    wei: Any
    wei_q: pq.QParams
    bias: Any
    src_q: Any

    @property
    def layer(self) -> pq.MatMul:
        return pq.MatMul(self.wei, self.bias, src_q=self.src_q, wei_q=self.wei_q)

    @property
    def turned(self) -> pq.InnerProduct:
        """Return the same as an inner product."""
        wei_q = pq.QParams(
            np.transpose(self.wei_q.scale),
            np.transpose(self.wei_q.zero_point),
            self.wei_q.dtype,
            axis=1,
            block=self.wei_q.block,
        )
        wei = np.ascontiguousarray(self.wei.T)
        return pq.InnerProduct(wei, self.bias, src_q=self.src_q, wei_q=wei_q)

    def source(self, rng: np.random.Generator, rows: int) -> Any:
        return rng.standard_normal((rows, len(self.wei))).astype(F)


def drawn(rng: np.random.Generator, dtype: str, src_q: object) -> GroupCase:
    """Return a random layer: sizes odd and even, with zero points or without, codes at the ends."""
    lo, hi = DTYPES[dtype]
    size = int(rng.choice([1, 2, 3, 5, 8, 12, 16, 31, 32, 64, 128]))
    groups, columns = int(rng.integers(1, 6)), int(rng.choice([1, 7, 16, 63, 64, 65, 130]))
    holder = np.int8 if lo < 0 else np.uint8
    wei = rng.integers(lo, hi + 1, (groups * size, columns))
    if rng.random() < 0.3:
        wei = rng.choice([lo, hi], wei.shape)
    shape = (groups, columns)
    point: Any = rng.integers(lo, hi + 1, shape) if rng.random() < 0.5 else (lo + hi + 1) // 2
    scale = (np.exp2(rng.uniform(-9, -3, shape)) * rng.choice([-1, 1], shape)).astype(F)
    bias = rng.standard_normal(columns).astype(F) if rng.random() < 0.5 else None
    wei_q = pq.QParams(scale, point, dtype, axis=0, block=(size,))
    return GroupCase(wei.astype(holder), wei_q, bias, src_q)


def codes_of(case: GroupCase, x: Any) -> tuple[Any, Any, Any]:
    """Return codes of a source, and scale and zero point of each row, or of each of its groups."""
    rows = len(x)
    size = case.wei_q.block[0]
    src_q = case.src_q
    if isinstance(src_q, pq.QParams):
        scale, point = np.full((rows, 1), src_q.scale, F), np.full((rows, 1), src_q.zero_point)
        return quantized(x, scale, point, src_q.dtype), scale, point
    parts = {"per_row": x[:, None], "per_group": x.reshape(rows, -1, size)}.get(src_q.extent)
    if parts is None:
        parts = np.broadcast_to(x.reshape(1, 1, -1), (rows, 1, x.size))
    lo, hi = np.minimum(parts.min(axis=2), F(0)), np.maximum(parts.max(axis=2), F(0))
    if src_q.dtype == "s8":
        scale, point = np.maximum(-lo, hi) / F(127), np.zeros(lo.shape, int)
    else:
        scale = (hi - lo) / F(255)
        point = np.clip(np.rint(F(0) - lo / scale), 0, 255).astype(int)
    return quantized(x, scale, point, src_q.dtype), scale, point


def quantized(x: Any, scale: Any, point: Any, dtype: str) -> Any:
    each = x.shape[1] // scale.shape[1]
    wide, offset = np.repeat(scale, each, 1), np.repeat(point, each, 1)
    lo, hi = DTYPES[dtype]
    return np.clip(np.rint(x / wide) + offset, lo, hi).astype(int)


def meaning(case: GroupCase, x: Any) -> Any:
    """Return what the layer gives, by the formula of `native.group_product`."""
    codes, scale, point = codes_of(case, x)
    size, (groups, columns) = case.wei_q.block[0], np.shape(case.wei_q.scale)
    wei = case.wei.astype(int)
    zero = np.asarray(case.wei_q.zero_point)
    by_group = isinstance(case.src_q, pq.Dynamic) and case.src_q.extent == "per_group"
    worth = np.asarray(case.wei_q.scale).astype(F)
    total = np.zeros((len(x), columns), F)
    for g in range(groups):
        at = slice(g * size, (g + 1) * size)
        own = g if by_group else 0
        acc = (codes[:, at] - point[:, own : own + 1]) @ (wei[at] - zero[g])
        assert np.abs(acc).max() < 2**31
        term = acc.astype(np.int32).astype(F) * worth[g]
        total = total + (term * scale[:, own : own + 1] if by_group else term)
    total = total if by_group else total * scale
    return total if case.bias is None else total + case.bias


def on_a_level(dtype: str) -> bool:
    """Tell whether a process of another instruction set gives the bits of the model."""
    rng = np.random.default_rng(7)
    for src_q in SOURCES:
        for rows in (1, 5, 33):
            case = drawn(rng, dtype, src_q)
            x = case.source(rng, rows)
            if not np.array_equal(case.layer(x), model_of(case.layer, x.shape).run(x)):
                return False
    return True
