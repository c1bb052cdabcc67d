"""Codes: a call whose exact sums another runtime's requantization finishes, stated in NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

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
        return Meaning(codes, codes, codes)
