"""Rewriting a chain: rules, the driver that applies them, and the trace that justifies the result.

What may not enter: attributes, masks and post-ops (compose), and any rule that is not a decorated
pure function with its identity in the first line of its docstring.
"""

from __future__ import annotations
