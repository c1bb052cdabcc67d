"""ONNX's own runner drives our backend: what fails is what ONNX's reference fails, by itself."""

from __future__ import annotations

import unittest
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError, UnsupportedError

onnx: Any = pytest.importorskip("onnx", reason="onnx is not installed")
helper: Any = onnx.helper
BackendTest: Any = pytest.importorskip("onnx.backend.test").BackendTest
ReferenceEvaluator: Any = pytest.importorskip("onnx.reference").ReferenceEvaluator
backend: Any = pytest.importorskip("pyonednn_q.onnx.backend")
OPERATORS, OnnxBackend, OnnxModel = backend.OPERATORS, backend.OnnxBackend, backend.OnnxModel

# What onnx.reference does not do as its own cases have it.
OF_THE_REFERENCE = {
    "random numbers": "bernoulli",
    "pictures without Pillow": "image_decoder",
    "no Scatter": "scatter_with",
    "loops of expanded Range": "range_",
    "optional and sequence outputs": ("if_opt", "loop16_seq_none"),
    "names of Scan's outputs": "scan_sum",
}


class PlainReference:
    """onnx.reference alone."""

    @classmethod
    def is_compatible(cls, *_: Any, **__: Any) -> bool:
        return True

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **_: Any) -> Any:
        del device
        names = [value.name for value in model.graph.input]

        class Prepared:
            def run(self, inputs: Any, **_: Any) -> Any:
                feeds = dict(zip(names, inputs, strict=False))
                return tuple(ReferenceEvaluator(model).run(None, feeds))

        return Prepared()

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device == "CPU"


def failures(tested: Any, only: set[str] | None = None) -> tuple[set[str], int]:
    """Run ONNX's node cases on the CPU; return the names of those that fail, and how many ran."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the cases overflow on purpose
        cases = BackendTest(tested, __name__).test_cases["OnnxBackendNodeModelTest"]
        loaded: Any = unittest.defaultTestLoader.loadTestsFromTestCase(cases)
        named = {each.id().rpartition(".")[2]: each for each in loaded}
        chosen = {n: t for n, t in named.items() if n.endswith("_cpu") and (not only or n in only)}
        result = unittest.TestResult()
        unittest.TestSuite(chosen.values()).run(result)
    bad = result.failures + result.errors
    return {test.id().rpartition(".")[2] for test, _ in bad}, result.testsRun


def test_every_node_case(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: Counter[tuple[str, str]] = Counter()
    run = OnnxModel.run

    def counted(self: Any, inputs: Any, **options: Any) -> Any:
        outputs = run(self, inputs, **options)
        for node in self.nodes:
            where, _, why = node.how.partition(": ")
            ran[node.operator, why if where == "onnx.reference" else "ours"] += 1
        return outputs

    monkeypatch.setattr(OnnxModel, "run", counted)
    failed, count = failures(OnnxBackend)
    others = sum(n for (_, how), n in ran.items() if how == "no operator of ours")
    ours = Counter({name: n for (name, how), n in ran.items() if how == "ours"})
    print(f"{count} cases, {len(failed)} fail; nodes: {dict(ours)} ours, {others} others")  # noqa: T201
    assert count > 1800
    # Not ours but onnx.reference's: it fails on the same alone. Random numbers may agree by chance.
    drawn = {name for name in failed if "bernoulli" in name}
    assert failed - drawn == failures(PlainReference, failed - drawn)[0]
    known = [
        part
        for parts in OF_THE_REFERENCE.values()
        for part in ([parts] if isinstance(parts, str) else parts)
    ]
    assert {name for name in failed if not any(part in name for part in known)} == set()
    assert set(ours) == set(OPERATORS)
    refused = {(name, how) for name, how in ran if how not in {"ours", "no operator of ours"}}
    assert all(name in OPERATORS for name, _ in refused)
    assert all("float64" in how or "broadcast" in how for _, how in refused), refused


def quantized_model() -> Any:
    """Return a model with nodes that are ours, that are not, and one that no kernel takes."""
    return onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 21]>
        two_layers (float[1, 3, 8, 8] x, int8[4, 3, 3, 3] w, double[4, 2] v)
        => (double[1, 8, 8, 2] y)
        <float scale = {0.05}, uint8 point = {128}, float w_scale = {0.01}, int8 w_point = {0}>
        {
            codes = QuantizeLinear (x, scale, point)
            conv = QLinearConv <pads = [1, 1, 1, 1]> (
                codes, scale, point, w, w_scale, w_point, scale, point)
            real = DequantizeLinear (conv, scale, point)
            positive = Relu (real)
            last = Transpose <perm = [0, 2, 3, 1]> (positive)
            wide = Cast <to = 11> (last)
            y = MatMul (wide, v)
        }
    """)


