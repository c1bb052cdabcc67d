"""Record: one event of a trace as plain text, fit to be stored, compared and read."""

from __future__ import annotations

from dataclasses import dataclass

from pyonednn_q.rewrite.rule import Event, Trace


@dataclass(frozen=True, slots=True)
class Record:
    """A rule fired or refused, or lowering stopped.

    Attributes
    ----------
    rule, identity, exactness : str
        The rule's name, the identity it rests on, and its label.
    at : int
        Index of the window's first item at that moment.
    before, after : str
        The items; after is empty when the rule refused.
    fired : bool
        Whether the chain changed.
    reason, note : str
        Reason for a refusal; report of the rewrite.
    rate : float
        Upper bound for the fraction of inputs that change, where some may.
    """

    rule: str
    identity: str
    exactness: str
    at: int
    before: str
    after: str = ""
    fired: bool = True
    reason: str = ""
    note: str = ""
    rate: float = 0.0

    @classmethod
    def of(cls, event: Event) -> Record:
        """Return the event as text."""
        rule = event.rule
        return cls(
            rule=rule.name,
            identity=rule.identity,
            exactness=str(rule.exactness),
            at=event.at,
            before=_text(event.before),
            after="" if event.after is None else _text(event.after),
            fired=event.fired,
            reason=event.reason,
            note=event.note,
            rate=event.rate,
        )

    def lines(self) -> tuple[str, ...]:
        """Return the record as text, one fact a line."""
        mark = "fired" if self.fired else "refused"
        lines = [f"{self.rule} [{self.exactness}] {mark} at {self.at}", f"    {self.identity}"]
        lines.append(f"    before: {self.before}")
        if self.fired:
            lines.append(f"    after:  {self.after}")
        lines += [f"    {name + ':':<8}{text}" for name, text in self.remarks()]
        return tuple(lines)

    def remarks(self) -> tuple[tuple[str, str], ...]:
        """Return reason and note by name, as far as there are any."""
        rate = f"; changes at most {self.rate:.3g} of evenly spread inputs" if self.rate else ""
        both = (("reason", self.reason), ("note", self.note and self.note + rate))
        return tuple((name, text) for name, text in both if text)


def records(trace: Trace) -> tuple[Record, ...]:
    """Return the events of a trace as records."""
    return tuple(map(Record.of, trace))


def _text(items: tuple[object, ...]) -> str:
    return " > ".join(map(str, items)) or "nothing"
