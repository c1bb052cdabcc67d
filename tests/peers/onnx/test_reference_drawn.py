"""Each operator that runs by its definition, with drawn attributes, beside onnxruntime."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import numpy as np
import onnx
from onnx import helper

import pyonednn_q as pq
from pyonednn_q.errors import UnsupportedError
from pyonednn_q.graph.graph import GraphNode, Value
from pyonednn_q.graph.kinds import KINDS
from pyonednn_q.onnx.reference_call import reference_call
from support.onnx_graphs.draw import GraphDraw
from support.onnx_graphs.graphs import add
from support.onnx_graphs.kinds import COMPUTED, Kind
from support.onnx_graphs.layers import LAYERS
from support.onnx_graphs.moves import MOVES
from support.onnx_graphs.verdict import judged
from support.onnx_graphs.vision import VISION
from support.onnx_graphs.windows import WINDOWS

OPSETS = range(7, 27)
ROOMS: tuple[Mapping[str, Kind], ...] = (COMPUTED, MOVES, WINDOWS, VISION, LAYERS)
CASES = [(kind, kinds) for kinds in ROOMS for kind in kinds]
# Which other tests compare: by cases of their own, or within other kinds. onnxruntime 1.31 has no
# kernel of Swish: the standard's cases, and test_newest_operators.
ELSEWHERE = {"DequantizeLinear", "MatMulInteger", "Swish"}


@pytest.mark.parametrize(("kind", "kinds"), CASES, ids=[kind for kind, _ in CASES])
def test_an_operator(kind: str, kinds: Mapping[str, Kind], pytestconfig: pytest.Config) -> None:
    tally: Counter[str] = Counter()
    faults = []
    for opset in OPSETS:
        for seed in range(max(1, pytestconfig.getoption("--random-graphs") // 100)):
            draw = GraphDraw(100 * opset + seed, opset, 0.05)
            if not add(draw, kinds, kind):
                continue
            verdict = judged(draw.model(), draw.feeds, draw.types)
            faults += [f"opset {opset}, seed {seed}: {each}" for each in verdict.faults]
            tally["drawn"] += 1
            tally["refused"] += bool(verdict.refused)
            tally["compared"] += bool(verdict.compared)
    assert faults == []
    assert tally["compared"] > 0.4 * tally["drawn"]
    # Many scales that are drawn make no whole length, where runtimes disagree.
    assert tally["refused"] <= (0.5 if kind == "Resize" else 0.3) * tally["drawn"]


def test_every_operator_of_the_list_is_drawn() -> None:
    drawn = {kind.removesuffix(" of codes") for kind, _ in CASES} | ELSEWHERE
    assert {name for name, row in KINDS.items() if row.compared} - drawn == set()


def test_what_nobody_compared_is_refused() -> None:
    node = helper.make_node("DFT", ["x"], ["y"])
    ends = [
        helper.make_tensor_value_info("x", 1, [1, 3, 1]),
        helper.make_tensor_value_info("y", 1, [1, 3, 2]),
    ]
    graph = helper.make_graph([node], "one", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.checker.check_model(model)
    with pytest.raises(UnsupportedError, match=r"nobody compared .*; DFT"):
        pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(model)))


def test_a_resize_that_leaves_all_dims_is_refused() -> None:
    """1.3 times 3 is 3: onnxruntime copies the source, where ONNX's text has values between."""
    x = np.arange(3, dtype=np.float32)
    scales = np.array([1.3], np.float32)
    how = {"mode": "linear", "coordinate_transformation_mode": "asymmetric"}
    call = reference_call(GraphNode("n", "Resize", ("x", "", "s"), ("y",), how), {"": 18})
    with pytest.raises(UnsupportedError, match="leaves all dims"):
        call({"x": x, "s": scales})
    (y,) = call({"x": x, "s": np.array([2.0], np.float32)})
    np.testing.assert_array_equal(y, [0, 0.5, 1, 1.5, 2, 2])


def test_the_logarithm_of_a_small_softmax_is_finite() -> None:
    """log(softmax) by the definition of onnx.reference is the logarithm of a 0."""
    call = reference_call(GraphNode("n", "LogSoftmax", ("x",), ("y",), {"axis": 0}), {"": 21})
    (y,) = call({"x": np.array([[0], [200]], np.float32)})
    np.testing.assert_array_equal(y, [[-200], [0]])


def test_results_are_those_that_the_standard_has() -> None:
    node = GraphNode("n", "Relu", ("x",), ("y",))
    x = np.ones((2, 3), np.float32)
    right = {"y": Value("float32", (2, 3))}
    (y,) = reference_call(node, {"": 20}, right)({"x": x})
    np.testing.assert_array_equal(y, x)
    for wrong in (Value("float32", (3, 2)), Value("int32", (2, 3))):
        with pytest.raises(UnsupportedError, match=r"it gave float32\[2, 3\] where.*Relu 'n'"):
            reference_call(node, {"": 20}, {"y": wrong})({"x": x})


@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool"])
def test_windows_that_begin_behind_the_source_are_refused_where_opsets_disagree(kind: str) -> None:
    """Opset 21 counts them, as onnx infers; opset 22 and onnxruntime do not."""
    given = {"kernel_shape": [1], "strides": [3], "pads": [0, 1], "ceil_mode": 1}
    x = np.arange(4, dtype=np.float32).reshape(1, 1, 4)
    for opset in (21, 22):
        node = helper.make_node(kind, ["x"], ["y"], **given)
        ends = [helper.make_tensor_value_info(name, 1, dims) for name, dims in
                (("x", [1, 1, 4]), ("y", None))]  # fmt: skip
        graph = helper.make_graph([node], "one", ends[:1], ends[1:])
        opsets = [helper.make_opsetid("", opset)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        ready = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(model)))
        if opset == 22:
            np.testing.assert_array_equal(ready.run({"x": x})["y"], x[..., ::3])
            continue
        with pytest.raises(UnsupportedError, match="begin behind the source, as opset 21"):
            ready.run({"x": x})


