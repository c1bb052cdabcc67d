"""The subgraphs among the presets, run on primitives: whole layers with scales of any value."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pyonednn_q.explain import presets, read
from pyonednn_q.native import runtime
from support.oracle_numbers import INTEGER_RANGES, numpy_dtype
from support.plans.runs import Layer, assert_near


def filled(problem: Any, seed: int) -> Layer:
    """Sources over their whole range; weights small and even: no ISA saturates."""
    rng = np.random.default_rng(seed)
    low, high = INTEGER_RANGES[problem.src.dtype]
    src = rng.integers(low, high, problem.src.dims).astype(numpy_dtype(problem.src.dtype))
    wei = 2 * rng.integers(-31, 32, problem.wei.dims).astype(np.int8)
    return replace(Layer.of(problem, seed), src=src, wei=wei)


@pytest.mark.parametrize("name", presets.names("subgraphs"))
def test_subgraph(name: str) -> None:
    described = read(presets.get(name)).on(runtime.facts())
    layer = filled(described.problem, seed=presets.names().index(name))
    plan = described.plan(strict=True)
    got, prepared = layer.run(plan)
    assert prepared.kind != "reference"
    assert len(np.unique(got)) > 20
    alone = assert_near(layer, plan, got)
    if described.facts.dst in INTEGER_RANGES:
        assert alone > 0.95, "next to a tie either neighbour is right, but not all are next to one"
