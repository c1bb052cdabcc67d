"""Explaining: a description of a layer in, its plan out, as text, JSON or HTML, with the reasons.

What may not enter: the extension, and any decision about a plan. This room reads what a user wrote,
asks `compose`, and shows what came back.
"""

from __future__ import annotations

from pyonednn_q.explain.description import Description, read

__all__ = ["Description", "read"]
