"""Choice: of the post-ops that can stand for one step, the cheapest that the policy permits.

==============  ==========================  ===============================  ========
step            as a rule                   instead                          promise
==============  ==========================  ===============================  ========
x + t           linear                      binary add of one number         BITWISE
s·x + t, per    mul, add                    add of t/s, mul                  REAL
channel
relu, slope a   relu                        prelu with one slope             BITWISE
==============  ==========================  ===============================  ========

Each was measured to be cheaper on AMX convolutions of integers and equal elsewhere; float ones were
not measured and stay with the rule. Rewriting has decided before what the steps are; this decides
how each is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyonednn_q.argument import real
from pyonednn_q.compose.carrier import Carrier, binary, linear
from pyonednn_q.compose.cost import added
from pyonednn_q.expr.steps import Affine, Step
from pyonednn_q.expr.vec import Vec
from pyonednn_q.primitive.dense_facts import PrimitiveFacts
from pyonednn_q.primitive.post_ops import EltwisePostOp, PostOp, PReluPostOp
from pyonednn_q.rewrite.ends import not_storable
from pyonednn_q.rewrite.rule import BITWISE, REAL, Exactness, Policy, permits

__all__ = ["Choice", "Option", "choose"]

_ONE, _ZERO = Vec(1.0), Vec(0.0)


@dataclass(frozen=True, slots=True)
class Option:
    """Post-ops that may stand for a step.

    Attributes
    ----------
    post_ops : tuple of PostOp
        In order.
    cost : float
        What they add to what stands before them, in parts of the bare primitive.
    exactness : Exactness
        What they promise, against the post-ops that are the rule.
    permitted : bool
        Whether the policy lets them be taken.
    """

    post_ops: tuple[PostOp, ...]
    cost: float
    exactness: Exactness
    permitted: bool

    def __post_init__(self) -> None:
        """Refuse a cost that is no number."""
        real("cost", self.cost)

    def __str__(self) -> str:
        names = ", ".join(" ".join(op.text().split(":")[:1]) for op in self.post_ops)
        refused = "" if self.permitted else f", {self.exactness} is not permitted"
        return f"{names} (+{self.cost:.2f}{refused})"


@dataclass(frozen=True, slots=True)
class Choice:
    """What was taken for a step, and what was not."""

    step: Step
    taken: Option
    rejected: tuple[Option, ...]

    def __str__(self) -> str:
        return f"{self.step}: {self.taken}, not {' or '.join(map(str, self.rejected))}"


def choose(
    step: Step,
    usual: Sequence[Carrier],
    before: Sequence[PostOp],
    facts: PrimitiveFacts,
    policy: Policy,
) -> tuple[Sequence[Carrier], Choice | None]:
    """Return the carriers to take for a step.

    Parameters
    ----------
    step : Step
        What is carried.
    usual : sequence of Carrier
        How it is carried as a rule.
    before : sequence of PostOp
        What stands before.
    facts : PrimitiveFacts
        Of the primitive; what it costs depends on it.
    policy : {"bitwise", "real", "fast"}
        What may be promised.

    Returns
    -------
    carriers : sequence of Carrier
        The usual ones, if none is cheaper.
    choice : Choice or None
        None: there was nothing to choose.
    """
    others = _others(step, usual, facts) if facts.is_int8 else []
    if not others:
        return usual, None
    forms = [(usual, BITWISE), *others]
    options = []
    for carriers, exactness in forms:
        post_ops = tuple(carrier.post_op for carrier in carriers)
        price = added(post_ops, before, facts)
        options.append(Option(post_ops, price, exactness, permits(policy, exactness)))
    best = min(
        (index for index, option in enumerate(options) if option.permitted),
        key=lambda index: options[index].cost,
    )
    rejected = tuple(option for index, option in enumerate(options) if index != best)
    return forms[best][0], Choice(step, options[best], rejected)


_Forms = list[tuple[Sequence[Carrier], Exactness]]


def _others(step: Step, usual: Sequence[Carrier], facts: PrimitiveFacts) -> _Forms:
    forms: _Forms = []
    if isinstance(step, Affine):
        forms += _with_scalar_add(usual, facts, BITWISE)
        first = _adding_first(step, facts)
        if first:
            forms += [(first, REAL), *_with_scalar_add(first, facts, REAL)]
    else:
        forms += _with_prelu(usual)
    return forms


def _with_scalar_add(usual: Sequence[Carrier], facts: PrimitiveFacts, promise: Exactness) -> _Forms:
    """Say x + t as a binary add of one number: both round once."""
    carriers = [_scalar_add(carrier, facts) or carrier for carrier in usual]
    return [] if carriers == list(usual) else [(carriers, promise)]


def _scalar_add(carrier: Carrier, facts: PrimitiveFacts) -> Carrier | None:
    op = carrier.post_op
    if isinstance(op, EltwisePostOp) and op.alg == "linear" and op.alpha == 1.0:
        return binary("add", Vec(op.beta), facts)
    return None


def _adding_first(step: Affine, facts: PrimitiveFacts) -> list[Carrier]:
    """Say s·x + t as s·(x + t/s), where s is not 0: the same post-ops in the other order."""
    scale, shift = step.scale, step.shift
    plain = scale.is_per_tensor and shift.is_per_tensor
    if plain or scale.is_all(1.0) or shift.is_all(0.0) or bool((scale.values() == 0.0).any()):
        return []
    early = shift / scale
    if not early.is_finite or not_storable("shift", early):
        return []
    head = linear(_ONE, early) if early.is_per_tensor else binary("add", early, facts)
    tail = linear(scale, _ZERO) if scale.is_per_tensor else binary("mul", scale, facts)
    return [head, tail]


def _with_prelu(usual: Sequence[Carrier]) -> _Forms:
    """Say relu with a slope as prelu with one slope: the same product below 0."""
    if len(usual) != 1:
        return []
    op = usual[0].post_op
    if not isinstance(op, EltwisePostOp) or op.alg != "relu" or op.alpha == 0.0:
        return []
    return [([Carrier(PReluPostOp(0), Vec(op.alpha))], BITWISE)]
