"""Readers of texts and of callers' values: a value of a type, or an error that names the place.

The types are dataclasses and msgspec's structs, and what those hold; `Meta` in an annotation says
which values will do, for the reader and for a JSON Schema alike.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta
from msgspec.inspect import (
    BoolType,
    DictType,
    FloatType,
    IntType,
    LiteralType,
    NoneType,
    StrType,
    Type,
    type_info,
)

from pyonednn_q.argument import instance
from pyonednn_q.errors import ArgumentError, Error
from pyonednn_q.shown import meant, shown

__all__ = [
    "Count",
    "Decibels",
    "Number",
    "Rate",
    "Times",
    "Times64",
    "converted",
    "decoded",
    "place",
    "told",
]

# Finite, and no larger than what is counted or timed in a life.
Count = Annotated[int, Meta(ge=0, lt=2**62)]
Times = Annotated[int, Meta(ge=1, lt=2**31)]
Times64 = Annotated[int, Meta(ge=1, lt=2**62)]
Decibels = Annotated[float, Meta(gt=-(2**63), lt=2**63)]
Number = Annotated[float, Meta(ge=0, lt=2**63)]
Rate = Annotated[float, Meta(gt=0, lt=2**63)]

T = TypeVar("T")

_ENDLESS = "values in values without end"
_PLACE = re.compile(r"(?P<what>.*?)(?: - at (?:`key` in )?`\$(?P<path>.*)`)?", re.DOTALL)
_STEP = re.compile(r"\.(\w+)|\[(\d+|\.\.\.)\]")
_FIELD = re.compile(r"Object (contains unknown|missing required) field `(.*)`", re.DOTALL)
_WORDS: dict[type, str] = {StrType: "a text", BoolType: "true or false"}


def decoded(name: str, text: object, language: str = "JSON") -> Any:  # noqa: ANN401 - what it says
    """Return what a text says: nested dicts, lists and values.

    Parameters
    ----------
    name : str
        Name of the text in error messages.
    text : str
        The text.
    language : str
        "JSON", "TOML", or "TOML or JSON": JSON if it begins with a brace, as TOML never does.

    Raises
    ------
    ArgumentError
        Not in that language; a key that stands twice in a table; tables in tables without end.
    """
    instance(name, text, str)
    plain = str.__str__(text)  # of a subclass, msgspec takes none
    if " or " in language:
        language = "JSON" if plain.lstrip().startswith("{") else "TOML"
    try:
        if language == "JSON":
            return json.loads(plain, object_pairs_hook=_once)
        return msgspec.toml.decode(plain)
    except ArgumentError as error:
        raise ArgumentError(name, f"{error.got} twice", error.wanted) from None
    except RecursionError:
        raise ArgumentError(name, _ENDLESS, f"{language} of a few levels") from None
    except (ValueError, msgspec.DecodeError) as problem:
        raise ArgumentError(name, str(problem), language) from problem


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    table = dict(pairs)
    if len(table) < len(pairs):
        names = [key for key, _ in pairs]
        twice = next(key for key in names if names.count(key) > 1)
        raise ArgumentError("key", shown(twice), "each key of a table once")
    return table


def converted(name: str, value: object, kind: type[T]) -> T:
    """Return nested dicts, lists and values as a value of a type.

    Parameters
    ----------
    name : str
        Name of the value in error messages, before the path of what is wrong.
    value : object
        Result of `decoded`, or a value of a caller in its place.
    kind : type
        A dataclass, a struct, or what else msgspec reads.

    Raises
    ------
    ArgumentError
        Something in it is of another type, or a key is unknown or missing; what a `__post_init__`
        refuses, as it refuses it. All with the path.
    """
    try:
        return msgspec.convert(value, kind, strict=True)
    except RecursionError:
        raise ArgumentError(name, _ENDLESS, "a few levels") from None
    except msgspec.ValidationError as error:
        raise _complaint(name, value, kind, error) from error.__cause__
    except Error:
        raise
    except Exception as error:  # of a caller's own mapping
        got = f"{shown(value)}, which raises {type(error).__name__}"
        raise ArgumentError(name, got, "a table of keys") from error


def place(*parts: str) -> str:
    """Return the path of parts: keys, indices in brackets, and empty ones."""
    return ".".join(filter(None, parts)).replace(".[", "[")


def told(value: object) -> str:
    """Return what came, in the words of JSON and TOML, as short as a message needs it."""
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list):
        return f"a list of {list.__len__(value)}"
    return shown(value).lower() if isinstance(value, bool) else shown(value)


def _complaint(
    name: str,
    value: Any,  # noqa: ANN401
    kind: Any,  # noqa: ANN401
    error: msgspec.ValidationError,
) -> ArgumentError:
    """Return msgspec's complaint as one of ours: where, what came, what would do."""
    match = _PLACE.fullmatch(str(error))
    assert match is not None  # as every text does
    where, form, label = [name], type_info(kind), ""
    for key, index in _STEP.findall(match["path"] or ""):
        step = key or (_of_others(form, value) if index == "..." else int(index))
        where.append(f"[{step}]" if isinstance(step, int) else str(step)[:60])
        form, value = _inside(form, value, step), value[step]
        if isinstance(value, dict) and isinstance(value.get("name"), str):
            label = f" of {value['name']}"
    if isinstance(cause := error.__cause__, ArgumentError):
        return type(cause)(place(*where, cause.argument), cause.got, cause.wanted)
    if field := _FIELD.fullmatch(match["what"]):
        names = _fields(form, value)
        where.append(field[2])
        if field[2] not in names:
            return ArgumentError(place(*where) + label, "an unknown key", _one_of(names, field[2]))
        form, value = names[field[2]], None
    return ArgumentError(place(*where) + label or "value", told(value), _words(form, value))


