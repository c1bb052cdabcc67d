"""What each argument of a call means, against sums that are written out by hand."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from pyonednn_q.check.meaning import Meaning
from pyonednn_q.check.places import Geometry, Places
from pyonednn_q.expr.steps import Binary, Chain, Eltwise, Extent, Leaf, Sum

# Two rows, two columns; three products each.
SRC, WEI = ((7, 2, 5), (1, 9, 4)), ((3, -4), (-2, 6), (5, 1))
SUMS = ((42, -11), (5, 54))
ROWS = (0, 1)
NO_STEPS = Chain()
# With both zero points: (src - 3) · (wei + 2).
SHIFTED = ((4 * 5 + 2 * 7, 4 * -2 - 8 + 2 * 3), (-2 * 5 + 7, -2 * -2 + 6 * 8 + 3))


def real(*values: float) -> Any:
    return np.array(values, np.float64)


# Arguments, and what a result stands for, exactly, by the row and column of its sum.
CALLS: dict[str, tuple[dict[str, Any], Any]] = {
    "nothing": ({}, lambda r, c: SUMS[r][c]),
    "a scale": ({"scale": real(0.375)}, lambda r, c: Fraction(3, 8) * SUMS[r][c]),
    "scales": ({"scale": real(0.375, 1.3125)}, lambda r, c: (0.375, 1.3125)[c] * SUMS[r][c]),
    "scale of dst": ({"dst_scale": real(0.375)}, lambda r, c: SUMS[r][c] / Fraction(3, 8)),
    "zero points": (
        {"scale": real(0.4375), "src_zero_point": real(3), "wei_zero_point": real(-2)},
        lambda r, c: Fraction(7, 16) * SHIFTED[r][c],
    ),
    "split zero point": (
        {"scale": real(0.4375), "src_zero_point": real(3), "wei_zero_point": real(-2)}
        | {"splits_src": True},
        lambda r, c: Fraction(7, 16) * SHIFTED[r][c],
    ),
    "zero point of dst": (
        {"scale": real(0.375), "dst_zero_point": -9},
        lambda r, c: Fraction(3, 8) * SUMS[r][c] - 9,
    ),
    "real bias": (
        {"scale": real(0.375), "bias": real(2.25, -3.5), "dst_scale": real(1.5)},
        lambda r, c: (Fraction(3, 8) * SUMS[r][c] + (2.25, -3.5)[c]) / Fraction(3, 2),
    ),
    "bias of sums": (
        {"scale": real(0.375), "bias": real(6, -6), "bias_in_acc": True, "dst_scale": real(1.5)},
        lambda r, c: Fraction(3, 8) * (SUMS[r][c] + (6, -6)[c]) / Fraction(3, 2),
    ),
    "scales of elements": (
        {"src_scale": np.array([[0.5], [2.0]]), "wei_scale": real(0.625, 0.25)},
        lambda r, c: (0.5, 2.0)[r] * Fraction((0.625, 0.25)[c]) * SUMS[r][c],
    ),
}


def band(dst: str, arguments: dict[str, Any], chain: Chain = NO_STEPS, **more: Any) -> Any:
    src, wei = np.array(SRC), np.array(WEI)
    places = Places.of(Geometry("matmul", src.shape, wei.shape))
    return Meaning(chain, dst, **arguments).band(places, src, wei, **more)


def by_hand(value: Any) -> list[list[Fraction]]:
    return [[Fraction(value(r, c)) for c in ROWS] for r in ROWS]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("rounds_first", [False, True])
def test_an_integer_is_the_nearest(call: str, rounds_first: bool) -> None:
    arguments, value = CALLS[call]
    found = band("s8", {**arguments, "rounds_first": rounds_first})
    wanted = [[round(exact) for exact in row] for row in by_hand(value)]
    assert not any(exact.denominator == 2 for row in by_hand(value) for exact in row)  # no ties
    assert found.low.tolist() == found.high.tolist() == np.clip(wanted, -128, 127).tolist()


def test_a_bare_sum_has_the_zero_point_and_the_bias_added() -> None:
    found = band("s32", {"dst_zero_point": -9, "bias": real(5, -6), "bias_in_acc": True})
    wanted = [[SUMS[r][c] - 9 + (5, -6)[c] for c in ROWS] for r in ROWS]
    assert found.low.tolist() == found.high.tolist() == wanted


@pytest.mark.parametrize(("dst", "bits"), [("f32", 18), ("bf16", 6), ("f16", 9)])
@pytest.mark.parametrize("call", [call for call in CALLS if "of dst" not in call])
def test_a_float_is_as_near_as_its_type_allows(call: str, dst: str, bits: int) -> None:
    arguments, value = CALLS[call]
    found = band(dst, arguments)
    for r, row in enumerate(by_hand(value)):
        for c, exact in enumerate(row):
            size = 2.0**-bits * max(abs(float(exact)), 8.0)
            assert exact - Fraction(size) < found.low[r, c] <= exact <= found.high[r, c]
            assert found.high[r, c] < exact + Fraction(size)


@pytest.mark.parametrize("wei", [WEI, np.array(WEI, np.float32)], ids=["codes", "floats"])
@pytest.mark.parametrize("splits_src", [False, True])
@pytest.mark.parametrize("kind", ["convolution", "inner_product"])
def test_rounding_errors_hold_what_float32_loses(kind: Any, splits_src: bool, wei: Any) -> None:
    """Sums of as many products, and of a zero point times all weights if it is split off."""
    src, point = np.array(SRC), 2.0**20
    wei = np.array(wei).T
    if kind == "convolution":
        src, wei = src[..., np.newaxis], wei[..., np.newaxis]
    meaning = Meaning(
        NO_STEPS, "f32", scale=real(0.4375), src_zero_point=real(point), splits_src=splits_src
    )
    found = meaning.band(Places.of(Geometry.of(kind, src.shape, wei.shape)), src, wei)
    exact = np.array(SUMS) - point * np.array([6, 3])
    sizes = point * np.array([10, 11]) * 0.4375
    room = (found.high - found.low) / 2
    assert np.abs((found.high + found.low) / 2 - 0.4375 * exact).max() < 2.0**-20
    assert (room > 2.0**-24 * np.abs(0.4375 * exact)).all()
    if splits_src or wei.dtype.kind == "f":
        assert (room > 2.0**-24 * sizes).all()
    assert (room < 64 * 2.0**-24 * sizes).all()


@pytest.mark.parametrize("dst", ["f32", "bf16", "f16"])
def test_a_float_may_be_rounded_to_its_type(dst: str) -> None:
    """1/13 of a sum, by two neighbours in the type; nothing is wrong beyond its largest number."""
    digits, largest = {"f32": (23, 3.5e38), "bf16": (7, 3.5e38), "f16": (10, 65536.0)}[dst]
    found = band(dst, {"dst_scale": real(13.0)})
    for r, row in enumerate(SUMS):
        for c, exact in enumerate(row):
            exponent = np.floor(np.log2(abs(exact / 13.0))) - digits
            whole = exact / 13.0 / 2.0**exponent
            ends = np.array([np.floor(whole), np.ceil(whole)]) * 2.0**exponent
            assert found.low[r, c] <= ends[0] < ends[1] <= found.high[r, c]
    beyond = band(dst, {"scale": real(largest)})
    assert not beyond.wrong(np.full((2, 2), np.inf)).any()
    assert band(dst, {}).wrong(np.full((2, 2), np.inf)).all()


@pytest.mark.parametrize(
    ("extent", "operand"),
    [
        ("full", [[2, -1], [3, 4]]),
        ("per_row", [[2], [3]]),
        ("per_channel", [2, -1]),
        ("per_tensor", [2]),
    ],
)
def test_an_operand_lies_as_it_is_named(extent: Extent, operand: Any) -> None:
    values = np.array(operand)
    found = band("s32", {}, Chain(Binary("mul", Leaf("r", extent=extent))), operands={"r": values})
    assert ((found.low + found.high) / 2).tolist() == (values * np.array(SUMS)).tolist()


def test_a_sum_reads_what_dst_held() -> None:
    before = np.array([[4, -8], [12, 0]], np.int8)
    found = band("s8", {}, Chain(Sum(0.5), Eltwise("relu")), before=before)
    assert found.low.tolist() == found.high.tolist() == [[44, 0], [11, 54]]


@pytest.mark.parametrize("call", [call for call in CALLS if "elements" not in call])
def test_another_arithmetic_means_the_same(call: str) -> None:
    arguments, value = CALLS[call]
    found = band("s8", {**arguments, "distance": (0.5, 0.0, 0.0)})
    wanted = np.clip([[round(exact) for exact in row] for row in by_hand(value)], -128, 127)
    assert found.low.tolist() == found.high.tolist() == wanted.tolist()


def test_another_arithmetic_may_be_off_by_parts_of_every_term() -> None:
    """A sixteenth of |2 · acc / 4|, |bias / 4| and |zero point|, however their signs cancel."""
    given: dict[str, Any] = {"scale": real(2.0), "dst_scale": real(4.0), "dst_zero_point": -64}
    found = band("s8", {**given, "bias": real(-320.0, 192.0), "distance": (0.0, 1 / 16, 0.0)})
    for r in ROWS:
        for c, bias in enumerate((-80, 48)):
            scaled = Fraction(SUMS[r][c], 2)
            room = (abs(scaled) + abs(bias) + 64) / 16
            ends = scaled + bias - 64 - room, scaled + bias - 64 + room
            assert found.low[r, c] == max(math.ceil(ends[0]), -128)
            assert found.high[r, c] == max(math.floor(ends[1]), -128)


@pytest.mark.parametrize("kind", ["convolution", "inner_product", "matmul"])
def test_rounding_errors_of_a_channel_are_its_own(kind: Any) -> None:
    """Other channels add nothing to a channel's sum."""
    src = np.array(SRC, np.float32)
    rooms = []
    for copies in (1, 40):
        wei = np.tile(np.array(WEI, np.float32), (1, copies))
        if kind == "matmul":
            geometry, x = Geometry("matmul", src.shape, wei.shape), src
        else:
            wei, x = (wei.T[..., np.newaxis], src[..., np.newaxis])
            geometry = Geometry.of(kind, x.shape, wei.shape)
        found = Meaning(NO_STEPS, "f32", scale=real(0.3)).band(Places.of(geometry), x, wei)
        rooms.append((found.high - found.low)[:, :2])
    assert rooms[0].tolist() == rooms[1].tolist()


