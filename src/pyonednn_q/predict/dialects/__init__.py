"""Other runtimes' requantisation, as pure functions of accumulators and scales.

`DIALECTS` lists them, `requantizer` makes a dialect's arithmetic for given scales, `requantize`
applies it, `difference_report` says how two results differ.
"""

from __future__ import annotations

from pyonednn_q.predict.dialects.catalogue import DIALECTS, Dialect
from pyonednn_q.predict.dialects.dialect import dialect, requantize, requantizer

__all__ = ["DIALECTS", "Dialect", "dialect", "requantize", "requantizer"]
