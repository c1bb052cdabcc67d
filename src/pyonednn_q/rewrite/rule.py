"""Rules, sets of rules in the order in which they are tried, and the trace of what they did.

A rule sees a window of items that matches its pattern and answers one of three things: ``None``
(not my shape), a `Refusal` (my shape, unsound or dearer here; traced), or the replacement: a tuple
of items, or a `Rewrite` where there is something to report about it.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from pyonednn_q.errors import ArgumentError
from pyonednn_q.rewrite.ends import Item
from pyonednn_q.shown import shown

Policy: TypeAlias = Literal["bitwise", "real", "fast"]
_POLICIES: dict[str, int] = {"bitwise": 0, "real": 1, "fast": 2}


@dataclass(frozen=True, slots=True, order=True)
class Exactness:
    """Promise of a rewrite. Ordered: the weakest promise made is the maximum.

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
        Items that replace the window.
    note : str
        Loss or assumption, with its size: "shift 3e-05 dropped".
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
        Identity, with its side condition.
    pattern : tuple of tuple of type
        Types of steps in the window, place by place; each place admits any of its types.
    exactness : Exactness
        Promise of the rewrite: BITWISE, REAL or BOUNDED.
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
        """Reason why the identity holds, for its page: the docstring, absent in ``python -OO``."""
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
        Identity, with its side condition: "relu(x, a) = x, if a is 1."
    *pattern : type or tuple of type
        Types of steps at each place of the window. ``RUN`` may stand between two others; the
        function then receives a tuple of items there.
    exactness : Exactness
        Promise of the rewrite: BITWISE, REAL or BOUNDED.
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


_Kinds: TypeAlias = tuple[type, ...]


# A rule that may match where a table was asked, how many items it takes (0: a run), and the types
# of the item that closes the run. Not a named tuple: the driver unpacks these all the time.
Candidate: TypeAlias = tuple[Rule, int, tuple[type, ...]]


class Candidates(dict[_Kinds, tuple[Candidate, ...]]):
    """Candidates by the types of the next items, as many as `width`; filled as they are met."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        super().__init__()
        self.rules = rules
        self.width = max((len(rule.pattern) for rule in rules), default=1)
        self.openers = tuple({rule.pattern[0] for rule in rules if rule.has_run})

    def __missing__(self, kinds: _Kinds) -> tuple[Candidate, ...]:
        candidates = tuple(
            _candidate(rule) for rule in self.rules if _may_match(rule.pattern, kinds)
        )
        self[kinds] = candidates
        return candidates


class RuleSet:
    """Rules in the order in which they are tried. Names are unique.

    Parameters
    ----------
    rules : iterable of Rule
        Rules; of two that match, the first is applied.
    leading : iterable of Rule
        Rules that have a sweep of their own, before any other rule is tried.
    """

    def __init__(self, rules: Iterable[Rule], leading: Iterable[Rule] = ()) -> None:
        self.rules = tuple(rules)
        self.leading = tuple(leading)
        names = [rule.name for rule in self.rules]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ArgumentError("rules", f"{', '.join(twice)} more than once", "unique names")
        self._tables: dict[Policy, tuple[Candidates, ...]] = {}

    def tables(self, policy: Policy) -> tuple[Candidates, ...]:
        """Return the rules that a policy permits, by what they match: one table per sweep."""
        if policy not in self._tables:
            sweeps = (self.leading, self.rules) if self.leading else (self.rules,)
            self._tables[policy] = tuple(
                Candidates(tuple(rule for rule in rules if permits(policy, rule.exactness)))
                for rules in sweeps
            )
        return self._tables[policy]

    def __add__(self, other: RuleSet) -> RuleSet:
        return RuleSet(self.rules + other.rules, self.leading + other.leading)

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.rules)

    def __len__(self) -> int:
        return len(self.rules)


def _may_match(pattern: Pattern, kinds: _Kinds) -> bool:
    if len(pattern) > len(kinds) or kinds[0] not in pattern[0]:
        return False
    if pattern[1:2] == ((RUN,),):
        # What closes the run may come later, but not before there is something in it.
        return kinds[1] not in pattern[2]
    return all(map(operator.contains, pattern, kinds))


def _candidate(rule: Rule) -> Candidate:
    return (rule, 0, rule.pattern[2]) if rule.has_run else (rule, len(rule.pattern), ())


class Event(NamedTuple):
    """A rule met its shape, and fired (``after`` is set) or refused (``reason`` is set).

    Attributes
    ----------
    rule : Rule
        The rule that was tried.
    at : int
        Index of the window's first item in the sequence of that moment (0 is the accumulator).
    before : tuple of Item
        The items of the window before it.
    after : tuple of Item or None
        The items that replaced them; None where the rule refused.
    reason : str
        Reason why the rule refused; empty where it fired.
    note : str
        Note of the rule about its rewrite.
    rate : float
        Upper bound for the fraction of inputs that change, where some may.
    """

    rule: Rule
    at: int
    before: tuple[Item, ...]
    after: tuple[Item, ...] | None = None
    reason: str = ""
    note: str = ""
    rate: float = 0.0

    @property
    def fired(self) -> bool:
        """Whether the chain changed."""
        return self.after is not None

    def lines(self) -> tuple[str, ...]:
        """Return the event as text: what happened, then before, after, reason or note."""
        mark = "fired" if self.fired else "refused"
        head = f"{self.rule.name} [{self.rule.exactness}] {mark} at {self.at}"
        lines = [head, f"    {self.rule.identity}", f"    before: {_text(self.before)}"]
        if self.after is not None:
            lines.append(f"    after:  {_text(self.after)}")
        if self.reason:
            lines.append(f"    reason: {self.reason}")
        if self.note:
            rate = f"; changes at most {self.rate:.3g} of evenly spread inputs" if self.rate else ""
            lines.append(f"    note:   {self.note}{rate}")
        return tuple(lines)


@dataclass(frozen=True, slots=True)
class Trace:
    """Events in order. Equal refusals are recorded once."""

    events: tuple[Event, ...] = ()

    @property
    def fired(self) -> tuple[Event, ...]:
        """The rewrites."""
        return tuple(event for event in self.events if event.fired)

    @property
    def refused(self) -> tuple[Event, ...]:
        """Description of the refused rewrite, with the reason."""
        return tuple(event for event in self.events if not event.fired)

    @property
    def exactness(self) -> Exactness:
        """The weakest promise made; levels of bounded rewrites add up."""
        weakest, levels = BITWISE, 0
        for event in self.events:
            if event.after is not None:
                promise = event.rule.exactness
                weakest = promise if promise.rank > weakest.rank else weakest
                levels += promise.levels
        return bounded(levels) if levels else weakest

    @property
    def rate(self) -> float:
        """Upper bound for the fraction of evenly spread inputs that any rewrite changed."""
        return min(1.0, sum(event.rate for event in self.events))

    def text(self) -> str:
        """Return the whole trace as stable text: shortest round-trip numbers, nothing else."""
        return "\n".join(line for event in self.events for line in event.lines())

    def __add__(self, other: Trace) -> Trace:
        return Trace(self.events + other.events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self.events)


def _text(items: tuple[Item, ...]) -> str:
    return " > ".join(map(str, items)) or "nothing"
