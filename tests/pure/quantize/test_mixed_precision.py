"""Sensitivities on quadratics, assignments against all choices, searches that repeat."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.quantize import (
    assign_bits,
    bit_complexities,
    constrained_bits,
    hutchinson_trace,
    perturbation,
    ratio_limit,
    search_bits,
    sensitivity,
    size_ratio,
    source_bits,
)

RNG = np.random.default_rng(31)
WIDTHS = (4, 8, 16)


def tables(layers: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    names = [f"layer{i}" for i in range(layers)]
    scale = {name: float(rng.lognormal()) for name in names}
    lost = {n: {b: scale[n] * 4.0**-b * float(rng.uniform(0.5, 2)) for b in WIDTHS} for n in names}
    price = {n: {b: b * float(rng.uniform(1, 9)) for b in WIDTHS} for n in names}
    return lost, price


@settings(max_examples=60, deadline=None)
@given(layers=st.integers(1, 6), seed=st.integers(0, 10**6), part=st.floats(0.0, 1.0))
def test_an_assignment_is_the_best_of_all(layers: int, seed: int, part: float) -> None:
    lost, price = tables(layers, seed)
    names = list(lost)
    least = sum(min(row.values()) for row in price.values())
    most = sum(max(row.values()) for row in price.values())
    limit = least + part * (most - least)
    found = assign_bits(lost, price, limit)
    within = [
        sum(lost[n][b] for n, b in zip(names, choice, strict=True))
        for choice in itertools.product(WIDTHS, repeat=layers)
        if sum(price[n][b] for n, b in zip(names, choice, strict=True)) <= limit * (1 + 1e-12)
    ]
    assert found.exact
    assert found.cost <= limit * (1 + 1e-12)
    assert found.sensitivity == pytest.approx(min(within), rel=1e-12)
    assert list(found.bits) == names


@settings(max_examples=40, deadline=None)
@given(layers=st.integers(1, 6), seed=st.integers(0, 10**6), part=st.floats(0.2, 1.0))
def test_widths_never_fall_along_an_order(layers: int, seed: int, part: float) -> None:
    lost, price = tables(layers, seed)
    order = sorted(lost, key=lambda name: price[name][8])
    limit = part * sum(row[16] for row in price.values())
    allowed = [
        (sum(lost[n][b] for n, b in zip(order, choice, strict=True)), choice)
        for choice in itertools.product(WIDTHS, repeat=layers)
        if list(choice) == sorted(choice)
        and sum(price[n][b] for n, b in zip(order, choice, strict=True)) <= limit * (1 + 1e-12)
    ]
    if not allowed:
        with pytest.raises(ArgumentError, match=r"^limit: "):
            assign_bits(lost, price, limit, order=order)
        return
    found = assign_bits(lost, price, limit, order=order)
    widths = [found.bits[name] for name in order]
    assert widths == sorted(widths)
    assert found.sensitivity == pytest.approx(min(allowed)[0], rel=1e-12)
    assert assign_bits(lost, price, limit).sensitivity <= found.sensitivity * (1 + 1e-12)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), part=st.floats(0.0, 1.0), ordered=st.booleans())
def test_layers_that_read_one_tensor_have_one_width(seed: int, part: float, ordered: bool) -> None:
    """Against all choices: two sets that overlap, and a layer that has no 4 bits."""
    lost, price = tables(5, seed)
    del lost["layer3"][4], price["layer3"][4]
    names = list(lost)
    same = [("layer0", "layer2"), ("layer4", "layer2"), ("layer1", "layer3")]
    order = [str(name) for name in np.random.default_rng(seed).permutation(names)]
    choices = [
        bits
        for bits in (
            dict(zip(order, choice, strict=True))
            for choice in itertools.product(WIDTHS, repeat=len(names))
        )
        if bits["layer0"] == bits["layer2"] == bits["layer4"]
        and bits["layer1"] == bits["layer3"] != 4
    ]
    if ordered:  # no layer in a set falls below its width, and 4 becomes 8 where there is no 4
        rising = [sorted(choice) for choice in itertools.product(WIDTHS, repeat=len(names))]
        made = [dict(zip(order, choice, strict=True)) for choice in rising]
        made = [each | {"layer3": max(each["layer3"], 8)} for each in made]
        choices = [each for each in choices if each in made]
    costs = [sum(price[n][b] for n, b in bits.items()) for bits in choices]
    limit = min(costs) + part * (max(costs) - min(costs))
    found = assign_bits(lost, price, limit, order=order if ordered else None, same=same)
    within = [
        sum(lost[n][b] for n, b in bits.items())
        for bits, cost in zip(choices, costs, strict=True)
        if cost <= limit * (1 + 1e-12)
    ]
    assert found.bits in choices
    assert found.sensitivity == pytest.approx(min(within), rel=1e-12)
    assert list(found.bits) == names


def test_what_cannot_have_one_width_is_refused() -> None:
    lost = {"a": {4: 1.0}, "b": {8: 1.0}}
    with pytest.raises(ArgumentError, match=r"^same: got \('a', 'b'\); wanted layers with a width"):
        assign_bits(lost, lost, 9.0, same=[["a", "b"]])
    with pytest.raises(ArgumentError, match=r"^same: got \['c'\]; wanted layers of"):
        assign_bits(lost, lost, 9.0, same=[["a", "c"]])


def test_many_layers_are_still_exact() -> None:
    """Of 3^60 choices: the bound by multipliers (Lagrange) is near, and never above."""
    lost, price = tables(60, 3)
    limit = 0.6 * sum(row[16] for row in price.values())
    found = assign_bits(lost, price, limit)
    dual = max(
        sum(min(lost[n][b] + m * price[n][b] for b in WIDTHS) for n in lost) - m * limit
        for m in np.logspace(-9, 2, 2000)
    )
    assert found.exact
    assert dual <= found.sensitivity * (1 + 1e-12)
    assert found.sensitivity <= dual * 1.2


def test_bit_complexity_counts_the_wider_side() -> None:
    flops = {"a": 100.0, "b": 300.0}
    costs = bit_complexities(flops, {"a": {8: 8, 4: 8}, "b": {8: 8, 4: 4}})
    assert costs == {"a": {8: 800.0, 4: 800.0}, "b": {8: 2400.0, 4: 1200.0}}
    assert ratio_limit(flops, costs, 1.5) == 3200 / 1.5
    found = assign_bits({"a": {8: 0, 4: 1}, "b": {8: 0, 4: 1}}, costs, ratio_limit(flops, costs))
    assert found.bits == {"a": 8, "b": 4}
    with pytest.raises(ArgumentError, match=r"^ratio: got 1\.7; wanted a number from 1 to 1\.6"):
        ratio_limit(flops, costs, 1.7)


def test_widths_of_sources() -> None:
    assert source_bits(8, (4, 8)) == source_bits(8, (4, 8), group=(8, 8)) == 8
    with pytest.raises(ArgumentError, match=r"^group: got \(8, 4\); wanted 8 bits alone"):
        source_bits(8, (4, 8), group=(8, 4))
    with pytest.raises(ArgumentError, match=r"^wei_bits: got 4"):
        source_bits(4, (8,))
    assert source_bits(4, (8,), "liberal") == 8
    assert source_bits(8, (4, 8), "liberal", group=(8, 4)) == 4
    assert source_bits(8, (2, 4), "liberal", group=(8,)) == 2


def test_widths_by_hand_stay() -> None:
    lost, price = tables(5, 1)
    limit = 0.7 * sum(row[16] for row in price.values())
    found = assign_bits(lost, price, limit, by_hand={"layer2": 16})
    assert found.bits["layer2"] == 16
    assert found.cost <= limit
    with pytest.raises(ArgumentError, match=r"^by_hand\['layer2'\]: got 3; wanted one of"):
        assign_bits(lost, price, limit, by_hand={"layer2": 3})
    with pytest.raises(ArgumentError, match=r"^limit: got 1\.0; wanted at least "):
        assign_bits(lost, price, 1.0)


def test_the_trace_of_a_quadratic() -> None:
    """Within 4 standard deviations of what Hutchinson's estimator has."""
    half = RNG.normal(size=(30, 30))
    hessian = half @ half.T
    probes = 400
    found = hutchinson_trace(lambda v: hessian @ v, (30,), probes=probes, tolerance=0.0)
    off = hessian - np.diag(np.diag(hessian))
    deviation = np.sqrt(2 * np.square(off).sum() / probes)
    assert abs(found - np.trace(hessian)) < 4 * deviation < 0.5 * np.trace(hessian)
    assert found == hutchinson_trace(lambda v: hessian @ v, (30,), probes=probes, tolerance=0.0)
    calls: list[int] = []

    def counted(v: Any) -> Any:
        calls.append(1)
        return hessian @ v

    hutchinson_trace(counted, (30,), probes=5000, tolerance=1e-3)
    assert 2 <= len(calls) < 5000
    with pytest.raises(ArgumentError, match=r"^hvp: got a function that raises ZeroDivisionError"):
        hutchinson_trace(lambda v: v / int(0 * v[0]) if 1 // 0 else v, (3,))
    with pytest.raises(ShapeError, match=r"^hvp: got a product of shape \(2,\)"):
        hutchinson_trace(lambda v: v[:2], (3,))


def test_sensitivity_is_what_a_quadratic_loss_grows_by() -> None:
    """With H = c·I the loss of dW is c/2·‖dW‖², and the average trace is c."""
    wei, curvature = RNG.normal(size=(8, 20)), 3.0
    for bits in (2, 4, 8):
        grows = curvature * perturbation(wei, bits)
        trace = hutchinson_trace(lambda v: curvature * v, wei.shape)
        assert sensitivity(wei, bits, trace) == pytest.approx(grows, rel=1e-12)
    lost = [perturbation(wei, bits) for bits in (2, 3, 4, 8, 32)]
    assert lost == sorted(lost, reverse=True)
    assert lost[-1] == 0.0


def test_bfloat16_rounds_to_eight_bits() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    wei = RNG.normal(size=(8, 50)).astype(np.float32)
    became = wei.astype(ml_dtypes.bfloat16).astype(np.float64)
    assert perturbation(wei, 16) == float(np.square(became - wei).sum())


CHOICES = {f"layer{i}": (2, 4, 8) for i in range(5)}
COUNTS = {f"layer{i}": 10 * (i + 1) for i in range(5)}


@settings(max_examples=60, deadline=None)
@given(
    bits=st.lists(st.sampled_from([2, 4, 8]), min_size=5, max_size=5), ratio=st.floats(1 / 16, 0.3)
)
def test_the_size_is_always_kept(bits: list[int], ratio: float) -> None:
    proposed = dict(zip(CHOICES, bits, strict=True))
    found = constrained_bits(proposed, CHOICES, COUNTS, ratio)
    assert size_ratio(found, COUNTS) <= ratio
    assert all(found[name] <= proposed[name] for name in proposed)
    if size_ratio(proposed, COUNTS) <= ratio:
        assert found == proposed


def test_a_search_finds_the_best_keeps_the_size_and_can_be_repeated() -> None:
    worth = {"layer0": 9.0, "layer1": 1.0, "layer2": 4.0, "layer3": 1.0, "layer4": 0.5}

    def evaluate(bits: dict[str, int]) -> float:
        return -sum(worth[name] * 2.0**-width for name, width in bits.items())

    best = max(
        evaluate(bits)
        for choice in itertools.product((2, 4, 8), repeat=5)
        if size_ratio(bits := dict(zip(CHOICES, choice, strict=True)), COUNTS) <= 0.15
    )
    logged: list[Any] = []
    found = search_bits(evaluate, CHOICES, COUNTS, 0.15, trials=600, seed=4, log=logged.append)
    assert found.score == best == evaluate(found.bits)
    assert found == search_bits(evaluate, CHOICES, COUNTS, 0.15, trials=600, seed=4)
    assert tuple(logged) == found.trials
    assert all(trial.ratio <= 0.15 for trial in found.trials)
    tops = [trial.best for trial in found.trials]
    assert tops == sorted(tops)
    with pytest.raises(ArgumentError, match=r"^ratio: got 0\.01; wanted at least 0\.0625"):
        search_bits(evaluate, CHOICES, COUNTS, 0.01)


def pairs_matter(seed: int) -> tuple[Any, dict[str, int], float]:
    """A score in which layers mind each other's widths, weights by layer, and the best score."""
    rng = np.random.default_rng(seed)
    names = [f"layer{i}" for i in range(6)]
    counts = {name: int(rng.integers(10, 1000)) for name in names}
    worth, pair = rng.lognormal(0, 1.5, 6), rng.normal(0, 1, (6, 6))

    def evaluate(bits: dict[str, int]) -> float:
        lost = 2.0 ** -np.array([bits[name] for name in names])
        return float(lost @ pair @ lost - worth @ lost)

    best = max(
        evaluate(bits)
        for choice in itertools.product((2, 4, 8), repeat=6)
        if size_ratio(bits := dict(zip(names, choice, strict=True)), counts) <= 0.15
    )
    return evaluate, counts, best


@pytest.mark.parametrize(
    ("propose", "least"), [("anneal", 20), ("greedy", 18), ("coordinate", 16), ("random", 8)]
)
def test_searches_find_the_best_of_729_with_200_tries(propose: str, least: int) -> None:
    """Of 20 problems in which layers mind each other's widths."""
    hits = 0
    for seed in range(20):
        evaluate, counts, best = pairs_matter(seed)
        tried: list[tuple[int, ...]] = []

        def noted(bits: dict[str, int], evaluate: Any = evaluate, tried: Any = tried) -> float:
            tried.append(tuple(bits.values()))
            return float(evaluate(bits))

        choices = dict.fromkeys(counts, (2, 4, 8))
        found = search_bits(noted, choices, counts, 0.15, trials=200, propose=propose)
        assert len(set(tried)) == len(tried) == len(found.trials) <= 200
        assert all(trial.ratio <= 0.15 for trial in found.trials)
        hits += found.score == best
    assert hits >= least


def test_all_widths_are_tried_where_there_are_few() -> None:
    choices = dict.fromkeys("abcd", (4, 8))
    for propose in ("anneal", "random", "greedy", "coordinate"):
        found = search_bits(
            lambda bits: -abs(sum(bits.values()) - 24),
            choices,
            dict.fromkeys("abcd", 1),
            0.25,
            propose=propose,
        )
        assert len(found.trials) == 16


def test_a_function_of_ones_own_proposes() -> None:
    seen: list[int] = []

    def propose(trials: Any) -> dict[str, float]:
        seen.append(len(trials))
        return {"a": 0.3, "b": 5, "c": 1.0}  # an action, the nearest width, an action

    choices = {"a": (2, 4, 8), "b": (4, 8), "c": (2, 4)}
    found = search_bits(
        lambda bits: 71.5 + bits["a"],
        choices,
        dict.fromkeys("abc", 10),
        1.0,
        propose=propose,
        trials=5,
        warmup=2,
        baseline=75.0,
    )
    assert seen == [2, 3, 4]
    assert [trial.bits for trial in found.trials[2:]] == [{"a": 4, "b": 4, "c": 4}] * 3
    assert found.trials[-1].reward == pytest.approx(7.55)


WRONG: list[dict[str, Any]] = [{"a": 4}, {"a": 2.5, "b": 4}, {"a": None, "b": 4}, {"a": 4, "c": 4}]


@pytest.mark.parametrize("wrong", WRONG)
def test_proposals_are_checked(wrong: dict[str, Any]) -> None:
    choices = {"a": (2, 4, 8), "b": (4, 8)}
    with pytest.raises(ArgumentError, match=r"^propose\(\)"):
        search_bits(lambda _: 0.0, choices, {"a": 1, "b": 1}, 1.0, propose=lambda _: wrong)


def test_layers_that_read_one_tensor_are_aligned() -> None:
    found = search_bits(
        lambda bits: float(sum(bits.values())),
        {"a": (4, 8), "b": (2, 4, 8), "c": (4, 8)},
        dict.fromkeys("abc", 10),
        1.0,
        same=[("a", "b")],
        propose=lambda trials: [{"a": 8, "b": 4, "c": 8}, {"a": 8, "b": 2, "c": 8}][len(trials)],
        trials=2,
    )
    assert [list(trial.bits.values()) for trial in found.trials] == [[4, 4, 8], [4, 2, 8]]
    with pytest.raises(ArgumentError, match=r"^same: got \('a', 'b'\); wanted layers with a width"):
        search_bits(lambda _: 0.0, {"a": (4,), "b": (8,)}, {"a": 1, "b": 1}, 1.0, same=[("a", "b")])


@pytest.mark.parametrize("count", [0, -3])
def test_weights_are_counted(count: int) -> None:
    with pytest.raises(ArgumentError, match=rf"^weights\['a'\]: got {count}; wanted an integer"):
        size_ratio({"a": 8}, {"a": count})
    assert size_ratio({"a": 8}, {"a": 2**40}) == 0.25
