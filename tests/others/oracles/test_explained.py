"""explain_difference on what ONNX Runtime and LiteRT themselves give: all outputs, by one name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.native import runtime
from support.isa import limit
from support.oracles import calls, litert_layers, onnx_layers
from support.oracles.layers import KINDS, Layer, drawn

pytestmark = pytest.mark.executed

Array = np.ndarray[Any, Any]

FRAMEWORKS = {
    "reference": "tflite_reference",
    "optimised": "tflite_optimised",
    "xnnpack": "xnnpack",
}


def explained(layer: Layer, theirs: Array) -> pq.inspection.Explanation:
    """Explain codes against oneDNN's."""
    made, src = calls.operator(layer, "onednn"), layer.src
    if layer.op == "inner_product":
        src, theirs = src[:, :, 0, 0], theirs[:, :, 0, 0]
    return pq.explain_difference(made, src, theirs)


def layers(op: str, kinds: tuple[str, ...] = tuple(KINDS)) -> Any:
    for granularity in ("per_tensor", "per_channel"):
        for kind in kinds:
            rng = np.random.default_rng([3, len(op), len(granularity), *kind.encode()])
            yield drawn(rng, op, "s8", granularity, "onednn", kind)


@pytest.mark.parametrize("op", ["conv", "pointwise", "depthwise", "inner_product"])
def test_off_by_one_against_onnxruntime(op: str) -> None:
    for package in ("onnxruntime", "onnx"):
        pytest.importorskip(package, reason=f"{package} is not installed: pip install .[oracles]")
    differing = 0
    for layer in layers(op):
        found = explained(layer, onnx_layers.run(layer))
        assert "onnxruntime" in {one.name for one in found.explained_by}
        assert "onnxruntime" in found.explained_by[0].frameworks
        differing += found.differing
    assert differing  # the layers tell ONNX Runtime from oneDNN


@pytest.mark.parametrize("resolver", FRAMEWORKS)
@pytest.mark.parametrize("op", ["conv", "depthwise", "deconv", "inner_product"])
def test_off_by_one_against_litert(op: str, resolver: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed: pip install .[oracles]")
    pytest.importorskip(
        "flatbuffers", reason="flatbuffers is not installed: pip install .[oracles]"
    )
    differing = 0
    for layer in layers(op, ("small", "dyadic")):
        found = explained(layer, litert_layers.run(layer, resolver))
        rules = [one for one in found.explained_by if FRAMEWORKS[resolver] in one.frameworks]
        assert len(rules) == 1, f"{found}"
        differing += found.differing
    assert differing


def test_onnxruntime_s_own_saturation_is_told() -> None:
    """On a CPU without VNNI its products of u8 and s8 saturate in pairs."""
    for package in ("onnxruntime", "onnx"):
        pytest.importorskip(package, reason=f"{package} is not installed: pip install .[oracles]")
    if runtime.isa().has_vnni() or limit() is not None:
        pytest.skip("nothing saturates with VNNI, which onnxruntime takes under a limit, too")
    rng = np.random.default_rng(1)
    src = rng.integers(0, 256, (2, 32, 9, 9)).astype(np.uint8)
    wei = rng.integers(-30, 31, (16, 32, 3, 3)).astype(np.int8)
    wei[[3, 7]] = rng.integers(100, 128, (2, 32, 3, 3))
    scale = rng.uniform(1e-3, 2e-3, 16).astype(np.float32)
    scale[[3, 7]] *= np.float32(0.1)
    inputs: dict[str, Array] = {
        "src": src,
        "src_scale": np.asarray(np.float32(0.02)),
        "src_point": np.asarray(np.uint8(3)),
        "wei": wei,
        "wei_scale": scale,
        "wei_point": np.zeros(16, np.int8),
        "dst_scale": np.asarray(np.float32(0.9)),
        "dst_point": np.asarray(np.uint8(100)),
    }
    theirs = onnx_layers.node("QLinearConv", inputs, pads=[1, 1, 1, 1])
    conv = pq.Conv(
        wei,
        src_q=pq.QParams(float(np.float32(0.02)), 3, "u8"),
        wei_q=pq.QParams(scale, 0, "s8", 0),
        dst_q=pq.QParams(float(np.float32(0.9)), 100, "u8"),
        padding=1,
        requantize="onnxruntime",  # on exact sums
    )
    found = pq.explain_difference(conv, src, theirs)
    assert found.differing > 0
    assert found.is_explained
    assert all("saturate in 16 bits" in one.supposing for one in found.explained_by)
    assert "channels 3, 7 of 16, whose pairs of products leave 16 bits" in str(found)
