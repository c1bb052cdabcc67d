"""Float ONNX models calibrated to INT8, beside the float model in onnxruntime."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import onnx
import onnxruntime
from onnx import helper, numpy_helper

import pyonednn_q as pq
from pyonednn_q.commands import cli
from pyonednn_q.errors import ArgumentError
from pyonednn_q.native import runtime
from pyonednn_q.primitive import TensorSpec
from support import in_bf16
from support.children import run_child
from support.oracles.networks import NETWORKS

Array = np.ndarray[Any, Any]
HAS_BF16 = runtime.isa().has("AVX512_CORE_BF16")


def blocks(seed: int = 0, batch: int = 4, *, is_exact: bool = False) -> Any:
    """A residual block, two branches that meet in a Concat, a ConvTranspose and a dense layer.

    Exact: weights of few ones, batch norms of powers of two. Whole inputs up to 2 then give sums of
    at most 2^18 in steps of 1/64 at the end, which float32 holds in any order.
    """
    rng = np.random.default_rng(seed)
    shapes = {
        "w1": (16, 3, 3, 3), "w2": (16, 16, 3, 3), "w3": (16, 16, 1, 1), "w4": (16, 32, 2, 2),
        "w5": (10, 16),
    }  # fmt: skip
    if is_exact:
        constants = {name: few_ones(rng, shape) for name, shape in shapes.items()}
        numbers = {"b": (-2, 3), "beta": (-2, 3), "mean": (-2, 3)}
        constants |= {name: rng.integers(*ends, 16) for name, ends in numbers.items()}
        constants |= {"gamma": rng.choice([1, 2], 16), "var": rng.choice([1, 4], 16)}
    else:
        sizes = {"w1": 0.3, "w2": 0.1, "w3": 0.2, "w4": 0.2, "w5": 0.1}
        constants = {name: rng.normal(0, sizes[name], shape) for name, shape in shapes.items()}
        constants |= {name: rng.normal(0, 0.2, 16) for name in ("b", "beta", "mean")}
        constants |= {name: rng.uniform(0.5, 2, 16) for name in ("gamma", "var")}
    constants["w4"] = constants["w4"].swapaxes(0, 1)
    node = helper.make_node
    norm = ["c1", "gamma", "beta", "mean", "var"]
    epsilon = 0.0 if is_exact else 1e-5
    nodes = [
        node("Conv", ["x", "w1", "b"], ["c1"], "conv1", pads=[1] * 4),
        node("BatchNormalization", norm, ["n1"], "norm", epsilon=epsilon),
        node("Relu", ["n1"], ["r1"], "relu1"),
        node("Conv", ["r1", "w2"], ["c2"], "conv2", pads=[1] * 4),
        node("Add", ["c2", "r1"], ["s"], "add"),
        node("Relu", ["s"], ["r2"], "relu2"),
        node("Conv", ["r2", "w3"], ["c3"], "conv3"),
        node("Concat", ["c3", "r2"], ["k"], "concat", axis=1),
        node("MaxPool", ["k"], ["p"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("ConvTranspose", ["p", "w4"], ["d"], "deconv", strides=[2, 2]),
        node("GlobalAveragePool", ["d"], ["g"], "mean_pool"),
        node("Flatten", ["g"], ["f"], "flatten"),
        node("Gemm", ["f", "w5"], ["y"], "dense", transB=1),
    ]
    return model_of(nodes, constants, (batch, 3, 8, 8), (batch, 10))


def few_ones(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Four of 1 or -1 in each row, 0 elsewhere."""
    rows = np.zeros((shape[0], math.prod(shape[1:])))
    for row in rows:
        row[rng.permutation(row.size)[:4]] = rng.choice([-1, 1], 4)
    return rows.reshape(shape)


