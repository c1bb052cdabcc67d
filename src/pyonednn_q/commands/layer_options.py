"""Options of ``pyonednn-q explain`` of a layer."""

from __future__ import annotations

from functools import partial

from pyonednn_q.commands.option_table import FLAG, OptionRow
from pyonednn_q.explain.description import POLICIES

__all__ = ["OPTIONS"]

_EXPLAIN = ("explain",)
_LAYER = partial(OptionRow, commands=_EXPLAIN, only="problem")
OPTIONS = (
    OptionRow(
        "layer", _EXPLAIN, "preset, file, - or model", how={"nargs": "?", "metavar": "LAYER"}
    ),
    _LAYER("--list", help="list the presets", how=FLAG),
    _LAYER("--show", help="print the description, as TOML", how=FLAG),
    _LAYER("--policy", help="which rewrites may fire", how={"choices": POLICIES}),
    _LAYER(
        "--dst", help="data type of dst, instead of the description's", how={"metavar": "DTYPE"}
    ),
    _LAYER("--strict", help="refuse steps that are left over", how=FLAG),
    OptionRow("--trace", _EXPLAIN, "print every rewrite and refusal", how=FLAG),
    _LAYER("--benchdnn", help="add the line for benchdnn", how=FLAG),
    _LAYER("--isa", help="plan for this instruction set, as in ONEDNN_MAX_CPU_ISA"),
    _LAYER("--version", help="plan for this version of oneDNN: 3.7, 3.13.2"),
    _LAYER("--here", help="plan for the oneDNN of this process", how=FLAG),
)
