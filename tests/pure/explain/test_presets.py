"""The presets that come with the package are read, composed and told, all of them."""

from __future__ import annotations

import pytest

from pyonednn_q.compose.composer import NO_RULES
from pyonednn_q.errors import ArgumentError
from pyonednn_q.explain import presets, read
from pyonednn_q.explain.description_text import dumps, parse

FREE = ("conv_bias_relu", "conv_bias_relu_per_tensor", "depthwise", "deconv_fq", "classifier")


@pytest.mark.parametrize("name", presets.names())
def test_preset(name: str) -> None:
    described = read(presets.get(name))
    plan = described.plan(strict=True)
    assert described.title
    assert plan.is_whole
    if not described.exact_rounding:
        naive = described.plan(rules=NO_RULES)
        assert len(plan.post_ops) <= len(naive.post_ops)
        assert plan.cost <= naive.cost


@pytest.mark.parametrize("name", [*FREE, *presets.names("subgraphs")[:7]])
def test_what_costs_nothing(name: str) -> None:
    """Bias and FakeQuantize, per tensor or per channel, need no post-op on any primitive."""
    assert read(presets.get(name)).plan().post_ops == ()


@pytest.mark.parametrize("name", presets.names())
def test_a_preset_shown_is_a_description(name: str) -> None:
    assert parse(dumps(presets.get(name)), name) == presets.get(name)


def test_names_are_unique_and_complete() -> None:
    files = [name for file in presets.FILES for name in presets.names(file)]
    assert sorted(files) == sorted(presets.names())
    assert len(set(files)) == len(files)
    numbers = {name[:2] for name in presets.names("chains") if name[0].isdigit()}
    assert numbers == {f"{number:02}" for number in range(1, 15)}


def test_a_preset_cannot_be_changed_by_its_reader() -> None:
    presets.get("relu")["chain"].append("abs")
    assert presets.get("relu")["chain"] == ["relu"]


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(ArgumentError, match="did you mean classifier"):
        presets.get("classifer")
