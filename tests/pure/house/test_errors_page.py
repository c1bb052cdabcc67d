"""The table of docs/errors.md has each error that the package raises, as its class says."""

from __future__ import annotations

import ast
import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "src" / "pyonednn_q"
PAGE = (ROOT / "docs" / "errors.md").read_text()
ROWS = {
    line.split("`")[1]: [cell.strip() for cell in line.strip("|").split(" | ")][1:]
    for line in PAGE.partition("## All of them")[2].splitlines()
    if line.startswith("| `")
}


@cache
def defined() -> dict[str, str]:
    """Return the module of each public error class, by its name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and re.fullmatch(r"[A-Z]\w*Error|Error", node.name):
                parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
                found[node.name] = ".".join(parts)
    return found


def test_every_error_has_a_row() -> None:
    inside = {"NoModelHereError"}  # caught where it is raised
    assert set(ROWS) == set(defined()) - inside


@pytest.mark.parametrize("name", ROWS)
def test_a_row_says_what_the_class_is(name: str) -> None:
    kind = getattr(import_module(defined()[name]), name)
    bases, when, instead, attributes = ROWS[name]
    assert re.findall(r"`(\w+)`", bases) == [base.__name__ for base in kind.__bases__]
    assert when
    assert instead
    own, (*inherited,) = attributes.split(";")[0], re.findall(r"those of `(\w+)`", attributes)
    for each in inherited:
        assert issubclass(kind, getattr(import_module(defined()[each]), each))
        own = own.replace(f"those of `{each}`", "")
    source = (PACKAGE.parent / f"{kind.__module__.replace('.', '/')}.py").read_text()
    body = source.partition(f"\nclass {name}(")[2].partition("\nclass ")[0]
    for attribute in re.findall(r"`(\w+)`", own):
        assert f"self.{attribute} =" in body or f"def {attribute}(" in body, attribute


def test_options_of_the_remedies_exist() -> None:
    source = "\n".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    options = {option for row in ROWS.values() for option in re.findall(r"`(\w+)=", row[2])}
    assert options
    assert [option for option in options if not re.search(rf"\b{option}: ", source)] == []
