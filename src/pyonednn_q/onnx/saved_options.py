"""Options of `fuse` in the model's file, as metadata that other runtimes ignore."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pyonednn_q.compose.codec import parsed
from pyonednn_q.errors import ArgumentError
from pyonednn_q.shown import shown

__all__ = ["KEY", "options_of", "text_of"]

KEY = "pyonednn_q.fuse"  # among ONNX's metadata_props
VERSION = 1
NAMES = ("exact_rounding", "keep_rounding", "floats", "saturation", "blocks")


def text_of(options: Mapping[str, Any]) -> str:
    """Return options of `fuse` as the text of the metadata `KEY`.

    Examples
    --------
    >>> text_of({"keep_rounding": False})
    '{"version": 1, "keep_rounding": false}'
    """
    return json.dumps({"version": VERSION, **options})


def options_of(metadata: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return the options of `fuse` that a model's file has; none where it has none.

    Parameters
    ----------
    metadata : iterable of (str, str)
        Keys and texts. What an option may be is left to `fuse`.

    Raises
    ------
    ArgumentError
        Another version, and what `text_of` does not write.
    """
    text = dict(metadata).get(KEY)
    if text is None:
        return {}
    argument = f"model: metadata {KEY}"
    options = parsed(argument, text)
    if not isinstance(options, dict) or options.get("version") != VERSION:
        got = options.get("version") if isinstance(options, dict) else options
        raise ArgumentError(argument, shown(got), f"version {VERSION}")
    known = {name: each for name, each in options.items() if name != "version"}
    for name in known:
        if name not in NAMES:
            raise ArgumentError(argument, shown(name), f"options of {shown(NAMES)}")
    return known
