"""Commands on models from anywhere: a result, a finding or one line, whatever the bytes are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from support.hostile.chunk import Report, run_chunk

if TYPE_CHECKING:
    from pathlib import Path

CHUNK = 500
SHARE = 3  # of the models that are only read


def test_commands_on_models_tampered_with(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """A third of what `--hostile-models` says, from `--hostile-seed` on."""
    from support.hostile.commands import COMMANDS, one_command

    count = request.config.getoption("--hostile-models") // SHARE
    first = request.config.getoption("--hostile-seed")
    report = Report()
    for start in range(first, first + count, CHUNK):
        seeds = range(start, min(start + CHUNK, first + count))
        report.add(run_chunk(seeds, tmp_path / "trace", one_command))
    print({name: report.outcomes[name] for name in sorted(report.outcomes)})  # noqa: T201
    assert not report.wrong, "\n".join(report.wrong)
    for name, *_ in COMMANDS:
        assert report.outcomes[f"{name}: right"] > report.plain[f"{name}: right"] > 0
        assert report.outcomes[f"{name}: refused"] > 0
