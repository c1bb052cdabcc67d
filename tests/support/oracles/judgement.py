"""What an oracle says of the rules: how many of its outputs differ from each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pyonednn_q.errors import ArgumentError
from support.oracles.layers import RULES, Layer

Array = np.ndarray[Any, Any]
Expected = Callable[[Layer], Array]


@dataclass
class Judgement:
    """Outputs compared, how many differ from what was expected, and from every plain rule."""

    compared: int = 0
    wrong: int = 0
    from_rule: Counter[str] = field(default_factory=Counter)

    def add(self, layer: Layer, answer: Array, expected: Array) -> None:
        """Count one layer."""
        assert answer.shape == expected.shape
        assert answer.dtype == expected.dtype
        self.compared += answer.size
        self.wrong += int((answer != expected).sum())
        for rule in RULES:
            try:
                self.from_rule[rule] += int((layer.expected(rule) != answer).sum())
            except ArgumentError:  # a multiplier that the rule does not take: nothing to compare
                continue

    def not_told_apart(self, rules: tuple[str, ...]) -> list[str]:
        """Return the rules that the outputs do not speak against, but for those given."""
        return [rule for rule in RULES if rule not in rules and not self.from_rule[rule]]
