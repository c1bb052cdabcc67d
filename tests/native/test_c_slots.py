"""The module of docs/c_slots.md compiles, and calls operators without a frame of Python."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pyonednn_q import MatMul, QParams
from pyonednn_q.errors import DTypeError
from support.frames import frames

if TYPE_CHECKING:
    from types import ModuleType

PAGE = Path(__file__).parents[2] / "docs" / "c_slots.md"


@pytest.fixture(scope="module")
def caller(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    compiler, headers = shutil.which("cc"), sysconfig.get_paths()["include"]
    if compiler is None or not (Path(headers) / "Python.h").exists():
        pytest.skip("no C compiler, or no headers of Python")
    (code,) = re.findall(r"```c\n(.*?)```", PAGE.read_text(), re.DOTALL)
    folder = tmp_path_factory.mktemp("caller")
    source, library = folder / "caller.c", folder / "caller.so"
    source.write_text(code)
    flags = ("-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", "-shared", "-fPIC")
    subprocess.run(
        [compiler, *flags, f"-I{headers}", str(source), "-o", str(library)], check=True, timeout=120
    )
    loader = ExtensionFileLoader("caller", str(library))
    spec = spec_from_file_location("caller", library, loader=loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.fixture
def operator() -> MatMul:
    wei = np.arange(-16, 16, dtype=np.int8).reshape(4, 8)
    q = QParams(0.5, 0, "u8")
    return MatMul(wei, src_q=q, wei_q=QParams(0.25, 0, "s8"), dst_q=QParams(1.0, 100, "u8"))


SRC = np.arange(8, dtype=np.uint8).reshape(2, 4)


def test_a_call_from_c_enters_no_python(caller: Any, operator: MatMul) -> None:
    want, dst = operator(SRC), np.zeros((2, 8), np.uint8)
    assert frames(lambda: caller.run(operator, SRC, dst, 3)) == []
    assert np.array_equal(dst, want)


def test_arrays_that_do_not_fit_take_the_way_of_python(caller: Any, operator: MatMul) -> None:
    """Another shape is prepared, another layout is copied."""
    dst = np.zeros((4, 8), np.uint8)
    caller.run(operator, np.vstack([SRC, SRC])[:, ::-1][:, ::-1], dst, 2)
    assert np.array_equal(dst, operator(np.vstack([SRC, SRC])))


def test_errors_come_back_and_nothing_leaks(caller: Any, operator: MatMul) -> None:
    dst = np.zeros((2, 8), np.uint8)
    caller.run(operator, SRC, dst, 10)
    before = sys.getrefcount(operator), sys.getrefcount(dst), sys.getrefcount(SRC)
    with pytest.raises(DTypeError, match="src"):
        caller.run(operator, SRC.astype(np.float64), dst, 1)
    caller.run(operator, SRC, dst, 1000)
    assert (sys.getrefcount(operator), sys.getrefcount(dst), sys.getrefcount(SRC)) == before
