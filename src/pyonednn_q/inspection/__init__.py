"""inspection: what ran for a call, at which cost, and why nothing better did.

`inspect` looks at a primitive; `explain_difference` at codes that somebody else made of the same
weights and source.
"""

from __future__ import annotations

from pyonednn_q.inspection.explainer import explain_difference
from pyonednn_q.inspection.explanation import Explanation
from pyonednn_q.inspection.group_difference import GroupDifference
from pyonednn_q.inspection.inspection import Inspection
from pyonednn_q.inspection.inspector import inspect

__all__ = [
    "Explanation",
    "GroupDifference",
    "Inspection",
    "explain_difference",
    "inspect",
]
