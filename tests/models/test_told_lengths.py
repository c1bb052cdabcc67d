"""Lengths that are told and a model does not take: an error by the input's name, in one line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import onnx

import pyonednn_q as pq
from pyonednn_q.commands import cli
from pyonednn_q.errors import ShapeError

OPEN = """<ir_version: 8, opset_import: ["" : 17]>
net (float[N,2,H,W] x, float[N,8] z) => (float[N,8] y)
<int64[2] rows = {0, -1}>
{
  c = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(x, w)
  p = MaxPool<kernel_shape = [3, 3], strides = [2, 2]>(c)
  flat = Reshape(p, rows)
  y = Add(flat, z)
}"""
FIXED = OPEN.replace("[N,2,H,W]", "[2,2,7,8]").replace("[N,8]", "[2,8]")
COMMANDS = ("bench", "diff", "run", "explain")
# By what is said: of which file, and what comes of it.
REFUSED = {
    ("x=2x2x7x9", "z=2x8"): (FIXED, r"--dims x: got 2x2x7x9; wanted 2x2x7x8$"),
    ("x=2x3x7x8", "z=2x8"): (OPEN, r"--dims x: got 2x3x7x8; wanted Nx2xHxW$"),
    ("x=2x2x7", "z=2x8"): (OPEN, r"--dims x: got 2x2x7; wanted 4 of them$"),
    ("x=2x2x7x8", "z=1x8"): (
        OPEN, r"--dims z: got 1x8, N = 1; wanted N = 2, as 'x' has$",
    ),
    ("N=3", "x=2x2x7x8", "z=2x8"): (
        OPEN, r"--dims x: got 2x2x7x8, N = 2; wanted N = 3, as is told$",
    ),
    ("N=2", "H=7"): (OPEN, r"--dims: got nothing for 'x', .*; wanted --dims x=2x2x7xN$"),
    ("q=2",): (OPEN, r"--dims: got 'q'; wanted inputs or symbols of 'x', 'z'$"),
}  # fmt: skip


def file_of(text: str, folder: Path) -> str:
    proto = onnx.parser.parse_model(text)
    wei = np.random.default_rng(0).normal(0, 0.3, (8, 2, 3, 3)).astype(np.float32)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(wei, "w"))
    onnx.save(proto, folder / "model.onnx")
    return str(folder / "model.onnx")


def said(lengths: tuple[str, ...]) -> list[str]:
    return [word for each in lengths for word in ("--dims", each)]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("lengths", REFUSED)
def test_what_the_model_has_otherwise(
    command: str, lengths: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, message = REFUSED[lengths]
    assert cli.main([command, file_of(text, tmp_path), *said(lengths)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(message, line.removeprefix(f"pyonednn-q {command}: ")), line


@pytest.mark.parametrize("command", COMMANDS[:3])
@pytest.mark.parametrize(("height", "node"), [(3, "MaxPool"), (20, "Add")])
def test_what_an_inner_node_does_not_take_is_the_inputs_fault(
    command: str, height: int, node: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, x = file_of(OPEN, tmp_path), f"x=2x2x{height}x8"
    options = ["--peers", "onnxruntime"] if command == "bench" else []
    assert cli.main([command, file, *said((x, "z=2x8")), *options]) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert f"--dims: got {x}, z=2x8; wanted lengths that all nodes take; here " in line
    arrays: Any = {"x": np.zeros((2, 2, height, 8), np.float32), "z": np.zeros((2, 8), np.float32)}
    np.savez(tmp_path / "in.npz", **arrays)
    assert cli.main([command, file, "--input", str(tmp_path / "in.npz"), *options]) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert f"--input: got {x}, z=2x8; wanted lengths that all nodes take; here " in line
    assert node in line
    with pytest.raises(ShapeError, match=rf"^inputs: got 'x' \(2, 2, {height}, 8\), 'z' \(2, 8\)"):
        pq.load(file)(arrays)


def test_samples_that_no_node_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arrays: Any = {"x": np.zeros((2, 2, 3, 8), np.float32), "z": np.zeros((2, 8), np.float32)}
    np.savez(tmp_path / "in.npz", **arrays)
    words = ["--data", str(tmp_path / "in.npz"), "--out", str(tmp_path / "out.onnx")]
    assert cli.main(["quantize", file_of(OPEN, tmp_path), *words]) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert "got 'x' 1x2x3x8, 'z' 1x8; wanted lengths that all nodes take; here " in line


def test_a_length_of_0_is_open(tmp_path: Path) -> None:
    """As some exporters write what they do not know."""
    file = file_of(FIXED.replace("[2,2,7,8]", "[2,2,0,8]"), tmp_path)
    assert pq.onnx.load(file, dims={"x": (2, 2, 7, 8)}).inputs["x"].dims == (2, 2, 7, 8)
    with pytest.raises(ShapeError, match=r"^dims\['x'\]: got \(2, 2, 7, 9\)"):
        pq.onnx.load(file, dims={"x": (2, 2, 7, 9)})
