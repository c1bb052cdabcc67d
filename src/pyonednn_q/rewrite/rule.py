"""Rule: a named pure function on neighbouring items, with the promise it makes.

A rule sees a window of items that matches its pattern and answers one of three things: ``None``
(not my shape), a `Refusal` (my shape, unsound or dearer here; traced), or the replacement: a tuple
of items, or a `Rewrite` where there is something to report about it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pyonednn_q.errors import ArgumentError
from pyonednn_q.rewrite.ends import Item
from pyonednn_q.shown import shown

__all__ = [
    "BITWISE",
    "REAL",
    "RUN",
    "Exactness",
    "Outcome",
    "Pattern",
    "Policy",
    "Refusal",
    "Rewrite",
    "Rule",
    "bounded",
    "permits",
    "rule",
]

Policy: TypeAlias = Literal["bitwise", "real", "fast"]
_POLICIES: dict[str, int] = {"bitwise": 0, "real": 1, "fast": 2}


@dataclass(frozen=True, slots=True, order=True)
class Exactness:
    """What a rewrite promises. Ordered: the weakest promise made is the maximum.

    ========== =====================================================================
    BITWISE    equal float32 value for every finite input (zeros of both signs count as equal)
    REAL       equal in real arithmetic, including which way ties go; float32 may differ in the
               last bit. Constants are folded in float64: its rounding is not counted
    BOUNDED(n) at most n levels of the next rounding, for the stated cause and at the stated rate
    ========== =====================================================================
    """

    rank: int
    levels: int = 0

    def __post_init__(self) -> None:
        if self.rank not in (0, 1, 2):
            raise ArgumentError("rank", shown(self.rank), "0, 1 or 2")
        if self.levels < 0:
            raise ArgumentError("levels", shown(self.levels), "0 or more")

    def __str__(self) -> str:
        return ("BITWISE", "REAL", f"BOUNDED({self.levels})")[self.rank]


BITWISE = Exactness(0)
REAL = Exactness(1)


def bounded(levels: int) -> Exactness:
    """Promise a difference of at most this many levels."""
    return Exactness(2, levels)


def permits(policy: Policy, exactness: Exactness) -> bool:
    """Tell whether a policy lets rules with this promise fire."""
    if policy not in _POLICIES:
        raise ArgumentError("policy", shown(policy), "one of " + ", ".join(_POLICIES))
    return exactness.rank <= _POLICIES[policy]


@dataclass(frozen=True, slots=True)
class Refusal:
    """My shape, but not here: a reason that its reader can act on."""

    reason: str


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A replacement with something to report.

    Attributes
    ----------
    items : tuple of Item
        What takes the place of the window.
    note : str
        What was lost or assumed, with its size: "shift 3e-05 dropped".
    rate : float
        Upper bound for the fraction of evenly spread inputs that change, where some may.
    """

    items: tuple[Item, ...]
    note: str = ""
    rate: float = 0.0


Outcome: TypeAlias = tuple[Item, ...] | Rewrite | Refusal | None


class RUN:
    """Pattern element: one item or more, up to the next match of the element that follows."""


Pattern: TypeAlias = tuple[tuple[type, ...], ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rewrite rule. Call it like the function it was made from.

    Attributes
    ----------
    name : str
        Verb phrase that states the effect.
    identity : str
        What holds, with its side condition.
    pattern : tuple of tuple of type
        What the window holds, place by place; each place admits any of its types.
    exactness : Exactness
        What the rewrite promises: BITWISE, REAL or BOUNDED.
    ranged : bool
        Whether the function takes, before the window, the `Interval` of the value that enters it.
    """

    name: str
    identity: str
    pattern: Pattern
    exactness: Exactness
    function: Callable[..., Outcome]
    ranged: bool = False

    @property
    def has_run(self) -> bool:
        """Whether the window has no fixed length."""
        return len(self.pattern) == 3 and self.pattern[1] == (RUN,)

    @property
    def argument(self) -> str:
        """Why the identity holds, for its page: the docstring, which ``python -OO`` leaves out."""
        return inspect.cleandoc(self.function.__doc__ or "")

    def __call__(self, *window: Any) -> Outcome:  # noqa: ANN401 - as the rule's own signature
        """Apply the function to a window, whether or not it matches the pattern."""
        return self.function(*window)


def rule(
    identity: str,
    *pattern: type | tuple[type, ...],
    exactness: Exactness,
    ranged: bool = False,
) -> Callable[[Callable[..., Outcome]], Rule]:
    """Make a rule of a function, whose docstring argues why the identity holds.

    Parameters
    ----------
    identity : str
        What holds, with its side condition: "relu(x, a) = x, if a is 1."
    *pattern : type or tuple of type
        What each place of the window may hold. ``RUN`` may stand between two others; the function
        then receives a tuple of items there.
    exactness : Exactness
        What the rewrite promises: BITWISE, REAL or BOUNDED.
    ranged : bool
        Ask for the interval of the value that enters the window.
    """
    if not isinstance(identity, str):
        raise ArgumentError("identity", type(identity).__name__, "str")
    places = tuple(place if isinstance(place, tuple) else (place,) for place in pattern)
    runs = [index for index, place in enumerate(places) if RUN in place]
    if not places or (runs and (runs != [1] or len(places) != 3 or places[1] != (RUN,))):
        raise ArgumentError("pattern", str(places), "types, or (type, RUN, type)")

    def decorate(function: Callable[..., Outcome]) -> Rule:
        return Rule(function.__name__, identity, places, exactness, function, ranged)

    return decorate
