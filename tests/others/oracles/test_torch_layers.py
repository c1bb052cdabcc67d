"""PyTorch's FBGEMM and QNNPACK round as ONNX Runtime does; QNNPACK forms M otherwise.

QNNPACK multiplies by the reciprocal of the destination's scale, f32(f32(src · wei) · f32(1 / dst)),
which moves a few sums per million.

Their bias is a float that they quantize themselves, so these layers have none. The sums of
convolutions are drawn, many enough to speak against every rule but those that differ in a few per
million; those of linear layers are put where each of these parts from ONNX Runtime's.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from pyonednn_q.requantize import requantize
from pyonednn_q.requantize.method import which_method

torch: Any = pytest.importorskip("torch", reason="torch is not installed")
# It says of its quantized tensors, once, that they will be removed.
pytestmark = pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:UserWarning")

ENGINES = {"fbgemm": "fbgemm", "qnnpack": "torch_qnnpack"}
OTHERS = ("tflite_2step", "tflite_2step_single", "tflite_2up", "caffe2", "tpu_mlir_8bit")
# Those that differ from float32 in a few sums per million: they are looked for.
CLOSE = (
    "exact",
    "tflite_1step",
    "tflite_1step_single",
    "snps_inner_product_onnx",
    "tpu_mlir",
    "onednn",
    "onednn_one_scale",
)
STEPS, LARGEST = 63, 63 * 255  # sources that count 63 times, and the most that they hold together
Array = np.ndarray[Any, Any]


def answer(engine: str, src: Array, wei: Array, scales: tuple[Any, Any, Any]) -> Array:
    """A 1×1 convolution without bias; zero points 7 and 31."""
    src_scale, wei_scale, dst_scale = scales
    before = engine_set(engine)
    try:
        x = torch._make_per_tensor_quantized_tensor(torch.from_numpy(src), float(src_scale), 7)
        if np.ndim(wei_scale):
            points = torch.zeros(len(wei_scale), dtype=torch.int64)
            per_channel = torch.from_numpy(wei_scale.astype(np.float64))
            w = torch._make_per_channel_quantized_tensor(
                torch.from_numpy(wei), per_channel, points, 0
            )
        else:
            w = torch._make_per_tensor_quantized_tensor(torch.from_numpy(wei), float(wei_scale), 0)
        packed = torch.ops.quantized.conv2d_prepack(w, None, [1, 1], [0, 0], [1, 1], 1)
        done = torch.ops.quantized.conv2d(x, packed, float(dst_scale), 31)
        return np.asarray(done.int_repr().numpy())
    finally:
        engine_set(before)


def engine_set(engine: str) -> str:
    """Choose an engine; return the one that was chosen before."""
    before: str = torch.backends.quantized.engine
    torch.backends.quantized.engine = engine
    return before


def digits(sums: Array) -> Array:
    """Sources whose products with 63 weights of 63 and one of 1 add up to these sums."""
    large, small = np.divmod(sums, STEPS)
    filled = np.clip(large[:, np.newaxis] - 255 * np.arange(STEPS), 0, 255)
    return np.column_stack([filled, small]).astype(np.uint8)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_linear_layer_rounds_so_where_close_rules_part(engine: str) -> None:
    if engine not in torch.backends.quantized.supported_engines:
        pytest.skip(f"this build of torch has no {engine}")
    rule = which_method(ENGINES[engine], "inner_product", "u8", "per_tensor").dialect
    every = np.arange(STEPS * LARGEST, dtype=np.int32)
    wei = np.array([[STEPS] * STEPS + [1]], np.int8)
    differ, compared, others = 0, 0, dict.fromkeys(CLOSE, 0)
    before = engine_set(engine)
    try:
        for seed in range(5):
            rng = np.random.default_rng(seed)
            src_scale, dst_scale = rng.uniform(0.01, 0.2, 2).astype(np.float32)
            wei_scale = np.float32(rng.uniform(2.0**-13, 2.0**-12) * dst_scale / src_scale)
            scales = {"src_scale": src_scale, "wei_scale": wei_scale, "dst_scale": dst_scale}
            made = {
                name: requantize(every, name, **scales, dst_dtype="u8") for name in (rule, *CLOSE)
            }
            chosen = np.unique(
                np.concatenate([np.flatnonzero(made[rule] != made[name]) for name in CLOSE])
            )
            x = torch._make_per_tensor_quantized_tensor(
                torch.from_numpy(digits(chosen)), float(src_scale), 0
            )
            w = torch._make_per_tensor_quantized_tensor(torch.from_numpy(wei), float(wei_scale), 0)
            packed = torch.ops.quantized.linear_prepack(w, None)
            got = torch.ops.quantized.linear(x, packed, float(dst_scale), 0)
            codes = got.int_repr().numpy()[:, 0]
            compared += codes.size
            differ += int((codes != made[rule][chosen]).sum())
            for name in CLOSE:
                others[name] += int((codes != made[name][chosen]).sum())
    finally:
        engine_set(before)
    assert compared > 20
    assert differ == 0
    assert [name for name, count in others.items() if not count] == []


@pytest.mark.parametrize("granularity", ["per_tensor", "per_channel"])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_convolution_rounds_as_its_rule_says(engine: str, granularity: str) -> None:
    if engine not in torch.backends.quantized.supported_engines:
        pytest.skip(f"this build of torch has no {engine}")
    rule = which_method(ENGINES[engine], "conv", "u8", granularity).dialect
    differ, others = 0, dict.fromkeys(OTHERS, 0)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        src = rng.integers(0, 256, (2, 32, 32, 32)).astype(np.uint8)
        wei = rng.integers(-63, 64, (16, 32, 1, 1)).astype(np.int8)
        src_scale, dst_scale = rng.uniform(0.01, 0.2, 2).astype(np.float32)
        count = 1 if granularity == "per_tensor" else 16
        ratio = 2.0 ** rng.uniform(-9, -4, count) * float(dst_scale) / float(src_scale)
        scale = ratio.astype(np.float32) if count > 1 else ratio.astype(np.float32)[0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got = answer(engine, src, wei, (src_scale, scale, dst_scale))
        shifted = src.astype(np.float64) - 7
        acc = np.einsum("oi,nihw->nohw", wei[:, :, 0, 0].astype(np.float64), shifted)
        constants = {"src_scale": src_scale, "wei_scale": scale, "dst_scale": dst_scale}
        for name in (rule, *OTHERS):
            wanted = requantize(
                acc.astype(np.int32), name, **constants, dst_zero_point=31, dst_dtype="u8"
            )
            wrong = int((wanted != got).sum())
            if name == rule:
                differ += wrong
            else:
                others[name] += wrong
    assert differ == 0
    assert [name for name, count in others.items() if not count] == []
