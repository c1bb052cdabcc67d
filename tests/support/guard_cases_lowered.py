"""What the hunt found on AMX and beside it, as `guard_cases` has it: wrong, and right beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyonednn_q.primitive.problem import ConvProblem, MatMulProblem, Problem
from pyonednn_q.primitive.tensor import TensorSpec
from support.fault_problems import few_columns, rows_in_padding
from support.guard_cases import (
    AMX,
    AVX2_VNNI,
    CONV_AMX,
    CONV_AVX2,
    CONV_OLDER,
    CONV_VNNI,
    MATMUL_AMX,
    OLD,
    PLAIN,
    SRC_POINT,
    VNNI,
    binary,
)

BEYOND: dict[str, Any] = {"padding": ((0, 0), (0, 1))}  # which no window reaches
BF16: dict[str, Any] = {"src": "bf16", "wei": "bf16", "dst": "f32"}
CONV_BF16, MATMUL_VNNI = "brg_conv_fwd:avx512_core_bf16", "brg_matmul:avx512_core_vnni"


def few_channels(channels: int, columns: int = 3, **more: Any) -> ConvProblem:
    """A 3-D convolution of one plane under two, few channels."""
    src, padding = (1, channels, 1, 3, 6), ((1, 0), (0, 0), (1, 1))
    types = {"src": "u8", "dst": "s32"} | more
    return ConvProblem.of(src, (16, channels, 2, 2, columns), padding=padding, **types)


def in_steps(channels: int, kernel: int, columns: int, **more: Any) -> ConvProblem:
    """A 2-D convolution whose columns lie in steps of the kernel's."""
    src, wei = (1, channels, 3, kernel * columns), (16, channels, 1, kernel)
    return ConvProblem.of(src, wei, stride=(1, kernel), **{"dst": "s32", **more})


def skipping(stride: tuple[int, ...] = (4, 2, 1)) -> ConvProblem:
    """A 3-D convolution whose stride passes over planes, unless another is given."""
    wei, padding = (33, 129, 1, 3, 3), (0, 2, 0)
    return ConvProblem.of((1, 129, 6, 5, 5), wei, dst="s32", stride=stride, padding=padding)


def as_columns(k: int, dtype: str = "u8") -> MatMulProblem:
    """Batches of one row each that are stored as columns."""
    wei = "s8" if dtype == "u8" else dtype
    problem = MatMulProblem.of((2, 1, k), (1, k, 33), src=dtype, wei=wei, dst="f32")
    return replace(problem, src=TensorSpec((2, 1, k), dtype, (k, 1, 1)))


def single_channel(strides: tuple[int, ...] = (9, 1, 1), images: int = 2) -> ConvProblem:
    """A 1x1 convolution of floats into one channel."""
    types: Any = {"src": "f32", "wei": "f32", "dst": "f32", "layout": "dense"}
    problem = ConvProblem.of((images, 3, 9), (1, 3, 1), **types)
    return replace(problem, dst=TensorSpec((images, 1, 9), "f32", strides))


def swapped(strides: tuple[int, ...] = (30, 60, 2, 1)) -> MatMulProblem:
    """A product of batches that lie the other way round in dst."""
    problem = MatMulProblem.of((2, 3, 15, 7), (1, 3, 7, 2), dst="f32")
    return replace(problem, dst=TensorSpec((2, 3, 15, 2), "f32", strides))


LOWERED: list[tuple[str, Problem, Any, Any, str, str]] = [
    *(
        ("conv-rows-in-padding-src-zero-point", problem, SRC_POINT, OLD, AMX, CONV_OLDER)
        for problem in (rows_in_padding(3, 2, 2, 4), rows_in_padding(7, 1, 2, 6))
    ),
    *(
        ("few-channels-one-plane", problem, PLAIN, OLD, AMX, CONV_AMX)
        for problem in (
            few_channels(1),
            few_channels(17),
            few_channels(28),
            few_channels(3, **BF16),
        )
    ),
    *(
        ("conv-columns-as-channels", problem, PLAIN, OLD, AMX, CONV_AMX)
        for problem in (in_steps(48, 4, 3), in_steps(16, 8, 2), in_steps(16, 4, 2, **BF16))
    ),
    ("conv-one-column-as-channels", in_steps(32, 8, 1), PLAIN, OLD, VNNI, CONV_VNNI),
    ("conv-one-column-as-channels", in_steps(24, 4, 1, **BF16), PLAIN, OLD, AMX, CONV_BF16),
    ("conv-one-column-as-channels", in_steps(20, 16, 1, **BEYOND), PLAIN, OLD, VNNI, CONV_VNNI),
    ("conv-columns-as-channels", in_steps(32, 8, 2, **BEYOND), PLAIN, OLD, AMX, CONV_AMX),
    ("conv-rows-skipped", skipping(), PLAIN, OLD, AMX, CONV_AMX),
    *(
        ("matmul-batch-of-ragged-rows", problem, PLAIN, OLD, AMX, MATMUL_AMX)
        for problem in (as_columns(3), as_columns(49), as_columns(3, "bf16"))
    ),
    (
        "conv-pointwise-single-channel",
        single_channel(),
        PLAIN,
        OLD,
        VNNI,
        "jit_uni_ncsp_convolution:matmul+brg_matmul:avx512_core",
    ),
    ("matmul-batches-swapped", swapped(), binary(1, 1, 1, 2), OLD, VNNI, "gemm:jit"),
    ("conv-padding-left-over", few_columns(5), PLAIN, OLD, AVX2_VNNI, CONV_AVX2),
]

LOWERED_RIGHT: list[tuple[Problem, Any, Any, str, str]] = [
    *(
        (rows_in_padding(3, 2, lo, hi), SRC_POINT, OLD, AMX, CONV_OLDER)
        for lo, hi in ((2, 3), (2, 2), (1, 4))
    ),
    (rows_in_padding(3, 2, 2, 4), SRC_POINT, OLD, AMX, CONV_AMX),
    *((few_channels(channels), PLAIN, OLD, AMX, CONV_AMX) for channels in (4, 8, 16, 32, 33, 64)),
    (few_channels(17), PLAIN, OLD, AMX, "jit_int8:avx512_core_vnni"),
    (few_channels(17), PLAIN, OLD, VNNI, CONV_VNNI),
    *((in_steps(ic, 4, 3), PLAIN, OLD, AMX, CONV_AMX) for ic in (16, 33, 40, 47, 64, 96)),
    (in_steps(32, 8, 2), PLAIN, OLD, VNNI, CONV_VNNI),
    (skipping((1, 2, 1)), PLAIN, OLD, AMX, CONV_AMX),
    (skipping(), PLAIN, OLD, VNNI, CONV_VNNI),
    *((as_columns(k), PLAIN, OLD, AMX, MATMUL_AMX) for k in (4, 64)),
    (as_columns(49), PLAIN, OLD, VNNI, MATMUL_VNNI),
    (single_channel((9, 9, 1)), PLAIN, OLD, VNNI, "jit_uni_ncsp_convolution:matmul"),
    (single_channel(images=1), PLAIN, OLD, VNNI, "jit_uni_ncsp_convolution:matmul"),
    (swapped(), PLAIN, OLD, VNNI, "gemm:jit"),
    (swapped((90, 30, 2, 1)), binary(1, 1, 1, 2), OLD, VNNI, "gemm:jit"),
]
