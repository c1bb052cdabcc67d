"""Trace: what the driver did and what it refused, as a value and as stable text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pyonednn_q.rewrite.ends import Item
from pyonednn_q.rewrite.rule import BITWISE, Exactness, Rule

__all__ = ["Event", "Trace"]


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
        Why the rule refused; empty where it fired.
    note : str
        What the rule reports about its rewrite.
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
        """What did not happen, and why."""
        return tuple(event for event in self.events if not event.fired)

    @property
    def exactness(self) -> Exactness:
        """The weakest promise made; levels of bounded rewrites add up."""
        promises = [event.rule.exactness for event in self.events if event.after is not None]
        rank = max((exactness.rank for exactness in promises), default=BITWISE.rank)
        return Exactness(rank, sum(exactness.levels for exactness in promises))

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
