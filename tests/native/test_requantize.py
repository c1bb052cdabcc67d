"""Requantizers in C++ against their NumPy statement: equal, always."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import AliasError, ArgumentError, DTypeError, LayoutError, ShapeError
from pyonednn_q.native.passes import requantize
from pyonednn_q.requantize import DIALECTS, requantizer, statement
from pyonednn_q.requantize.value import KINDS, ROUNDINGS, Requantizer

I32_LO, I32_HI = -(2**31), 2**31 - 1
ARITHMETIC = [(kind, rounding) for kind, row in KINDS.items() for rounding in row.roundings]


def constants(kind: str, count: int, rng: np.random.Generator) -> dict[str, Any]:
    """Constants over the whole range that a kind allows, edges of shifts included."""
    drawn: dict[str, Any] = {"shift": 0}
    if kind == "two_step":
        drawn["multiplier"] = rng.integers(I32_LO, I32_HI, count, endpoint=True)
        drawn["multiplier"][:3] = [I32_LO, I32_HI, 2**30][:count]
        drawn["shift"] = -rng.integers(-2, 32, count)
    elif kind == "shift":
        drawn["multiplier"] = rng.integers(-(2**24), 2**24, count)
        drawn["shift"] = -rng.integers(-6, 63, count)
    elif kind == "exact":
        drawn["multiplier"] = rng.integers(2**46, 2**48, count, endpoint=True)
        drawn["shift"] = -rng.integers(20, 60, count)
        drawn["last"] = rng.integers(2**23, 2**24, count).astype(np.float64)
        drawn["last"][::4] = 2**23  # dyadic: ties happen
        drawn["multiplier"][::4] = 2**46
    elif kind.startswith("two_round"):
        drawn["multiplier"] = rng.uniform(0.5, 1, count)
        drawn["multiplier"][::4] = 0.5
        drawn["shift"] = -rng.integers(0, 40, count)
    else:
        drawn["multiplier"] = rng.uniform(0.5, 1, count) * 2.0 ** -rng.integers(-3, 30, count)
        drawn["multiplier"][::4] = 2.0 ** -rng.integers(1, 20, count)[::4]
    if kind.startswith("onednn"):
        drawn["then"], drawn["last"] = rng.uniform(0.1, 2, (2, count))
        drawn["then"][::4] = drawn["last"][::4] = 1.0
        drawn["bias"] = rng.normal(scale=100, size=count)
    else:
        drawn["bias"] = rng.integers(-(2**16), 2**16, count)
    return drawn


def accumulators(rng: np.random.Generator, shape: tuple[int, ...], bits: int = 28) -> Any:
    """All sizes up to that many bits, equally often."""
    keep = rng.integers(1, bits, shape)
    return np.asarray(rng.integers(-(2**62), 2**62, shape) >> (62 - keep)).astype(np.int32)


def drawn(kind: str, rounding: str, dtype: str, count: int, axis: int, seed: int) -> Requantizer:
    rng = np.random.default_rng(seed)
    lo = {"s8": -128, "u8": 0, "s32": I32_LO + 300}[dtype]
    hi = {"s8": 127, "u8": 255, "s32": I32_HI - 300}[dtype]
    points = rng.integers(max(lo, -200), min(hi, 200), count)
    return Requantizer(
        kind,
        **constants(kind, count, rng),
        zero_point=points,
        dtype=dtype,
        lo=lo,
        hi=hi,
        rounding=rounding,
        axis=axis,
    )


@pytest.mark.parametrize("dtype", ["s8", "u8", "s32"])
@pytest.mark.parametrize(("kind", "rounding"), ARITHMETIC)
def test_every_kind_and_rounding(kind: str, rounding: str, dtype: str) -> None:
    rng = np.random.default_rng(1)
    for count, shape, axis in ((37, (50, 37), -1), (37, (2, 37, 61), 1), (1500, (7, 1500), -1)):
        made = drawn(kind, rounding, dtype, count, axis, seed=count)
        acc = accumulators(rng, shape)
        got = requantize(acc, made)
        assert got.dtype == {"s8": np.int8, "u8": np.uint8, "s32": np.int32}[dtype]
        assert np.array_equal(got, statement.apply(acc, made))


@pytest.mark.parametrize("dtype", ["s8", "u8", "s32"])
@pytest.mark.parametrize(("kind", "rounding"), ARITHMETIC)
def test_the_outermost_accumulators_at_any_address(kind: str, rounding: str, dtype: str) -> None:
    """Of 32 bits, in lengths around those of vectors and chunks, one scale and many."""
    rng = np.random.default_rng(3)
    ends = np.array([I32_LO, I32_LO + 1, -1, 0, 1, I32_HI - 1, I32_HI])
    for start, count in ((1, 1), (2, 63), (3, 65), (1, 128), (2, 129), (3, 1025)):
        given = constants(kind, count, rng) | {"bias": None}
        given["shift"] = np.minimum(given["shift"], 0)
        one = {name: values[-1] if np.ndim(values) else values for name, values in given.items()}
        buffer = accumulators(rng, (count + 3,), bits=32)
        acc = buffer[start : start + count]
        acc[rng.integers(0, count, 40)] = rng.choice(ends, 40)
        for made in (
            Requantizer(kind, **given, dtype=dtype, rounding=rounding, axis=0),
            Requantizer(kind, **one, dtype=dtype, rounding=rounding),
        ):
            expected = statement.apply(acc, made)
            guarded = np.full(count + 8, 99, expected.dtype)
            requantize(acc, made, out=guarded[start : start + count])
            assert np.array_equal(guarded[start : start + count], expected)
            assert (guarded[:start] == 99).all()
            assert (guarded[start + count :] == 99).all()


def below_one(kind: str, count: int, rng: np.random.Generator) -> dict[str, Any]:
    """Constants for which there are quicker rules, to the edges of what those take."""
    multiplier: Any
    if kind == "two_step":
        multiplier = rng.integers(I32_LO + 1, I32_HI, count, endpoint=True)
        multiplier[:3] = I32_LO + 1, I32_HI, 2**30
        least = rng.integers(2)  # without 0 among them, all take the shorter way
        return {"multiplier": multiplier, "shift": -least - rng.permutation(np.arange(count) % 31)}
    if kind == "shift":
        multiplier = rng.integers(I32_LO, I32_HI, count, endpoint=True)
        multiplier[:4] = I32_LO, I32_HI, 2**30, -(2**30)
        # With 32 among them all need the usual rule, and with 33 those that look below half.
        least = 32 + rng.integers(3)
        return {"multiplier": multiplier, "shift": -least - rng.permutation(np.arange(count) % 29)}
    multiplier = rng.uniform(-1, 1, count)
    # The quick rules end at 1 - 2^-20.
    most = [1.0, -1.0] if rng.integers(2) else [1 - 2.0**-20, 2.0**-20 - 1]
    multiplier[:4] = *most, 0.5, -0.5
    # One of these is the last number below a half in float32, the other in float64.
    multiplier[4:6] = np.nextafter(np.float32(0.5), np.float32(0)), np.nextafter(0.5, 0)
    shift = -rng.permutation(np.arange(count) % 32)
    shift[4:6] = 0
    return {"multiplier": multiplier, "shift": shift}


QUICK = [
    ("two_step", "half_up"),
    ("two_step", "half_away_from_zero"),
    *(("shift", rounding) for rounding in ROUNDINGS),
    ("two_round_single", "half_away_from_zero"),
    ("two_round_double", "half_away_from_zero"),
]


@pytest.mark.parametrize("dtype", ["s8", "u8", "s32"])
@pytest.mark.parametrize(("kind", "rounding"), QUICK)
def test_multipliers_below_one(kind: str, rounding: str, dtype: str) -> None:
    """All accumulators, the outermost and those beside ties among them."""
    rng = np.random.default_rng(2)
    for seed in range(12):
        count = 64 + seed
        given = below_one(kind, count, np.random.default_rng(seed))
        made = Requantizer(kind, **given, dtype=dtype, rounding=rounding, axis=-1)
        acc = accumulators(rng, (900, count), bits=32)
        acc[:6] = np.array([I32_LO, I32_LO + 1, I32_HI, 0, 1, -1])[:, None]
        one = 2.0**-31 if kind == "two_step" else 1.0
        scale = np.abs(given["multiplier"] * 2.0 ** given["shift"]) * one
        near = (rng.integers(-300, 300, (400, count)) + 0.5) / scale
        acc[6:406] = np.rint(np.clip(near, I32_LO, I32_HI)).astype(np.int32)
        assert np.array_equal(requantize(acc, made), statement.apply(acc, made))
        rows = np.ascontiguousarray(acc.T)
        each = Requantizer(kind, **given, dtype=dtype, rounding=rounding, axis=0)
        assert np.array_equal(requantize(rows, each), statement.apply(rows, each))


@pytest.mark.parametrize("dtype", ["s8", "s32"])
@pytest.mark.parametrize("rounding", KINDS["exact"].roundings)
def test_small_shifts_of_small_multipliers(rounding: str, dtype: str) -> None:
    """The same numbers with multipliers of all 32 bits, zero among them."""
    multiplier = np.array([0, 1, -1, 3, 33, 127, 536_871, 2**30 - 1, -(2**30), 5])
    shift = -np.array([1, 9, 9, 14, 14, 20, 28, 40, 41, 62])
    made = Requantizer("shift", multiplier, shift, dtype=dtype, rounding=rounding, axis=-1)
    acc = accumulators(np.random.default_rng(5), (3000, multiplier.size), bits=32)
    acc[:3] = np.array([I32_LO, I32_HI, 0])[:, None]
    assert np.array_equal(requantize(acc, made), statement.apply(acc, made))


@pytest.mark.parametrize("bits", [1, 20, 21, 22, 30])
@pytest.mark.parametrize("dtype", ["s8", "s32"])
@pytest.mark.parametrize("rounding", KINDS["exact"].roundings)
def test_exact_real_factors_of_few_bits(rounding: str, dtype: str, bits: int) -> None:
    """Powers of two, where every other sum may be a tie, and what just fits or does not."""
    rng = np.random.default_rng(bits)
    factor = (rng.integers(2 ** (bits - 1), 2**bits, 70) | 1).astype(np.int64)
    made = Requantizer(
        "exact",
        factor * 2**17,
        -bits - 17 - rng.integers(1, 9, 70),
        last=2.0 ** rng.integers(0, 3, 70),
        bias=rng.integers(-99, 99, 70),
        dtype=dtype,
        rounding=rounding,
        axis=-1,
    )
    acc = accumulators(rng, (800, 70), bits=31)
    assert np.array_equal(requantize(acc, made), statement.apply(acc, made))


def assert_equal_outputs(name: str, outputs: int, channels: int = 100) -> None:
    """A hundred scales at a time over 24 octaves, half of the accumulators beside ties."""
    rng = np.random.default_rng(len(name))
    compared = 0
    while compared < outputs:
        src, dst = rng.uniform(0.001, 0.2, 2)
        octaves = rng.uniform(-24, -0.01, channels)
        wei = (2.0**octaves * dst / src).astype(np.float32)
        scales = {"src_scale": src, "wei_scale": wei, "dst_scale": dst}
        made = requantizer(name, **scales, dst_dtype="s32", dst_zero_point=3, lo=-(2**30), axis=-1)
        acc = accumulators(rng, (1000, channels), bits=31)
        near = (rng.integers(-300, 300, (500, channels)) + 0.5) / 2.0**octaves
        acc[::2] = np.rint(np.clip(near, I32_LO, I32_HI)).astype(np.int32)
        assert np.array_equal(requantize(acc, made), statement.apply(acc, made))
        compared += acc.size


@pytest.mark.parametrize("name", DIALECTS)
def test_outputs_of_every_dialect(name: str) -> None:
    assert_equal_outputs(name, 3 * 10**5)


@pytest.mark.slow
@pytest.mark.truth
@pytest.mark.parametrize("name", DIALECTS)
def test_ten_million_outputs_of_every_dialect(name: str) -> None:
    assert_equal_outputs(name, 10**7)


@pytest.mark.parametrize("inner", [1, 2, 49, 63, 64, 65, 1023, 1024, 1025, 3000])
@pytest.mark.parametrize("count", [1, 2, 3, 63, 64, 65, 100, 1024, 1025])
def test_blocks_and_their_tails(count: int, inner: int) -> None:
    made = drawn("two_step", "half_away_from_zero", "s8", count, 1, seed=3)
    outer = 3 if count * inner < 10**5 else 1
    acc = accumulators(np.random.default_rng(inner), (outer, count, inner))
    guarded = np.full(acc.size + 100, 99, np.int8)
    out = guarded[: acc.size].reshape(acc.shape)
    assert np.array_equal(requantize(acc, made, out=out), statement.apply(acc, made))
    assert (guarded[acc.size :] == 99).all()


def test_one_value_for_all_takes_any_shape() -> None:
    made = Requantizer("float", 0.01, zero_point=3)
    for shape in ((), (1,), (7,), (2, 3, 4, 5), (0, 4), (1000, 3)):
        acc = accumulators(np.random.default_rng(0), shape, bits=16)
        got = requantize(acc, made)
        assert got.shape == shape
        assert np.array_equal(got, statement.apply(acc, made))


def test_the_layout_of_the_accumulators_is_kept() -> None:
    """Channels last as oneDNN returns them: no copy, and dst lies as acc does."""
    made = drawn("shift", "half_up", "u8", 8, 1, seed=4)
    physical = accumulators(np.random.default_rng(0), (2, 5, 6, 8))
    acc = physical.transpose(0, 3, 1, 2)
    got = requantize(acc, made)
    assert np.array_equal(got, statement.apply(acc, made))
    assert got.strides == tuple(stride // 4 for stride in acc.strides)


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a[:, :, ::2],
        lambda a: a[::-1],
        lambda a: a[:, 1:-1].transpose(2, 1, 0),
        lambda a: np.broadcast_to(a[:1], a.shape),
    ],
)
def test_other_layouts_are_copied_first(view: Any) -> None:
    acc = view(accumulators(np.random.default_rng(0), (4, 7, 6)))
    made = drawn("two_step", "half_up", "s8", acc.shape[1], 1, seed=5)
    assert np.array_equal(requantize(acc, made), statement.apply(acc, made))


def test_out_is_written_in_place() -> None:
    made = drawn("two_step", "half_up", "s8", 4, 1, seed=6)
    acc = accumulators(np.random.default_rng(0), (3, 4, 5))
    out = np.empty(acc.shape, np.int8)
    assert requantize(acc, made, out=out) is out
    assert np.array_equal(out, statement.apply(acc, made))


@pytest.mark.parametrize("kind", ["two_step", "shift", "float", "double", "exact"])
def test_sums_that_leave_32_bits_are_refused(kind: str) -> None:
    """One in a block of thousands, wherever it stands."""
    m = 2**20 if KINDS[kind].multiplier.startswith("int") else 0.5
    made = Requantizer(kind, m, bias=1, rounding="half_to_even", dtype="s32")
    for at in (0, 777, 4999):
        acc = np.zeros(5000, np.int32)
        acc[at] = I32_HI - 1
        requantize(acc, made)
        acc[at] = I32_HI
        with pytest.raises(ArgumentError, match=r"^acc: .* leaves 32 bits"):
            requantize(acc, made)
        with pytest.raises(ArgumentError, match=r"^acc: .* leaves 32 bits"):
            statement.apply(acc, made)


def test_left_shifts_that_leave_32_bits_are_refused() -> None:
    made = Requantizer("two_step", 2**30, 4, dtype="s32", rounding="half_up")
    fits = np.array([2**27 - 1, -(2**27)], np.int32)
    assert np.array_equal(requantize(fits, made), statement.apply(fits, made))
    for value in (2**27, -(2**27) - 1):
        with pytest.raises(ArgumentError, match=r"^acc: .* leaves 32 bits"):
            requantize(np.array([value], np.int32), made)


def test_the_saturating_product() -> None:
    made = Requantizer("two_step", I32_LO, dtype="s32", rounding="half_up")
    acc = np.array([I32_LO, I32_LO + 1, I32_HI, 0], np.int32)
    assert requantize(acc, made).tolist() == [I32_HI, I32_HI, -I32_HI, 0]
    assert np.array_equal(requantize(acc, made), statement.apply(acc, made))


def test_arguments_are_checked() -> None:
    made = drawn("two_step", "half_up", "s8", 4, 1, seed=7)
    acc = np.zeros((3, 4, 5), np.int32)
    with pytest.raises(DTypeError, match=r"^acc: got int64; wanted int32"):
        requantize(acc.astype(np.int64), made)
    nonsense: Any = [1, 2]
    with pytest.raises(ArgumentError, match=r"^acc: got list"):
        requantize(nonsense, made)
    with pytest.raises(
        ShapeError, match=r"^acc: got shape \(3, 5\); wanted 4 channels along axis 1"
    ):
        requantize(np.zeros((3, 5), np.int32), made)
    with pytest.raises(DTypeError, match=r"^out: got uint8; wanted int8"):
        requantize(acc, made, out=np.empty(acc.shape, np.uint8))
    with pytest.raises(ShapeError, match=r"^out: "):
        requantize(acc, made, out=np.empty((3, 4), np.int8))
    with pytest.raises(LayoutError, match=r"^out: got strides"):
        requantize(acc, made, out=np.empty((3, 5, 4), np.int8).transpose(0, 2, 1))
    frozen = np.empty(acc.shape, np.int8)
    frozen.flags.writeable = False
    with pytest.raises(ArgumentError, match=r"^out: got a read-only array"):
        requantize(acc, made, out=frozen)
    same = Requantizer("float", 1.0, dtype="s32")
    with pytest.raises(AliasError, match=r"^out: got memory of acc"):
        requantize(acc, same, out=acc)
