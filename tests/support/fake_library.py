"""Libraries made with a compiler, that look like oneDNN or do not."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

COMPILER = shutil.which("g++") or shutil.which("c++") or shutil.which("gcc")

FAKE = """
struct Version { int major, minor, patch; const char* hash; unsigned cpu_runtime, gpu_runtime; };
static const Version version = {%s, "cafe", %d, 0};
extern "C" const Version* dnnl_version() { return &version; }
"""


def build(path: Path, source: str, *options: str) -> Path:
    if COMPILER is None:
        pytest.skip("needs a C++ compiler to fake libraries")
    path.parent.mkdir(parents=True, exist_ok=True)
    text = path.with_suffix(".cpp")
    text.write_text(source)
    command = [
        COMPILER,
        "-shared",
        "-fPIC",
        "-xc++",
        str(text),
        "-xnone",
        "-o",
        str(path),
        *options,
    ]
    subprocess.run(command, check=True, capture_output=True)
    return path


def fake(path: Path, version: str = "3, 8, 1", runtime: int = 2, *options: str) -> Path:
    return build(path, FAKE % (version, runtime), f"-Wl,-soname,{path.name}", *options)
