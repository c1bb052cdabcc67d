"""Every case of the standard's backend tests: right in each form, or refused for a known reason."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("onnx", reason="onnx is not installed")

import onnx

import standard_cases
from pyonednn_q.graph.kinds import KINDS
from pyonednn_q.onnx.reference_repairs import REPAIRED, repaired_operators
from support.standard.cases import cases
from support.standard.verdict import judged

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "standard_cases.md"

pytestmark = pytest.mark.executed


def test_every_case() -> None:
    results = [(case, judged(case)) for case in cases()]
    assert len(results) > 2000
    assert [fault for _, verdict in results for fault in verdict.wrong] == []
    assert [why for _, verdict in results for why in verdict.unknown] == []
    right = sum(not verdict.reason for _, verdict in results)
    print(f"{len(results)} cases, {right} right, the others refused")  # noqa: T201
    if f"(here {onnx.__version__})" in PAGE.read_text():  # of another there are other cases
        again = "run: python tools/pages/standard_cases.py > docs/reference/standard_cases.md"
        assert "".join(standard_cases.page(results)) == PAGE.read_text(), again


def test_what_is_repaired_is_told() -> None:
    made = {each.__name__ for opset in (7, 13, 20) for each in repaired_operators({"": opset})}
    assert made == set(REPAIRED)
    assert all(KINDS[name].compared for name in made)
