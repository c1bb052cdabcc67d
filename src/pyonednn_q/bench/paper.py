"""The peak on paper: operations a cycle of a core, times cores, times the clock.

A core is taken to start two vector instructions a cycle that multiply, the most that any x86-64
core does; those that start one have half the peak. An operation is a multiplication or an addition,
so one that is fused counts twice.

====================================  =================================  ========================
multiplied                            by                                 operations a cycle
====================================  =================================  ========================
f32 (bf16, f16 where nothing below)   FMA, or a mul and an add (SSE4.1)  4 · lanes of 4 bytes
bf16                                  vdpbf16ps                          4 · lanes of 2 bytes
f16                                   vfmadd of AVX512_FP16              4 · lanes of 2 bytes
u8, s8                                vpdpbusd (VNNI)                    4 · lanes of 1 byte
u8, s8                                vpmaddubsw and vpmaddwd            2 · lanes of 1 byte
bf16, f16                             tdpbf16ps, tdpfp16ps (AMX)         1024
u8, s8                                tdpbusd (AMX)                      2048
====================================  =================================  ========================

Lanes are those of 64 bytes with AVX-512, else of 32 with AVX2, else of 16. The clock is measured by
multiplications that wait for each other (three cycles each), since guests of a hypervisor are not
told it; a core that slows down for wide vectors has less. Cores are physical ones where the kernel
tells which CPUs share one, and no more than there are threads.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pyonednn_q.native import runtime

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyonednn_q.primitive.isa import InstructionSet

__all__ = ["clock_ghz", "cores", "paper_gops"]

_CPUS = Path("/sys/devices/system/cpu")
_UNITS = 2
_OPS = 2  # a multiplication and an addition


def ops_a_cycle(isa: InstructionSet, multiplied: str) -> int:
    """Return the largest number of operations that a core does in a cycle.

    Parameters
    ----------
    isa : InstructionSet
        Instruction set that kernels may use.
    multiplied : str
        The types that are multiplied: "f32", "bf16", "f16", or those of src and weights: "u8s8".

    Examples
    --------
    >>> from pyonednn_q.primitive.isa import InstructionSet
    >>> skylake, sapphire = InstructionSet("AVX512_CORE"), InstructionSet("AVX512_CORE_AMX")
    >>> [ops_a_cycle(skylake, types) for types in ("f32", "bf16", "u8s8")]
    [64, 64, 128]
    >>> [ops_a_cycle(sapphire, types) for types in ("f32", "bf16", "u8s8")]
    [64, 1024, 2048]
    """
    width = 64 if isa.has_avx512() else 32 if isa.has("AVX2") else 16
    if multiplied[:2] in {"u8", "s8"}:
        if isa.has_amx():
            return 2048
        return width * _OPS * _UNITS // (1 if isa.has_vnni() else 2)
    if multiplied in {"bf16", "f16"}:
        tile = "AVX512_CORE_AMX" if multiplied == "bf16" else "AVX512_CORE_AMX_FP16"
        if isa.has(tile):
            return 1024
        if isa.has("AVX512_CORE_BF16" if multiplied == "bf16" else "AVX512_CORE_FP16"):
            return width // 2 * _OPS * _UNITS
    return width // 4 * _OPS * _UNITS


def paper_gops(
    isa: InstructionSet, multiplied: Iterable[str], cores: int, clock: float
) -> tuple[tuple[str, float], ...]:
    """Return the peak of each pair of types, in operations a nanosecond; none without a clock."""
    if not clock:
        return ()
    return tuple((types, ops_a_cycle(isa, types) * cores * clock) for types in multiplied)


def clock_ghz() -> float:
    """Return the clock of a core in GHz, as measured now; 0 where it cannot be."""
    hz: float = runtime.extension().clock_hz()
    return hz / 1e9


def cores(threads: int) -> int:
    """Return the number of physical cores for that many threads in this process, at least 1."""
    shared = {_siblings(cpu) for cpu in os.sched_getaffinity(0)}
    return max(min(threads, len(shared)), 1)


def _siblings(cpu: int) -> str:
    try:
        return (_CPUS / f"cpu{cpu}" / "topology" / "thread_siblings_list").read_text().strip()
    except OSError:
        return str(cpu)
