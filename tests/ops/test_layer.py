"""Whole layers on real primitives, against FakeQuantizes and float64."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.steps import Affine, Chain, Eltwise, PRelu, Sum
from pyonednn_q.native import runtime
from pyonednn_q.ops.prepared_layer import prepare_layer
from pyonednn_q.primitive.problem import (
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
)
from support.plans.quantized import FloatLayer

C = 16
STEP = 2.0**-5

KINDS: dict[str, Any] = {
    "conv": (ConvProblem, (2, 8, 6, 5), (C, 8, 3, 3), {}),
    "conv padded": (ConvProblem, (2, 8, 6, 5), (C, 8, 3, 3), {"padding": 1}),
    "conv sides": (ConvProblem, (2, 8, 6, 7), (C, 8, 3, 3),
                   {"padding": ((0, 2), (1, 0)), "stride": (2, 1), "dilation": (1, 2)}),
    "conv 1d": (ConvProblem, (2, 8, 9), (C, 8, 3), {"padding": 1}),
    "conv 3d": (ConvProblem, (1, 8, 4, 5, 3), (C, 8, 3, 3, 3), {"padding": 1}),
    "grouped": (ConvProblem, (2, 16, 6, 5), (2, C // 2, 8, 3, 3), {"padding": 1}),
    "depthwise": (ConvProblem, (2, C, 6, 5), (C, 1, 1, 3, 3), {"padding": 1}),
    "deconv": (DeconvProblem, (2, 8, 5, 4), (C, 8, 2, 2), {"stride": 2}),
    "deconv padded": (DeconvProblem, (2, 8, 5, 4), (C, 8, 4, 4), {"stride": 2, "padding": 1}),
    "deconv strides": (DeconvProblem, (1, 8, 5, 4), (C, 8, 3, 3), {"stride": 3}),
    "inner product": (InnerProductProblem, (5, 24), (C, 24), {}),
    "inner product of images": (InnerProductProblem, (3, 4, 3, 2), (C, 4, 3, 2), {}),
    "inner product row-major": (InnerProductProblem, (3, 4, 3, 2), (C, 4, 3, 2),
                                {"layout": "dense"}),
    "matmul": (MatMulProblem, (7, 24), (24, C), {}),
    "batched": (MatMulProblem, (3, 5, 24), (3, 24, C), {}),
}  # fmt: skip


def levels(first: float, count: int = 256, step: float = STEP) -> FakeQuantize:
    """Return the FakeQuantize with real 0 at code -first."""
    low, high = first * step, (first + count - 1) * step
    return FakeQuantize(low, high, low, high, count)


SRC_FQ = {
    "unsigned": levels(0),
    "symmetric": levels(-128),
    "narrow": levels(-127, 255),  # 127 is odd: ties
    "100": levels(-100),
    "half": levels(-42.5),
    "outside": levels(20),
    "16 levels": levels(-5, 16),
    "rescaled": FakeQuantize(-1, 255 * STEP - 1, -8, 255 / 16 - 8, 256),
}


def problem(kind: str, src: str, dst: str) -> Any:
    cls, src_dims, wei_dims, more = KINDS[kind]
    given = {"src": src, "dst": dst, **more}
    return cls.of(src_dims, C if cls is InnerProductProblem else wei_dims, **given)


def drawn(kind: str, src_fq: str, src: str, dst: str, seed: int = 0, **more: Any) -> FloatLayer:
    """Draw a layer of powers of two and small whole numbers: float32 is exact."""
    rng = np.random.default_rng(seed)
    cls, _, wei_dims, _ = KINDS[kind]
    # Without VNNI, kernels for s8 sources lose the last bit of odd weights.
    codes = rng.integers(-1, 2, wei_dims) * 2 if src == "s8" else rng.integers(-2, 3, wei_dims)
    scale = np.resize([0.25, 0.5, 1.0], C)
    aligned = [1] * len(wei_dims)
    aligned[-1 if cls is MatMulProblem else 0] = -1
    if kind in {"grouped", "depthwise"}:
        aligned[:2] = wei_dims[:2]
    given: dict[str, Any] = {
        "problem": problem(kind, src, dst),
        "wei": codes * scale.reshape(aligned),
        "bias": rng.integers(-64, 64, C) / 8.0,
        "src_fq": SRC_FQ[src_fq],
        "wei_fq": FakeQuantize(-2 * scale, 2 * scale, -2 * scale, 2 * scale, 5),
        "chain": Chain(),
        "dst_fq": None,
    }
    return FloatLayer(**{**given, **more})


def source(layer: FloatLayer, seed: int = 1) -> Any:
    """Draw values of a quarter of a level: ties, and some outside the range."""
    rng, fq = np.random.default_rng(seed), layer.src_fq
    low, high = fq.input_low.least, fq.input_high.least
    step = fq.scale_in.least / 4
    steps = round((high - low) / step)
    values = low + step * rng.integers(-8, steps + 9, layer.problem.src.dims)
    return values.astype(np.float32)


def check(layer: FloatLayer, *, name: str = "", **more: Any) -> Any:
    """Run on float values and on codes; the clean result has no choice."""
    prepared = prepare_layer(layer.compose(process=runtime.facts(), **more))
    src = source(layer)
    real, stored = layer.meaning(src)
    for given in (src, prepared.quantize(src), np.asfortranarray(src)):
        got = prepared(given)
        np.testing.assert_array_equal(got, stored, err_msg=name)
        if layer.dst_fq is not None or got.dtype.kind == "f":
            np.testing.assert_array_equal(prepared.dequantize(got), real)
    assert prepared.planned.primitive.kind != "reference"
    return prepared


@pytest.mark.parametrize("src", ["u8", "s8"])
@pytest.mark.parametrize("src_fq", SRC_FQ)
@pytest.mark.parametrize("kind", KINDS)
def test_zero_points_of_the_source(kind: str, src_fq: str, src: str) -> None:
    check(drawn(kind, src_fq, src, "f32"))


DST_FQ: dict[str, Any] = {
    "per tensor": FakeQuantize(0, 255 / 8, 0, 255 / 8),
    "per channel": FakeQuantize(0, 255 * np.resize([1 / 8, 1 / 4], C), 0,
                                255 * np.resize([1 / 8, 1 / 4], C)),
    "signed": FakeQuantize(-16, 127 / 8, -16, 127 / 8),
    "odd": FakeQuantize(-127 / 8, 127 / 8, -127 / 8, 127 / 8, 255),
    "16 levels": FakeQuantize(-1, 14, -1, 14, 16),
    "rescaled": FakeQuantize(-16, 127 / 8, 32, -31.75),
    "zero point": FakeQuantize(-10 / 8, 245 / 8, -10 / 8, 245 / 8),
}  # fmt: skip
CHAINS: dict[str, Chain] = {
    "relu": Chain(Eltwise("relu")),
    "prelu": Chain(PRelu(np.resize([0.5, 0.25], C))),
    "scale, shift": Chain(Affine(np.resize([0.5, -2.0, 1.0], C), np.resize([1.0, -3.0], C))),
    "relu, scale": Chain(Eltwise("relu"), Affine(np.resize([0.5, 1.0], C), 1.0)),
}


@pytest.mark.parametrize("dst", ["u8", "s8", "f32"])
@pytest.mark.parametrize("dst_fq", DST_FQ)
@pytest.mark.parametrize("kind", ["conv padded", "deconv padded", "inner product", "matmul"])
def test_quantized_results(kind: str, dst_fq: str, dst: str) -> None:
    check(drawn(kind, "100", "u8", dst, dst_fq=DST_FQ[dst_fq]))


@pytest.mark.parametrize("src_fq", ["100", "half"])
@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("kind", ["conv padded", "grouped", "deconv padded", "inner product"])
def test_chains(kind: str, chain: str, src_fq: str) -> None:
    for dst, dst_fq in (("u8", DST_FQ["per channel"]), ("f32", None)):
        check(drawn(kind, src_fq, "u8", dst, chain=CHAINS[chain], dst_fq=dst_fq))


def test_deconvolution_with_bias_and_per_channel_codes_needs_no_post_op() -> None:
    """The bias is a true bias, and what scales channels is in the weights' scale."""
    layer = drawn("deconv padded", "unsigned", "u8", "u8", dst_fq=DST_FQ["per channel"])
    prepared = check(layer)
    plan = prepared.planned.plan
    assert plan.post_ops == ()
    assert plan.bias is not None
    assert prepared.planned.primitive.problem.bias is not None


