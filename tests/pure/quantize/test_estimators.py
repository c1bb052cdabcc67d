"""Estimators: each kind's definition in NumPy over all data, and merging as one pass would be."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.quantize import (
    ESTIMATORS,
    collect,
    estimator,
    kl_threshold,
    merged,
    mse_threshold,
    octav_threshold,
)
from pyonednn_q.quantize.distribution import DISTRIBUTIONS
from pyonednn_q.quantize.thresholds import quantile

RNG = np.random.default_rng(11)
DATA = RNG.laplace(0.3, 1.0, (24, 3, 5, 4))
EXACT = 53
MAD = 1.4826230


def found(kind: str, data: Any = DATA, parts: int = 3, **options: Any) -> tuple[Any, Any]:
    state = estimator(kind, **options)
    for batch in np.array_split(data, parts):
        state.update(batch)
    return state.range()


def by_sample(data: Any) -> Any:
    return data.reshape(len(data), -1)


def median_within(column: Any, average: Any) -> Any:
    low, high = np.quantile(column, [0.01, 0.99])
    return average(column[(low <= column) & (column <= high)])


def moving(samples: Any, rate: float) -> float:
    value = samples[0]
    for sample in samples[1:]:
        value = value + rate * (sample - value)
    return float(value)


def three_sigma(values: Any) -> tuple[float, float]:
    flat = values.ravel()
    median = np.median(flat[np.abs(flat) >= np.finfo(np.float32).eps])
    spread = 3 * MAD * np.median(np.abs(flat - median))
    return median - spread, median + spread


SAMPLES = by_sample(DATA)
LEAST, GREATEST = SAMPLES.min(axis=1), SAMPLES.max(axis=1)
DEFINED = {
    "min_max": (DATA.min(), DATA.max()),
    "mean_min_max": (LEAST.mean(), GREATEST.mean()),
    "mixed_min_max": (LEAST.mean(), GREATEST.mean()),
    "moving_average": (moving(LEAST, 0.01), moving(GREATEST, 0.01)),
    "median_min_max": (np.median(LEAST), np.median(GREATEST)),
    "mean_no_outliers": (median_within(LEAST, np.mean), median_within(GREATEST, np.mean)),
    "median_no_outliers": (median_within(LEAST, np.median), median_within(GREATEST, np.median)),
    "mean_percentile": tuple(np.percentile(SAMPLES, [0.1, 99.9], axis=1).mean(axis=1)),
    "percentile": tuple(np.percentile(DATA, [0.01, 99.99])),
    "three_sigma": three_sigma(DATA),
}


@pytest.mark.parametrize("kind", DEFINED)
def test_ranges_are_those_of_the_definition_over_all_data(kind: str) -> None:
    exact = {"precision": EXACT} if kind in DISTRIBUTIONS else {}
    lo, hi = found(kind, **exact)
    # Means differ in their last bit: NumPy rounds every addition, fsum the sum.
    near = 4 * np.spacing(np.abs(DATA).max())
    assert abs(lo - DEFINED[kind][0]) <= near
    assert abs(hi - DEFINED[kind][1]) <= near
    if kind in {"min_max", "median_min_max", "percentile", "three_sigma"}:
        assert (lo, hi) == DEFINED[kind]


def test_magnitudes_are_those_of_the_thresholds_over_all_data() -> None:
    exact = {"precision": EXACT, "symmetric": True}
    assert found("kl", **exact)[1] == kl_threshold(DATA)
    assert found("mse", **exact)[1] == mse_threshold(DATA)
    assert found("octav", **exact)[1] == pytest.approx(octav_threshold(DATA), rel=1e-12)
    assert found("percentile", percent=(1.0, 99.0), **exact)[1] == np.percentile(np.abs(DATA), 99)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_symmetric_ranges_follow_the_sign_of_the_values(kind: str) -> None:
    lo, hi = found(kind, symmetric=True)
    assert lo == -hi < 0.0
    lo, hi = found(kind, np.abs(DATA), symmetric=True)
    assert (lo, hi > 0.0) == (0.0, True)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("kind", sorted(set(ESTIMATORS) - {"mixed_min_max"}))
def test_a_channel_has_the_range_that_its_values_have_alone(kind: str, symmetric: bool) -> None:
    lo, hi = found(kind, axis=1, symmetric=symmetric)
    assert lo.shape == hi.shape == (3,)
    last = found(kind, np.moveaxis(DATA, 1, -1), axis=-1, symmetric=symmetric)
    np.testing.assert_array_equal(last, (lo, hi))
    for channel in range(3):
        alone = found(kind, DATA[:, channel], symmetric=symmetric)
        assert (lo[channel], hi[channel]) == alone


def test_mixed_ranges_are_extremes_where_there_are_channels() -> None:
    np.testing.assert_array_equal(found("mixed_min_max", axis=1), found("min_max", axis=1))
    lo, hi = found("mixed_min_max", np.abs(DATA), symmetric=True)
    assert hi == pytest.approx(np.abs(SAMPLES).max(axis=1).mean(), rel=1e-15)
    assert lo == 0.0
    lo, hi = found("mixed_min_max", symmetric=True)
    assert hi == -lo == max(-SAMPLES.min(), found("mean_min_max", symmetric=True)[1])


def test_a_batch_may_be_one_sample() -> None:
    wei = np.array([[1.0, 0.0], [0.1, -0.1]])
    for kind in ("mean_min_max", "mixed_min_max", "median_min_max", "mean_percentile"):
        state = estimator(kind, by_batch=True, percent=(0.0, 100.0))
        state.update(wei)
        assert [float(end) for end in state.range()] == [-0.1, 1.0]
        state.update(3.0 * wei)
        if kind != "mean_percentile":
            assert state.range()[1] == 2.0
    by_index = estimator("mean_min_max")
    by_index.update(wei)
    assert [float(end) for end in by_index.range()] == [-0.05, pytest.approx(0.55)]


def test_the_sign_of_means_is_that_of_the_means() -> None:
    state = estimator("mean_min_max", symmetric=True)
    state.update([[-1.0, 2.0], [3.0, 4.0]])
    assert not state.signed
    assert [float(end) for end in state.range()] == [0.0, 3.0]


def test_weights_are_one_sample_by_output_channel() -> None:
    lo, hi = found("mean_min_max", DATA, parts=1, axis=0)
    np.testing.assert_array_equal(lo, LEAST)
    np.testing.assert_array_equal(hi, GREATEST)


@settings(max_examples=40, deadline=None)
@given(
    kind=st.sampled_from(sorted(ESTIMATORS)),
    cuts=st.lists(st.integers(1, 23), min_size=1, max_size=4, unique=True),
    symmetric=st.booleans(),
    axis=st.sampled_from([None, 1]),
    order=st.randoms(use_true_random=False),
)
def test_merging_is_one_pass(
    kind: str, cuts: list[int], symmetric: bool, axis: int | None, order: Any
) -> None:
    """Bit for bit, grouped either way; in any order, too, but of a moving average."""
    parts = []
    for batch in np.split(DATA, sorted(cuts)):
        parts.append(estimator(kind, symmetric=symmetric, axis=axis))
        parts[-1].update(batch)
    one = found(kind, parts=1, symmetric=symmetric, axis=axis)
    left = functools.reduce(lambda a, b: a.merge(b), parts)
    right = functools.reduce(lambda a, b: b.merge(a), reversed(parts))
    np.testing.assert_array_equal(left.range(), one)
    np.testing.assert_array_equal(right.range(), one)
    if kind != "moving_average":
        order.shuffle(parts)
        np.testing.assert_array_equal(functools.reduce(lambda a, b: a.merge(b), parts).range(), one)


def test_a_moving_average_goes_on_where_the_first_ended() -> None:
    ahead, behind = estimator("moving_average", rate=0.5), estimator("moving_average", rate=0.5)
    ahead.update([[0.0], [8.0]])
    behind.update([[16.0]])
    assert ahead.merge(behind).range()[1] == (0.0 + 4.0) / 2 + 16.0 / 2
    assert behind.merge(ahead).range()[1] == (16.0 / 2 + 0.0) / 2 + 8.0 / 2


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.floats(-1e30, 1e30), min_size=1, max_size=60),
    share=st.floats(0.0, 100.0),
    precision=st.integers(4, 53),
)
def test_quantiles_are_right_within_the_bits_that_are_kept(
    values: list[float], share: float, precision: int
) -> None:
    state = estimator("percentile", percent=(share / 2, max(share, 1e-3)), precision=precision)
    state.update(values)
    exact = np.percentile(values, [share / 2, max(share, 1e-3)])
    # Each value is off by 2^-precision of itself, at most; so is one between two of them.
    bound = np.abs(values).max() * 2.0**-precision * 2 if precision < EXACT else 0.0
    if precision < EXACT:  # below the smallest normal number, of that
        bound += np.finfo(np.float64).tiny * 2.0**-precision
    near = bound + 4 * np.spacing(np.abs(values).max())
    assert (np.abs(np.array(state.range()) - exact) <= near).all()


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.tuples(st.floats(-9, 9), st.integers(1, 5)), min_size=1, max_size=30),
    share=st.floats(0.0, 1.0),
)
def test_counted_quantiles_are_numpys(values: list[tuple[float, int]], share: float) -> None:
    numbers, counts = (np.array(column) for column in zip(*values, strict=True))
    spread = np.repeat(numbers, counts)
    got = quantile(numbers, share, counts)
    assert abs(got - np.quantile(spread, share)) <= 4 * np.spacing(9.0)


def test_counts_stand_for_repeated_values() -> None:
    values, counts = np.round(DATA.ravel(), 1), RNG.integers(1, 4, DATA.size)
    spread = np.repeat(values, counts)
    assert kl_threshold(values, counts=counts) == kl_threshold(spread)
    assert mse_threshold(values, counts=counts) == mse_threshold(spread)
    assert octav_threshold(values, counts=counts) == pytest.approx(
        octav_threshold(spread), rel=1e-12
    )


def test_the_least_squared_error_is_no_worse_than_any_on_the_grid() -> None:
    end = mse_threshold(DATA, 4)

    def error(top: float) -> float:
        step = top / 7
        codes = np.clip(np.rint(DATA / step), -7, 7)
        return float(np.square(DATA - codes * step).sum())

    errors = [error(np.abs(DATA).max() * k / 100) for k in range(1, 101)]
    assert error(end) <= min(errors) * (1 + 1e-12)
    assert end < np.abs(DATA).max() * 0.9


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("bits", [3, 8])
@pytest.mark.parametrize("drawn", ["normal", "uniform", "above 0", "outlier", "one below", "zeros"])
def test_the_search_takes_the_kind_with_the_least_error(
    drawn: str, bits: int, symmetric: bool
) -> None:
    """By the errors of u8 codes with a zero point, or of symmetric ones, over all values."""
    rng = np.random.default_rng(3)
    data = {
        "normal": rng.normal(0, 1, 2000),
        "uniform": rng.uniform(-1, 2, 2000),
        "above 0": rng.exponential(1, 2000),
        "outlier": np.append(rng.normal(0, 0.1, 1999), 30.0),
        "one below": np.append(rng.uniform(0, 1, 50_000), -3.0),
        "zeros": np.zeros(2000),
    }[drawn]

    def error(lo: float, hi: float) -> float:
        codes = 2 ** (bits - 1) - 1 if symmetric and lo < 0 else 2**bits - 1
        lo, hi = min(lo, 0.0), max(hi, 0.0)
        scale = (hi if symmetric else hi - lo) / codes
        if not scale:
            return float(np.square(data).sum())
        point = 0.0 if symmetric else np.rint(-lo / scale)
        least = -codes if symmetric and lo < 0 else 0
        q = np.clip(np.rint(data / scale) + point, least, codes)
        return float(np.square(data - (q - point) * scale).sum())

    options = {"bits": bits, "symmetric": symmetric, "precision": EXACT}
    kinds = ("min_max", *sorted(set(DISTRIBUTIONS) - {"search"}))
    ranges = {
        kind: found(kind, data, **(options if kind != "min_max" else {"symmetric": symmetric}))
        for kind in kinds
    }
    best = found("search", data, **options)
    assert best in ranges.values()
    errors = {kind: error(*ends) for kind, ends in ranges.items()}
    assert error(*best) <= min(errors.values()) * (1 + 1e-12)
    if (drawn, bits, symmetric) == ("one below", 3, False):  # where both ends move alike
        assert error(*best) < errors["mse"] / 2


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_states_travel(kind: str) -> None:
    state = estimator(kind)
    state.update(DATA[:7])
    copy = pickle.loads(pickle.dumps(state))
    copy.update(DATA[7:])
    assert copy.range() == found(kind)
    assert state.range() == found(kind, DATA[:7])


def test_a_network_is_looked_at_in_one_pass() -> None:
    read: list[int] = []

    def batches() -> Any:
        for at, batch in enumerate(np.array_split(DATA, 6)):
            read.append(at)
            yield batch

    def run(batch: Any) -> Any:
        return {"x": batch, "relu": np.maximum(batch, 0.0)}

    states = collect(run, batches(), progress=False)
    assert read == list(range(6))
    np.testing.assert_array_equal(states["relu"].range(), (0.0, DATA.max()))
    assert not states["relu"].signed
    assert states["x"].signed
    halves = [collect(run, [half], {"x": estimator("mse")}) for half in np.array_split(DATA, 2)]
    assert list(halves[0]) == ["x"]
    assert merged(*halves)["x"].range() == found("mse")
    assert len(read) == 6
    collect(run, batches(), limit=2)
    assert len(read) == 8


def test_progress_is_shown_on_what_takes_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr("time.monotonic", lambda: float(next(clock)))
    collect(lambda x: {"x": x}, list(DATA))
    assert capsys.readouterr().err == ""  # no terminal
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    collect(lambda x: {"x": x}, list(DATA))
    shown = capsys.readouterr().err
    assert "collect" in shown
    assert "12/24" in shown
    collect(lambda x: {"x": x}, list(DATA), progress=False)
    assert capsys.readouterr().err == ""


class Stream:
    """Batches whose number nobody knows, as torch's loaders of streams say it."""

    def __len__(self) -> int:
        raise TypeError

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter(DATA)


