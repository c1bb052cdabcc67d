"""Calls that end in another runtime's requantization: fused clamps, saturate modes, scales."""

from __future__ import annotations

import pickle
from copy import copy
from typing import Any

import numpy as np
import pytest

from pyonednn_q import onnx
from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.steps import Affine, Chain, Clip, Eltwise
from pyonednn_q.native import runtime
from pyonednn_q.ops.conv import Conv
from pyonednn_q.ops.dense import MatMul
from pyonednn_q.qparams import QParams
from pyonednn_q.requantize import DIALECTS
from pyonednn_q.requantize.catalogue import DialectName
from pyonednn_q.requantize.quantize_rules import SATURATE_MODES

pytestmark = pytest.mark.executed
RNG = np.random.default_rng(7)
WEI = RNG.integers(-127, 128, (6, 4, 3, 3)).astype(np.int8)
SRC = RNG.integers(0, 256, (2, 4, 7, 5)).astype(np.uint8)
Q: dict[str, Any] = {"src_q": QParams(0.02, 3, "u8"), "wei_q": QParams(0.01, 0, "s8")}
SCALES = np.array([0.1, 0.2, 0.05, 0.3, 0.15, 0.07])


@pytest.mark.parametrize("name", DIALECTS)
def test_each_channel_may_have_a_scale_of_its_own(name: DialectName) -> None:
    """As six calls, each with the scale of one channel."""
    whole = Conv(
        WEI, **Q, dst_q=QParams(SCALES, 0, "s8", axis=1), requantize=name, self_check=True
    )(SRC)
    for channel, scale in enumerate(SCALES):
        one = Conv(WEI, **Q, dst_q=QParams(float(scale), 0, "s8"), requantize=name)(SRC)
        np.testing.assert_array_equal(whole[:, channel], one[:, channel])
    assert len(np.unique(whole)) > 100


def test_channels_of_a_product_are_its_last_dimension() -> None:
    wei, src = WEI[:, :, 0, 0].T.copy(), SRC[0, :, :, 0].T.copy()
    dst_q = QParams(SCALES, 0, "s8", axis=-1)
    whole = MatMul(wei, **Q, dst_q=dst_q, requantize="tflite_1step")(src)
    one = MatMul(wei, **Q, dst_q=QParams(0.05, 0, "s8"), requantize="tflite_1step")(src)
    np.testing.assert_array_equal(whole[:, 2], one[:, 2])


@pytest.mark.parametrize("name", ["tflite_2step", "onnxruntime", "caffe2", "onednn"])
@pytest.mark.parametrize("dtype", ["u8", "s8"])
@pytest.mark.parametrize("bounds", [(0.0, 6.0), (-1.0, 1.0), (0.0, np.inf), (-np.inf, 2.49)])
def test_a_clip_clamps_codes(name: DialectName, dtype: str, bounds: tuple[float, float]) -> None:
    scale, point = 0.05, 20
    dst_q = QParams(scale, point, dtype)
    plain = Conv(WEI, **Q, dst_q=dst_q, requantize=name)(SRC).astype(int)
    clipped = Conv(
        WEI, **Q, dst_q=dst_q, requantize=name, post=Chain(Clip(*bounds)), self_check=True
    )(SRC)
    by_hand: dict[float, int] = {
        0.0: 20,
        6.0: 140,
        -1.0: 0,
        1.0: 40,
        2.49: 70,
        np.inf: 999,
        -np.inf: -999,
    }
    np.testing.assert_array_equal(clipped, np.clip(plain, by_hand[bounds[0]], by_hand[bounds[1]]))
    assert (clipped != plain).any()


@pytest.mark.parametrize("mode", SATURATE_MODES)
def test_saturate_modes_of_snps_caffe_are_types_and_clips(mode: str) -> None:
    bounds = SATURATE_MODES[mode]
    scale = 2.0**-9
    lo, hi = (
        (-np.inf if bounds["lo"] is None else bounds["lo"] * scale),
        (np.inf if bounds["hi"] is None else bounds["hi"] * scale),
    )
    dst_q = QParams(scale, 0, bounds["dst_dtype"])
    got = Conv(WEI, **Q, dst_q=dst_q, requantize="caffe2", post=Chain(Clip(lo, hi)))(SRC)
    whole = Conv(WEI, **Q, dst_q=QParams(scale, 0, "s32"), requantize="caffe2")(SRC)
    low = whole.min() if bounds["lo"] is None else bounds["lo"]
    high = whole.max() if bounds["hi"] is None else bounds["hi"]
    np.testing.assert_array_equal(got, np.clip(whole, low, high))
    assert (got != whole).any() == (mode != "None")


