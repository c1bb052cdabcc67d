"""`_core.pyi` says of the extension what the extension says of itself: names, parameters, types."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

import pyonednn_q
from pyonednn_q.native import runtime

pytestmark = pytest.mark.executed

STUB = ast.parse((Path(pyonednn_q.__file__).parent / "_core.pyi").read_text())
# What pybind11 writes of a type, and what type checkers call it.
SPELLINGS = (
    (r"typing\.SupportsInt \| typing\.SupportsIndex", "int"),
    (r"typing\.SupportsFloat \| typing\.SupportsIndex", "float"),
    (r"typing\.Annotated\[numpy\.typing\.ArrayLike, [\w.]+\]", "ArrayLike"),
    (r"numpy\.ndarray", "NDArray[Any]"),
    (r"pyonednn_q\._core\.|collections\.abc\.|numpy\.typing\.", ""),
    (r"numpy\.", "np."),
)
LOOSE = ("dict", "list", "tuple", "np.dtype")  # pybind11 does not know of what
PLAIN = ("same_bytes", "hot_call", "hot_call_with_residual", "_hot", "__init_subclass__")
Signature = tuple[list[tuple[str, str]], list[str], str]


def signature(function: ast.FunctionDef) -> Signature:
    """Return name and type of each parameter but self, the defaults, and the type of the result."""
    given = function.args
    taken = [(each.arg, each.annotation) for each in (*given.posonlyargs, *given.args)]
    if given.vararg is not None:
        taken.append((f"*{given.vararg.arg}", None))
    taken += [(f"{each.arg}=", each.annotation) for each in given.kwonlyargs]
    if taken and taken[0][0] in {"self", "arg0"}:
        del taken[0]
    parameters = [(name, ast.unparse(kind) if kind else "") for name, kind in taken]
    defaults = [ast.unparse(each) for each in (*given.defaults, *given.kw_defaults) if each]
    return parameters, defaults, ast.unparse(function.returns) if function.returns else ""


def stated(text: str) -> Signature:
    """Return what the first line of a docstring says, in the spelling of type checkers."""
    line = text.splitlines()[0]
    for pattern, spelling in SPELLINGS:
        line = re.sub(pattern, spelling, line)
    name = "" if line[0] != "(" else "getter"
    (function,) = ast.parse(f"def {name}{line}: ...").body
    assert isinstance(function, ast.FunctionDef)
    return signature(function)


def agrees(ours: Signature, theirs: Signature) -> bool:
    def same(mine: str, other: str) -> bool:
        loose = other in LOOSE and mine.startswith(f"{other}[")
        return mine == other or loose or (other == "object" and bool(mine))

    (taken, defaults, result), (other_taken, other_defaults, other_result) = ours, theirs
    return (
        [name for name, _ in taken] == [name for name, _ in other_taken]
        and all(
            name[0] == "*" or same(mine, other)
            for (name, mine), (_, other) in zip(taken, other_taken, strict=True)
        )
        and defaults == other_defaults
        and same(result, other_result)
    )


def defined(body: list[ast.stmt]) -> dict[str, ast.stmt]:
    """Return what a stub defines, by name."""
    found: dict[str, ast.stmt] = {}
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = node
        elif isinstance(node, ast.AnnAssign):
            found[ast.unparse(node.target)] = node
    return found


def members(owner: Any) -> dict[str, Any]:
    """Return what a class of the extension defines: what pybind11 adds to each is left out."""
    kept = {"__init__", "__init_subclass__"}
    return {
        name: value
        for name, value in vars(owner).items()
        if name in kept or not name.startswith(("__", "_pybind11"))
        if name != "__init__" or type(value).__name__ == "instancemethod"
    }


def functions() -> list[Any]:
    """Return every function, method and getter that the stub has, with its owner."""
    found = []
    for node in STUB.body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        owner = node.name if isinstance(node, ast.ClassDef) else ""
        found += [
            pytest.param(owner, each, id=f"{owner}.{each.name}".strip("."))
            for each in inner
            if isinstance(each, ast.FunctionDef) and each.name not in PLAIN
        ]
    return found


def test_the_stub_has_every_name() -> None:
    core = runtime.extension()
    ours = defined(STUB.body)
    assert set(ours) == {name for name in vars(core) if name[0] != "_"} | {"__version__"}
    for name, node in ours.items():
        if isinstance(node, ast.ClassDef):
            assert set(defined(node.body)) == set(members(getattr(core, name))), name


@pytest.mark.parametrize(("owner", "function"), functions())
def test_the_stub_has_its_parameters_and_types(owner: str, function: ast.FunctionDef) -> None:
    core: Any = runtime.extension()
    value = vars(getattr(core, owner))[function.name] if owner else getattr(core, function.name)
    is_getter = "property" in map(ast.unparse, function.decorator_list)
    assert is_getter == isinstance(value, property)
    text = value.fget.__doc__ if is_getter else value.__doc__
    assert agrees(signature(function), stated(text)), text


def test_what_was_not_made_by_pybind11_says_what_it_takes() -> None:
    core: Any = runtime.extension()
    assert core.same_bytes.__doc__.startswith("f(one, other):")
    (function,) = (each for each in STUB.body if getattr(each, "name", "") == "same_bytes")
    assert isinstance(function, ast.FunctionDef)
    assert [each.arg for each in function.args.posonlyargs] == ["one", "other"]
    assert type(core.HotCallable.__dict__["__init_subclass__"]).__name__ == "classmethod_descriptor"


@pytest.mark.parametrize(
    "wrong",
    [
        "def pack(self, name: str) -> Memory: ...",
        "def pack(self, array: NDArray[Any], name: str) -> Memory: ...",
        "def pack(self, name: str, array: ArrayLike) -> Memory: ...",
        "def pack(self, name: str, array: NDArray[Any] = ...) -> Memory: ...",
        "def pack(self, name: str, *, array: NDArray[Any]) -> Memory: ...",
        "def pack(self, name: str, array: NDArray[Any]) -> Layout: ...",
    ],
)
def test_a_wrong_stub_is_noticed(wrong: str) -> None:
    core: Any = runtime.extension()
    (function,) = ast.parse(wrong).body
    assert isinstance(function, ast.FunctionDef)
    assert not agrees(signature(function), stated(core.Candidate.pack.__doc__))
