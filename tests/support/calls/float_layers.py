"""Layers of float weights, of every kind: dims of source and weights, and the window."""

from __future__ import annotations

from typing import Any

from pyonednn_q.ops.conv import Conv, Deconv
from pyonednn_q.ops.dense import InnerProduct, MatMul

C = 16
OPERATORS: dict[str, type[Any]] = {
    "conv": Conv,
    "deconv": Deconv,
    "inner_product": InnerProduct,
    "matmul": MatMul,
}
SHAPES: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "conv": ((2, 8, 6, 5), (C, 8, 3, 3), {"padding": 1}),
    "conv groups": ((2, 32, 6, 5), (C, 16, 3, 3), {"groups": 2, "stride": 2}),
    "deconv": ((2, 8, 5, 4), (C, 8, 2, 2), {"stride": 2}),
    "inner_product": ((5, 24), (C, 24), {}),
    "inner_product 2-D": ((3, 4, 2, 3), (C, 4, 2, 3), {}),
    "matmul": ((7, 24), (24, C), {}),
    "matmul shared": ((2, 3, 5, 24), (24, C), {}),
    "matmul batched": ((3, 5, 24), (3, 24, C), {}),
    "matmul batched twice": ((2, 3, 5, 24), (2, 3, 24, C), {}),
    "matmul one source": ((1, 5, 24), (3, 24, C), {}),
}