@pytest.mark.parametrize(
    ("changed", "refused"),
    [
        ({"post": Chain(Affine(2.0))}, r"^post: got 2\*x; wanted none, or one Clip per tensor"),
        ({"post": Chain(Clip(0, 6), Clip(0, 5))}, "^post: .*wanted none, or one Clip"),
        ({"post": Chain(Clip(0, [6.0, 5.0] * 3))}, "^post: .*wanted none, or one Clip"),
        ({"post": Chain(Eltwise("relu"))}, "^post: .*wanted none, or one Clip"),
        ({"post": Chain(Clip(1e6, 2e6))}, "^post: .*wanted a clip that leaves codes of s8"),
        (
            {"post": Chain(Clip(0, 6)), "dst_q": QParams(5e-324, 0, "s8")},
            "^dst_q: got a scale of 5e-324; wanted one that is finite and positive in float32",
        ),
        ({"dst_q": QParams(SCALES, 0, "s8", axis=0)}, "^dst_q: got scales along axis 0"),
        (
            {"dst_q": QParams(SCALES, np.arange(6), "s8", axis=1)},
            "^dst_q: got zero points that differ",
        ),
        (
            {"dst_q": QParams(SCALES, 0, "s8", axis=1), "post": Chain(Clip(0, 6))},
            "^post: .*wanted none, or one Clip per tensor",
        ),
        ({"exact_rounding": True}, "^exact_rounding: got True"),
    ],
)
def test_what_no_requantizer_does_is_refused(changed: dict[str, Any], refused: str) -> None:
    options = {"dst_q": QParams(0.05, 0, "s8"), "requantize": "caffe2", **changed}
    with pytest.raises(ArgumentError, match=refused):
        Conv(WEI, **Q, **options)


def _rounded(acc: Any, multiplier: Any, point: int, dtype: Any) -> Any:
    """Return codes as ONNX Runtime makes them of sums."""
    limits = np.iinfo(dtype)
    whole = np.rint(acc.astype(np.float32) * multiplier).astype(np.float64) + point
    return np.clip(whole, limits.min, limits.max).astype(dtype)


def _sums(src: Any, wei: Any, bias: Any) -> Any:
    """Return the sums of a 1x1 convolution, in 64 bits."""
    return np.einsum("nihw,oi->nohw", src.astype(int), wei[:, :, 0, 0].astype(int)) + (
        bias.reshape(-1, 1, 1)
    )


@pytest.mark.parametrize("beyond", [False, True])
@pytest.mark.parametrize("src_type", [np.uint8, np.int8])
def test_onnxruntimes_codes_are_those_of_one_primitive_and_of_sums(
    src_type: Any, beyond: bool
) -> None:
    rng = np.random.default_rng(3)
    limits = np.iinfo(src_type)
    src = rng.integers(limits.min, limits.max + 1, (2, 40, 5, 3)).astype(src_type)
    wei = rng.integers(-64, 65, (6, 40, 1, 1)).astype(np.int8)
    bias = rng.integers(-5000, 5000, 6).astype(np.int32) + beyond * 2**25
    scales = SCALES.astype(np.float32)
    options: dict[str, Any] = {
        "src_q": QParams(0.5, 3, "s8" if limits.min else "u8"),
        "wei_q": QParams(scales, 0, "s8", axis=0),
        "dst_q": QParams(2.0 ** (5 + 11 * beyond), 7, "u8"),
        "requantize": "onnxruntime",
    }
    conv = Conv(wei, bias, **options, self_check=True)
    multiplier = (np.float32(0.5) * scales / np.float32(options["dst_q"].scale)).reshape(-1, 1, 1)
    wanted = _rounded(_sums(src.astype(int) - 3, wei, bias), multiplier, 7, np.uint8)
    channels_last = np.ascontiguousarray(src.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    for again in (conv, copy(conv), pickle.loads(pickle.dumps(conv))):
        for one in (src, src, channels_last, channels_last, (src.astype(np.float32) - 3) / 2):
            np.testing.assert_array_equal(again(one), wanted)
        out = np.empty_like(wanted)
        assert again(src, out=out) is out
        np.testing.assert_array_equal(out, wanted)
        np.testing.assert_array_equal(again(src[:, :, :2]), wanted[:, :, :2])
    assert len(np.unique(wanted)) > 40 or beyond
    if beyond or runtime.isa().has_vnni():
        assert (not conv.notes) == (not beyond)


@pytest.mark.parametrize("name", ["exact", "onnxruntime"])
def test_sums_beyond_32_bits_saturate_where_that_is_allowed(name: DialectName) -> None:
    src = np.full((1, 8, 2, 2), 255, np.uint8)
    wei = np.full((2, 8, 1, 1), 100, np.int8)
    wei[1] = -100
    bias = np.array([2**31 - 5, -(2**31) + 5], np.int32)
    options: dict[str, Any] = {
        "src_q": QParams(1.0, 3, "u8"),
        "wei_q": QParams(1.0, 0, "s8"),
        "dst_q": QParams(2.0**25, 0, "s8"),
        "requantize": name,
    }
    with pytest.raises(ArgumentError, match=r"^wei: got sums of up to"):
        Conv(wei, bias, **options)
    codes = Conv(wei, bias, **options, saturation="allow")(src)
    assert codes[0, :, 0, 0].tolist() == [64, -64]


def test_a_qlinear_convolution_has_a_bias_beside_sums_that_float32_does_not_hold() -> None:
    rng = np.random.default_rng(4)
    src = rng.integers(0, 256, (1, 700, 3, 3)) * np.arange(1, 10).reshape(3, 3) // 9
    src = src.astype(np.uint8)
    wei = rng.integers(100, 128, (4, 700, 1, 1)).astype(np.int8)
    bias = rng.integers(-(2**20), 2**20, 4).astype(np.int32)
    one = np.float32(0.01)
    dst = onnx.qlinear_conv(src, one, np.uint8(9), wei, one, np.int8(0), one * 1000, None, bias)
    acc = _sums(src.astype(int) - 9, wei, bias)
    assert abs(acc).max() < 2**24 < 255 * wei.astype(int).sum(axis=1).max()
    multiplier = one * one / (one * np.float32(1000))
    np.testing.assert_array_equal(dst, _rounded(acc, multiplier, 0, np.uint8))
    assert len(np.unique(dst)) > 8