def _kinds(form: Any) -> list[Any]:  # noqa: ANN401 - one of msgspec's
    return [each for each in getattr(form, "types", (form,)) if not isinstance(each, NoneType)]


def _fields(form: Type, table: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the types of the keys of a table, of the one of its types that its tag names."""
    tables = [each for each in _kinds(form) if hasattr(each, "fields")]
    tags = {each.tag: each for each in tables if getattr(each, "tag", None) is not None}
    fields: dict[str, Any] = {}
    if tags:
        tag_field = tables[0].tag_field
        fields[tag_field] = LiteralType(tuple(tags))
        tag = table.get(tag_field)
        tables = [tags[tag]] if isinstance(tag, str) and tag in tags else []
    return fields | {each.encode_name: each.type for one in tables for each in one.fields}


def _inside(form: Type, value: Any, step: str | int) -> Any:  # noqa: ANN401
    """Return the type of what is under a key or an index of a value."""
    for each in _kinds(form):
        if isinstance(each, DictType):
            return each.value_type
        if isinstance(step, int) and hasattr(each, "item_types"):
            return each.item_types[step]
        if isinstance(step, int) and hasattr(each, "item_type"):
            return each.item_type
    return _fields(form, value)[str(step)]


def _of_others(form: Type, value: Mapping[str, Any]) -> str:
    """Return the key of a value that is wrong among those of one type, which msgspec names none."""
    (one,) = (each for each in _kinds(form) if isinstance(each, DictType))
    kind = getattr(one.value_type, "cls", str)
    for key, each in value.items():
        try:
            msgspec.convert(each, kind, strict=True)
        except msgspec.ValidationError:
            return key
    raise AssertionError


def _one_of(names: Iterable[object], value: object) -> str:
    texts = [str(name) for name in names]
    hint = meant(value, texts) if isinstance(value, str) else ""
    return f"one of {', '.join(texts)}{hint}"


def _words(form: Any, value: object) -> str:  # noqa: ANN401 - one of msgspec's
    """Return what would do, in words."""
    kinds = _kinds(form)
    if len(kinds) > 1:
        return " or ".join(dict.fromkeys(_words(each, value) for each in kinds))
    (one,) = kinds
    if isinstance(one, LiteralType):
        return _one_of(one.values, value)
    if isinstance(one, IntType):
        lo = one.ge
        hi = one.lt - 1 if one.lt is not None else one.le
        return "a whole number" + ("" if lo is None else f" from {lo} to {hi}")
    if isinstance(one, FloatType):
        ends = (("of at least", one.ge), ("above", one.gt), ("below", one.lt), ("at most", one.le))
        limits = " and ".join(f"{how} {end:g}" for how, end in ends if end is not None)
        return f"a number {limits}".rstrip()
    if hasattr(one, "item_type") or hasattr(one, "item_types"):
        least = f" of at least {one.min_length}" if getattr(one, "min_length", 0) else ""
        inner = f", each item {_words(one.item_type, None)}" if hasattr(one, "item_type") else ""
        return f"a list{least}{inner}"
    return _WORDS.get(type(one), "a table of keys")
