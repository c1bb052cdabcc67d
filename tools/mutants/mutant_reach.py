"""Reach: which tests execute which lines, measured once for each state of the files."""

from __future__ import annotations

import ast
import functools
import gzip
import hashlib
import importlib
import itertools
import json
import math
import pkgutil
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from coverage import Coverage

from mutant import PACKAGE, ROOT, Mutant

__all__ = ["ROOMS", "Reach", "ReachPlugin"]

ROOMS = (
    *("primitive", "expr", "rewrite", "requantize", "quantize", "check"),
    *("faults", "acc", "compose", "predict"),
)
_TESTS = ROOT / "tests"
_MOST_SECONDS = 30  # of tests for one mutant, while coverage is measured
_KEPT = ROOT / "build" / "mutant_reach.json.gz"


class Reach:
    """Which tests execute which lines, and how long they take.

    Kept for each test file are the state of the files that it reads, each test's name and
    seconds (infinite where it does not pass), and for each source file and line the numbers of the
    tests that execute it, -1 at import.

    Parameters
    ----------
    folders : sequence of Path
        Where the tests are that count.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        state = _digest(path for end in ("*.py", "*.toml") for path in PACKAGE.rglob(end))
        self._states = {
            file.relative_to(ROOT).as_posix(): _digest(_support(file)) + state
            for folder in folders
            for file in folder.rglob("test_*.py")
        }
        kept = json.loads(gzip.decompress(_KEPT.read_bytes())) if _KEPT.exists() else {}
        self._kept = {
            file: kept[file]
            for file, state in self._states.items()
            if kept.get(file, {}).get("state") == state
        }
        self._others = {file: kept[file] for file in kept.keys() - self._states.keys()}

    def stale(self) -> list[str]:
        """Return the test files that are not measured in their present state."""
        return sorted(self._states.keys() - self._kept.keys())

    def keep(self, measured: dict[str, dict[str, Any]]) -> None:
        """Add what was measured of test files, and write all of it down."""
        for file in self.stale():
            self._kept[file] = {"tests": [], "lines": {}, **measured.get(file, {})}
            self._kept[file]["state"] = self._states[file]
        _KEPT.parent.mkdir(exist_ok=True)
        _KEPT.write_bytes(gzip.compress(json.dumps(self._others | self._kept).encode(), 1))

    @functools.cached_property
    def seconds(self) -> dict[str, float]:
        """The duration of each test, infinite for those that do not pass."""
        return {test: s for record in self._kept.values() for test, s in record["tests"]}

    def tests(self, mutant: Mutant) -> tuple[list[str], list[str]]:
        """Return the tests that execute a place, and others that can notice; quickest first.

        What is executed at import can be noticed by all that use the file or import from it: first
        by the test files that name it.
        """
        direct: set[str] = set()
        for first, last in mutant.spans:
            direct = set(self._of(mutant.path, range(first, last + 1)))
            if direct:
                break
        others: set[str] = set()
        if not mutant.function or (mutant.function == "def" and "" in direct):
            others = {test for path in _beside(mutant.path) for test in self._of(path)} - direct
            named = self._quickest(self._naming(mutant.path) - direct)
            return self._quickest(direct), list(dict.fromkeys([*named, *self._quickest(others)]))
        return self._quickest(direct), []

    def _of(self, path: Path, lines: Iterable[int] | None = None) -> Iterator[str]:
        """Yield the tests that execute some of a file's lines, "" for its import."""
        for record in self._kept.values():
            reached = record["lines"].get(path.relative_to(PACKAGE).as_posix(), {})
            for line in reached if lines is None else map(str, lines):
                for number in reached.get(line, ()):
                    yield record["tests"][number][0] if number >= 0 else ""

    def _naming(self, path: Path) -> set[str]:
        """Return the tests of the files that import from a file, or look for all modules."""
        return {
            test
            for file, record in self._kept.items()
            if any({_name(path), "pkgutil"} & _imports(each) for each in _support(ROOT / file))
            for test, _ in record["tests"]
        }

    def _quickest(self, tests: Iterable[str]) -> list[str]:
        """Return as many tests, quickest first, as take a minute together."""
        seconds = {test: self.seconds.get(test, math.inf) for test in tests}
        ordered = sorted(seconds, key=seconds.__getitem__)
        ends = itertools.accumulate(map(seconds.__getitem__, ordered))
        return [test for test, end in zip(ordered, ends, strict=True) if end <= _MOST_SECONDS]


