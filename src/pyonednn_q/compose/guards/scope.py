"""Where the faults of the guard table lie: versions, instruction sets and names."""

from __future__ import annotations

from pyonednn_q.compose.implementation import at_least, has_amx, has_vnni

__all__ = [
    "AFTER_3_7",
    "AMX",
    "BEFORE_3_13",
    "CONV",
    "DECONV",
    "DENSE",
    "FAST",
    "FLOOR",
    "JIT",
    "MATMUL",
    "STRIDED",
    "any_isa",
    "avx512",
    "bare_avx512",
    "from_avx2",
    "has_amx",
    "has_avx2_vnni",
    "has_vnni",
    "up_to_avx2",
    "vector",
    "ymm",
]

FLOOR = (3, 7, 0)
AFTER_3_7 = (3, 8, 0)  # seen in 3.13, not in 3.7
BEFORE_3_13 = (3, 13, 0)  # seen in 3.7, not in 3.13

CONV = ("convolution",)
DECONV = ("deconvolution",)
MATMUL = ("matmul",)
DENSE = ("convolution", "deconvolution", "inner_product", "matmul")

# Patterns of names. Reference loops are right unless a row has no pattern; "gemm:jit" is a gemm.
FAST = r"brg|brdgmm|jit|gemm"
JIT = r"^(?!.*(?<!br)gemm).*(?:brg|brdgmm|jit)"
AMX = r"amx"
STRIDED = r"brgconv_strided"  # the kernel in a deconvolution by brgemm


def any_isa(isa: str) -> bool:  # noqa: ARG001
    """Every level."""
    return True


def vector(isa: str) -> bool:
    """Every level above plain AVX2."""
    return has_avx2_vnni(isa) or avx512(isa)


def avx512(isa: str) -> bool:
    """Every AVX-512 level, AVX10 and AMX included."""
    return at_least(isa, "AVX512_CORE")


def bare_avx512(isa: str) -> bool:
    """AVX-512 without VNNI."""
    return avx512(isa) and not at_least(isa, "AVX512_CORE_VNNI")


def up_to_avx2(isa: str) -> bool:
    """AVX2 and what is below."""
    return not vector(isa)


def from_avx2(isa: str) -> bool:
    """AVX2 and what includes it."""
    return at_least(isa, "AVX2")


def ymm(isa: str) -> bool:
    """AVX2, with VNNI or without, and nothing wider."""
    return from_avx2(isa) and not avx512(isa)


def has_avx2_vnni(isa: str) -> bool:
    """AVX2_VNNI and what includes it: AMX does, AVX512_CORE_VNNI does not."""
    return at_least(isa, "AVX2_VNNI")
