"""The table of operator kinds beside ONNX's own schemas."""

from __future__ import annotations

import pytest

from pyonednn_q.graph.kind import Kind
from pyonednn_q.graph.kinds import KINDS

onnx = pytest.importorskip("onnx")
OWN = [row for row in KINDS.values() if "." not in row.name]


@pytest.mark.parametrize("row", OWN, ids=str)
def test_an_operator_is_there_since_the_opset_of_its_row(row: Kind) -> None:
    versions = [
        each.since_version
        for each in onnx.defs.get_all_schemas_with_history()
        if each.domain == "" and each.name == row.name
    ]
    assert row.since == min(versions)


@pytest.mark.parametrize("row", [row for row in OWN if row.axis_since], ids=str)
def test_the_axis_changed_in_the_opset_of_its_row(row: Kind) -> None:
    assert onnx.defs.get_schema(row.name, row.axis_since).since_version == row.axis_since
    assert "axis" in onnx.defs.get_schema(row.name, row.axis_since).attributes
