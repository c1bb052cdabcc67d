"""Loops of our own at the widths of vectors that other CPUs have."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TESTS = ("test_requantize.py", "test_quantize.py", "test_cast.py")
WIDTH = """
import sys, pytest
from pyonednn_q.native import runtime
if runtime.core.vector_bits() != int(sys.argv[1]):
    sys.exit(f"vectors of {runtime.core.vector_bits()} bits")
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[2:]]))
"""


def run(isa: str, bits: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WIDTH, str(bits), *(str(HERE / name) for name in TESTS)],
        capture_output=True,
        text=True,
        timeout=600,
        env=os.environ | {"ONEDNN_MAX_CPU_ISA": isa},
        check=False,
    )


@pytest.mark.skipif("avx2" not in Path("/proc/cpuinfo").read_text(), reason="no AVX2 here")
def test_vectors_of_256_bits() -> None:
    done = run("avx2_vnni", 256)  # the library takes names in small letters, too
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr


def test_plain_loops() -> None:
    done = run("SSE41", 0)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
