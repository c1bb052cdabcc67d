"""``bench model.onnx``: what is measured, where the time goes, and what is written."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import onnx
from onnx import TensorProto, helper, numpy_helper

from pyonednn_q.bench.bench_run import Run
from pyonednn_q.commands import cli
from pyonednn_q.models.callers import waits_at_once
from pyonednn_q.models.model_times import AT_ONCE, WHOLE

Made = Callable[[str, str], Path]
QUICK = ("--repeat", "11")


@pytest.mark.parametrize(
    ("network", "form", "layers"), [("resnet", "QDQ", 7), ("perceptron", "dynamic", 4)]
)
def test_whole_and_layer_by_layer(
    network: str,
    form: str,
    layers: int,
    made: Made,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = made(network, form)
    json_file, page, sheet = (tmp_path / name for name in ("run.json", "page.html", "run.csv"))
    words = ["bench", str(path), *QUICK, "--save", str(json_file), "--html", str(page)]
    assert cli.main([*words, "--csv", str(sheet), "--peers", "onnxruntime"]) == 0
    out = capsys.readouterr().out
    run = Run.from_json(json_file.read_text())
    whole = [row for row in run.rows if row.line == WHOLE]
    assert [row.dtype for row in whole] == ["u8s8u8", "f32"]
    for row in whole:
        assert [each.name for each in row.rivals] == ["pyonednn_q", "onnxruntime"]
        assert all(len(each.samples_us) == 11 for each in row.rivals)
    rows = [row for row in run.rows if row.line != WHOLE]
    assert sum(row.dtype != "f32" for row in rows) == layers
    assert sum(row.dtype == "f32" for row in rows) == layers
    # The same multiplications in both forms, and as many as the layers have together.
    assert whole[0].ops == whole[1].ops == sum(row.ops for row in rows if row.dtype == "f32")
    for row in rows:
        assert run.twin(row, "f32") or row.dtype == "f32"
    assert out.index("The whole model") < out.index("Where the time goes") < out.index("Layers")
    (head,) = re.findall(r"^runtime .*$", out, re.MULTILINE)
    (own,) = re.findall(r"^pyonednn_q +INT8 .*$", out, re.MULTILINE)
    names = re.split("  +", head.replace("times ours", "").strip())
    told = dict(zip(names, re.split(" +", own.replace("!", "").strip()), strict=False))
    samples = sorted(whole[0].rivals[0].samples_us)  # 11 of them: the tenth, the last, the first
    assert [told[name] for name in ("p90 ms", "p99 ms", "least ms")] == [
        f"{samples[at] / 1e3:.3f}" for at in (9, 10, 0)
    ]
    assert told["calls/s"] == f"{1e6 / samples[5]:.0f}"
    share = re.findall(r"^all nodes +(\d+) +[\d.]+ +100.0%$", out, re.MULTILINE)
    assert len(share) == 1
    assert "<svg" in page.read_text()
    assert len(sheet.read_text().splitlines()) == 1 + len(run.rows)
    assert cli.main(["compare", str(json_file), str(json_file)]) == 0
    capsys.readouterr()


def test_callers_at_once_have_a_table_and_rows(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "run.json"
    words = ["bench", str(made("resnet", "QDQ")), *QUICK, "--save", str(file), "--threads", "1"]
    assert cli.main([*words, "--callers", "3", "--peers", "onnxruntime"]) == 0
    out = capsys.readouterr().out
    rows = [row for row in Run.from_json(file.read_text()).rows if row.line == AT_ONCE]
    assert [row.dtype for row in rows] == ["u8s8u8", "f32"]
    _, _, rest = out.partition("The whole model, 3 callers at once\n\n")
    head, *lines = rest.splitlines()[:5]
    assert head.split()[-2:] == ["of", "ours"]
    told = [line.split() for line in lines]
    rivals = [(row, each) for row in rows for each in row.rivals]
    assert [each[0] for each in told] == [each.name for _, each in rivals]
    for cells, (row, each) in zip(told, rivals, strict=True):
        waits = sorted(each.samples_us)
        assert len(waits) >= 3 * 3 * 5  # rounds, callers, calls of each
        assert cells[2] == f"{waits[(len(waits) + 1) // 2 - 1] / 1e3:.3f}"
        assert cells[-2] == f"{3e6 / np.mean(waits):.0f}"
        assert row.threads == 1
    assert told[0][-1] == "1.00"


def test_all_callers_are_measured_at_once() -> None:
    """Calls that wait for each other end only if they run at the same time."""
    together = threading.Barrier(3)
    calls = [together.wait] * 3
    (waits,) = waits_at_once([calls], 0.0, 1)
    assert len(waits) == 3 * 3 * 5

    def fail() -> None:
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        waits_at_once([[fail, lambda: None]], 0.0, 1)


def test_callers_are_of_models_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "resnet50", "--callers", "2"]) == 2
    assert capsys.readouterr().err.startswith("pyonednn-q bench: --callers: got no model")


def test_what_has_no_like_is_told_and_the_rest_measured(
    made: Made, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from pyonednn_q.errors import UnsupportedError
    from pyonednn_q.models import model_times

    def refuse(*_: object) -> object:
        raise UnsupportedError("refused", "making the FP32 form", "a node", "no such operator")

    monkeypatch.setattr(model_times, "float_form", refuse)
    assert cli.main(["bench", str(made("resnet", "QDQ")), *QUICK, "--markdown"]) == 0
    out = capsys.readouterr().out
    assert "not measured: pyonednn_q FP32" in out
    assert "| conv0 |" in out


OTHERS = {
    "--dtype": "f32", "--tail": "relu", "--layout": "rows", "--batch": "2", "--filter": "a",
    "--isa": "AVX2", "--cold": None, "--tune": None, "--repro": None,
    "--peers": "torch", "--threads": "1,2",
}  # fmt: skip


@pytest.mark.parametrize("option", OTHERS)
def test_options_of_problems_are_refused(
    option: str, made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    from pyonednn_q.bench.case import LAYOUTS

    value = LAYOUTS[1] if option == "--layout" else OTHERS[option]
    words = [option] if value is None else [option, value]
    assert cli.main(["bench", str(made("resnet", "QDQ")), *words]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"pyonednn-q bench: {option}: got ")
    assert len(said.splitlines()) == 1


def test_one_model_at_a_time_and_files_in_folders(
    made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(made("resnet", "QDQ"))
    assert cli.main(["bench", path, path]) == 2
    assert cli.main(["bench", path, "--save", "none/run.json"]) == 2
    assert "a folder that exists" in capsys.readouterr().err


def test_json_of_explain_is_one_document(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", str(made("resnet", "QDQ")), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert sum(told["counts"].values()) == len(told["nodes"])


def test_a_float_model_is_not_called_int8(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "float",
        [value("x", TensorProto.FLOAT, (4, 16))],
        [value("y", TensorProto.FLOAT, (4, 8))],
        [numpy_helper.from_array(np.ones((16, 8), np.float32), "w")],
    )
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "f.onnx")
    assert cli.main(["bench", str(tmp_path / "f.onnx"), *QUICK, "--peers", "onnxruntime"]) == 0
    out = capsys.readouterr().out
    forms = re.findall(r"^pyonednn_q +(INT8|FP32|as it is) ", out, re.MULTILINE)
    assert forms == ["as it is", "FP32"]
    assert "INT8" not in out


COUNTED = """<ir_version: 8, opset_import: ["" : 17]>
net (float[1,2,5,5] x) => (float[1,2,5,5] r, int64[4,N] at)
{
  r = Relu(x)
  at = NonZero(r)
}"""


def test_what_values_give_dims_is_timed_behind_the_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx.save(onnx.parser.parse_model(COUNTED), tmp_path / "counted.onnx")
    words = ["bench", str(tmp_path / "counted.onnx"), *QUICK, "--peers", "onnxruntime"]
    assert cli.main(words) == 0
    out = capsys.readouterr().out
    assert len(re.findall(r"^(?:pyonednn_q|onnxruntime) +as it is +[\d.]", out, re.MULTILINE)) == 2
    (share,) = re.findall(r"^reference, by Python +1 +[\d.]+ +([\d.]+%)$", out, re.MULTILINE)
    assert f"for 1 nodes Python is entered, {share} of the time: at" in out
    assert "values decide dims there, but one by one behind it: at" in out
