"""Layers as values: what is decided, what is reported, what is refused."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pyonednn_q.compose.layer import as_matmul
from pyonednn_q.compose.layer_composer import compose_layer
from pyonednn_q.compose.zero_point import carry_zero_point, settled
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.steps import Binary, Chain, Clip, Eltwise, Leaf, Sum
from pyonednn_q.primitive.dense_facts import ACC_MAP
from pyonednn_q.primitive.isa import Facts, InstructionSet
from pyonednn_q.primitive.problem import (
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
)
from support.oracle_accumulate import reduction

AMX = Facts((3, 13, 2), InstructionSet("AVX512_CORE_AMX"), "OMP")
AVX2 = Facts((3, 13, 2), InstructionSet("AVX2"), "OMP")
CONV = ConvProblem.of((1, 4, 6, 6), (8, 4, 3, 3), padding=1)
OPEN = ConvProblem.of((1, 4, 6, 6), (8, 4, 3, 3))
GROUPED = ConvProblem.of((1, 8, 6, 6), (2, 4, 4, 3, 3), padding=1)
DECONV = DeconvProblem.of((1, 4, 6, 6), (8, 4, 3, 3), stride=3)
DENSE = InnerProductProblem.of((3, 4, 2, 2), 8)
MATMUL = MatMulProblem.of((3, 16), (16, 8))


def wei_of(problem: Any, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=problem.wei.dims)


def zero_at(code: float, levels: int = 256, step: float = 0.25) -> FakeQuantize:
    low, high = -code * step, (levels - 1 - code) * step
    return FakeQuantize(low, high, low, high, levels)


def layer_of(problem: Any = CONV, code: float = 100.0, **more: Any) -> Any:
    given: dict[str, Any] = {"src_fq": zero_at(code), **more}
    wei = given.pop("wei") if "wei" in given else wei_of(problem)
    return compose_layer(problem, wei, **given)


DECIDED: dict[str, tuple[Any, float, Facts | None, str]] = {
    "none": (CONV, 0.0, AMX, "nothing"),
    "padded": (CONV, 100.0, AMX, "attribute"),
    "noise": (CONV, 100.0 + 2.0**-40, AMX, "attribute"),
    "near": (CONV, 100.0 + 5e-5, AMX, "attribute"),
    "half, padded": (CONV, 42.5, AMX, "map"),
    "half, open": (OPEN, 42.5, AMX, "bias"),
    "half, matmul": (MATMUL, 42.5, AMX, "bias"),
    "beyond the type": (OPEN, -3.0, AMX, "bias"),
    "grouped on AMX": (GROUPED, 100.0, AMX, "map"),
    "grouped on AVX2": (GROUPED, 100.0, AVX2, "attribute"),
    "grouped anywhere": (GROUPED, 100.0, None, "map"),
    "strided deconvolution": (DECONV, 100.0, AMX, "map"),
    "inner product": (DENSE, 100.0, AMX, "attribute"),
    "inner product, half": (DENSE, 42.5, AMX, "bias"),
}


@pytest.mark.parametrize("name", DECIDED)
def test_what_carries_the_zero_point(name: str) -> None:
    problem, code, process, by = DECIDED[name]
    layer = layer_of(problem, code, process=process)
    assert layer.zero_point.by == by
    attribute = layer.plan.attr.src_zero_point
    assert (attribute is not None) == (by == "attribute")
    assert list(layer.operands()) == ([ACC_MAP] if by == "map" else [])
    assert any(f"by {by}" in note for note in layer.notes) == (by != "nothing")


def test_the_guard_table_is_named_where_it_decides() -> None:
    layer = layer_of(GROUPED, process=AMX)
    assert "not by attribute: grouped-conv-src-zero-point" in layer.notes
    explicit = layer_of(GROUPED, process=AMX, zero_point="attribute")
    assert explicit.zero_point.by == "attribute"


@pytest.mark.parametrize("problem", [CONV, DECONV], ids=["conv", "deconv"])
@pytest.mark.parametrize("code", [100.0 + 5e-5, 100.0 - 9e-5])
def test_a_rounded_zero_point_is_off_by_no_more_than_reported(problem: Any, code: float) -> None:
    layer = layer_of(problem, code, process=AVX2)
    assert layer.zero_point.attribute == 100
    plain = layer.wei.astype(np.float64)
    moved = reduction(problem)(np.full(problem.src.dims, code - 100.0), plain)
    scale = layer.plan.facts.folded_scale.spread(8).reshape(1, 8, 1, 1)
    off = np.abs(moved * scale).max(axis=(0, 2, 3))
    np.testing.assert_allclose(layer.off_by.spread(8), off, rtol=1e-9)
    assert any("off by at most" in note for note in layer.notes)


def test_what_rounding_takes_off_a_zero_point_joins_the_bias_without_padding() -> None:
    layer = layer_of(OPEN, 100.0 + 5e-5, bias=np.arange(8.0))
    assert layer.zero_point.attribute == 100
    assert layer.off_by.greatest == 0.0
    rest = 5e-5 * layer.wei.reshape(8, -1).astype(float).sum(axis=1)
    want = np.arange(8.0) - rest * layer.plan.facts.folded_scale.spread(8)
    np.testing.assert_allclose(layer.plan.facts.bias.spread(8), want, rtol=1e-9)


def test_a_zero_point_of_weights_counts_in_what_that_of_src_adds_up_to() -> None:
    """-42.5 · Σ (wei + 28), and nothing is lost: both points are codes or are in the bias."""
    layer = layer_of(MATMUL, 42.5, wei_fq=FakeQuantize(-1, 1.55, -1, 1.55))
    facts = layer.plan.facts
    assert (layer.zero_point.by, facts.wei_zero_point) == ("bias", -28)
    want = -42.5 * (layer.wei.astype(float) + 28).sum(axis=0) * facts.folded_scale.spread(8)
    np.testing.assert_allclose(facts.bias.spread(8), want, rtol=1e-12)
    assert layer.off_by.greatest == 0.0


def test_weights_whose_zero_is_next_to_a_code_are_off_by_no_more_than_reported() -> None:
    high = np.linspace(0.5, 2.0, 8)
    step = 2 * high / 254
    wei_fq = FakeQuantize(-high - 5e-5 * step, high - 5e-5 * step, -high - 5e-5 * step,
                          high - 5e-5 * step, 255)  # fmt: skip
    layer = layer_of(CONV, 100.0, wei_fq=wei_fq)
    # All taps at the source's largest distance from 0, the worst there is.
    worst = 5e-5 * 4 * 9 * 155 * layer.plan.facts.folded_scale.spread(8)
    np.testing.assert_allclose(layer.off_by.spread(8), worst, rtol=1e-6)


def test_the_accumulator_is_bounded_by_weights_and_levels() -> None:
    """So that a relu that does nothing is not computed."""
    wei = np.abs(wei_of(OPEN))
    given: dict[str, Any] = {"wei": wei, "chain": Chain(Eltwise("relu"))}
    problem = replace(OPEN, dst=replace(OPEN.dst, dtype="f32"))
    few = zero_at(0, 4)
    layer = layer_of(problem, src_fq=few, **given)
    assert layer.plan.post_ops == ()
    total = layer.wei.reshape(8, -1).astype(float).sum(axis=1)
    np.testing.assert_array_equal(layer.plan.facts.acc.hi.spread(8), 3 * total)
    assert layer_of(problem, **given).plan.post_ops != ()
    shifted = layer_of(problem, src_fq=zero_at(1.5, 4), zero_point="map", **given)
    np.testing.assert_array_equal(shifted.plan.facts.acc.lo.spread(8), -1.5 * total)


def test_a_layer_is_a_value() -> None:
    layer = layer_of(dst_fq=FakeQuantize(0, 8, 0, 8), bias=np.arange(8.0))
    again = layer_of(dst_fq=FakeQuantize(0, 8, 0, 8), bias=np.arange(8.0))
    assert layer == again
    assert hash(layer) == hash(again)
    for other in (pickle.loads(pickle.dumps(layer)), copy.deepcopy(layer)):
        assert other == layer
        with pytest.raises(ValueError, match="read-only"):
            other.wei[...] = 0
    assert layer != layer_of(dst_fq=FakeQuantize(0, 4, 0, 8), bias=np.arange(8.0))
    assert layer != layer_of(dst_fq=FakeQuantize(0, 8, 0, 8))
    assert layer != layer.plan


def test_text_says_what_was_decided() -> None:
    text = str(layer_of(DENSE, process=AMX))
    assert "inner_product src:u8:3x4x2x2" in text
    assert "runs as a matmul" in text
    assert "source zero point 100 by attribute" in text
    assert "what src's zero point adds up to" in str(layer_of(CONV, 42.5))


@pytest.mark.parametrize("dst", ["u8", "s8", "f32"])
def test_results_stand_for_real_values(dst: str) -> None:
    fq = FakeQuantize(-1, 1.55, 3, 8.1)
    problem = replace(CONV, dst=replace(CONV.dst, dtype=dst))
    layer = layer_of(problem, dst_fq=fq)
    real = fq(np.linspace(-2, 2, 9).reshape(1, 1, 9))
    stored = {"u8": np.rint((real - 3) / 0.02), "s8": np.rint((real - 3) / 0.02) - 128, "f32": real}
    np.testing.assert_allclose(layer.dequantize(stored[dst]), real, rtol=1e-12)
    if dst != "f32":
        with pytest.raises(ArgumentError, match="no dst_fq"):
            layer_of(problem).dequantize(np.zeros(1, np.int8))


NINE_BITS = FakeQuantize(0, 1, 0, 1, 512)
REFUSED: dict[str, tuple[type[Exception], str, dict[str, Any]]] = {
    "src of f32": (DTypeError, "a src of f32",
                   {"problem": replace(CONV, src=replace(CONV.src, dtype="f32"))}),
    "no problem": (ArgumentError, "problem: got str", {"problem": "conv", "wei": 0}),
    "no fq": (ArgumentError, "src_fq: got int", {"src_fq": 3}),
    "wei shape": (ShapeError, "wei: got", {"wei": np.ones((8, 4, 3))}),
    "wei nan": (ArgumentError, "not finite", {"wei": np.full(CONV.wei.dims, np.nan)}),
    "src per channel": (ArgumentError, "src_fq: got 4 ranges",
                        {"src_fq": FakeQuantize(0, np.arange(1.0, 5.0), 0, 1)}),
    "src reversed": (ArgumentError, "src_fq: got a scale of -",
                     {"src_fq": FakeQuantize(0, 1, 1, 0)}),
    "src threshold": (ArgumentError, "src_fq: got a threshold",
                      {"src_fq": FakeQuantize(1, 1, 0, 1, 2)}),
    "src levels": (ArgumentError, "src_fq: got 512 levels", {"src_fq": NINE_BITS}),
    "dst levels": (ArgumentError, "dst_fq: got 512 levels", {"dst_fq": NINE_BITS}),
    "room of dst": (ArgumentError, "wanted at most 256, to fit into u8", {"dst_fq": NINE_BITS}),
    "room of s8": (ArgumentError, "wanted at most 256, to fit into s8",
                   {"problem": replace(CONV, dst=replace(CONV.dst, dtype="s8")),
                    "dst_fq": FakeQuantize(-1, 1, -1, 1, 512)}),
    "wei ranges": (ShapeError, "wei_fq: got 4 ranges",
                   {"wei_fq": FakeQuantize(-np.arange(1.0, 5.0), 1, 0, 1)}),
    "wei zero point": (ArgumentError, "wei_fq: got a range whose 0 is at code",
                       {"wei_fq": FakeQuantize(-1, 2, -1, 2)}),
    "wei between codes": (ArgumentError, "wei_fq: got a range whose 0 is at code",
                          {"problem": MATMUL, "wei": wei_of(MATMUL),
                           "wei_fq": FakeQuantize(-1, 1, -1, 1, 256)}),
    "wei levels": (ArgumentError, "^wei_levels: got 256", {"wei_levels": 256}),
    "bias": (ShapeError, "bias", {"bias": np.ones(3)}),
    "zero point": (ArgumentError, "zero_point: got 'nowhere'", {"zero_point": "nowhere"}),
    "chain": (ShapeError, "chain: got constants of 3 channels",
              {"chain": Chain(Clip(np.zeros(3), np.arange(3.0)))}),
    "strict": (UnsupportedError, "sums_that_differ",
               {"chain": Chain(Sum(), Sum(0.5)), "strict": True}),
    "leaf": (ArgumentError, "acc_map",
             {"chain": Chain(Binary("add", Leaf(ACC_MAP))), "code": 42.5}),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused(name: str) -> None:
    error, text, given = REFUSED[name]
    with pytest.raises(error, match=text):
        layer_of(**given)


def test_carriers_that_are_not_possible_are_refused() -> None:
    wei = np.ones(CONV.wei.dims)
    cases: tuple[Any, ...] = (("attribute", 1.5), ("attribute", 300.0), ("bias", 3.0))
    for by, code in cases:
        with pytest.raises(ArgumentError, match=f"zero_point: got '{by}'"):
            carry_zero_point(CONV, wei, code, by=by)


def test_an_inner_product_over_channels_last_is_a_matmul_of_the_same_memory() -> None:
    rng = np.random.default_rng(5)
    x, wei = rng.integers(0, 9, (2, 3, 4, 5)), rng.integers(-9, 9, (7, 3, 4, 5)).astype(np.int8)
    for layout in ("channels_last", "dense"):
        problem = InnerProductProblem.of(x.shape, 7, layout=layout)
        product, columns = as_matmul(problem, wei)
        memory = np.moveaxis(x, 1, -1) if layout == "channels_last" else x
        got = memory.reshape(product.src.dims) @ columns
        np.testing.assert_array_equal(got, np.einsum("nchw,ochw->no", x, wei))


def test_a_zero_point_is_whole_to_a_part_in_36_bits_of_a_level() -> None:
    """That is what the ends of a range in float64 may lose, and no more."""
    assert settled(3 + 2.0**-36) == settled(3 - 2.0**-36) == 3.0
    assert settled(3 + 2.0**-35) == 3 + 2.0**-35
