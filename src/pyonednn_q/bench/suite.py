"""Suites: lists of named problems, as TOML.

    title = "ResNet-50 v1.5"
    source = "where the sizes come from"
    gmacs = 4.09                        # of the whole network, if it is published

    lines = [
        { name = "conv1", problem = "conv 1x3x224x224 64x3x7x7 stride=2 padding=3" },
        { name = "conv2.3x3", problem = "conv 1x64x56x56 64x64x3x3 padding=1", times = 3 },
    ]

`times` is how often the network has the layer; 1 when left out.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from pyonednn_q.argument import content, instance, items, real, whole
from pyonednn_q.bench import benchdnn
from pyonednn_q.bench.shape import KINDS, Shape
from pyonednn_q.errors import ArgumentError, Error
from pyonednn_q.shown import shown

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["Line", "Suite", "find", "names"]

_FOLDER = resources.files("pyonednn_q.bench") / "suites"
_LINE = {"name", "problem", "times"}
_SUITE = {"title", "source", "gmacs", "lines"}


@dataclass(frozen=True, slots=True)
class Line:
    """A named problem.

    Attributes
    ----------
    suite, name : str
        Both empty for a problem that was typed in.
    shape : Shape
        What to compute.
    times : int
        How often the network has it.
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
        What it is, and where its sizes come from.
    gmacs : float or None
        Published multiplications of the network, in 10⁹.
    lines : tuple of Line
        In the order of the network.
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
        None of these, or something wrong in it.
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
            "suite", shown(word), f"{suites}; a .toml file; or a problem, in quotes"
        )
    return parse(word, (_FOLDER / f"{word}.toml").read_text(encoding="utf-8"))


def parse(name: str, text: str) -> Suite:
    """Return the suite that TOML text describes.

    Raises
    ------
    ArgumentError, ShapeError
        Naming the suite and the line.
    """
    instance("name", name, str)
    instance(name, text, str)
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ArgumentError(name, str(error), "TOML") from None
    _check_keys(name, tables, _SUITE, {"title", "source", "lines"})
    for key in ("title", "source"):
        instance(f"{name}, {key}", tables[key], str)
    if tables.get("gmacs") is not None:
        real(f"{name}, gmacs", tables["gmacs"])
    lines = tuple(_line(name, entry) for entry in items(f"{name}, lines", tables["lines"], dict))
    line_names = [line.name for line in lines]
    twice = [word for word in line_names if line_names.count(word) > 1]
    if twice or not lines:
        got = f"{twice[0]!r} twice" if twice else "no line"
        raise ArgumentError(name, got, "lines, each of another name")
    return Suite(name, tables["title"], tables["source"], tables.get("gmacs"), lines)


def _line(suite: str, entry: dict[str, Any]) -> Line:
    line = entry.get("name", "?")
    where = f"{suite}, line {line if isinstance(line, str) else shown(line)}"
    _check_keys(where, entry, _LINE, {"name", "problem"})
    try:
        instance("name", entry["name"], str)
        times = whole("times", entry.get("times", 1), lo=1)
        return Line(suite, entry["name"], Shape.parse(entry["problem"]), times)
    except Error as error:
        raise ArgumentError(where, str(error), "a problem that can be computed") from error


def _check_keys(where: str, table: dict[str, Any], allowed: set[str], needed: set[str]) -> None:
    strange, missing = sorted(table.keys() - allowed), sorted(needed - table.keys())
    if strange or missing:
        got = f"unknown {', '.join(strange)}" if strange else f"no {', '.join(missing)}"
        raise ArgumentError(where, got, f"{', '.join(sorted(allowed))}")


def _problem(text: str) -> Shape:
    kind, _, rest = text.partition(" ")
    if rest[:1].isdigit():
        if kind == "matmul" and ":" in rest:
            return benchdnn.parse(kind, rest)
        return Shape.parse(text)
    return benchdnn.parse(kind, rest)
