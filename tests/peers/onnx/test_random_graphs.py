"""Random ONNX graphs, run both ways and beside onnxruntime: equal, or refused by name."""

from __future__ import annotations

from collections import Counter

import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from support.onnx_graphs.graphs import random_graph
from support.onnx_graphs.verdict import judged


def test_random_graphs(pytestconfig: pytest.Config) -> None:
    count = pytestconfig.getoption("--random-graphs")
    first = pytestconfig.getoption("--graph-seed")
    tally: Counter[str] = Counter()
    faults = []
    for seed in range(first, first + count):
        draw = random_graph(seed)
        verdict = judged(draw.model(), draw.feeds, draw.types)
        faults += [f"seed {seed}, opset {draw.opset}: {each}" for each in verdict.faults]
        tally["graphs"] += 1
        tally["nodes"] += verdict.compared
        tally["refused"] += bool(verdict.refused)
        tally["networks refused"] += bool(verdict.refused_network)
        tally["without an oracle"] += bool(verdict.no_oracle)
    print(dict(tally))  # noqa: T201
    assert faults == []
    assert tally["nodes"] > 3 * count
    assert tally["refused"] < 0.1 * count
    assert tally["networks refused"] < 0.5 * count
    assert tally["without an oracle"] < 0.1 * count
