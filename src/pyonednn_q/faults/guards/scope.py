"""Where the faults of the guard table lie: versions, instruction sets and names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyonednn_q.primitive.isa import InstructionSet

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
    "bare_avx512",
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


def any_isa(isa: InstructionSet) -> bool:  # noqa: ARG001
    """Every instruction set."""
    return True


def bare_avx512(isa: InstructionSet) -> bool:
    """AVX-512 without VNNI."""
    return isa.has_avx512() and not isa.has("AVX512_CORE_VNNI")


def ymm(isa: InstructionSet) -> bool:
    """AVX2, with VNNI or without, and nothing wider."""
    return isa.has("AVX2") and not isa.has_avx512()
