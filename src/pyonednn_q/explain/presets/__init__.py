"""Presets: descriptions that come with the package, as TOML beside this file.

A file may begin with a table ``usual``: what its presets have unless they say otherwise.
"""

from __future__ import annotations

import copy
import functools
from importlib import resources
from typing import Any

from pyonednn_q.argument import instance
from pyonednn_q.errors import ArgumentError
from pyonednn_q.explain.description_text import parse
from pyonednn_q.shown import meant, shown

__all__ = ["FILES", "get", "names"]

FILES = ("layers", "subgraphs", "chains")


def names(file: str | None = None) -> tuple[str, ...]:
    """Return the names of all presets, or of those in one file."""
    return tuple(name for name, (home, _) in _all().items() if file in (None, home))


def get(name: str) -> dict[str, Any]:
    """Return the description of a preset, as `read` takes it.

    Raises
    ------
    ArgumentError
        There is none of that name.
    """
    instance("preset", name, str)
    presets = _all()
    if name not in presets:
        raise ArgumentError(
            "preset", shown(name), f"a name that --list shows{meant(name, presets)}"
        )
    return copy.deepcopy(presets[name][1])


@functools.cache
def _all() -> dict[str, tuple[str, dict[str, Any]]]:
    presets = {}
    for file in FILES:
        text = resources.files(__package__).joinpath(f"{file}.toml").read_text("utf-8")
        tables = parse(text, f"{file}.toml")
        usual = tables.pop("usual", {})
        presets.update({name: (file, {**usual, **table}) for name, table in tables.items()})
    return presets
