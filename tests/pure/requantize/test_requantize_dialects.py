"""Requantization of s32 accumulators in each runtime's arithmetic, by name.

Accepted: every dialect's integer equals that of its own definition in rational arithmetic, on
accumulators beside ties and at the ends of their range, for one scale and for one per channel. The
C++ twins are held equal to the same statement in tests/native/test_requantize.py, and the live
runtimes judge both in tests/others/oracles.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.requantize import DIALECTS, dialect, requantize, requantizer, statement
from pyonednn_q.requantize.quantize_rules import SATURATE_MODES, saturate_mode
from pyonednn_q.requantize.value import Requantizer
from support.definitions import requantization

LIMITS = {"s8": (-128, 127), "u8": (0, 255)}
ALIASES = {
    "D1": "tflite_1step",
    "D2": "tflite_2step",
    "F1": "tflite_1step_single",
    "F2": "tflite_2step_single",
    "U2": "tflite_2up",
    "FU2": "tflite_2up_single",
    "c2": "caffe2",
    "q31": "caffe2",
    "ort": "onnxruntime",
}


def scales(rng: np.random.Generator, count: int, low: float, high: float) -> tuple[Any, ...]:
    """float32 scales whose multiplier lies between 2^low and 2^high."""
    src, dst = (rng.uniform(0.001, 0.2, count).astype(np.float32) for _ in range(2))
    wei = (2.0 ** rng.uniform(low, high, count) * dst / src).astype(np.float32)
    return src, wei, dst


def beside_ties(rng: np.random.Generator, multiplier: float, count: int) -> Any:
    """Accumulators whose result is near a tie inside the output's range, and the extreme ones."""
    ties = rng.integers(-135, 135, count) + 0.5
    near = np.rint(ties / multiplier) + rng.integers(-1, 2, count)
    ends = [0, 1, -1, 2**24 + 1, -(2**24) - 1, 2**30, -(2**30), 2**31 - 1, -(2**31)]
    return np.append(np.clip(near, -(2**31), 2**31 - 1), ends).astype(np.int32)


def test_every_dialect_has_a_definition_here() -> None:
    assert set(requantization.RULES) == set(DIALECTS)


@pytest.mark.parametrize("dst", ["s8", "u8"])
@pytest.mark.parametrize("octaves", [(-14, -4), (-4, 0), (-24, -16)], ids=str)
@pytest.mark.parametrize("name", DIALECTS)
def test_every_integer_is_that_of_the_definition(
    name: str, octaves: tuple[int, int], dst: str
) -> None:
    rng = np.random.default_rng([len(name), -octaves[0]])
    lo, hi = LIMITS[dst]
    for src, wei, to in zip(*scales(rng, 4, *octaves), strict=True):
        zero_point = int(rng.integers(lo, hi + 1))
        acc = beside_ties(rng, float(src) * float(wei) / float(to), 40)
        got = requantize(
            acc,
            name,
            src_scale=src,
            wei_scale=wei,
            dst_scale=to,
            dst_zero_point=zero_point,
            dst_dtype=dst,
        )
        sx, sw, sy = (Fraction(float(scale)) for scale in (src, wei, to))
        rule = requantization.RULES[name]
        wanted = [rule(int(a), sx, sw, sy, zero_point, (lo, hi)) for a in acc]
        assert got.tolist() == wanted


@pytest.mark.parametrize("name", DIALECTS)
def test_dyadic_scales_put_every_accumulator_on_a_grid(name: str) -> None:
    """Every tie and every sign, where nothing is ever rounded but the result."""
    acc = np.arange(-150, 151, dtype=np.int32)
    for power in (1, 2, 5):
        src, wei, dst = Fraction(1, 4), Fraction(1, 2**power), Fraction(1, 2)
        got = requantize(
            acc,
            name,
            src_scale=float(src),
            wei_scale=float(wei),
            dst_scale=float(dst),
            dst_zero_point=-3,
        )
        rule = requantization.RULES[name]
        assert got.tolist() == [rule(int(a), src, wei, dst, -3, (-128, 127)) for a in acc]


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("name", DIALECTS)
def test_channels_are_requantized_one_by_one(name: str, axis: int) -> None:
    rng = np.random.default_rng(3)
    src, wei, dst = scales(rng, 5, -12, -5)
    bias = rng.normal(size=5) if name.startswith("onednn") else rng.integers(-2000, 2000, 5)
    shape = [4, 3, 2]
    shape[axis] = 5
    acc = rng.integers(-(2**16), 2**16, shape).astype(np.int32)
    options: dict[str, Any] = {"dst_zero_point": 3, "dst_dtype": "u8"}
    got = requantize(
        acc,
        name,
        src_scale=float(src[0]),
        wei_scale=wei,
        dst_scale=float(dst[0]),
        bias=bias,
        axis=axis,
        **options,
    )
    for channel in range(5):
        alone = requantize(
            np.take(acc, channel, axis),
            name,
            src_scale=float(src[0]),
            wei_scale=wei[channel],
            dst_scale=float(dst[0]),
            bias=bias[channel],
            **options,
        )
        assert np.array_equal(np.take(got, channel, axis), alone)


