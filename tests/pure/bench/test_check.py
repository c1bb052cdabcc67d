"""The sums that `bench check` compares with, against the sums of the test oracle."""

from __future__ import annotations

import numpy as np
import pytest

from pyonednn_q.bench import check, suite
from pyonednn_q.bench.check import accumulate
from pyonednn_q.bench.precision import Precision
from pyonednn_q.bench.shape import Shape
from pyonednn_q.primitive.problem import ConvProblem, DeconvProblem
from support.oracle_convolution import convolve, deconvolve

TEXTS = [
    "conv 2x4x9x7 6x4x3x2 stride=2x1 padding=1:0x0:2 dilation=1x2",
    "conv 1x6x8 3x2x2x3 padding=1",
    "conv 1x6x5x6 6x1x1x3x3 padding=1",
    "conv 1x2x4x5x6 3x2x2x3x1 padding=0x1x0",
    "deconv 2x4x5x4 6x4x3x2 stride=2x1 padding=1:0x0 dilation=1x2",
    "deconv 1x6x5x5 3x1x2x4x4 stride=2 padding=1",
    "deconv 1x3x4x4 2x3x3x3 stride=2 padding=1 out=8x8",
    "deconv 1x2x3x3x3 2x2x2x2x2 stride=2",
    "deconv 1x2x5 2x2x1 stride=3",
]


@pytest.mark.parametrize("text", TEXTS)
def test_sums_are_those_of_the_oracle(text: str) -> None:
    shape = Shape.parse(text)
    rng = np.random.default_rng(0)
    src = rng.integers(0, 256, shape.src).astype(np.uint8)
    wei = rng.integers(-128, 128, shape.wei).astype(np.int8)
    problem = shape.problem(Precision.parse("u8s8s32"), "dense")
    values = (src.astype(np.float64), wei.astype(np.float64))
    if isinstance(problem, ConvProblem):
        wanted = convolve(*values, problem)
    else:
        assert isinstance(problem, DeconvProblem)
        wanted = deconvolve(*values, problem)
    assert np.array_equal(accumulate(shape, src, wei), wanted)


def test_products_of_matrices() -> None:
    src, wei = np.arange(12.0).reshape(2, 2, 3), np.arange(24.0).reshape(2, 3, 4)
    assert np.array_equal(accumulate(Shape.parse("matmul 2x2x3 2x3x4"), src, wei), src @ wei)
    flat = accumulate(Shape.parse("ip 2x2x3 4x2x3"), src, wei.reshape(4, 2, 3))
    assert np.array_equal(flat, src.reshape(2, 6) @ wei.reshape(4, 6).T)


@pytest.mark.parametrize("name", suite.names())
def test_cut_down_lines_keep_what_makes_them(name: str) -> None:
    for line in suite.find(name).lines:
        shape, small = line.shape, check.reduced(line.shape)
        assert small.kind == shape.kind
        assert (small.stride, small.dilation) == (shape.stride, shape.dilation)
        assert small.padding == shape.padding
        assert small.has_two_sources == shape.has_two_sources
        assert small.has_groups == shape.has_groups
        if shape.kind in {"conv", "deconv"}:
            spatial = len(shape.src) - 2
            assert small.wei[-spatial:] == shape.wei[-spatial:]
        else:
            assert small.wei[-1] % 64 == shape.wei[-1] % 64 or shape.kind == "ip"
        assert small.macs <= min(shape.macs, 10**9)
        # Where the image is small the line is as it was.
        assert small.macs < shape.macs or small == shape
