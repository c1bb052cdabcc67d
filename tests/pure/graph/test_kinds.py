"""The table of operator kinds says what it must, and alone."""

from __future__ import annotations

import ast
import dataclasses
from pathlib import Path

import pytest

import operator_kinds
from pyonednn_q.expr.algs import ALGS
from pyonednn_q.expr.steps import Eltwise, Step
from pyonednn_q.graph import kinds
from pyonednn_q.graph.kind import Kind
from pyonednn_q.graph.kinds import KINDS, kind_of

PACKAGE = Path(__file__).parents[3] / "src" / "pyonednn_q"
ROOMS = ("onnx", "network", "models", "torch")
# What onnx.reference computes otherwise than ONNX says, by ONNX's names: there a name is all.
DEFINITIONS = ("reductions", "regions", "repairs", "resizing", "shapes", "windows")
ALLOWED = {PACKAGE / "onnx" / f"reference_{name}.py" for name in DEFINITIONS}


def test_a_name_is_that_of_one_row() -> None:
    named = [each for each in vars(kinds).values() if isinstance(each, Kind)]
    assert all(KINDS[each.name] is each for each in named)
    assert all(name == row.name for name, row in KINDS.items())
    assert len(KINDS) > 150


@pytest.mark.parametrize("row", KINDS.values(), ids=str)
def test_columns_of_a_row_agree(row: Kind) -> None:
    assert (row.step is not None) == (row.chain in {"step", "activation"})
    if row.step is not None:
        assert isinstance(row.step({}), Step)
    if row.means:
        assert row.form
        assert row.means in KINDS
    assert bool(row.pool) == bool(row.over)
    assert not row.reshapes or row.moves == "always"
    assert not row.alg or row.alg in ALGS
    assert (row.bound in {"function", "exponential"}) == (row.units > 0)
    assert (row.bound == "function") == (row.slope > 0)


def test_attributes_that_a_node_leaves_out_are_those_of_onnx() -> None:
    # https://onnx.ai/onnx/operators: the defaults of alpha and beta.
    assert kinds.LEAKY_RELU.step is not None
    assert kinds.LEAKY_RELU.step({}) == Eltwise("relu", 0.01)
    assert kinds.LEAKY_RELU.step({"alpha": 0.5}) == Eltwise("relu", 0.5)
    assert kinds.HARD_SIGMOID.step is not None
    assert kinds.HARD_SIGMOID.step({"beta": 0.25}) == Eltwise("hardsigmoid", 0.2, 0.25)
    assert kinds.GELU.step is not None
    assert kinds.GELU.step({"approximate": "tanh"}) == Eltwise("gelu_tanh")


def test_the_nearest_element_is_moved_and_a_mean_of_some_is_not() -> None:
    assert kinds.RESIZE.moves_values({})
    assert not kinds.RESIZE.moves_values({"mode": "linear"})
    assert kinds.MAX_POOL.moves_values({})
    assert not kinds.AVERAGE_POOL.moves_values({})


def test_what_has_no_row_says_nothing_but_whether_it_is_of_codes() -> None:
    unknown = kind_of("com.microsoft.QAttention")
    assert unknown.is_of_codes
    assert not kind_of("com.example.Attention").is_of_codes
    plain = dataclasses.asdict(Kind("", compared=False))
    assert dataclasses.asdict(unknown) == {**plain, "name": "com.microsoft.QAttention"}


def test_the_page_of_kinds_is_the_table() -> None:
    page = PACKAGE.parents[1] / "docs" / "reference" / "operator_kinds.md"
    again = "run: python tools/pages/operator_kinds.py > docs/reference/operator_kinds.md"
    assert "".join(operator_kinds.page()) == page.read_text(), again


def classes(room: str) -> set[str]:
    trees = [ast.parse(path.read_text()) for path in (PACKAGE / room).glob("*.py")]
    return {n.name for tree in trees for n in ast.walk(tree) if isinstance(n, ast.ClassDef)}


def test_what_computes_a_kind_is_an_operator_or_an_operation_of_networks() -> None:
    known = classes("ops") | classes("network")
    assert {row.ours for row in KINDS.values() if row.ours} - known == set()


def literals(tree: ast.Module) -> set[tuple[int, str]]:
    """Text of a module, by its lines, but for the names that it exports."""
    exported = {
        id(each)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        for each in ast.walk(node)
    }
    return {
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if id(node) not in exported
    }


def kinds_named_in(tree: ast.Module) -> set[tuple[int, str]]:
    own = {part for name in KINDS for part in (name, name.rpartition(".")[2])}
    return {(line, text) for line, text in literals(tree) if text in own}


def test_no_kind_is_named_but_in_the_table() -> None:
    paths = [path for room in ROOMS for path in (PACKAGE / room).glob("*.py")]
    assert len(paths) > 80
    named = {
        f"{path.relative_to(PACKAGE)}:{line} {text}"
        for path in paths
        if path not in ALLOWED
        for line, text in kinds_named_in(ast.parse(path.read_text()))
    }
    assert named == set()
    assert all(kinds_named_in(ast.parse(path.read_text())) for path in ALLOWED)


def test_a_name_of_a_kind_is_noticed() -> None:
    tree = ast.parse('__all__ = ["Concat"]\nif node.kind == "MatMulNBits":\n    how = "Nothing"\n')
    assert kinds_named_in(tree) == {(2, "MatMulNBits")}
