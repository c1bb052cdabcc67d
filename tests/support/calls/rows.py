"""Sources that a call quantizes by its own range, stated in NumPy's float32; and rows of their own.

u8   scale = (hi − lo) / 255          zero_point = clamp(rne(−lo / scale), 0, 255)
s8   scale = max(−lo, hi) / 127       zero_point = 0
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyonednn_q.expr.steps import Binary, Leaf
from pyonednn_q.qparams import QParams
from support.calls.call import Call, Meaning
from support.oracle_numbers import INTEGER_RANGES, numpy_dtype

Array = np.ndarray[Any, Any]
F = np.float32


def stated(rows: Array, dtype: str) -> tuple[Array, Array, Array]:
    """Codes, scale and zero point of each row, by the documented formulas."""
    least, greatest = INTEGER_RANGES[dtype]
    lo, hi = np.minimum(rows.min(axis=1), F(0)), np.maximum(rows.max(axis=1), F(0))
    with np.errstate(over="ignore"):
        scale = np.maximum(-lo, hi) / F(127) if dtype == "s8" else (hi - lo) / F(255)
    scale = np.where((lo == 0) & (hi == 0), F(1), np.maximum(scale, np.finfo(F).tiny))
    point = np.zeros(len(rows), F)
    if dtype == "u8":
        point = np.clip(np.rint(-lo / scale), 0, 255)
    codes = np.clip(np.rint(rows / scale[:, None]) + point[:, None], least, greatest)
    return codes.astype(numpy_dtype(dtype)), scale, point.astype(int)


def with_own_range(call: Call, dtype: str) -> Call:
    """The call of a float source with codes and parameters of the whole source."""
    codes, scale, point = stated(call.src.reshape(1, -1), dtype)
    params = QParams(float(scale[0]), int(point[0]), dtype)
    return call.but(src=codes.reshape(call.src.shape), src_q=params, in_parts=True)


@dataclass(frozen=True, eq=False)
class Rows:
    """The call of a float source whose rows each have a range of their own; of a product."""

    call: Call
    dtype: str

    @property
    def options(self) -> Mapping[str, Any]:
        """Those of the call."""
        return self.call.options

    @property
    def columns(self) -> int:
        """How many values a row holds."""
        wei = self.call.wei
        return int(wei.shape[-2] if self.call.kind == "matmul" else wei[0].size)

    def meaning(self) -> Meaning:
        """Return what the call must return: row by row, what a call on that row must."""
        call = self.call
        is_matmul = call.kind == "matmul"
        channels = call.wei.shape[-1 if is_matmul else 0]
        lead = call.src.shape[:-1] if is_matmul else call.src.shape[:1]
        rows = call.src.reshape(math.prod(lead), self.columns)
        if is_matmul and max(call.wei.shape[:-2], default=1) > 1:
            # The rows of a batch meet weights of their own; a source of one meets all of them.
            lead = (*np.broadcast_shapes(lead[:-1], call.wei.shape[:-2]), lead[-1])
            rows = np.broadcast_to(call.src, (*lead, self.columns)).reshape(-1, self.columns)
        if not rows.size:
            nothing = np.empty((*lead, channels), numpy_dtype(call.dtype))
            return Meaning(nothing, nothing, nothing)
        codes, scales, points = stated(rows, self.dtype)
        dims = () if is_matmul else call.src.shape[1:]
        found = []
        for row in range(len(rows)):
            one = call.but(
                wei=self._wei_of_row(row, lead),
                src=codes[row].reshape(1, *(dims or (self.columns,))),
                src_q=QParams(float(scales[row]), int(points[row]), self.dtype),
                operands={n: self._of_row(n, a, row) for n, a in call.operands.items()},
                residual=None if call.residual is None else _row(call.residual, row),
                in_parts=True,
            )
            found.append(one.meaning())
        ends = ([getattr(one, name) for one in found] for name in ("dst", "lo", "hi"))
        return Meaning(*(np.concatenate(parts).reshape(*lead, channels) for parts in ends))

    def _wei_of_row(self, row: int, lead: tuple[int, ...]) -> Array:
        wei = self.call.wei
        if self.call.kind != "matmul":
            return wei
        batch = np.broadcast_to(wei, (*lead[:-1], *wei.shape[-2:]))
        found: Array = batch.reshape(-1, *wei.shape[-2:])[row // lead[-1]]
        return found

    def _of_row(self, name: str, operand: Array, row: int) -> Array:
        read = [step.operand for step in self.call.post if isinstance(step, Binary)]
        leaf = next(leaf for leaf in read if isinstance(leaf, Leaf) and leaf.name == name)
        return _row(operand, row) if leaf.extent == "full" else operand


def _row(array: Array, row: int) -> Array:
    return array.reshape(-1, array.shape[-1])[row : row + 1]
