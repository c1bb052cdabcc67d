"""Inspection: what is known of a primitive that was made ready, as a value."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from pyonednn_q.argument import check_fields
from pyonednn_q.report.table import Column, Table
from pyonednn_q.report.told import Told
from pyonednn_q.shown import shortened

SCHEMA = 1
_LINE = 160  # most characters of a line


@dataclass(frozen=True, slots=True)
class Format:
    """Layout of a tensor in memory.

    Attributes
    ----------
    tensor : str
        src, wei, bias, dst, or the run-time name of another argument.
    layout : str
        Data type, dimensions, and strides or bytes.
    tag : str
        Name of the layout in oneDNN's notation: ``acdb`` is channels last; ``AcdB16a4b`` has blocks
        of 16 and 4. Empty where oneDNN's log does not tell it.
    """

    tensor: str
    layout: str
    tag: str = ""

    def __str__(self) -> str:
        return f"{self.layout} ({self.tag})" if self.tag else self.layout


@dataclass(frozen=True, slots=True)
class Reorder:
    """A tensor that is copied into another layout.

    Attributes
    ----------
    tensor : str
        Name: src, wei, bias, dst, or another argument.
    origin, target : str
        Layout that it comes in, and layout that it is copied into.
    nbytes : int
        Size of the tensor in bytes.
    us : float
        Median of a few copies, in microseconds, measured by `inspect`.
    when : str
        Time at which the tensor is copied: once, or in which calls.
    """

    tensor: str
    origin: str
    target: str
    nbytes: int
    us: float
    when: str

    def __str__(self) -> str:
        movement = f"{self.tensor} from {self.origin} to {self.target}, {self.nbytes} bytes"
        return f"{movement}: {self.us:.1f} us {self.when}"


@dataclass(frozen=True, slots=True)
class GuardMet:
    """A row of the guard table that matched, and what was done.

    Attributes
    ----------
    guard : str
        Id of the row in the guard table.
    implementation : str
        The implementation that the row forbids here.
    effect : str
        Fault of the kernel.
    remedy : str
        Remedy, in words.
    """

    guard: str
    implementation: str
    effect: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.guard}: {self.implementation} {self.effect}; {self.remedy}"


@dataclass(frozen=True, slots=True, repr=False)
class Inspection(Told):
    """Result of `inspect`. Printable; `to_json` for programs.

    Attributes
    ----------
    problem : str
        Kind, tensors and parameters.
    implementation, kind : str
        The library's name of what runs; ``"jit"``, ``"gemm"``, ``"reference"`` or ``"unknown"``.
    isa, library, runtime : str
        The effective instruction set, oneDNN's version, and what it spreads work with.
    threads : int
        Number of threads that primitives prepared now use.
    formats : tuple of Format
        Layouts of all arguments.
    reorders : tuple of Reorder
        Copies into other layouts: of weights when they were packed, of arrays that come row-major.
    packed_bytes, scratchpad_bytes : int
        Bytes of the packed weights with what is appended to them, and of temporary memory that one
        call takes.
    macs, ops : int
        Multiplications, and operations (additions too); 0 for a primitive without weights.
    attributes : str
        Scales, zero points and post-ops.
    exactness : str
        Promise of the plan's rewrites; empty for a primitive without a plan.
    benchdnn : str
        The line that runs the same in oneDNN's own harness; empty where that has no words for it.
    verbose : str or None
        The library's own line, logged in a process of its own by the same primitive made again (its
        last number is the milliseconds that took); empty where that came to something else; None
        where it was not asked, with ``inspect(..., verbose=False)``.
    guards : tuple of GuardMet
        Known faults met on the way.
    rejected : tuple of (str, str)
        (implementation, reason) of those asked before the one that runs: by the library, where its
        log was asked, then by this package.
    after : tuple of str
        Primitives that run after it, where it does not carry the whole chain.
    notes : tuple of str
        Further notes for the caller.
    tuning : str
        Ways that were timed, and the result; empty without ``tune=True``.
    tried : tuple of (str, str)
        (way, reason) of those that were tried before it, and why each was not taken.
    """

    problem: str
    implementation: str
    kind: str
    isa: str
    library: str
    runtime: str
    threads: int
    formats: tuple[Format, ...]
    reorders: tuple[Reorder, ...]
    packed_bytes: int
    scratchpad_bytes: int
    macs: int
    ops: int
    attributes: str
    exactness: str
    benchdnn: str
    verbose: str | None
    guards: tuple[GuardMet, ...]
    rejected: tuple[tuple[str, str], ...]
    after: tuple[str, ...]
    notes: tuple[str, ...]
    tuning: str = ""
    tried: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)

    def to_json(self) -> str:
        """Return all of it as JSON text, with a schema number."""
        return json.dumps({"schema": SCHEMA, **asdict(self)})

    def __str__(self) -> str:
        lines = [f"  {name:<15} {text}" for name, text in self._lines()]
        return "\n".join([self.problem, *lines])

    def _parts(self) -> Iterator[str | Table]:
        yield self.problem
        yield Table([Column("part"), Column("value")], self._lines())

    def _lines(self) -> list[tuple[str, str]]:
        plan = [("exactness", self.exactness)] if self.exactness else []
        plan += [("tuning", self.tuning)] if self.tuning else []
        return [
            ("implementation", f"{self.implementation} ({self.kind})"),
            (
                "library",
                f"oneDNN {self.library}, {self.isa}, {self.runtime}, {self.threads} threads",
            ),
            *((form.tensor, str(form)) for form in self.formats),
            *(("reorder", str(copy)) for copy in self.reorders),
            ("packed", f"{self.packed_bytes} bytes"),
            ("scratchpad", f"{self.scratchpad_bytes} bytes a call"),
            ("work", f"{self.macs} multiplications, {self.ops} operations"),
            ("attributes", self.attributes or "none"),
            *plan,
            ("benchdnn", self.benchdnn or "no words for it"),
            (
                "verbose",
                "not asked" if self.verbose is None else self.verbose or "nothing was logged",
            ),
            *(("guard", str(fault)) for fault in self.guards),
            *(("tried", shortened(f"{way}: {why}", _LINE)) for way, why in self.tried),
            *(("rejected", f"{impl}: {why}") for impl, why in self.rejected),
            *(("after it", line) for line in self.after),
            *(("note", note) for note in self.notes),
        ]
