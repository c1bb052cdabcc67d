"""The node cases that the package onnx ships: the integer operators, and 8-bit (de)quantization."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import SaturationError
from pyonednn_q.native import runtime
from support.peers.onnx_nodes import run_node

nodes: Any = pytest.importorskip("onnx.backend.test.case.node", reason="onnx is not installed")
helper: Any = pytest.importorskip("onnx.helper")

INTEGER = (
    "test_qlinearconv",
    *(
        f"test_qlinearmatmul_{rank}_{kind}_{scale}"
        for rank in ("2D", "3D")
        for kind in ("uint8", "int8")
        for scale in ("float32", "float16")
    ),
    "test_convinteger_without_padding",
    "test_convinteger_with_padding",
    "test_matmulinteger",
)
QUANTIZE = (
    "test_quantizelinear",
    "test_quantizelinear_axis",
    "test_dequantizelinear",
    "test_dequantizelinear_axis",
)


@pytest.fixture(scope="module")
def cases() -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # making the other operators' cases overflows on purpose
        return {case.name: case for case in nodes.collect_testcases(None)}


def computed(case: Any) -> tuple[Any, Any]:
    """What we return for a case, and what is expected."""
    (node,) = case.model.graph.node
    ((given, expected),) = case.data_sets
    named = dict(zip([value.name for value in case.model.graph.input], given, strict=True))
    inputs = [np.asarray(named[name]) if name else None for name in node.input]
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    return run_node(node.op_type, inputs, attributes), np.asarray(expected[0])


@pytest.mark.parametrize("name", [*INTEGER, *QUANTIZE])
def test_node_cases(name: str, cases: dict[str, Any]) -> None:
    try:
        got, want = computed(cases[name])
    except SaturationError as error:
        assert not runtime.isa().has_vnni()
        pytest.skip(str(error))
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


def test_no_case_of_these_operators_is_left_out(cases: dict[str, Any]) -> None:
    operators = {"QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger"}
    found = {
        name
        for name, case in cases.items()
        if len(case.model.graph.node) == 1 and case.model.graph.node[0].op_type in operators
    }
    assert found == set(INTEGER)
