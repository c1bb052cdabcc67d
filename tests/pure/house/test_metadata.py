"""What packages, citations and environments say agrees with pyproject.toml, the one source."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pyonednn_q import dtypes
from pyonednn_q.errors import DTypeError
from pyonednn_q.shown import install

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[3]
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
VERSION = PROJECT["version"]


def test_every_file_that_names_the_version_names_this_one() -> None:
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == VERSION
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited is not None
    assert cited[1] == VERSION


def test_a_tag_is_the_version() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a clone")
    listed = subprocess.run(
        ["git", "tag", "--points-at", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    releases = [tag for tag in listed.stdout.split() if re.match(r"v\d", tag)]
    assert releases in ([], [f"v{VERSION}"])


def test_classifiers_name_every_python_from_the_oldest_on() -> None:
    oldest = int(PROJECT["requires-python"].removeprefix(">=3."))
    classifier = re.compile(r"Programming Language :: Python :: 3\.(\d+)")
    named = [int(match[1]) for each in PROJECT["classifiers"] if (match := classifier.match(each))]
    assert named == list(range(oldest, 15))


def test_the_citation_is_one() -> None:
    cffconvert = pytest.importorskip("cffconvert", reason="cffconvert is not installed")
    cffconvert.Citation((ROOT / "CITATION.cff").read_text()).validate()


def requirements(lines: str) -> dict[str, str]:
    """Return what stands after each name of a list of conda requirements."""
    listed = re.findall(
        r"^ +(?:- |then: )([a-z][\w-]*)(?: +([<>=][^#\n]*))?(?: *#.*)?$", lines, re.MULTILINE
    )
    return {name: bounds.strip() for name, bounds in listed}


def test_the_conda_recipe_asks_for_what_the_package_does() -> None:
    recipe = (ROOT / "recipe" / "recipe.yaml").read_text()
    assert re.findall(r'^  version: "(.*)"$', recipe, re.MULTILINE) == [VERSION]
    host, run = re.findall(r"^  (?:host|run):\n((?:    .*\n)+)", recipe, re.MULTILINE)
    # Of a wheel that carries oneDNN, which conda's stands for.
    (needed,) = (
        each["metadata"]["dependencies"]["result"]
        for each in PYPROJECT["tool"]["scikit-build"]["overrides"]
        if "env" in each["if"]
    )
    asked = {name_of(line): line.partition(";")[0] for line in needed}
    listed = {name: f"{name}{bounds}" for name, bounds in requirements(run).items()}
    assert {name: listed.pop(name, "") for name in asked} == asked
    assert set(listed) == {"onednn-cpu-omp", "python"}
    built_by = map(name_of, PYPROJECT["build-system"]["requires"])
    assert set(built_by) - {"onednn-devel"} <= set(requirements(host))
    assert requirements(host)["onednn-cpu-omp"] == requirements(run)["onednn-cpu-omp"]
    for line in PYPROJECT["build-system"]["requires"]:
        if (name := name_of(line)) in requirements(host):
            assert line == f"{name}{requirements(host)[name]}"


def name_of(requirement: str) -> str:
    return re.split(r"[^\w-]", requirement, maxsplit=1)[0]


def test_the_conda_environment_agrees_with_the_recipe() -> None:
    environment = requirements((ROOT / "environment.yml").read_text())
    assert environment["python"] == PROJECT["requires-python"]
    recipe = requirements((ROOT / "recipe" / "recipe.yaml").read_text())
    shared = set(recipe) - {"pyonednn_q", "python", "tomli"}
    assert shared >= {"cmake", "ml_dtypes", "msgspec", "ninja", "numpy", "onednn-cpu-omp"}
    assert {name: environment.get(name) for name in shared} == {
        name: recipe[name] for name in shared
    }


METADATA = [
    "numpy>=1.24",
    'scikit-learn>=1.3; extra == "demo"',
    'onnx; extra == "peers"',
    "torch; extra == 'peers'",
    "onednn>=2025.1; (sys_platform == 'linux' and python_version < '4') and extra == 'sycl'",
]


@pytest.mark.parametrize(
    ("extra", "command"),
    [
        ("demo", "pip install 'scikit-learn>=1.3'"),
        ("peers", "pip install onnx torch"),
        ("sycl", "pip install 'onednn>=2025.1'"),
    ],
)
def test_a_hint_names_packages_that_an_index_has(
    extra: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.metadata, "requires", lambda _: METADATA)
    assert install(extra) == command


def test_a_hint_of_sources_that_were_never_installed_names_their_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def requires(name: str) -> list[str]:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "requires", requires)
    assert install("demo") == f"pip install '{Path(dtypes.__file__).parents[2]}[demo]'"


def test_no_message_names_an_extra_of_a_package_that_no_index_has() -> None:
    """Hints come from `shown.install`."""
    sources = (ROOT / "src" / "pyonednn_q").rglob("*.py")
    assert [
        path.name for path in sources if re.search(r"pyonednn_q\[\w+\]", path.read_text())
    ] == []


def test_every_extra_that_is_hinted_at_exists() -> None:
    sources = (path.read_text() for path in (ROOT / "src" / "pyonednn_q").rglob("*.py"))
    hinted = {
        name for each in sources for name in re.findall(r"""\binstall\(["'](\w+)["']\)""", each)
    }
    assert {"bf16", "demo"} <= hinted <= set(PROJECT["optional-dependencies"])


def test_without_ml_dtypes_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dtypes, "_ml_dtypes", lambda: None)
    for name in ("bf16", "s4", "u4"):
        with pytest.raises(DTypeError, match=r"pip install .*(ml_dtypes|\[bf16\])"):
            dtypes.numpy_dtype(name)
    assert dtypes.numpy_dtype("f16").name == "float16"  # NumPy's own