@pytest.mark.parametrize("src_fq", ["100", "half"])
@pytest.mark.parametrize("kind", ["conv padded", "deconv padded", "matmul"])
def test_residual(kind: str, src_fq: str) -> None:
    layer = drawn(kind, src_fq, "u8", "u8", chain=Chain(Sum(0.5, 3)), dst_fq=DST_FQ["per tensor"])
    prepared = prepare_layer(layer.compose(process=runtime.facts()))
    src = source(layer)
    before = np.random.default_rng(2).integers(0, 256, layer.problem.dst.dims).astype(np.uint8)
    _, stored = layer.meaning(src, before)
    np.testing.assert_array_equal(prepared(src, residual=before), stored)
    assert prepared(src, out=before) is before
    np.testing.assert_array_equal(before, stored)


@pytest.mark.parametrize("src_fq", ["100", "half"])
@pytest.mark.parametrize("by", ["attribute", "bias", "map"])
@pytest.mark.parametrize(
    "kind", ["conv", "conv padded", "deconv padded", "inner product", "matmul"]
)
def test_what_carries_the_zero_point_changes_nothing(kind: str, by: Any, src_fq: str) -> None:
    layer = drawn(kind, src_fq, "u8", "f32", chain=CHAINS["scale, shift"])
    if (by == "attribute" and src_fq == "half") or (by == "bias" and "padded" in kind):
        with pytest.raises(ArgumentError, match=f"zero_point: got '{by}'"):
            layer.compose(zero_point=by)
        return
    prepared = check(layer, zero_point=by)
    plan = prepared.planned.plan
    assert prepared.layer.zero_point.by == by
    assert (plan.attr.src_zero_point is not None) == (by == "attribute")
    assert plan.facts.acc_map == (by == "map")


