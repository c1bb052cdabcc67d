"""The room of torch is there without torch, and says what its names need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import pyonednn_q as pq

ROOT = Path(__file__).parents[3]
NAMES = ["ExactQuantizer", "QuantizedLayer", "load", "quantize", "swap"]


def child(code: str) -> str:
    path = f"import sys; sys.path.insert(0, {str(ROOT / 'src')!r})\n"
    done = subprocess.run(
        [sys.executable, "-c", path + code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_is_among_the_names_of_the_package_and_has_names() -> None:
    assert "torch" in dir(pq)
    assert dir(pq.torch) == sorted(pq.torch.__all__) == NAMES
    assert not hasattr(pq.torch, "lod")


def test_each_name_says_which_package_is_missing() -> None:
    code = (
        "for name in ('onnxscript', 'torch', 'torchao'): sys.modules[name] = None\n"
        "import pyonednn_q as pq\n"
        "for name in dir(pq.torch):\n"
        "    try:\n"
        "        getattr(pq.torch, name)\n"
        "    except pq.errors.LibraryError as error:\n"
        "        print(error)\n"
        "print('torch' in dir(pq))"
    )
    *told, last = child(code).splitlines()
    assert [line.partition(" needs the package torch")[0] for line in told] == [
        f"pyonednn_q.torch.{name}" for name in NAMES
    ]
    assert all(": pip install " in line for line in told)
    assert last == "True"


def test_models_of_torch_are_known_by_their_class_alone() -> None:
    """Where a model is expected, one of torch is told what takes it; torch is not imported."""
    pytest.importorskip("onnx")
    module = type("Module", (), {"__module__": "torch.nn.modules.module"})
    with pytest.raises(pq.ArgumentError, match="Net, a model of torch; wanted what pyonednn_q"):
        pq.load(type("Net", (module,), {})())
