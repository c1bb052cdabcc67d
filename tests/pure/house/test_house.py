"""The house rules that a machine can check."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import pyonednn_q

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "src" / "pyonednn_q"
PURE = (
    *("shown", "cpu", "report", "errors", "argument", "dtypes", "qparams", "check"),
    *("primitive", "expr", "rewrite", "quantize", "requantize"),
    *("faults", "acc", "compose", "explain", "predict", "graph"),
)
MAX_LINES = 400
MAX_IGNORES = 10
NO_NOUN = {"utils", "helpers", "common", "misc", "util", "helper"}
CODE = {".py", ".pyi", ".cpp", ".hpp", ".cmake", ".sh"}

SOURCES = sorted(
    path
    for room in ("src", "tests", "tools", "benchmarks", "examples", "cmake", ".ci")
    for path in (ROOT / room).rglob("*")
    if path.suffix in CODE or path.parent.name == ".ci"
    if path.is_file()
)
MODULES = [path for path in SOURCES if path.suffix == ".py"]


def project() -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return table


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-c",
        f"import sys; sys.path.insert(0, {str(ROOT / 'src')!r})\n{code}",
    ]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def imported(path: Path) -> set[str]:
    """Absolute names of all that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
    return found


def test_there_is_something_to_check() -> None:
    assert len(MODULES) > 10


def test_no_file_is_too_long() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in SOURCES}
    assert {str(path.relative_to(ROOT)): n for path, n in lengths.items() if n > MAX_LINES} == {}


def test_every_module_has_a_noun() -> None:
    assert [path for path in MODULES if path.stem in NO_NOUN and PACKAGE in path.parents] == []


# Rooms that mirror one subject; no more of them.
TWINS = {"arrays", "catalogue", "convolution", "dense", "graph", "passes", "post_ops", "trial"}


def test_a_name_is_that_of_one_file() -> None:
    stems = Counter(path.stem for path in PACKAGE.rglob("*.py") if path.stem != "__init__")
    assert len(stems) > 200
    assert {name for name, count in stems.items() if count > 1} == TWINS


def test_a_name_is_that_of_one_class() -> None:
    classes = Counter(
        node.name.lstrip("_")
        for path in MODULES
        if PACKAGE in path.parents
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    )
    assert len(classes) > 200
    assert {name for name, count in classes.items() if count > 1} == set()


def test_locals_are_named_for_what_they_hold() -> None:
    """`given`, `found` and `made` say how a value came, and nothing of what it is."""
    said_nothing = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in MODULES
        if PACKAGE in path.parents
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.Name) and node.id in {"given", "found", "made"})
        or (isinstance(node, ast.arg) and node.arg in {"given", "found", "made"})
    ]
    assert said_nothing == []


