"""Facts that decide which kernel runs: version, runtime, instruction set; names of kernels.

oneDNN names the highest level that it may use, but more decides which code runs. Its kernels for
SSE4.1 and AVX2 use the 256-bit VNNI (AVX_VNNI) wherever there is one. Some processors have it
beside an AVX-512 level that does not include it (AMD Zen 5). A limit below the levels that include
it takes it away again.

Examples
--------
>>> InstructionSet("AVX512_CORE_BF16").has("AVX2_VNNI")
False
>>> zen5 = InstructionSet("AVX512_CORE_BF16", vex_vnni=True)
>>> zen5.has("AVX2_VNNI"), zen5.text()
(True, 'AVX512_CORE_BF16+AVX_VNNI')
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal

from pyonednn_q.argument import flag, instance
from pyonednn_q.errors import ArgumentError
from pyonednn_q.shown import shown

# The bits of dnnl_cpu_isa_t: a level includes another when it has all of its bits. They do not
# form one line: AVX2_VNNI is no part of AVX512_CORE.
_BITS = {
    "DEFAULT": 0x0,  # oneDNN's answer on a machine without SSE4.1
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
_ALIASES = {
    "AVX10_1_512": "AVX512_CORE_FP16",
    "AVX10_1_512_AMX": "AVX512_CORE_AMX",
    "AVX10_1_512_AMX_FP16": "AVX512_CORE_AMX_FP16",
    "AVX10_2_512": "AVX10_2",
    "AVX10_2_512_AMX_2": "AVX10_2_AMX_2",
}
_VEX_VNNI = 0x8
_AND_VEX_VNNI = "+AVX_VNNI"

ISA_ORDER = tuple(name for name in _BITS if name != "DEFAULT")

# Kernels written for AVX-512 without VNNI stay so on any machine; those for SSE4.1 and AVX2 use the
# 256-bit VNNI where there is one.
_BARE_AVX512 = re.compile(r":avx512_core(?:\+|$)")
_UP_TO_AVX2 = re.compile(r":(?:sse41|avx2)(?:\+|$)")


@dataclass(frozen=True, slots=True)
class InstructionSet:
    """Features of the processor that kernels of oneDNN may use in a process.

    Parameters
    ----------
    level : str
        The highest level that the library may use, as in ``ONEDNN_MAX_CPU_ISA``; or
        ``UNKNOWN_<bits>``, as it comes from a newer library.
    vex_vnni : bool
        Whether the library may use AVX_VNNI, which is so wherever the level includes it.
    vbmi : bool, optional
        Whether the processor has AVX512_VBMI, which no limit takes away; None: not known.

    Attributes
    ----------
    bits : int
        Those of dnnl_cpu_isa_t that stand for what kernels find: the level's, and AVX_VNNI's.

    Raises
    ------
    ArgumentError
        No such level.
    """

    level: str
    vex_vnni: bool = False
    vbmi: bool | None = None
    bits: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Give each level its one name."""
        instance("level", self.level, str)
        flag("vex_vnni", self.vex_vnni)
        if self.vbmi is not None:
            flag("vbmi", self.vbmi)
        bits = _bits(self.level)
        named = {known: name for name, known in _BITS.items()}
        object.__setattr__(self, "level", named.get(bits, self.level))
        object.__setattr__(self, "vex_vnni", self.vex_vnni or _includes(bits, _VEX_VNNI))
        object.__setattr__(self, "bits", bits | _VEX_VNNI * self.vex_vnni)

    @classmethod
    def of(cls, isa: InstructionSet | str) -> InstructionSet:
        """Return an instruction set itself, or the one that a name stands for.

        A name is a level: that of a process on a processor that has no more than this. What
        `text` returns is a name, too.

        Raises
        ------
        ArgumentError
            No such name.

        Examples
        --------
        >>> InstructionSet.of("AVX512_CORE_BF16+AVX_VNNI")
        InstructionSet(level='AVX512_CORE_BF16', vex_vnni=True, vbmi=None)
        """
        if isinstance(isa, InstructionSet):
            return isa
        if not isinstance(isa, str):
            raise ArgumentError("isa", type(isa).__name__, "a name or an InstructionSet")
        return cls(isa.removesuffix(_AND_VEX_VNNI), isa.endswith(_AND_VEX_VNNI))

    @classmethod
    def of_process(cls, answer: str, limit: str | None, flags: Collection[str]) -> InstructionSet:
        """Return the instruction set that a process may use.

        Parameters
        ----------
        answer : str
            Result of ``dnnl_get_effective_cpu_isa``.
        limit : str, optional
            Value of ``ONEDNN_MAX_CPU_ISA`` or of `limit_isa`; a name that oneDNN does not know
            limits nothing.
        flags : collection of str
            Flags of the processor, by Linux' names: ``avx_vnni`` and ``avx512vbmi`` are read.
        """
        name = (limit or "").upper()
        name = _ALIASES.get(name, name)
        allowed = _includes(_BITS.get(name) or _VEX_VNNI, _VEX_VNNI)
        present = "avx_vnni" in flags and cls(answer).has("AVX2")
        return cls(answer, allowed and present, "avx512vbmi" in flags)

    def text(self) -> str:
        """Return the level, and AVX_VNNI where the level does not include it."""
        beside = self.vex_vnni and not _includes(_bits(self.level), _VEX_VNNI)
        return self.level + (_AND_VEX_VNNI if beside else "")

    def features(self) -> tuple[str, ...]:
        """Return the features that decide how 8-bit products are summed."""
        present = {
            "AVX_VNNI": self.vex_vnni,
            "AVX512_VNNI": self.has("AVX512_CORE_VNNI"),
            "AVX512_VBMI": self.vbmi and self.has_avx512(),
            "AMX": self.has_amx(),
        }
        return tuple(name for name, is_there in present.items() if is_there)

    def has(self, level: str) -> bool:
        """Tell whether code for a level can run.

        Raises
        ------
        ArgumentError
            No such level.
        """
        instance("level", level, str)
        needed = _bits(level)
        return self.bits & needed == needed

    def has_avx512(self) -> bool:
        """Tell whether there is AVX-512, as there is at each level from AVX512_CORE on."""
        return self.has("AVX512_CORE")

    def has_amx(self) -> bool:
        """Tell whether there are AMX tiles."""
        return self.has("AVX512_CORE_AMX")

    def is_beyond_avx2(self) -> bool:
        """Tell whether there is AVX-512, or VNNI for AVX2."""
        return self.vex_vnni or self.has_avx512()

    def has_vnni(self, impl: str = "") -> bool:
        """Tell whether products of 8-bit values are summed in 32 bits, without saturation in 16.

        Parameters
        ----------
        impl : str
            The implementation: far down its list, oneDNN offers kernels that do without. Empty: any
            that is preferred.

        Examples
        --------
        >>> zen4 = InstructionSet("AVX512_CORE_BF16")
        >>> zen4.has_vnni(), zen4.has_vnni("brg_matmul:avx512_core")
        (True, False)
        """
        if _BARE_AVX512.search(impl):
            return False
        if _UP_TO_AVX2.search(impl):
            return self.vex_vnni
        return self.vex_vnni or self.has("AVX512_CORE_VNNI")


