"""Every reason that a rewrite rule can give for refusing, read from its source.

A rule refuses by ``Refusal(reason)``, in its own body or in a function that it calls; a function
that returns ``str | None`` gives a reason or nothing. What is filled in at run time is an ellipsis.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from pyonednn_q.rewrite.rule import Refusal, Rule

__all__ = ["reasons"]

_OPEN = "…"
_ROOMS = ("pyonednn_q.rewrite.", "pyonednn_q.compose.absorb")


@functools.cache
def reasons(rule: Rule) -> tuple[str, ...]:
    """Return the reasons of a rule, each once, in the order in which its source has them."""
    return tuple(dict.fromkeys(_of(rule.function, set())))


def _of(function: Callable[..., object], seen: set[object]) -> Iterator[str]:
    if function in seen or not isinstance(function, FunctionType):
        return
    seen.add(function)
    if not function.__module__.startswith(_ROOMS) or function.__name__ == "<lambda>":
        return
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    tells = inspect.signature(function).return_annotation == "str | None"
    for node in ast.walk(tree):
        yield from _told(node, tells=tells)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield from _named(function.__globals__.get(node.id), seen)


def _told(node: ast.AST, *, tells: bool) -> Iterator[str]:
    """Give what a refusal says, or a list of reasons is given, or a teller returns."""
    if isinstance(node, ast.Call):
        if ast.unparse(node.func) in {"Refusal", "reasons.append"}:
            yield from _texts(node.args[0])
    elif tells and isinstance(node, ast.Return) and node.value is not None:
        yield from _texts(node.value)


def _named(value: Any, seen: set[object]) -> Iterator[str]:  # noqa: ANN401 - any global
    if isinstance(value, Refusal):
        yield value.reason
    elif isinstance(value, FunctionType):
        yield from _of(value, seen)
    elif isinstance(value, Rule):
        yield from _of(value.function, seen)
    elif isinstance(value, dict):
        for entry in value.values():
            yield from _of(entry, seen)


def _texts(node: ast.expr) -> list[str]:
    """Return the texts that an expression can be; nothing for one that says nothing."""
    texts = [re.sub(f"{_OPEN}( {_OPEN})+", _OPEN, text) for text in _render(node)]
    return [text for text in texts if text.strip(_OPEN + " ")]


def _render(node: ast.expr) -> list[str]:
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.JoinedStr):
        return ["".join(_piece(part) for part in node.values)]
    if isinstance(node, ast.BinOp):
        return [a + b for a in _render(node.left) for b in _render(node.right)]
    if isinstance(node, ast.BoolOp):
        return [text for value in node.values for text in _render(value)]
    if isinstance(node, ast.IfExp):
        return [*_render(node.body), *_render(node.orelse)]
    return [_OPEN]


def _piece(part: ast.expr) -> str:
    return str(part.value) if isinstance(part, ast.Constant) else _OPEN