def test_an_inner_product_with_a_zero_point_runs_as_a_matmul_and_says_so() -> None:
    prepared = check(drawn("inner product of images", "100", "u8", "u8", dst_fq=DST_FQ["signed"]))
    assert prepared.planned.primitive.problem.kind == "matmul"
    assert any("runs as a matmul" in note for note in prepared.layer.notes)
    assert "runs as a matmul" in prepared.describe()
    # Codes in the layout of the inner product's own source are not copied.
    codes = prepared.quantize(source(drawn("inner product of images", "100", "u8", "u8")))
    assert prepared.layer.asked.src.is_channels_last
    copies = prepared.planned.primitive.copies["src"]
    prepared(codes)
    assert prepared.planned.primitive.copies["src"] == copies


def test_without_a_bias() -> None:
    for kind, src_fq in (("conv", "half"), ("conv padded", "half"), ("matmul", "100")):
        check(drawn(kind, src_fq, "u8", "f32", bias=None))


@pytest.mark.parametrize("kind", ["conv padded", "depthwise", "matmul"])
def test_weights_by_their_largest_magnitude(kind: str) -> None:
    """255 levels, or 129 where pairs of products would saturate."""
    rng = np.random.default_rng(3)
    levels_ = 255 if runtime.isa().has_vnni() else 129
    layer = drawn(kind, "unsigned", "u8", "f32")
    top = (levels_ - 1) // 2
    codes = rng.integers(-top, top + 1, layer.wei.shape)
    rows = codes if kind != "matmul" else codes.T
    rows.reshape(C, -1)[:, 0] = -top
    layer = replace(layer, wei=codes * 2.0**-6)
    largest = top * 2.0**-6
    layer = replace(layer, wei_fq=FakeQuantize(-largest, largest, -largest, largest, levels_))
    prepared = check(layer, wei_fq=None, wei_levels=levels_)
    np.testing.assert_array_equal(prepared.layer.wei, codes)


