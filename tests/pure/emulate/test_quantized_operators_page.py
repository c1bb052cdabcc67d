"""docs/reference/quantized_operators.md is what its tool writes, and its example is executed."""

from __future__ import annotations

import contextlib
import inspect
import io
import re
from pathlib import Path

import pytest

import quantized_operators
from pyonednn_q import emulate as quantized

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "quantized_operators.md"


def test_the_page_is_the_catalogue() -> None:
    written = "\n".join(quantized_operators.page()) + "\n"
    again = "run: python tools/pages/quantized_operators.py > docs/reference/quantized_operators.md"
    assert written == PAGE.read_text(), again


def test_the_example_prints_what_the_page_says() -> None:
    code, output, *_ = re.findall(r"```(?:python|text)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert printed.getvalue() == output


@pytest.mark.parametrize("operator", quantized.ARITHMETIC)
def test_every_operator_of_the_catalogue_documents_its_dialects(operator: str) -> None:
    function = getattr(quantized, operator)
    default = inspect.signature(function).parameters["dialect"].default
    assert default in quantized.ARITHMETIC[operator]
    assert "dialect" in function.__doc__
