"""One fault of oneDNN, and whether it strikes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyonednn_q.compose.attr import Attr
    from pyonednn_q.compose.facts import Facts, Version
    from pyonednn_q.compose.problem import Problem


@dataclass(frozen=True, slots=True)
class Guard:
    """One fault.

    Parameters
    ----------
    id : str
        Its name, stable.
    since, until : (int, int, int) or None
        First version with it and first version without; None: still there.
    isas : callable
        Takes the effective instruction set.
    kinds : tuple of str
        Kinds of problems.
    impl : str or None
        Regular expression searched in the implementation's name. None: all, reference loops too.
    condition : callable
        Takes problem and attributes; exact where the fault is understood, otherwise wider.
    effect : str
        What goes wrong.
    remedy : str
        What to do instead.
    source : str
        Where this is known from.
    """

    id: str
    since: Version
    until: Version | None
    isas: Callable[[str], bool]
    kinds: tuple[str, ...]
    impl: str | None
    condition: Callable[[Problem, Attr], bool]
    effect: str
    remedy: str
    source: str

    def matches(self, problem: Problem, attr: Attr, facts: Facts | None, impl: str) -> bool:
        """Tell whether implementation `impl` has this fault on the problem, in that process.

        In some process, if `facts` is ``None``.
        """
        return (
            (facts is None or self._is_in(facts))
            and problem.kind in self.kinds
            and (not impl or self.impl is None or re.search(self.impl, impl) is not None)
            and self.condition(problem, attr)
        )

    def _is_in(self, facts: Facts) -> bool:
        is_before = self.until is None or facts.version < self.until
        return self.since <= facts.version and is_before and self.isas(facts.isa)
