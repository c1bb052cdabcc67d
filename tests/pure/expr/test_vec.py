"""Vec: constants that are values, per tensor or per channel."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.expr.vec import Vec, number

numbers = st.floats(-1e6, 1e6, width=32)
rows = st.lists(numbers, min_size=2, max_size=4)


class TestConstruction:
    @pytest.mark.parametrize(
        "value", [2, 2.0, [2.0], [2.0, 2.0, 2.0], np.float32(2), np.full(5, 2)]
    )
    def test_equal_channels_are_one_value(self, value: Any) -> None:
        vec = Vec(value)
        assert vec == Vec(2.0)
        assert (vec.array, vec.channels, vec.is_per_tensor) == (None, None, True)

    def test_keeps_channels(self) -> None:
        vec = Vec([3.0, -1.0, 2.0])
        assert (vec.channels, vec.least, vec.greatest) == (3, -1.0, 3.0)

    @pytest.mark.parametrize(
        ("value", "problem"),
        [
            (float("nan"), "value: got NaN; wanted a number"),
            ([1.0, float("nan")], "NaN in channel 1"),
            ([], r"shape \(0,\)"),
            ([[1.0], [2.0]], r"shape \(2, 1\)"),
            ([[1.0], [2.0, 3.0]], "rows of equal length"),
            (True, "True"),
            ("1", "'1'"),
            ([1j], "complex"),
            (None, "None"),
            (10**400, "an integer of 1329 bits"),
        ],
    )
    def test_refuses_what_is_no_constant(self, value: Any, problem: str) -> None:
        with pytest.raises(ArgumentError, match=problem):
            Vec(value)

    def test_infinities_are_kept(self) -> None:
        vec = Vec([float("-inf"), 1.0])
        assert not vec.is_finite
        assert Vec(1e300).is_finite

    def test_what_was_passed_stays_the_callers(self) -> None:
        given_array = np.array([1.0, 2.0])
        vec = Vec(given_array)
        given_array[0] = 9.0
        assert vec == Vec([1.0, 2.0])

    def test_is_frozen(self) -> None:
        vec = Vec([1.0, 2.0])
        with pytest.raises(AttributeError, match="Vec is frozen: least"):
            vec.least = 0.0
        with pytest.raises(AttributeError, match="frozen"):
            del vec.array
        assert vec.array is not None
        with pytest.raises(ValueError, match="read-only"):
            vec.array[0] = 0.0


class TestValue:
    @given(rows)
    def test_equal_values_hash_alike(self, row: list[float]) -> None:
        assert hash(Vec(row)) == hash(Vec(np.array(row) + 0.0))

    def test_signed_zeros_are_equal(self) -> None:
        assert Vec([0.0, 1.0]) == Vec([-0.0, 1.0])
        assert hash(Vec([0.0, 1.0])) == hash(Vec([-0.0, 1.0]))
        assert hash(Vec(0.0)) == hash(Vec(-0.0))

    @pytest.mark.parametrize("other", [Vec([2.0, 1.0]), Vec(1.0), Vec([1.0, 1.5, 2.0]), 1.0, None])
    def test_other_values_differ(self, other: object) -> None:
        assert Vec([1.0, 2.0]) != other

    @pytest.mark.parametrize("vec", [Vec(0.1), Vec([0.1, float("inf")])])
    def test_copies_and_pickles(self, vec: Vec) -> None:
        assert pickle.loads(pickle.dumps(vec)) == vec
        assert copy.copy(vec) is vec
        assert copy.deepcopy(vec) is vec


class TestArithmetic:
    @given(rows, numbers)
    def test_follows_numpy(self, row: list[float], value: float) -> None:
        a, array = Vec(row), np.array(row)
        assert a + value == Vec(array + value)
        assert a - value == Vec(array - value)
        assert value * a == Vec(array * value)
        assert -a == Vec(-array)
        assert abs(a) == Vec(np.abs(array))
        assert a.maximum(value).minimum(a) == Vec(np.minimum(np.maximum(array, value), array))

    @given(numbers, numbers)
    def test_per_tensor_follows_python(self, x: float, y: float) -> None:
        a, b = Vec(x), Vec(y)
        assert (a + b, a - b, a * b) == (Vec(x + y), Vec(x - y), Vec(x * y))
        assert (a.maximum(b), a.minimum(b)) == (Vec(max(x, y)), Vec(min(x, y)))

    @pytest.mark.parametrize("divisor", [0.0, -0.0, [1.0, 0.0]])
    def test_division_by_zero_is_refused(self, divisor: Any) -> None:
        with pytest.raises(ArgumentError, match="divisor"):
            Vec(1.0) / divisor

    def test_division(self) -> None:
        assert Vec([1.0, -3.0]) / [-2.0, 4.0] == Vec([-0.5, -0.75])

    def test_channels_must_agree(self) -> None:
        with pytest.raises(ShapeError, match="channels: got 3; wanted 2 as the other operand has"):
            Vec([1.0, 2.0]) + Vec([1.0, 2.0, 3.0])

    @pytest.mark.filterwarnings("ignore:invalid value")
    def test_no_operation_makes_a_nan(self) -> None:
        with pytest.raises(ArgumentError, match="NaN"):
            Vec(float("inf")) * 0.0
        with pytest.raises(ArgumentError, match="NaN in channel 1"):
            Vec([1.0, float("inf")]) * 0.0

    @pytest.mark.parametrize("x", [0.5, 1.5, 2.5, -0.5, 2.0**53 + 2, float("inf"), -1e300])
    def test_rint_is_to_even(self, x: float) -> None:
        assert Vec(x).rint() == Vec(float(np.rint(x)))
        assert Vec([x, 0.25]).rint() == Vec(np.rint([x, 0.25]))

    @pytest.mark.parametrize("x", [0.1, 1e39, -1e39, 1e-46, 1e-40, 16777217.0, float("-inf")])
    def test_narrow_is_a_cast(self, x: float) -> None:
        with np.errstate(over="ignore", under="ignore"):
            wanted = float(np.float32(x))
        assert Vec(x).narrow() == Vec(wanted)
        assert Vec([x, 0.5]).narrow() == Vec([wanted, 0.5])

    def test_clamp_is_max_then_min(self) -> None:
        assert Vec([-1.0, 5.0, 2.0]).clamp(Vec(0.0), Vec(3.0)) == Vec([0.0, 3.0, 2.0])


class TestQuestions:
    @pytest.mark.parametrize(
        ("value", "integer", "even"),
        [
            (2.0, True, True),
            (3.0, True, False),
            (2.5, False, False),
            ([2.0, -4.0], True, True),
            ([2.0, -3.0], True, False),
            ([2.0, 0.5], False, False),
            (float("inf"), False, False),
            ([float("inf"), 2.0], False, False),
        ],
    )
    def test_whole_and_even(self, value: Any, integer: bool, even: bool) -> None:
        assert (Vec(value).is_integer, Vec(value).is_even) == (integer, even)

    def test_is_all(self) -> None:
        assert Vec(1.0).is_all(1.0)
        assert not Vec([1.0, 2.0]).is_all(1.0)

    def test_spread(self) -> None:
        assert Vec(1.0).spread(3).tolist() == [1.0, 1.0, 1.0]
        with pytest.raises(ShapeError, match="channels: got 3; wanted 2"):
            Vec([1.0, 2.0]).spread(3)

    def test_first_names_the_channel(self) -> None:
        assert Vec([1.0, -2.0]).first(lambda v: v < 0) == "-2 in channel 1"
        assert Vec(-2.0).first(lambda v: v < 0) == "-2"

    @pytest.mark.parametrize("vec", [Vec([1.0, -2.0]), Vec(3.0)])
    @pytest.mark.parametrize(
        ("function", "got"),
        [
            (len, "a function that (raises TypeError|gives int64 of shape)"),
            (str, "a function that gives <U"),
            (lambda v: [v, v], "a function that gives float64 of shape"),
            (lambda v: v / None, "a function that raises TypeError"),
            (object, "a function that raises TypeError"),
            ({}.__getitem__, "a function that raises (TypeError|KeyError)"),
            (7, "7"),
        ],
    )
    def test_functions_that_do_not_fit_are_named(self, vec: Vec, function: Any, got: str) -> None:
        with pytest.raises(ArgumentError, match=f"^function: got {got}"):
            vec.map(function)
        if vec.array is not None or function == 7:
            with pytest.raises(ArgumentError, match=f"^condition: got {got}"):
                vec.first(function)


class TestText:
    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (6, "6"),
            (-0.0, "0"),
            (0.1, "0.1"),
            (1e-40, "1e-40"),
            (float("-inf"), "-inf"),
            ([1, 2.5], "[1, 2.5]"),
            (range(2048), "[0, 1, ..., 2047; 2048 channels]"),
        ],
    )
    def test_is_short_and_round_trips(self, value: Any, text: str) -> None:
        assert str(Vec(list(value) if isinstance(value, range) else value)) == text
        assert repr(Vec(6)) == "Vec(6)"

    @given(st.floats(allow_nan=False))
    def test_number_round_trips(self, value: float) -> None:
        assert float(number(value)) == value


@pytest.mark.parametrize("bound", [[1.0, 2.0], [-np.inf, 2.0], [1.0, np.inf]])
@pytest.mark.parametrize("scale", [[-1.0, 0.0, 1.0], [1.0, 2.0, 3.0]])
def test_a_bound_of_other_channels_is_refused(bound: list[float], scale: list[float]) -> None:
    with pytest.raises(ShapeError, match=r"^channels: got 3; wanted 2"):
        Vec(bound).scaled(Vec(scale))