@pytest.mark.parametrize("name", [name for name in DIALECTS if not name.startswith("onednn")])
def test_a_bias_is_part_of_the_accumulator(name: str) -> None:
    acc = np.array([-700, -3, 0, 5, 900], np.int32)
    given: dict[str, Any] = {"src_scale": 0.03, "wei_scale": 0.4, "dst_scale": 0.1}
    shifted = requantize((acc + 41).astype(np.int32), name, **given)
    assert np.array_equal(requantize(acc, name, **given, bias=41), shifted)


@pytest.mark.parametrize("name", DIALECTS)
def test_integers_of_a_bias_count_accumulators(name: str) -> None:
    """Where nothing is rounded but the result, in all dialects: M = 1/16 · dst's own 1/2."""
    acc, bias = np.arange(-300, 300, dtype=np.int32).reshape(-1, 2), np.array([40, -777])
    src, wei, dst = Fraction(1, 2), Fraction(1, 16), Fraction(1, 2)
    got = requantize(
        acc,
        name,
        src_scale=float(src),
        wei_scale=float(wei),
        dst_scale=float(dst),
        dst_zero_point=5,
        bias=bias,
    )
    rule = requantization.RULES[name]
    sums = (acc.astype(np.int64) + bias).ravel().tolist()
    wanted = [rule(total, src, wei, dst, 5, (-128, 127)) for total in sums]
    assert got.ravel().tolist() == wanted


@pytest.mark.parametrize("name", [name for name in DIALECTS if name.startswith("onednn")])
def test_onednn_adds_a_real_bias_after_the_scales(name: str) -> None:
    acc = np.array([10], np.int32)
    got = requantize(acc, name, src_scale=0.5, wei_scale=0.5, dst_scale=0.25, bias=1.5)
    assert got.tolist() == [16]  # (10 · 0.25 + 1.5) / 0.25


def test_caffe_s_blobs_are_float32() -> None:
    """From 2^24 on: sums, and what is stored between the two roundings."""
    given: dict[str, Any] = {"src_scale": 1.0, "wei_scale": 2.0**-25, "dst_scale": 1.0}
    acc = np.array([2**24 - 1, 2**24, 2**24 + 1, 2**24 + 2, 2**25 - 1], np.int32)
    assert requantize(acc, "snps_inner_product_onnx", **given).tolist() == [0, 0, 0, 1, 1]
    # 0.75, halved. (2^24 + 1) · 0.75 would be 12582912.75; read as 2^24 it is 12582912.
    given["wei_scale"] = 0.75 * 2.0**-1
    wide = {**given, "dst_dtype": "s32"}
    assert requantize(acc, "snps_inner_product", **wide).tolist() == [
        6291456,  # 12582911.25 to 12582911, 6291455.5 away
        6291456,
        6291456,
        6291457,  # 12582913.5 to 12582914
        12582912,  # read as 2^25
    ]
    # 2^26 + 8 by 0.75 is 50331654, a float32 only as 50331656 or 50331652: a tie, to even.
    acc = np.array([2**26 + 8, 2**26 + 24], np.int32)
    assert requantize(acc, "snps_inner_product", **wide).tolist() == [25165828, 25165832]


@pytest.mark.parametrize("name", ["tpu_mlir", "tpu_mlir_8bit"])
def test_multipliers_that_tpu_mlir_has_no_bit_for_are_0(name: str) -> None:
    acc = np.array([-(2**31), -1, 0, 1, 2**31 - 1], np.int32)
    for multiplier in (2.0**-31, 2.0**-32, 1.3 * 2.0**-40, 2.0**-90):
        given: dict[str, Any] = {"src_scale": 1.0, "wei_scale": multiplier, "dst_scale": 1.0}
        assert requantize(acc, name, **given, dst_zero_point=3).tolist() == [3] * 5
    given["wei_scale"] = 1.5 * 2.0**-31  # one bit, after 30 shifts: 2^31 / 2^30
    assert requantize(acc, name, **given).tolist() == [-2, 0, 0, 0, 2]


