"""Explanation: how somebody else's codes differ from ours, and which arithmetic gives them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING

from pyonednn_q.argument import check_fields
from pyonednn_q.dtypes import Array
from pyonednn_q.report.told import Told

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMA = 1
_NAMES = 4  # of arithmetics that are written out


@dataclass(frozen=True, slots=True)
class Agreement:
    """Number of outputs that an arithmetic gives exactly.

    Attributes
    ----------
    name : str
        Name of the arithmetic: a dialect of `requantize`, or one of `inspection.arithmetics`.
    words : str
        Formula and roundings, in words.
    equal : int
        Number of outputs that are equal to theirs.
    supposing : str
        Assumption that differs from the operator; empty: none.
    frameworks : tuple of str
        Frameworks that use it for such an operator, as far as `requantize.method` knows.
    """

    name: str
    words: str
    equal: int
    supposing: str = ""
    frameworks: tuple[str, ...] = ()

    def __str__(self) -> str:
        users = f" [{', '.join(self.frameworks)}]" if self.frameworks else ""
        changed = f", if {self.supposing}" if self.supposing else ""
        return f"{self.name}{users}{changed}"


@dataclass(frozen=True, slots=True)
class DifferingOutput:
    """One output that differs.

    Attributes
    ----------
    position : tuple of int
        Index in dst.
    acc : int
        The exact s32 sum of products, without the bias.
    value : float
        The real value over dst's scale, plus dst's zero point: what is rounded to a code.
    ours, theirs : int
        The two codes.
    """

    position: tuple[int, ...]
    acc: int
    value: float
    ours: int
    theirs: int

    def __str__(self) -> str:
        where = f"{self.position}: sum {self.acc}, before rounding {self.value:.9g}"
        return f"{where}, ours {self.ours}, theirs {self.theirs}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Explanation(Told):
    """Result of `explain_difference`. Printable; `to_json` for programs.

    Attributes
    ----------
    outputs, equal : int
        Number of codes that were compared, and of those that are equal.
    lower, higher, further : int
        Number of their codes that are 1 below ours, 1 above, and further away.
    largest : int
        The greatest ``|theirs − ours|``, in codes.
    near_ties, exact_ties : int
        Number of differing outputs whose value is so near to a half that float32 may take it for
        one, and of those that are exactly a half.
    agreements : tuple of Agreement
        Agreement of every arithmetic that is defined for the operator, the best first; then of
        suppositions, where no arithmetic gives all.
    ours : str
        Arithmetic of our codes, in words.
    remarks : tuple of str
        Sentences on where and how the rest differs.
    examples : tuple of DifferingOutput
        The first outputs that differ, in C order.
    acc : ndarray of int32
        The exact sums of products in dst's dims, without the bias; read-only.
    values : ndarray of float64
        Real values over dst's scale, plus its zero point, in dst's dims: these are rounded and
        clamped to codes; read-only.
    """

    outputs: int
    equal: int
    lower: int
    higher: int
    further: int
    largest: int
    near_ties: int
    exact_ties: int
    agreements: tuple[Agreement, ...]
    ours: str
    remarks: tuple[str, ...]
    examples: tuple[DifferingOutput, ...]
    acc: Array
    values: Array

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def differing(self) -> int:
        """Outputs that are not as ours."""
        return self.outputs - self.equal

    @property
    def explained_by(self) -> tuple[Agreement, ...]:
        """Arithmetics that give every output exactly; empty where none does."""
        return tuple(agreement for agreement in self.agreements if agreement.equal == self.outputs)

    @property
    def is_explained(self) -> bool:
        """Whether something gives every output."""
        return bool(self.explained_by)

    def to_json(self) -> str:
        """Return all of it but the arrays as JSON text, with a schema number."""
        names = (each.name for each in fields(self) if each.name not in {"acc", "values"})
        content = {name: getattr(self, name) for name in names}
        for name in ("agreements", "examples"):
            content[name] = [asdict(entry) for entry in content[name]]
        return json.dumps({"schema": SCHEMA, "explained": self.is_explained, **content})

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        ours = f"ours: {self.ours}"
        if not self.differing:
            yield f"{self.outputs} outputs, all as ours ({ours})"
        else:
            apart = f"{self.lower} by -1, {self.higher} by +1, {self.further} further"
            yield f"{self.outputs} outputs: {self.equal} as ours, {self.differing} differ ({apart})"
            yield ours
            near = f"{self.near_ties} of those {self.differing} within float32's reach of a half"
            yield f"ties: {near}, {self.exact_ties} exactly there"
        explained = self.explained_by
        if explained:
            yield f"theirs: {explained[0]}, all {self.outputs}"
            yield f"  {explained[0].words}"
            yield from self._others(explained)
        else:
            yield f"theirs: none of {len(self.agreements)} arithmetics gives them all"
        partial = [agreement for agreement in self.agreements if agreement.equal < self.outputs]
        for agreement in partial[: 1 if explained else 3]:
            yield f"  {agreement.equal} of {self.outputs}: {agreement}"
        yield from (f"note: {remark}" for remark in self.remarks)
        yield from (f"first: {example}" for example in self.examples[:1])

    def _others(self, explained: tuple[Agreement, ...]) -> Iterator[str]:
        first = explained[0]
        others = [a.name for a in explained[1:] if a.supposing == first.supposing]
        texts = {a.supposing: None for a in explained if a.supposing != first.supposing}
        yield from (f"  or if {text}" for text in texts)
        if others:
            more = f" and {len(others) - _NAMES} more" if len(others) > _NAMES else ""
            names = "; ".join(others[:_NAMES])
            yield f"  on these outputs alike: {names}{more}"
