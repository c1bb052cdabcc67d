"""inspection: what ran for a call, at which cost, and why nothing better did."""

from __future__ import annotations

from pyonednn_q.inspection.inspection import Inspection
from pyonednn_q.inspection.inspector import inspect

__all__ = [
    "Inspection",
    "inspect",
]
