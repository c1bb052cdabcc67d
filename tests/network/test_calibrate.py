"""Networks of float operators calibrated to INT8, beside float64 NumPy and the ONNX entrance."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.errors import ArgumentError
from pyonednn_q.native import runtime
from pyonednn_q.network import Concat, Network, Node, Pool, Reshape, sequential
from pyonednn_q.ops.operator import Operator
from pyonednn_q.primitive import TensorSpec
from support import in_bf16
from support.children import run_child
from support.foreign import Producer

Array = np.ndarray[Any, Any]
RELU = pq.Eltwise("relu")


def few_ones(rng: np.random.Generator, *shape: int) -> Array:
    """Four of 1 or -1 in each row, 0 elsewhere: sums of whole numbers stay small."""
    rows = np.zeros((shape[0], int(np.prod(shape[1:]))), np.float32)
    for row in rows:
        row[rng.permutation(row.size)[:4]] = rng.choice([-1, 1], 4)
    return rows.reshape(shape)


def blocks(seed: int = 0) -> Network:
    """A batch norm, a residual, branches that meet in a Concat, a deconvolution, a dense layer."""
    rng = np.random.default_rng(seed)
    gain, shift = rng.choice([0.5, 1, 2], 16), rng.integers(-2, 3, 16)
    bias = rng.integers(-2, 3, 16).astype(np.float32)
    first = pq.Conv(
        few_ones(rng, 16, 3, 3, 3), bias, padding=1, post=pq.Chain(pq.Affine(gain, shift), RELU)
    )
    block = pq.Conv(few_ones(rng, 16, 16, 3, 3), padding=1, post=pq.Chain(pq.Sum(1.0), RELU))
    nodes = [
        Node("r1", first, "x"),
        Node("r2", block, "r1", residual="r1"),
        Node("c3", pq.Conv(few_ones(rng, 16, 16, 1, 1)), "r2"),
        Node("k", Concat(1), ("c3", "r2")),
        Node("p", Pool("max", 2, stride=2), "k"),
        Node("d", pq.Deconv(few_ones(rng, 16, 32, 2, 2), stride=2), "p"),
        Node("g", Pool("avg_include_padding"), "d"),
        Node("f", Reshape((-1, 16)), "g"),
        Node("y", pq.InnerProduct(few_ones(rng, 10, 16)), "f"),
    ]
    return Network(["x"], nodes, ["y"])


def batches(count: int, seed: int = 1) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [rng.integers(-2, 3, (4, 3, 8, 8)).astype(np.float32) for _ in range(count)]


def everything(network: Network, x: Array) -> dict[str, Array]:
    names = [node.dst for node in network.nodes]
    return Network(network.inputs, network.nodes, names)(x)


@pytest.fixture(scope="module")
def found() -> pq.onnx.Calibration:
    return pq.calibrate(blocks(), batches(3), wei_bits=7)


def test_tensors_between_operators_are_codes(found: pq.onnx.Calibration) -> None:
    (x,) = batches(1)
    compiled = found.network.compile({"x": TensorSpec.of(x, "x")})
    for name in ("x", "r1", "r2", "c3", "k", "p", "d", "g", "f"):
        assert compiled.tensors[f"{name}:codes"].dtype == "u8"
        assert name == "x" or name not in compiled.tensors  # nobody needs the real values
    assert compiled.outputs["y"].dtype == "f32"
    assert "Python" not in compiled.describe()
    runs = {node.dst: node.runs for node in found.network.nodes}
    for name in ("r1:codes", "r2:codes", "c3:codes", "d:codes", "y"):
        assert runs[name].weights.dtype == "s8"


def test_ranges_are_those_of_all_batches(found: pq.onnx.Calibration) -> None:
    results = [{"x": x, **everything(blocks(), x)} for x in batches(3)]
    for name, (lo, hi) in found.ranges.items():
        values = np.stack([each[name] for each in results])
        assert (lo, hi) == (values.min(), values.max())


def test_codes_are_what_definition_says() -> None:
    """One layer of whole codes, in float64: rne((x_q - z) · w_q · s_x · s_w / s_y) + z_y."""
    rng = np.random.default_rng(5)
    wei = rng.normal(0, 1, (8, 16)).astype(np.float32)
    x = rng.normal(0, 1, (64, 16)).astype(np.float32)
    net = sequential(pq.InnerProduct(wei), RELU, pq.InnerProduct(wei[:, :8]))
    found = pq.calibrate(net, [x], wei_bits=7, bias_correction=False)
    first = np.maximum(x.astype(np.float64) @ wei.T.astype(np.float64), 0.0)
    lo, hi = x.min(), x.max()
    x_scale = (hi - lo) / np.float32(255)
    x_point = np.rint(-lo / x_scale)
    codes = np.clip(np.rint(x / x_scale) + x_point, 0, 255) - x_point
    w_scale = np.abs(wei).max(axis=1).astype(np.float64) / 63
    w_codes = np.rint(wei / w_scale[:, None])
    y_scale = np.float64(np.float32(found.ranges["innerproduct1"][1]) / np.float32(255))
    # A float32 sum of 16 products is as far from the real one, at the most.
    far = 16 * 2.0**-24 * (np.abs(x) @ np.abs(wei).T).max()
    assert abs(found.ranges["innerproduct1"][1] - first.max()) <= far
    steps = (codes.astype(np.float64) @ w_codes.T) * np.float64(x_scale) * w_scale / y_scale
    between = Network(found.network.inputs, found.network.nodes, ["innerproduct1:codes"])
    got = between(x)["innerproduct1:codes"]
    # Two scales and two products are rounded to float32.
    is_sure = np.abs(steps - np.floor(steps) - 0.5) > 4 * 2.0**-24 * np.abs(steps)
    assert np.array_equal(got[is_sure], np.clip(np.rint(steps), 0, 255)[is_sure])
    assert is_sure.sum() >= is_sure.size - 1


def test_all_operators_turned_back_are_the_float_network(
    found: pq.onnx.Calibration,
) -> None:
    (x,) = batches(1, seed=4)
    assert np.array_equal(found.with_floats(found.layers).network(x)["y"], blocks()(x)["y"])


def test_what_stays_in_floats_has_no_codes_around_it(found: pq.onnx.Calibration) -> None:
    (x,) = batches(1)
    network = found.with_floats(["r2", "c3"]).network
    compiled = network.compile({"x": TensorSpec.of(x, "x")})
    assert compiled.tensors["r1"].dtype == "f32"  # the INT8 operator before stores it so
    assert "r1:codes" not in compiled.tensors
    assert compiled.tensors["c3"].dtype == "f32"
    assert compiled.tensors["c3:codes"].dtype == "u8"


@pytest.mark.skipif(
    not runtime.isa().has("AVX512_CORE_BF16"), reason="needs AVX512_CORE_BF16 in this process"
)
def test_operators_in_bf16_run_on_its_primitives() -> None:
    text, y = in_bf16.operator()
    assert "BF16 matmul" in text
    assert "matmul1: bf16, as asked for" in text
    (step,) = [line for line in text.splitlines() if line.startswith("matmul1: matmul ")]
    assert "src:bf16" in step
    assert "bf16" in step.partition(" on ")[2]
    # Products of 8 bits by 8 are whole, and their sums below 2^24: exact.
    narrow = [each.astype(ml_dtypes.bfloat16).astype(np.float64) for each in in_bf16.arrays()]
    assert np.array_equal(y, narrow[0] @ narrow[1])


def test_bf16_becomes_f32_and_says_so_where_no_instructions_are() -> None:
    text, y = run_child(in_bf16.operator, environment={"ONEDNN_MAX_CPU_ISA": "AVX2"}).value
    assert "FP32 matmul" in text
    assert "matmul1: f32 in place of bf16, for which AVX2" in text
    x, wei = in_bf16.arrays()
    assert np.array_equal(y, x.astype(np.float64) @ wei)


def test_operators_turn_back_until_a_bound_is_reached() -> None:
    """Channels of r1 from 2^-8 to 2^8 have one scale; r2 takes the factors back."""
    rng = np.random.default_rng(2)
    factors = np.exp2(np.linspace(-8, 8, 16).round()).astype(np.float32)
    first, second = few_ones(rng, 16, 8), few_ones(rng, 16, 16)
    net = sequential(
        pq.InnerProduct(first * factors[:, None]),
        RELU,
        pq.InnerProduct(second / factors),
        RELU,
        pq.InnerProduct(few_ones(rng, 10, 16)),
    )
    x = rng.integers(-2, 3, (64, 8)).astype(np.float32)
    exact = np.maximum(np.maximum(x @ first.T, 0) @ second.T, 0)
    assert np.array_equal(everything(net, x)["innerproduct2"], exact)
    want = net(x)["innerproduct3"].argmax(1)

    def right(model: pq.onnx.Model) -> float:
        return float((model.run({"x": x})["innerproduct3"].argmax(1) == want).mean())

    found = pq.calibrate(net, [x], wei_bits=7)
    assert right(found.model()) < 0.95
    tuned = found.within(right, 0.95)
    assert right(tuned.model()) >= 0.95
    assert tuple(tuned.floats) == ("innerproduct2",)
    lost = tuned.sensitivity()
    assert next(iter(lost)) == "innerproduct2"
    assert {*lost} == {*tuned.layers} == {*lost.seconds}
    took = f"3 passes, {sum(lost.seconds.values()) / 3:.2g} s a pass"
    *rows, whole = str(lost).splitlines()
    assert [row.split()[0] for row in rows[-3:]] == [*lost]
    assert whole.startswith(took)
    assert tuned.summary().splitlines()[-1].startswith(f"sensitivity: {took}")


def test_summary_says_what_each_node_loses(found: pq.onnx.Calibration) -> None:
    tuned = found.with_floats(["c3"])
    (x,) = batches(1)
    head, *lines = tuned.summary().splitlines()
    assert head.split() == ["nodes", "how", "runs", "implementation", "exactness", "SQNR", "dB"]
    assert lines[-1] == "c3: f32, as asked for"
    want = everything(blocks(), x)
    network = tuned.network
    got = Network(network.inputs, network.nodes, ["r1:codes", "y"])(x)
    q: Any = tuned.model().bound({"x": x.shape}).graph.tensors["r1:codes"].qparams
    got["r1"] = q.dequantize(got["r1:codes"])
    for name in ("r1", "y"):
        values, lost = want[name].astype(np.float64), want[name] - got[name].astype(np.float64)
        expected = 10 * np.log10(np.square(values).sum() / np.square(lost).sum())
        (line,) = [each for each in lines if each.split()[0] in {name, f"{name}:codes"}]
        assert line.split()[-1] == f"{expected:.1f}"


def test_summary_measures_when_asked(found: pq.onnx.Calibration) -> None:
    head, *lines = found.summary(times=True).splitlines()
    assert head.split()[-3:] == ["us", "FP32", "us"]
    layers = [line for line in lines if "INT8 " in line]
    assert len(layers) == len(found.layers)
    assert all(float(each) > 0 for line in layers for each in line.split()[-2:])


def test_sequential_puts_steps_into_chains() -> None:
    rng = np.random.default_rng(0)
    wei, bias = few_ones(rng, 16, 3, 3, 3), rng.integers(-2, 3, 16).astype(np.float32)
    gain, shift = rng.choice([0.5, 1, 2], 16), rng.integers(-2, 3, 16)
    net = sequential(
        pq.Conv(wei, bias, padding=1),
        pq.Affine(gain, shift),
        RELU,
        Pool("max", 2, stride=2),
        Reshape((-1, 256)),
        pq.InnerProduct(few_ones(rng, 10, 256)),
    )
    assert [node.dst for node in net.nodes] == ["conv1", "pool1", "reshape1", "innerproduct1"]
    (x,) = batches(1)
    post = pq.Chain(pq.Affine(gain, shift), RELU)
    conv = pq.Conv(wei, bias, padding=1, post=post)(x)
    pooled = conv.reshape(4, 16, 4, 2, 4, 2).max(axis=(3, 5))
    dense = net.nodes[-1].runs.weights.values
    assert np.array_equal(net(x)["innerproduct1"], pooled.reshape(4, 256) @ dense.T)
    quantized = pq.calibrate(net, [x], wei_bits=7).network
    operators = [each.runs for each in quantized.nodes if isinstance(each.runs, Operator)]
    assert [each.weights.dtype for each in operators] == ["s8", "s8"]


def test_batches_are_taken_as_data_loaders_give_them(found: pq.onnx.Calibration) -> None:
    labels = np.zeros(4, np.int64)
    for make in (
        lambda x: (x, labels),
        lambda x: [Producer(x), Producer(labels)],
        lambda x: {"x": Producer(x), "labels": labels},
        Producer,
    ):
        assert pq.calibrate(blocks(), map(make, batches(3))).ranges == found.ranges
    with pytest.raises(ArgumentError, match=r"^batches: got 0 arrays; wanted inputs: \('x',\)"):
        pq.calibrate(blocks(), [()])


@pytest.mark.parametrize("kind", ["percentile", "mse", "kl", "median_min_max"])
def test_estimators_are_named(kind: str) -> None:
    named = pq.calibrate(blocks(), batches(2), estimators=kind)
    assert (
        named.ranges
        == pq.calibrate(blocks(), batches(2), estimators=lambda: pq.quantize.estimator(kind)).ranges
    )
    assert named.ranges != pq.calibrate(blocks(), batches(2)).ranges
    with pytest.raises(ArgumentError, match=r"^estimators: got 'entropy'; wanted one of min_max,"):
        pq.calibrate(blocks(), batches(2), estimators="entropy")
    with pytest.raises(ArgumentError, match=r"^estimators: got one beside config"):
        pq.calibrate(blocks(), batches(2), config={}, estimators=kind)


def test_layers_are_named_by_patterns(found: pq.onnx.Calibration) -> None:
    first, *others = found.layers
    assert dict(found.with_floats(["*"]).floats) == dict.fromkeys(found.layers, "f32")
    mixed = found.with_floats({first: "f32", "*": "bf16"})
    assert dict(mixed.floats) == {first: "f32", **dict.fromkeys(others, "bf16")}
    with pytest.raises(ArgumentError, match=r"^floats: got 'no\*'; wanted layers of"):
        found.with_floats(["no*"])


def test_what_does_not_fit_is_refused(found: pq.onnx.Calibration) -> None:
    (x,) = batches(1)
    codes = pq.Conv(
        np.ones((1, 3, 1, 1), np.int8),
        src_q=pq.QParams(1.0, 0, "u8"),
        wei_q=pq.QParams(1.0, 0, "s8"),
    )
    with pytest.raises(
        ArgumentError, match=r"^model: got 'conv1', of f32 and s8; wanted operators of float32"
    ):
        pq.calibrate(sequential(codes), [x])
    with pytest.raises(ArgumentError, match=r"^model: got no layer of constant weights"):
        pq.calibrate(sequential(Pool("max", 2)), [x])
    strict = pq.Conv(few_ones(np.random.default_rng(0), 4, 4, 1, 1), strict=True)
    with pytest.raises(ArgumentError, match=r"^model: got strict=True of 'conv1'; wanted False"):
        pq.calibrate(sequential(strict), [x])
    with pytest.raises(ArgumentError, match="batches"):
        pq.calibrate(blocks(), [])
    with pytest.raises(ArgumentError, match="batches"):
        pq.calibrate(blocks(), [{"z": x}])
    with pytest.raises(ArgumentError, match="floats"):
        pq.calibrate(blocks(), [x], floats=["k"])
    with pytest.raises(ArgumentError, match="least"):
        found.within(lambda _: 0.5, 0.6)
    for layers in (
        (),
        (RELU,),
        (codes, RELU),
        (pq.Conv(few_ones(np.random.default_rng(), 4, 4, 1, 1)), pq.Sum(1.0)),
    ):
        with pytest.raises(ArgumentError, match="layers"):
            sequential(*layers)
