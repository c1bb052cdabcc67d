"""A short run of `tests/stress/mixed.py`: threads that share all that is native, and change it."""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[1] / "stress/mixed.py"


def mixed() -> ModuleType:
    """The script as a module: it is a command, and no test."""
    spec = importlib.util.spec_from_file_location("mixed_threads", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def options(script: ModuleType, *words: str) -> argparse.Namespace:
    asked: argparse.Namespace = script.parser().parse_args(words)
    return asked


@pytest.mark.parametrize("what", [(), ("--network", "--threads", "16")])
def test_threads_that_change_what_they_share_are_right(what: tuple[str, ...]) -> None:
    script = mixed()
    said: list[str] = []
    asked = options(script, "--runs", "1", "--seconds", "2", "--disturbances", "0.2", *what)
    assert script.run_many(asked, said.append) == 0, "\n".join(said)
