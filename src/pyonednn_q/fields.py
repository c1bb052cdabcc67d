"""Whether what was read from a text can be the field of a value, by the field's annotation."""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Mapping
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from pyonednn_q.errors import ArgumentError
from pyonednn_q.shown import shown

__all__ = ["check_fields", "checked_fields", "fits"]

_WIDEST = 2**63 - 1
_NONE: Mapping[str, Any] = {}


def checked_fields(
    cls: type, fields: Mapping[str, object], names: Mapping[str, Any] = _NONE
) -> dict[str, Any]:
    """Return the fields of a dataclass, each of the type that it is annotated with.

    Parameters
    ----------
    cls : type
        A dataclass.
    fields : mapping
        Values by name. Missing ones must have a default.
    names : mapping, optional
        What annotations may name that is not in the module of the class.

    Raises
    ------
    ArgumentError
        Naming the field that is unknown, missing or of another type.
    """
    hints = _hints(cls, tuple(names.items()))
    for name, value in fields.items():
        if name not in hints:
            raise ArgumentError("text", f"{cls.__name__}.{name}", "a field of that class")
        if not fits(value, hints[name]):
            wanted = _words(hints[name])
            got = f"{cls.__name__}.{name} of type {type(value).__name__}"
            raise ArgumentError("text", got, wanted)
    for field in dataclasses.fields(cls):
        has_none = field.default is dataclasses.MISSING is field.default_factory
        if has_none and field.name not in fields:
            raise ArgumentError("text", f"{cls.__name__} without {field.name}", "all its fields")
    return dict(fields)


def check_fields(value: Any) -> None:  # noqa: ANN401 - a dataclass
    """Refuse a dataclass whose fields are of other types than they are annotated with.

    Annotations may name what is in the module of its class when the program runs.

    Raises
    ------
    ArgumentError
        Naming the field.
    """
    cls: Any = type(value)
    for name, hint in _hints(cls, ()).items():
        field = getattr(value, name)
        if not fits(field, hint):
            raise ArgumentError(name, shown(field), _words(hint))


def _words(hint: Any) -> str:  # noqa: ANN401 - an annotation
    if hint is int:
        return f"an int within {_WIDEST}"
    return str(getattr(hint, "__name__", hint))


def fits(value: object, hint: Any) -> bool:  # noqa: ANN401 - an annotation
    """Tell whether a value is of an annotated type; whole numbers are floats, too.

    They have 64 bits: Python's are of any length, and beyond some that cannot be printed.
    """
    origin, inner = get_origin(hint), get_args(hint)
    origin = get_origin(getattr(origin, "__value__", None)) or origin  # of an alias: NDArray
    if origin in (Union, UnionType, Literal):
        is_one = fits if origin is not Literal else _is_same
        return any(is_one(value, one) for one in inner)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if inner[-1] is Ellipsis:
            return all(fits(item, inner[0]) for item in value)
        return len(value) == len(inner) and all(map(fits, value, inner))
    if origin is Mapping and isinstance(value, Mapping):
        return all(fits(key, inner[0]) and fits(one, inner[1]) for key, one in value.items())
    if hint in (int, float):
        is_number = isinstance(value, (int, hint)) and not isinstance(value, bool)
        return is_number and (isinstance(value, float) or _is_wide_enough(value, hint))
    if hint in (Any, None, type(None)):
        return hint is Any or value is None
    return isinstance(value, origin or hint)


def _is_same(value: object, one: object) -> bool:
    return value is one or (type(value) is type(one) and bool(value == one))


def _is_wide_enough(value: Any, hint: type) -> bool:  # noqa: ANN401 - a whole number of any size
    return bool(abs(value) <= (_WIDEST if hint is int else sys.float_info.max))


@functools.cache
def _hints(cls: type, names: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    hints = get_type_hints(cls, vars(sys.modules[cls.__module__]), dict(names))
    return {field.name: hints[field.name] for field in dataclasses.fields(cls)}
