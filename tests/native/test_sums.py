"""Weights that the kernel about to run does not sum exactly are refused, and shown to be wrong."""

from __future__ import annotations

import numpy as np

from pyonednn_q.native import runtime
from pyonednn_q.native.sums import inexact_weights, may_saturate
from pyonednn_q.primitive.attr import Attr
from pyonednn_q.primitive.problem import MatMulProblem
from support import unguarded
from support.isa import skip_without

BARE = "brg_matmul:avx512_core"


def test_a_kernel_without_vnni_saturates_on_a_processor_with_it() -> None:
    skip_without(runtime.isa(), "AVX512_CORE_VNNI")
    problem = MatMulProblem.of((2, 8), (8, 3), dst="s32")
    src, wei = np.full((2, 8), 255, np.uint8), np.full((8, 3), 100, np.int8)
    results = dict(unguarded.results(problem, Attr(), {"src": src, "wei": wei}, {}))
    assert (results[BARE] == 4 * 32767).all()
    error = inexact_weights(problem, Attr(), BARE, wei)
    assert error is not None
    assert error.channels == (0, 1, 2)
    assert BARE in str(error)
    assert inexact_weights(problem, Attr(), "brg_matmul:avx512_core_vnni", wei) is None


def test_reference_loops_and_other_types_are_exact() -> None:
    problem = MatMulProblem.of((2, 8), (8, 3))
    assert not may_saturate(problem, "ref:any")
    assert not may_saturate(MatMulProblem.of((2, 8), (8, 3), src="f32", wei="f32"), BARE)
    assert may_saturate(problem, BARE)
