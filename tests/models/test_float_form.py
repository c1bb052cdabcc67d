"""The FP32 form of a quantized model: against the float model that it was quantized from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import onnx
import onnxruntime
from onnx import numpy_helper

import pyonednn_q as pq
from pyonednn_q.errors import UnsupportedError
from pyonednn_q.models.node_bounds import float_bound
from pyonednn_q.models.node_difference import differences
from pyonednn_q.models.peer_sessions import onnxruntime_values
from pyonednn_q.network import Network
from pyonednn_q.onnx.float_form import float_form
from pyonednn_q.onnx.float_model import float_model
from pyonednn_q.ops.operator import Operator
from support.oracles.networks import SOURCE

Made = Callable[[str, str], Path]
NETWORKS = ("resnet", "unet", "perceptron", "gated", "detector", "transformer")
FORMS = [(name, form) for name in NETWORKS for form in ("QDQ", "QOperator")]
# Of floats, without a bound.
FUNCTIONS = {"Div", "Gelu", "HardSigmoid", "HardSwish", "LayerNormalization", "Sigmoid"}
FUNCTIONS |= {"Softmax", "Tanh"}
FORMS += [(name, "dynamic") for name in ("resnet", "perceptron", "transformer", "mobilenet")]


def source(seed: int = 0) -> dict[str, Any]:
    return {"x": np.random.default_rng(seed).normal(0, 1, SOURCE).astype(np.float32)}


AXES = {"Conv": 0, "ConvTranspose": 1, "Gemm": 0, "MatMul": 1}  # of output channels; Gemm: transB


BIAS = {"QLinearConv": 8, "QGemm": 6}


def scale_of(name: str, stored: dict[str, Any], nodes: list[Any]) -> Any:
    """Return the scale of a constant; of a bias without its own that of its source and weights."""
    for own in (f"{name}_scale", f"{name}_quantized_scale"):
        if own in stored:
            return stored[own].astype(np.float64)
    for node in nodes:
        at = BIAS.get(node.op_type)
        if at is not None and list(node.input)[at : at + 1] == [f"{name}_quantized"]:
            return stored[node.input[1]].astype(np.float64) * stored[node.input[4]]
    raise LookupError(name)


def with_rounded_constants(path: Path) -> onnx.ModelProto:
    """Return the float model that was quantized, its constants as the quantized model has them."""
    graph = onnx.load(path).graph
    stored = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    nodes = list(graph.node)
    model = onnx.load(path.with_name("float.onnx"))
    users = {name: node.op_type for node in model.graph.node for name in node.input[1:2]}
    changed = set()
    for each in model.graph.initializer:
        codes = stored.get(f"{each.name}_quantized")
        if codes is None:
            continue
        if codes.shape != tuple(each.dims):
            codes = codes.T  # of a Gemm that became a MatMul
        scale = scale_of(each.name, stored, nodes)
        point = stored.get(f"{each.name}_zero_point", np.zeros(1)).astype(np.float64)
        dims = [1] * codes.ndim
        if scale.size > 1:
            dims[AXES[users[each.name]] if codes.ndim > 1 else 0] = -1
        point = point.reshape(dims) if point.size == scale.size else point.reshape(-1)[0]
        # As ONNX's DequantizeLinear computes it: two roundings of a bias.
        steps = (codes - point).astype(np.float32)
        real = steps * np.float32(scale.reshape(dims) if dims else scale.reshape(()))
        each.CopyFrom(numpy_helper.from_array(real, each.name))
        changed.add(each.name)
    wanted = {name for name, kind in users.items() if kind in AXES}
    # Those that the quantizer left in floats are as they were.
    assert wanted & {each.name for each in model.graph.initializer} <= changed | set(stored)
    return model


@pytest.mark.parametrize(
    ("network", "form"), [each for each in FORMS if each[1] != "dynamic" or each[0] == "resnet"]
)
def test_it_is_the_float_model_but_for_rounded_constants(
    network: str, form: str, made: Made
) -> None:
    """Every ReLU that the quantizer took away is there again, and nothing else between layers."""
    path = made(network, form)
    floats = float_form(pq.onnx.load(path))
    kinds = {node.operator for node in floats.nodes}
    assert not {kind for kind in kinds if "Quantize" in kind or "Integer" in kind}
    model = with_rounded_constants(path)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    for seed in range(3):
        inputs = source(seed)
        (real,) = session.run(None, inputs)
        ours = onnxruntime_values(floats, inputs, ())["y"]
        np.testing.assert_array_equal(ours, real)


@pytest.mark.parametrize(("network", "form"), FORMS)
def test_our_primitives_give_what_onnxruntime_gives(network: str, form: str, made: Made) -> None:
    """Of the same floats, node by node: sums in another order, and functions of their own."""
    floats = float_form(pq.onnx.load(made(network, form)))
    inputs = source(3)
    model = float_model(floats)
    whats = [node.runs for node in model.nodes]
    layers = [what for what in whats if isinstance(what, Operator)]
    multiplied = [
        node
        for node in floats.nodes
        if node.operator in {"Conv", "ConvTranspose", "Gemm", "MatMul"}
        and node.inputs[1] in floats.constants
    ]
    assert len(layers) == len(multiplied)
    assert not any(layer.settings.is_int8 for layer in layers)
    nodes = model.nodes
    wanted = {name for node in nodes for name in (*node.reads, *node.outputs)}
    theirs = onnxruntime_values(floats, inputs, wanted)
    compared = list(differences(model, inputs, theirs))
    assert len(compared) >= len(nodes)
    assert [each for each in compared if each.unexplained] == []
    # As one program, in other layouts: each node on what the program computed before it.
    whole = model.network()
    names = [node.dst for node in whole.nodes]
    values = {**model.graph.constants, **inputs}
    values |= Network(whole.inputs, whole.nodes, names)(*inputs.values())
    functions = set()
    for node in nodes:
        bound = float_bound(node, node.output, values, model.graph.opsets)
        assert bound is not None, node
        if bound.apart is None:
            functions.add(bound.function)
        else:
            assert (np.abs(values[node.output] - bound.values) <= bound.apart).all(), node
    assert functions <= FUNCTIONS


@pytest.mark.parametrize(
    ("operator", "point", "left"),
    [
        ("Add (x, x)", 0, ["Add", "Relu"]),
        ("Add (x, x)", 3, ["Add"]),
        ("Sigmoid (x)", 0, ["Sigmoid"]),
    ],
)
def test_a_quantizer_leaves_a_relu_only_where_it_may_have_been_one(
    operator: str, point: int, left: list[str]
) -> None:
    model = onnx.parser.parse_model(f"""
        <ir_version: 9, opset_import: ["" : 19]>
        g (float[2, 3] x) => (float[2, 3] y)
        <float s = {{0.1}}, uint8 z = {{{point}}}>
        {{
            a = {operator}
            q = QuantizeLinear (a, s, z)
            y = DequantizeLinear (q, s, z)
        }}
    """)
    form = float_form(pq.onnx.load(model))
    assert [node.operator for node in form.nodes] == left
    assert list(form.outputs) == ["y"]
    assert form.nodes[-1].outputs == ("y",)


def test_what_has_no_float_form_is_refused_by_name() -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 9, opset_import: ["" : 19, "com.microsoft" : 1]>
        g (uint8[1, 4, 4, 2] x) => (uint8[1, 3, 3, 2] y)
        <float s = {0.1}, uint8 z = {0}>
        {
            y = com.microsoft.QLinearAveragePool
                <kernel_shape = [2, 2], channels_last = 1> (x, s, z, s, z)
        }
    """)
    with pytest.raises(UnsupportedError, match="QLinearAveragePool"):
        float_form(pq.onnx.load(model))
