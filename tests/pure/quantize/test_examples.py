"""The examples in the docstrings give what they show."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["alignment", "ranges", "thresholds", "tpu_mlir"])
def test_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"pyonednn_q.quantize.{name}"))
    assert result.attempted > 0
    assert result.failed == 0