def _includes(bits: int, needed: int) -> bool:
    return bits & needed == needed


def _bits(level: str) -> int:
    known = _BITS.get(_ALIASES.get(level, level))
    if known is not None:
        return known
    # A newer level than these comes as UNKNOWN_<dnnl_cpu_isa_t>: its bits say what it includes.
    number = level.removeprefix("UNKNOWN_")
    if level.startswith("UNKNOWN_") and number.isdecimal() and len(number) < 20:
        return int(number)
    raise ArgumentError(argument="isa", got=shown(level), wanted=f"one of {', '.join(ISA_ORDER)}")


_Class = Literal["jit", "gemm", "reference", "unknown"]

# "brgemm" is no gemm; "ref" is a word of its own or the start of one (ref_int8).
_REFERENCE = re.compile(r"(?:^|[:+_])ref")
_GEMM = re.compile(r"(?<!br)gemm")
_JIT = re.compile(r"jit|brg|brdgmm")
_FUSED = "ref_fused_convolution:"


def classify(impl_name: str, kind: str = "") -> _Class:
    """Return the kind of code that an implementation is.

    Parameters
    ----------
    impl_name : str
        Name in oneDNN's notation. May be empty: a 1x1 deconvolution on AVX2, when its descriptor
        comes from the library's cache.
    kind : str
        Kind of the problem, where it matters: a "simple" concat copies memory, a "simple" reorder
        goes from element to element.

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
    instance("impl_name", impl_name, str)
    instance("kind", kind, str)
    name = impl_name.removeprefix(_FUSED)  # two kernels in a row, called ref although neither is
    if _REFERENCE.search(name) or (kind == "reorder" and name.startswith("simple")):
        return "reference"
    if _GEMM.search(name):
        return "gemm"
    return "jit" if _JIT.search(name) else "unknown"


Version = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about oneDNN in a process.

    Parameters
    ----------
    version : (int, int, int)
        Version of the loaded oneDNN.
    isa : InstructionSet
        Instruction set that kernels find there; a name stands for one, as `InstructionSet.of` takes
        it.
    runtime : str
        SEQ, OMP, TBB, THREADPOOL or SYCL.
    """

    version: Version
    isa: InstructionSet
    runtime: str

    def __post_init__(self) -> None:
        """Take a name, too."""
        object.__setattr__(self, "isa", InstructionSet.of(self.isa))
