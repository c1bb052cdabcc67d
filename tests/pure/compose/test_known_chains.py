"""The chains that OpenVINO tests: golden plans and traces, and how many post-ops they need."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pyonednn_q.compose.composer import NO_RULES, compose
from pyonednn_q.compose.plan import Plan
from support.plans import chains
from support.plans.golden import FOLDER, facts, text

# name: (u8 composed, u8 step by step, f32 composed, f32 step by step)
COUNTS = {
    "empty": (0, 0, 0, 0),
    "relu": (0, 1, 1, 1),
    "elu": (1, 1, 1, 1),
    "gelu": (1, 1, 1, 1),
    "sigmoid": (1, 1, 1, 1),
    "clamp": (1, 1, 1, 1),
    "tanh": (1, 1, 1, 1),
    "abs": (1, 1, 1, 1),
    "swish": (1, 1, 1, 1),
    "soft_plus": (1, 1, 1, 1),
    "hswish": (1, 1, 1, 1),
    "mish": (1, 1, 1, 1),
    "hsigmoid": (1, 1, 1, 1),
    "prelu_pt": (1, 1, 1, 1),
    "prelu_pc": (1, 1, 1, 1),
    "mul_pt": (0, 1, 0, 1),
    "mul_pc": (0, 1, 0, 1),
    "add_pt": (0, 1, 0, 1),
    "add_pc": (0, 1, 0, 1),
    "sub_pc": (0, 1, 0, 1),
    "div_pc": (0, 1, 0, 1),
    "sum": (1, 1, 1, 1),
    "01_relu_add": (1, 2, 1, 2),
    "02_relu_scale_shift": (1, 3, 1, 3),
    "03_scale_shift": (0, 2, 0, 2),
    "04_clamp_round_add_relu": (1, 4, 2, 4),
    "06_fq_pc_relu": (3, 6, 3, 6),
    "06_fq_pt_relu": (2, 5, 3, 5),
    "09_prelu_mul_add": (2, 3, 2, 3),
    "10_bias_gelu": (1, 2, 1, 2),
    "11_mul_add_fq_mul_add": (4, 9, 4, 9),
    "fq_pt": (0, 3, 3, 4),
    "fq_pc": (0, 4, 3, 5),
    "05_mul_add_fq_pc": (0, 6, 3, 7),
    "07_fq_pc_sigmoid_fq_pc": (5, 10, 8, 11),
    "07_fq_pc_sigmoid_fq_pt": (4, 9, 8, 10),
    "08_sum_elu_fq": (2, 5, 6, 6),
    "12_div_sub_fq": (0, 6, 3, 7),
    "13_sigmoid_fq_fq": (2, 10, 5, 11),
    "14_clamp_fq": (2, 5, 4, 6),
    "14_clamp_fq_disjoint": (0, 4, 0, 5),
    "sum_fq_pt_relu_fq": (3, 9, 6, 10),
    "relu_signed_mul_fq": (1, 6, 4, 7),
    "prelu_mul_fq": (1, 6, 4, 7),
    "signed_mul_fq": (0, 5, 3, 6),
    "sum_mul_pt_fq_pt": (1, 4, 3, 4),
    "mul_minus_30_fq": (0, 4, 3, 5),
    "mul_minus_17_fq_reversed": (0, 4, 3, 5),
    "mul_subnormal_fq": (2, 4, 5, 5),
    "mul_zero_fq": (0, 4, 0, 5),
    "fq_pc_residual_fq": (4, 8, 6, 8),
}


def plans(name: str, dst: str) -> tuple[Plan, Plan]:
    chain = chains.chain(name, dst)
    return compose(chain, facts(dst), strict=True), compose(chain, facts(dst), rules=NO_RULES)


def test_every_chain_is_counted() -> None:
    assert set(COUNTS) == set(chains.NAMES)
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(chains.NAMES)


@pytest.mark.parametrize("name", chains.NAMES)
def test_post_op_counts(name: str) -> None:
    found = tuple(len(plan.post_ops) for dst in ("u8", "f32") for plan in plans(name, dst))
    assert found == COUNTS[name]


@pytest.mark.parametrize("name", chains.NAMES)
def test_the_page_shows_these_counts(name: str) -> None:
    page = (Path(__file__).parents[3] / "docs" / "composer.md").read_text()
    row = re.search(rf"^\| `{name}`: .* \| (.*) \|$", page, re.MULTILINE)
    composed_u8, naive_u8, composed_f32, naive_f32 = COUNTS[name]
    assert row is not None
    assert row[0].endswith(f"| {naive_u8} | **{composed_u8}** | {naive_f32} | **{composed_f32}** |")


@pytest.mark.parametrize("name", chains.NAMES)
@pytest.mark.parametrize("dst", ["u8", "f32"])
def test_composing_never_costs_more(name: str, dst: str) -> None:
    composed, naive = plans(name, dst)
    assert len(composed.post_ops) <= len(naive.post_ops)
    assert composed.cost <= naive.cost


@pytest.mark.parametrize("name", chains.NAMES)
def test_golden_text(name: str) -> None:
    assert text(name) == (FOLDER / f"{name}.txt").read_text()


@pytest.mark.parametrize("name", chains.NAMES)
def test_composing_again_changes_nothing(name: str) -> None:
    composed, _ = plans(name, "u8")
    again, _ = plans(name, "u8")
    assert composed == again
    assert hash(composed) == hash(again)


def test_quantised_convolution_needs_nothing() -> None:
    """Bias and per-channel FakeQuantize to u8: weight scale and bias carry it all."""
    plan, _ = plans("fq_pc", "u8")
    assert plan.post_ops == ()
    assert [name for name, _ in plan.constants] == ["wei_scale"]
    assert plan.bias is not None
