"""Tests that need an instruction set, skipped by name.

oneDNN fixes its limit at first use, so the matrix is processes: each row sets ONEDNN_MAX_CPU_ISA
and asks afterwards what it got. Nothing here asks the library; callers pass what it uses.
"""

from __future__ import annotations

import os

import pytest

from pyonednn_q.primitive.isa import InstructionSet

LIMIT_VARIABLE = "ONEDNN_MAX_CPU_ISA"
# The rows that CI runs.
MATRIX = ("SSE41", "AVX2", "AVX2_VNNI", "AVX512_CORE", "AVX512_CORE_VNNI", "AVX512_CORE_AMX")


def takes(isa: InstructionSet, dtype: str) -> bool:
    """Tell whether dense primitives take sources of a floating type."""
    wanted = {"bf16": "AVX512_CORE", "f16": "AVX512_CORE_FP16"}.get(dtype, "SSE41")
    return isa.has(wanted) or isa.has("AVX2_VNNI_2")


def limit() -> str | None:
    """Return the limit that this process was started with, if any."""
    name = os.environ.get(LIMIT_VARIABLE, "").upper()
    return None if name in {"", "ALL", "DEFAULT"} else name


def reason_to_skip(isa: InstructionSet, wanted: str) -> str | None:
    """Say why a test that needs ``wanted`` cannot run; None if it can."""
    if isa.has(wanted):
        return None
    asked = limit()
    cause = f" ({LIMIT_VARIABLE}={asked})" if asked else ""
    return f"needs {wanted}; this process runs {isa.text()}{cause}"


def skip_without(isa: InstructionSet, wanted: str) -> None:
    """Skip the running test when the instruction set lacks ``wanted``."""
    reason = reason_to_skip(isa, wanted)
    if reason is not None:
        pytest.skip(reason)


def reason_row_is_unavailable(isa: InstructionSet, row: str) -> str | None:
    """Say why a matrix row tests nothing here: the limit was asked for, the machine stops lower."""
    if isa.text() == InstructionSet.of(row).text():
        return None
    return f"row {row}: the machine or the library stops at {isa.text()}"
