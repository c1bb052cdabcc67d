"""Files that bench reads: JSON and TOML as values of a type, and what is wrong, by its place.

The types are dataclasses and msgspec's structs; `Meta` in an annotation says which values will do,
for the reader and for the JSON Schema alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from pyonednn_q.argument import instance
from pyonednn_q.errors import ArgumentError
from pyonednn_q.shown import shown

__all__ = ["Count", "Decibels", "Number", "Rate", "Times", "Times64", "read_json", "read_toml"]

# Finite, and no larger than what is counted or timed in a life.
Count = Annotated[int, Meta(ge=0, lt=2**62)]
Times = Annotated[int, Meta(ge=1, lt=2**31)]
Times64 = Annotated[int, Meta(ge=1, lt=2**62)]
Decibels = Annotated[float, Meta(gt=-(2**63), lt=2**63)]
Number = Annotated[float, Meta(ge=0, lt=2**63)]
Rate = Annotated[float, Meta(gt=0, lt=2**63)]

T = TypeVar("T")

_PLACE = re.compile(r"(?P<what>.*?)(?: - at (?:key in )?`\$(?P<path>.*)`)?", re.DOTALL)
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")
_MISFIT = re.compile(r"Expected (?P<wanted>.*?)(?:, got .*)?", re.DOTALL)
_FIELD = re.compile(r"Object (?P<how>contains unknown|missing required) field `(?P<name>.*)`")
_WORDS = {"object": "a table", "array": "a list", "str": "a text", "int": "a whole number"}
_WORDS |= {"float": "a number"}


def read_json(name: str, text: str, kind: type[T], wanted: str) -> T:
    """Return the value of a type that a JSON text holds.

    Parameters
    ----------
    name : str
        Name of the text in error messages.
    text : str
        The text.
    kind : type
        A dataclass, a struct, or what else msgspec reads.
    wanted : str
        Description of a valid text, for error messages.

    Raises
    ------
    ArgumentError
        No JSON, or something in it is of another type.
    """
    return _read(name, text, kind, "JSON", wanted)


def read_toml(name: str, text: str, kind: type[T], wanted: str) -> T:
    """Return the value of a type that a TOML text holds, as `read_json` does."""
    return _read(name, text, kind, "TOML", wanted)


def _read(name: str, text: str, kind: type[T], language: str, wanted: str) -> T:
    instance(name, text, str)
    text = str.__str__(text)  # of a subclass, msgspec takes none
    decode: Callable[..., Any] = (msgspec.json if language == "JSON" else msgspec.toml).decode
    try:
        value: T = decode(text, type=kind)
    except RecursionError:
        raise ArgumentError(name, "values in values without end", f"{language}: {wanted}") from None
    except msgspec.ValidationError as error:
        content = None
        with suppress(ValueError, RecursionError):  # it may be broken further on
            content = decode(text)
        raise _complaint(name, str(error), content, wanted) from None
    except (msgspec.DecodeError, ValueError) as error:
        raise ArgumentError(name, str(error), f"{language}: {wanted}") from None
    return value


def _complaint(name: str, problem: str, content: object, wanted: str) -> ArgumentError:
    """Return msgspec's complaint as one of ours: where, what came, what would do."""
    match = _PLACE.fullmatch(problem)
    assert match is not None  # as every text does
    path = match["path"] or ""
    came, label = _came(content, path)
    where = f"{name}, {path.removeprefix('.')}{label}" if path else name
    field = _FIELD.fullmatch(match["what"])
    if field is not None:
        got = f"{'unknown' if 'unknown' in field['how'] else 'no'} {field['name']}"
        return ArgumentError(where, got, wanted)
    misfit = _MISFIT.fullmatch(match["what"])
    if misfit is None:
        return ArgumentError(where, came, wanted)
    words = re.sub(r"`([^`]*)`", lambda word: _named(word[1]), misfit["wanted"])
    return ArgumentError(where, came, words)


def _named(types: str) -> str:
    """Return msgspec's names of types as words."""
    return " or ".join(_WORDS.get(one, one) for one in types.split(" | "))


def _came(content: Any, path: str) -> tuple[str, str]:  # noqa: ANN401 - whatever the text says
    """Return the value at the path of msgspec's error, and its name."""
    label = ""
    try:
        for key, index in _STEP.findall(path):
            content = content[key or int(index)]
            if isinstance(content, dict) and isinstance(content.get("name"), str):
                label = f" of {content['name']}"
    except (KeyError, IndexError, TypeError):
        return "another type", label
    return "another type" if "[...]" in path else shown(content), label
