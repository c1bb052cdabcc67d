"""Deconvolutions that end in another runtime's requantization.

Accepted: every code equals the dialect's on exact sums, Caffe2's two-float rule and TFLite's among
them; the source's zero point meets each output as often as weights reach it. tests/others/oracles
compares the same calls with LiteRT's TransposeConv.
"""

from __future__ import annotations

import numpy as np
import pytest

from pyonednn_q.requantize.method import which_method
from support.oracles import calls
from support.oracles.layers import drawn

pytestmark = pytest.mark.executed


@pytest.mark.parametrize("kind", ["wide", "large", "dyadic"])
@pytest.mark.parametrize(
    "rule", ["caffe2_deconv", "tflite_2step", "tflite_2up", "onnxruntime", "exact"]
)
def test_every_code_is_the_dialect_s(rule: str, kind: str) -> None:
    for dtype, granularity in (("s8", "per_tensor"), ("s8", "per_channel"), ("u8", "per_tensor")):
        rng = np.random.default_rng([len(rule), len(granularity), len(dtype)])
        layer = drawn(rng, "deconv", dtype, granularity, rule, kind, channels=10)
        assert layer.src_zero_point != 0
        assert np.array_equal(calls.run(layer, rule), layer.expected(rule))


def test_the_note_s_deconvolution_is_caffe2_s() -> None:
    assert which_method("snps_caffe2", "deconv").dialect == "caffe2_deconv"