def refused(kind: str, inputs: int, outputs: int, opset: int, **given: Any) -> str:
    """Return why a node is refused when it runs."""
    names = [f"x{at}" for at in range(inputs)]
    ends = tuple(f"y{at}" for at in range(outputs))
    call = reference_call(GraphNode("n", kind, tuple(names), ends, given), {"": opset})
    values = dict.fromkeys(names, np.ones((1, 1, 2, 2), np.float32))
    with pytest.raises(UnsupportedError) as error:
        call(values)
    return str(error.value)


def test_what_a_clip_leaves_out_is_the_largest_number() -> None:
    """ONNX: min and max default to numeric_limits::lowest() and numeric_limits::max()."""
    x = np.array([-np.inf, -1, np.inf], np.float32)
    most = np.finfo(np.float32).max
    for kind, opset, inputs in (("Clip", 13, ("x", "", "")), ("Clip", 7, ("x",))):
        (y,) = reference_call(GraphNode("n", kind, inputs, ("y",)), {"": opset})({"x": x})
        np.testing.assert_array_equal(y, [-most, -1, most])
    (y,) = reference_call(GraphNode("n", "Clip", ("x", "", "hi"), ("y",)), {"": 13})(
        {"x": x, "hi": np.float32(-2)}
    )
    np.testing.assert_array_equal(y, [-most, -2, -2])


@pytest.mark.parametrize("is_input", [False, True])
def test_a_dropout_of_training_is_refused(is_input: bool) -> None:
    """Also where a call says so: it drops elements, of which nobody else drops the same."""
    node = helper.make_node("Dropout", ["x", "ratio", "training"], ["y"])
    after = helper.make_node("Neg", ["y"], ["z"])
    ends = [helper.make_tensor_value_info(name, 1, [4]) for name in ("x", "z")]
    training = helper.make_tensor_value_info("training", 9, [])
    held = [helper.make_tensor("ratio", 1, [], [0.5])]
    held += [] if is_input else [helper.make_tensor("training", 9, [], [True])]
    starts = [ends[0], training] if is_input else ends[:1]
    graph = helper.make_graph([node, after], "two", starts, ends[1:], held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    ready = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(model)))
    feeds = {"x": np.ones(4, np.float32)}
    if is_input:
        (z,) = ready.run({**feeds, "training": np.array(False)}).values()
        np.testing.assert_array_equal(z, -feeds["x"])
        feeds["training"] = np.array(True)
    with pytest.raises(UnsupportedError, match="random numbers of training"):
        ready.run(feeds)


IGNORED = [
    ("LSTM", {"clip": 0.5}, "clip"),
    ("LSTM", {"input_forget": 1}, "input_forget"),
    ("LSTM", {"activations": ["Sigmoid", "Relu", "Tanh"]}, "activations sigmoid, relu, tanh"),
    ("GRU", {"clip": 0.5}, "clip"),
    ("GRU", {"activations": ["HardSigmoid", "Tanh"]}, "activations hardsigmoid, tanh"),
    ("RNN", {"clip": 0.5}, "clip"),
    ("RNN", {"activation_alpha": [0.5]}, "activation_alpha"),
]


@pytest.mark.parametrize(("kind", "given", "why"), IGNORED)
def test_what_the_reference_ignores_is_refused(kind: str, given: Any, why: str) -> None:
    """Nothing of this changes what onnx.reference gives, and onnxruntime's changes."""
    assert why in refused(kind, 3, 1, 21, **given)


@pytest.mark.parametrize("kind", ["GRU", "LSTM", "RNN"])
def test_steps_behind_the_end_of_a_sequence_are_refused(kind: str) -> None:
    gates = {"GRU": 3, "LSTM": 4, "RNN": 1}[kind]
    ones = {name: np.ones(dims, np.float32) for name, dims in
            (("x", (3, 2, 1)), ("w", (1, gates, 1)), ("r", (1, gates, 1)))}  # fmt: skip
    node = GraphNode("n", kind, ("x", "w", "r", "", "lengths"), ("y",), {"hidden_size": 1})
    call = reference_call(node, {"": 21})
    (y,) = call({**ones, "lengths": np.array([3, 3], np.int32)})
    assert y.shape == (3, 1, 2, 1)
    with pytest.raises(UnsupportedError, match="sequence_lens"):
        call({**ones, "lengths": np.array([3, 2], np.int32)})


def test_what_runtimes_have_otherwise_is_refused() -> None:
    assert "mode max: runtimes disagree" in refused("RoiAlign", 3, 1, 16, mode="max")
    assert "qk_matmul_output: runtimes disagree" in refused("Attention", 3, 4, 23)
    assert "local windows" in refused("Attention", 3, 1, 25, left_window_size=2)


@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool", "LpPool"])
def test_windows_shorter_than_their_strides_have_no_sides_to_share(kind: str) -> None:
    """Others refuse some, and begin some at another element."""
    given = {"kernel_shape": [1], "strides": [3], "auto_pad": "SAME_UPPER"}
    node = GraphNode("n", kind, ("x",), ("y",), given)
    with pytest.raises(UnsupportedError, match=r"SAME_UPPER of windows .* runtimes disagree"):
        reference_call(node, {"": 20})({"x": np.zeros((1, 1, 3), np.float32)})
