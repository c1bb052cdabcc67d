"""The chains that OpenVINO tests: golden plans and traces, and how many post-ops they need."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

from pyonednn_q.compose.composer import NO_RULES, compose
from pyonednn_q.compose.layer_composer import compose_layer
from pyonednn_q.compose.plan import Plan
from pyonednn_q.errors import ShapeError
from pyonednn_q.explain import presets
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.fq_orders import fake_quantize
from pyonednn_q.expr.steps import Binary, Chain
from pyonednn_q.primitive.problem import ConvProblem
from support.definitions.runs import by_formula, result
from support.plans import chains
from support.plans.golden import FOLDER, SUBGRAPHS, facts, subgraph_text, text
from support.plans.problems import problem
from support.plans.runs import Layer

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
    "sqrt": (2, 2, 2, 2),
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
    "sub_pt": (0, 1, 0, 1),
    "sub_pc": (0, 1, 0, 1),
    "div_pt": (0, 1, 0, 1),
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
    "sum_sigmoid": (2, 2, 2, 2),
    "sum_relu_scale_shift": (3, 4, 3, 4),
    "sum_fq_pt_relu": (3, 6, 4, 6),
    "sum_fq_pc_relu": (5, 7, 5, 7),
    "sum_fq_pc_sigmoid_fq_pc": (7, 11, 10, 12),
    "sum_mul_add_fq_mul_add": (6, 10, 6, 10),
    "sum_div_sub_fq": (2, 7, 5, 8),
    "sum_sigmoid_fq_fq": (3, 11, 6, 12),
    "swish_fq": (1, 4, 5, 5),
    "sum_fq_pt_relu_fq": (3, 9, 6, 10),
    "relu_signed_mul_fq": (1, 6, 4, 7),
    "prelu_mul_fq": (1, 6, 4, 7),
    "signed_mul_fq": (0, 5, 3, 6),
    "sum_mul_pt_fq_pt": (1, 4, 3, 4),
    "mul_30_fq": (0, 4, 3, 5),
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
    page = (Path(__file__).parents[3] / "docs" / "reference" / "composed_chains.md").read_text()
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


@pytest.mark.parametrize("name", presets.names("subgraphs"))
def test_golden_text_of_a_subgraph(name: str) -> None:
    assert subgraph_text(name) == (SUBGRAPHS / f"{name}.txt").read_text()
    assert {path.stem for path in SUBGRAPHS.glob("*.txt")} == set(presets.names("subgraphs"))


SCALES, RANGES = (
    (30, -30, -17, -1.23e-44, 0),
    ((-1, 5, -5, 1), (2, 4, -4, -2), (-1.28, 1.27), (0, 2.55)),
)


@pytest.mark.parametrize("dst", ["u8", "s8", "f32"])
@pytest.mark.parametrize("ends", RANGES)
@pytest.mark.parametrize("scale", SCALES)
def test_scale_and_fake_quantize_of_any_range(
    scale: float, ends: tuple[float, ...], dst: str
) -> None:
    """Every pair of the subgraph `fuse_scaleshift_and_fakequantize`, whole, against the formula."""
    low, high, *out = ends
    first, last = out or ends
    lowest = {"u8": 0, "s8": -128}.get(dst)
    stored = (first, last) if lowest is None else (lowest, lowest + 255)
    chain = Chain(Binary("mul", scale), FakeQuantize(low, high, *stored).chain())
    plan = compose(chain, facts(dst), strict=True)
    layer = Layer.of(problem("convolution", dst), seed=1)
    x = result(layer, compose(Chain(), facts("f32"))).real
    place = np.clip((scale * x - low) / (high - low) * 255, 0, 255)
    got = (by_formula(layer, plan).astype(float) - stored[0]) / (stored[1] - stored[0]) * 255
    off = abs(got - np.rint(place))
    near = abs(place % 1 - 0.5) < 2.0**-10
    assert (off < 2.0**-10)[~near].all()
    assert (off < 1 + 2.0**-10).all()
    assert near.mean() < 0.5 or abs(scale) < 1


def ranges(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return lower and upper ends, of which no two are the same."""
    return np.zeros(shape), np.linspace(1.0, 2.0, math.prod(shape)).reshape(shape)


@pytest.mark.parametrize("shape", [(2, 16, 1, 1), (2, 16, 5, 4)], ids=["two axes", "full tensor"])
def test_fake_quantize_of_other_granularities_is_no_step(shape: tuple[int, ...]) -> None:
    """Ranges per element cannot be fused: refused by name. Arrays may have them."""
    low, high = ranges(shape)
    with pytest.raises(ShapeError, match="one value, or one per channel"):
        FakeQuantize(low, high, 0, 255)
    x = np.full((2, 16, 5, 4), 0.5, np.float32)
    assert fake_quantize(x, low, high, 0, 255, levels=256).shape == x.shape


@pytest.mark.parametrize("shape", [(2, 1, 1, 1), (1, 1, 1, 16)], ids=["per batch", "per column"])
def test_fake_quantize_along_no_channels_is_refused_by_a_layer(shape: tuple[int, ...]) -> None:
    """An array says where its values lie: not along the channels of a convolution's result."""
    fq = FakeQuantize(*ranges(shape), 0, 255)
    conv = ConvProblem.of((2, 8, 7, 6), (16, 8, 3, 3), dst="u8")
    src_fq, wei = FakeQuantize(0, 2.55, 0, 2.55), np.full((16, 8, 3, 3), 0.5)
    with pytest.raises(ShapeError, match=r"^dst_fq: got ranges along dimension"):
        compose_layer(conv, wei, src_fq=src_fq, dst_fq=fq, wei_levels=129)


@pytest.mark.parametrize("name", chains.NAMES)
def test_composing_again_changes_nothing(name: str) -> None:
    composed, _ = plans(name, "u8")
    again, _ = plans(name, "u8")
    assert composed == again
    assert hash(composed) == hash(again)


def test_quantized_convolution_needs_nothing() -> None:
    """Bias and per-channel FakeQuantize to u8: weight scale and bias carry it all."""
    plan, _ = plans("fq_pc", "u8")
    assert plan.post_ops == ()
    assert [name for name, _ in plan.constants] == ["wei_scale"]
    assert plan.bias is not None
