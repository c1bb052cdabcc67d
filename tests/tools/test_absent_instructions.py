"""Computed instructions of AMX and AVX_VNNI beside plain C, and kernels that are made of them."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import absent_instructions
from support.isa import LIMIT_VARIABLE

CHECK = Path(__file__).parents[1] / "data/absent_instructions.c"
TARGETS = ("-mavx512f", "-mavxvnni", "-mamx-tile", "-mamx-int8", "-mamx-bf16")
# A product and an image of u8 codes, beside exact integers; what ran them is named.
CALLS = """
import numpy as np, pyonednn_q as pq
from pyonednn_q.native import runtime
print(runtime.isa().text())
rng = np.random.default_rng(5)
q = pq.QParams(1.0, 0, "u8"), pq.QParams(1.0, 0, "s8")
wei = rng.integers(-128, 128, (64, 64)).astype(np.int8)
for src in rng.integers(0, 256, (4, 33, 64)).astype(np.uint8):
    matmul = pq.MatMul(wei, src_q=q[0], wei_q=q[1], dst="s32")
    assert (matmul(src) == src.astype(np.int64) @ wei).all()
print(matmul.prepare(src.shape).primitive.impl)
wei = rng.integers(-128, 128, (32, 16, 3, 3)).astype(np.int8)
src = rng.integers(0, 256, (1, 16, 7, 9)).astype(np.uint8)
conv = pq.Conv(wei, src_q=q[0], wei_q=q[1], dst="s32")
dst = sum(
    np.einsum("nchw,oc->nohw", src[:, :, i : i + 5, j : j + 7].astype(np.int64), wei[:, :, i, j])
    for i in range(3)
    for j in range(3)
)
assert (conv(src) == dst).all()
print(conv.prepare(src.shape).primitive.impl)
"""


def flags() -> set[str]:
    """Return what Linux names of the processor."""
    try:
        return set(Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
    except OSError:
        return set()


@pytest.fixture(scope="module", autouse=True)
def _can_compute_them() -> None:
    """Skip where the processor has the instructions itself, or the tools to compute them lack."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        pytest.skip("only on Linux on x86-64")
    if any(shutil.which(name) is None for name in ("gcc", "objdump", "readelf")):
        pytest.skip("needs gcc and binutils")
    if "avx512_bf16" not in flags():
        pytest.skip("needs a processor with AVX512_BF16")
    if flags() & {"amx_tile", "avx_vnni"}:
        pytest.skip("the processor has AMX or AVX_VNNI itself")


@pytest.mark.parametrize("feature", ["amx", "avx_vnni"])
def test_each_instruction_is_what_the_manual_says(tmp_path: Path, feature: str) -> None:
    program = tmp_path / "check"
    compiled = subprocess.run(
        ["gcc", "-O1", *TARGETS, "-o", program, CHECK, "-lpthread", "-lm"],
        check=False,
        capture_output=True,
        text=True,
    )
    if "no such instruction" in compiled.stderr or "unrecognized" in compiled.stderr:
        pytest.skip("this gcc knows no AMX or AVX_VNNI")
    assert compiled.returncode == 0, compiled.stderr
    features = {"ABSENT_INSTRUCTIONS": feature, "LD_PRELOAD": str(absent_instructions.compiled())}
    ran = subprocess.run(
        [program, feature],
        check=False,
        env={**os.environ, **features},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.stdout.startswith("equal: "), ran.stdout + ran.stderr
    assert int(ran.stdout.split()[1]) > 1000
    other = {"amx": "avx_vnni", "avx_vnni": "amx"}[feature]
    without = subprocess.run(
        [program, other], check=False, env={**os.environ, **features}, capture_output=True
    )
    assert without.returncode < 0  # what was not asked for stays illegal
    assert b"no such instruction" in without.stderr


@pytest.mark.parametrize(
    ("level", "features", "kernels"),
    [("ALL", ("amx", "avx_vnni", "fp16"), "_amx"), ("AVX2_VNNI", ("avx_vnni",), ":avx2_vnni")],
)
def test_kernels_of_them_are_chosen_and_exact(
    level: str, features: tuple[str, ...], kernels: str
) -> None:
    variables = {**absent_instructions.environment(features), LIMIT_VARIABLE: level}
    ran = subprocess.run(
        [sys.executable, "-c", CALLS],
        check=False,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    isa, *impls = ran.stdout.split()
    assert isa.split("+")[0] == ("AVX512_CORE_AMX" if level == "ALL" else level)
    assert len(impls) == 2
    assert all(impl.endswith(kernels) for impl in impls), impls
