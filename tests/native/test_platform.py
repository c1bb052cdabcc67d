"""What other platforms than Linux on x86-64 get: the reason, before anything else is tried."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pyonednn_q.errors import LibraryError
from pyonednn_q.native import library

ROOT = Path(__file__).parents[2]
OTHERS = [
    ("darwin", "arm64"),
    ("darwin", "x86_64"),
    ("win32", "AMD64"),
    ("linux", "aarch64"),
    ("linux", "ppc64le"),
]
REASON = "Linux on x86-64 only"


@pytest.mark.parametrize(("system", "machine"), OTHERS)
def test_a_call_is_refused_by_name(
    system: str, machine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    with pytest.raises(
        LibraryError, match=f"{REASON}, and this is {system} on {machine}"
    ) as caught:
        library.load()
    assert len(str(caught.value)) <= 500


def test_this_one_is_taken() -> None:
    library.check_platform()


@pytest.mark.parametrize(
    ("system", "machine"), [("Darwin", "arm64"), ("Windows", "AMD64"), ("Linux", "aarch64")]
)
def test_cmake_refuses_before_it_looks_for_a_compiler(
    system: str, machine: str, tmp_path: Path
) -> None:
    cmake = shutil.which("cmake")
    if cmake is None:
        pytest.skip("cmake is not installed")
    generator = "Unix Makefiles" if shutil.which("make") else "Ninja"
    done = subprocess.run(
        [
            *(cmake, "-G", generator, "-S", str(ROOT), "-B", str(tmp_path)),
            "-DCMAKE_CXX_COMPILER=/nonexistent",
            *(f"-DCMAKE_SYSTEM_NAME={system}", f"-DCMAKE_SYSTEM_PROCESSOR={machine}"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert f"This is {system} on {machine}" in done.stderr
    assert REASON in " ".join(done.stderr.split())
    assert "compiler" not in done.stdout + done.stderr


BUILD = """
import pathlib, platform, shutil, subprocess, sys, tempfile, zipfile  # before sys is another
from scikit_build_core.build import build_wheel, get_requires_for_build_wheel
sys.platform, platform.machine = sys.argv[1], lambda: sys.argv[2]
print("requires", get_requires_for_build_wheel())
build_wheel(sys.argv[3])
"""


@pytest.mark.parametrize(("system", "machine"), OTHERS)
def test_pip_says_it_before_it_fetches_or_compiles(
    system: str, machine: str, tmp_path: Path
) -> None:
    pytest.importorskip("scikit_build_core", reason="scikit-build-core is not installed")
    done = subprocess.run(
        [sys.executable, "-c", BUILD, system, machine, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    printed = done.stdout + done.stderr
    assert REASON in " ".join(printed.split())
    assert "requires []" in printed
    assert "Traceback" not in printed
    assert "Configuring CMake" not in printed
