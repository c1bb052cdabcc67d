"""check: what a call must return, in float64, from the public meaning of its arguments alone.

Nothing here knows how a chain is lowered, how weights are packed or what a dialect computes: rooms
that do stand above this one, and hand in what a caller wrote.
"""

from __future__ import annotations
