"""Rules of dims beside ONNX's own inference, and beside what runtimes return."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")

import onnx
from onnx import helper, shape_inference

import pyonednn_q as pq
from pyonednn_q.errors import Error
from pyonednn_q.graph.graph import Graph, Value
from pyonednn_q.onnx import shape_inference as own_inference
from pyonednn_q.onnx.model_writer import model_bytes
from pyonednn_q.onnx.open_dims import bound
from support.peers.packaged_models import MODELS, arrays_for, path_of
from support.standard.cases import StandardCase, cases, forms

Known = dict[str, tuple[str, tuple[int, ...] | None]]

PARTS = 12
_HALVES = {"float16": "float32", "bfloat16": "float32"}  # `load` widens layers of them


@pytest.fixture(autouse=True)
def rules_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the package onnx is not installed."""
    monkeypatch.setattr(own_inference, "_has_onnx", lambda: False)


@cache
def every_case() -> list[StandardCase]:
    return [*cases()]


def inferred(model: onnx.ModelProto) -> Known:
    """Type and dims by ONNX, but for what the model says of its own tensors."""
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    del bare.graph.value_info[:]
    for each in bare.graph.output:
        each.type.Clear()
    results = shape_inference.infer_shapes(bare, data_prop=True).graph
    return {each.name: _of(each) for each in (*results.value_info, *results.output)}


def _of(info: onnx.ValueInfoProto) -> tuple[str, tuple[int, ...] | None]:
    tensor = info.type.tensor_type
    if info.type.WhichOneof("value") != "tensor_type" or not tensor.elem_type:
        return "", None
    dims = tensor.shape.dim
    is_known = tensor.HasField("shape") and all(
        each.WhichOneof("value") == "dim_value" and each.dim_value >= 0 for each in dims
    )
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.elem_type)).name
    return dtype, tuple(each.dim_value for each in dims) if is_known else None


def compared(name: str, graph: Graph, theirs: Known, counts: Counter[str]) -> list[str]:
    """Where both know, and differ; counted: who knows the dims of what nodes make."""
    differing = []
    for tensor in (each for node in graph.nodes for each in node.outputs if each in theirs):
        ours = graph.tensors.get(tensor, Value("", None))
        dtype, dims = theirs[tensor]
        who = (ours.dims is not None, dims is not None)
        counts[{(1, 1): "both", (1, 0): "rules", (0, 1): "onnx", (0, 0): "nobody"}[who]] += 1
        is_same = not ours.dtype or not dtype or ours.dtype in {dtype, _HALVES.get(dtype)}
        if not is_same or (all(who) and ours.dims != dims):
            differing.append(f"{name}, {tensor}: {ours}, ONNX {dtype} {dims}")
    return differing


@pytest.mark.parametrize("part", range(PARTS))
def test_every_case_of_the_standard(part: int) -> None:
    """As it is, with constants for inputs, at other opsets: against inference and results."""
    counts: Counter[str] = Counter()
    differing = []
    for case in every_case()[part::PARTS]:
        for form, model, _ in forms(case):
            try:
                graph = pq.onnx.load(model)
                theirs = inferred(model)
            except (Error, shape_inference.InferenceError):
                continue
            differing += compared(f"{case.name}, {form}", graph, theirs, counts)
            results = zip(model.graph.output, case.expected, strict=False)
            real = {info.name: each for info, each in results if isinstance(each, np.ndarray)}
            shapes = {n: (each.dtype.name, each.shape) for n, each in real.items()}
            counts["compared with results"] += len(shapes)
            differing += compared(f"{case.name}, {form}, run", graph, shapes, Counter())
    print(dict(counts))  # noqa: T201
    assert differing == []
    assert counts["both"] > 500
    assert counts["compared with results"] > 100


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_packaged_models(name: str) -> None:
    """With lengths bound: what rules say of all tensors is so in ONNX's inference, and is run."""
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    if not path_of(name).is_file():
        pytest.skip(f"{name} is not there: python tools/vectors/models.py fetch")
    read = pq.onnx.load(path_of(name))
    arrays = arrays_for(tuple(read.inputs), MODELS[name][1], 0)
    graph = bound(read, {n: arrays[n].shape for n in read.symbols}) if read.symbols else read
    names = [each for node in graph.nodes for each in node.outputs if each]
    data = model_bytes(graph, names)
    counts: Counter[str] = Counter()
    assert compared(name, graph, inferred(onnx.ModelProto.FromString(data)), counts) == []
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = runtime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    for at in range(0, len(names), 50):
        some = names[at : at + 50]
        values = dict(zip(some, session.run(some, arrays), strict=True))
        real = {each: (array.dtype.name, array.shape) for each, array in values.items()}
        assert compared(f"{name}, run", graph, real, Counter()) == []
    print(name, dict(counts))  # noqa: T201
    assert 2 * counts["both"] > len(names)