def model_of(
    nodes: list[Any], constants: dict[str, Array], src: tuple[int, ...], dst: tuple[int, ...]
) -> Any:
    values = [numpy_helper.from_array(v.astype(np.float32), k) for k, v in constants.items()]
    ends = [helper.make_tensor_value_info(*each) for each in (("x", 1, src), ("y", 1, dst))]
    graph = helper.make_graph(nodes, "blocks", ends[:1], ends[1:], values)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def batches(count: int, seed: int = 1) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [rng.normal(0, 1, (4, 3, 8, 8)).astype(np.float32) for _ in range(count)]


def whole_batches(count: int, seed: int = 1) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [rng.integers(-2, 3, (4, 3, 8, 8)).astype(np.float32) for _ in range(count)]


def in_float(model: Any, x: Array, *tensors: str) -> Any:
    """The results of onnxruntime: of the output, or of tensors by name."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in tensors if name != "y")
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    if not tensors:
        return np.asarray(session.run(["y"], {"x": x})[0])
    return dict(zip(tensors, session.run(list(tensors), {"x": x}), strict=True))


@pytest.fixture(scope="module")
def calibration() -> pq.onnx.Calibration:
    return pq.calibrate(pq.onnx.load(blocks()), batches(4), wei_bits=7)


@pytest.fixture(scope="module")
def exact() -> pq.onnx.Calibration:
    """Of a model whose every float result is exact."""
    graph = pq.onnx.load(blocks(is_exact=True))
    return pq.calibrate(graph, whole_batches(3), wei_bits=7)


def sqnr(model: Any, x: Array) -> float:
    return pq.quantize.quality(in_float(blocks(), x), model.run({"x": x})["y"]).sqnr


def test_every_layer_is_int8_and_stays_in_codes(calibration: pq.onnx.Calibration) -> None:
    how = {n: each.how for each in calibration.model().nodes for n in each.originals}
    assert how["relu1"] == how["norm"] == how["conv1"] == "INT8 convolution"
    assert how["add"] == how["relu2"] == how["conv2"] == "INT8 convolution"
    assert how["deconv"] == "INT8 deconvolution"
    assert how["concat"] == how["pool"] == how["flatten"] == "codes moved"
    assert how["dense"] == "INT8 inner_product"


def test_moved_tensors_share_a_scale(calibration: pq.onnx.Calibration) -> None:
    model = calibration.model()
    fused = model.graph
    concat = next(node for node in model.nodes if "concat" in node.originals)
    assert len({fused.tensors[name].qparams for name in (*concat.reads, concat.output)}) == 1


def test_ranges_are_those_of_the_float_model(exact: pq.onnx.Calibration) -> None:
    """Of the tensors that become codes, and of no others."""
    names = ("r1", "r2", "c3", "k", "p", "d", "g", "f")
    assert set(exact.ranges) == {"x", *names}
    model = blocks(is_exact=True)
    results = [in_float(model, x, *names) for x in whole_batches(3)]
    for name in names:
        values = np.stack([each[name] for each in results])
        assert exact.ranges[name] == (values.min(), values.max()), name


def test_codes_are_those_of_ranges_and_of_weights(exact: pq.onnx.Calibration) -> None:
    """Scales are (hi - lo) / 255, zero points rne(-lo / scale); of weights max|w| / 63."""
    model = blocks(is_exact=True)
    r1 = np.stack([in_float(model, x, "r1")["r1"] for x in whole_batches(3)])
    assert r1.min() == 0.0
    q: Any = exact.model().graph.tensors["r1:codes"].qparams
    assert q == pq.QParams(float(np.float32(r1.max()) / np.float32(255)), 0, "u8")
    x_q: Any = exact.model().graph.tensors["x:codes"].qparams
    scale = np.float32(4) / np.float32(255)
    assert (x_q.scale, x_q.zero_point) == (float(scale), np.rint(np.float32(2) / scale))
    (layer,) = [each for each in exact.model().nodes if "conv2" in each.originals]
    wei = next(numpy_helper.to_array(v) for v in model.graph.initializer if v.name == "w2")
    assert isinstance(layer.runs, pq.Conv)
    # Ones alone: the largest of each channel is 1, and 63 codes stand for it.
    assert np.array_equal(layer.runs.weights.values, wei * 63)


def dense_blocks() -> Any:
    """Each convolution reads all before it, concatenated, normalized and clipped: exact sums."""
    rng = np.random.default_rng(1)
    node, nodes, constants = helper.make_node, [], {"w0": few_ones(rng, (8, 3, 3, 3))}
    nodes.append(node("Conv", ["x", "w0"], ["c0"], "conv0", pads=[1] * 4))
    read = "c0"
    for at, channels in ((1, 8), (2, 12)):
        names = [f"{part}{at}" for part in ("gamma", "beta", "mean", "var")]
        for name, values in zip(names, ([1, 2], [-2, 3], [-2, 3], [1, 4]), strict=True):
            constants[name] = rng.choice(values, channels)
        constants[f"w{at}"] = few_ones(rng, (4, channels, 3, 3))
        nodes += [
            node("BatchNormalization", [read, *names], [f"n{at}"], f"norm{at}", epsilon=0.0),
            node("Relu", [f"n{at}"], [f"r{at}"], f"relu{at}"),
            node("Conv", [f"r{at}", f"w{at}"], [f"c{at}"], f"conv{at}", pads=[1] * 4),
            node("Concat", [read, f"c{at}"], [f"k{at}"], f"concat{at}", axis=1),
        ]
        read = f"k{at}"
    nodes.append(node("GlobalMaxPool", [read], ["y"], "pool"))
    return model_of(nodes, constants, (4, 3, 8, 8), (4, 16, 1, 1))


def test_batch_norms_behind_no_layer_are_layers() -> None:
    model = dense_blocks()
    (x,) = whole_batches(1, seed=2)
    found = pq.calibrate(pq.onnx.load(model), whole_batches(2), wei_bits=7)
    assert found.layers == ("conv0", "norm1", "conv1", "norm2", "conv2")
    how = {name: each.how for each in found.model().nodes for name in each.originals}
    assert how["norm1"] == how["relu1"] == how["norm2"] == how["relu2"] == "INT8 convolution"
    assert how["concat1"] == "codes moved"
    assert how["concat2"] == how["pool"] == "floats"  # moves floats: nobody reads codes of it
    wide = found.with_floats(found.layers).model()
    assert np.array_equal(wide.run({"x": x})["y"], in_float(model, x))
    assert np.array_equal(found.model().network()(x)["y"], found.model().run({"x": x})["y"])


@pytest.mark.parametrize("network", NETWORKS)
def test_other_runtimes_take_the_model_and_agree(
    network: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Node by node beside onnxruntime: what differs has a name."""
    rng = np.random.default_rng(0)
    graph = pq.onnx.load(NETWORKS[network]())
    dims = graph.inputs["x"].dims
    assert dims is not None
    x = [rng.normal(0, 1, dims).astype(np.float32) for _ in range(3)]
    found = pq.calibrate(graph, x)
    pq.onnx.save(found.graph, tmp_path / "int8.onnx")
    onnx.checker.check_model(onnx.load(tmp_path / "int8.onnx"), full_check=True)
    again = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(tmp_path / "int8.onnx"), keep_rounding=False))
    for name, result in found.model().run({"x": x[0]}).items():
        assert np.array_equal(again.run({"x": x[0]})[name], result)
    assert {each.how.split()[0] for each in again.nodes if each.parts[-1].row.layer} <= {"INT8"}
    assert cli.main(["diff", str(tmp_path / "int8.onnx"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert all(each["unexplained"] == 0 for each in said["compared"])


def test_network_in_one_call_gives_what_the_model_gives(calibration: pq.onnx.Calibration) -> None:
    model = calibration.model()
    (x,) = batches(1, seed=7)
    assert np.array_equal(model.network()(x)["y"], model.run({"x": x})["y"])


@pytest.mark.parametrize("network", NETWORKS)
def test_layers_run_in_the_type_that_was_asked_for(network: str) -> None:
    rng = np.random.default_rng(0)
    graph = pq.onnx.load(NETWORKS[network]())
    x = rng.normal(0, 1, graph.inputs["x"].dims or ()).astype(np.float32)
    found = pq.calibrate(graph, [x])
    words = {"f32": "FP32", "bf16": "BF16" if HAS_BF16 else "FP32"}
    for _ in range(6):
        drawn = {layer: str(rng.choice(["s8", "f32", "bf16"])) for layer in found.layers}
        mixed = found.with_floats({n: kind for n, kind in drawn.items() if kind != "s8"})
        model = mixed.model()
        how = {name: each.how for each in model.nodes for name in each.originals}
        for layer, kind in drawn.items():
            assert how[layer].split()[0] == words.get(kind, "INT8")
        assert np.isfinite(model.network()(x)["y"]).all()


def test_layers_turn_back_until_a_bound_is_reached(calibration: pq.onnx.Calibration) -> None:
    (x,) = batches(1, seed=9)
    plain = sqnr(calibration.model(), x)
    bound = plain + 3.0
    tuned = calibration.within(lambda model: sqnr(model, x), bound)
    assert sqnr(tuned.model(), x) >= bound
    assert 0 < len(tuned.floats) < len(calibration.layers)
    for one in tuned.floats:  # without any one of them it is missed
        fewer = calibration.with_floats([name for name in tuned.floats if name != one])
        assert sqnr(fewer.model(), x) < bound
    asked: list[pq.onnx.Model] = []

    def counted(model: pq.onnx.Model) -> float:
        asked.append(model)
        return sqnr(model, x)

    hasty = calibration.within(counted, bound, tries=1)
    assert len(asked) == 3  # as it is, all in floats, and one on the way
    assert sqnr(hasty.model(), x) >= bound


def test_all_layers_turned_back_are_the_float_model(exact: pq.onnx.Calibration) -> None:
    (x,) = whole_batches(1, seed=9)
    model = exact.with_floats(exact.layers).model()
    assert {each.how.split()[0] for each in model.nodes} == {"FP32", "floats"}
    assert np.array_equal(model.run({"x": x})["y"], in_float(blocks(is_exact=True), x))
    assert np.array_equal(model.network()(x)["y"], in_float(blocks(is_exact=True), x))


def test_layers_turned_back_read_floats_with_all_that_follows(exact: pq.onnx.Calibration) -> None:
    model = exact.with_floats(["conv2"]).model()
    how = {name: each.how for each in model.nodes for name in each.originals}
    assert how["conv2"] == how["add"] == how["relu2"] == "FP32 convolution"
    assert how["conv1"] == how["conv3"] == "INT8 convolution"
    (x,) = whole_batches(1, seed=9)
    # Nothing quantizes what conv2 reads and adds.
    program = model.network()
    assert np.array_equal(program(x)["y"], model.run({"x": x})["y"])
    specs = {"x": TensorSpec.of(x, "x")}
    assert program.compile(specs).tensors["r1"].dtype == "f32"


def test_layers_in_floats_read_each_other_without_codes(exact: pq.onnx.Calibration) -> None:
    """Codes of r2 are for the Concat alone."""
    model = exact.with_floats(["conv2", "conv3"]).model()
    reads = {name: each.inputs for each in model.nodes for name in each.originals}
    assert reads["conv3"] == ("r2",)
    assert reads["concat"] == ("c3:codes", "r2:codes")
    # Nor does what adds or moves floats, if nobody reads codes of it.
    nodes = exact.with_floats(["conv1", "conv2", "conv3", "deconv"]).model().nodes
    assert {each.how for each in nodes} == {
        *("FP32 convolution", "FP32 deconvolution", "floats", "quantizer"),
        *("codes computed", "codes moved", "INT8 inner_product"),
    }
    assert [each.output for each in nodes if each.how == "quantizer"] == ["d:codes"]


@pytest.mark.skipif(not HAS_BF16, reason="needs AVX512_CORE_BF16 in this process")
def test_layers_in_bf16_run_on_its_primitives() -> None:
    text, y = in_bf16.layer()
    x, wei = in_bf16.arrays()
    assert "BF16 matmul" in text
    assert "dense: bf16, as asked for" in text
    (step,) = [line for line in text.splitlines() if line.startswith("y: ")]
    assert "src:bf16" in step
    assert "wei:bf16" in step
    assert "bf16" in step.partition(" on ")[2]
    # Source and weights have 8 bits; their products are whole and below 2^23 in all: exact.
    narrow = [each.astype(ml_dtypes.bfloat16).astype(np.float64) for each in (x, wei)]
    assert np.array_equal(y, narrow[0] @ narrow[1])
    assert not np.array_equal(y, x.astype(np.float64) @ wei)


@pytest.mark.parametrize("level", ["AVX2", "AVX512_CORE_VNNI"])
def test_bf16_becomes_f32_and_says_so_where_no_instructions_are(level: str) -> None:
    if not runtime.isa().has(level):
        pytest.skip(f"needs {level} in this process")
    text, y = run_child(in_bf16.layer, environment={"ONEDNN_MAX_CPU_ISA": level}).value
    assert "FP32 matmul" in text
    assert f"dense: f32 in place of bf16, for which {level}" in text
    assert "bf16:" not in text
    x, wei = in_bf16.arrays()
    assert np.array_equal(y, x.astype(np.float64) @ wei)


def test_summary_says_what_each_node_loses(exact: pq.onnx.Calibration) -> None:
    tuned = exact.with_floats(["conv3"])
    nodes = tuned.model().nodes
    head, *lines = tuned.summary().splitlines()
    assert head.split() == ["nodes", "how", "runs", "implementation", "exactness", "SQNR", "dB"]
    assert lines[len(nodes) :] == ["conv3: f32, as asked for"]
    (x,) = whole_batches(1)
    results = in_float(blocks(is_exact=True), x, "y", "r1")
    tensors = {**tuned.model().graph.tensors}
    fused = replace(
        tuned.model().graph, outputs={name: tensors[name] for name in ("r1:codes", "y")}
    )
    found = pq.onnx.Model(fused).run({"x": x})
    q: Any = fused.tensors["r1:codes"].qparams
    reals = {
        "r1": (found["r1:codes"].astype(np.float64) - q.zero_point) * q.scale,
        "y": found["y"].astype(np.float64),
    }
    for name, node in (("r1", "conv1"), ("y", "dense")):
        values = results[name].astype(np.float64)
        lost = 10 * np.log10(np.square(values).sum() / np.square(values - reals[name]).sum())
        (line,) = [each for each in lines if each.startswith(node)]
        assert line.split()[-1] == f"{lost:.1f}"


def test_summary_measures_when_asked(exact: pq.onnx.Calibration) -> None:
    head, *lines = exact.summary(times=True).splitlines()
    assert head.split()[-3:] == ["us", "FP32", "us"]
    for line in lines:
        own, wide = line.split()[-2:]
        if " INT8 " in line:
            assert float(own) > 0
            assert float(wide) > 0
        else:
            assert (own, wide) == ("-", "-")


def test_what_does_not_fit_is_refused(calibration: pq.onnx.Calibration) -> None:
    graph = pq.onnx.load(blocks())
    with pytest.raises(ArgumentError, match="batches"):
        pq.calibrate(graph, [])
    with pytest.raises(ArgumentError, match="floats"):
        pq.calibrate(graph, batches(1), floats=["relu1"])
    with pytest.raises(ArgumentError, match=r"floats\['conv1'\]"):
        pq.calibrate(graph, batches(1), floats={"conv1": "f16"})
    with pytest.raises(ArgumentError, match="dtype"):
        calibration.within(lambda _: 0.5, 0.4, dtype="f16")
    with pytest.raises(ArgumentError, match="quantizers"):
        pq.calibrate(calibration.graph, batches(1))
    with pytest.raises(ArgumentError, match="least"):
        calibration.within(lambda _: 0.5, 0.6)
