"""Names of implementations and the order of instruction sets."""

from __future__ import annotations

from itertools import pairwise

import pytest

from pyonednn_q.compose import implementation
from pyonednn_q.compose.implementation import ISA_ORDER, at_least, classify, has_amx, has_vnni
from pyonednn_q.errors import ArgumentError

# Names that oneDNN 3.7 and 3.13 were seen to report.
NAMES = {
    "jit": (
        "brg_conv_fwd:avx512_core_amx",
        "brgconv_1x1:avx10_1_512_amx",
        "brdgmm_dw:avx512_core_vnni",
        "jit_int8:avx512_core",
        "jit_uni_int8_1x1:avx2",
        "brg_deconv:avx512_core_vnni+brgconv_strided:avx512_core_vnni",
        "jit_deconvolution:avx2+jit_uni_int8_1x1:avx2",
        "brg_matmul:avx512_core_amx",
        "brgemm:avx512_core_vnni",
        "jit:uni",
        "ref_fused_convolution:any:brgconv_1x1:avx512_core:brdgmm_dw:avx512_core",
    ),
    "gemm": (
        "gemm:jit",
        "x64:gemm_s8u8s32:jit",
        "conv:any+x64:gemm_s8s8s32:jit",
    ),
    "reference": ("ref:any", "ref_int8:any", "conv:any+ref:any"),
    "unknown": ("", "simple:any"),
}


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for kind, names in NAMES.items() for name in names]
)
def test_names_are_classified(name: str, kind: str) -> None:
    assert classify(name) == kind


def test_simple_is_slow_in_a_reorder() -> None:
    assert classify("simple:any", "reorder") == "reference"
    assert classify("simple:any", "concat") == "unknown"
    assert classify("jit:uni", "reorder") == "jit"


def test_sets_include_each_other_by_their_bits() -> None:
    chain = ("SSE41", "AVX", "AVX2", "AVX512_CORE", "AVX512_CORE_VNNI", "AVX512_CORE_BF16")
    for below, above in pairwise(chain):
        assert at_least(above, below)
        assert not at_least(below, above)
    assert all(at_least(isa, isa) for isa in ISA_ORDER)
    assert not at_least("AVX512_CORE_BF16", "AVX2_VNNI")
    assert at_least("AVX512_CORE_FP16", "AVX2_VNNI")
    assert not at_least("AVX2_VNNI_2", "AVX512_CORE")


def test_vnni_and_amx() -> None:
    without = {"SSE41", "AVX", "AVX2", "AVX512_CORE"}
    assert {isa for isa in ISA_ORDER if not has_vnni(isa)} == without
    amx = {"AVX512_CORE_AMX", "AVX512_CORE_AMX_FP16", "AVX10_2_AMX_2"}
    assert {isa for isa in ISA_ORDER if has_amx(isa)} == amx


def test_aliases_and_newer_sets_are_understood_by_their_bits() -> None:
    assert at_least("AVX10_1_512_AMX", "AVX512_CORE_AMX")
    assert at_least("AVX512_CORE_AMX", "AVX10_1_512_AMX")
    assert has_amx(f"UNKNOWN_{0x1022FFF}")
    assert not has_vnni("UNKNOWN_7")
    assert not at_least("DEFAULT", "SSE41")


@pytest.mark.parametrize("name", ["avx2", "", "UNKNOWN_", "UNKNOWN_x", "AVX3"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ArgumentError, match=r"^isa: got .*AVX512_CORE_VNNI"):
        has_vnni(name)
    with pytest.raises(ArgumentError):
        at_least("AVX2", name)


def test_order_lists_every_set_after_those_it_includes() -> None:
    for index, isa in enumerate(implementation.ISA_ORDER):
        assert not any(at_least(earlier, isa) for earlier in implementation.ISA_ORDER[:index])


@pytest.mark.parametrize(
    ("isa", "impl", "vnni"),
    [
        ("AVX512_CORE_AMX", "brg_matmul:avx10_1_512_amx", True),
        ("AVX512_CORE_AMX", "brg_matmul:avx512_core", False),
        ("AVX512_CORE_AMX", "brg_deconv:avx512_core+brgconv_1x1:avx512_core", False),
        ("AVX512_CORE_AMX", "brg_deconv:avx512_core_vnni+brgconv_1x1:avx512_core_vnni", True),
        ("AVX512_CORE_AMX", "jit_uni_int8:sse41", True),
        ("AVX2_VNNI", "jit_uni_int8:sse41", True),
        ("AVX512_CORE_VNNI", "jit_uni_int8:sse41", False),
        ("AVX512_CORE_VNNI", "jit_uni_int8:avx2", False),
        ("AVX512_CORE_VNNI", "x64:gemm_s8u8s32:jit", True),
        ("AVX512_CORE", "brg_conv_fwd:avx512_core", False),
    ],
)
def test_kernels_may_do_without_the_vnni_of_the_machine(isa: str, impl: str, vnni: bool) -> None:
    assert has_vnni(isa, impl) is vnni
