"""``pyonednn-q quantize``: files of samples in, an INT8 model out, with what it costs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import onnx
import onnxruntime
from onnx import helper, numpy_helper

import pyonednn_q as pq
from pyonednn_q.commands import cli
from pyonednn_q.quantize.group_search import most_questions
from support.terminal import bars, terminal

Array = np.ndarray[Any, Any]
Capture = pytest.CaptureFixture[str]


def noise(*dims: int, seed: int = 7) -> Array:
    return np.random.default_rng(seed).normal(0, 1, dims).astype(np.float32)


def floats(batch: int | str = "batch", *, has_two: bool = False) -> onnx.ModelProto:
    """Two convolutions and a product; or the first one and what adds another input behind it.

    Channels of the second convolution's source are far apart: it loses most.
    """
    factors = np.exp2(np.linspace(-4, 4, 16).round())[:, None, None, None]
    weights = {
        "w1": noise(16, 3, 3, 3, seed=1) * factors,
        "w2": noise(16, 16, 3, 3, seed=2) / factors[:, 0] / 4,
        "w3": noise(16, 10, seed=3) / 4,
    }
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w1"], ["c1"], "head/conv1", pads=[1] * 4),
        node("Relu", ["c1"], ["r1"], "head/relu1"),
        node("Conv", ["r1", "w2"], ["c2"], "head/conv2", pads=[1] * 4),
        node("Add", ["c2", "b"], ["r2"], "sum") if has_two else node("Relu", ["c2"], ["r2"], "r"),
        node("GlobalAveragePool", ["r2"], ["mean"], "mean"),
        node("Flatten", ["mean"], ["flat"], "flat"),
        node("MatMul", ["flat", "w3"], ["y"], "dense"),
    ]
    sides = [16, 16] if isinstance(batch, int) else ["h", "w"]
    inputs = [helper.make_tensor_value_info("x", 1, [batch, 3, *sides])]
    if has_two:
        inputs.append(helper.make_tensor_value_info("b", 1, [batch, 16, 1, 1]))
    outputs = [helper.make_tensor_value_info("y", 1, [batch, 10])]
    stored = [numpy_helper.from_array(w.astype(np.float32), name) for name, w in weights.items()]
    graph = helper.make_graph(nodes, "network", inputs, outputs, stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    onnx.save(floats(), tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    np.savez(tmp_path / "x.npz", x=noise(12, 3, 16, 16))
    return tmp_path / "x.npz"


def quantize(*words: object) -> int:
    return cli.main(["quantize", *map(str, words)])


def told(capsys: Capture, *words: object) -> Any:
    assert quantize(*words, "--json") == 0
    return json.loads(capsys.readouterr().out)


def test_the_file_is_what_calibrate_makes(
    model: Path, data: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "int8.onnx"
    assert quantize(model, "--data", data, "--out", out, "--batch", 4) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"model.onnx -> {out}\n3 of 3 layers in INT8, found in ")
    x = noise(12, 3, 16, 16)
    same = pq.calibrate(str(model), [x[:4], x[4:8], x[8:]])
    same.save(tmp_path / "same.onnx")
    assert out.read_bytes() == (tmp_path / "same.onnx").read_bytes()
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    (reals,) = session.run(None, {"x": x})
    codes = pq.load(out).run({"x": x})["y"]
    sqnr = 10 * np.log10(np.square(reals).sum() / np.square(reals - codes).sum())
    ((values, printed, top1),) = re.findall(
        r"^y +(\d+) +([\d.]+) .* ([\d.]+)%$", text, re.MULTILINE
    )
    assert int(values) == 120
    assert float(printed) == pytest.approx(sqnr, abs=0.06)  # of one decimal
    alike = np.mean(reals.argmax(1) == codes.argmax(1))
    assert float(top1) == pytest.approx(100 * alike, abs=0.006)


def test_layers_turn_back_until_outputs_are_near(
    model: Path, data: Path, tmp_path: Path, capsys: Capture
) -> None:
    words = (model, "--data", data, "--out", tmp_path / "int8.onnx", "--batch", 12)
    plain = told(capsys, *words)
    assert plain["floats"] == {}
    assert plain["outputs"][0]["sqnr"] < 30
    near = told(capsys, *words, "--within", 30)
    assert near["outputs"][0]["sqnr"] >= 30
    assert set(near["floats"]) == {"head/conv2"}
    close = told(capsys, *words, "--within", "cosine=0.9999")
    assert close["outputs"][0]["cosine"] >= 0.9999
    assert quantize(*words, "--within", "cosine=2") == 2
    assert re.search(r"least: got 2, where no layer is INT8; wanted <= 1", capsys.readouterr().err)


def test_layers_and_estimators_are_named(
    model: Path, data: Path, tmp_path: Path, capsys: Capture
) -> None:
    words = (model, "--data", data, "--out", tmp_path / "int8.onnx")
    report = told(capsys, *words, "--floats", "head/*", "--estimators", "mse")
    assert list(report["floats"]) == ["head/conv1", "head/conv2"]
    found = pq.calibrate(str(model), noise(12, 1, 3, 16, 16), floats=["head/*"], estimators="mse")
    found.save(tmp_path / "same.onnx")
    assert (tmp_path / "int8.onnx").read_bytes() == (tmp_path / "same.onnx").read_bytes()
    assert quantize(*words, "--estimators", "no") == 2
    assert "estimators: got 'no'; wanted one of min_max" in capsys.readouterr().err


def test_passes_are_named(model: Path, data: Path, tmp_path: Path, capsys: Capture) -> None:
    words = (model, "--data", data, "--out", tmp_path / "int8.onnx", "--batch", 12)
    plain, made_alike = told(capsys, *words), told(capsys, *words, "--passes", "equalized,rounded")
    assert made_alike["floats"] == {}
    assert made_alike["outputs"][0]["sqnr"] > plain["outputs"][0]["sqnr"] + 5
    assert quantize(*words, "--passes", "equal") == 2
    assert "passes: got 'equal'; wanted one of renormalized" in capsys.readouterr().err


def test_a_configuration_of_the_training_tool_decides(
    model: Path, data: Path, tmp_path: Path, capsys: Capture
) -> None:
    config = tmp_path / "config.json"
    config.write_text(
        json.dumps({"algorithm": "quantization", "ignored_scopes": ["{re}.*conv2"]}), "utf-8"
    )
    words = (model, "--data", data, "--out", tmp_path / "int8.onnx", "--config", config)
    report = told(capsys, *words, "--form", "fake_quantize")
    assert list(report["floats"]) == ["head/conv2"]
    written = onnx.load(tmp_path / "int8.onnx")
    assert "FakeQuantize" in {node.op_type for node in written.graph.node}
    assert quantize(*words, "--estimators", "mse") == 2
    assert "estimators: got one beside config" in capsys.readouterr().err


def test_samples_come_in_folders_of_several_sizes(tmp_path: Path, model: Path) -> None:
    folder = tmp_path / "samples"
    folder.mkdir()
    pictures = [noise(2, 3, 16, 16), noise(3, 12, 20), noise(1, 3, 8, 24).astype(np.float64)]
    for at, each in enumerate(pictures[:2]):
        np.save(folder / f"{at}.npy", each)
    np.savez(folder / "2.npz", x=pictures[2], label=np.arange(3))
    (folder / "readme.txt").write_text("of no account")
    out = tmp_path / "int8.onnx"
    assert quantize(model, "--data", folder, "--out", out) == 0
    batches = [pictures[0][:1], pictures[0][1:], pictures[1][None], pictures[2].astype(np.float32)]
    pq.calibrate(str(model), batches).save(tmp_path / "same.onnx")
    assert out.read_bytes() == (tmp_path / "same.onnx").read_bytes()


def test_whole_batches_of_the_models_length(tmp_path: Path, capsys: Capture) -> None:
    model, data, out = (tmp_path / name for name in ("m.onnx", "xb.npz", "o.onnx"))
    onnx.save(floats(4, has_two=True), model)
    arrays = {"x": noise(10, 3, 16, 16), "b": noise(10, 16, 1, 1)}
    np.savez(data, x=arrays["x"], b=arrays["b"])
    assert told(capsys, model, "--data", data, "--out", out)["samples"] == 8
    batches = [{name: each[at : at + 4] for name, each in arrays.items()} for at in (0, 4)]
    pq.calibrate(str(model), batches).save(tmp_path / "same.onnx")
    assert out.read_bytes() == (tmp_path / "same.onnx").read_bytes()
    assert told(capsys, model, "--data", data, "--out", out, "--limit", 4)["samples"] == 8
    pq.calibrate(str(model), batches[:1]).save(tmp_path / "same.onnx")
    assert out.read_bytes() == (tmp_path / "same.onnx").read_bytes()
    np.savez(data, x=arrays["x"][:3], b=arrays["b"][:3])
    assert quantize(model, "--data", data, "--out", out) == 2
    assert "wanted at least 4 samples, the model's batch" in capsys.readouterr().err


def test_what_cannot_be_is_one_line(
    model: Path, data: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "int8.onnx"
    pair, few, bad, empty = (tmp_path / n for n in ("two.onnx", "few.npz", "bad.npy", "empty"))
    onnx.save(floats(4, has_two=True), pair)
    np.savez(few, x=noise(4, 3, 16, 16))
    bad.write_bytes(b"\x93NUMPY")
    empty.mkdir()
    for name, array in (
        ("dims", noise(4, 4, 16, 16)), ("codes", np.zeros((1, 3, 8, 8), np.uint8)),
        ("none", noise(0, 3, 8, 8)),
    ):  # fmt: skip
        np.save(tmp_path / f"{name}.npy", array)
    quantized = tmp_path / "quantized.onnx"
    assert quantize(model, "--data", data, "--out", quantized) == 0
    capsys.readouterr()
    usual = ("--out", out)
    for words, wanted in (
        ((model, "--data", tmp_path / "no.npz", *usual), r"--data: got '.*; wanted a .npz"),
        ((model, "--data", empty, *usual), r"--data: got nothing of the kind in .*; wanted .npz"),
        ((pair, "--data", few, *usual), r"few.npz: 'b': got nothing, beside 'x'"),
        (
            (pair, "--data", tmp_path / "dims.npy", *usual),
            r"dims.npy: got one array; wanted a .npz",
        ),
        ((model, "--data", bad, *usual), r"bad.npy: got .*; wanted what numpy.save writes"),
        (
            (model, "--data", tmp_path / "dims.npy", *usual),
            r"dims.npy: 'x': got 4x4x16x16; wanted \(samples, 3, h, w\)",
        ),
        (
            (model, "--data", tmp_path / "codes.npy", *usual),
            r"codes.npy: 'x': got uint8; wanted float32",
        ),
        ((model, "--data", tmp_path / "none.npy", *usual), r"none.npy: 'x': got 0x3x8x8"),
        ((quantized, "--data", data, *usual), r"model: got quantizers; wanted a model of floats"),
        ((model, "--data", data, "--out", tmp_path), r"--out: got .*; wanted a name in a folder"),
        ((model, "--data", data, "--out", model), r"--out: got .*; wanted another file"),
        ((model, "--data", data, *usual, "--batch", 0), r"--batch: got 0; wanted a number above 0"),
        (
            (pair, "--data", data, *usual, "--batch", 2),
            r"--batch: got 2; wanted 4, which the model",
        ),
        (
            (model, "--data", data, *usual, "--within", "no=1"),
            r"--within: got 'no=1'; wanted dB, or",
        ),
        ((model, "--data", data, *usual, "--floats", "no*"), r"floats: got 'no\*'; wanted layers"),
    ):
        assert quantize(*words) == 2, words
        line = capsys.readouterr().err.strip("\n")
        assert re.search(rf"^pyonednn-q quantize: .*{wanted}", line), line
        assert not out.exists()


def test_from_a_shell(model: Path, data: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pyonednn_q", "quantize"]
    words = map(str, (model, "--data", data, "--out", tmp_path / "int8.onnx"))
    done = subprocess.run([*command, *words], capture_output=True, text=True, check=True)
    assert "3 of 3 layers in INT8" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("tries", [None, 1])
def test_a_bar_counts_what_a_metric_is_asked_at_most(
    tries: int | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    calibration = pq.calibrate(pq.onnx.load(floats(2)), [noise(2, 3, 16, 16)])
    asked: list[pq.onnx.Model] = []

    def metric(model: pq.onnx.Model) -> float:
        asked.append(model)
        return -float(sum(node.how.startswith("INT8") for node in model.nodes))

    least = metric(calibration.model()) + 2.0
    asked.clear()
    terminal(monkeypatch)
    calibration.within(metric, least, tries=tries)
    done, steps = bars(capsys)["layers that the metric needs in floats"]
    on_the_way = len(asked) - 2  # before: as it is, and all in floats
    assert 0 < on_the_way <= done <= on_the_way + 1  # of no layers nobody is asked
    assert done <= steps == (tries or most_questions(len(calibration.layers)))
