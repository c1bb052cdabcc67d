"""The examples in the docstrings give what they show."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = ("dialects.dialect", "dialects.frameworks", "dialects.method")


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    module = importlib.import_module(f"pyonednn_q.predict.{name}")
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