def test_a_matmul_takes_weights_with_a_zero_point() -> None:
    fq = FakeQuantize(-1, 2.75, -1, 2.75, 16)  # code of 0: 4 - 8
    layer = replace(drawn("matmul", "100", "u8", "f32"), wei_fq=fq)
    rng = np.random.default_rng(4)
    layer = replace(layer, wei=rng.integers(-4, 12, layer.wei.shape) / 4)
    prepared = check(layer)
    assert prepared.planned.plan.facts.wei_zero_point == -4
    for by in ("bias", "map"):
        check(replace(layer, src_fq=SRC_FQ["half"]), zero_point=by)
    conv = replace(drawn("conv", "100", "u8", "f32"), wei_fq=fq)
    prepared = check(replace(conv, wei=rng.integers(-4, 12, conv.wei.shape) / 4))
    assert not prepared.planned.plan.facts.wei_zero_point  # the codes have room for it
    far = FakeQuantize(-1, 50, -1, 50, 256)
    with pytest.raises(
        ArgumentError, match="a range whose 0 is at code -123; wanted codes that fit"
    ):
        replace(conv, wei_fq=far, wei=rng.integers(-4, 200, conv.wei.shape) / 4).compose()


DIRTY = [("conv", "u8"), ("conv padded", "u8"), ("grouped", "s8"), ("deconv padded", "u8"),
         ("inner product", "u8"), ("matmul", "s8")]  # fmt: skip
DIRTY_STEP = 0.0173


@pytest.mark.parametrize("first", [-100.0, -41.3, -128.0])
@pytest.mark.parametrize(("kind", "src"), DIRTY)
def test_results_differ_only_next_to_ties(kind: str, src: str, first: float) -> None:
    """Scales that are no powers of two: within what the roundings of float32 add up to."""
    rng, differ, count = np.random.default_rng(6), 0, 0
    for dst, chain in (("u8", Chain(Eltwise("relu"))), ("s8", CHAINS["prelu"]), ("u8", Chain())):
        clean = drawn(kind, "unsigned", src, dst)
        spread = rng.uniform(0.9, 1.1, clean.wei.shape)
        low, high = (-1.1, 3.7) if dst == "s8" else (0.0, 3.1)
        scale = clean.wei_fq.scale_out * 0.0371
        layer = replace(
            clean,
            wei=clean.wei * spread * 0.0371,
            wei_fq=FakeQuantize(-(scale * 2), scale * 2, -(scale * 2), scale * 2, 5),
            bias=rng.normal(size=C),
            src_fq=levels(first, step=DIRTY_STEP),
            chain=chain,
            dst_fq=FakeQuantize(low, high, low, high),
        )
        prepared = prepare_layer(layer.compose(process=runtime.facts()))
        codes = rng.integers(0, 256, layer.problem.src.dims)  # far from their neighbours
        values = ((codes + first) * DIRTY_STEP).astype(np.float32)
        got = prepared(values)
        error = layer.error(values)
        ends = [layer.meaning(values, off=off)[1] for off in (-error, error)]
        assert ((np.minimum(*ends) <= got) & (got <= np.maximum(*ends))).all()
        differ += int((ends[0] != ends[1]).sum())
        count += got.size
    # The bound leaves few results a choice.
    assert differ < count / 50, (differ, count)
