"""How many outputs of a suite were compared, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.errors import ReferenceKernelError, SaturationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from support.outside.vectors import Case

Array = np.ndarray[Any, Any]


@dataclass
class Tally:
    """Counts over cases.

    Attributes
    ----------
    cases, outputs : int
        Compared.
    wrong : list of str
        Cases with an output that is not the expected one, and in how many.
    refused : int
        Cases without outputs: by default those whose weights this processor does not sum exactly,
        or that only a reference loop takes.
    """

    cases: int = 0
    outputs: int = 0
    wrong: list[str] = field(default_factory=list)
    refused: int = 0

    def __str__(self) -> str:
        refused = f", {self.refused} refused" if self.refused else ""
        return f"{self.cases} cases, {self.outputs} outputs, {len(self.wrong)} wrong{refused}"


PAGE = Path(__file__).parents[3] / "docs/reference/outside_suites.md"
REFUSALS = (SaturationError, ReferenceKernelError)


def compared(
    cases: Iterable[Case],
    answer: Callable[[Case], tuple[Array, Array]],
    refusals: tuple[type[Exception], ...] = REFUSALS,
) -> Tally:
    """Compare our answers with the expected ones: dtype, shape and every output."""
    tally = Tally()
    for case in cases:
        try:
            got, want = answer(case)
        except refusals:
            tally.refused += 1
            continue
        assert (got.shape, got.dtype) == (want.shape, want.dtype), case.name
        tally.cases += 1
        tally.outputs += want.size
        differ = int((got != want).sum())
        if differ:
            tally.wrong.append(f"{case.name}: {differ} of {want.size}")
    return tally


def is_told(suite: str, op: str, cases: int, outputs: int) -> bool:
    """Whether the page has these counts, and nothing wrong, for every call of an operator."""
    lines = PAGE.read_text().splitlines()
    rows = [line for line in lines if line.startswith(f"| {suite} | {op} | ")]
    first = rows[: max(1, len(rows) // 2)] if suite == "TOSA" else rows  # then the whole suite's
    return bool(rows) and all(row.endswith(f" | {cases} | {outputs:,} | 0 |") for row in first)
