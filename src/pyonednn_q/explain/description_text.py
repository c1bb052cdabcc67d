"""Descriptions as text: TOML or JSON in, TOML out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyonednn_q.argument import instance, whole
from pyonednn_q.errors import ArgumentError
from pyonednn_q.reading import decoded
from pyonednn_q.shown import shown

__all__ = ["dumps", "parse"]


def parse(text: str, name: str) -> Any:  # noqa: ANN401 - whatever the text says
    """Return the content of a text: JSON if it begins with a brace, as TOML never does, else TOML.

    Parameters
    ----------
    text : str
        The text.
    name : str
        Name in error messages.

    Raises
    ------
    ArgumentError
        Neither of the two.
    """
    instance("name", name, str)
    return decoded(name or "text", text, "TOML or JSON")


def dumps(tables: Mapping[str, Any]) -> str:
    """Return a description as TOML, a key a line, the steps of its chain a line each.

    Raises
    ------
    ArgumentError
        Naming the key whose value TOML has no words for.

    Examples
    --------
    >>> print(dumps({"op": "matmul", "src": {"dims": [2, 3]}, "chain": ["relu"]}))
    op = "matmul"
    src = {dims = [2, 3]}
    chain = [
        "relu",
    ]
    """
    instance("tables", tables, Mapping)
    lines = []
    for key, value in tables.items():
        instance("key", key, str)
        try:
            if key == "chain" and isinstance(value, list) and value:
                steps = "".join(f"    {_toml(key, step)},\n" for step in value)
                lines.append(f"{key} = [\n{steps}]")
            else:
                lines.append(f"{key} = {_toml(key, value)}")
        except RecursionError:
            raise ArgumentError(key, "tables in tables without end", "a few levels") from None
    return "\n".join(lines)


def _toml(key: str, value: object) -> str:
    if isinstance(value, Mapping):
        pairs = (f"{name} = {_toml(f'{key}.{name}', item)}" for name, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(key, item) for item in value) + "]"
    if type(value) not in (str, int, float, bool):
        raise ArgumentError(key, shown(value), "a text, a number, true, false, a list or a table")
    if type(value) is int:
        whole(key, value, -(2**63), 2**63 - 1)  # of TOML
    # JSON writes text, numbers, true and false as TOML does, but for infinities.
    return repr(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)
