"""Rules on the residual sum.

    x + 0*(dst - z) -> x

Scales and shifts pass a sum by `carry`.
"""

from __future__ import annotations

from pyonednn_q.expr.steps import Sum
from pyonednn_q.rewrite.rule import BITWISE, Outcome, rule

__all__ = ["drop_sum_of_nothing"]


@rule("s*(dst - z) + x = x, if s is 0.", Sum, exactness=BITWISE)
def drop_sum_of_nothing(residual: Sum) -> Outcome:
    return () if residual.scale == 0.0 else None
