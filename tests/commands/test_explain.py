"""`pyonednn-q explain --here` plans for the oneDNN that this process has."""

from __future__ import annotations

import pytest

from pyonednn_q.commands import cli
from pyonednn_q.native import runtime


def test_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", "conv_bias_relu", "--here"]) == 0
    version = ".".join(map(str, runtime.version()))
    assert f"holds for oneDNN {version} on {runtime.isa().text()}" in capsys.readouterr().out