@pytest.mark.parametrize("name", DIALECTS)
def test_multipliers_out_of_reach_are_refused_by_a_name_that_was_given(name: str) -> None:
    for exponent in (*range(-100, -20, 7), *range(10, 100, 7)):
        scales: dict[str, Any] = {"src_scale": 2.0**10, "dst_scale": 1.0}
        scales["wei_scale"] = 2.0 ** (exponent - 10)
        try:
            requantizer(name, **scales)
        except ArgumentError as error:
            assert error.argument in scales  # noqa: PT017 - some are refused, some are not


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_the_notes_names_are_known(alias: str, name: str) -> None:
    assert dialect(alias) is DIALECTS[name]


def test_s32_results_keep_their_bits_but_for_onednn_s_own_limit() -> None:
    acc = np.array([2**31 - 1, -(2**31)], np.int32)
    given: dict[str, Any] = {"src_scale": 1.0, "wei_scale": 1.0, "dst_scale": 1.0}
    exact = requantize(acc, "exact", **given, dst_dtype="s32")
    assert exact.tolist() == [2**31 - 1, -(2**31)]
    assert requantize(acc, "onednn", **given, dst_dtype="s32")[0] == 2147483520


def test_what_is_beyond_64_bits_saturates_too() -> None:
    """2^31 · 2^47 · 2^20, of both signs, is far beyond what a register holds."""
    acc = np.array([2**31 - 1, -(2**31), 0], np.int32)
    made = Requantizer("exact", 2**47, 20, dtype="s8")
    assert statement.apply(acc, made).tolist() == [127, -128, 0]


@pytest.mark.parametrize("name", ["tflite_2step", "tflite_2up", "caffe2", "tflite_1step"])
def test_sums_that_leave_32_bits_are_refused(name: str) -> None:
    acc = np.array([2**31 - 1], np.int32)
    given: dict[str, Any] = {"src_scale": 0.5, "wei_scale": 0.5, "dst_scale": 0.5}
    with pytest.raises(ArgumentError, match=r"^acc: "):
        requantize(acc, name, **given, bias=1)


@pytest.mark.parametrize("name", ["tosa_single_round", "tosa_double_round"])
def test_tosa_shifts_right_by_two_at_least(name: str) -> None:
    given: dict[str, Any] = {"src_scale": 1.0, "dst_scale": 1.0, "dst_dtype": "s32"}
    acc = np.array([-1, 0, 1], np.int32)
    got = requantize(acc, name, **given, wei_scale=2.0**29 - 1)
    assert got.tolist() == [1 - 2**29, 0, 2**29 - 1]
    with pytest.raises(ArgumentError, match=r"^src_scale: .*below 2\^29"):
        requantize(acc, name, **given, wei_scale=2.0**29)


def test_left_shifts_that_leave_32_bits_are_refused() -> None:
    """TFLite wraps around here; a multiplier of 1 or more shifts left first."""
    given: dict[str, Any] = {"src_scale": 1.0, "wei_scale": 3.0, "dst_scale": 1.0}
    fits = np.array([2**29 - 1, -(2**29)], np.int32)
    got = requantize(fits, "tflite_2step", **given, dst_dtype="s32")
    assert got.tolist() == [3 * (2**29 - 1), -3 * 2**29]
    with pytest.raises(ArgumentError, match=r"^acc: .* leaves 32 bits"):
        requantize(np.array([2**29], np.int32), "tflite_2step", **given, dst_dtype="s32")


def test_what_a_dialect_does_not_define_is_refused() -> None:
    ones: dict[str, Any] = {"src_scale": 1.0, "wei_scale": 1.0, "dst_scale": 1.0}
    for name in ("caffe2", "caffe2_deconv", "snps_inner_product"):
        with pytest.raises(ArgumentError, match=r"multiplier of 1\.0; wanted .* below 1"):
            requantizer(name, **ones)
    with pytest.raises(ArgumentError, match=r"^dialect: got 'd3'; wanted one of exact, "):
        dialect("d3")


