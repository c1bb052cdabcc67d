"""Tunings: what was chosen in this process, to be written to a file and read again.

A choice holds for one CPU, instruction set, library, runtime and number of threads, and for one
problem with its attributes; a file may hold those of many.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from pyonednn_q.argument import content
from pyonednn_q.argument import path as as_path
from pyonednn_q.cpu import cpu_name
from pyonednn_q.errors import ArgumentError, Error
from pyonednn_q.native import runtime
from pyonednn_q.native.runtime import Lock
from pyonednn_q.ops.gain import Tuning
from pyonednn_q.ops.tuning import rounds_alike, tune, way
from pyonednn_q.reading import converted, decoded

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from pyonednn_q.ops.form import Form
    from pyonednn_q.ops.planned import Planned
    from pyonednn_q.ops.tuning import Make

_KNOWN: dict[Key, Tuning] = {}
_LOCK = Lock()


@dataclass(frozen=True, slots=True)
class Key:
    """Key of a tuning: the machine, the library and the problem for which it holds."""

    cpu: str
    isa: str
    library: str
    runtime: str
    threads: int
    problem: str
    attributes: str
    after: str
    layout: str

    @classmethod
    def of(cls, usual: Planned, layout: str) -> Key:
        """Return the key of a plan, as it would run untuned."""
        return cls(
            **_here(),
            threads=runtime.get_num_threads(),
            problem=usual.primitive.problem.text(),
            attributes=usual.primitive.attr.text(),
            after="; ".join(usual.after),
            layout=layout,
        )


@dataclass(frozen=True, slots=True)
class _Entry:
    key: Key
    tuning: Tuning


@dataclass(frozen=True, slots=True)
class _Written:
    schema: Literal[2]
    tunings: tuple[_Entry, ...]


def tuned(usual: Planned, make: Make, forms: Sequence[Form], layout: str) -> Planned:
    """Return the way to take: a known one, or the result of `tune`, which is then known."""
    if usual.primitive.kind == "none":  # nothing runs
        return usual
    key = Key.of(usual, layout)
    with _LOCK.held:
        known = _KNOWN.get(key)
    taken = usual if known is None else _again(known, usual, make, forms)
    if known is None or taken is None:
        taken, known = tune(usual, make, forms, layout)
        with _LOCK.held:
            _KNOWN[key] = known
    taken.tuning = known
    return taken


def save_tuning(path: str | os.PathLike[str]) -> int:
    """Write the choices of this process, and those that were loaded; return their number.

    Parameters
    ----------
    path : path
        Path of a JSON file, which is replaced.

    Raises
    ------
    ArgumentError, OSError
        `path` is no path, or cannot be written.
    """
    with _LOCK.held:
        known = list(_KNOWN.items())
    written = _Written(2, tuple(_Entry(*each) for each in known))
    as_path("path", path).write_text(json.dumps(asdict(written), indent=1) + "\n", "utf-8")
    return len(known)


def load_tuning(path: str | os.PathLike[str]) -> int:
    """Read choices that `save_tuning` wrote; return how many of them hold on this CPU and library.

    Operators with ``tune=True`` then take them without timing anything.

    Parameters
    ----------
    path : path
        Path of the file.

    Raises
    ------
    ArgumentError
        Not such a file.
    """
    file = as_path("path", path)
    try:
        rows = converted("", decoded("", content("", file)), _Written).tunings
    except ArgumentError as error:
        got = f"{file}: {error.argument}: {error.got} instead of {error.wanted}"
        raise ArgumentError("path", got, "a file that save_tuning wrote") from error
    read = {row.key: replace(row.tuning, timings=()) for row in rows}
    with _LOCK.held:
        _KNOWN.update(read)
    here = _here()
    return sum({name: getattr(key, name) for name in here} == here for key in read)


def clear_tuning() -> None:
    """Forget what was chosen and loaded; operators keep what they have."""
    with _LOCK.held:
        _KNOWN.clear()


def _here() -> dict[str, Any]:
    return {
        "cpu": cpu_name(),
        "isa": runtime.isa().text(),
        "library": ".".join(map(str, runtime.version())),
        "runtime": runtime.threading_runtime(),
    }


def _again(known: Tuning, usual: Planned, make: Make, forms: Sequence[Form]) -> Planned | None:
    """Return the way that was chosen before, or ``None`` where it may not be taken any more."""
    if known.way == way(usual):
        return usual
    name, _, implementation = known.way.partition(" on ")
    form = next((form for form in forms if form.name == name), None)
    if form is None:
        return None
    try:
        planned = make(form, implementation)
    except Error:
        return None
    return planned if rounds_alike(planned, usual) else None
