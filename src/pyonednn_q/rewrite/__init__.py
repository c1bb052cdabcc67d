"""Rewriting a chain: rules, the driver that applies them, and the trace that justifies the result.

What may not enter: attributes, masks and post-ops (compose), and any rule that is not a decorated
pure function behind the identity that it applies.
"""

from __future__ import annotations
