"""PyTorch's FBGEMM and QNNPACK convolutions round as ONNX Runtime does.

Their bias is a float that they quantise themselves, so these layers have none: the sums are drawn,
many enough to speak against every rule but those that differ in a few per million.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from pyonednn_q.predict.dialects import requantize
from pyonednn_q.predict.dialects.method import which_method

torch: Any = pytest.importorskip("torch", reason="torch is not installed")

ENGINES = {"fbgemm": "fbgemm", "qnnpack": "torch_qnnpack"}
OTHERS = ("tflite_2step", "tflite_2step_single", "tflite_2up", "caffe2", "tpu_mlir_8bit")
Array = np.ndarray[Any, Any]


def answer(engine: str, src: Array, wei: Array, scales: tuple[Any, Any, Any]) -> Array:
    """A 1×1 convolution without bias; zero points 7 and 31."""
    src_scale, wei_scale, dst_scale = scales
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = engine
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
        torch.backends.quantized.engine = before


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
