"""Layers that stay in floats, and their data types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import TypeAlias

from pyonednn_q.argument import items, named, one_of
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError
from pyonednn_q.native import runtime
from pyonednn_q.shown import shown

FLOAT_TYPES = ("f32", "bf16")
Floats: TypeAlias = Iterable[str] | Mapping[str, str]
Values: TypeAlias = dict[str, Array]

_BF16_LEVELS = ("AVX512_CORE_BF16", "AVX2_VNNI_2")


def float_type(asked: str) -> tuple[str, str]:
    """Return the data type in which a layer runs here, and why it differs from the requested one.

    Parameters
    ----------
    asked : {"f32", "bf16"}
        bf16 becomes f32 on a processor without instructions for it.
    """
    isa = runtime.isa()
    if asked == "bf16" and not any(isa.has(level) for level in _BF16_LEVELS):
        return "f32", f"f32 in place of bf16, for which {isa.text()} has no instructions"
    return asked, f"{asked}, as asked for"


def float_types(floats: object, layers: tuple[str, ...]) -> dict[str, str]:
    """Return the types of layers that stay in floats.

    Parameters
    ----------
    floats : iterable of str, or mapping of str to {"f32", "bf16"}
        Names of layers, or patterns of names (``*``, ``?``, ``[seq]``); f32 unless said.
    layers : tuple of str
        Names of all layers.

    Raises
    ------
    ArgumentError
        A name that is no layer's, a pattern of none; another type.
    """
    if isinstance(floats, Mapping):
        types = named("floats", floats, str)
    else:
        types = dict.fromkeys(items("floats", floats, str), "f32")
    known: dict[str, str] = {}
    for name in sorted(types, key=layers.__contains__):  # what is named comes last, and wins
        dtype = types[name]
        alike = [name] if name in layers else [each for each in layers if fnmatchcase(each, name)]
        if not alike:
            raise ArgumentError("floats", shown(name), f"layers of {shown(layers)}")
        known |= dict.fromkeys(alike, one_of(f"floats[{shown(name)}]", dtype, FLOAT_TYPES))
    return known


def usual_wei_bits() -> int:
    """Return the number of bits of weights whose products this processor adds exactly: 8 or 7."""
    return 8 if runtime.isa().has_vnni() else 7