def test_a_stream_has_no_length() -> None:
    states = collect(lambda x: {"x": x}, Stream())
    assert states["x"].range() == collect(lambda x: {"x": x}, list(DATA))["x"].range()


def test_a_length_that_fails_is_refused_by_name() -> None:
    class Lost(Stream):
        def __len__(self) -> int:
            raise OSError

    with pytest.raises(ArgumentError, match=r"^batches: got .*, whose length raises OSError; "):
        collect(lambda x: {"x": x}, Lost())


def gone() -> Iterator[np.ndarray]:
    yield DATA
    msg = "the disk is gone"
    raise OSError(msg)


def test_what_does_not_fit_is_refused_by_name() -> None:
    state = estimator()
    with pytest.raises(ArgumentError, match=r"^range: got an estimator without values"):
        state.range()
    for batch, got in (([], "no values"), ([np.nan], "values that are not finite")):
        with pytest.raises(ArgumentError, match=rf"^batch: got {got}"):
            state.update(batch)
    with pytest.raises(ShapeError, match=r"^batch: got shape \(2, 3\); wanted a dimension 4"):
        estimator(axis=4).update(np.ones((2, 3)))
    channels = estimator(axis=1)
    channels.update(np.ones((2, 3)))
    with pytest.raises(ShapeError, match=r"^batch: got shape \(2, 4\); wanted 3 along axis 1"):
        channels.update(np.ones((2, 4)))
    with pytest.raises(ArgumentError, match=r"^other: "):
        state.merge(estimator(symmetric=True))
    with pytest.raises(ArgumentError, match=r"^other: got SampleExtremes; wanted Distribution"):
        estimator("kl").merge(state)
    with pytest.raises(ArgumentError, match=r"^kind: got 'most'"):
        estimator("most")
    with pytest.raises(ArgumentError, match=r"^percent: "):
        estimator("percentile", percent=(99.0, 1.0))
    with pytest.raises(ArgumentError, match=r"^rate: got 0"):
        estimator("moving_average", rate=0)
    with pytest.raises(ArgumentError, match=r"^batches: got none"):
        collect(lambda x: {"x": x}, [])
    with pytest.raises(ArgumentError, match=r"^batches: got .*, which raises OSError") as raised:
        collect(lambda x: {"x": x}, gone())
    assert str(raised.value.__cause__) == "the disk is gone"
    with pytest.raises(ArgumentError, match=r"^run: got no tensor 'y'"):
        collect(lambda x: {"x": x}, [DATA], {"y": estimator()})
    with pytest.raises(ArgumentError, match=r"^x: batch: got values that are not finite"):
        collect(lambda x: {"x": x}, [DATA * np.inf])
