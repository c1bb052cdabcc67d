"""Widths as the training tool's HAWQ (NNCF 2.18, the last that has it) goes through them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pyonednn_q.quantize import (
    assign_bits,
    bit_complexities,
    constrained_bits,
    ratio_limit,
    reward,
    search_bits,
)


@pytest.mark.parametrize("widths", [(4, 8), (2, 4, 8), (2, 4, 8, 16)])
@pytest.mark.parametrize("layers", [1, 2, 5, 8])
def test_the_choice_is_the_least_sensitive_of_the_tools_sequences(
    layers: int, widths: tuple[int, ...]
) -> None:
    hawq = pytest.importorskip(
        "nncf.torch.quantization.precision_init.hawq_init", reason="NNCF 2.18 is not installed"
    )
    orders = pytest.importorskip("nncf.torch.quantization.precision_init.traces_order")
    order = orders.TracesOrder(list(range(layers)))
    sequences = hawq.TraceOrderBitwidthMatcher(
        list(widths), order
    ).get_all_non_decreasing_bitwidth_sequences()
    rng = np.random.default_rng(layers)
    names = [f"layer{i}" for i in range(layers)]
    for _ in range(40):
        flops = {name: float(rng.uniform(1, 9)) for name in names}
        lost = {n: {b: float(rng.lognormal()) * 4.0**-b for b in widths} for n in names}
        costs = bit_complexities(flops, {name: {b: b for b in widths} for name in names})
        int8 = sum(flops.values()) * 8
        ratio = float(rng.uniform(8 / max(widths), 8 / min(widths)))
        sums = [
            sum(lost[n][b] for n, b in zip(names, sequence, strict=True))
            for sequence in sequences
            if int8 / sum(flops[n] * b for n, b in zip(names, sequence, strict=True)) >= ratio
        ]
        found = assign_bits(lost, costs, ratio_limit(flops, costs, ratio), order=names)
        assert [found.bits[name] for name in names] in sequences
        assert found.sensitivity == pytest.approx(min(sums), rel=1e-12)


def test_strict_groups_and_nearest_widths_are_the_tools() -> None:
    """Layers with widths of their own, and sets of them that read one tensor."""
    hawq = pytest.importorskip(
        "nncf.torch.quantization.precision_init.hawq_init", reason="NNCF 2.18 is not installed"
    )
    orders = pytest.importorskip("nncf.torch.quantization.precision_init.traces_order")
    config = pytest.importorskip("nncf.common.quantization.structs").QuantizerConfig
    rng = np.random.default_rng(5)
    names = [f"layer{i}" for i in range(6)]
    for _ in range(60):
        along = [int(i) for i in rng.permutation(6)]  # execution indices by ascending trace
        may = [[8, 4, 2], [8, 4], [8], [8, 2]]
        own = {name: may[rng.integers(4)] for name in names}
        lost = {n: {b: float(rng.lognormal()) for b in own[n]} for n in names}
        costs = {n: {b: float(rng.uniform(1, 9)) * b for b in own[n]} for n in names}
        groups = [[0, 3], [1, 4, 5]][: rng.integers(0, 3)]
        order = orders.TracesOrder(along)
        sequences, _ = hawq.TraceOrderBitwidthMatcher(
            [2, 4, 8], order
        ).get_qconfig_sequences_constrained_by_trace_order(
            [[config(num_bits=b) for b in own[names[i]]] for i in along], set()
        )
        sets = [SimpleNamespace(weight_quantizers=[(i, None) for i in group]) for group in groups]
        kept = hawq.HAWQPrecisionInitializer._filter_qconfig_sequences_by_grouped_weight_quantizers(
            sequences, list(range(6)), sets, order
        )
        if not kept:
            continue
        choices = [
            {names[i]: one.num_bits for i, one in zip(along, each, strict=True)} for each in kept
        ]
        prices = [sum(costs[n][b] for n, b in bits.items()) for bits in choices]
        limit = float(rng.uniform(min(prices), max(prices)))
        sums = [
            sum(lost[n][b] for n, b in bits.items())
            for bits, price in zip(choices, prices, strict=True)
            if price <= limit
        ]
        found = assign_bits(
            lost,
            costs,
            limit,
            order=[names[i] for i in along],
            same=[[names[i] for i in group] for group in groups],
        )
        assert found.bits in choices
        assert found.sensitivity == pytest.approx(min(sums), rel=1e-12)


@pytest.mark.filterwarnings("ignore")
def test_the_tools_trace_has_noise_and_no_bias() -> None:
    """A quadratic with a diagonal Hessian, whose trace every probe of ours gives exactly."""
    estimators = pytest.importorskip("nncf.torch.quantization.hessian_trace")
    torch = pytest.importorskip("torch")
    loader = pytest.importorskip("nncf.torch.initialization").PTInitializingDataLoader

    reads = {"get_inputs": lambda _, item: ((item[0],), {}), "get_target": lambda _, item: item[1]}
    samples_of = type("Samples", (loader,), reads)
    size, samples, tries = 16, 2, 400
    network = torch.nn.Linear(size, 1, bias=False)
    data = torch.utils.data.TensorDataset(torch.ones(samples, size), torch.zeros(samples))
    estimator = estimators.HessianTraceEstimator(
        network,
        lambda *_: (network.weight**2).sum() / 2,
        None,
        "cpu",
        samples_of(torch.utils.data.DataLoader(data, batch_size=1)),
        samples,
    )
    torch.manual_seed(0)
    found = [float(estimator.get_average_traces(max_iter=1)) for _ in range(tries)]
    deviation = 1 / (samples * size**0.5)
    assert abs(np.mean(found) - 1.0) < 4 * deviation / tries**0.5
    assert deviation * 0.8 < np.std(found) < deviation * 1.2


def always(bits: dict[str, int]) -> Any:
    return lambda _: bits


def environment() -> Any:
    return pytest.importorskip(
        "nncf.torch.automl.environment.quantization_env", reason="NNCF 2.18 is not installed"
    ).QuantizationEnv


def test_rewards_and_actions_are_the_tools() -> None:
    env = environment()
    autoq = pytest.importorskip("nncf.torch.quantization.precision_init.autoq_init")
    rng = np.random.default_rng(9)
    for score, baseline in rng.normal(0, 1, (200, 2)) * 10.0 ** rng.integers(-3, 4, (200, 1)):
        wanted = env.reward(SimpleNamespace(pretrained_score=baseline), score, 0.1)
        assert reward(score, baseline) == wanted
    assert reward(3.5, 0.0) == env.reward(SimpleNamespace(pretrained_score=0), 3.5, 0.1)
    actions = [0.0, 0.125, 0.5, 1.0, *map(float, rng.uniform(0, 1, 200))]
    found = search_bits(
        lambda _: 0.0,
        {"a": (2, 4, 8)},
        {"a": 1},
        1.0,
        propose=lambda trials: {"a": actions[len(trials)]},
        trials=len(actions),
    )
    wanted_bits = [autoq.map_precision(action) for action in actions]
    assert [trial.bits["a"] for trial in found.trials] == wanted_bits


@pytest.mark.filterwarnings("ignore")
def test_sizes_are_kept_and_groups_aligned_as_by_the_tool() -> None:
    env, pandas = environment(), pytest.importorskip("pandas")
    rng = np.random.default_rng(3)
    names = [f"layer{i}" for i in range(6)]
    for _ in range(100):
        may = {n: [(2, 4, 8), (4, 8), (2, 8)][rng.integers(3)] for n in names}
        counts = {n: int(rng.integers(1, 500)) for n in names}
        bits = {n: int(rng.choice(may[n])) for n in names}
        size = 32 * sum(counts.values())
        least = sum(counts[n] * min(may[n]) for n in names) / size
        ratio = float(rng.uniform(least, 0.25))
        table = pandas.DataFrame(
            {
                "action": list(bits.values()),
                "is_wt_quantizer": True,
                "qid": names,
                "qconf_space": [[SimpleNamespace(num_bits=b) for b in may[n]] for n in names],
            },
            index=names,
        )
        groups = [["layer0", "layer2"], ["layer3", "layer5"]]
        theirs = SimpleNamespace(
            master_df=table,
            min_model_size=least * size,
            target_model_size=ratio * size,
            model_size_calculator=lambda of, counts=counts: sum(
                counts[n] * b for n, b in of.items()
            ),
            _get_quantizer_bitwidth=lambda table=table: dict(table.action),
            groups_of_adjacent_quantizers=[
                SimpleNamespace(
                    activation_quantizers=[], weight_quantizers=[(n, None) for n in each]
                )
                for each in [*groups, ["layer1"], ["layer4"]]
            ],
            adjq_groupwise_intersecting_bw_space=[
                set.intersection(*(set(may[n]) for n in each))
                for each in [*groups, ["layer1"], ["layer4"]]
            ],
        )
        wanted = env._constrain_model_size(theirs, list(bits.values()))
        assert list(constrained_bits(bits, may, counts, ratio).values()) == wanted
        env._align_bw_action(theirs)
        found = search_bits(
            lambda _: 0.0,
            may,
            counts,
            ratio,
            propose=always(bits),
            trials=1,
            same=groups,
        )
        assert found.bits == dict(table.action_aligned)
