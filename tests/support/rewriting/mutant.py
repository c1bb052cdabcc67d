"""Mutant: a rule with one piece of its source changed, to see whether its property notices."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType

from pyonednn_q.rewrite.rule import Rule

ROOM = "pyonednn_q.rewrite.rules."


@dataclass(frozen=True)
class Mutant:
    """One wrong variant.

    Attributes
    ----------
    rule : str
        The rule whose property must fail.
    old, new : str
        What is replaced by what; old occurs exactly once in the rule, or else in the file.
    module : str
        The file of ``rules/`` it is in; by default the rule's own.
    """

    rule: str
    old: str
    new: str
    module: str = ""

    def __str__(self) -> str:
        return f"{self.rule}: {self.old!r} -> {self.new!r}"

    def build(self, home: str) -> Rule:
        """Return the rule of the module ``home``, made from the changed source."""
        with self.standing_in(home) as changed:
            module = changed if changed.__name__ == home else _executed(home, _source(home))
            rule = getattr(module, self.rule)
        assert isinstance(rule, Rule)
        return rule

    @contextmanager
    def standing_in(self, home: str = "") -> Iterator[ModuleType]:
        """Put the changed module in the place of the real one while others import it."""
        name = ROOM + self.module if self.module else home
        source = _source(name)
        before, rule, after = _around(source, self.rule)
        if rule.count(self.old) != 1:
            before, rule, after = "", source, ""
        if rule.count(self.old) != 1:
            msg = f"{self.old!r} occurs {rule.count(self.old)} times in {name}"
            raise LookupError(msg)
        changed = before + rule.replace(self.old, self.new) + after
        real = sys.modules[name]
        module = ModuleType(name)
        sys.modules[name] = module  # dataclasses look their module up while it is executed
        try:
            exec(compile(changed, name, "exec"), module.__dict__)
            yield module
        finally:
            sys.modules[name] = real


def _around(source: str, rule: str) -> tuple[str, str, str]:
    """Return what stands before the function of a rule, the function, and what stands behind it."""
    before, start, rest = source.partition(f"\ndef {rule}(")
    body, end, after = rest.partition("\n\n\n")
    return before, start + body, end + after


def _source(name: str) -> str:
    return Path(str(import_module(name).__file__)).read_text()


def _executed(name: str, source: str) -> ModuleType:
    module = ModuleType(name)
    exec(compile(source, name, "exec"), module.__dict__)
    return module
