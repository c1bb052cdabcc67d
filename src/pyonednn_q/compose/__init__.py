"""compose: from a chain of steps to a plan: scales, zero points, bias, post-ops, steps left over.

Pure: a plan is a frozen value, decided from the chain, the problem and what is known of a process.
"""

from __future__ import annotations

from pyonednn_q.compose.composer import compose_chain
from pyonednn_q.compose.layer import Layer
from pyonednn_q.compose.layer_composer import compose_layer
from pyonednn_q.compose.plan import Plan

__all__ = [
    "Layer",
    "Plan",
    "compose_chain",
    "compose_layer",
]
