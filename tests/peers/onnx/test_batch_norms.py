"""Statistics of batch norms from samples: the steps that a training BatchNorm takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.errors import ArgumentError

onnx = pytest.importorskip("onnx")

from onnx import helper, numpy_helper  # noqa: E402

Array = np.ndarray[Any, Any]
MOMENTA = {"first": 0.9, "second": 0.7}
EPSILON = 1e-5


def arrays() -> dict[str, Array]:
    rng = np.random.default_rng(8)
    found = {"w": rng.normal(0, 1, (4, 3)), "v": rng.normal(0, 1, (4, 4))}
    found |= {"scale": rng.uniform(0.5, 2, 4), "shift": rng.normal(0, 1, 4)}
    found |= {"mean": rng.normal(0, 1, 4), "var": rng.uniform(0.5, 2, 4)}
    return {name: each.astype(np.float32) for name, each in found.items()}


def model(batch: int | str = "n", opset: int = 17, side: int = 5) -> Any:
    """Return two convolutions, a norm behind each: both with the same constants."""
    held = arrays()
    held["w"], held["v"] = (held[name].reshape(4, -1, 1, 1) for name in "wv")
    norm = ["scale", "shift", "mean", "var"]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], "one"),
        helper.make_node(
            "BatchNormalization", ["a", *norm], ["b"], "first", epsilon=EPSILON
        ),  # momentum 0.9 unless said
        helper.make_node("Relu", ["b"], ["c"], "relu"),
        helper.make_node("Conv", ["c", "v"], ["d"], "two"),
        helper.make_node(
            "BatchNormalization",
            ["d", *norm],
            ["y"],
            "second",
            epsilon=EPSILON,
            momentum=MOMENTA["second"],
        ),
    ]
    ends = [helper.make_tensor_value_info("x", 1, [batch, 3, side, side])]
    ends.append(helper.make_tensor_value_info("y", 1, [batch, 4, side, side]))
    stored = [numpy_helper.from_array(each, name) for name, each in held.items()]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def batches(count: int = 4, size: int = 4, side: int = 5) -> list[Array]:
    rng = np.random.default_rng(9)
    return [rng.normal(1, 2, (size, 3, side, side)).astype(np.float32) for _ in range(count)]


def expected(samples: list[Array]) -> dict[str, tuple[Array, Array]]:
    """Return what PyTorch documents of BatchNorm2d in training, its momentum one less ONNX's."""
    held = {name: each.astype(np.float64) for name, each in arrays().items()}
    state = dict.fromkeys(MOMENTA, (held["mean"], held["var"]))
    for x in samples:
        value = np.moveaxis(x.astype(np.float64), 1, -1).reshape(-1, 3)
        for name, wei in (("first", "w"), ("second", "v")):
            value = np.maximum(value, 0) if name == "second" else value
            value = value @ held[wei].T
            mean, var = value.mean(axis=0), value.var(axis=0)
            rest, count = MOMENTA[name], len(value)
            old = state[name]
            unbiased = var * count / (count - 1)
            state[name] = (
                rest * old[0] + (1 - rest) * mean,
                rest * old[1] + (1 - rest) * unbiased,
            )
            value = (value - mean) / np.sqrt(var + EPSILON) * held["scale"] + held["shift"]
    return state


def statistics(graph: Any) -> dict[str, tuple[Array, Array]]:
    return {
        node.name: tuple(graph.constants[name] for name in node.inputs[3:])
        for node in graph.nodes
        if node.operator == "BatchNormalization"
    }


def assert_statistics(graph: Any, samples: list[Array]) -> None:
    found, wanted = statistics(graph), expected(samples)
    assert found.keys() == wanted.keys()
    for name, parts in wanted.items():
        for one, other in zip(found[name], parts, strict=True):
            # Sums of 100 float32 numbers of up to 30, and a difference of them.
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("opset", [13, 14, 17])
@pytest.mark.parametrize("batch", [4, "n"])
def test_each_batch_is_a_step(batch: int | str, opset: int) -> None:
    graph = pq.onnx.load(model(batch, opset))
    assert_statistics(pq.onnx.renormalized(graph, batches()), batches())
    assert_statistics(pq.onnx.renormalized(graph, batches(), samples=5), batches()[:2])
    assert statistics(graph)["first"][0].tolist() == arrays()["mean"].tolist()


