"""normalise: bring a chain into its normal form, with the trace that proves it."""

from __future__ import annotations

from dataclasses import dataclass

from pyonednn_q.expr.chain import Chain
from pyonednn_q.expr.steps import Step
from pyonednn_q.rewrite.catalogue import CATALOGUE
from pyonednn_q.rewrite.driver import rewrite
from pyonednn_q.rewrite.ends import Acc, Dst
from pyonednn_q.rewrite.rule import Policy
from pyonednn_q.rewrite.ruleset import RuleSet
from pyonednn_q.rewrite.trace import Trace

__all__ = ["Normal", "normalise"]


@dataclass(frozen=True, slots=True)
class Normal:
    """A rewritten chain between its ends, and how it came about."""

    acc: Acc
    chain: Chain
    dst: Dst
    trace: Trace


def normalise(
    chain: Chain,
    *,
    acc: Acc | None = None,
    dst: Dst | None = None,
    policy: Policy = "real",
    rules: RuleSet = CATALOGUE,
) -> Normal:
    """Rewrite a chain until no rule fires.

    Parameters
    ----------
    chain : Chain
        What is to be computed from the accumulator.
    acc, dst : Acc and Dst, optional
        What is known of, and can be absorbed by, the ends. By default nothing.
    policy : {"bitwise", "real", "fast"}
        Which rewrites may fire. "bitwise": those that promise BITWISE. "real": those of REAL too.
        "fast": those of BOUNDED too.
    rules : RuleSet
        Rules, in the order in which they are tried.

    Examples
    --------
    >>> from pyonednn_q.expr.steps import Affine, Clip, Round
    >>> quantize = Chain(Clip(0, 2.5), Affine(4), Round(), Clip(0, 255))
    >>> print(normalise(quantize, dst=Dst("u8")).chain)
    4*x > min(x, 10)
    """
    items, trace = rewrite((acc or Acc(), *chain.steps, dst or Dst()), rules, policy)
    left, right = items[0], items[-1]
    steps = tuple(item for item in items if isinstance(item, Step))
    if not (isinstance(left, Acc) and isinstance(right, Dst) and len(steps) == len(items) - 2):
        msg = "a rule moved an end of the chain"
        raise AssertionError(msg)
    return Normal(left, Chain(*steps), right, trace)
