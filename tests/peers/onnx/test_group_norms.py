"""A GroupNormalization that exporters spell out is one node, and means what it did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from support.peers.small_models import floats, make, model, theirs

X = floats(2, 6, 5, 4) * 3 + 1
GROUPS = 3


@dataclass(frozen=True)
class Spelled:
    """Nodes from x to y, and what they read, as torch's exporters write torch.nn.GroupNorm."""

    first: np.ndarray[Any, Any]  # of each group, in front of what is of each channel
    scale_shape: tuple[int, ...] = (6, 1, 1)
    is_scaled: bool = True
    more: tuple[Any, ...] = ()

    @property
    def proto(self) -> Any:
        nodes = [
            make("Reshape", ["x", "grouped"], ["r"]),
            make("InstanceNormalization", ["r", "ones", "zeros"], ["n"], epsilon=1e-3),
            make("Reshape", ["n", "whole"], ["b"]),
        ]
        if self.is_scaled:
            nodes += [make("Mul", ["b", "g"], ["m"]), make("Add", ["s", "m"], ["y"])]
        else:
            nodes.append(make("Relu", ["b"], ["y"]))
        held = {"grouped": np.array([2, GROUPS, -1]), "whole": np.array(X.shape)}
        held |= {"ones": self.first, "zeros": np.zeros(GROUPS, np.float32)}
        if self.is_scaled:
            held |= {"g": floats(*self.scale_shape), "s": floats(*self.scale_shape)}
        return model([*nodes, *self.more], {"x": X.shape}, held)


ONES = np.ones(GROUPS, np.float32)
ONE_NODE = {
    "scale and bias": Spelled(ONES),
    "in all dims": Spelled(ONES, (1, 6, 1, 1)),
    "an activation": Spelled(ONES, is_scaled=False),
}
AS_THEY_ARE = {
    "scales of groups": Spelled(floats(GROUPS)),
    "a scale of the last dim": Spelled(ONES, (4,)),
}


def norms(graph: pq.graph.Graph) -> list[str]:
    return [node.operator for node in graph.nodes if "Normalization" in node.operator]


@pytest.mark.parametrize("name", ONE_NODE)
def test_it_is_one_node(name: str) -> None:
    proto = ONE_NODE[name].proto
    fused = pq.onnx.fuse(pq.onnx.load(proto.SerializeToString()))
    assert norms(fused) == ["GroupNormalization"]
    assert not any(node.operator == "Reshape" for node in fused.nodes)
    found, want = pq.onnx.Model(fused).run({"x": X})["y"], theirs(proto, {"x": X})
    np.testing.assert_allclose(found, want, rtol=0, atol=64 * 2.0**-24 * np.abs(want).max())


@pytest.mark.parametrize("name", AS_THEY_ARE)
def test_others_stay(name: str) -> None:
    proto = AS_THEY_ARE[name].proto
    fused = pq.onnx.fuse(pq.onnx.load(proto.SerializeToString()))
    found, want = pq.onnx.Model(fused).run({"x": X})["y"], theirs(proto, {"x": X})
    np.testing.assert_allclose(found, want, rtol=0, atol=64 * 2.0**-24 * np.abs(want).max())
    if name == "scales of groups":
        assert norms(fused) == ["InstanceNormalization"]


def test_a_saved_int8_file_has_it_too(tmp_path: Any) -> None:
    """With the bits of before, and for others to run: opset 21 has scales of channels."""
    wei = {"w": floats(6, 6, 1, 1)}
    spelled = ONE_NODE["scale and bias"].proto
    graph = spelled.graph
    graph.node.append(make("Conv", ["y", "w"], ["z"]))
    import onnx

    graph.initializer.append(onnx.numpy_helper.from_array(wei["w"], "w"))
    graph.output[0].CopyFrom(onnx.helper.make_tensor_value_info("z", 1, X.shape))
    calibration = pq.calibrate(pq.onnx.load(spelled.SerializeToString()), [X])
    calibration.save(tmp_path / "int8.onnx")
    again = pq.onnx.load(tmp_path / "int8.onnx")
    assert norms(again) == ["GroupNormalization"]
    want = calibration.model().run({"x": X})["z"]
    np.testing.assert_array_equal(pq.onnx.Model(again).run({"x": X})["z"], want)
