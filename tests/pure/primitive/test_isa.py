"""Instruction sets: what levels include, and processes on processors that are not at hand."""

from __future__ import annotations

from itertools import pairwise

import pytest

from pyonednn_q.errors import ArgumentError
from pyonednn_q.primitive.isa import ISA_ORDER, InstructionSet

# What makers say of their processors, by the kernel's names, as far as it matters here.
FLAGS = {
    "Zen 4": "avx2 avx512f avx512bw avx512vl avx512dq avx512vbmi avx512_vnni avx512_bf16",
    "Zen 5": "avx2 avx512f avx512bw avx512vl avx512dq avx512vbmi avx512_vnni avx512_bf16 avx_vnni",
    "Ice Lake": "avx2 avx512f avx512bw avx512vl avx512dq avx512vbmi avx512_vnni",
    "Cooper Lake": "avx2 avx512f avx512bw avx512vl avx512dq avx512_vnni avx512_bf16",
    "Alder Lake": "avx2 avx_vnni",
    "Arrow Lake": "avx2 avx_vnni avx_vnni_int8 avx_ne_convert",
    "Sapphire Rapids": "avx2 avx512f avx512bw avx512vl avx512dq avx512vbmi avx512_vnni avx512_bf16"
    " avx512_fp16 avx_vnni amx_tile amx_int8 amx_bf16",
}
# What oneDNN 3.13 answers under each limit; with * its rules for AVX2_VNNI (a limit that includes
# it, AVX2, and the processor's AVX_VNNI) hold as well.
ANSWERS = """
limit          Zen 4    Zen 5       Ice Lake Cooper Lake Alder Lake Arrow Lake   Sapphire Rapids
-              BF16     BF16*       VNNI     BF16        AVX2_VNNI* AVX2_VNNI_2* AMX*
SSE41          SSE41    SSE41       SSE41    SSE41       SSE41      SSE41        SSE41
AVX            AVX      AVX         AVX      AVX         AVX        AVX          AVX
AVX2           AVX2     AVX2        AVX2     AVX2        AVX2       AVX2         AVX2
AVX2_VNNI      AVX2     AVX2_VNNI*  AVX2     AVX2        AVX2_VNNI* AVX2_VNNI*   AVX2_VNNI*
AVX2_VNNI_2    AVX2     AVX2_VNNI*  AVX2     AVX2        AVX2_VNNI* AVX2_VNNI_2* AVX2_VNNI*
CORE           CORE     CORE        CORE     CORE        AVX2       AVX2         CORE
VNNI           VNNI     VNNI        VNNI     VNNI        AVX2       AVX2         VNNI
BF16           BF16     BF16        VNNI     BF16        AVX2       AVX2         BF16
FP16           BF16     BF16*       VNNI     BF16        AVX2_VNNI* AVX2_VNNI*   FP16*
AMX            BF16     BF16*       VNNI     BF16        AVX2_VNNI* AVX2_VNNI*   AMX*
AMX_FP16       BF16     BF16*       VNNI     BF16        AVX2_VNNI* AVX2_VNNI*   AMX*
AVX10_2        BF16     BF16*       VNNI     BF16        AVX2_VNNI* AVX2_VNNI_2* FP16*
AVX10_2_AMX_2  BF16     BF16*       VNNI     BF16        AVX2_VNNI* AVX2_VNNI_2* AMX*
"""
FULL = {"CORE": "AVX512_CORE"} | {
    name: f"AVX512_CORE_{name}" for name in ("VNNI", "BF16", "FP16", "AMX", "AMX_FP16")
}
# On whose answers sums in pairs cannot saturate: in kernels that are preferred, in those named
# avx512_core, and in those named sse41 or avx2 (with * only).
EXACT = {"VNNI", "BF16", "FP16", "AMX", "AVX2_VNNI", "AVX2_VNNI_2"}
TABLE = [
    (cpu, limit, answer)
    for limit, *answers in map(str.split, ANSWERS.strip().splitlines()[1:])
    for cpu, answer in zip(FLAGS, answers, strict=True)
]


@pytest.mark.parametrize(("cpu", "limit", "cell"), TABLE)
def test_a_process_on_each_processor_under_each_limit(cpu: str, limit: str, cell: str) -> None:
    answer, asked = cell.removesuffix("*"), None if limit == "-" else FULL.get(limit, limit)
    level, flags = FULL.get(answer, answer), FLAGS[cpu].split()
    isa = InstructionSet.of_process(level, asked, flags)
    assert (isa.level, isa.vex_vnni) == (level, cell.endswith("*"))
    assert isa.vbmi is (cpu in {"Zen 4", "Zen 5", "Ice Lake", "Sapphire Rapids"})
    assert isa.has_vnni() is (answer in EXACT)
    assert not isa.has_vnni("brg_conv_fwd:avx512_core")
    for impl in ("jit_uni_int8:sse41", "jit_uni_int8:avx2", "jit_uni_int8_1x1:avx2+conv:avx2"):
        assert isa.has_vnni(impl) is cell.endswith("*")
    assert isa.has_vnni("x64:gemm_s8u8s32:jit") is (answer in EXACT)
    assert isa.has("AVX2_VNNI") is cell.endswith("*")
    assert isa.has_avx512() is (answer in FULL)
    assert isa.has_amx() is (answer == "AMX")
    assert isa.is_beyond_avx2() is (answer not in {"SSE41", "AVX", "AVX2"})
    beside = cell == "BF16*"
    assert isa.text() == level + ("+AVX_VNNI" if beside else "")
    named = InstructionSet.of(isa.text())
    assert (named.level, named.vex_vnni, named.vbmi) == (level, cell.endswith("*"), None)


