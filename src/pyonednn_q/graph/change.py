"""Change: what a pass made of some nodes of a graph, for the trace that the graph carries."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

__all__ = ["Change", "traced"]


class Change(NamedTuple):
    """Nodes that a pass changed, and its reason.

    Attributes
    ----------
    by : str
        Name of the pass.
    originals : tuple of str
        Names of the model's nodes.
    before, after : tuple of str
        Operators that stood for them; none after where the results are constants now, or another
        tensor's.
    why : str
        Promise of the pass.
    """

    by: str
    originals: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    why: str

    def __str__(self) -> str:
        names = ", ".join(self.originals)
        became = ", ".join(self.after) or "nothing that runs"
        return f"{names}: {', '.join(self.before)} -> {became}"


def traced(changes: Iterable[Change]) -> list[str]:
    """Return lines of text: each pass with its promise, and below it what the pass changed."""
    lines = []
    for (by, why), group in groupby(changes, key=lambda each: (each.by, each.why)):
        lines.append(f"{by}: {why}")
        lines += [f"  {each}" for each in group]
    return lines
