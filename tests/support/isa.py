"""Which ISA a test process runs, and tests that need one, skipped by name.

oneDNN fixes its ISA limit at first use, so the matrix is processes: each row sets
ONEDNN_MAX_CPU_ISA and asks afterwards what it got. Nothing here asks the library; callers pass
the effective name.
"""

from __future__ import annotations

import os

import pytest

LIMIT_VARIABLE = "ONEDNN_MAX_CPU_ISA"
# The rows that CI runs.
MATRIX = ("SSE41", "AVX2", "AVX2_VNNI", "AVX512_CORE", "AVX512_CORE_VNNI", "AVX512_CORE_AMX")
# Names that mean the same bits.
_ALIASES = {
    "AVX10_1_512": "AVX512_CORE_FP16",
    "AVX10_1_512_AMX": "AVX512_CORE_AMX",
    "AVX10_1_512_AMX_FP16": "AVX512_CORE_AMX_FP16",
    "AVX10_2_512": "AVX10_2",
    "AVX10_2_512_AMX_2": "AVX10_2_AMX_2",
}
# Each name with the names that it includes directly; inclusion is not a total order.
_INCLUDES: dict[str, tuple[str, ...]] = {
    "SSE41": (),
    "AVX": ("SSE41",),
    "AVX2": ("AVX",),
    "AVX2_VNNI": ("AVX2",),
    "AVX2_VNNI_2": ("AVX2_VNNI",),
    "AVX512_CORE": ("AVX2",),
    "AVX512_CORE_VNNI": ("AVX512_CORE",),
    "AVX512_CORE_BF16": ("AVX512_CORE_VNNI",),
    "AVX512_CORE_FP16": ("AVX512_CORE_BF16", "AVX2_VNNI"),
    "AVX512_CORE_AMX": ("AVX512_CORE_FP16",),
    "AVX512_CORE_AMX_FP16": ("AVX512_CORE_AMX",),
    "AVX10_2": ("AVX512_CORE_FP16", "AVX2_VNNI_2"),
    "AVX10_2_AMX_2": ("AVX10_2", "AVX512_CORE_AMX_FP16"),
}


def includes(isa: str, wanted: str) -> bool:
    """Tell whether an effective ISA contains another one."""
    isa, wanted = _ALIASES.get(isa, isa), _ALIASES.get(wanted, wanted)
    return isa == wanted or any(includes(part, wanted) for part in _INCLUDES.get(isa, ()))


def has_vnni(isa: str) -> bool:
    """Tell whether u8 x s8 products are summed in 32 bits: pairs cannot saturate."""
    return includes(isa, "AVX2_VNNI") or includes(isa, "AVX512_CORE_VNNI")


def has_amx(isa: str) -> bool:
    """Tell whether tile kernels can run."""
    return includes(isa, "AVX512_CORE_AMX")


def takes(isa: str, dtype: str) -> bool:
    """Tell whether dense primitives take sources of a floating type."""
    wanted = {"bf16": "AVX512_CORE", "f16": "AVX512_CORE_FP16"}.get(dtype, "SSE41")
    return includes(isa, wanted) or includes(isa, "AVX2_VNNI_2")


def limit() -> str | None:
    """Return the limit that this process was started with, if any."""
    name = os.environ.get(LIMIT_VARIABLE, "").upper()
    return None if name in {"", "ALL", "DEFAULT"} else name


def reason_to_skip(isa: str, wanted: str) -> str | None:
    """Say why a test that needs ``wanted`` cannot run on the effective ISA; None if it can."""
    if includes(isa, wanted):
        return None
    asked = limit()
    cause = f" ({LIMIT_VARIABLE}={asked})" if asked else ""
    return f"needs {wanted}; this process runs {isa}{cause}"


def needs(isa: str, wanted: str) -> pytest.MarkDecorator:
    """Mark a test that needs an ISA: skipped with the reason where it is missing."""
    reason = reason_to_skip(isa, wanted)
    return pytest.mark.skipif(reason is not None, reason=reason or "")


def skip_without(isa: str, wanted: str) -> None:
    """Skip the running test when the effective ISA lacks ``wanted``."""
    reason = reason_to_skip(isa, wanted)
    if reason is not None:
        pytest.skip(reason)


def reason_row_is_unavailable(isa: str, row: str) -> str | None:
    """Say why a matrix row tests nothing here: the limit was asked for, the machine stops lower."""
    if _ALIASES.get(isa, isa) == _ALIASES.get(row, row):
        return None
    return f"row {row}: the machine or the library stops at {isa}"
