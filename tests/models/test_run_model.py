"""``run model.onnx``: arrays in, arrays out; and what no command takes, said in a line."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import onnx
import onnxruntime
from onnx import helper

import pyonednn_q as pq
from pyonednn_q.commands import cli
from support.oracles.networks import SOURCE
from support.terminal import bars, terminal

Made = Callable[[str, str], Path]


@pytest.fixture
def x(tmp_path: Path) -> Path:
    path = tmp_path / "x.npz"
    np.savez(path, x=np.random.default_rng(7).normal(0, 1, SOURCE).astype(np.float32))
    return path


@pytest.mark.parametrize(("network", "form"), [("resnet", "QDQ"), ("gated", "QOperator")])
def test_outputs_are_onnxruntimes(
    network: str, form: str, made: Made, x: Path, tmp_path: Path
) -> None:
    path, y = made(network, form), tmp_path / "y.npz"
    assert cli.main(["run", str(path), "--input", str(x), "--output", str(y)]) == 0
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (theirs,) = session.run(None, {"x": np.load(x)["x"]})
    with np.load(y) as found:
        assert found.files == ["y"]
        np.testing.assert_array_equal(found["y"], theirs)
    umask = os.umask(0)
    os.umask(umask)
    assert y.stat().st_mode & 0o777 == 0o666 & ~umask
    assert {each.name for each in tmp_path.iterdir()} == {"x.npz", "y.npz"}


def test_bars_count_what_is_read_and_what_is_composed(
    made: Made, x: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal(monkeypatch)
    path = made("resnet", "QDQ")
    assert cli.main(["run", str(path), "--input", str(x)]) == 0
    graph = onnx.load(path).graph
    layers = sum(each.op_type in {"Conv", "Gemm"} for each in graph.node)
    nodes = len(pq.load(path).nodes)
    assert bars(capsys) == {
        "reading constants": (len(graph.initializer),) * 2,
        "composing layers": (layers, layers),
        "preparing nodes": (nodes, nodes),
    }


def plain(*names: str) -> onnx.ModelProto:
    """Return a model with open dims whose output has a name that is a keyword of NumPy's writer."""
    dims = ["batch", 3]
    inputs = [helper.make_tensor_value_info(name, 1, dims) for name in names]
    graph = helper.make_graph(
        [helper.make_node("Sum", list(names), ["file"], "add")],
        "graph",
        inputs,
        [helper.make_tensor_value_info("file", 1, dims)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def test_open_dims_are_those_of_the_inputs(tmp_path: Path) -> None:
    model, y = tmp_path / "m.onnx", tmp_path / "y.npz"
    onnx.save(plain("a", "b"), model)
    arrays = {name: np.arange(12, dtype=np.float32).reshape(4, 3) for name in "ab"}
    np.savez(tmp_path / "ab.npz", a=arrays["a"], b=arrays["b"])
    words = ["run", str(model), "--input", str(tmp_path / "ab.npz"), "--output", str(y)]
    assert cli.main(words) == 0
    with np.load(y) as found:
        np.testing.assert_array_equal(found["file"], 2 * arrays["a"])


def test_outputs_are_told_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(plain("a", "b"), tmp_path / "m.onnx")
    ab = np.array([[1.0, 2.0, np.inf], [3.0, 4.0, 5.0]], np.float32)
    np.savez(tmp_path / "ab.npz", a=ab, b=ab)
    words = ["run", str(tmp_path / "m.onnx"), "--input", str(tmp_path / "ab.npz"), "--json"]
    assert cli.main(words) == 0
    ends = {"least": 2.0, "mean": "inf", "greatest": "inf"}
    (told,) = json.loads(capsys.readouterr().out)
    assert told == {"name": "file", "dtype": "float32", "dims": [2, 3], **ends}


def test_without_output_there_is_a_line_for_each(
    made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["run", str(made("resnet", "QDQ")), "--seed", "4"]) == 0
    first = capsys.readouterr().out
    assert [line.split()[:3] for line in first.splitlines()[1:]] == [["y", "float32", "2x10"]]
    assert cli.main(["run", str(made("resnet", "QDQ")), "--seed", "4"]) == 0
    assert capsys.readouterr().out == first
    assert cli.main(["run", str(made("resnet", "QDQ")), "--seed", "5"]) == 0
    assert capsys.readouterr().out != first


def test_names_tell_a_terminal_nothing(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names in a model are anybody's: no escapes, no lines of their own."""
    proto = onnx.load(made("resnet", "QDQ"))
    evil = "\x1b]0;title\x07\x1b[31m\n\rfake: 1"
    for node in proto.graph.node:
        node.name += evil
        node.output[:] = [each if each == "y" else each + evil for each in node.output]
        known = {each.name for each in proto.graph.initializer} | {"x"}
        node.input[:] = [each if each in known else each + evil for each in node.input]
    path = tmp_path / "evil.onnx"
    onnx.save(proto, path)
    for words in (["explain", "--trace"], ["run"], ["diff"], ["bench", "--repeat", "6"]):
        assert cli.main([words[0], str(path), *words[1:]]) == 0
        out = capsys.readouterr().out
        assert "\\x1b" in out or words[0] in {"run", "diff"}
        assert not {each for each in out if not each.isprintable()} - {"\n"}
        assert not [line for line in out.splitlines() if line.startswith("fake")]


COMMANDS = ("explain", "run", "diff", "bench")


@pytest.fixture
def bad(tmp_path: Path, made: Made) -> Path:
    """A folder of models that are none, or not of use."""
    whole = made("resnet", "QDQ").read_bytes()
    (tmp_path / "empty.onnx").write_bytes(b"")
    (tmp_path / "text.onnx").write_text("a model")
    (tmp_path / "cut.onnx").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "folder.onnx").mkdir()
    os.mkfifo(tmp_path / "pipe.onnx")
    onnx.save(plain("a"), tmp_path / "open.onnx")
    proto = plain("a")
    proto.graph.node[0].op_type = "Nobody\n\x1b[31mknows"
    onnx.save(proto, tmp_path / "strange.onnx")
    return tmp_path


NAMES = ("empty", "text", "cut", "folder", "pipe", "open", "strange", "none")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("command", COMMANDS)
def test_models_that_cannot_be_used_are_refused_in_a_line(
    command: str, name: str, bad: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([command, str(bad / f"{name}.onnx")]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"pyonednn-q {command}: ")
    assert len(printed.err.splitlines()) == 1
    assert len(printed.err) < 700
    assert "\x1b" not in printed.err


INPUTS = ("other", "dims", "dtype", "text", "array", "none", "pickle", "bomb")


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("command", ["run", "diff", "bench"])
def test_inputs_that_do_not_fit_are_refused_in_a_line(
    command: str, name: str, made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / f"{name}.npz"
    if name == "other":
        np.savez(file, z=np.zeros(SOURCE, np.float32))
    elif name == "dims":
        np.savez(file, x=np.zeros((1, 2), np.float32))
    elif name == "dtype":
        np.savez(file, x=np.zeros(SOURCE, np.float64))
    elif name == "text":
        file.write_text("no arrays")
    elif name == "array":
        with file.open("wb") as stream:
            np.save(stream, np.zeros(SOURCE, np.float32))
    elif name == "pickle":
        np.savez(file, x=np.array([{}], object))
    elif name == "bomb":  # 5 GiB of zeros in some megabytes
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("x.npy", b"")
            archive.filelist[0].file_size = 5 << 30
    assert cli.main([command, str(made("resnet", "QDQ")), "--input", str(file)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    lines = [each for each in printed.err.splitlines() if not each.endswith(" ...")]
    assert len(lines) == 1
    assert lines[0].startswith(f"pyonednn-q {command}: ")


@pytest.mark.parametrize("text", ["batch", "=1", "batch=", "x=1x", "x=a", "x=1xx2", "x=-1", "b=0"])
def test_dims_that_say_nothing_are_refused(
    text: str, bad: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["explain", str(bad / "open.onnx"), "--dims", text]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_outputs_that_cannot_be_written_are_told(
    made: Made, x: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", str(made("resnet", "QDQ")), "--input", str(x), "--output"]
    assert cli.main([*words, "/dev/full"]) == 2
    assert "No space left" in capsys.readouterr().err
    assert cli.main([*words, str(tmp_path / "none" / "y.npz")]) == 2
    assert "a folder that exists" in capsys.readouterr().err
    assert cli.main([*words, str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("line", ["explain {} --trace", "diff {}", "run {}"])
def test_a_reader_that_leaves_is_no_fault(line: str, made: Made) -> None:
    command = line.format(shlex.quote(str(made("resnet", "QDQ"))))
    pq = f"{sys.executable} -m pyonednn_q"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {pq} {command} 2>err.txt | head -0; cat err.txt >&2"],
        cwd=made("resnet", "QDQ").parent,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert not [each for each in done.stderr.splitlines() if not each.endswith(" ...")]
    full = subprocess.run(
        ["bash", "-c", f"{pq} {command} > /dev/full"],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert full.returncode == 2
    assert "No space left on device" in full.stderr


def test_without_onnxruntime_diff_says_what_it_needs(
    made: Made, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from pyonednn_q.models import peer_sessions

    monkeypatch.setattr(peer_sessions, "find_spec", lambda _: None)
    assert cli.main(["diff", str(made("resnet", "QDQ"))]) == 2
    assert "pip install" in capsys.readouterr().err


@pytest.mark.parametrize(
    "line",
    ["explain relu --dims a=1", "explain relu --exact-rounding", "bench resnet50 --input x.npz",
     "bench resnet50 --seed 1"],
)  # fmt: skip
def test_options_of_models_are_refused_without_one(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command, _, option, *_ = line.split()
    assert cli.main(line.split()) == 2
    assert capsys.readouterr().err.startswith(f"pyonednn-q {command}: {option}: got no model")
