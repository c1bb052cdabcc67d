"""Ranges as the training tool, torch and ONNX Runtime find them, where those are installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.quantize import estimator

RNG = np.random.default_rng(5)
SAMPLES = RNG.laplace(0.2, 1.0, (40, 6, 5)).astype(np.float32)
F32 = float(np.finfo(np.float32).eps)
LARGEST = float(np.abs(SAMPLES).max())


def ours(kind: str, data: Any = SAMPLES, **options: Any) -> tuple[float, float]:
    state = estimator(kind, **options)
    state.update(data)
    lo, hi = state.range()
    return float(lo), float(hi)


def aggregated(name: str, values: Any, **options: Any) -> Any:
    """What the training tool's aggregator makes of one array after the other."""
    collectors = pytest.importorskip("nncf.common.tensor_statistics.collectors")
    tensor = pytest.importorskip("nncf.tensor").Tensor
    if not hasattr(collectors, name):
        pytest.skip(f"this NNCF has no {name} there: 3.4 has")
    aggregator = getattr(collectors, name)(**options)
    for value in values:
        aggregator.register_reduced_input(tensor(np.asarray(value, np.float64)))
    found = aggregator.aggregate()
    return found if isinstance(found, dict) else float(np.asarray(found.data).ravel()[0])


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize(
    ("kind", "least", "greatest"),
    [
        ("min_max", "MinAggregator", "MaxAggregator"),
        ("mean_min_max", "MeanAggregator", "MeanAggregator"),
        ("median_min_max", "MedianAggregator", "MedianAggregator"),
        ("mean_no_outliers", "MeanNoOutliersAggregator", "MeanNoOutliersAggregator"),
        ("median_no_outliers", "MedianNoOutliersAggregator", "MedianNoOutliersAggregator"),
    ],
)
def test_aggregates_are_those_of_the_training_tool(
    kind: str, least: str, greatest: str, symmetric: bool
) -> None:
    lo, hi = ours(kind, symmetric=symmetric)
    high = np.abs(SAMPLES) if symmetric else SAMPLES
    wanted = aggregated(greatest, high.max(axis=(1, 2)).reshape(-1, 1))
    # Both in float64; the order in which a mean adds is each one's own.
    assert abs(hi - wanted) <= 40 * np.spacing(LARGEST)
    low = -wanted if symmetric else aggregated(least, SAMPLES.min(axis=(1, 2)).reshape(-1, 1))
    assert abs(lo - low) <= 40 * np.spacing(LARGEST)


def test_three_sigma_and_percentiles_are_those_of_the_training_tool() -> None:
    axes = {"aggregation_axes": (0, 1, 2, 3)}
    blocks = np.split(SAMPLES.astype(np.float64), 40)
    found = aggregated("MedianAbsoluteDeviationAggregator", blocks, **axes)
    numbers = {str(key): float(np.asarray(v.data).ravel()[0]) for key, v in found.items()}
    spread = 3 * 1.4826230 * numbers["mad_values"]
    lo, hi = ours("three_sigma", precision=53)
    # Its epsilon is that of float64: no value here is between the two.
    assert abs(lo - (numbers["median_values"] - spread)) <= 8 * np.spacing(LARGEST)
    assert abs(hi - (numbers["median_values"] + spread)) <= 8 * np.spacing(LARGEST)
    options = {"percentiles_to_collect": [0.1, 99.9], **axes}
    found = aggregated("PercentileAggregator", blocks, **options)
    wanted = [float(np.asarray(found[share].data).ravel()[0]) for share in (0.1, 99.9)]
    got = ours("percentile", percent=(0.1, 99.9), precision=53)
    np.testing.assert_array_less(np.abs(np.subtract(got, wanted)), 8 * np.spacing(LARGEST))


def test_the_histogram_search_is_that_of_torch() -> None:
    """Of one batch, whose histogram is the same; over several torch resamples its own."""
    torch = pytest.importorskip("torch")
    observer_of = pytest.importorskip("torch.ao.quantization").HistogramObserver
    for seed in range(12):
        rng = np.random.default_rng(seed)
        data = (rng.laplace(size=20_000) * rng.choice([1, 1, 1, 6], 20_000)).astype(np.float32)
        observer = observer_of(dtype=torch.quint8)
        observer(torch.from_numpy(data))
        wanted = [float(end) for end in observer._non_linear_param_search()]
        width = float(data.max() - data.min()) / 2048
        # Its sums are float32: an end may stop one bin sooner or later.
        got = np.array(ours("histogram", data, precision=24))
        assert (np.abs(got - wanted) < 1.01 * width).all(), (got, wanted, width)


def test_a_moving_average_is_that_of_torch() -> None:
    torch = pytest.importorskip("torch")
    observers = pytest.importorskip("torch.ao.quantization.observer")
    observer = observers.MovingAverageMinMaxObserver(averaging_constant=0.01)
    for sample in SAMPLES:
        observer(torch.from_numpy(sample))
    wanted = float(observer.min_val), float(observer.max_val)
    # Each of its steps rounds to float32, thrice.
    bound = 3 * len(SAMPLES) * F32 * LARGEST
    assert (np.abs(np.subtract(ours("moving_average"), wanted)) <= bound).all()


def test_channels_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch")
    observers = pytest.importorskip("torch.ao.quantization.observer")
    observer = observers.PerChannelMinMaxObserver(ch_axis=1)
    observer(torch.from_numpy(SAMPLES))
    state = estimator("min_max", axis=1)
    state.update(SAMPLES)
    np.testing.assert_array_equal(state.range(), (observer.min_val, observer.max_val))


def onnxruntime_range(method: str, data: Any, **options: Any) -> tuple[float, float]:
    calibrate = pytest.importorskip("onnxruntime.quantization.calibrate")
    settings = {"symmetric": False, "num_bins": 2048, "num_quantized_bins": 128} | options
    collector = calibrate.HistogramCollector(
        method=method, percentile=99.99, scenario="same", **settings
    )
    collector.collect({"x": [np.asarray(data, np.float32)]})
    result = collector.compute_collection_result()["x"]
    return float(result[0]), float(result[1])


@pytest.mark.parametrize("symmetric", [False, True])
def test_a_percentile_of_onnxruntime_is_an_edge_beside_ours(symmetric: bool) -> None:
    """Its quantile is an edge of a bin, ours lies between two values; it halves 0.01 %."""
    data = RNG.laplace(size=50_000)
    ends = onnxruntime_range("percentile", data, symmetric=symmetric)
    width = (data.max() - data.min()) / 1024
    values = np.abs(data) if symmetric else data
    percent = (0.0, 99.99) if symmetric else (0.005, 99.995)
    got = ours("percentile", values, precision=53, percent=percent)
    for side in (1,) if symmetric else (0, 1):
        share = percent[side] / 100
        below, above = (np.quantile(values, share, method=m) for m in ("lower", "higher"))
        assert below <= got[side] <= above
        assert below - width <= ends[side] <= above + width


def test_the_entropy_of_onnxruntime_cuts_where_kl_would_not_further() -> None:
    """Two definitions of one idea.

    It counts a symmetric histogram in 128 steps over both signs, and 0 too; kl counts magnitudes
    in 128 steps on one side, leaves out 0. Both keep the bulk and cut outliers off.
    """
    data = np.append(RNG.normal(size=100_000), [40.0, -40.0])
    lo, hi = onnxruntime_range("entropy", data)
    cut = ours("kl", data, symmetric=True)[1]
    for end in (hi, -lo, cut):
        assert 3.0 < end < 40.0
