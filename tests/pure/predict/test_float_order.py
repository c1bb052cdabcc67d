"""Orders of operations in float32: each choice on numbers where it shows, computed by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError
from pyonednn_q.predict.float_order import ORDERS, Order, applied, destination, ended, is_whole
from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.post_ops import (
    BinaryPostOp,
    EltwisePostOp,
    PostOp,
    PReluPostOp,
    SumPostOp,
)
from pyonednn_q.primitive.problem import ConvProblem, MatMulProblem
from pyonednn_q.primitive.tensor import TensorSpec

Array = np.ndarray[Any, Any]
F32 = np.float32
USUAL = Order(together=True, fused=True)
THIRD = float(F32(1) / F32(3))


def rounded(value: Fraction | float) -> float:
    """Round to float32 once: of a ratio, a float64 may round twice."""
    exact = Fraction(value)
    near = F32(float(exact))
    ways = [near, np.nextafter(near, F32(-np.inf)), np.nextafter(near, F32(np.inf))]
    return float(min(ways, key=lambda one: (abs(Fraction(float(one)) - exact), one.view("i4") & 1)))


def product(dst: str, **more: Any) -> MatMulProblem:
    return MatMulProblem.of((1, 4), (4, 2), dst=dst, **more)


def run(
    order: Order, attr: Attr, sums: list[int], dst: str = "f32", **values: float | list[float]
) -> list[float]:
    """Return dst of a product with two columns."""
    arrays = {name: np.asarray(value, F32).reshape(-1) for name, value in values.items()}
    bias = arrays.pop("bias", None)
    before = arrays.pop("before", None)
    problem = product(dst, bias=None if bias is None else "f32")
    found = destination(problem, attr, np.array([sums]), order, arrays, bias=bias, before=before)
    return [float(value) for value in found[0]]


SCALES = Attr(src_scale=Scale(), wei_scale=Scale(2))


def test_scales_are_multiplied_with_each_other_or_one_after_the_other() -> None:
    src, wei, sums = 0.1, [0.7, 1.3], [12345, -777]
    f, s = rounded(src), [rounded(v) for v in wei]
    together = [
        rounded(Fraction(x) * Fraction(rounded(f * v))) for x, v in zip(sums, s, strict=True)
    ]
    apart = [rounded(Fraction(rounded(x * f)) * Fraction(v)) for x, v in zip(sums, s, strict=True)]
    assert together != apart
    assert run(USUAL, SCALES, sums, src_scale=src, wei_scale=wei) == together
    other = replace(USUAL, together=False)
    assert run(other, SCALES, sums, src_scale=src, wei_scale=wei) == apart
    for order in (USUAL, other):
        only = Attr(wei_scale=Scale(2))
        assert run(order, only, sums, wei_scale=wei) == [
            rounded(x * Fraction(v)) for x, v in zip(sums, s, strict=True)
        ]
        assert run(order, Attr(src_scale=Scale()), sums, src_scale=src) == [
            rounded(x * Fraction(f)) for x in sums
        ]
        assert run(order, Attr(), sums) == sums


def test_the_sum_is_rounded_to_float32_first() -> None:
    assert run(USUAL, Attr(), [2**24 + 1, -(2**24) - 3]) == [2.0**24, -(2.0**24) - 4]


def test_the_bias_is_added_behind_the_scales() -> None:
    got = run(USUAL, Attr(wei_scale=Scale()), [3, -3], wei_scale=0.5, bias=[10.0, -10.0])
    assert got == [11.5, -11.5]


def test_linear_and_sum_round_once_where_they_are_fused() -> None:
    linear, add = EltwisePostOp("linear", THIRD, -1.0), SumPostOp(THIRD, 1)
    left = 3 * Fraction(THIRD) - 1
    assert run(USUAL, Attr(post_ops=(linear,)), [3, 3]) == [left, left]
    apart = replace(USUAL, fused=False)
    assert run(apart, Attr(post_ops=(linear,)), [3, 3]) == [0.0, 0.0]
    assert run(USUAL, Attr(post_ops=(add,)), [-1, -1], before=[4.0, 4.0]) == [left, left]
    assert run(apart, Attr(post_ops=(add,)), [-1, -1], before=[4.0, 4.0]) == [0.0, 0.0]


def test_the_scale_of_dst_multiplies_by_the_reciprocal_or_divides() -> None:
    attr, sums = Attr(dst_scale=Scale()), [9, -11]
    scale = rounded(0.3)
    multiplied = [rounded(x * Fraction(rounded(1 / Fraction(scale)))) for x in sums]
    divided = [rounded(x / Fraction(scale)) for x in sums]
    assert multiplied != divided
    assert run(USUAL, attr, sums, dst_scale=0.3) == multiplied
    assert run(replace(USUAL, divided=True), attr, sums, dst_scale=0.3) == divided


def test_the_zero_point_is_added_before_the_round() -> None:
    attr = Attr(wei_scale=Scale(), dst_zero_point=ZeroPoint())
    got = run(USUAL, attr, [1, 3], "u8", wei_scale=0.5, dst_zero_point=3)
    assert got == [4.0, 4.0]  # 3.5 and 4.5, ties to even


@pytest.mark.parametrize(
    ("dst", "sums", "wanted"),
    [
        ("u8", [-1, 256], [0, 255]),
        ("s8", [-129, 128], [-128, 127]),
        ("u8", [0, 255], [0, 255]),
        ("s8", [-128, 127], [-128, 127]),
    ],
)
def test_integers_saturate(dst: str, sums: list[int], wanted: list[int]) -> None:
    assert run(USUAL, Attr(), sums, dst) == wanted


def test_s32_ends_at_the_last_float32_below_its_end() -> None:
    attr = Attr(wei_scale=Scale())
    got = run(USUAL, attr, [2**31 - 1, -(2**31)], "s32", wei_scale=4.0)
    assert got == [2147483520, -(2**31)]


def test_a_bare_sum_in_32_bits_is_stored_as_it_is() -> None:
    problem, sums = product("s32"), np.array([[2**24 + 1, -(2**31)]])
    assert is_whole(problem, Attr())
    assert destination(problem, Attr(), sums, USUAL, {}).tolist() == sums.tolist()
    assert ended(problem, Attr(), sums, USUAL, {}).dtype == np.int32
    assert not is_whole(problem, Attr(wei_scale=Scale()))
    assert not is_whole(product("f32"), Attr())
    assert not is_whole(product("s32", bias="f32"), Attr())


def test_scales_and_bias_lie_along_the_channels() -> None:
    problem = ConvProblem.of((1, 1, 2), (2, 1, 1), dst="f32", bias="f32")
    values = {"wei_scale": np.array([2.0, 3.0], F32)}
    sums = np.array([[[1, 2], [3, 4]]])
    got = destination(
        problem, Attr(wei_scale=Scale(1)), sums, USUAL, values, bias=np.array([10.0, 20.0], F32)
    )
    assert got.tolist() == [[[12.0, 14.0], [29.0, 32.0]]]


X = [-2.0, -0.5, -0.0, 0.0, 0.5, 1.5, math.nan]
STEPS: list[tuple[PostOp, list[float]]] = [
    (EltwisePostOp("relu"), [0, 0, 0, 0, 0.5, 1.5, 0]),
    (EltwisePostOp("relu", 0.5), [-1, -0.25, -0.0, 0, 0.5, 1.5, math.nan]),
    (EltwisePostOp("clip", -1, 1), [-1, -0.5, -0.0, 0, 0.5, 1, -1]),
    (EltwisePostOp("clip_v2", 0, 1), [0, 0, 0, 0, 0.5, 1, 0]),
    (EltwisePostOp("clip", -1, 0), [-1, -0.5, 0, 0, 0, 0, -1]),
    (EltwisePostOp("round"), [-2, -0.0, -0.0, 0, 0, 2, math.nan]),
    (EltwisePostOp("abs"), [2, 0.5, 0, 0, 0.5, 1.5, math.nan]),
    (EltwisePostOp("square"), [4, 0.25, 0, 0, 0.25, 2.25, math.nan]),
    (EltwisePostOp("hardsigmoid", 0.25, 0.5), [0, 0.375, 0.5, 0.5, 0.625, 0.875, 0]),
    (EltwisePostOp("hardsigmoid", 1, 0.5), [0, 0, 0.5, 0.5, 1, 1, 0]),
    (EltwisePostOp("hardswish", 0.25, 0.5), [-0.0, -0.1875, -0.0, 0, 0.3125, 1.3125, math.nan]),
    (EltwisePostOp("linear", 2, 1), [-3, 0, 1, 1, 2, 4, math.nan]),
]


def same(got: Array, wanted: list[float]) -> bool:
    """Compare bit by bit, signs of zeros too; one NaN is like another."""
    want = np.array(wanted, F32)
    both = np.isnan(got) & np.isnan(want)
    equal = (got == want) & (np.signbit(got) == np.signbit(want))
    return bool((both | equal).all())


@pytest.mark.parametrize(("step", "wanted"), STEPS, ids=lambda each: str(each)[:40])
def test_steps_by_hand(step: PostOp, wanted: list[float]) -> None:
    assert same(applied(step, np.array(X, F32), USUAL, None, None), wanted)


NEGATIVE = replace(USUAL, zeros="negative")
PLAIN_STEPS: list[tuple[PostOp, list[float]]] = [
    (EltwisePostOp("relu"), [-0.0, -0.0, -0.0, 0, 0.5, 1.5, math.nan]),
    (EltwisePostOp("relu", 0.5), [-1, -0.25, -0.0, 0, 0.5, 1.5, math.nan]),
    (EltwisePostOp("abs"), [2, 0.5, 0, -0.0, 0.5, 1.5, math.nan]),
    (EltwisePostOp("clip", -1, 0), [-1, -0.5, -0.0, 0, 0, 0, -1]),
    (EltwisePostOp("clip", -1, 1), [-1, -0.5, -0.0, 0, 0.5, 1, -1]),
    (EltwisePostOp("square"), [4, 0.25, 0, 0, 0.25, 2.25, math.nan]),
]


@pytest.mark.parametrize(("step", "wanted"), PLAIN_STEPS, ids=lambda each: str(each)[:40])
def test_steps_in_plain_code_may_make_another_zero(step: PostOp, wanted: list[float]) -> None:
    assert same(applied(step, np.array(X, F32), NEGATIVE, None, None), wanted)


def test_zeros_that_are_positive_at_last() -> None:
    attr = Attr(wei_scale=Scale(), post_ops=(EltwisePostOp("round"),))
    for zeros, sign in (("kept", -1.0), ("negative", -1.0), ("positive", 1.0)):
        (got, _) = run(replace(USUAL, zeros=zeros), attr, [-1, 1], wei_scale=0.25)
        assert math.copysign(1.0, got) == sign


BINARIES: dict[str, list[float]] = {
    "add": [-1.5, 0, 0.5, 0.5, 1, 2, math.nan],
    "sub": [-2.5, -1, -0.5, -0.5, 0, 1, math.nan],
    "mul": [-1, -0.25, -0.0, 0, 0.25, 0.75, math.nan],
    "div": [-4, -1, -0.0, 0, 1, 3, math.nan],
    "max": [0.5, 0.5, 0.5, 0.5, 0.5, 1.5, 0.5],
    "min": [-2, -0.5, -0.0, 0, 0.5, 0.5, 0.5],
    "ge": [0, 0, 0, 0, 1, 1, 0],
    "gt": [0, 0, 0, 0, 0, 1, 0],
    "le": [1, 1, 1, 1, 1, 0, 0],
    "lt": [1, 1, 1, 1, 0, 0, 0],
}


@pytest.mark.parametrize("alg", BINARIES)
def test_binaries_by_hand(alg: str) -> None:
    op = BinaryPostOp(alg, TensorSpec((1,), "f32"))
    got = applied(op, np.array(X, F32), USUAL, np.array([0.5]), None)
    assert got.dtype == F32
    assert same(got, BINARIES[alg])


@pytest.mark.parametrize(
    ("zeros", "level", "wanted"),
    [
        ("kept", 1, [-4, -1, -0.0, 0, 0.5, 1.5]),
        ("kept", 2, [-4, -1, -0.0, 0, 0.5, 1.5]),
        ("negative", 2, [-4, -1, -0.0, 0, 0.5, 1.5]),
    ],
)
def test_prelu_by_hand(zeros: str, level: int, wanted: list[float]) -> None:
    order = replace(USUAL, zeros=zeros)
    got = applied(PReluPostOp(0), np.array(X[:-1], F32), order, np.array([2.0]), None, level)
    assert same(got, wanted)


@pytest.mark.parametrize(
    ("zeros", "level", "wanted"),
    [
        ("kept", 0, [0.0, 0.0]),  # -0 is picked by its sign, 0 is not
        ("kept", 1, [0.0, 0.0]),
        ("kept", 2, [0.0, -0.0]),
        ("negative", 1, [-0.0, 0.0]),
        ("negative", 2, [-0.0, 0.0]),
    ],
)
def test_a_falling_prelu_shows_how_kernels_pick(
    zeros: str, level: int, wanted: list[float]
) -> None:
    order = replace(USUAL, zeros=zeros)
    got = applied(PReluPostOp(0), np.array([-0.0, 0.0], F32), order, np.array([-2.0]), None, level)
    assert same(got, wanted)


def test_prelu_slopes_lie_along_their_mask() -> None:
    x = -np.ones((2, 3, 2), F32)
    by_channel = applied(PReluPostOp(2), x, USUAL, np.array([1.0, 2.0, 3.0]), None)
    assert by_channel.tolist() == [[[-1, -1], [-2, -2], [-3, -3]]] * 2
    both = applied(PReluPostOp(5), x, USUAL, np.arange(1.0, 5.0), None)
    assert both[:, 0].tolist() == [[-1, -2], [-3, -4]]
    assert (both == both[:, :1]).all()


@pytest.mark.parametrize(
    "step",
    [
        EltwisePostOp("tanh"),
        SumPostOp(),
        BinaryPostOp("add", TensorSpec((1,), "f32")),
        PReluPostOp(0),
    ],
    ids=lambda step: step.text(),
)
def test_what_is_not_known_is_refused(step: PostOp) -> None:
    with pytest.raises(ArgumentError, match="post_ops"):
        applied(step, np.zeros(2, F32), USUAL, None, None)
    equal = BinaryPostOp("eq", TensorSpec((1,), "f32"))
    with pytest.raises(ArgumentError, match="post_ops"):
        applied(equal, np.zeros(2, F32), USUAL, np.zeros(1), None)


# --- which orders a problem tells apart ---------------------------------------------------------

APART = Order(together=False, fused=False, divided=True, zeros="negative")
BOTH: dict[str, Any] = {"src_scale": Scale(), "wei_scale": Scale(2)}
SEEN: list[tuple[str, Attr, Callable[[Order], Order]]] = [
    ("f32", Attr(), lambda _: Order(True, True, False, "kept")),
    ("f32", Attr(wei_scale=Scale()), lambda _: Order(True, True, False, "kept")),
    ("f32", Attr(src_scale=Scale()), lambda _: Order(True, True, False, "kept")),
    ("f32", Attr(**BOTH), lambda _: Order(False, True, False, "kept")),
    ("f32", Attr(dst_scale=Scale()), lambda _: Order(True, True, True, "kept")),
    ("f32", Attr(post_ops=(SumPostOp(),)), lambda _: Order(True, False, False, "kept")),
    (
        "f32",
        Attr(post_ops=(EltwisePostOp("linear", 2),)),
        lambda _: Order(True, False, False, "kept"),
    ),
    (
        "f32",
        Attr(post_ops=(EltwisePostOp("square"), EltwisePostOp("relu"))),
        lambda _: Order(True, True, False, "negative"),
    ),
    ("f32", Attr(post_ops=(PReluPostOp(0),)), lambda _: Order(True, True, False, "negative")),
    ("u8", Attr(post_ops=(EltwisePostOp("abs"),)), lambda _: Order(True, True, False, "kept")),
]


@pytest.mark.parametrize(("dst", "attr", "wanted"), SEEN)
def test_a_problem_tells_some_choices_apart(
    dst: str, attr: Attr, wanted: Callable[[Order], Order]
) -> None:
    assert APART.seen(product(dst), attr) == wanted(APART)


def test_positive_zeros_are_seen_in_floats_only() -> None:
    order = replace(USUAL, zeros="positive")
    assert order.seen(product("f32"), Attr()) == order
    assert order.seen(product("s8"), Attr()) == USUAL


def test_orders_are_all_choices_and_the_usual_first() -> None:
    assert ORDERS[0] == USUAL
    assert len(ORDERS) == len(set(ORDERS)) == 24
    assert {order.zeros for order in ORDERS[:8]} == {"kept"}
    assert [order.divided for order in ORDERS[:8]] == [False] * 4 + [True] * 4
    assert [order.fused for order in ORDERS[:4]] == [True, True, False, False]
    assert [order.together for order in ORDERS[:2]] == [True, False]
    assert APART.text() == "apart, not fused, divided, zeros negative"
    assert USUAL.text() == "together, fused, multiplied, zeros kept"