def test_32_bits_end_where_kernels_saturate() -> None:
    """At the last integer, or at the last float32 below it."""
    for more in ({}, {"distance": (0.5, 0.0, 0.0)}):
        found = band("s32", {"bias": real(2**31, -(2**31)), "bias_in_acc": True, **more})
        assert found.low[:, 0].tolist() == [2147483520] * 2
        assert found.high[:, 0].tolist() == [2**31 - 1] * 2
        assert found.low[0, 1] == -(2**31)
    for bias in (2**33, -(2**33)):
        found = band("s32", {"bias": real(bias)}, Chain(Eltwise("linear", 1.0, 0.0)))
        end = (2147483520, 2**31 - 1) if bias > 0 else (-(2**31), -(2**31))
        assert {*zip(found.low.flat, found.high.flat, strict=True)} == {end}


def test_products_of_codes_are_not_rounded_one_by_one() -> None:
    """What cancels leaves no error: with one scale, only what comes of the sum is rounded."""
    src, wide = np.array([[1, 1, 1]]), []
    for wei in ([[100], [-100], [1]], [[0], [0], [1]]):
        codes = np.array(wei, np.int8)
        places = Places.of(Geometry("matmul", src.shape, codes.shape))
        found = Meaning(NO_STEPS, "f32", scale=real(0.3)).band(places, src, codes)
        wide.append(float((found.high - found.low)[0, 0]))
    assert wide[0] == wide[1] > 0
