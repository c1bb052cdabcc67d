"""Names of implementations."""

from __future__ import annotations

import pytest

from pyonednn_q.primitive.isa import classify

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