@pytest.mark.parametrize("limit", ["", "default", "ALL", "avx512_core_fp61", "AVX10_1_512"])
def test_limits_that_leave_zen_5_its_vnni(limit: str) -> None:
    """OneDNN looks at no case, and passes over names that it does not know."""
    assert InstructionSet.of_process("AVX512_CORE_BF16", limit, FLAGS["Zen 5"].split()).vex_vnni


def test_a_limit_in_small_letters() -> None:
    flags = FLAGS["Zen 5"].split()
    assert not InstructionSet.of_process("AVX512_CORE_VNNI", "avx512_core_vnni", flags).vex_vnni


def test_features_are_told() -> None:
    flags = FLAGS["Zen 5"].split()
    zen5 = InstructionSet.of_process("AVX512_CORE_BF16", None, flags)
    assert zen5.features() == ("AVX_VNNI", "AVX512_VNNI", "AVX512_VBMI")
    assert InstructionSet.of_process("AVX2", "AVX2", flags).features() == ()  # VBMI without use
    assert InstructionSet("AVX512_CORE_AMX").features() == ("AVX_VNNI", "AVX512_VNNI", "AMX")


def test_levels_include_each_other_by_their_bits() -> None:
    chain = ("SSE41", "AVX", "AVX2", "AVX512_CORE", "AVX512_CORE_VNNI", "AVX512_CORE_BF16")
    for below, above in pairwise(chain):
        assert InstructionSet(above).has(below)
        assert not InstructionSet(below).has(above)
    assert all(InstructionSet(isa).has(isa) for isa in ISA_ORDER)
    assert not InstructionSet("AVX512_CORE_BF16").has("AVX2_VNNI")
    assert InstructionSet("AVX512_CORE_FP16").has("AVX2_VNNI")
    assert not InstructionSet("AVX2_VNNI_2").has("AVX512_CORE")


def test_vnni_and_amx() -> None:
    without = {"SSE41", "AVX", "AVX2", "AVX512_CORE"}
    assert {isa for isa in ISA_ORDER if not InstructionSet(isa).has_vnni()} == without
    amx = {"AVX512_CORE_AMX", "AVX512_CORE_AMX_FP16", "AVX10_2_AMX_2"}
    assert {isa for isa in ISA_ORDER if InstructionSet(isa).has_amx()} == amx


def test_aliases_and_newer_levels_are_understood_by_their_bits() -> None:
    assert InstructionSet("AVX10_1_512_AMX") == InstructionSet("AVX512_CORE_AMX")
    assert InstructionSet(f"UNKNOWN_{0x1022FFF}").has_amx()
    assert InstructionSet(f"UNKNOWN_{0x1022FFF}").text() == f"UNKNOWN_{0x1022FFF}"
    assert not InstructionSet("UNKNOWN_7").has_vnni()
    assert not InstructionSet("DEFAULT").has("SSE41")


@pytest.mark.parametrize("name", ["avx2", "", "UNKNOWN_", "UNKNOWN_x", "AVX3", "+AVX_VNNI"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ArgumentError, match=r"^isa: got .*AVX512_CORE_VNNI"):
        InstructionSet.of(name)
    with pytest.raises(ArgumentError):
        InstructionSet("AVX2").has(name)


def test_what_is_no_name_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"^isa: got int; wanted a name"):
        InstructionSet.of(7)  # type: ignore[arg-type]


def test_order_lists_every_level_after_those_it_includes() -> None:
    for index, isa in enumerate(ISA_ORDER):
        assert not any(InstructionSet(earlier).has(isa) for earlier in ISA_ORDER[:index])


@pytest.mark.parametrize(
    ("level", "impl", "vnni"),
    [
        ("AVX512_CORE_AMX", "brg_matmul:avx10_1_512_amx", True),
        ("AVX512_CORE_AMX", "brg_deconv:avx512_core+brgconv_1x1:avx512_core", False),
        ("AVX512_CORE_AMX", "brg_deconv:avx512_core_vnni+brgconv_1x1:avx512_core_vnni", True),
        ("AVX2_VNNI", "brg_conv_fwd:avx2_vnni", True),
        ("AVX512_CORE", "x64:gemm_s8u8s32:jit", False),
    ],
)
def test_vnni_by_implementation(level: str, impl: str, *, vnni: bool) -> None:
    assert InstructionSet(level).has_vnni(impl) is vnni
