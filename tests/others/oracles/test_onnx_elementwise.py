"""Functions of one place between quantizers: tables of all codes, and the codes of onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q import onnx as ours
from pyonednn_q.graph.kinds import KINDS
from pyonednn_q.network import Lookup

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
TABLES = [row.name for row in KINDS.values() if row.is_table]
TWO = {"Add", "Div", "Max", "Min", "Mul", "PRelu", "Sub"}
SRC, DST = (np.float32(0.03), np.uint8(128)), (np.float32(0.0213), np.uint8(71))


def model_of(kind: str) -> Any:
    """A node of a kind between quantizers of 256 codes; a second source is 0.75."""
    numpy_helper, helper = onnx.numpy_helper, onnx.helper
    values = {"s": SRC[0], "z": SRC[1], "t": DST[0], "p": DST[1], "b": np.array([0.75], np.float32)}
    sources = ["x", "b"] if kind in TWO else ["x"]
    nodes = [
        helper.make_node("DequantizeLinear", ["codes", "s", "z"], ["x"]),
        helper.make_node(kind, sources, ["y"], name="function"),
        helper.make_node("QuantizeLinear", ["y", "t", "p"], ["result"]),
    ]
    ends = [helper.make_tensor_value_info(n, 2, [1, 256]) for n in ("codes", "result")]
    known = [numpy_helper.from_array(np.asarray(each), n) for n, each in values.items()]
    graph = helper.make_graph(nodes, "one", ends[:1], ends[1:], known)
    imports = [helper.make_opsetid("", max(22, KINDS[kind].since))]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


@pytest.mark.parametrize("kind", TABLES)
def test_a_function_between_quantizers_is_a_table_of_the_codes_of_onnxruntime(kind: str) -> None:
    data = model_of(kind).SerializeToString()
    codes = np.arange(256, dtype=np.uint8).reshape(1, 256)
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    (theirs,) = session.run(None, {"codes": codes})
    model = ours.Model(ours.fuse(ours.load(data)))
    (node,) = model.nodes
    assert (node.name, node.how, node.why) == ("function", "codes computed", "")
    network = model.network()
    assert [type(each.runs) for each in network.nodes] == [Lookup]
    assert np.array_equal(model.run({"codes": codes})["result"], theirs)
    assert np.array_equal(network(codes)["result"], theirs)


@pytest.mark.parametrize("kind", ["Log", "Sqrt"])
def test_what_is_no_number_for_some_codes_stays_a_float_function(kind: str) -> None:
    model = ours.Model(ours.fuse(ours.load(model_of(kind).SerializeToString())))
    (node,) = [each for each in model.nodes if each.name == "function"]
    how = "floats" if kind == "Sqrt" else "reference"
    assert (node.how, node.why) == (how, f"no operation on codes is known for {kind}")
