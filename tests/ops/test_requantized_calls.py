"""Calls that end in another runtime's requantization: fused clamps, saturate modes, scales."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.steps import Affine, Chain, Clip, Eltwise
from pyonednn_q.ops.conv import Conv
from pyonednn_q.ops.dense import MatMul
from pyonednn_q.qparams import QParams
from pyonednn_q.requantize import DIALECTS
from pyonednn_q.requantize.catalogue import DialectName
from pyonednn_q.requantize.quantizers import SATURATE_MODES

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