def test_batches_of_several_sizes() -> None:
    samples = [*batches(2), *batches(1, size=2), *batches(1, side=3)]
    proto = model()
    for at in (2, 3):
        for end in (proto.graph.input[0], proto.graph.output[0]):
            end.type.tensor_type.shape.dim[at].dim_param = "s"
    assert_statistics(pq.onnx.renormalized(pq.onnx.load(proto), samples), samples)


def config(samples: int | None, init: int = 256) -> dict[str, Any]:
    begin: dict[str, Any] = {"range": {"type": "min_max", "num_init_samples": init}}
    if samples is not None:
        begin["batchnorm_adaptation"] = {"num_bn_adaptation_samples": samples}
    return {"algorithm": "quantization", "initializer": begin}


@pytest.mark.parametrize("batch", [4, "n"])
@pytest.mark.parametrize("samples", [0, 8, None])
def test_a_configuration_decides(batch: int | str, samples: int | None) -> None:
    graph = pq.onnx.load(model(batch))
    found = pq.calibrate(graph, iter(batches()), config=config(samples))
    assert isinstance(found, pq.onnx.Calibration)
    if samples == 0:
        assert np.array_equal(statistics(found.source)["first"][0], arrays()["mean"])
        assert found.notes() == {}
        return
    read = batches()[: 2 if samples else 4]
    assert_statistics(found.source, read)
    short = {"config [1]": "batch norms: statistics of 16 samples, 2000 were asked for"}
    assert found.notes() == ({} if samples else short)
    assert found.with_floats(found.layers).notes() == found.notes()
    # The network has these statistics, in floats and in INT8, and its ranges are of them.
    (x,) = batches(1)
    again = pq.onnx.renormalized(graph, read)
    wanted = pq.onnx.Model(pq.onnx.fuse(again)).run({"x": x})["y"]
    exact = found.with_floats(found.layers).model().run({"x": x})["y"]
    np.testing.assert_allclose(exact, wanted, rtol=1e-4, atol=1e-4)
    assert pq.quantize.quality(wanted, found.model().run({"x": x})["y"]).sqnr > 25
    plain = pq.calibrate(again, batches(), config=config(0))
    assert found.ranges == plain.ranges


@pytest.mark.parametrize(("samples", "init", "reads"), [(8, 4, 2), (4, 8, 2), (16, 4, 4)])
def test_batches_are_read_once(samples: int, init: int, reads: int) -> None:
    seen = []

    def given() -> Iterator[Array]:
        for each in batches(9):
            seen.append(each)
            yield each

    found = pq.calibrate(pq.onnx.load(model()), given(), config=config(samples, init))
    assert len(seen) == reads
    top = np.abs(batches(init // 4)).max()
    assert found.ranges["x"] == (-top, top)


def test_one_value_has_no_variance() -> None:
    """PyTorch refuses it; here such a norm stays as it is, and it says so."""
    samples = batches(3, size=1, side=1)
    graph = pq.onnx.load(model(1, side=1))
    assert statistics(pq.onnx.renormalized(graph, samples)) == statistics(graph)
    found = pq.calibrate(graph, samples, config=config(2))
    assert [each.partition(":")[0] for each in found.notes().values()] == ["first", "second"]


def test_errors() -> None:
    graph = pq.onnx.load(model(4))
    with pytest.raises(ArgumentError, match="batches"):
        pq.onnx.renormalized(graph, [])
    with pytest.raises(ArgumentError, match="samples"):
        pq.onnx.renormalized(graph, batches(), 0)
    with pytest.raises(ArgumentError, match="batches"):
        pq.calibrate(graph, [], config=config(4))
    quantized = pq.calibrate(graph, batches()).graph
    with pytest.raises(ArgumentError, match="graph"):
        pq.onnx.renormalized(quantized, batches())
