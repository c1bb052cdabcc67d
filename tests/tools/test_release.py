"""What wheels are made by: sources with checksums, and what a finished wheel is asked."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from release import onednn
from support.fake_library import build, fake

if TYPE_CHECKING:
    from types import ModuleType

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]


def project() -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return table


def archive(path: Path, text: str = "hello") -> str:
    """Write an archive of sources, and return its checksum."""
    with tarfile.open(path, "w:xz") as files:
        about = tarfile.TarInfo("oneDNN-1/README")
        about.size = len(text)
        files.addfile(about, io.BytesIO(text.encode()))
    return onednn.digest(path)


def test_the_library_has_every_primitive_that_the_extension_makes() -> None:
    called = (ROOT / "src/cpp/library.hpp").read_text()
    made = re.findall(r"X\((\w+?)(?:_forward)?_primitive_desc_create\)", called)
    assert len(made) > 10
    assert {name.upper() for name in made} <= set(onednn.PRIMITIVES)


def test_releases_have_checksums_and_the_preferred_one_is_newer_than_the_floor() -> None:
    releases = tomllib.loads((ROOT / "tools/release/releases.toml").read_text())["release"]
    assert all(re.fullmatch("[0-9a-f]{64}", each["sha256"]) for each in releases)
    versions = [tuple(map(int, each["version"].split("."))) for each in releases]
    assert versions == sorted(versions, reverse=True)
    assert versions[-1] >= (3, 7)


def test_only_a_wheel_without_onednn_depends_on_one() -> None:
    settings = project()["tool"]["scikit-build"]
    without = settings["metadata"]["dependencies"]["result"]
    (override,) = (each for each in settings["overrides"] if "env" in each["if"])
    assert "PYONEDNN_Q_BUNDLE" in override["if"]["env"]
    carrying = override["metadata"]["dependencies"]["result"]
    wheel = project()["project"]["optional-dependencies"]["sycl"]
    assert without == carrying + wheel
    assert not any(line.startswith("onednn") for line in carrying)


def test_cibuildwheel_calls_what_is_there() -> None:
    settings = project()["tool"]["cibuildwheel"]
    for command in (settings["linux"]["before-all"], settings["linux"]["repair-wheel-command"]):
        (program,) = re.findall(r"tools/release/\w+\.py", command)
        assert (ROOT / program).exists()
    (version,) = re.findall(r"--version ([\d.]+)", settings["linux"]["before-all"])
    releases = tomllib.loads((ROOT / "tools/release/releases.toml").read_text())["release"]
    assert version == releases[0]["version"]


def test_sources_that_are_not_what_they_should_be_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "sources.tar.xz"
    sha256 = archive(path)
    assert onednn.given(str(path), sha256, tmp_path).sha256 == sha256
    with pytest.raises(onednn.SourceError, match=f"SHA-256 {sha256}, not 0123"):
        onednn.given(str(path), "0123", tmp_path)
    with pytest.raises(onednn.SourceError, match="there is no"):
        onednn.given(str(tmp_path / "nothing"), None, tmp_path)


def test_a_directory_of_sources_has_a_checksum(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "src").mkdir(parents=True)
    (tree / "src" / "a.cpp").write_text("int a;")
    before = onednn.given(str(tree), None, tmp_path).sha256
    (tree / ".git").mkdir()
    (tree / ".git" / "index").write_text("not a source")
    assert onednn.digest(tree) == before
    (tree / "src" / "a.cpp").rename(tree / "src" / "b.cpp")
    assert onednn.digest(tree) != before


def test_the_next_release_is_taken_loudly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    there = tmp_path / "there.tar.xz"
    sha256 = archive(there)
    text = "".join(
        f'[[release]]\nversion = "{version}"\nurl = "{path.as_uri()}"\nsha256 = "{sha256}"\n'
        for version, path in (("3.99.0", tmp_path / "gone.tar.xz"), ("3.9.0", there))
    )
    (tmp_path / "releases.toml").write_text(text)
    monkeypatch.setattr(onednn, "HERE", tmp_path)
    cache = tmp_path / "cache"
    cache.mkdir()
    found = onednn.released(None, cache)
    assert found.origin == there.as_uri()
    said = capsys.readouterr().err
    assert "WARNING: oneDNN 3.99.0 cannot be had" in said
    assert "will carry oneDNN 3.9.0 instead" in said
    with pytest.raises(onednn.SourceError, match=r"3\.99\.0 cannot be had"):
        onednn.released("3.99.0", cache)
    with pytest.raises(onednn.SourceError, match=r"no oneDNN 3\.1, but 3\.99\.0, 3\.9\.0"):
        onednn.released("3.1", cache)


@pytest.fixture(scope="module")
def wheels() -> ModuleType:
    pytest.importorskip("elftools", reason="pyelftools is not installed")
    from release import wheel

    return wheel


GOMP = "libgomp-0a1b.so.1.0.0"


@pytest.fixture(scope="module")
def fit(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Files of a wheel that all questions are answered for."""
    work = tmp_path_factory.mktemp("fit")
    gomp = build(work / GOMP, "int gomp = 1;", f"-Wl,-soname,{GOMP}")
    quiet = ("-Wl,--no-as-needed", f"-L{work}", f"-l:{GOMP}")
    search = "-Wl,-rpath,$ORIGIN/../../pyonednn_q.libs"
    library = fake(work / "libdnnl_pyonednn_q.so.3", "3, 9, 0", 2, *quiet, search)
    licenses = (
        *("oneDNN/LICENSE", "oneDNN/THIRD-PARTY-PROGRAMS"),
        *("libgomp/COPYING3", "libgomp/COPYING.RUNTIME", "libgomp/README.md"),
    )
    return {
        "pyonednn_q/lib/libdnnl_pyonednn_q.so.3": library.read_bytes(),
        "pyonednn_q/lib/onednn.json": json.dumps({"onednn": "3.9.0", "sources": "here"}).encode(),
        f"pyonednn_q.libs/{GOMP}": gomp.read_bytes(),
        "pyonednn_q-1.dist-info/METADATA": b"Name: pyonednn_q\nRequires-Dist: numpy\n"
        b"Requires-Dist: onednn; extra == 'sycl'\n\n",
        **{f"pyonednn_q/lib/licenses/{name}": b"text" for name in licenses},
    }


