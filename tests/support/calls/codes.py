"""Codes: a call whose exact sums another runtime's requantization finishes, stated in NumPy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyonednn_q.expr.steps import Clip
from pyonednn_q.requantize import requantizer, statement
from support.calls.call import Call, Meaning


@dataclass(frozen=True, eq=False)
class Codes:
    """The call without its last stage, and the name of the dialect that makes its codes."""

    call: Call
    dialect: str

    @property
    def options(self) -> Mapping[str, Any]:
        """Those of the call."""
        return self.call.options

    @property
    def ends(self) -> tuple[float, float]:
        """The codes of a fused clip's ends: in float32, halves away from zero, as TFLite has it."""
        call = self.call
        clips = [step for step in call.post if isinstance(step, Clip)]
        if not clips:
            return -np.inf, np.inf
        assert call.dst_q is not None
        scale, point = np.float32(call.dst_q.scale), int(np.max(call.dst_q.zero_point))
        with np.errstate(over="ignore"):
            lo, hi = (float(np.float32(end.least) / scale) for end in (clips[0].lo, clips[0].hi))
        return _half_away(lo) + point, _half_away(hi) + point

    def meaning(self) -> Meaning:
        """Return the codes that the dialect makes of the exact sums: no other is right."""
        call = self.call
        assert call.src_q is not None
        assert call.wei_q is not None
        assert call.dst_q is not None
        sums = call.accumulators()
        acc = sums.astype(np.int32)
        assert (acc == sums).all(), "sums beyond 32 bits"
        made = requantizer(
            self.dialect,
            src_scale=call.src_q.scale,
            wei_scale=call.wei_q.scale,
            dst_scale=call.dst_q.scale,
            dst_zero_point=call.dst_q.zero_point,
            dst_dtype=call.dst_q.dtype,
            bias=call.bias,
            axis=-1 if call.kind == "matmul" else 1,
        )
        codes = statement.apply(acc, made)
        codes = np.clip(codes.astype(np.float64), *self.ends).astype(codes.dtype)
        return Meaning(codes, codes, codes)


def _half_away(value: float) -> float:
    if not math.isfinite(value):
        return value
    return math.copysign(math.floor(abs(value) + 0.5), value)
