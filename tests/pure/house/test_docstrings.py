"""The examples in all docstrings give what they show."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import numpy as np
import pytest

import pyonednn_q

HERE = Path(pyonednn_q.__file__).parent
PEERS = {"onnx", "onnxruntime", "onnxscript", "openvino", "torch", "torchao"}


def modules() -> dict[str, str]:
    """Return the sources of the modules that show something, by name."""
    sources = {path: path.read_text() for path in sorted(HERE.rglob("*.py"))}
    return {
        ".".join(path.relative_to(HERE).with_suffix("").parts).removesuffix(".__init__"): source
        for path, source in sources.items()
        if ">>> " in source
    }


def runs_primitives(name: str) -> bool:
    return name.startswith(("ops.", "inspection."))


MODULES = [
    pytest.param(name, source, id=name, marks=[pytest.mark.executed] * runs_primitives(name))
    for name, source in modules().items()
]


@pytest.mark.parametrize(("name", "source"), MODULES)
def test_examples(name: str, source: str) -> None:
    try:
        module = importlib.import_module(f"pyonednn_q.{name}")
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in PEERS:
            raise
        pytest.skip(f"{name} needs {package}")
    for package in PEERS.intersection(re.findall(r">>> (?:from|import) (\w+)", source)):
        pytest.importorskip(package)
    result = doctest.testmod(module, extraglobs={"np": np})  # as numpydoc has it
    assert result.failed == 0
    # One that stands where nobody looks for it would never be run.
    assert result.attempted == len(re.findall(r"^\s*>>> ", source, re.MULTILINE))


def test_there_are_examples_in_every_part_of_the_house() -> None:
    rooms = {name.partition(".")[0] for name in modules()}
    assert {"bench", "check", "compose", "explain", "expr", "native", "ops"} <= rooms
    assert {"predict", "qparams", "quantize", "rewrite"} <= rooms
