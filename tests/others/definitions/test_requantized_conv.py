"""Convolutions that end in another runtime's requantization (TPU-MLIR's: test_tpu_mlir_conv.py).

Accepted: every code equals the dialect's on exact sums, for every dialect, s8 and the older u8
scheme with a zero point of weights, per tensor and per channel, groups, depthwise, padding with the
source's zero point. tests/others/oracles compares the same calls with LiteRT and ONNX Runtime.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.native import runtime
from pyonednn_q.primitive.problem import ConvProblem
from pyonednn_q.qparams import QParams
from pyonednn_q.requantize import DIALECTS, requantize
from support import oracle_convolution
from support.oracles import calls
from support.oracles.layers import drawn

pytestmark = pytest.mark.executed

U8, S8 = QParams(0.05, 131, "u8"), QParams(0.02, -3, "s8")
WEI = QParams([0.01, 0.02, 0.005, 0.03, 0.011, 0.007], 0, "s8", axis=0)


@pytest.mark.parametrize("op", ["conv", "pointwise", "depthwise"])
@pytest.mark.parametrize("rule", [name for name in DIALECTS if not name.startswith("onednn")])
def test_every_dialect_ends_a_convolution(rule: Any, op: str) -> None:
    for dtype, granularity in (("s8", "per_tensor"), ("s8", "per_channel"), ("u8", "per_tensor")):
        rng = np.random.default_rng([len(op), len(granularity), len(dtype)])
        layer = drawn(rng, op, dtype, granularity, rule, channels=12)
        assert np.array_equal(calls.run(layer, rule), layer.expected(rule))


@pytest.mark.parametrize("layout", ["dense", "channels_last"])
@pytest.mark.parametrize(("padding", "stride", "dilation", "groups"), [
    (0, 1, 1, 1), (1, 1, 1, 1), (1, 2, 1, 3), (((2, 0), (0, 1)), 1, 1, 2), (2, 1, 2, 1),
])  # fmt: skip
@pytest.mark.parametrize("src_q", [U8, S8], ids=["u8", "s8"])
def test_padding_holds_the_source_s_zero_point(
    src_q: QParams, padding: Any, stride: int, dilation: int, groups: int, layout: str
) -> None:
    from pyonednn_q.ops.conv import Conv

    rng = np.random.default_rng(5)
    codes = np.uint8 if src_q.dtype == "u8" else np.int8
    info = np.iinfo(codes)
    src = rng.integers(info.min, info.max + 1, (2, 12, 7, 6)).astype(codes)
    if layout == "channels_last":
        src = np.ascontiguousarray(src.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    wei = rng.integers(-63, 64, (6, 12 // groups, 3, 3)).astype(np.int8)
    bias = rng.integers(-9000, 9000, 6).astype(np.int32)
    dst_q = QParams(0.4, 9, "s8")
    window: dict[str, Any] = {"padding": padding, "dilation": dilation}
    conv = Conv(
        wei,
        bias,
        src_q=src_q,
        wei_q=WEI,
        dst_q=dst_q,
        requantize="tflite_2step",
        groups=groups,
        stride=stride,
        allow_reference=True,  # groups of few channels have nothing else on AVX2
        **window,
    )
    dims = wei.shape if groups == 1 else (groups, 6 // groups, *wei.shape[1:])
    problem = ConvProblem.of(
        src.shape, dims, src="s32", wei="s32", dst="f32", stride=stride, **window
    )
    shifted = src.astype(np.float64) - src_q.zero_point
    sums = oracle_convolution.convolve(shifted, wei.reshape(dims).astype(np.float64), problem)
    acc = (sums + bias.reshape(1, -1, 1, 1)).astype(np.int32)
    wanted = requantize(
        acc,
        "D2",
        src_scale=src_q.scale,
        wei_scale=WEI.scale,
        dst_scale=dst_q.scale,
        dst_zero_point=9,
    )
    for _ in range(2):  # made, and made before
        assert np.array_equal(conv(src), wanted)
    out = np.empty(wanted.shape, np.int8)
    assert conv(src, out=out) is out
    assert np.array_equal(out, wanted)
    for again in (pickle.loads(pickle.dumps(conv)), copy.copy(conv)):
        assert np.array_equal(again(src), wanted)


@pytest.mark.parametrize(("point", "parts"), [(128, 1), (100, 2), (0, 3), (255, 2)])
def test_weights_beyond_s8_are_summed_in_parts(point: int, parts: int) -> None:
    from pyonednn_q.ops.conv import Conv

    rng = np.random.default_rng(point)
    src = rng.integers(-128, 128, (1, 3, 5, 5)).astype(np.int8)
    wei = rng.integers(0, 256, (6, 3, 1, 1)).astype(np.uint8)
    wei[0, :2, 0, 0] = 0, 255
    src_q, wei_q, dst_q = S8, QParams(0.01, point, "u8"), QParams(0.5, 1, "s8")
    conv = Conv(wei, src_q=src_q, wei_q=wei_q, dst_q=dst_q, requantize="tflite_2step_single")
    if runtime.isa().has_vnni():  # else by seven bits
        assert len(conv.products(src.shape)) == parts
    acc = np.einsum("oi,nihw->nohw", wei[:, :, 0, 0].astype(int) - point, src.astype(int) + 3)
    wanted = requantize(
        acc.astype(np.int32),
        "F2",
        src_scale=src_q.scale,
        wei_scale=wei_q.scale,
        dst_scale=0.5,
        dst_zero_point=1,
    )
    assert np.array_equal(conv(src), wanted)


@pytest.mark.parametrize("rule", [name for name in DIALECTS if name.startswith("onednn")])
def test_onednn_s_own_orders_take_a_real_bias(rule: Any) -> None:
    from pyonednn_q.ops.conv import Conv

    rng = np.random.default_rng(2)
    src = rng.integers(0, 256, (1, 5, 4, 4)).astype(np.uint8)
    wei = rng.integers(-63, 64, (6, 5, 1, 1)).astype(np.int8)
    bias = rng.normal(0, 3, 6).astype(np.float32)
    dst_q = QParams(0.3, 2, "s8")
    conv = Conv(wei, bias, src_q=U8, wei_q=WEI, dst_q=dst_q, requantize=rule)
    acc = np.einsum("oi,nihw->nohw", wei[:, :, 0, 0].astype(int), src.astype(int) - 131)
    wanted = requantize(
        acc.astype(np.int32),
        rule,
        src_scale=U8.scale,
        wei_scale=WEI.scale,
        dst_scale=dst_q.scale,
        dst_zero_point=2,
        bias=bias,
    )
    assert np.array_equal(conv(src), wanted)


def test_the_functional_call_takes_it_too() -> None:
    from pyonednn_q.ops.functional import conv

    src, wei = np.full((1, 4, 2, 2), 5, np.uint8), np.full((6, 4, 1, 1), 7, np.int8)
    q: dict[str, Any] = {"src_q": U8, "wei_q": WEI, "dst_q": S8}
    names: tuple[Any, ...] = ("D2", "tflite_2step")
    by_alias, by_name = (conv(src, wei, **q, requantize=rule) for rule in names)
    assert np.array_equal(by_alias, by_name)


@pytest.mark.parametrize("option", ["self_check", "tune"])
def test_the_products_are_checked_and_tuned_as_asked(option: str) -> None:
    from pyonednn_q.ops.conv import Conv

    src, wei = np.full((1, 8, 4, 4), 5, np.uint8), np.full((6, 8, 1, 1), 7, np.int8)
    q: dict[str, Any] = {"src_q": U8, "wei_q": WEI, "dst_q": S8, "requantize": "tflite_2step"}
    plain, asked = Conv(wei, **q), Conv(wei, **{**q, option: True})
    assert np.array_equal(plain(src), asked(src))
    assert all(getattr(product.settings, option) for product in asked.products(src.shape))


def test_an_operator_says_what_it_holds() -> None:
    from pyonednn_q.ops.conv import Conv

    wei = np.full((6, 8, 1, 1), 7, np.int8)
    conv = Conv(wei, src_q=U8, wei_q=WEI, dst_q=S8, requantize="tflite_2step")
    assert conv.shapes == ()
    conv(np.zeros((2, 8, 4, 4), np.uint8))
    assert (2, 8, 4, 4) in conv.shapes
    assert conv.wei_bytes > 0
    assert conv.plan((2, 8, 4, 4)).dst == "s32"


def test_what_cannot_be_is_refused() -> None:
    from pyonednn_q.expr.steps import Chain, Eltwise
    from pyonednn_q.ops.conv import Conv

    wei = np.ones((6, 4, 1, 1), np.int8)
    q: dict[str, Any] = {"src_q": U8, "wei_q": WEI, "dst_q": S8, "requantize": "tflite_2step"}
    with pytest.raises(ArgumentError, match=r"^requantize: got 'D9'"):
        Conv(wei, **{**q, "requantize": "D9"})
    with pytest.raises(ArgumentError, match=r"^dst_q: got NoneType; wanted QParams"):
        Conv(wei, **{**q, "dst_q": None})
    with pytest.raises(ArgumentError, match=r"^post: "):
        Conv(wei, **q, post=Chain(Eltwise("relu")))
    with pytest.raises(ArgumentError, match=r"^exact_rounding: "):
        Conv(wei, **q, exact_rounding=True)
    with pytest.raises(
        DTypeError, match=r"^bias: got f32; wanted s32, in units of the accumulator"
    ):
        Conv(wei, np.zeros(6, np.float32), **q)
    with pytest.raises(ArgumentError, match=r"^wei: got sums of up to"):
        Conv(np.full((6, 70000, 1, 1), 127, np.int8), **q)
    conv, src = Conv(wei, **q), np.zeros((1, 4, 2, 2), np.uint8)
    with pytest.raises(ArgumentError, match=r"^residual: "):
        conv(src, residual=src)
    with pytest.raises(DTypeError, match=r"^out: got uint8; wanted int8"):
        conv(src, out=np.zeros((1, 6, 2, 2), np.uint8))
    with pytest.raises(ShapeError, match=r"^out: got \(6,\)"):
        conv(src, out=np.zeros(6, np.int8))
    with pytest.raises(DTypeError, match=r"^src: got s8"):
        conv(src.view(np.int8))
    assert "requantized as tflite_2step" in " ".join(conv.notes)
