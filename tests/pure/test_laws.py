"""Laws of the house about who does what: who writes markup, who parses, who prints."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "pyonednn_q"
FILES = {str(path.relative_to(PACKAGE)): path for path in PACKAGE.rglob("*.py")}
TREES = {name: ast.parse(path.read_text()) for name, path in FILES.items()}
MARKUP = re.compile(
    r"</?(p|a|b|i|g|dl|dt|dd|h[1-6]|div|pre|svg|table|tr|td|th|span|style|html)[ >]"
)


def imported(tree: ast.Module) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(str(node.module))
    return names


def words(tree: ast.Module) -> Iterator[str]:
    """Yield the strings of a file that are no docstrings."""
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        if node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


def test_only_report_writes_markup_and_sheets() -> None:
    writers = {
        name
        for name, tree in TREES.items()
        if {"html", "csv"} & imported(tree) or any(map(MARKUP.search, words(tree)))
    }
    assert len(writers) >= 5
    assert {name for name in writers if not name.startswith("report/")} == set()
