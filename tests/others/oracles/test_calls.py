"""Our calls with `requantize` against the runtimes whose arithmetic it names, codes to codes."""

from __future__ import annotations

import numpy as np
import pytest

from pyonednn_q.requantize.method import which_method
from support.oracles import calls, litert_layers, onnx_layers
from support.oracles.layers import KINDS, drawn

pytestmark = pytest.mark.executed

FRAMEWORKS = {
    "reference": "tflite_reference",
    "optimised": "tflite_optimised",
    "xnnpack": "xnnpack",
}
KINDS_OF_SCALE = (("s8", "per_tensor"), ("s8", "per_channel"), ("u8", "per_tensor"))


@pytest.mark.parametrize("resolver", FRAMEWORKS)
@pytest.mark.parametrize("op", ["conv", "pointwise", "depthwise", "deconv", "inner_product"])
def test_litert(op: str, resolver: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed: pip install .[oracles]")
    name = op if op in {"deconv", "inner_product"} else "conv"
    for dtype, granularity in KINDS_OF_SCALE:
        found = which_method(
            FRAMEWORKS[resolver], name, dtype, granularity, depthwise=op == "depthwise"
        )
        for kind in KINDS:
            rng = np.random.default_rng([len(op), len(granularity), *kind.encode()])
            # Whole vectors of channels: the rule of a tail is another.
            layer = drawn(rng, op, dtype, granularity, found.dialect, kind, channels=16)
            answer = litert_layers.run(layer, resolver)
            assert int((calls.run(layer, found.dialect) != answer).sum()) == 0


@pytest.mark.parametrize("op", ["conv", "pointwise", "depthwise", "inner_product"])
def test_onnxruntime(op: str) -> None:
    for package in ("onnxruntime", "onnx"):
        pytest.importorskip(package, reason=f"{package} is not installed: pip install .[oracles]")
    for dtype, granularity in KINDS_OF_SCALE:
        for kind in KINDS:
            rng = np.random.default_rng([len(op), len(granularity), *kind.encode()])
            layer = drawn(rng, op, dtype, granularity, "onnxruntime", kind)
            answer = onnx_layers.run(layer)
            assert int((calls.run(layer, "onnxruntime") != answer).sum()) == 0
