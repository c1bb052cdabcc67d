"""Ends of what a kernel may store: after a function, through every step that may follow it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import NoModelError
from pyonednn_q.expr.algs import ALGS
from pyonednn_q.predict.float_bounds import BOUNDS, ends, level
from pyonednn_q.predict.float_order import ORDERS, applied, destination
from pyonednn_q.predict.kernel_model import KernelModel
from pyonednn_q.predict.region import Proof, Region
from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.isa import InstructionSet
from pyonednn_q.primitive.post_ops import (
    BinaryPostOp,
    EltwisePostOp,
    PostOp,
    PReluPostOp,
    SumPostOp,
)
from pyonednn_q.primitive.problem import MatMulProblem
from pyonednn_q.primitive.tensor import TensorSpec

COUNT = 400
STEPS: dict[str, PostOp] = {
    "leaky relu": EltwisePostOp("relu", 0.3),
    "falling relu": EltwisePostOp("relu", -2.0),
    "linear": EltwisePostOp("linear", -1.3, 0.2),
    "clip": EltwisePostOp("clip", -0.2, 1.5),
    "abs": EltwisePostOp("abs"),
    "square": EltwisePostOp("square"),
    "hardswish": EltwisePostOp("hardswish", 1 / 6, 0.5),
    "hardsigmoid": EltwisePostOp("hardsigmoid", -0.4, 0.5),
    "sum": SumPostOp(-0.5),
    "mul": BinaryPostOp("mul", TensorSpec((1, COUNT), "f32")),
    "div": BinaryPostOp("div", TensorSpec((1, COUNT), "f32")),
    "max": BinaryPostOp("max", TensorSpec((1, COUNT), "f32")),
    "prelu": PReluPostOp(2),
    "swish": EltwisePostOp("swish", 1.0),
}


def setting(dst: str, *post_ops: PostOp) -> tuple[MatMulProblem, Attr, Any, dict[str, Any]]:
    rng = np.random.default_rng(0)
    problem = MatMulProblem.of((1, 4), (4, COUNT), dst=dst)
    attr = Attr(wei_scale=Scale(2), post_ops=post_ops)
    values = {"wei_scale": (rng.random(COUNT) / 100).astype(np.float32)}
    for index in range(1, len(post_ops)):
        values[f"post_op_{index}"] = _away_from_0(rng)
    return problem, attr, rng.integers(-900, 900, (1, COUNT)), values


def _away_from_0(rng: np.random.Generator) -> Any:
    signs = rng.choice([-1.0, 1.0], (1, COUNT))
    return (signs * rng.uniform(0.3, 2, (1, COUNT))).astype(np.float32)


@pytest.mark.parametrize("step", sorted(STEPS))
def test_ends_hold_whatever_the_function_gave(step: str) -> None:
    """Every value of the function within its bounds, taken on in float32."""
    first, then = EltwisePostOp("gelu_erf"), STEPS[step]
    problem, attr, sums, values = setting("f32", first, then)
    before, at = np.full((1, COUNT), 0.7, np.float32), level("jit", InstructionSet("AVX2"))
    lo, hi = ends(problem, attr, sums, ORDERS[0], values, at, before=before)
    only = Attr(wei_scale=Scale(2), post_ops=(first,))
    least, most = ends(problem, only, sums, ORDERS[0], values, at)
    assert (least < most).any()
    for part in np.linspace(0, 1, 21):
        y = np.clip((least + np.float64(part) * (most - least)).astype(np.float32), least, most)
        if step == "swish":
            made = ALGS["swish"](y.astype(np.float64), 1.0)
        else:
            made = applied(then, y, ORDERS[0], values["post_op_1"], before)
        assert ((lo <= made) & (made <= hi)).all()
    if step == "clip":
        assert hi.max() == np.float32(1.5)
    assert (hi - lo <= 3e-5 * np.maximum(1, np.abs(hi))).all()


def test_integers_differ_by_a_level_at_most_and_seldom() -> None:
    problem, attr, sums, values = setting("s8", EltwisePostOp("tanh"))
    scaled = Attr(
        wei_scale=Scale(2), dst_scale=Scale(), dst_zero_point=ZeroPoint(), post_ops=attr.post_ops
    )
    values |= {"dst_scale": np.full(1, 1 / 127, np.float32)}
    values |= {"dst_zero_point": np.full(1, 3, np.int32)}
    lo, hi = ends(problem, scaled, sums, ORDERS[0], values, 2)
    x = sums * values["wei_scale"].astype(np.float64)
    assert lo.dtype == hi.dtype == np.int8
    assert ((hi.astype(int) - lo) <= 1).all()
    assert np.mean(hi != lo) < 0.01
    exact = np.clip(np.rint(np.tanh(x) * 127 + 3), -128, 127)
    assert (np.abs(exact - lo) <= 1).all()
    assert np.mean(exact == lo) > 0.98


def test_what_is_exact_has_one_end() -> None:
    problem, attr, sums, values = setting("u8", EltwisePostOp("square"))
    lo, hi = ends(problem, attr, sums, ORDERS[2], values, 2)
    assert lo is hi
    assert np.array_equal(lo, destination(problem, attr, sums, ORDERS[2], values))


def test_a_model_with_a_function_has_bounds_only() -> None:
    problem = MatMulProblem.of((1, 2), (2, 1), dst="f32")
    attr = Attr(wei_scale=Scale(), post_ops=(EltwisePostOp("tanh"),))
    model = KernelModel(
        problem, attr, "jit", InstructionSet("AVX2_VNNI"), Proof(ORDERS[0], frozenset(), Region({}))
    )
    src, wei = np.array([[3, 4]], np.uint8), np.array([[1], [-2]], np.int8)
    values = {"wei_scale": np.full(1, 0.125, np.float32)}
    with pytest.raises(
        NoModelError, match="eltwise_tanh is known within bounds only: use `bounds`"
    ):
        model.run(src, wei, values=values)
    lo, hi = model.bounds(src, wei, values=values)
    exact = np.tanh(-0.625)
    assert lo[0, 0] <= exact <= hi[0, 0]
    assert hi[0, 0] - lo[0, 0] < 4e-7


def test_levels() -> None:
    assert level("jit_uni_int8:sse41", InstructionSet("AVX512_CORE")) == 0
    assert level("jit_uni_int8:avx2", InstructionSet("AVX512_CORE")) == 1
    assert level("brg_matmul:avx2_vnni", InstructionSet("AVX512_CORE_AMX")) == 2
    assert level("gemm:jit", InstructionSet("SSE41")) == 0
    assert level("gemm:jit", InstructionSet("AVX2_VNNI")) == 1
    assert BOUNDS["gelu_erf"].units[2] > BOUNDS["gelu_erf"].units[1]


@pytest.mark.parametrize(
    ("alpha", "beta"), [(2.0**24, 0.5), (-(2.0**25), 0.5), (2.0**25, 3.0), (-(2.0**25), 3.0)]
)
def test_a_steep_hardswish_falls_and_rises_within_an_error(alpha: float, beta: float) -> None:
    """Its extremes, at -beta / (2 alpha) or (1 - beta) / alpha, are nearer to 0 than tanh(0) is."""
    attr = Attr(post_ops=(EltwisePostOp("tanh"), EltwisePostOp("hardswish", alpha, beta)))
    problem, sums = MatMulProblem.of((1, 4), (4, 1), dst="f32"), np.zeros((1, 1), np.int64)
    lo, hi = ends(problem, attr, sums, ORDERS[0], {}, 2)
    before = Attr(post_ops=attr.post_ops[:1])
    inner = [float(end[0, 0]) for end in ends(problem, before, sums, ORDERS[0], {}, 2)]
    x = np.linspace(inner[0], inner[1], 10_001)
    y = x * np.clip(alpha * x + beta, 0, 1)
    assert (np.diff(y) < 0).any()
    assert (np.diff(y) > 0).any()
    assert lo[0, 0] <= y.min() <= y.max() <= hi[0, 0]
