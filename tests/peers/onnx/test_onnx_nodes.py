"""The node cases that the package onnx ships, all of those of our operators."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest

from support.onnx_operators import meaning
from support.onnx_operators.draw import NodeCall
from support.onnx_operators.models import OPERATORS, ours

onnx: Any = pytest.importorskip("onnx", reason="onnx is not installed")
nodes: Any = pytest.importorskip("onnx.backend.test.case.node")

INTEGER = {"QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger"}
FLOAT = {"Conv", "ConvTranspose", "Gemm", "MatMul"}


def is_ours(case: Any) -> bool:
    return len(case.model.graph.node) == 1 and case.model.graph.node[0].op_type in OPERATORS


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # making the other operators' cases overflows on purpose
    CASES = {case.name: case for case in nodes.collect_testcases(None) if is_ours(case)}


def array(value: Any) -> Any:
    is_proto = isinstance(value, onnx.TensorProto)
    return onnx.numpy_helper.to_array(value) if is_proto else np.asarray(value)


def calls(case: Any) -> list[tuple[NodeCall, list[Any]]]:
    """Return a case's calls and what each must give."""
    (node,) = case.model.graph.node
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    attributes = {
        name: value.decode() if isinstance(value, bytes) else value
        for name, value in attributes.items()
    }
    names = [value.name for value in case.model.graph.input]
    found = []
    for inputs, outputs in case.data_sets:
        named = dict(zip(names, map(array, inputs), strict=True))
        in_order = [named[name] if name else None for name in node.input]
        found.append((NodeCall(node.op_type, in_order, attributes), list(map(array, outputs))))
    return found


def bound(call: NodeCall) -> Any:
    """Return how far two float32 results of a call can be apart."""
    sized: list[Any] = [
        None if value is None else abs(value.astype(np.float64)) for value in call.inputs
    ]
    attributes, added = call.attributes, (*sized, None)[2]
    terms = int(np.prod(sized[1].shape))  # no more are summed
    if call.op_type == "MatMul":
        sizes = np.matmul(sized[0], sized[1])
    elif call.op_type == "Gemm":
        left = sized[0].T if attributes.get("transA") else sized[0]
        right = sized[1].T if attributes.get("transB") else sized[1]
        sizes = abs(attributes.get("alpha", 1.0)) * (left @ right)
        sizes = sizes + (0.0 if added is None else abs(attributes.get("beta", 1.0)) * added)
    else:
        of = meaning.transposed if call.op_type == "ConvTranspose" else meaning.convolved
        sizes = of(sized[0], sized[1], attributes)
        assert added is None
    return 2 * meaning.float32_bound(sizes, terms, 4)


@pytest.mark.parametrize("name", sorted(CASES))
def test_node_cases(name: str) -> None:
    for call, expected in calls(CASES[name]):
        got = ours(call)
        assert len(got) == len(expected)
        for value, wanted in zip(got, expected, strict=True):
            assert value.dtype == wanted.dtype
            assert value.shape == wanted.shape
            if call.op_type in FLOAT:
                apart = abs(value.astype(np.float64) - wanted.astype(np.float64))
                assert (apart <= bound(call)).all()
            else:
                np.testing.assert_array_equal(value, wanted)


def test_no_case_of_these_operators_is_left_out() -> None:
    counts = Counter(case.model.graph.node[0].op_type for case in CASES.values())
    integer = sum(counts[name] for name in INTEGER)
    print(f"{len(CASES)} node cases, {integer} of them of integer operators: {dict(counts)}")  # noqa: T201
    assert set(counts) == set(OPERATORS)
    assert (len(CASES), integer) == (77, 12)
