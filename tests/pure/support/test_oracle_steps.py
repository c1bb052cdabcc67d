"""Post-op steps of the oracle against hand-computed tables and scalar formulas."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyonednn_q.primitive.attr import Attr
from pyonednn_q.primitive.post_ops import (
    BinaryPostOp,
    DepthwisePostOp,
    EltwisePostOp,
    PReluPostOp,
    SumPostOp,
)
from pyonednn_q.primitive.problem import ConvProblem, MatMulProblem
from pyonednn_q.primitive.tensor import TensorSpec
from support import oracle, oracle_binary, oracle_eltwise, oracle_post_ops
from support.oracle_tracked import Tracked

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyonednn_q.primitive.post_ops import PostOp

ELTWISE_BY_HAND: list[tuple[str, float, float, float, float]] = [
    ("relu", 0.0, 0.0, -3.0, 0.0),
    ("relu", 0.25, 0.0, -3.0, -0.75),
    ("relu", 0.25, 0.0, 3.0, 3.0),
    ("tanh", 0.0, 0.0, 0.0, 0.0),
    ("tanh", 0.0, 0.0, math.log(2), 0.6),  # (4 - 1) / (4 + 1)
    ("elu", 2.0, 0.0, 5.0, 5.0),
    ("elu", 2.0, 0.0, -math.log(2), -1.0),
    ("square", 0.0, 0.0, -1.5, 2.25),
    ("abs", 0.0, 0.0, -1.5, 1.5),
    ("sqrt", 0.0, 0.0, 6.25, 2.5),
    ("linear", 3.0, -2.0, 4.0, 10.0),
    ("soft_relu", 1.0, 0.0, 0.0, math.log(2)),
    ("soft_relu", 2.0, 0.0, math.log(3) / 2, math.log(4) / 2),
    ("soft_relu", -1.0, 0.0, 0.0, -math.log(2)),  # log of the logistic
    ("hardsigmoid", 0.25, 0.5, 1.0, 0.75),
    ("hardsigmoid", 0.25, 0.5, -3.0, 0.0),
    ("hardsigmoid", 0.25, 0.5, 3.0, 1.0),
    ("logistic", 0.0, 0.0, math.log(3), 0.75),
    ("exp", 0.0, 0.0, math.log(5), 5.0),
    ("gelu_tanh", 0.0, 0.0, 0.0, 0.0),
    ("gelu_tanh", 0.0, 0.0, 1.0, 0.8411919906082768),
    ("gelu_erf", 0.0, 0.0, 1.0, 0.8413447460685429),
    ("gelu_erf", 0.0, 0.0, -1.0, -0.15865525393145707),
    ("swish", 2.0, 0.0, math.log(3) / 2, 0.75 * math.log(3) / 2),
    ("log", 0.0, 0.0, math.e, 1.0),
    ("clip", -1.0, 2.0, -5.0, -1.0),
    ("clip", -1.0, 2.0, 5.0, 2.0),
    ("clip", -1.0, 2.0, 0.5, 0.5),
    ("clip_v2", -1.0, 2.0, 2.0, 2.0),
    ("clip_v2", -1.0, 2.0, -1.0, -1.0),
    ("pow", 3.0, 2.0, 4.0, 48.0),
    ("pow", 2.0, 0.5, 9.0, 6.0),
    ("round", 0.0, 0.0, 2.5, 2.0),
    ("round", 0.0, 0.0, 3.5, 4.0),
    ("round", 0.0, 0.0, -0.5, 0.0),
    ("mish", 0.0, 0.0, 0.0, 0.0),
    ("mish", 0.0, 0.0, math.log(2), math.log(2) * 0.8),  # tanh(log 3) = 8 / 10
    ("hardswish", 0.25, 0.5, 1.0, 0.75),
    ("hardswish", 0.25, 0.5, -2.0, 0.0),
    ("hardswish", 0.25, 0.5, 6.0, 6.0),
]
BINARY_BY_HAND: list[tuple[str, float, float, float]] = [
    ("add", 3.0, -0.5, 2.5),
    ("sub", 3.0, -0.5, 3.5),
    ("mul", 3.0, -0.5, -1.5),
    ("div", 3.0, -0.5, -6.0),
    ("max", 3.0, -0.5, 3.0),
    ("min", 3.0, -0.5, -0.5),
    ("ge", 2.0, 2.0, 1.0),
    ("ge", 1.0, 2.0, 0.0),
    ("gt", 2.0, 2.0, 0.0),
    ("gt", 3.0, 2.0, 1.0),
    ("le", 2.0, 2.0, 1.0),
    ("le", 3.0, 2.0, 0.0),
    ("lt", 2.0, 2.0, 0.0),
    ("lt", 1.0, 2.0, 1.0),
    ("eq", 2.0, 2.0, 1.0),
    ("eq", 2.0, 1.0, 0.0),
    ("ne", 2.0, 2.0, 0.0),
    ("ne", 2.0, 1.0, 1.0),
]


@pytest.mark.parametrize(("alg", "alpha", "beta", "x", "y"), ELTWISE_BY_HAND)
def test_eltwise_by_hand(alg: str, alpha: float, beta: float, x: float, y: float) -> None:
    got = float(oracle_eltwise.evaluate(alg, np.array(x), alpha, beta))
    assert math.isclose(got, y, rel_tol=0, abs_tol=4e-16 * max(1.0, abs(y)))


def test_every_eltwise_algorithm_is_in_the_table() -> None:
    assert {row[0] for row in ELTWISE_BY_HAND} == oracle_eltwise.ALGS
    assert len(oracle_eltwise.ALGS) == 21


@pytest.mark.parametrize(("alg", "x", "y", "expected"), BINARY_BY_HAND)
def test_binary_by_hand(alg: str, x: float, y: float, expected: float) -> None:
    got = oracle_binary.apply(alg, Tracked.exact(x), Tracked.exact(y))
    assert float(got.value) == expected
    assert float(got.error) == 0.0


def test_every_binary_algorithm_is_in_the_table() -> None:
    assert {row[0] for row in BINARY_BY_HAND} == oracle_binary.ALGS


# How a careful float32 program computes an algorithm: one rounding after each operation.
FLOAT32: dict[str, Callable[[Any, Any, Any], Any]] = {
    "relu": lambda x, a, _: x if x > 0 else x * a,
    "square": lambda x, _, __: x * x,
    "abs": lambda x, _, __: abs(x),
    "linear": lambda x, a, b: x * a + b,
    "clip": lambda x, a, b: min(max(x, a), b),
    "round": lambda x, _, __: np.rint(x),
    "hardsigmoid": lambda x, a, b: min(max(x * a + b, np.float32(0)), np.float32(1)),
    "hardswish": lambda x, a, b: x * min(max(x * a + b, np.float32(0)), np.float32(1)),
    "sqrt": lambda x, _, __: np.sqrt(abs(x)),
}
small = st.floats(-8, 8, width=32)


@given(
    alg=st.sampled_from(sorted(FLOAT32)),
    x=small,
    near=st.floats(-1, 1),
    error=st.sampled_from([0.0, 1e-6, 1e-2, 0.75]),
    alpha=st.floats(-2, -0.125, width=32) | st.floats(0.125, 2, width=32),
    beta=st.floats(0.5, 4, width=32),
)
def test_error_bound_covers_any_input_within_its_own(
    *, alg: str, x: float, near: float, error: float, alpha: float, beta: float
) -> None:
    if alg == "sqrt":
        x = abs(x) + 1.0
    if alg == "clip":
        alpha = -abs(alpha)
    a, b = np.float32(alpha), np.float32(beta)
    exact = Tracked(np.asarray(np.float64(np.float32(x))), np.asarray(error))
    step = oracle_eltwise.apply(alg, exact, alpha, beta)
    moved = np.float32(np.clip(float(np.float32(x)) + near * error, x - error, x + error))
    if abs(float(moved) - float(exact.value)) > error:
        return
    got = float(FLOAT32[alg](moved, a, b))
    assert abs(got - float(step.value)) <= float(step.error) * (1 + 2.0**-20)


@pytest.mark.parametrize("alg", sorted(oracle_eltwise.TRANSCENDENTAL))
@pytest.mark.parametrize("error", [1e-6, 1e-3, 0.1])
def test_slope_bounds_hold(alg: str, error: float) -> None:
    alpha = 0.5 if alg in {"elu", "swish", "soft_relu"} else 0.0
    x = np.linspace(0.5 if alg == "log" else -8.0, 8.0, 4001)
    step = oracle_eltwise.apply(alg, Tracked(x, np.full_like(x, error)), alpha, 0.0)
    own = oracle_eltwise.apply(alg, Tracked.exact(x), alpha, 0.0).error  # the kernel's share
    for moved in (x - error, x + error):
        got = oracle_eltwise.evaluate(alg, moved, alpha, 0.0)
        assert (np.abs(got - step.value) <= step.error - own + 1e-12).all()


@pytest.mark.parametrize("alpha", [-2.0, 0.0, 0.25, 1.0, 3.0])
def test_relu_and_prelu_bounds_hold_across_zero(alpha: float) -> None:
    x = np.linspace(-1.0, 1.0, 129)
    near = Tracked(x, np.full_like(x, 0.25))
    relu = oracle_eltwise.apply("relu", near, alpha, 0.0)
    dst = TensorSpec.dense((129,), "f32")
    slope = {"post_op_0": np.array([alpha], np.float32)}
    prelu = oracle_post_ops.apply_chain(near, (PReluPostOp(0),), dst, slope)
    for moved in np.linspace(-0.25, 0.25, 9):
        got = np.where(x + moved > 0, x + moved, alpha * (x + moved))
        assert (np.abs(got - relu.value) <= relu.error).all()
        assert (np.abs(got - prelu.value) <= prelu.error).all()


def test_comparison_near_equality_may_go_either_way() -> None:
    x = Tracked(np.array([2.0, 2.0, 2.5]), np.array([0.0, 0.25, 0.25]))
    step = oracle_binary.apply("ge", x, Tracked.exact(2.125))
    assert step.value.tolist() == [0.0, 0.0, 1.0]
    assert step.error.tolist() == [0.0, 1.0, 0.0]


def test_nothing_is_promised_outside_the_measured_domain() -> None:
    step = oracle_eltwise.apply("tanh", Tracked.exact([11.0, 13.0]), 0.0, 0.0)
    assert np.isfinite(step.error).tolist() == [True, False]


def test_round_near_a_tie_may_take_either_side() -> None:
    x = Tracked(np.array([2.5, 2.5, 2.25, 2.4]), np.array([0.0, 1e-8, 0.25, 1e-8]))
    step = oracle_eltwise.apply("round", x, 0.0, 0.0)
    assert step.value.tolist() == [2.0, 2.0, 2.0, 2.0]
    # Reaching the tie itself changes nothing: it goes to the even 2.
    assert step.error.tolist() == [0.0, 1.0, 0.0, 0.0]


def matmul(dst: str) -> MatMulProblem:
    return MatMulProblem.of((2, 1), (1, 3), dst=dst)


# acc = [[2, -4, 6], [10, -20, 30]]
TABLE: dict[str, Any] = {
    "src": np.array([[1], [5]], np.uint8),
    "wei": np.array([[2, -4, 6]], np.int8),
}


def run_chain(dtype: str, post_ops: tuple[PostOp, ...], **values: Any) -> list[list[float]]:
    attr = Attr(post_ops=post_ops)
    result = oracle.run(matmul(dtype), attr, {**TABLE, **values})
    rows: list[list[float]] = result.dst.tolist()
    return rows


def test_order_is_kept() -> None:
    relu, shift = EltwisePostOp("relu"), EltwisePostOp("linear", 1.0, 5.0)
    assert run_chain("f32", (relu, shift)) == [[7, 5, 11], [15, 5, 35]]
    assert run_chain("f32", (shift, relu)) == [[7, 1, 11], [15, 0, 35]]


@pytest.mark.parametrize(
    ("dims", "operand", "expected"),
    [
        ((1, 1), [[1.0]], [[3, -3, 7], [11, -19, 31]]),
        ((1, 3), [[1.0, 2.0, 3.0]], [[3, -2, 9], [11, -18, 33]]),
        ((2, 1), [[1.0], [2.0]], [[3, -3, 7], [12, -18, 32]]),
        ((2, 3), [[1, 2, 3], [4, 5, 6]], [[3, -2, 9], [14, -15, 36]]),
    ],
)
def test_binary_operand_broadcasts(
    dims: tuple[int, int], operand: list[list[float]], expected: list[list[float]]
) -> None:
    step = BinaryPostOp("add", TensorSpec.dense(dims, "f32"))
    got = run_chain("f32", (step,), post_op_0=np.array(operand, np.float32))
    assert got == expected


def test_operands_belong_to_their_position() -> None:
    spec = TensorSpec.dense((1, 1), "f32")
    chain = (BinaryPostOp("add", spec), EltwisePostOp("relu"), BinaryPostOp("mul", spec))
    one, two = np.array([[10.0]], np.float32), np.array([[2.0]], np.float32)
    got = run_chain("f32", chain, post_op_0=one, post_op_2=two)
    assert got == [[24, 12, 32], [40, 0, 80]]


@pytest.mark.parametrize(
    ("mask", "slope", "expected"),
    [
        (0, [0.5], [[2, -2, 6], [10, -10, 30]]),
        (2, [9.0, 0.25, 9.0], [[2, -1, 6], [10, -5, 30]]),
        (1, [0.5, -1.0], [[2, -2, 6], [10, 20, 30]]),
        (3, [9, 0.5, 9, 9, 2, 9], [[2, -2, 6], [10, -40, 30]]),
    ],
)
def test_prelu_mask(mask: int, slope: list[float], expected: list[list[float]]) -> None:
    got = run_chain("f32", (PReluPostOp(mask),), post_op_0=np.array(slope, np.float32))
    assert got == expected


def test_prelu_per_channel_of_a_convolution() -> None:
    problem = ConvProblem.of((1, 1, 1, 2), (2, 1, 1, 1), dst="f32")
    arrays: dict[str, Any] = {
        "src": np.array([[[[1, 2]]]], np.uint8),
        "wei": np.array([-1, -3], np.int8).reshape(2, 1, 1, 1),
        "post_op_0": np.array([0.5, 2.0], np.float32),
    }
    result = oracle.run(problem, Attr(post_ops=(PReluPostOp(2),)), arrays)
    assert result.dst.ravel().tolist() == [-0.5, -1.0, -6.0, -12.0]


def test_sum_reads_the_old_dst() -> None:
    old = np.array([[10, 20, 30], [40, 50, 60]], np.uint8)
    got = run_chain("u8", (SumPostOp(0.5, 4),), dst=old)
    # acc + 0.5 * (old - 4) = 5, 4, 19; 28, 3, 58
    assert got == [[5, 4, 19], [28, 3, 58]]


def test_sum_reinterprets_bits() -> None:
    old = np.array([[200, 1, 255], [0, 128, 127]], np.uint8)
    got = run_chain("u8", (SumPostOp(1.0, 0, "s8"), EltwisePostOp("abs")), dst=old)
    # old as s8 = -56, 1, -1; 0, -128, 127; added to acc, then the absolute value.
    assert got == [[54, 3, 5], [10, 148, 157]]


def test_sum_reinterprets_words_too() -> None:
    old = np.full((2, 3), 2.5, np.float32).view(np.int32)
    got = run_chain("s32", (SumPostOp(2.0, 0, "f32"),), dst=old)
    assert got == [[7, 1, 11], [15, -15, 35]]


def test_two_sums_read_the_same_old_dst() -> None:
    old = np.full((2, 3), 10, np.uint8)
    got = run_chain("u8", (SumPostOp(1.0), EltwisePostOp("relu"), SumPostOp(2.0)), dst=old)
    assert got == [[32, 26, 36], [40, 20, 60]]


def test_depthwise_fusion_has_no_meaning_here() -> None:
    with pytest.raises(NotImplementedError, match="depthwise"):
        run_chain("u8", (DepthwisePostOp("s8", None, "u8", 3, 1, 1),))
