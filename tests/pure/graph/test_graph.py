"""Graphs as values: equal by what they hold, and the same after JSON, pickle and copies."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError
from pyonednn_q.graph import Graph, GraphNode, Value
from pyonednn_q.qparams import QParams

WEI = np.arange(6, dtype=np.float32).reshape(2, 3)
ODD = {
    "number": 3,
    "real": 0.1,
    "infinite": float("-inf"),
    "nothing": float("nan"),
    "text": 'a "b" \u00b5',
    "bytes": b"\x00\xff",
    "several": (1, 2, -3),
    "array": np.array([[1, -2]], np.int64),
    "flags": np.array([True, False]),
    "scalar": np.array(7, np.uint8),
    "none": np.zeros((0, 2), np.float16),
}


def graph(**changes: Any) -> Graph:
    nodes = (
        GraphNode("first", "MatMul", ("x", "w"), ("a",), MappingProxyType(dict(ODD))),
        GraphNode("second", "Odd", ("a", ""), ("y", ""), domain="ours", originals=("p", "q")),
    )
    codes = Value("uint8", (4, 2), QParams(np.array([0.5, 0.25]), np.array([1, 2]), "u8", axis=1))
    parts: dict[str, Any] = {
        "nodes": nodes,
        "constants": MappingProxyType({"w": WEI}),
        "inputs": MappingProxyType({"x": Value("float32", (4, 3))}),
        "outputs": MappingProxyType({"y": Value("uint8", None)}),
        "opsets": MappingProxyType({"": 20, "ours": 1}),
        "tensors": MappingProxyType({"a": codes, "y": Value("uint8", (), QParams(0.5, 3, "u8"))}),
    }
    return Graph(**{**parts, **changes})


def test_json_keeps_everything() -> None:
    one = graph()
    again = Graph.from_json(one.to_json())
    assert again == one
    assert again.to_json() == one.to_json()
    known = again.nodes[0].attributes
    assert known["bytes"] == b"\x00\xff"
    assert known["array"].dtype == np.int64
    assert known["none"].shape == (0, 2)
    assert again.tensors["a"].qparams == one.tensors["a"].qparams
    with pytest.raises(ValueError, match="read-only"):
        again.constants["w"][0, 0] = 1.0


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))]
)
def test_copies_are_equal(again: Any) -> None:
    assert again(graph()) == graph()


def test_lengths_may_be_open() -> None:
    image = Value("float32", None, lengths=("batch", 3, ""))
    one = graph(inputs={"x": image}, options={"floats": {"first": "f32"}, "exact_rounding": True})
    assert one.symbols == {"x": ("batch", 3, "")}
    assert Graph.from_json(one.to_json()) == one != graph(inputs={"x": image})
    assert str(image) == "float32[batch, 3, ?]"
    assert "x: float32[batch, 3, ?] -> y: uint8[?]" in repr(one)
    assert str(Value("float32", ())) == "float32[]"
    with pytest.raises(ArgumentError, match="lengths"):
        Value("float32", (1, 3), lengths=("batch", 3))


def test_one_bit_is_another_graph() -> None:
    one, other = graph(), WEI.copy()
    other[0, 0] = np.float32(-0.0)
    assert one != graph(constants=MappingProxyType({"w": other}))
    assert one != graph(constants=MappingProxyType({"w": WEI.astype(np.float64)}))
    assert one != graph(constants=MappingProxyType({"w": WEI.reshape(3, 2)}))
    assert one != graph(nodes=one.nodes[:1])
    assert one != graph(opsets=MappingProxyType({"": 21, "ours": 1}))
    assert one != graph(inputs=MappingProxyType({"z": Value("float32", (4, 3))}))
    first = one.nodes[0]
    changed = MappingProxyType({**ODD, "number": 4})
    assert first != replace(first, attributes=changed)
    assert one != "a graph"


def test_a_table_and_a_drawing_show_it() -> None:
    text = str(graph())
    assert text.splitlines()[0].startswith("Graph 2 nodes, 1 constants, opset 20")
    assert "ours.Odd" in text
    assert "a: uint8[4, 2]" in text
    html = graph()._repr_html_()
    assert html.count("<rect") == 4  # an input, two nodes, an output
    assert "MatMul" in html
    assert "<script" not in replace_names("<script>")._repr_html_()


def test_a_drawing_has_the_times_that_are_known() -> None:
    first, _ = graph().nodes
    assert graph().drawing({first.name: 12.34}).count(">12.3 us</text>") == 1
    assert " us</text>" not in graph()._repr_html_()
    wrong: Any = {first.name: "12"}
    with pytest.raises(ArgumentError, match=rf"^us\['{first.name}'\]: got str; wanted"):
        graph().drawing(wrong)


def replace_names(name: str) -> Graph:
    return graph(nodes=(replace(graph().nodes[0], name=name),))


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{}", "null", "[" * 100_000,
        json.dumps({"pyonednn_q graph": 2}),
        json.dumps({"pyonednn_q graph": 1, "nodes": 3}),
        graph().to_json().replace('"float32"', '"float31"'),
        graph().to_json().replace('"u8"', '"u9"'),
    ],
)  # fmt: skip
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match=r"text|dtype"):
        Graph.from_json(text)


def test_nobody_writes_what_a_graph_holds() -> None:
    wei = WEI.copy()
    node = GraphNode("y", "MatMul", ("x", "w"), ("y",), {"array": wei})
    known = Graph((node,), {"w": wei}, {}, {}, {"": 13}, {})
    wei[0] = 9
    np.testing.assert_array_equal(known.constants["w"], WEI)
    np.testing.assert_array_equal(known.nodes[0].attributes["array"], WEI)
    for array in (known.constants["w"], known.nodes[0].attributes["array"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5


def test_nodes_stand_in_any_order_but_in_no_circle() -> None:
    first, second = GraphNode("a", "Relu", ("x",), ("a",)), GraphNode("b", "Neg", ("a",), ("b",))
    for nodes in ((first, second), (second, first)):
        assert Graph(nodes, {}, {}, {}, {"": 13}, {}).nodes == nodes
    with pytest.raises(ArgumentError, match=r"nodes: got a circle: .*a.* -> .*b.*; wanted nodes"):
        Graph((replace(first, inputs=("b",)), second), {}, {}, {}, {"": 13}, {})
    with pytest.raises(ArgumentError, match="circle"):
        Graph((replace(first, inputs=("a",)),), {}, {}, {}, {"": 13}, {})