def asked(
    wheels: ModuleType, files: dict[str, bytes], place: Path, tag: str = "manylinux_2_28"
) -> str:
    path = place / f"pyonednn_q-1-cp311-cp311-{tag}_x86_64.whl"
    with zipfile.ZipFile(path, "w") as written:
        for name, content in files.items():
            written.writestr(name, content)
    return "\n".join(wheels.questions(path))


def test_a_fit_wheel_has_no_finding(
    wheels: ModuleType, fit: dict[str, bytes], tmp_path: Path
) -> None:
    assert asked(wheels, fit, tmp_path) == ""


LIBRARY = "pyonednn_q/lib/libdnnl_pyonednn_q.so.3"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({LIBRARY: None}, f"does not carry {LIBRARY}"),
        ({"pyonednn_q.libs/libdnnl-1.so": b""}, "has 2 files of an oneDNN, not one"),
        ({f"pyonednn_q.libs/{GOMP}": None}, "has 0 files of an OpenMP runtime"),
        ({"pyonednn_q/lib/licenses/oneDNN/LICENSE": None}, "lacks pyonednn_q/lib/licenses"),
        (
            {"pyonednn_q-1.dist-info/METADATA": b"Requires-Dist: onednn>=2025\n\n"},
            "requires onednn",
        ),
        ({"pyonednn_q/lib/padding": b"0" * 30_000_001}, "more than 30000000"),
    ],
)
def test_a_wheel_that_lacks_something_is_found(
    change: dict[str, bytes | None],
    said: str,
    wheels: ModuleType,
    fit: dict[str, bytes],
    tmp_path: Path,
) -> None:
    files = {name: content for name, content in (fit | change).items() if content is not None}
    if b"" in files.values():  # a second library, like the first
        files = {name: content or fit[LIBRARY] for name, content in files.items()}
    assert said in asked(wheels, files, tmp_path)


@pytest.mark.parametrize(
    ("options", "source", "said"),
    [
        (("-Wl,-rpath,/usr/lib",), "", "looks for its OpenMP runtime in"),
        (("-Wl,-soname,libdnnl.so.3",), "", "has the soname 'libdnnl.so.3'"),
        (("-l:libother.so.7",), "", "needs libother.so.7"),
        (
            (),
            "template <class T> int* one() { static int all; return &all; } int* p = one<int>();",
            "shares symbols with the whole process",
        ),
    ],
)
def test_a_library_that_others_could_meet_is_found(
    options: tuple[str, ...],
    source: str,
    said: str,
    wheels: ModuleType,
    fit: dict[str, bytes],
    tmp_path: Path,
) -> None:
    build(tmp_path / GOMP, "int gomp = 1;", f"-Wl,-soname,{GOMP}")
    build(tmp_path / "libother.so.7", "int other = 1;", "-Wl,-soname,libother.so.7")
    soname = "-Wl,-soname,libdnnl_pyonednn_q.so.3"
    search = "-Wl,-rpath,$ORIGIN/../../pyonednn_q.libs"
    rest = ("-Wl,--no-as-needed", f"-L{tmp_path}", f"-l:{GOMP}")
    fixed = [*([] if "rpath" in str(options) else [search]), soname, *rest]
    library = build(tmp_path / "made.so", source or "int a;", *fixed, *options)
    assert said in asked(wheels, fit | {LIBRARY: library.read_bytes()}, tmp_path)


def test_a_wheel_for_one_machine_is_found(
    wheels: ModuleType, fit: dict[str, bytes], tmp_path: Path
) -> None:
    assert "no manylinux tag" in asked(wheels, fit, tmp_path, tag="linux")


def test_programs_say_what_they_do() -> None:
    for name in ("onednn", "routes"):
        command = [sys.executable, str(ROOT / "tools" / "release" / f"{name}.py"), "--help"]
        assert "usage" in subprocess.run(command, capture_output=True, text=True, check=True).stdout
