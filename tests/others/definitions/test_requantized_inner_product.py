"""Inner products that end in another runtime's requantization, and matmuls.

Accepted: every code equals the dialect's on exact sums. tests/others/oracles compares the same
calls with LiteRT's FullyConnected and ONNX Runtime.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import DTypeError
from pyonednn_q.ops.dense import MatMul
from pyonednn_q.qparams import QParams
from pyonednn_q.requantize import DIALECTS, requantize
from support.definitions import requantization
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
def test_every_code_is_the_dialect_s(rule: Any) -> None:
    for dtype, granularity in (("s8", "per_tensor"), ("s8", "per_channel"), ("u8", "per_tensor")):
        for kind in ("wide", "dyadic"):
            rng = np.random.default_rng([len(rule), len(granularity), len(dtype)])
            layer = drawn(rng, "inner_product", dtype, granularity, rule, kind, images=5)
            assert np.array_equal(calls.run(layer, rule), layer.expected(rule))


@pytest.mark.parametrize("rule", ["tflite_1step", "onnxruntime", "tpu_mlir_qdm"])
@pytest.mark.parametrize("lead", [(), (3,)])
def test_a_matmul_s_channels_are_columns(lead: tuple[int, ...], rule: Any) -> None:
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


@pytest.mark.parametrize("rule", DIALECTS)
def test_a_bias_is_in_units_of_its_type(rule: Any) -> None:
    """int32 counts accumulators, float32 is real; scales at which float32 rounds nothing."""
    src, wei = np.array([[10], [3]], np.uint8), np.array([[1, -2, 7]], np.int8)
    given: dict[str, Any] = {"src_q": QParams(0.5, 4, "u8"), "wei_q": QParams(0.25, 0, "s8")}
    given["dst_q"] = QParams(0.5, 9, "u8")
    counts = np.array([40, -17, 1001], np.int32)
    acc = (src.astype(np.int64) - 4) @ wei.astype(np.int64) + counts
    scales = Fraction(1, 2), Fraction(1, 4), Fraction(1, 2)
    wanted = [requantization.RULES[rule](int(a), *scales, 9, (0, 255)) for a in acc.ravel()]
    assert MatMul(wei, counts, **given, requantize=rule)(src).ravel().tolist() == wanted
    if rule.startswith("onednn"):
        real = (counts * 0.125).astype(np.float32)
        assert MatMul(wei, real, **given, requantize=rule)(src).ravel().tolist() == wanted
        # And as the same call without a dialect gives it.
        assert MatMul(wei, counts, **given)(src).ravel().tolist() == wanted
    else:
        with pytest.raises(DTypeError, match=r"^bias: got f32; wanted s32, in units"):
            MatMul(wei, counts.astype(np.float32), **given, requantize=rule)


def test_a_count_of_another_unit_is_no_real_number() -> None:
    given: dict[str, Any] = {"src_q": QParams(0.5, 0, "u8"), "wei_q": QParams(0.25, 0, "s8")}
    rules: list[Any] = [one for one in DIALECTS if one.startswith("onednn")]
    for rule in rules:
        call = MatMul(
            np.ones((1, 1), np.int8),
            np.array([40], np.int32),
            **given,
            dst_q=QParams(1.0, 0, "u8"),
            requantize=rule,
        )
        assert call(np.array([[10]], np.uint8)).item() == 6  # (10 + 40) · 0.125, not 1.25 + 40
