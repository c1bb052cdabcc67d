"""``diff`` of layers that quantize in each call: what zero points add and take is bounded, too."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from onnx import helper, numpy_helper

import pyonednn_q as pq
from pyonednn_q.models.node_bounds import float_bound
from pyonednn_q.models.node_difference import NodeDifference, differences
from pyonednn_q.models.peer_sessions import onnxruntime_values
from pyonednn_q.onnx.model import Model

# Without VNNI such layers may run as floats, on a source that no codes round.
pytestmark = [pytest.mark.executed, pytest.mark.needs_isa("AVX512_CORE_VNNI")]

ROUNDINGS = {"", "float32, in another order"}


class DynamicPair(NamedTuple):
    """A layer with a dynamic source, and onnxruntime's values of its tensors."""

    model: Model
    x: Any
    theirs: dict[str, Any]

    def found(self) -> list[NodeDifference]:
        return list(differences(self.model, {"x": self.x}, self.theirs))


def drawn(seed: int, kind: str) -> DynamicPair:
    """Return a layer whose source lies off 0, and whose weights have a zero point."""
    rng = np.random.default_rng(seed)
    spatial = int(rng.integers(1, 4)) if kind == "ConvInteger" else 0
    groups = int(rng.choice([1, 1, 2])) if spatial else 1
    inner, outer = (int(rng.choice([3, 16, 64, 128, 300])) * groups for _ in range(2))
    off = rng.choice([0.0, 1.0, -3.0, 50.0])
    width = rng.choice([0.1, 1.0, 5.0])
    kernel = [int(rng.integers(1, 4)) for _ in range(spatial)]
    lengths = [int(rng.integers(4, 9)) for _ in range(spatial)]
    dims, wei_dims = ((1, inner, *lengths), (outer, inner // groups, *kernel)) if spatial else (
        (5, inner), (inner, outer))  # fmt: skip
    x = rng.normal(off, width, dims).astype(np.float32)
    dtype = (np.int8, np.uint8)[int(rng.integers(2))]
    info = np.iinfo(dtype)
    held = {
        "w": rng.integers(info.min, info.max, wei_dims, endpoint=True).astype(dtype),
        "w_point": np.asarray(rng.integers(info.min, info.max) if rng.random() < 0.7 else 0, dtype),
        "w_scale": np.float32(rng.uniform(0.001, 0.05)),
    }
    sides = [int(rng.integers(0, each)) for each in kernel] * 2
    given: dict[str, Any] = {"pads": sides, "group": groups} if spatial else {}
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["codes", "scale", "point"]),
        helper.make_node(kind, ["codes", "w", "point", "w_point"], ["acc"], **given),
        helper.make_node("Cast", ["acc"], ["wide"], to=1),
        helper.make_node("Mul", ["scale", "w_scale"], ["scales"]),
        helper.make_node("Mul", ["wide", "scales"], ["y"]),
    ]
    ends = [
        helper.make_tensor_value_info("x", 1, dims),
        helper.make_tensor_value_info("y", 1, None),
    ]
    constants = [numpy_helper.from_array(np.asarray(each), name) for name, each in held.items()]
    graph = helper.make_graph(nodes, "dynamic", ends[:1], ends[1:], constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    loaded = pq.onnx.load(made)
    model = Model(pq.onnx.fuse(loaded))
    wanted = {name for node in model.nodes for name in (*node.reads, *node.outputs)}
    return DynamicPair(model, x, onnxruntime_values(loaded, {"x": x}, wanted))


@pytest.mark.parametrize("seed", [*range(20), 290, 353])
@pytest.mark.parametrize("kind", ["ConvInteger", "MatMulInteger"])
def test_right_layers_are_explained(kind: str, seed: int) -> None:
    """A kernel adds up codes and zero points apart: what it is off by goes with both."""
    pair = drawn(seed, kind)
    (layer,) = pair.model.nodes
    assert layer.how.startswith("INT8")
    (found,) = pair.found()
    assert found.unexplained == 0
    assert found.arithmetic in ROUNDINGS


@pytest.mark.parametrize("kind", ["ConvInteger", "MatMulInteger"])
def test_a_code_more_is_none_of_them(kind: str) -> None:
    """One step of an accumulator, the least that is wrong, is beyond the bound."""
    for seed in range(6):
        pair = drawn(seed, kind)
        (layer,) = pair.model.nodes
        values = {**pair.model.graph.constants, "x": pair.x, **pair.theirs}
        found = float_bound(layer, "y", values, pair.model.graph.opsets)
        assert found is not None
        assert found.apart is not None
        span = max(float(pair.x.max()), 0.0) - min(float(pair.x.min()), 0.0)
        step = span / 255 * float(pair.model.graph.constants["w_scale"])
        if (found.apart < step / 2).all():
            changed = pair.theirs["y"].copy()
            changed.reshape(-1)[7] = np.float32(found.values.reshape(-1)[7] + step)
            (told,) = pair._replace(theirs={**pair.theirs, "y": changed}).found()
            assert (told.arithmetic, told.unexplained) == ("", 1)
            return
    pytest.fail("bounds of whole steps")
