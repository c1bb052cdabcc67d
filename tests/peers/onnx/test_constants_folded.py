"""Nodes of constants are computed once; weights moved behind their DequantizeLinear stay INT8."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import onnx
import onnxruntime
from onnx import helper, numpy_helper

import pyonednn_q as pq

RNG = np.random.default_rng(3)
X = RNG.normal(0, 1, (2, 4, 6, 6)).astype(np.float32)


def model(
    nodes: list[Any], constants: dict[str, Any], src: Any = X, opset: int = 13
) -> onnx.ModelProto:
    """Return a model from x to y."""
    held = [numpy_helper.from_array(np.asarray(each), name) for name, each in constants.items()]
    start = helper.make_tensor_value_info("x", 1, src.shape)
    end = helper.make_tensor_value_info("y", 1, None)
    graph = helper.make_graph(nodes, "folded", [start], [end], held)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def both(proto: onnx.ModelProto, src: Any = X) -> tuple[pq.onnx.Model, Any, Any]:
    """Return our model, and both results."""
    ready = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(proto)))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    data = proto.SerializeToString()
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return ready, ready.run({"x": src})["y"], session.run(None, {"x": src})[0]


make = helper.make_node
SOURCE = [
    make("QuantizeLinear", ["x", "s", "z"], ["q"]),
    make("DequantizeLinear", ["q", "s", "z"], ["src"]),
]
END = [
    make("QuantizeLinear", ["r", "t", "z"], ["p"]),
    make("DequantizeLinear", ["p", "t", "z"], ["y"]),
]
SCALES = {"s": np.float32(0.02), "t": np.float32(0.1), "z": np.uint8(128)}


@pytest.mark.parametrize("along", [True, False])
@pytest.mark.parametrize("move", ["Transpose", "Reshape", "Squeeze", "Unsqueeze", "Cast", "twice"])
def test_moved_weights_stay_in_int8(move: str, along: bool) -> None:
    codes = RNG.integers(-60, 61, (5, 4, 3, 3)).astype(np.int8)
    dims: Any = np.array([5, 4, 3, 3])
    before: Any = codes.reshape(5, 36)
    moves, axis = [make("Reshape", ["w", "d"], ["wei"])], 0
    if move in {"Transpose", "twice"}:
        moves = [make("Transpose", ["w"], ["wei"], perm=[3, 2, 0, 1])]
        before, axis = codes.transpose(2, 3, 1, 0), 3
    if move == "twice":
        moves = [
            make("Reshape", ["w", "d"], ["u"]),
            make("Transpose", ["u"], ["wei"], perm=[3, 2, 0, 1]),
        ]
        dims, before = np.array(before.shape), before.reshape(3, 12, 5)
        axis = 2
    if move == "Squeeze":
        moves, before, dims = [make("Squeeze", ["w", "d"], ["wei"])], codes[None], np.array([0])
        axis = 1
    if move == "Unsqueeze":
        codes = codes[:, :, :1]
        moves, before = [make("Unsqueeze", ["w", "d"], ["wei"])], codes[:, :, 0]
        dims = np.array([2])
    if move == "Cast":
        moves, before = [make("Cast", ["w"], ["wei"], to=1)], codes
    scale = RNG.uniform(0.01, 0.03, 5 if along else ()).astype(np.float32)
    point = np.zeros(scale.shape, np.int8)
    given = {"axis": axis} if along else {}
    wei = make("DequantizeLinear", ["c", "ws", "wz"], ["w"], **given)
    nodes = [*SOURCE, wei, *moves, make("Conv", ["src", "wei"], ["r"]), *END]
    constants = {**SCALES, "c": before, "ws": scale, "wz": point, "d": dims.astype(np.int64)}
    ready, ours, theirs = both(model(nodes, constants))
    (layer,) = [node for node in ready.nodes if isinstance(node.runs, pq.Conv)]
    assert layer.how == "INT8 convolution"
    assert isinstance(layer.runs, pq.Conv)
    np.testing.assert_array_equal(layer.runs.weights.values, codes)
    assert len(ready.nodes) == 3
    # Codes beside a tie may be neighbours.
    assert np.count_nonzero(ours != theirs) <= 2
    assert np.abs(ours - theirs).max() <= 0.1001


def test_an_axis_that_a_reshape_divides_leaves_floats() -> None:
    codes = RNG.integers(-60, 61, (20, 9)).astype(np.int8)
    wei = make("DequantizeLinear", ["c", "ws", "wz"], ["w"], axis=0)
    nodes = [
        *SOURCE,
        wei,
        make("Reshape", ["w", "d"], ["wei"]),
        make("Conv", ["src", "wei"], ["y"]),
    ]
    scale = RNG.uniform(0.01, 0.03, 20).astype(np.float32)
    more = {"c": codes, "ws": scale, "wz": np.zeros(20, np.int8), "d": np.array([5, 4, 3, 3])}
    ready, ours, theirs = both(model(nodes, {**SCALES, **more}))
    (layer,) = [node for node in ready.nodes if str(node) == "Conv"]
    assert "weights of floats" in layer.why
    assert np.abs(ours - theirs).max() <= 36 * 2.0**-23 * np.abs(theirs).max()


def test_nodes_of_constants_are_computed_once() -> None:
    """Shapes that are computed, too: no integers are left in the network."""
    nodes = [
        make("Add", ["a", "b"], ["c"]),
        make("Mul", ["x", "c"], ["m"]),
        make("Shape", ["x"], ["dims"]),
        make("Gather", ["dims", "first"], ["n"]),
        make("Unsqueeze", ["n", "zero"], ["u"]),
        make("Concat", ["u", "rest"], ["to"], axis=0),
        make("Reshape", ["m", "to"], ["y"]),
    ]
    constants = {"a": np.float32(1.5), "b": np.ones((4, 1, 1), np.float32), "first": np.int64(0),
                 "zero": np.array([0]), "rest": np.array([-1])}  # fmt: skip
    ready, ours, theirs = both(model(nodes, constants))
    assert [str(node) for node in ready.nodes] == ["Mul", "Reshape"]
    np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(ready.network()(X)["y"], theirs)


@pytest.mark.parametrize("names", [["n", "none"], ["none", "n"]])
def test_whole_numbers_times_nothing_are_0(names: list[str]) -> None:
    """As in a model that adds 0 times its rate of samples to a state."""
    nodes = [
        make("Shape", ["x"], ["dims"]),
        make("Mul", names, ["m"]),
        make("Cast", ["m"], ["f"], to=1),
        make("Add", ["x", "f"], ["y"]),
    ]
    proto = model(nodes, {"none": np.int64(0)})
    proto.graph.input.append(helper.make_tensor_value_info("n", 7, ()))
    own = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(proto)))
    assert [(str(node), node.is_compiled) for node in own.nodes] == [("Add", True)]
    np.testing.assert_array_equal(own.run({"x": X, "n": np.asarray(-7)})["y"], X)
    of_floats = model([make("Mul", ["x", "none"], ["y"])], {"none": np.float32(0)})
    assert np.isnan(both(of_floats, np.full_like(X, np.inf))[1]).all()


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16])
@pytest.mark.parametrize("axis", [None, 1])
def test_quantizers_of_microsoft(dtype: Any, axis: int | None) -> None:
    size = () if axis is None else (4,)
    scale = RNG.uniform(0.01, 0.03, size).astype(np.float32)
    point = np.full(size, np.iinfo(dtype).min + 100).astype(dtype)
    given = {} if axis is None else {"axis": axis}
    nodes = [
        make("QuantizeLinear", ["x", "s", "z"], ["q"], domain="com.microsoft", **given),
        make("DequantizeLinear", ["q", "s", "z"], ["y"], domain="com.microsoft", **given),
    ]
    _, ours, theirs = both(model(nodes, {"s": scale, "z": point}))
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
@pytest.mark.parametrize("own", [11, 12, 13, 17])
@pytest.mark.parametrize("opset", [11, 12, 13, 20])
def test_softmax_of_codes_is_that_of_its_own_opset(opset: int, own: int, axis: int) -> None:
    """Within a code: onnxruntime adds up exponentials of a table."""
    nodes = [
        make("QuantizeLinear", ["x", "s", "z"], ["q"]),
        make("QLinearSoftmax", ["q", "s", "z", "t", "zero"], ["p"], domain="com.microsoft",
             axis=axis, opset=own),
        make("DequantizeLinear", ["p", "t", "zero"], ["y"]),
    ]  # fmt: skip
    constants = {**SCALES, "t": np.float32(1 / 256), "zero": np.uint8(0)}
    _, ours, theirs = both(model(nodes, constants, opset=opset))
    assert np.abs(ours - theirs).max() <= 1 / 256
    assert np.count_nonzero(ours != theirs) < 0.1 * ours.size


@pytest.mark.parametrize(
    ("bits", "block", "points"),
    [
        *((4, block, points) for block in (16, 32) for points in ("none", "packed", "float")),
        (8, 16, "none"),
        (8, 32, "packed"),
    ],
)
def test_weights_of_few_bits_become_floats(bits: int, block: int, points: str) -> None:
    inner, columns = 40, 5
    blocks = -(-inner // block)
    x = RNG.normal(0, 1, (3, inner)).astype(np.float32)
    codes = RNG.integers(0, 256, (columns, blocks, block * bits // 8)).astype(np.uint8)
    constants = {"B": codes, "s": RNG.uniform(0.01, 0.1, columns * blocks).astype(np.float32)}
    inputs = ["x", "B", "s"]
    if points == "packed":
        constants["z"] = RNG.integers(0, 256, columns * -(-blocks * bits // 8)).astype(np.uint8)
    elif points == "float":
        constants["z"] = RNG.integers(0, 1 << bits, columns * blocks).astype(np.float32)
    inputs += ["z"] if "z" in constants else []
    given = {"K": inner, "N": columns, "bits": bits, "block_size": block}
    nodes = [make("MatMulNBits", inputs, ["y"], domain="com.microsoft", **given)]
    ready, ours, theirs = both(model(nodes, constants, x), x)
    assert "weights of few bits in blocks" in ready.report()
    sizes = np.abs(x).max() * (1 << bits) * 0.1 * inner
    assert np.abs(ours - theirs).max() <= inner * 2.0**-23 * sizes


@pytest.mark.parametrize("groups", [1, 2, 3, 6])
def test_groups_of_channels_are_normalized(groups: int) -> None:
    x = RNG.normal(0, 2, (2, 6, 3, 5)).astype(np.float32)
    gain, shift = RNG.normal(1, 0.3, 6), RNG.normal(0, 1, 6)
    given = {"num_groups": groups, "epsilon": 0.25}
    nodes = [make("GroupNormalization", ["x", "g", "b"], ["y"], **given)]
    constants = {"g": gain.astype(np.float32), "b": shift.astype(np.float32)}
    _, ours, theirs = both(model(nodes, constants, x, 21), x)
    rows = x.astype(np.float64).reshape(2, groups, -1)
    off = rows - rows.mean(2, keepdims=True)
    normal = (off / np.sqrt(np.square(off).mean(2, keepdims=True) + 0.25)).reshape(x.shape)
    expected = normal * gain.reshape(6, 1, 1) + shift.reshape(6, 1, 1)
    for each in (ours, theirs):
        assert np.abs(each - expected).max() <= 64 * 2.0**-24 * np.abs(expected).max()


@pytest.mark.parametrize("opset", [10, 11, 13, 18, 21])
def test_pads_below_zero_cut_off(opset: int) -> None:
    pads = [0, -1, 2, -3, 0, 1, -2, 0]
    if opset < 11:
        proto = model([make("Pad", ["x"], ["y"], pads=pads, value=0.5)], {}, opset=opset)
    else:
        constants = {"p": np.array(pads, np.int64), "v": np.float32(0.5)}
        proto = model([make("Pad", ["x", "p", "v"], ["y"])], constants, opset=opset)
    _, ours, theirs = both(proto)
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("number", [2, 3])
def test_a_type_that_stands_in_an_attribute_alone(number: int) -> None:
    """Both ways store codes of that type."""
    nodes = [
        make("QuantizeLinear", ["x", "s"], ["q"], output_dtype=number),
        make("DequantizeLinear", ["q", "s"], ["y"]),
    ]
    ready, ours, theirs = both(model(nodes, SCALES, opset=21))
    np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(ready.network()(X)["y"], theirs)


@pytest.mark.parametrize("form", ["codes", "reals"])
def test_a_constant_beside_codes_is_concatenated(form: str) -> None:
    if form == "codes":
        nodes = [SOURCE[0], make("Concat", ["q", "c"], ["p"], axis=1),
                 make("DequantizeLinear", ["p", "s", "z"], ["y"])]  # fmt: skip
        constant: Any = RNG.integers(0, 256, (2, 3, 6, 6)).astype(np.uint8)
    else:
        nodes = [*SOURCE, make("Concat", ["src", "c"], ["r"], axis=1), *END]
        constant = RNG.normal(0, 1, (2, 3, 6, 6)).astype(np.float32)
    ready, ours, theirs = both(model(nodes, {**SCALES, "t": SCALES["s"], "c": constant}))
    np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(ready.network()(X)["y"], theirs)
