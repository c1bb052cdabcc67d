"""Finding and opening oneDNN: the order, the wheels' dependencies, and every way to be broken.

Libraries are faked with a compiler, and opened in a child process: a fake must not become the
oneDNN of this one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import pyonednn_q
from pyonednn_q.errors import LibraryError, OneDNNError
from pyonednn_q.native import library, runtime, selection
from pyonednn_q.primitive.attr import Attr
from pyonednn_q.primitive.problem import MatMulProblem
from support.fake_library import build, fake

CHILD = """
import json, os, sys
from pyonednn_q.primitive.attr import Attr
from pyonednn_q.primitive.problem import MatMulProblem
from pyonednn_q.errors import LibraryError, OneDNNError
from pyonednn_q.native import library, runtime, selection
exec(sys.argv[1])
try:
    found = library.load()
    answer = {"path": found.path, "source": found.source, "version": found.version,
              "runtime": found.runtime, "ocl": os.environ.get("OCL_ICD_FILENAMES")}
except LibraryError as error:
    answer = {"error": str(error), "tried": error.tried}
print(json.dumps(answer))
"""


def load_in_child(
    prelude: str = "", *, paths: tuple[Path, ...] = (), **environment: str
) -> dict[str, Any]:
    clean = {name: value for name, value in os.environ.items() if name != library.VARIABLE}
    clean.pop("OCL_ICD_FILENAMES", None)
    search = os.pathsep.join([*map(str, paths), clean.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    command = [sys.executable, "-c", CHILD, prelude]
    child = subprocess.run(
        command,
        env={**clean, "PYTHONPATH": search, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    answer = json.loads(child.stdout.splitlines()[-1])
    assert isinstance(answer, dict)
    return answer


def install(site: Path, name: str, files: list[Path], requires: tuple[str, ...] = ()) -> None:
    """Write what pip writes: metadata, and a record of files relative to the site directory."""
    info = site / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    lines = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0"]
    lines += [f"Requires-Dist: {required}" for required in requires]
    (info / "METADATA").write_text("\n".join(lines) + "\n")
    record = [os.path.relpath(file, site) for file in files] + [f"{info.name}/METADATA"]
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in record))


def without_wheel(root: Path) -> Path:
    """Return a directory whose onednn "wheel" is recorded but empty, which hides a real one."""
    site = root / "no_wheel"
    install(site, "onednn", [])
    return site


def test_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(library.VARIABLE, raising=False)
    sources = [candidate.source for candidate in library.find()]
    assert sources == ["bundled", "build", "wheel onednn", "system", "system"]


@pytest.mark.parametrize("given", ["lib/libdnnl.so", "/opt/lib/libdnnl.so", "~/libdnnl.so"])
def test_the_variable_is_exclusive(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(library.VARIABLE, given)
    (candidate,) = library.find()
    assert candidate.source == library.VARIABLE
    assert Path(candidate.path).is_absolute()
    assert candidate.path.endswith(given.lstrip("~"))


def test_the_variable_may_name_a_soname(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(library.VARIABLE, "libdnnl.so.3")
    assert library.find()[0].path == "libdnnl.so.3"


def test_an_asked_for_library_is_opened(tmp_path: Path) -> None:
    path = fake(tmp_path / "libfake.so.3")
    answer = load_in_child(PYONEDNN_Q_LIBDNNL=str(path))
    assert answer["path"] == str(path)
    assert answer["version"] == [3, 8, 1]
    assert answer["runtime"] == "OMP"


@pytest.mark.parametrize("version", ["3, 6, 9", "2, 9, 0", "4, 0, 0"])
def test_another_version_is_refused_by_name(version: str, tmp_path: Path) -> None:
    path = fake(tmp_path / "libfake.so.3", version)
    answer = load_in_child(PYONEDNN_Q_LIBDNNL=str(path))
    ((candidate, reason),) = answer["tried"]
    assert str(path) in candidate
    assert reason == f"is oneDNN {version.replace(', ', '.')}; {library.WANTED}"
    assert "doctor" in answer["error"]
    assert library.VARIABLE in answer["error"]


def test_another_library_is_refused(tmp_path: Path) -> None:
    path = build(tmp_path / "libother.so", 'extern "C" int something() { return 1; }')
    answer = load_in_child(PYONEDNN_Q_LIBDNNL=str(path))
    assert answer["tried"][0][1].startswith("has no function dnnl_version")


@pytest.mark.parametrize("content", [None, "", "not a library"])
def test_a_broken_file_is_one_error(content: str | None, tmp_path: Path) -> None:
    path = tmp_path / "libdnnl.so.3"
    if content is not None:
        path.write_text(content)
    answer = load_in_child(PYONEDNN_Q_LIBDNNL=str(path))
    assert len(answer["tried"]) == 1
    assert "libdnnl.so.3" in answer["tried"][0][1]


def test_every_failed_candidate_is_listed(tmp_path: Path) -> None:
    nothing_else = "library.extension_path = lambda: None; library._SYSTEM_NAMES = ('libno.so.3',)"
    answer = load_in_child(nothing_else, paths=(without_wheel(tmp_path),))
    places = ["bundled", "build", "wheel onednn", "system libno.so.3"]
    assert [name for name, _ in answer["tried"]] == places
    reasons = [reason for _, reason in answer["tried"]]
    assert reasons[0] == "the build put no oneDNN into the package"
    assert reasons[1] == "the build used no oneDNN CMake package"
    assert reasons[2] == "its file record lists no libdnnl.so.3"
    assert reasons[3].startswith("libno.so.3: cannot open shared object file")


def test_dependencies_come_from_the_wheels_that_are_required(tmp_path: Path) -> None:
    # libdnnl.so.3 needs libfast.so.1, which needs libdeep.so.1; neither knows where the other is.
    lib = tmp_path / "lib"
    quiet = ("-Wl,--no-as-needed", f"-L{lib}")
    deep = build(lib / "libdeep.so.1", "int deep = 1;", "-Wl,-soname,libdeep.so.1")
    fast = build(
        lib / "libfast.so.1", "int fast = 1;", *quiet, "-l:libdeep.so.1", "-Wl,-soname,libfast.so.1"
    )
    dnnl = fake(lib / "libdnnl.so.3", "3, 9, 0", 4, *quiet, "-l:libfast.so.1")
    site = tmp_path / "python" / "site"
    install(site, "onednn", [dnnl], ("fast-rt (>=1)",))
    install(site, "fast-rt", [fast], ("deep_rt==1.*; sys_platform == 'linux'", "onednn"))
    install(site, "deep-rt", [deep])
    answer = load_in_child(paths=(site,), PYONEDNN_Q_LIBDNNL=str(dnnl))
    assert answer.get("version") == [3, 9, 0], answer

    shutil.rmtree(site / "deep_rt-1.0.dist-info")
    answer = load_in_child(paths=(site,), PYONEDNN_Q_LIBDNNL=str(dnnl))
    assert "libdeep.so.1" in answer["tried"][0][1]


@pytest.mark.parametrize("set_by_user", [None, "/opt/other.so"])
def test_sycl_is_shown_the_wheels_cpu_driver(set_by_user: str | None, tmp_path: Path) -> None:
    dnnl = fake(tmp_path / "lib" / "libdnnl.so.3", "3, 13, 0", 512)
    driver = tmp_path / "lib" / "libintelocl.so"
    driver.touch()
    site = tmp_path / "site"
    install(site, "onednn", [dnnl, driver])
    environment = {"OCL_ICD_FILENAMES": set_by_user} if set_by_user else {}
    answer = load_in_child(paths=(site,), PYONEDNN_Q_LIBDNNL=str(dnnl), **environment)
    assert answer["runtime"] == "SYCL"
    assert answer["ocl"] == (set_by_user or str(driver))


def test_other_runtimes_leave_the_environment_alone(tmp_path: Path) -> None:
    dnnl = fake(tmp_path / "lib" / "libdnnl.so.3", "3, 13, 0", 2)
    answer = load_in_child(PYONEDNN_Q_LIBDNNL=str(dnnl))
    assert answer["ocl"] is None


def pretend_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record: str) -> None:
    (tmp_path / "_build.json").write_text(record)
    monkeypatch.setattr(library, "extension_path", lambda: tmp_path / "_core.so")
    monkeypatch.delenv(library.VARIABLE, raising=False)


def test_the_library_of_the_wheel_comes_before_that_of_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_build(tmp_path, monkeypatch, '{"library": "/gone/libdnnl.so"}')
    bundled, recorded, *_ = library.find()
    assert bundled.absent
    assert recorded == library.Candidate("build", "/gone/libdnnl.so")
    path = fake(tmp_path / "lib" / library.BUNDLED)
    assert library.find()[:2] == (library.Candidate("bundled", str(path)), recorded)


def test_the_library_of_the_wheel_is_opened(tmp_path: Path) -> None:
    path = fake(tmp_path / "lib" / library.BUNDLED)
    extension = tmp_path / "_core.so"
    prelude = f"from pathlib import Path; library.extension_path = lambda: Path({str(extension)!r})"
    answer = load_in_child(prelude)
    assert answer["source"] == "bundled"
    assert answer["path"] == str(path)
    asked = fake(tmp_path / "libasked.so.3", "3, 9, 0")
    answer = load_in_child(prelude, PYONEDNN_Q_LIBDNNL=str(asked))
    assert answer["source"] == library.VARIABLE


def test_a_library_that_is_gone_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = library.loaded()
    pretend_build(tmp_path, monkeypatch, '{"library": "/gone/libdnnl.so"}')
    found = library.find()
    monkeypatch.setattr(library, "find", lambda: (*found[:2], library.Candidate("next", here.path)))
    again = library.load()
    assert again.source == "next"
    assert again.version == here.version


@pytest.mark.parametrize("record", ["", "{", "[]", "{}", '{"library": null}'])
def test_a_build_record_without_a_library(
    record: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_build(tmp_path, monkeypatch, record)
    assert library.find()[1].absent


def test_no_extension_means_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "extension_path", lambda: None)
    assert library.build_record() == {}


def test_an_opener_that_objects_rejects_the_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    here = library.loaded()
    monkeypatch.setattr(library, "find", lambda: (library.Candidate("only", here.path),))

    def object_to(path: str) -> None:
        message = f"cannot use {Path(path).name}"
        raise LibraryError(message, ())

    with pytest.raises(LibraryError) as caught:
        library.load(object_to)
    assert caught.value.tried == ((f"only {here.path}", f"cannot use {Path(here.path).name}"),)
    opened: list[str] = []
    library.load(opened.append)
    assert opened == [here.path]


def test_the_extension_opened_what_was_found() -> None:
    from pyonednn_q.native import runtime

    assert runtime.version() == library.loaded().version


def test_the_extension_and_the_package_are_one_version() -> None:
    assert import_module("pyonednn_q._core").__version__ == pyonednn_q.__version__


def test_an_engine_that_cannot_be_created_says_what_its_driver_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OCL_ICD_FILENAMES", "/no/libintelocl.so")

    class Extension:
        def Candidate(self, *_: object) -> None:
            raise OneDNNError("invalid_arguments", "dnnl_engine_create", "", "")

    monkeypatch.setattr(runtime, "core", Extension)
    problem = MatMulProblem.of((2, 8), (8, 4))
    with pytest.raises(LibraryError, match="run something with pyonednn_q before") as caught:
        selection.first_candidate(problem, Attr())
    ((driver, why),) = caught.value.tried
    assert driver == "/no/libintelocl.so"
    assert "cannot open shared object file" in why
    monkeypatch.delenv("OCL_ICD_FILENAMES")
    assert library.no_engine("out_of_memory").tried == ()