def test_a_model_says_how_each_node_ran() -> None:
    rng = np.random.default_rng(0)
    feeds: dict[str, Any] = {
        "x": rng.normal(0, 1, (1, 3, 8, 8)).astype(np.float32),
        "w": rng.integers(-128, 128, (4, 3, 3, 3)).astype(np.int8),
        "v": rng.normal(0, 1, (4, 2)),
    }
    model = quantized_model()
    ready = OnnxBackend.prepare(model)
    assert {node.how for node in ready.nodes if node.operator in OPERATORS} == {"not run yet"}
    (y,) = ready.run(list(feeds.values()))
    np.testing.assert_array_equal(y, ready.run(feeds)[0])
    (theirs,) = ReferenceEvaluator(model).run(None, feeds)
    assert (abs(y - theirs) <= 0.05 * abs(feeds["v"]).sum(0)).all()  # codes may be a neighbour
    how = {node.operator: node.how for node in ready.nodes}
    assert how["QLinearConv"].split(";")[0].startswith(("brg", "jit"))
    assert how["Relu"] == how["Transpose"] == "onnx.reference: no operator of ours"
    assert how["MatMul"].startswith("onnx.reference: A: got float64")
    assert [node.name for node in ready.nodes][-1] == "y"


def test_refused_by_name() -> None:
    model = quantized_model()
    with pytest.raises(ArgumentError, match="device"):
        OnnxBackend.prepare(model, "CUDA:0")
    with pytest.raises(ArgumentError, match="inputs"):
        OnnxBackend.prepare(model).run([1, 2, 3, 4])
    node = helper.make_node("Nonsense", ["x"], ["y"], domain="made.up")
    values = [helper.make_tensor_value_info(name, 1, [1]) for name in "xy"]
    graph = helper.make_graph([node], "made_up", values[:1], values[1:])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("made.up", 1)]
    strange = helper.make_model(graph, opset_imports=opsets)
    strange.ir_version = 10
    with pytest.raises(UnsupportedError, match="Nonsense"):
        OnnxBackend.prepare(strange)
    assert not OnnxBackend.is_compatible(strange)
    assert OnnxBackend.is_compatible(model)
    model.graph.node[0].op_type = "NoSuch"
    with pytest.raises(ArgumentError, match="model"):
        OnnxBackend.prepare(model)


def test_as_a_module_and_for_one_node() -> None:
    """The functions that other backends have: prepare, run_model, run_node, supports_device."""
    x = np.arange(4, dtype=np.float32).reshape(2, 2)
    node = helper.make_node("MatMul", ["a", "b"], ["y"])
    (y,) = backend.run_node(node, [x, x])
    np.testing.assert_array_equal(y, x @ x)
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21]> g (float[2, 2] a) => (float[2, 2] y)'
        "{ y = Gemm (a, a) }"
    )
    np.testing.assert_array_equal(backend.run_model(model, [x])[0], x @ x)
    assert backend.supports_device("CPU")
    assert not backend.supports_device("CUDA")