@pytest.mark.parametrize(
    ("name", "least"),
    [("caffe2", 2.0**-32), ("caffe2_deconv", 2.0**-62), ("snps_inner_product", 2.0**-62)],
)
def test_multipliers_have_a_least_and_stay_below_1(name: str, least: float) -> None:
    def made(multiplier: float) -> Requantizer:
        return requantizer(name, src_scale=multiplier, wei_scale=1.0, dst_scale=1.0)

    made(least)
    made(1.0 - 2.0**-24)
    for multiplier in (least * (1.0 - 2.0**-24), 1.0):
        with pytest.raises(ArgumentError, match=r"^src_scale: got a multiplier of .* to below 1"):
            made(multiplier)


@pytest.mark.parametrize("scale", ["src_scale", "wei_scale", "dst_scale"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf"), 1e-60])
def test_scales_must_be_finite_and_positive_as_stored(scale: str, value: float) -> None:
    given: dict[str, Any] = {"src_scale": 1.0, "wei_scale": 0.5, "dst_scale": 1.0, scale: value}
    with pytest.raises(ArgumentError, match=rf"^{scale}: "):
        requantizer("tflite_2step", **given)


def test_arguments_are_named() -> None:
    given: dict[str, Any] = {"src_scale": 0.5, "wei_scale": [0.5, 0.25], "dst_scale": 1.0}
    with pytest.raises(DTypeError, match=r"^acc: got int64; wanted int32"):
        requantize(np.zeros((1, 2), np.int64), "exact", **given)
    with pytest.raises(ShapeError, match=r"^acc: got shape \(1, 3\); wanted 2 channels"):
        requantize(np.zeros((1, 3), np.int32), "exact", **given)
    with pytest.raises(DTypeError, match=r"^bias: got float64; wanted integers"):
        requantizer("tflite_2step", **given, bias=0.5)
    with pytest.raises(ArgumentError, match=r"^zero_point: got 300"):
        requantizer("tflite_2step", **given, dst_zero_point=300)
    with pytest.raises(ShapeError, match=r"^wei_scale: got constants of shapes .*2.*3"):
        requantizer("tflite_2step", **given, dst_zero_point=[1, 2, 3])


@pytest.mark.parametrize("mode", SATURATE_MODES)
@pytest.mark.parametrize("name", ["tflite_2step", "onnxruntime", "caffe2"])
def test_the_note_s_five_ways_to_saturate(name: str, mode: str) -> None:
    """Two of them keep 12 bits: the values between are those of no bounds at all."""
    acc = np.arange(-200_000, 200_000, 997, dtype=np.int32)

    def made(mode: str) -> Requantizer:
        return requantizer(
            name, src_scale=0.5, wei_scale=0.25, dst_scale=3.0, **saturate_mode(mode)
        )

    free = statement.apply(acc, made("None"))
    ends = {
        "None": (-(2**31), 2**31 - 1),
        "Signed": (-2048, 2047),
        "Unsigned": (0, 4095),
        "Signed_8bit": (-128, 127),
        "Unsigned_8bit": (0, 255),
    }[mode]
    got = statement.apply(acc, made(mode))
    assert np.array_equal(got, np.clip(free, *ends))
    assert got.min() == max(free.min(), ends[0])
    assert got.max() == min(free.max(), ends[1])


def test_an_unknown_way_to_saturate_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"^name: got '8bit'"):
        saturate_mode("8bit")


@pytest.mark.parametrize("name", ["tflite_2step", "onnxruntime", "caffe2"])
def test_destinations_have_a_scale_per_channel(name: str) -> None:
    """The note's per_channel_scale_output: each channel as it is alone."""
    rng = np.random.default_rng(8)
    acc = rng.integers(-5000, 5000, (2, 4, 9)).astype(np.int32)
    dst = rng.uniform(0.1, 0.4, 4).astype(np.float32)
    got = requantize(acc, name, src_scale=0.02, wei_scale=0.5, dst_scale=dst)
    for channel in range(4):
        one = requantize(
            acc[:, channel], name, src_scale=0.02, wei_scale=0.5, dst_scale=dst[channel]
        )
        assert np.array_equal(got[:, channel], one)


@pytest.mark.parametrize("name", ["src_scale", "wei_scale", "dst_scale"])
@pytest.mark.parametrize("value", [0.0, [0.5, 0.0], -0.5, np.inf, np.nan])
def test_a_scale_is_finite_and_positive(name: str, value: Any) -> None:
    scales: dict[str, Any] = {"src_scale": 0.5, "wei_scale": 0.25, "dst_scale": 1.0}
    with pytest.raises(ArgumentError, match=rf"^{name}: "):
        requantizer("onnxruntime", **scales | {name: value})
