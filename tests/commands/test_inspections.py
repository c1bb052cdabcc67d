"""``pyonednn-q inspect``: problems, suites and files in, a text, a table or JSON out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.bench.trial import Trial
from pyonednn_q.commands import cli
from pyonednn_q.errors import UnsupportedError

pytestmark = pytest.mark.executed

PROBLEM = "conv 1x8x6x6 8x8x3x3 padding=1"


def inspect(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str]:
    code = cli.main(["inspect", *map(str, words)])
    printed = capsys.readouterr()
    assert bool(printed.err) == (code == 2)
    return code, printed.out + printed.err


def test_one_problem_is_told_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = inspect(capsys, PROBLEM, "--tail", "relu")
    assert code == 0
    assert out.startswith("convolution src:u8:1x8x6x6")
    assert "work            16384 multiplications" in inspect(capsys, "matmul 8x64 64x32")[1]


def test_several_are_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = inspect(capsys, PROBLEM, "ip 2x8 4x8", "--dtype", "f32,u8s8u8")
    assert code == 0
    head, *rows = out.splitlines()
    assert head.split()[:3] == ["line", "dtype", "implementation"]
    assert [row.count("u8s8u8") for row in rows] == [0, 1, 0, 1]


def test_json_is_what_inspect_writes(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = inspect(capsys, PROBLEM, "--json")
    (found,) = json.loads(out)
    assert code == 0
    assert (found["line"], found["dtype"]) == (PROBLEM, "u8s8u8")
    assert found["implementation"]
    assert found["macs"] == 36 * 8 * 8 * 9


def test_a_file_is_the_operator_that_it_describes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    src, wei = np.ones((1, 8, 6, 6), np.uint8), np.ones((8, 8, 3, 3), np.int8)
    np.savez(tmp_path / "layer.npz", src=src, wei=wei, src_scale=0.5, wei_scale=0.25, padding=1)
    code, out = inspect(capsys, tmp_path / "layer.npz", "--json")
    conv = pq.Conv(
        wei, src_q=pq.QParams(0.5, 0, "u8"), wei_q=pq.QParams(0.25, 0, "s8"), padding=1,
        allow_reference=True,
    )  # fmt: skip
    wanted = pq.inspect(conv, src.shape)
    (found,) = json.loads(out)
    assert code == 0
    assert found["implementation"] == wanted.implementation
    assert found["problem"] == wanted.problem


def test_what_no_kernel_takes_is_a_finding(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> object:
        raise UnsupportedError("refused", "choosing", "a problem", "no kernel")

    monkeypatch.setattr(Trial, "of", refuse)
    code, out = inspect(capsys, PROBLEM, "ip 2x8 4x8")
    assert code == 1
    assert out.count("refused: ") == 2


@pytest.mark.parametrize("words", [["none.npz"], ["nothing"], ["conv 1x2"], ["one.npz"]])
def test_bad_use_is_one_line(
    words: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("one.npz", src=np.ones((2, 2), np.uint8))
    code, said = inspect(capsys, *words)
    assert code == 2
    assert said.startswith("pyonednn-q inspect: ")
    assert len(said.splitlines()) == 1
