"""Row SN5: inner products that end in another runtime's requantisation, and matmuls.

Accepted: every code equals the dialect's on exact sums. tests/oracles compares the same calls with
LiteRT's FullyConnected and ONNX Runtime.
"""

from __future__ import annotations

import numpy as np
import pytest

from pyonednn_q.ops.dense import MatMul
from pyonednn_q.predict.dialects import requantize
from pyonednn_q.qparams import QParams
from support.oracles import calls
from support.oracles.layers import drawn

pytestmark = pytest.mark.executed

RULES = (
    "exact_half_away",
    "tflite_1step",
    "tflite_2up",
    "tflite_2up_single",
    "snps_inner_product",
    "snps_inner_product_onnx",
    "onnxruntime",
)


@pytest.mark.parametrize("rule", RULES)
def test_every_code_is_the_dialect_s(rule: str) -> None:
    for dtype, granularity in (("s8", "per_tensor"), ("s8", "per_channel"), ("u8", "per_tensor")):
        for kind in ("wide", "dyadic"):
            rng = np.random.default_rng([len(rule), len(granularity), len(dtype)])
            layer = drawn(rng, "inner_product", dtype, granularity, rule, kind, images=5)
            assert np.array_equal(calls.run(layer, rule), layer.expected(rule))


@pytest.mark.parametrize("rule", ["tflite_1step", "onnxruntime", "tpu_mlir_qdm"])
@pytest.mark.parametrize("lead", [(), (3,)])
def test_a_matmul_s_channels_are_columns(lead: tuple[int, ...], rule: str) -> None:
    rng = np.random.default_rng(1)
    src = rng.integers(0, 256, (*lead, 5, 16)).astype(np.uint8)
    wei = rng.integers(-63, 64, (*lead, 16, 4)).astype(np.int8)
    bias = rng.integers(-500, 500, 4).astype(np.int32)
    src_q, dst_q = QParams(0.05, 100, "u8"), QParams(0.2, 7, "u8")
    wei_q = QParams([0.02, 0.01, 0.03, 0.005], 0, "s8", axis=-1)
    call = MatMul(wei, bias, src_q=src_q, wei_q=wei_q, dst_q=dst_q, requantize=rule)
    acc = (src.astype(int) - 100) @ wei.astype(int) + bias
    wanted = requantize(
        acc.astype(np.int32),
        rule,
        src_scale=0.05,
        wei_scale=wei_q.scale,
        dst_scale=0.2,
        dst_zero_point=7,
        dst_dtype="u8",
        axis=-1,
    )
    assert np.array_equal(call(src), wanted)
    assert call(src).dtype == np.uint8
