"""requantize: from s32 accumulators to codes, in the arithmetic of each runtime.

`DIALECTS` lists them, `requantizer` makes a dialect's arithmetic for given scales, `requantize`
applies it, `difference_report` says how two results differ.
"""

from __future__ import annotations

from pyonednn_q.requantize.catalogue import DIALECTS, Dialect
from pyonednn_q.requantize.dialect import dialect, requantize, requantizer

__all__ = ["DIALECTS", "Dialect", "dialect", "requantize", "requantizer"]