class ReachPlugin:
    """What measures while pytest runs.

    Parameters
    ----------
    package : Path
        The package that is imported.
    """

    def __init__(self, package: Path) -> None:
        self._package = package
        self._coverage = Coverage(data_file=None, source=[str(package)], config_file=False)
        self._seconds: dict[str, float] = defaultdict(float)
        self._file = ""

    def pytest_collection(self) -> None:
        """Import all rooms: what is executed at import then belongs to no test."""
        self._coverage.start()
        for room in ROOMS:
            module = importlib.import_module(f"pyonednn_q.{room}")
            for info in pkgutil.walk_packages(module.__path__, module.__name__ + "."):
                importlib.import_module(info.name)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Measure one test; what was computed for another file's tests is forgotten."""
        if self._file != item.nodeid.partition("::")[0]:
            self._file = item.nodeid.partition("::")[0]
            for name in [name for name in sys.modules if name.startswith("pyonednn_q")]:
                for each in vars(sys.modules[name]).values():
                    getattr(each, "cache_clear", tuple)()
        self._coverage.switch_context(item.nodeid)
        yield
        self._coverage.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up the seconds of a test."""
        self._seconds[report.nodeid] += report.duration if report.passed else math.inf

    def measured(self) -> dict[str, dict[str, Any]]:
        """Return what `Reach` keeps, by test file."""
        self._coverage.stop()
        data = self._coverage.get_data()
        result: dict[str, dict[str, Any]] = {}
        place = {"": ("", -1)}
        for test, seconds in self._seconds.items():
            file = test.partition("::")[0]
            tests = result.setdefault(file, {"tests": [], "lines": {}})["tests"]
            place[test] = file, len(tests)
            tests.append((test, round(seconds, 4)))
        for source in data.measured_files():
            name = Path(source).relative_to(self._package).as_posix()
            for line, contexts in data.contexts_by_lineno(source).items():
                for file, number in map(place.__getitem__, contexts):
                    for each in [file] if file else result:
                        lines = result[each]["lines"].setdefault(name, {})
                        lines.setdefault(str(line), []).append(number)
        return result


def _digest(files: Iterable[Path]) -> str:
    parts = (
        file.relative_to(ROOT).as_posix().encode() + file.read_bytes() for file in sorted(files)
    )
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


@functools.cache
def _support(file: Path) -> set[Path]:
    """Return a test file, its folders' conftest.py and all that they import from tests."""
    files: set[Path] = set()
    new = {file, *(path for path in (up / "conftest.py" for up in file.parents) if path.exists())}
    while new:
        files |= new
        names = {name.replace(".", "/") for path in new for name in _imports(path)}
        paths = {_TESTS / end for name in names for end in (f"{name}.py", f"{name}/__init__.py")}
        new = {path for path in paths if path.exists()} - files
    return files


@functools.cache
def _beside(path: Path) -> list[Path]:
    """Return a file and those that import from it."""
    return [path, *(other for other in PACKAGE.rglob("*.py") if _name(path) in _imports(other))]


def _name(path: Path) -> str:
    name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    return name.removesuffix(".__init__")


@functools.cache
def _imports(path: Path) -> set[str]:
    nodes = [*ast.walk(ast.parse(path.read_text()))]
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    names = {f"{node.module}.{alias.name}" for node in froms for alias in node.names}
    whole = {a.name for node in nodes if isinstance(node, ast.Import) for a in node.names}
    return names | {str(node.module) for node in froms} | whole
