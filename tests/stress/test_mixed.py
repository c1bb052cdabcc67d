"""Many runs of `mixed.py`, each a process of threads that change what they share."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.stress
@pytest.mark.parametrize("what", [(), ("--network", "--threads", "16")])
def test_many_runs_are_right(what: tuple[str, ...], request: pytest.FixtureRequest) -> None:
    runs = str(request.config.getoption("--mixed-runs"))
    command = [sys.executable, str(Path(__file__).with_name("mixed.py")), "--runs", runs, *what]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout
