"""Thresholds moved backward and forward, so that S_x = S_y.

Accepted: on small graphs, operators that are free with one scale have one; tensors that several
operators read keep theirs; codes are then what the operator on codes gives, without a multiplier.
"""

from __future__ import annotations

import numpy as np
import pytest

from pyonednn_q import emulate as quantized
from pyonednn_q.errors import ArgumentError
from pyonednn_q.quantize.alignment import BACKWARD, FORWARD, GraphOperator, align_thresholds
from pyonednn_q.quantize.tpu_mlir import symmetric_qparams

CHAIN = [
    GraphOperator("conv", ("x",), "a"),
    GraphOperator("relu", ("a",), "b"),
    GraphOperator("max_pool", ("b",), "c"),
    GraphOperator("reshape", ("c",), "d"),
    GraphOperator("inner_product", ("d",), "e"),
]
THRESHOLDS = {"x": 1.0, "a": 9.0, "b": 6.0, "c": 5.0, "d": 4.0, "e": 3.0}


def test_a_chain_shares_the_range_of_its_last_maximum() -> None:
    wanted = THRESHOLDS | {"a": 5.0, "b": 5.0, "d": 5.0}
    assert align_thresholds(CHAIN, THRESHOLDS) == wanted
    assert THRESHOLDS["a"] == 9.0


def test_a_tensor_that_others_read_keeps_its_range() -> None:
    graph = [*CHAIN, GraphOperator("add", ("a", "e"), "f")]
    wanted = THRESHOLDS | {"b": 5.0, "d": 5.0, "f": 2.0}
    assert align_thresholds(graph, THRESHOLDS | {"f": 2.0}) == wanted


@pytest.mark.parametrize("kind", BACKWARD)
def test_backward(kind: str) -> None:
    graph = [GraphOperator(kind, ("x",), "y")]
    assert align_thresholds(graph, {"x": (-3.0, 3.0), "y": (0.0, 2.0)})["x"] == (0.0, 2.0)


@pytest.mark.parametrize("kind", FORWARD)
def test_forward(kind: str) -> None:
    graph = [GraphOperator(kind, ("x", "w"), "y"), GraphOperator("conv", ("x",), "z")]
    ranges = {"x": 3.0, "w": 1.0, "y": 2.0, "z": 1.0}
    assert align_thresholds(graph, ranges) == ranges | {"y": 3.0}


def test_backward_goes_through_what_moves_values() -> None:
    graph = [
        GraphOperator("conv", ("x",), "a"),
        GraphOperator("permute", ("a",), "b"),
        GraphOperator("reshape", ("b",), "c"),
        GraphOperator("relu", ("c",), "d"),
    ]
    found = align_thresholds(graph, {"x": 1.0, "a": 9.0, "b": 8.0, "c": 7.0, "d": 6.0})
    assert found == {"x": 1.0, "a": 6.0, "b": 6.0, "c": 6.0, "d": 6.0}


def test_forward_leaves_what_came_from_behind() -> None:
    """A leaky ReLU before a ReLU: one of them shares its range with its source."""
    graph = [GraphOperator("leaky_relu", ("x",), "a"), GraphOperator("relu", ("a",), "b")]
    found = align_thresholds(graph, {"x": 9.0, "a": 8.0, "b": 5.0})
    assert found == {"x": 9.0, "a": 5.0, "b": 5.0}


@pytest.mark.parametrize("seed", range(20))
def test_random_chains_need_no_multiplier(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = [f"t{at}" for at in range(9)]
    kinds = rng.choice([*BACKWARD, *FORWARD, "conv"], 8)
    graph = [
        GraphOperator(str(kind), (source,), result)
        for kind, source, result in zip(kinds, names[:-1], names[1:], strict=True)
    ]
    found = align_thresholds(graph, dict(zip(names, rng.uniform(1, 9, 9).tolist(), strict=True)))
    assert align_thresholds(graph, found) == found
    for operator, following in zip(graph, [*graph[1:], None], strict=True):
        same = found[operator.sources[0]] == found[operator.result]
        cut = following is not None and following.kind in BACKWARD
        if operator.kind in BACKWARD or (operator.kind in FORWARD and not cut):
            moved = following is not None and found[operator.result] == found[following.result]
            assert same or moved


def test_codes_are_then_copied() -> None:
    found = align_thresholds([GraphOperator("leaky_relu", ("x",), "y")], {"x": 2.0, "y": 1.5})
    q = symmetric_qparams(found["y"])
    x = np.arange(-128, 128).astype(np.int8)
    got = quantized.leaky_relu(x, 0.5, src_q=symmetric_qparams(2.0), dst_q=q, dialect="tpu_mlir")
    assert np.array_equal(got[128:], x[128:])


def test_arguments_are_named() -> None:
    with pytest.raises(ArgumentError, match=r"^thresholds: got none of 'y'"):
        align_thresholds([GraphOperator("relu", ("x",), "y")], {"x": 1.0})
    with pytest.raises(ArgumentError, match=r"^graph: got a relu of nothing"):
        align_thresholds([GraphOperator("relu", (), "y")], {"y": 1.0})
    with pytest.raises(ArgumentError, match=r"^graph: got \['a'\] written after it is read"):
        align_thresholds(list(reversed(CHAIN[:2])), THRESHOLDS)


def test_of_several_sources_the_first_takes_the_range() -> None:
    graph = [
        GraphOperator("conv", ("x",), "a"),
        GraphOperator("pad", ("a", "value"), "b"),
        GraphOperator("relu", ("b",), "c"),
    ]
    aligned = align_thresholds(graph, {"x": 1.0, "a": 9.0, "value": 2.0, "b": 7.0, "c": 5.0})
    assert aligned == {"x": 1.0, "a": 5.0, "value": 2.0, "b": 5.0, "c": 5.0}
