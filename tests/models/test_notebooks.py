"""What notebooks show of models and what is made of them: tables as tables, the rest as text."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import onnx
from onnx import helper, numpy_helper

import pyonednn_q as pq
from pyonednn_q.models.model_file import inputs_of, read
from pyonednn_q.models.model_report import ModelReport
from pyonednn_q.models.model_times import measure
from pyonednn_q.native.timing import Budget
from support.oracles.networks import SOURCE

Made = Callable[[str, str], Path]


def products() -> onnx.ModelProto:
    """Return a model of a product that codes in groups take, and of one that they do not."""
    rng = np.random.default_rng(3)
    weights = {
        name: rng.normal(0, 1, dims).astype(np.float32)
        for name, dims in (("even", (64, 40)), ("odd", (40, 8)))
    }
    nodes = [
        helper.make_node("MatMul", ["x", "even"], ["y"], name="taken"),
        helper.make_node("MatMul", ["y", "odd"], ["z"], name="left"),
    ]
    ends = [
        helper.make_tensor_value_info(name, 1, dims) for name, dims in (("x", (3, 64)), ("z", None))
    ]
    kept = [numpy_helper.from_array(wei, name) for name, wei in weights.items()]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], kept)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


def results(made: Made) -> dict[str, tuple[Any, int, list[str]]]:
    """Return results, with the rows of their tables, and words that stand in these."""
    path = made("resnet", "QDQ")
    model, file = pq.load(path), read(path, dims={}, exact_rounding=False, saturation="f32")
    x = np.random.default_rng(7).normal(0, 1, SOURCE).astype(np.float32)
    calibration = pq.calibrate(path.with_name("float.onnx"), [x])
    layers = calibration.sensitivity()
    nodes = len(model.graph.nodes)
    times = measure(file, inputs_of(file.graph.inputs, None, 0), (), Budget(rounds=3), 1)
    small = pq.onnx.grouped_weights(products(), groups=32)
    return {
        "model": (model, nodes, ["QuantizeLinear"]),
        "report": (ModelReport.of(file), nodes, ["QuantizeLinear"]),
        "times": (times, len(times.run.rows), ["whole model"]),
        "calibration": (calibration, len(calibration.model().graph.nodes), ["QuantizeLinear"]),
        "sensitivity": (layers, len(layers), list(layers)),
        "groups": (small, 1, ["taken", "64 x 40"]),
    }


def test_tables_are_tables_with_a_row_for_each_of_theirs(made: Made) -> None:
    for name, (result, rows, words) in results(made).items():
        line = repr(result)
        assert "\n" not in line, name
        shown = result._repr_html_()
        assert shown.count("<table>") == 1, name
        body = shown.partition("<tbody>")[2].partition("</tbody>")[0]
        assert len(re.findall("<tr>", body)) == rows, name
        for word in words:
            assert word in html.unescape(body), (name, word)


def test_what_is_no_row_stands_beside_the_table() -> None:
    small = pq.onnx.grouped_weights(products(), groups=32)
    shown = html.unescape(small._repr_html_())
    assert "<pre>left: floats, 40 inputs, no multiple of 32</pre>" in shown
    assert small.report().splitlines()[-1] == "left: floats, 40 inputs, no multiple of 32"


def test_names_of_others_are_no_elements() -> None:
    """Of a file that wants to write into the page."""
    model = products()
    model.graph.node[0].name = "<script>alert(1)</script>"
    shown = pq.onnx.grouped_weights(model, groups=32)._repr_html_()
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
