"""What an implementation's name says, and the order of instruction sets."""

from __future__ import annotations

import re
from typing import Literal

from pyonednn_q.errors import ArgumentError

Class = Literal["jit", "gemm", "reference", "unknown"]

# The bits of dnnl_cpu_isa_t: a set includes another when it has all of its bits. They do not form
# one line: AVX2_VNNI is no part of AVX512_CORE.
_BITS = {
    "SSE41": 0x1,
    "AVX": 0x3,
    "AVX2": 0x7,
    "AVX2_VNNI": 0xF,
    "AVX2_VNNI_2": 0x1F,
    "AVX512_CORE": 0x27,
    "AVX512_CORE_VNNI": 0x67,
    "AVX512_CORE_BF16": 0xE7,
    "AVX512_CORE_FP16": 0x1EF,
    "AVX512_CORE_AMX": 0xFEF,
    "AVX512_CORE_AMX_FP16": 0x1FEF,
    "AVX10_2": 0x201FF,
    "AVX10_2_AMX_2": 0x22FFF,
}

# Newer spellings of the same sets, and the answer of oneDNN on a machine without SSE4.1.
_ALIASES = {
    "AVX10_1_512": 0x1EF,
    "AVX10_1_512_AMX": 0xFEF,
    "AVX10_1_512_AMX_FP16": 0x1FEF,
    "AVX10_2_512": 0x201FF,
    "AVX10_2_512_AMX_2": 0x22FFF,
    "DEFAULT": 0x0,
}

ISA_ORDER = tuple(_BITS)

# "brgemm" is no gemm; "ref" is a word of its own or the start of one (ref_int8).
_REFERENCE = re.compile(r"(?:^|[:+_])ref")
_GEMM = re.compile(r"(?<!br)gemm")
_JIT = re.compile(r"jit|brg|brdgmm")
# Kernels written for AVX-512 without VNNI stay so on any machine; those for SSE4.1 and AVX2 use the
# 256-bit VNNI where there is one.
_BARE_AVX512 = re.compile(r":avx512_core(?:\+|$)")
_UP_TO_AVX2 = re.compile(r":(?:sse41|avx2)(?:\+|$)")
_FUSED = "ref_fused_convolution:"


def classify(impl_name: str, kind: str = "") -> Class:
    """Return what kind of code an implementation is.

    Parameters
    ----------
    impl_name : str
        As oneDNN reports it. May be empty: a 1x1 deconvolution on AVX2, when its descriptor comes
        from the library's cache.
    kind : str
        Of the problem, where it matters: a "simple" concat copies memory, a "simple" reorder goes
        from element to element.

    Returns
    -------
    {"jit", "gemm", "reference", "unknown"}
        Generated code; a matrix product with separate steps around it (about 20 times slower);
        plain loops (1 000 times and more).

    Examples
    --------
    >>> classify("brg_conv_fwd:avx512_core_amx"), classify("conv:any+x64:gemm_s8u8s32:jit")
    ('jit', 'gemm')
    >>> classify("conv:any+ref:any"), classify("ref_fused_convolution:any:brgconv_1x1:brdgmm_dw")
    ('reference', 'jit')
    """
    name = impl_name.removeprefix(_FUSED)  # two kernels in a row, called ref although neither is
    if _REFERENCE.search(name) or (kind == "reorder" and name.startswith("simple")):
        return "reference"
    if _GEMM.search(name):
        return "gemm"
    return "jit" if _JIT.search(name) else "unknown"


def at_least(isa: str, level: str) -> bool:
    """Tell whether instruction set `isa` includes `level`.

    Raises
    ------
    ArgumentError
        No such instruction set.

    Examples
    --------
    >>> at_least("AVX512_CORE_AMX", "AVX2_VNNI"), at_least("AVX512_CORE_VNNI", "AVX2_VNNI")
    (True, False)
    """
    needed = _bits(level)
    return _bits(isa) & needed == needed


def has_vnni(isa: str, impl: str | None = None) -> bool:
    """Tell whether products of 8-bit values are summed in 32 bits, without saturation in 16.

    Parameters
    ----------
    isa : str
        What the machine has.
    impl : str, optional
        The implementation: far down its list, oneDNN offers kernels that do without.

    Examples
    --------
    >>> has_vnni("AVX512_CORE_VNNI"), has_vnni("AVX512_CORE_VNNI", "brg_matmul:avx512_core")
    (True, False)
    """
    if impl is not None and _BARE_AVX512.search(impl):
        return False
    if impl is not None and _UP_TO_AVX2.search(impl):
        return at_least(isa, "AVX2_VNNI")
    return at_least(isa, "AVX2_VNNI") or at_least(isa, "AVX512_CORE_VNNI")


def has_amx(isa: str) -> bool:
    """Tell whether there are AMX tiles."""
    return at_least(isa, "AVX512_CORE_AMX")


def _bits(isa: str) -> int:
    known = _BITS.get(isa, _ALIASES.get(isa))
    if known is not None:
        return known
    # A set newer than this table comes as UNKNOWN_<dnnl_cpu_isa_t>: its bits say what it includes.
    number = isa.removeprefix("UNKNOWN_")
    if isa.startswith("UNKNOWN_") and number.isdecimal():
        return int(number)
    raise ArgumentError(argument="isa", got=repr(isa), wanted=f"one of {', '.join(ISA_ORDER)}")
