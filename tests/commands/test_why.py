"""``pyonednn-q why``: files that NumPy writes, its exit codes, and lines instead of tracebacks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.commands import cli
from pyonednn_q.inspection.arithmetics import named_arithmetics
from support.terminal import bars, terminal

pytestmark = pytest.mark.executed

RNG = np.random.default_rng(8)
SRC = RNG.integers(0, 256, (1, 8, 6, 6)).astype(np.uint8)
WEI = RNG.integers(-31, 32, (5, 8, 3, 3)).astype(np.int8)
BIAS = RNG.integers(-900, 900, 5).astype(np.int32)
SCALE = RNG.uniform(0.001, 0.002, 5).astype(np.float32)


def described(**changes: Any) -> dict[str, Any]:
    """Return what a user of ONNX Runtime has at hand, and what TFLite would give."""
    arrays: dict[str, Any] = {
        "src": SRC,
        "src_scale": np.float32(0.0625),
        "src_zero_point": np.uint8(5),
        "wei": WEI,
        "wei_scale": SCALE,
        "wei_zero_point": np.zeros(5, np.int8),
        "bias": BIAS,
        "dst_scale": np.array([0.25], np.float32),
        "dst_zero_point": np.uint8(100),
        "padding": [1, 1, 1, 1],
    }
    conv = pq.Conv(
        WEI,
        BIAS,
        src_q=pq.QParams(0.0625, 5, "u8"),
        wei_q=pq.QParams(SCALE, 0, "s8", 0),
        dst_q=pq.QParams(0.25, 100, "u8"),
        padding=1,
        requantize="tflite_2step",
    )
    return {**arrays, "theirs": conv(SRC), **changes}


def why(path: Path, capsys: pytest.CaptureFixture[str], *options: str, **arrays: Any) -> Any:
    """Write a file; return the exit code of the command on it, and what it printed."""
    kept = {name: value for name, value in arrays.items() if value is not None}
    np.savez(path, **kept)
    code = cli.main(["why", str(path), *options])
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    return code, printed.out, printed.err


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "layer.npz"


def test_codes_that_a_name_gives_are_explained(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = why(path, capsys, **described())
    assert (code, err) == (0, "")
    assert "180 outputs" in out
    assert "tflite_2step" in out
    code, out, _ = why(path, capsys, "--json", **described())
    told = json.loads(out)
    assert (code, told["explained"], told["outputs"]) == (0, True, 180)
    assert "tflite_2step" in {one["name"] for one in told["agreements"] if one["equal"] == 180}


def test_a_bar_counts_arithmetics(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal(monkeypatch)
    np.savez(path, **described())
    assert cli.main(["why", str(path)]) == 0
    count = len(named_arithmetics())
    assert bars(capsys) == {"trying arithmetics": (count, count)}


def test_codes_that_nothing_gives_are_not(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    noise = RNG.integers(0, 256, (1, 5, 6, 6)).astype(np.uint8)
    code, out, err = why(path, capsys, **described(theirs=noise))
    assert (code, err) == (1, "")
    assert "gives them all" in out


def test_a_relu_and_every_kind_are_read(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clamped = np.maximum(described()["theirs"], 100)
    code, out, _ = why(path, capsys, "--json", **described(theirs=clamped, relu=True))
    told = json.loads(out)
    assert code == 0
    assert {one["supposing"] for one in told["agreements"]} == {""}
    src, wei = SRC[0, :, :, 0], WEI[:, :6, 0, 0]
    q: dict[str, Any] = {"src_q": pq.QParams(0.0625, 5, "u8"), "dst_q": pq.QParams(0.25, 100, "u8")}
    common = {name: described()[name] for name in ("src_scale", "src_zero_point")}
    common |= {"dst_scale": 0.25, "dst_zero_point": 100, "wei_scale": SCALE, "src": src}
    inner = pq.InnerProduct(wei, wei_q=pq.QParams(SCALE, 0, "s8", 0), **q)
    matmul = pq.MatMul(np.ascontiguousarray(wei.T), wei_q=pq.QParams(SCALE, 0, "s8", 1), **q)
    for op, given, theirs in (
        (None, wei, inner(src)),
        ("inner_product", wei, inner(src)),
        ("matmul", wei.T, matmul(src)),
    ):
        assert why(path, capsys, **common, op=op, wei=given, theirs=theirs)[0] == 0


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"wei": None}, "wei: got nothing"),
        ({"dst_scale": None}, "dst_scale: got nothing"),
        ({"extra": np.ones(3)}, "'extra'"),
        ({"op": "pool"}, "op: got 'pool'"),
        ({"op": np.array(["conv", "conv"])}, "op: "),
        ({"src": SRC.astype(np.float64)}, "src: "),
        ({"theirs": np.ones((1, 6, 6, 5), np.uint8)}, "theirs: got 1x6x6x5"),
        ({"theirs": np.array("text")}, "theirs: "),
        ({"wei_scale": np.ones((5, 1, 1, 1))}, "scale: "),
        ({"src_scale": -1.0}, "scale: "),
        ({"src_zero_point": 300}, "zero_point: "),
        ({"bias": BIAS.astype(np.int64)}, "bias: "),
        ({"padding": "same"}, "padding: "),
        ({"groups": 3}, "wei: "),
        ({"relu": np.ones(2)}, "relu: "),
        ({"op": "matmul"}, "padding: "),
        ({"op": np.array([object()])}, "savez"),
    ],
)
def test_files_of_something_else_are_refused_in_a_line(
    path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], named: str
) -> None:
    code, out, err = why(path, capsys, **{**described(), **changes})
    assert (code, out) == (2, "")
    assert err.startswith("pyonednn-q why: ")
    assert named in err
    assert err.count("\n") == 1


def test_what_is_no_such_file_is_refused_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = tmp_path / "whole.npz"
    np.savez_compressed(whole, **described())
    content = whole.read_bytes()
    (tmp_path / "cut.npz").write_bytes(content[: len(content) // 2])
    spoilt = bytearray(content)
    spoilt[60:200] = bytes(140)
    (tmp_path / "spoilt.npz").write_bytes(bytes(spoilt))
    (tmp_path / "empty.npz").write_bytes(b"")
    (tmp_path / "text.npz").write_text("src = 3\n")
    np.save(tmp_path / "one.npy", SRC)
    huge = (
        b"\x93NUMPY\x01\x00\x76\x00"
        b"{'descr': '|u1', 'fortran_order': False, 'shape': (9999999999999,)}"
    )
    (tmp_path / "huge.npy").write_bytes(huge.ljust(127) + b"\n")
    names = ("cut.npz", "spoilt.npz", "empty.npz", "text.npz", "one.npy", "huge.npy", "none.npz")
    for name in (*names, ""):
        assert cli.main(["why", str(tmp_path / name)]) == 2
        err = capsys.readouterr().err
        assert err.startswith("pyonednn-q why: ")
        assert err.count("\n") == 1
