"""Loop and Scan: right by their definition, beside onnxruntime, in models that become INT8."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.errors import ArgumentError, UnsupportedError

onnx: Any = pytest.importorskip("onnx", reason="onnx is not installed")
onnxruntime: Any = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(0)
WEI = RNG.normal(0, 0.3, (4, 3, 3, 3)).astype(np.float32)

LOOP = """<ir_version: 8, opset_import: ["" : {opset}]>
net (float[2,3,6,6] x, int64 most) => (float[N] sums, float[M,2,4] seen)
<float[4,3,3,3] wei = {{}}, bool yes = {{1}}, float limit = {{2}},
 float[2,4] zero = {{0,0,0,0,0,0,0,0}}>
{{
  conv = Conv(x, wei)
  relu = Relu(conv)
  mean = ReduceMean<axes = [2, 3], keepdims = 0>(relu)
  last, seen = Loop<body = step (int64 at, bool go, float[2,4] sum)
    => (bool more, float[2,4] next, float[2,4] scaled)
    <float half = {{0.5}}>
    {{
      scaled = Mul(mean, half)
      next = Add(sum, scaled)
      most_of = ReduceMax<keepdims = 0>(next)
      more = Less(most_of, limit)
    }}>(most, yes, zero)
  shape = Constant<value = int64[1] {{-1}}>()
  sums = Reshape(last, shape)
}}"""

SCAN = """<ir_version: 8, opset_import: ["" : 13]>
net (float[2,3,6,6] x) => (float[2,4] last, float[16,2,4] sums)
<float[4,3,3,3] wei = {}, float[2,4] zero = {0,0,0,0,0,0,0,0}>
{
  conv = Conv(x, wei)
  flat = Reshape(conv, dims)
  rows = Transpose<perm = [2, 0, 1]>(flat)
  last, sums = Scan<num_scan_inputs = 1, body = step (float[2,4] sum, float[2,4] row)
    => (float[2,4] next, float[2,4] out)
    {
      next = Add(sum, row)
      out = Identity(next)
    }>(zero, rows)
}"""


def model(text: str, **constants: Array) -> Any:
    """Return a model whose constants are as given, and those that have no values."""
    proto = onnx.parser.parse_model(text)
    kept = [each for each in proto.graph.initializer if each.name not in constants]
    del proto.graph.initializer[:]
    proto.graph.initializer.extend(kept)
    proto.graph.initializer.extend(
        onnx.numpy_helper.from_array(each, name) for name, each in constants.items()
    )
    return proto


def theirs(proto: Any, inputs: dict[str, Array]) -> dict[str, Array]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    data = proto if isinstance(proto, str) else proto.SerializeToString()
    session = onnxruntime.InferenceSession(data, options, ["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(None, inputs), strict=True))


def image(seed: int = 1) -> Array:
    return np.random.default_rng(seed).normal(0, 1, (2, 3, 6, 6)).astype(np.float32)


def loop(most: int, opset: int = 13) -> tuple[Any, dict[str, Array]]:
    return model(LOOP.format(opset=opset), wei=WEI), {"most": np.asarray(most, np.int64)}


CASES: dict[str, tuple[Any, dict[str, Array]]] = {
    "Loop": loop(5),
    "Loop that ends itself": loop(90),
    "Loop of opset 11": loop(3, 11),
    "Loop of no step": loop(0),
    "Scan": (model(SCAN, wei=WEI, dims=np.asarray([2, 4, 16], np.int64)), {}),
    "Scan along the last": (
        model(
            SCAN.replace("num_scan_inputs = 1", "num_scan_inputs = 1, scan_input_axes = [2], "
                         "scan_input_directions = [1], scan_output_directions = [1]")
            .replace("(zero, rows)", "(zero, flat)"),
            wei=WEI, dims=np.asarray([2, 4, 16], np.int64),
        ),
        {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_model_of_floats_computes_what_onnxruntime_does(name: str) -> None:
    proto, more = CASES[name]
    graph = pq.onnx.load(proto)
    assert pq.graph.Graph.from_json(graph.to_json()) == graph
    inputs = {"x": image(), **more}
    own = pq.onnx.Model(pq.onnx.fuse(graph)).run(inputs)
    for output, right in theirs(proto, inputs).items():
        assert own[output].shape == right.shape
        assert np.allclose(own[output], right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["Loop", "Loop that ends itself"])
def test_what_comes_before_a_loop_is_one_program(name: str) -> None:
    proto, more = CASES[name]
    own = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(proto)))
    inputs = {"x": image(), **more}
    program, left = own.parts(inputs)
    assert program is not None
    assert [node.operator for node, _ in left] == ["Loop", "Reshape"]
    assert not any(node.operator == "Conv" for node, _ in left)
    with pytest.raises(UnsupportedError, match=r"values decide the dims of .*Model\.run.*; Loop "):
        own.network()
    values = {**own.graph.constants, **inputs, **program(*inputs.values())}
    for node, call in left:
        values.update(zip(node.outputs, call(values), strict=True))
    for output, array in own.run(inputs).items():
        np.testing.assert_array_equal(values[output], array)


@pytest.mark.parametrize("name", CASES)
def test_the_layers_around_become_int8_and_are_saved(name: str, tmp_path: Path) -> None:
    proto, more = CASES[name]
    samples = [{"x": image(seed), **more} for seed in range(3)]
    found = pq.calibrate(pq.onnx.load(proto), samples)
    assert len(found.layers) == 1
    node = next(n for n in found.model().nodes if n.how.startswith("INT8"))
    assert found.layers[0] in node.originals
    found.save(tmp_path / "int8.onnx")
    inputs = {"x": image(9), **more}
    own = found.model().run(inputs)
    for output, right in theirs(str(tmp_path / "int8.onnx"), inputs).items():
        assert own[output].shape == right.shape
        if right.size:
            assert pq.quantize.quality(right, own[output]).sqnr > 25


def test_loops_without_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyonednn_q.onnx import loops

    proto, _ = loop(0)
    limit = next(each for each in proto.graph.initializer if each.name == "limit")
    limit.CopyFrom(onnx.numpy_helper.from_array(np.asarray(np.inf, np.float32), "limit"))
    own = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(proto)))
    inputs = {"x": image(), "most": np.asarray(2**62, np.int64)}
    for name, least in (("_MOST_STEPS", 50), ("_MOST_BYTES", 4096)):
        with monkeypatch.context() as patch:
            patch.setattr(loops, name, least)
            with pytest.raises(UnsupportedError, match="running it step by step: refused; at most"):
                own.run(inputs)


@pytest.mark.parametrize(
    ("name", "value"), [("scan_input_axes", [7]), ("scan_output_directions", [1, 1])]
)
def test_what_a_scan_is_told_wrong_is_a_typed_error(name: str, value: list[int]) -> None:
    proto, _ = CASES["Scan"]
    (node,) = (each for each in proto.graph.node if each.op_type == "Scan")
    node.attribute.append(onnx.helper.make_attribute(name, value))
    own = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(proto)))
    node.attribute.pop()
    with pytest.raises(UnsupportedError, match="running it step by step: failed"):
        own.run({"x": image()})


def test_another_form_is_refused() -> None:
    proto, _ = loop(5)
    (node,) = (each for each in proto.graph.node if each.op_type == "Loop")
    del node.input[-1]
    with pytest.raises((ArgumentError, UnsupportedError), match="Loop"):
        pq.onnx.load(proto)
