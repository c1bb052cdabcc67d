"""Paths and names exist: those in the recipes of CONTRIBUTING.md, and paths wherever they stand."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "src" / "pyonednn_q"
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
HOW = PAGE.partition("## How to add")[2].partition("\n## ")[0]
_RECIPE = re.compile(r"^\*\*(.*?)\.\*\*\n(.*?)(?=^\*\*|\Z)", re.MULTILINE | re.DOTALL)
RECIPES = {
    title: [" ".join(step.split()) for step in re.split(r"^\d\. ", body, flags=re.MULTILINE)[1:]]
    for title, body in _RECIPE.findall(HOW)
}
STEPS = [
    pytest.param(step, id=f"{title} {number}")
    for title, steps in RECIPES.items()
    for number, step in enumerate(steps, 1)
]
# Commands and values that a recipe names beside what is in the files of its step.
WORDS = {"NAME", "calibrate", "save", "explain", "bench", "match", "text", "v", "pyonednn-q"}


def found(path: str) -> list[Path]:
    return [*ROOT.glob(path), *PACKAGE.glob(path)]


def quoted(step: str) -> list[str]:
    return re.findall(r"`([^`]+)`", step)


def is_path(token: str) -> bool:
    return re.fullmatch(r"[\w.*-]+(/[\w.*-]+)+|[\w-]+\.(py|md|toml|cff)", token) is not None


@cache
def source(path: Path) -> str:
    files = [path] if path.is_file() else [*path.rglob("*.py"), *path.rglob("*.md")]
    return "\n".join(each.read_text() for each in files)


def test_there_are_recipes() -> None:
    assert {
        "An ONNX operator", "An operation of networks", "An estimator of ranges",
        "A column of bench", "An option of the command line",
    } <= set(RECIPES)  # fmt: skip
    assert all(len(steps) >= 3 for steps in RECIPES.values())


@pytest.mark.parametrize("step", STEPS)
def test_paths_exist(step: str) -> None:
    words = [word for token in quoted(step) for word in token.split() if "NAME" not in word]
    paths = [word for word in words if is_path(word) and word != "model.onnx"]
    assert [path for path in paths if not found(path)] == []


@pytest.mark.parametrize("step", STEPS)
def test_names_are_in_the_files_of_their_step(step: str) -> None:
    tokens = quoted(step)
    files = [
        path for token in tokens if is_path(token) and "NAME" not in token for path in found(token)
    ]
    text = "\n".join(map(source, files))
    names = [token for token in tokens if re.fullmatch(r"@?[A-Za-z_][\w.]*", token)]
    names = [name.lstrip("@") for name in names if not is_path(name) and name not in WORDS]
    assert [name for name in names if not in_text(name, text)] == [], [str(each) for each in files]


def in_text(name: str, text: str) -> bool:
    """Tell whether each part of a name is a word of the text: project.version is two lines."""
    return all(re.search(rf"\b{re.escape(part)}\b", text) for part in name.split("."))


# Of files that make something at a place of no repository; and of what others have.
ELSEWHERE = {"docs/NAME.md", "docs/api", "docs/index", "docs/ContribOperators.md", "src/x.cpp"}
NAMED = re.compile(
    r"(?<![\w/.-])(?:benchmarks|docs|examples|src|tests|tools)/[\w.*-]+(?:/[\w.*-]+)*(?=[^\w{])"
)


def test_paths_that_files_name_exist() -> None:
    """But for logs of runs, which name what there was then."""
    files = [path for room in ("src", "tools", "docs", ".ci") for path in (ROOT / room).rglob("*")]
    files = [path for path in [*files, *ROOT.glob("*.md")] if path.suffix in {"", ".py", ".md"}]
    logs = {ROOT / "docs" / "reference" / f"{name}.md" for name in ("measurements", "test_runs")}
    missing = {
        path
        for file in set(files) - logs
        if file.is_file()
        for path in {each.rstrip("./*") for each in NAMED.findall(file.read_text())}
        if "ROOM" not in path and not list(ROOT.glob(path))
    }
    assert missing == ELSEWHERE
