"""compose: from a chain of steps to a plan: scales, zero points, bias, post-ops, steps left over.

Pure: a plan is a frozen value, decided from the chain, the problem and what is known of a process.
"""

from __future__ import annotations
