"""Suites: lists of problems, as TOML.

    lines = [
        "conv 1x64x56x56 64x64x3x3 padding=1",
        "ip 1x2048 1000x2048",
    ]

is all that a suite needs. What may be said besides:

    title = "ResNet-50 v1.5"            # the name of the file when left out
    source = "where the sizes come from"
    gmacs = 4.09                        # of the whole network, if it is published

    lines = [
        { name = "conv1", problem = "conv 1x3x224x224 64x3x7x7 stride=2 padding=3" },
        { name = "conv2.3x3", problem = "conv 1x64x56x56 64x64x3x3 padding=1", times = 3 },
    ]

`name` is the problem when left out; `times` is how often the network has the layer, 1 when left
out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from pyonednn_q.argument import content, instance
from pyonednn_q.bench import benchdnn
from pyonednn_q.bench.shape import KINDS, Shape
from pyonednn_q.errors import ArgumentError, Error
from pyonednn_q.reading import Rate, Times, converted, decoded
from pyonednn_q.shown import meant, shown

__all__ = ["Line", "Suite", "chosen", "find", "names"]

_FOLDER = resources.files("pyonednn_q.bench") / "suites"


@dataclass(frozen=True, slots=True)
class Line:
    """A named problem.

    Attributes
    ----------
    suite, name : str
        Both empty for a problem that was typed in.
    shape : Shape
        Shape of the problem.
    times : int
        Number of times that the network has it.
    """

    suite: str
    name: str
    shape: Shape
    times: int = 1

    @property
    def label(self) -> str:
        """The name, else the problem."""
        return self.name or self.shape.text()


@dataclass(frozen=True, slots=True)
class Suite:
    """A list of lines.

    Attributes
    ----------
    name, title, source : str
        Name, title, and source of the sizes.
    gmacs : float or None
        Published multiplications of the network, in 10⁹.
    lines : tuple of Line
        Lines in the order of the network.
    """

    name: str
    title: str
    source: str
    gmacs: float | None
    lines: tuple[Line, ...]

    @property
    def macs(self) -> int:
        """Multiplications of the whole network."""
        return sum(line.times * line.shape.macs for line in self.lines)


def names() -> tuple[str, ...]:
    """Return the names of the suites that come with the package."""
    files = (entry.name for entry in _FOLDER.iterdir())
    return tuple(sorted(name[: -len(".toml")] for name in files if name.endswith(".toml")))


def find(word: str) -> Suite:
    """Return the suite of that name, of that file, or of that one problem.

    Parameters
    ----------
    word : str
        A name of `names`, a path that ends in ``.toml``, or a problem: as `Shape.parse` reads it,
        or a kind and benchdnn's descriptor (``conv mb1ic64ih56oc64kh3ph1``).

    Raises
    ------
    ArgumentError, ShapeError
        No suite or problem of that name, or an error in it.
    """
    instance("suite", word, str)
    if word.partition(" ")[0] in KINDS:
        return Suite(word, word, "", None, (Line("", "", _problem(word)),))
    if word.endswith(".toml"):
        path = Path(word)
        if not path.is_file():
            raise ArgumentError("suite", shown(word), "a file that exists")
        return parse(path.stem, content("suite", path))
    if word not in names():
        suites = ", ".join(names())
        raise ArgumentError(
            "suite",
            shown(word),
            f"{suites}; a .toml file; or a problem, in quotes{meant(word, names())}",
        )
    return parse(word, (_FOLDER / f"{word}.toml").read_text(encoding="utf-8"))


def chosen(word: str, wanted: re.Pattern[str] | None = None) -> tuple[Line, ...]:
    """Return the lines that a word names, those whose name or problem has a match.

    Raises
    ------
    ArgumentError, ShapeError
        Errors of `find`; or no line has a match.
    """
    lines = find(word).lines
    if wanted is None:
        return lines
    kept = tuple(line for line in lines if wanted.search(f"{line.name} {line.shape}"))
    if not kept:
        raise ArgumentError("filter", shown(wanted.pattern), f"a part of a line's name in {word}")
    return kept


def parse(name: str, text: str) -> Suite:
    """Return the suite that TOML text describes.

    Raises
    ------
    ArgumentError, ShapeError
        Naming the suite and the line.
    """
    instance("name", name, str)
    name = name or "text"
    form = converted(name, decoded(name, text, "TOML"), _SuiteForm)
    lines = tuple(_line(name, entry) for entry in form.lines)
    line_names = [line.label for line in lines]
    twice = [word for word in line_names if line_names.count(word) > 1]
    if twice:
        wanted = "lines, each of another name, or one with its times"
        raise ArgumentError(name, f"{twice[0]!r} twice", wanted)
    return Suite(name, form.title or name, form.source, form.gmacs, lines)


class _LineForm(Struct, frozen=True, forbid_unknown_fields=True):
    problem: str
    name: str = ""
    times: Times = 1


class _SuiteForm(Struct, frozen=True, forbid_unknown_fields=True):
    lines: Annotated[list[_LineForm | str], Meta(min_length=1)]
    title: str = ""
    source: str = ""
    gmacs: Rate | None = None


def _line(suite: str, entry: _LineForm | str) -> Line:
    form = _LineForm(entry) if isinstance(entry, str) else entry
    try:
        shape = _problem(form.problem)
    except Error as error:
        where = f"{suite}, line {form.name or shown(form.problem)}"
        raise ArgumentError(where, str(error), "a problem that can be computed") from error
    return Line(suite, form.name or shape.text(), shape, form.times)


def _problem(text: str) -> Shape:
    kind, _, rest = text.partition(" ")
    if rest[:1].isdigit():
        if kind == "matmul" and ":" in rest:
            return benchdnn.parse(kind, rest)
        return Shape.parse(text)
    return benchdnn.parse(kind, rest)
