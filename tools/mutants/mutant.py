"""Mutant: a source file with one comparison, operator, constant or negation replaced by another."""

from __future__ import annotations

import ast
import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

__all__ = ["PACKAGE", "ROOT", "Mutant", "places"]

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "pyonednn_q"

_COMPARISONS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
    "is": "is not", "is not": "is", "in": "not in", "not in": "in",
}  # fmt: skip
_OPERATORS = {
    "+": "-", "-": "+", "*": "/", "/": "*", "//": "*", "%": "//", "**": "*", "@": "+",
    "&": "|", "|": "&", "^": "&", "<<": ">>", ">>": "<<", "and": "or", "or": "and",
}  # fmt: skip
_COMPARISON = re.compile(r"is\s+not\b|not\s+in\b|is\b|in\b|[<>=!]=|[<>]")
_OPERATOR = re.compile(r"\*\*|//|<<|>>|[-+*/%@&|^]|and\b|or\b")
_UNREAD = {"annotation", "returns", "type_params"}
_UNSEEN = {"strict", "maxsize"}  # what right code never shows: lengths that agree, kept results


@dataclass(frozen=True)
class Mutant:
    """One change of one file.

    Attributes
    ----------
    path : Path
        The file.
    text : str
        All of it as it is.
    start, stop : int
        Which characters of the text are replaced.
    new : str
        By what.
    spans : tuple of (int, int)
        First and last line of the expression that changes and of all that is around it.
    function : str
        Whether it is executed in a call of a "def" or "lambda", or "": at import.
    """

    path: Path
    text: str = field(repr=False)
    start: int
    stop: int
    new: str
    spans: tuple[tuple[int, int], ...]
    function: str

    @cached_property
    def changed(self) -> str:
        """The whole file after the change."""
        return self.text[: self.start] + self.new + self.text[self.stop :]

    @property
    def line(self) -> int:
        """The number, from 1, of the line that changes."""
        return self.text.count("\n", 0, self.start) + 1

    @property
    def key(self) -> tuple[str, str, str]:
        """What names it whatever its line's number: file, line before and after the change."""
        before, after = (text.splitlines()[self.line - 1] for text in (self.text, self.changed))
        return self.path.relative_to(PACKAGE).as_posix(), before.strip(), after.strip()

    def __str__(self) -> str:
        file, before, after = self.key
        return f"{file}:{self.line}\n    - {before}\n    + {after}"


def places(path: Path) -> Iterator[list[Mutant]]:
    """Yield, for every place of a file that can be changed, each way to change it.

    Annotations, texts for people, and what no right program shows, are left alone.
    """
    text = path.read_text()
    file = _File(text)
    for nodes in _nodes(ast.parse(text)):
        spans = tuple(
            (n.lineno, n.end_lineno or n.lineno)
            for n in nodes
            if isinstance(n, (ast.expr, ast.stmt, ast.arg, ast.keyword, ast.excepthandler))
        )
        for start, stop, news in file.changes(nodes[0]):
            ways = ("0",) if _is_open_length(nodes) else news
            yield [Mutant(path, text, start, stop, new, spans, _function(nodes)) for new in ways]


def _nodes(node: ast.AST, *around: ast.AST) -> Iterator[tuple[ast.AST, ...]]:
    """Yield each node, followed by what it is in from the inside out."""
    yield node, *around
    for name, value in ast.iter_fields(node):
        if name not in _UNREAD:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.keyword) and child.arg in _UNSEEN:
                    continue
                if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                    yield from _nodes(child, node, *around)


def _is_open_length(nodes: tuple[ast.AST, ...]) -> bool:
    """Tell whether it is the 1 of a reshape to -1, where NumPy takes all negative numbers alike."""
    number, *around = nodes
    if not (isinstance(number, ast.Constant) and len(around) > 1):
        return False
    minus, call = around[:2]
    return (
        isinstance(minus, ast.UnaryOp)
        and isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "reshape"
    )


def _function(nodes: tuple[ast.AST, ...]) -> str:
    """Return the type of the function whose body a node is in, not its defaults or decorators."""
    for inner, outer in itertools.pairwise(nodes):
        if isinstance(outer, ast.Lambda) and inner is outer.body:
            return "lambda"
        if isinstance(outer, ast.FunctionDef) and inner in outer.body:
            return "def"
    return ""


class _File:
    """A text, and where its syntax tree's nodes begin and end in it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._code = text.encode()
        lengths = [len(line) for line in self._code.splitlines(keepends=True)]
        self._starts = [0, *itertools.accumulate(lengths)]

    def changes(self, node: ast.AST) -> Iterator[tuple[int, int, tuple[str, ...]]]:
        """Yield (start, stop, replacements) for each place of a node that can be changed."""
        if isinstance(node, ast.Compare):
            for pair in itertools.pairwise([node.left, *node.comparators]):
                yield self._swap(*pair, _COMPARISON, _COMPARISONS)
        elif isinstance(node, ast.BoolOp):
            for pair in itertools.pairwise(node.values):
                yield self._swap(*pair, _OPERATOR, _OPERATORS)
        elif isinstance(node, ast.BinOp):
            yield self._swap(node.left, node.right, _OPERATOR, _OPERATORS)
        elif isinstance(node, ast.AugAssign):
            yield self._swap(node.target, node.value, _OPERATOR, _OPERATORS)
        elif isinstance(node, ast.UnaryOp):
            start = self._begin(node)
            yield start, start + (3 if isinstance(node.op, ast.Not) else 1), ("",)
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
            yield self._begin(node), self._end(node), _others(node.value)

    def _swap(
        self, left: ast.expr, right: ast.expr, pattern: re.Pattern[str], table: dict[str, str]
    ) -> tuple[int, int, tuple[str, ...]]:
        begin = self._end(left)
        between = self._text[begin : self._begin(right)]
        sign = pattern.search(re.sub(r"#.*", lambda note: " " * len(note[0]), between))
        assert sign is not None
        new = table[" ".join(sign[0].split())]
        if new == "/" and _is_one(right):
            new = "+"
        return begin + sign.start(), begin + sign.end(), (new,)

    def _begin(self, node: ast.expr) -> int:
        return self._at(node.lineno, node.col_offset)

    def _end(self, node: ast.expr) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._at(node.end_lineno, node.end_col_offset)

    def _at(self, line: int, column: int) -> int:
        """Return the place in the text of a byte of a line."""
        return len(self._code[: self._starts[line - 1] + column].decode())


def _is_one(node: ast.expr) -> bool:
    """Tell whether to multiply by it is to divide by it."""
    return ast.unparse(node) in {"1", "1.0", "-1", "-1.0"}


def _others(value: float) -> tuple[str, ...]:
    """Return the neighbours of a number, the opposite of a truth value."""
    if isinstance(value, bool):
        return (repr(not value),)
    if not math.isfinite(value):
        return ("1.0",)
    other = (value + 1, value - 1) if value + 1 != value else (value * 2, value / 2)
    return tuple(f"({n!r})" if n < 0 else repr(n) for n in other)
