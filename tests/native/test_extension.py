"""The extension itself: it brings no oneDNN, and says so when it has none."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pyonednn_q as pq
from pyonednn_q.native import runtime


def python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_it_loads_no_onednn() -> None:
    code = """
        from pathlib import Path
        from pyonednn_q import _core
        print("libdnnl" in Path("/proc/self/maps").read_text())
        """
    assert python(code) == "False\n"


def test_without_a_library_every_entry_is_a_typed_error() -> None:
    code = """
        from pyonednn_q import _core
        from pyonednn_q.errors import LibraryError
        calls = [_core.version, _core.effective_isa, lambda: _core.limit_isa("AVX2"),
                 _core.get_num_threads, lambda: _core.set_num_threads(1)]
        for call in calls:
            try:
                call()
            except LibraryError as error:
                assert "load(path)" in str(error)
                print("refused")
        """
    assert python(code) == "refused\n" * 5


def test_a_second_library_is_refused_and_the_same_one_is_not() -> None:
    code = f"""
        from pyonednn_q.native import runtime
        from pyonednn_q.errors import LibraryError
        core = runtime.core
        core.load({runtime.loaded().path!r})
        try:
            core.load("/nowhere/libdnnl.so.3")
        except LibraryError as error:
            print("already in use" in str(error))
        """
    assert python(code) == "True\n"


def test_a_file_that_is_not_onednn_is_refused() -> None:
    code = """
        import math, ctypes
        from pyonednn_q import _core
        from pyonednn_q.errors import LibraryError
        for path in ("/nowhere/libdnnl.so.3", "libm.so.6"):
            try:
                _core.load(path)
            except LibraryError as error:
                print(error)
        """
    nowhere, libm = python(code).splitlines()
    assert "cannot open shared object file" in nowhere
    assert "has no function dnnl_version" in libm


def test_versions_agree() -> None:
    assert runtime.core.__version__ == pq.__version__
