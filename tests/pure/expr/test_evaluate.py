"""What steps mean: tables computed by hand, and float32 against exact rational arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.expr.algs import ALGS
from pyonednn_q.expr.evaluate import evaluate, evaluate_f32, fma32
from pyonednn_q.expr.steps import (
    Affine,
    Binary,
    BinaryAlg,
    Chain,
    Clip,
    Eltwise,
    Leaf,
    PRelu,
    Round,
    Step,
    Sum,
)

X = [-2.0, -0.5, 0.0, 0.5, 1.5]

TABLE: tuple[tuple[Step, list[float]], ...] = (
    (Affine(2, 1), [-3, 0, 1, 2, 4]),
    (Clip(-1, 1), [-1, -0.5, 0, 0.5, 1]),
    (Clip(hi=0), [-2, -0.5, 0, 0, 0]),
    (Round(), [-2, 0, 0, 0, 2]),
    (PRelu(0.5), [-1, -0.25, 0, 0.5, 1.5]),
    (Sum(0.5, 4), [-0.5, 1, 1.5, 2, 3]),  # dst_before is 7
    (Eltwise("relu"), [0, 0, 0, 0.5, 1.5]),
    (Eltwise("relu", 0.25), [-0.5, -0.125, 0, 0.5, 1.5]),
    (Eltwise("square"), [4, 0.25, 0, 0.25, 2.25]),
    (Eltwise("abs"), [2, 0.5, 0, 0.5, 1.5]),
    (Eltwise("linear", 2, 1), [-3, 0, 1, 2, 4]),
    (Eltwise("clip", -1, 1), [-1, -0.5, 0, 0.5, 1]),
    (Eltwise("clip_v2", -1, 1), [-1, -0.5, 0, 0.5, 1]),
    (Eltwise("round"), [-2, 0, 0, 0, 2]),
    (Eltwise("hardsigmoid", 0.25, 0.5), [0, 0.375, 0.5, 0.625, 0.875]),
    (Eltwise("hardswish", 0.25, 0.5), [0, -0.1875, 0, 0.3125, 1.3125]),
    (Eltwise("pow", 2, 2), [8, 0.5, 0, 0.5, 4.5]),
)


def _erf_gelu(x: float) -> float:
    return 0.5 * x * (1 + math.erf(x / math.sqrt(2)))


def _tanh_gelu(x: float) -> float:
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


SMOOTH: dict[Eltwise, Callable[[float], float]] = {
    Eltwise("tanh"): math.tanh,
    Eltwise("elu", 2): lambda x: x if x > 0 else 2 * (math.exp(x) - 1),
    Eltwise("soft_relu", 2): lambda x: math.log(1 + math.exp(2 * x)) / 2,
    Eltwise("logistic"): lambda x: 1 / (1 + math.exp(-x)),
    Eltwise("exp"): math.exp,
    Eltwise("gelu_tanh"): _tanh_gelu,
    Eltwise("gelu_erf"): _erf_gelu,
    Eltwise("swish", 2): lambda x: x / (1 + math.exp(-2 * x)),
    Eltwise("mish"): lambda x: x * math.tanh(math.log(1 + math.exp(x))),
}

BINARIES: dict[BinaryAlg, list[float]] = {
    "add": [-1.5, 0, 0.5, 1, 2], "sub": [-2.5, -1, -0.5, 0, 1], "mul": [-1, -0.25, 0, 0.25, 0.75],
    "div": [-4, -1, 0, 1, 3], "max": [0.5, 0.5, 0.5, 0.5, 1.5], "min": [-2, -0.5, 0, 0.5, 0.5],
    "ge": [0, 0, 0, 1, 1], "gt": [0, 0, 0, 0, 1], "le": [1, 1, 1, 1, 0], "lt": [1, 1, 1, 0, 0],
    "eq": [0, 0, 0, 1, 0], "ne": [1, 1, 1, 0, 1],
}  # fmt: skip


@pytest.mark.parametrize(("step", "wanted"), TABLE, ids=str)
def test_step_by_hand(step: Step, wanted: list[float]) -> None:
    assert evaluate(Chain(step), X, axis=0, dst_before=7.0).tolist() == wanted
    assert evaluate_f32(Chain(step), X, axis=0, dst_before=7.0).tolist() == wanted


@pytest.mark.parametrize("alg", BINARIES)
def test_binary_by_hand(alg: BinaryAlg) -> None:
    for step in (Binary(alg, 0.5), Binary(alg, Leaf("c"))):
        for run in (evaluate, evaluate_f32):
            assert run(Chain(step), X, operands={"c": 0.5}).tolist() == BINARIES[alg]


@pytest.mark.parametrize("step", SMOOTH, ids=str)
def test_smooth_step_by_its_formula(step: Eltwise) -> None:
    wanted = np.array([SMOOTH[step](x) for x in X])
    got = evaluate(Chain(step), X)
    # Distance in units of the last place: the formula and ours round differently.
    assert np.abs(got - wanted).max() <= 8 * np.spacing(np.abs(wanted).max())
    narrow = evaluate_f32(Chain(step), X)
    assert narrow.dtype == np.float32
    assert narrow.tolist() == got.astype(np.float32).tolist()


def test_every_algorithm_has_a_test() -> None:
    tested = {step.alg for step, _ in TABLE if isinstance(step, Eltwise)}
    assert tested | {step.alg for step in SMOOTH} | {"sqrt", "log"} == set(ALGS)


def test_roots_and_logarithms_leave_their_domain_as_nan() -> None:
    with np.errstate(all="ignore"):
        assert evaluate(Chain(Eltwise("sqrt")), [4.0, 0.25]).tolist() == [2.0, 0.5]
        assert np.isnan(evaluate(Chain(Eltwise("sqrt")), -1.0))
        assert evaluate(Chain(Eltwise("log")), [1.0, 0.0]).tolist() == [0.0, -math.inf]


@pytest.mark.parametrize("alg", ["soft_relu", "logistic", "swish", "mish", "elu", "relu"])
def test_far_values_do_not_overflow(alg: str) -> None:
    step = Eltwise(alg, 1.0 if ALGS[alg].parameters else 0.0)
    assert np.isfinite(evaluate(Chain(step), [-1e4, 1e4])).all()


def test_zero_slope_gives_zero_below_infinity() -> None:
    assert evaluate(Chain(Eltwise("relu")), -math.inf).item() == 0.0


class TestChannels:
    def test_run_along_the_axis(self) -> None:
        chain = Chain(Affine([1, 10], [0, 5]), Clip([0, 0], [3, 100]))
        x = np.arange(8.0).reshape(2, 2, 2)
        for axis in (1, -2):
            got = evaluate(chain, x, axis=axis)
            assert got.tolist() == [[[0, 1], [25, 35]], [[3, 3], [65, 75]]]
        assert evaluate(chain, x, axis=0).tolist() == [[[0, 1], [2, 3]], [[45, 55], [65, 75]]]

    def test_leaf_per_channel(self) -> None:
        chain = Chain(Binary("add", Leaf("c", extent="per_channel")))
        assert evaluate(chain, np.zeros((1, 2)), operands={"c": [1, 2]}).tolist() == [[1, 2]]

    def test_wrong_shapes_are_named(self) -> None:
        chain = Chain(Affine([1, 2]))
        with pytest.raises(ShapeError, match=r"x: got shape \(1, 3\); wanted 2 channels on axis 1"):
            evaluate(chain, np.zeros((1, 3)))
        with pytest.raises(ArgumentError, match="axis: got 1"):
            evaluate(chain, np.zeros(2))

    def test_missing_inputs_are_named(self) -> None:
        with pytest.raises(ArgumentError, match="dst_before: got nothing"):
            evaluate(Chain(Sum()), 0.0)
        with pytest.raises(ArgumentError, match="operands: got no 'res'"):
            evaluate(Chain(Binary("mul", Leaf("res"))), 0.0)


class TestFloat32:
    def test_per_tensor_affine_is_one_fma(self) -> None:
        # 3 * (1/3) rounds to 1 on its own; fused with -1 the error of 1/3 shows.
        third = float(np.float32(1) / np.float32(3))
        fused = evaluate_f32(Chain(Affine(third, -1)), np.float32(3))
        assert fused.item() == 3 * Fraction(third) - 1 != 0
        apart = evaluate_f32(Chain(Affine([third, 1]), Affine(1, -1)), np.full((1, 2), 3.0))
        assert apart[0, 0] == 0.0

    def test_per_channel_affine_rounds_twice(self) -> None:
        third = float(np.float32(1) / np.float32(3))
        both = evaluate_f32(Chain(Affine([third, 1], -1)), np.full((1, 2), 3.0))
        assert both[0, 0] == 0.0

    def test_constants_are_rounded_first(self) -> None:
        assert evaluate_f32(Chain(Clip(hi=0.1)), 1.0).item() == float(np.float32(0.1))

    def test_overflow_is_infinity(self) -> None:
        assert evaluate_f32(Chain(Affine(2.0**127)), 4.0).item() == math.inf


finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
near_one = st.floats(0.5, 2, width=32)


def rounded(value: Fraction) -> float:
    """Round a rational to float32 by hand: nearest, ties to even."""
    if value == 0:
        return 0.0
    exponent = max(math.frexp(abs(value.numerator) / value.denominator)[1] - 24, -149)
    unit = Fraction(2) ** exponent
    return float(round(value / unit) * unit)


class TestFma:
    @given(near_one, near_one, near_one)
    def test_rounds_once(self, a: float, x: float, c: float) -> None:
        got = fma32(*(np.asarray(v, np.float32) for v in (a, x, -c)))
        assert got.item() == rounded(Fraction(a) * Fraction(x) - Fraction(c))

    @pytest.mark.parametrize("tiny", [2.0**-60, -(2.0**-60), 2.0**-80, 2.0**-149])
    def test_double_rounding_is_avoided(self, tiny: float) -> None:
        # a*x lies in the middle between two float32 values; only c says to which it is nearer.
        a, x = np.float32(1 + 2.0**-12), np.float32(1 + 2.0**-12)
        exact = Fraction(float(a)) * Fraction(float(x)) + Fraction(tiny)
        assert fma32(*(np.asarray(v, np.float32) for v in (a, x, tiny))).item() == rounded(exact)

    @given(finite, finite, finite)
    def test_agrees_at_every_magnitude(self, a: float, x: float, c: float) -> None:
        exact = Fraction(a) * Fraction(x) + Fraction(c)
        if abs(exact) < 2.0**127:
            got = fma32(*(np.asarray(v, np.float32) for v in (a, x, c)))
            assert got.item() == rounded(exact)

    def test_infinities_pass(self) -> None:
        values = (np.asarray(v, np.float32) for v in (2.0, math.inf, 1.0))
        with np.errstate(all="ignore"):
            assert fma32(*values).item() == math.inf
