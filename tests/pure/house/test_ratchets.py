"""Lines of rooms and constants that stand twice may only fall; no docstring begins in the dark."""

from __future__ import annotations

import ast
import inspect
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "src" / "pyonednn_q"
SOURCES = {
    path.relative_to(PACKAGE).as_posix(): path.read_text() for path in PACKAGE.rglob("*.py*")
}
TREES = {name: ast.parse(text) for name, text in SOURCES.items()}

# Lines of Python, which may only fall; "files" are those of no room. A new feature of a room takes
# the place of something there. The design wants 5000 a room.
BUDGETS = {
    "onnx": 18_300,
    "quantize": 7_800,
    "ops": 7_500,
    "bench": 5_600,
    "native": 4_900,
    "faults": 3_700,  # a row for each fault that is found
    "models": 3_600,
    "compose": 3_600,
    "network": 3_200,
    "primitive": 3_100,
    "commands": 2_500,
    "graph": 2_500,
    "emulate": 2_400,
    "predict": 2_400,
    "expr": 2_320,
    "files": 2_500,
    "rewrite": 2_200,
    "inspection": 2_000,
    "acc": 1_900,
    "requantize": 1_900,
    "check": 1_400,
    "explain": 950,
    "report": 1_350,  # all bars of progress are there now
    "torch": 900,
}
SLACK = 200  # a budget that is further from its room is lowered


def lines_of_rooms() -> Counter[str]:
    lines: Counter[str] = Counter()
    for name, text in SOURCES.items():
        lines[name.partition("/")[0] if "/" in name else "files"] += len(text.splitlines())
    return lines


def test_rooms_keep_to_their_budgets() -> None:
    lines = lines_of_rooms()
    assert lines.keys() == BUDGETS.keys()
    assert {room: n for room, n in lines.items() if n > BUDGETS[room]} == {}
    assert {room: n for room, n in lines.items() if n < BUDGETS[room] - SLACK} == {}


# Equal by chance: versions of formats and numbers of inputs, exit codes, ranks and widths.
BY_CHANCE = {
    *("SCHEMA", "VERSION", "NOT_EXPLAINED", "NONE", "BIAS", "H", "WEI", "WIDEST", "NAMED"),
    *("BLOCK", "VECTOR", "LEVELS", "MOST_BYTES", "MOST_DIMS", "SMALL", "WIDE"),
}


def constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield name and value of the constants of a file."""
    for node in tree.body:
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        pairs = [(target, node.value)]
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = list(zip(target.elts, node.value.elts, strict=True))
        for name, value in pairs:
            if isinstance(name, ast.Name) and name.id != "__all__":
                try:
                    plain = eval(ast.unparse(value), {"__builtins__": {}})
                except Exception:  # made of others
                    continue
                yield name.id.lstrip("_"), repr(plain)


def test_a_constant_has_one_home() -> None:
    homes = Counter(each for tree in TREES.values() for each in set(constants(tree)))
    assert len(homes) > 500
    assert {name for (name, _), count in homes.items() if count > 1} <= BY_CHANCE


# How no docstring and no description of a parameter begins: it says at once what the thing is, by a
# noun with shape, dtype and unit, or what a function does.
DARK = re.compile(r"(Of|As|What|How|Which|Whose|Who|Why|Where|When|It|They|That|Those)\b")


def descriptions() -> Iterator[str]:
    """Yield first lines of docstrings, and of what they say of each parameter."""
    for node in (each for tree in TREES.values() for each in ast.walk(tree)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            lines = inspect.cleandoc(str(node.value.value)).splitlines()
            yield from lines[:1]
            for head, line in pairwise(lines):
                if re.match(r"\S", head) and line.startswith("    "):
                    yield line.strip()


def test_descriptions_begin_with_what_there_is() -> None:
    lines = list(descriptions())
    assert len(lines) > 7000
    assert [line for line in lines if DARK.match(line)] == []


def test_the_changelog_says_what_a_reader_can_have_had() -> None:
    assert len((ROOT / "CHANGELOG.md").read_text().splitlines()) <= 40
