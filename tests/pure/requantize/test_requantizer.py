"""The requantizer as a value: what it takes, what it refuses, how it compares."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.requantize.value import KINDS, ROUNDINGS, Requantizer


def test_one_value_serves_all_and_vectors_want_an_axis() -> None:
    one = Requantizer("float", 0.5)
    assert (one.channels, one.axis, one.lo, one.hi) == (1, None, -128, 127)
    many = Requantizer("float", [0.5, 0.25], zero_point=3, axis=1)
    assert many.channels == 2
    assert many.zero_point.tolist() == [3, 3]
    assert many.along("multiplier", (4, 2, 3)).shape == (1, 2, 1)
    assert many.along("bias", (4, 2, 3)).tolist() == [[[0]]]
    with pytest.raises(ShapeError, match=r"^multiplier: got 2 values; wanted one value"):
        Requantizer("float", [0.5, 0.25])
    with pytest.raises(ShapeError, match=r"^multiplier: got one value; wanted one value per"):
        Requantizer("float", 0.5, axis=1)


def test_it_is_a_value() -> None:
    a = Requantizer("two_step", [2**30, 5], [-3, 0], bias=[1, 2], axis=1, rounding="half_up")
    b = Requantizer("two_step", [2**30, 5], [-3, 0], bias=[1, 2], axis=1, rounding="half_up")
    assert a == b
    assert hash(a) == hash(b)
    for other in (
        Requantizer("two_step", [2**30, 5], [-3, 0], bias=[1, 2], axis=0, rounding="half_up"),
        Requantizer("two_step", [2**30, 5], [-3, 1], bias=[1, 2], axis=1, rounding="half_up"),
        Requantizer("two_step", [2**30, 5], [-3, 0], axis=1, rounding="half_up"),
        Requantizer("two_step", [2**30, 5], [-3, 0], bias=[1, 2], axis=1, rounding="down"),
    ):
        assert a != other
    assert a != "two_step"
    assert repr(a).endswith("axis=1)")


def test_a_copy_is_equal_and_cannot_be_written() -> None:
    vector = Requantizer("onednn", [0.5, 0.25], then=0.1, last=2.0, bias=[0.5, 1.5], axis=-1)
    single = Requantizer("two_step", 2**30, -3, zero_point=5, lo=-5, hi=9, rounding="half_up")
    for made in (vector, single):
        for one in (made, pickle.loads(pickle.dumps(made))):
            assert one == made
            with pytest.raises(ValueError, match="read-only"):
                one.multiplier[0] = 1


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_names_its_roundings(kind: str) -> None:
    for rounding in ROUNDINGS:
        given: dict[str, Any] = {"kind": kind, "multiplier": 1, "rounding": rounding}
        if rounding in KINDS[kind].roundings:
            assert Requantizer(**given).rounding == rounding
        else:
            with pytest.raises(ArgumentError, match=rf"^rounding: got '{rounding}'"):
                Requantizer(**given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kind": "three_step"}, r"^kind: got 'three_step'; wanted one of two_step"),
        ({"dtype": "f32"}, r"^dtype: got 'f32'; wanted one of u8, s8, s32"),
        ({"dtype": "u8", "lo": -1}, r"^lo: got -1; wanted an integer from 0 to 255"),
        ({"lo": 5, "hi": 4}, r"^hi: got 4; wanted an integer from 5 to 127"),
        ({"multiplier": 2**31}, r"^multiplier: got 2147483648"),
        ({"multiplier": 0.5}, r"^multiplier: got float64; wanted integers"),
        ({"multiplier": [[1]]}, r"^multiplier: got shape \(1, 1\)"),
        ({"multiplier": []}, r"^multiplier: got float64; wanted integers"),
        ({"shift": 32}, r"^shift: got 32; wanted finite values from -31 to 31"),
        ({"shift": -32}, r"^shift: got -32"),
        ({"bias": 2**31}, r"^bias: got 2147483648"),
        ({"bias": [0, -(2**31) - 1], "axis": 0}, r"^bias: got -2147483649"),
        ({"zero_point": 128}, r"^zero_point: got 128; wanted finite values from -128 to 127"),
        ({"kind": "float", "multiplier": float("nan")}, r"^multiplier: got nan"),
        ({"kind": "float", "multiplier": 1e39}, r"^multiplier: got 1e\+39"),
        ({"kind": "two_round_single", "multiplier": 1.5}, r"^multiplier: got 1\.5"),
        ({"kind": "shift", "multiplier": 2**30, "shift": 2}, r"^shift: got 2; wanted multiplier"),
        ({"kind": "shift", "multiplier": 1, "shift": -63}, r"^shift: got -63"),
        ({"kind": "shift", "multiplier": 1, "shift": 32}, r"^shift: got 32"),
        ({"kind": "two_round_single", "shift": -63}, r"^shift: got -63; .* from -62 to 0"),
        ({"kind": "two_round_double", "shift": -63}, r"^shift: got -63; .* from -62 to 0"),
        ({"kind": "two_round_single", "shift": 1}, r"^shift: got 1; "),
        ({"kind": "two_round_double", "shift": 1}, r"^shift: got 1; "),
        ({"kind": "two_round_double", "multiplier": -1.5}, r"^multiplier: got -1\.5"),
        ({"kind": "exact", "shift": -301}, r"^shift: got -301; wanted .* from -300 to 300"),
        ({"kind": "exact", "shift": 301}, r"^shift: got 301"),
        ({"kind": "exact", "multiplier": 2**48 + 1}, r"^multiplier: got 281474976710657"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(given: dict[str, Any], message: str) -> None:
    whole: dict[str, Any] = {"kind": "two_step", "multiplier": 1, **given}
    if whole["kind"].startswith("two_round"):
        whole["rounding"] = "half_away_from_zero"
    with pytest.raises((ArgumentError, DTypeError, ShapeError), match=message):
        Requantizer(**whole)


@pytest.mark.parametrize(
    ("kind", "multiplier", "shifts"),
    [
        ("two_step", 2**31 - 1, (-31, 31)),
        ("shift", 1, (-62, 31)),
        ("two_round_single", 1.0, (-62, 0)),
        ("two_round_double", -1.0, (-62, 0)),
        ("exact", 2**48, (-300, 300)),
    ],
)
def test_the_last_that_fits_is_taken(kind: str, multiplier: float, shifts: Any) -> None:
    rounding = KINDS[kind].roundings[0]
    for shift in shifts:
        made = Requantizer(kind, multiplier, shift, rounding=rounding)
        assert (made.multiplier.tolist(), made.shift.tolist()) == ([multiplier], [shift])


def test_a_zero_point_leaves_room_for_the_bounds_in_32_bits() -> None:
    Requantizer("float", 1.0, zero_point=5, dtype="s32", lo=-(2**31) + 5)
    with pytest.raises(ArgumentError, match=r"^zero_point: got 5; wanted .* from 0 to 4"):
        Requantizer("float", 1.0, zero_point=5, dtype="s32", lo=-(2**31) + 4)


def test_constants_take_all_of_32_bits() -> None:
    ends = [-(2**31), 2**31 - 1]
    assert Requantizer("two_step", [1, 1], bias=ends, axis=0).along("bias", (2,)).tolist() == ends


def test_lengths_must_agree() -> None:
    with pytest.raises(ShapeError, match=r"^multiplier: got 2 of multiplier, 3 of zero_point"):
        Requantizer("float", [0.5, 0.25], zero_point=[1, 2, 3], axis=0)