def imports_of(package: Path) -> dict[str, set[str]]:
    """Modules of a package, and those that each of them imports anywhere, for types too."""
    paths: dict[str, Path] = {}
    for path in package.rglob("*.py*"):
        name = ".".join(path.relative_to(package.parent).with_suffix("").parts)
        if path.suffix in {".py", ".pyi"}:
            paths.setdefault(name.removesuffix(".__init__"), path)
    graph: dict[str, set[str]] = {}
    for module, path in paths.items():
        graph[module] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                graph[module] |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}"
                    graph[module].add(inner if inner in paths else str(node.module))
    return {module: (names & set(paths)) - {module} for module, names in graph.items()}


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Sets of modules each of which reaches all others."""

    def reached(module: str) -> set[str]:
        seen: set[str] = set()
        todo = [module]
        while todo:
            new = graph[todo.pop()] - seen
            seen |= new
            todo += new
        return seen

    reach = {module: reached(module) for module in graph}
    own = {
        frozenset(other for other in names if module in reach[other])
        for module, names in reach.items()
        if module in names
    }
    return sorted(map(set, own), key=sorted)


def test_no_modules_import_each_other() -> None:
    graph = imports_of(PACKAGE)
    assert sum(map(len, graph.values())) > 500
    assert circles(graph) == []


def test_a_circle_is_noticed(tmp_path: Path) -> None:
    package = tmp_path / "house"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "low.py").write_text("from typing import TYPE_CHECKING\n")
    (package / "high.py").write_text("from house import low\n")
    assert circles(imports_of(package)) == []
    (package / "low.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from house.high import Thing\n"
    )
    assert circles(imports_of(package)) == [{"house.high", "house.low"}]


def test_type_ignores_are_few() -> None:
    assert sum(path.read_text().count("# type" + ": ignore") for path in MODULES) <= MAX_IGNORES


def test_only_native_names_the_extension() -> None:
    importers = [path for path in MODULES if "pyonednn_q._core" in imported(path)]
    inside = [path for path in importers if PACKAGE in path.parents]
    assert [path for path in inside if path.parent.name != "native"] == []


def test_import_contracts() -> None:
    pytest.importorskip("importlinter")
    result = run_python(
        "from importlinter.cli import lint_imports\n"
        "sys.exit(lint_imports(config_filename='pyproject.toml', no_cache=True))"
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("room", PURE)
def test_pure_rooms_import_without_the_extension(room: str) -> None:
    result = run_python(
        "sys.modules['pyonednn_q._core'] = None\n"
        "import importlib, pkgutil\n"
        f"room = importlib.import_module('pyonednn_q.{room}')\n"
        "for found in pkgutil.walk_packages(getattr(room, '__path__', []), room.__name__ + '.'):\n"
        "    importlib.import_module(found.name)\n"
        "assert not [name for name in sys.modules if name.startswith('pyonednn_q.native')]"
    )
    assert result.returncode == 0, result.stderr


def test_operators_are_values_without_the_extension_and_say_why_they_do_not_run() -> None:
    result = run_python(
        "sys.modules['pyonednn_q._core'] = None\n"
        "import copy, pickle\n"
        "import numpy as np\n"
        "import pyonednn_q as pq\n"
        "src_q, wei_q = pq.QParams(0.5, 0, 'u8'), pq.QParams(0.5, 0, 's8')\n"
        "made = pq.MatMul(np.ones((4, 8), np.int8), src_q=src_q, wei_q=wei_q)\n"
        "for operator in (made, copy.copy(made), pickle.loads(pickle.dumps(made))):\n"
        "    try:\n"
        "        operator(np.ones((2, 4), np.uint8))\n"
        "    except pq.errors.LibraryError as error:\n"
        "        print('_core cannot be imported' in str(error))"
    )
    assert result.stdout.split() == ["True"] * 3, result.stderr


def test_importing_the_package_imports_no_room() -> None:
    result = run_python(
        "import pyonednn_q\n"
        "print([name for name in sys.modules if name.startswith(('pyonednn_q.', 'numpy'))])"
    )
    assert result.stdout.strip() == "[]", result.stderr


@pytest.mark.parametrize(
    ("words", "terminal"),
    [
        ([], False),
        (["--help"], True),
        (["explain", "--list"], False),
        (["explain", "--list", "--json"], True),
        (["explain", "--list"], True),
    ],
)
def test_rich_is_imported_where_a_table_is_on_a_terminal(
    words: list[str], *, terminal: bool
) -> None:
    result = run_python(
        "import contextlib, io\n"
        "import pyonednn_q as pq\n"
        "from pyonednn_q.commands import cli\n"
        "pq.Conv, pq.load, pq.inspect, pq.calibrate\n"
        f"sys.stdout.isatty = lambda: {terminal}\n"
        f"words = {words}\n"
        "with contextlib.suppress(SystemExit):\n"
        "    if words: cli.main(words)\n"
        "sys.stderr.write(str('rich' in sys.modules))"
    )
    assert result.stderr == str(terminal and words[-1] == "--list")


def test_public_names_are_the_typed_ones() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    typed = {
        alias.name: str(node.module).removeprefix("pyonednn_q.")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("pyonednn_q.")
        for alias in node.names
    }
    assert typed == pyonednn_q._HOME


@pytest.mark.parametrize(
    "name", [n for n, room in pyonednn_q._HOME.items() if "native" not in room]
)
def test_public_names_exist_and_are_documented(name: str) -> None:
    assert getattr(pyonednn_q, name).__doc__


def test_the_front_door_holds_what_is_typed_in_the_first_hour() -> None:
    assert dir(pyonednn_q) == sorted(pyonednn_q.__all__)
    assert len(pyonednn_q._HOME) <= 36
    for room in set(pyonednn_q._ROOMS) - {"native", "ops", "inspection", "emulate"}:
        face = getattr(pyonednn_q, room)
        assert [name for name in face.__all__ if not getattr(face, name).__doc__] == []


def test_shared_arguments_stand_in_one_order() -> None:
    order = ("plan", "problem", "attr", "src", "wei", "bias", "impl", "isa", "version")
    plain = inspect.Parameter.POSITIONAL_OR_KEYWORD
    shared = set()
    for room in set(pyonednn_q._ROOMS) - {"native", "ops", "inspection"}:
        face = getattr(pyonednn_q, room)
        for name in face.__all__:
            if inspect.isfunction(function := getattr(face, name)):
                parameters = inspect.signature(function).parameters.values()
                taken = [one.name for one in parameters if one.name in order and one.kind is plain]
                assert taken == sorted(taken, key=order.index), name
                shared |= {name} if len(taken) > 1 else set()
    assert shared >= {"saturation", "as_if", "counts", "repair", "kernel_model", "compose_layer"}


def small_and_large(path: Path) -> dict[str, float]:
    """Constants of a file that are tolerances or limits: tiny or huge floats, by their names."""
    found = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                value = eval(ast.unparse(node.value), {"__builtins__": {}})
            except Exception:  # no plain number
                continue
            if isinstance(value, float) and not 1e-3 < abs(value) < 1e6:
                found[f"{path.relative_to(PACKAGE)}:{node.targets[0].id}"] = value
    return found


def test_tolerances_and_limits_have_one_home() -> None:
    values = {k: v for path in PACKAGE.rglob("*.py") for k, v in small_and_large(path).items()}
    # Equal by chance: a step of a search and a shift, small differences, a grid and an error.
    by_chance = {1e-5, 1e-6, 2.0**-16}
    homes = [name for name, value in values.items() if value not in by_chance]
    assert len(homes) > 3
    assert len({values[name] for name in homes}) == len(homes), homes


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = pyonednn_q.nonsense


def test_versions_agree() -> None:
    declared = project()["project"]["version"]
    latest = re.search(r"^## (\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert latest is not None
    assert latest[1] == declared
    assert pyonednn_q.__version__ == version("pyonednn_q") == declared


def test_cmake_lists_every_source() -> None:
    listed = re.findall(r"src/cpp/(\w+\.cpp)", (ROOT / "CMakeLists.txt").read_text())
    assert sorted(listed) == sorted(path.name for path in (ROOT / "src/cpp").glob("*.cpp"))


def test_mutants_that_count_as_equivalent_are_of_lines_that_are_there() -> None:
    listed = tomllib.loads((ROOT / "tests" / "mutants_equivalent.toml").read_text())["mutant"]
    for mutant in listed:
        lines = map(str.strip, (PACKAGE / mutant["file"]).read_text().splitlines())
        assert mutant["before"] in lines, mutant["file"]
