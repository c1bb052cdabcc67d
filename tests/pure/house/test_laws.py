"""Laws of the house: who does what, and what stands where."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

from pyonednn_q.commands import cli
from pyonednn_q.commands.option_table import rows_of

PACKAGE = Path(__file__).parents[3] / "src" / "pyonednn_q"
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


# What stands on a pipe to its parent writes there, and the bar of progress draws on a terminal.
SPEAKERS = {
    *("examination.py", "native/creation.py", "bench/peers/worker.py"),
    "report/progress.py",
}


def spoken(tree: ast.Module) -> bool:
    """Whether a file prints, or uses the streams of the process."""
    return any(
        (isinstance(node, ast.Name) and node.id == "print")
        or (
            isinstance(node, ast.Attribute)
            and node.attr in {"stdout", "stderr", "stdin"}
            and isinstance(node.value, ast.Name)
            and node.value.id == "sys"
        )
        for node in ast.walk(tree)
    )


def test_only_commands_parse_and_print() -> None:
    parsers = {name for name, tree in TREES.items() if "argparse" in imported(tree)}
    assert {name for name in parsers if not name.startswith("commands/")} == set()
    speakers = {name for name, tree in TREES.items() if spoken(tree)}
    assert {name for name in speakers if not name.startswith("commands/")} <= SPEAKERS


def test_one_file_builds_a_parser() -> None:
    called = {
        name
        for name, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if node.func.attr
        in {"add_argument", "add_parser", "add_argument_group", "parse_known_args"}
    }
    assert called == {"commands/cli.py", "commands/option_table.py"}


def test_a_command_is_a_file_and_an_option_one_row() -> None:
    for command in cli._COMMANDS:
        assert f"commands/{command}.py" in FILES
        names = [row.name for row in rows_of(command)]
        assert len(names) == len(set(names)), command
        for row in rows_of(command):
            assert not row.only or command in {"explain", "bench"} or len(row.commands) > 1
    said = [row for command in cli._COMMANDS for row in rows_of(command)]
    parts = {id(row): (row.name, row.help, row.how.get("metavar")) for row in said}
    assert len(set(parts.values())) == len(parts)


def test_json_means_the_same_everywhere() -> None:
    rows = [row for command in cli._COMMANDS for row in rows_of(command) if row.name == "--json"]
    assert len(rows) > 5
    assert len({id(row) for row in rows}) == 1


ROOT = PACKAGE.parents[1]
# Public functions that wait for a caller, or for an example that runs. None may be added.
WAITING = {
    *("as_if", "clear_buffers", "clear_tuning", "compose_chain", "load_tuning", "renormalized"),
    *("repair", "save_tuning"),
}


def examples() -> str:
    """Return all code of pages, notebooks and docstrings that tests run."""
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    blocks = [
        block
        for path in pages
        for block in re.findall(r"^```\w*\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL)
    ]
    for path in (ROOT / "examples").glob("*.ipynb"):
        cells = json.loads(path.read_text())["cells"]
        blocks += ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    blocks += [path.read_text() for path in (ROOT / "examples").glob("*.py")]
    for path in FILES.values():
        blocks += re.findall(r"(?:>>>|\.\.\.) .*", path.read_text())
    return "\n".join(blocks)


def public_names() -> dict[str, set[Path]]:
    """Names that some `__all__` has, and the files that define each."""
    public: set[str] = set()
    defined: dict[str, set[Path]] = {}
    for name, tree in TREES.items():
        for node in tree.body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                defined.setdefault(node.name, set()).add(FILES[name])
            targets = node.targets if isinstance(node, ast.Assign) else []
            targets += [node.target] if isinstance(node, ast.AnnAssign) else []
            for target in targets:
                if isinstance(target, ast.Name) and target.id == "__all__":
                    public |= set(words(ast.Module([node], [])))
                elif isinstance(target, ast.Name):
                    defined.setdefault(target.id, set()).add(FILES[name])
    return {name: defined[name] for name in public if name in defined}


def used_names(path: Path) -> set[str]:
    """Names that a file of code reads."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    return {node.id for node in nodes if isinstance(node, ast.Name)} | {
        node.attr for node in nodes if isinstance(node, ast.Attribute)
    }


def test_a_public_name_has_a_caller_or_an_example() -> None:
    """In another file of the package, or in code that tests run; a class may be a result."""
    told = set(re.findall(r"\w+", examples()))
    used = {path: used_names(path) for path in FILES.values()}
    public = public_names()
    assert len(public) > 600
    without = {
        name
        for name, homes in public.items()
        if name not in told and not any(name in used[path] for path in used if path not in homes)
    }
    results = {name for name in without if name[0].isupper()}
    assert without - results <= WAITING
    # The user makes the one, and the other is an error of C++.
    unmade = {name for name in results if not any(name in used[home] for home in public[name])}
    assert unmade == {"Decoder", "ForkedError"}


# Folders of tests that are of no room: of tools, of the tree as a whole, of other people's truths.
QUESTIONS = {"docs", "house", "isa", "others", "stress", "support", "tools"}


def test_tests_stand_in_a_folder_of_their_room() -> None:
    """In tests/ROOM, tests/pure/ROOM or tests/peers/ROOM: docs/testing.md says which."""
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")} | QUESTIONS
    loose = {name.removesuffix(".py") for name in FILES if "/" not in name}
    paths = [path.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")]
    assert len(paths) > 380
    for path in paths:
        *folders, name = path.parts
        if folders == ["pure"]:
            stem = name.removeprefix("test_").removesuffix(".py")
            assert any(stem == one or stem.startswith(f"{one}_") for one in loose), path
        else:
            assert next(part for part in folders if part not in {"pure", "peers"}) in rooms, path
    # tests/ is on the path of imports: where they are not installed, these would be found there.
    assert {path.parts[0] for path in paths} & {"onnx", "torch"} == set()


def test_tools_stand_in_rooms() -> None:
    assert [path for path in (ROOT / "tools").iterdir() if path.is_file()] == []
