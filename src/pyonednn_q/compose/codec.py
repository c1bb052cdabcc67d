"""Frozen values to JSON and back, without loss: every float by its shortest round trip."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from pyonednn_q.argument import check_fields
from pyonednn_q.compose.choice import Choice, Option
from pyonednn_q.compose.record import Record
from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.interval import Interval
from pyonednn_q.expr.steps import (
    Affine,
    Binary,
    Chain,
    Clip,
    Eltwise,
    Leaf,
    PRelu,
    Round,
    Sum,
)
from pyonednn_q.expr.vec import Vec
from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.dense_facts import PrimitiveFacts
from pyonednn_q.primitive.isa import Facts, InstructionSet
from pyonednn_q.primitive.post_ops import POST_OPS
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.reading import decoded
from pyonednn_q.rewrite.rule import Exactness
from pyonednn_q.shown import shown

__all__ = ["dumps", "loads"]

SCHEMA = 1

_STEPS = (Affine, Binary, Clip, Eltwise, Leaf, PRelu, Round, Sum)
_VALUES = (
    Attr,
    Scale,
    ZeroPoint,
    TensorSpec,
    Facts,
    InstructionSet,
    PrimitiveFacts,
    Interval,
    Exactness,
    Record,
    Choice,
    Option,
)
# Made of one field, by its name: what makes them, and what would do.
_MADE: dict[str, tuple[str, Any, str]] = {
    "Vec": ("value", Vec, "a number, or a list of them"),
    "Chain": ("steps", lambda steps: Chain(*steps), "a list of steps"),
}
_FOLLOWS = {"Plan": ("notes",)}  # what texts once held of it, and what follows from the rest
_FLOATS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_CLASSES: dict[str, type] = {cls.__name__: cls for cls in (*_STEPS, *_VALUES, *POST_OPS)}


def dumps(value: object) -> str:
    """Return a value as JSON text: `{"schema": 1, "value": ...}`."""
    return json.dumps({"schema": SCHEMA, "value": _plain(value)}, allow_nan=False)


def loads(text: str, classes: Mapping[str, type] | None = None) -> object:
    """Return the value that `dumps` wrote.

    Parameters
    ----------
    text : str
        JSON.
    classes : mapping, optional
        Further dataclasses that may occur, by name.

    Raises
    ------
    ArgumentError
        Not such a text: no JSON, another schema, an unknown class or field, or a field of another
        type.
    """
    data = decoded("text", text)
    if not isinstance(data, dict) or data.get("schema") != SCHEMA or "value" not in data:
        got = f"schema {shown(data.get('schema'))}" if isinstance(data, dict) else shown(data)
        raise ArgumentError("text", got, f"schema {SCHEMA}")
    try:
        makers = {name: make for name, (_, make, _) in _MADE.items()}
        return _value(data["value"], {**_CLASSES, **makers, **(classes or {})})
    except RecursionError:
        got = "values in values without end"
        raise ArgumentError("text", got, "some levels of them") from None


def _plain(value: Any) -> Any:  # noqa: ANN401 - any field
    if isinstance(value, float) and not math.isfinite(value):
        return {"is": "float", "value": repr(value)}
    if isinstance(value, Vec):
        channels = value.least if value.array is None else value.array.tolist()
        return {"is": "Vec", "value": _plain(channels)}
    if isinstance(value, Chain):
        return {"is": "Chain", "steps": [_plain(step) for step in value]}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        # The others follow from these.
        fields = [field for field in dataclasses.fields(value) if field.init]
        plain = {field.name: _plain(getattr(value, field.name)) for field in fields}
        return {"is": type(value).__name__, **plain}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value


def _value(plain: Any, classes: Mapping[str, type]) -> Any:  # noqa: ANN401 - any field
    if isinstance(plain, list):
        return tuple(_value(item, classes) for item in plain)
    if not isinstance(plain, dict):
        return plain
    name = str(plain.get("is"))
    ignored = ("is", *_FOLLOWS.get(name, ()))
    fields = {key: _value(item, classes) for key, item in plain.items() if key not in ignored}
    if name == "float" and str(fields.get("value")) in _FLOATS:
        return _FLOATS[str(fields["value"])]
    if name not in classes:
        got = f"{name} with {', '.join(fields) or 'no fields'}"
        raise ArgumentError("text", got, "a class of a plan and its fields")
    cls = classes[name]
    known = _known(name, cls)
    for each in fields.keys() - known.keys():
        raise ArgumentError("text", f"{name}.{each}", "a field of that class")
    for each, is_needed in known.items():
        if is_needed and each not in fields:
            raise ArgumentError("text", f"{name} without {each}", "all its fields")
    try:
        value = cls(**fields)
        if name not in _MADE:
            check_fields(value)
    except ArgumentError as error:
        got = f"{name}.{error.argument}: {error.got}"
        raise type(error)("text", got, error.wanted) from error
    except (TypeError, AttributeError) as error:  # of Python, amid what a constructor does
        raise _misfit(name, cls, fields) from error
    return value


def _known(name: str, cls: type) -> dict[str, bool]:
    """Return the fields of a class, and whether a text must have each."""
    if name in _MADE:
        return {_MADE[name][0]: True}
    fields = [field for field in dataclasses.fields(cls) if field.init]
    return {
        each.name: each.default is dataclasses.MISSING is each.default_factory for each in fields
    }


def _misfit(name: str, cls: type, fields: Mapping[str, Any]) -> ArgumentError:
    """Say which field no constructor can use."""
    if name in _MADE:
        field, _, wanted = _MADE[name]
        return ArgumentError("text", f"{name}.{field}: {shown(fields[field])}", wanted)
    try:
        check_fields(SimpleNamespace(**fields), cls)
    except ArgumentError as error:
        return ArgumentError("text", f"{name}.{error.argument}: {error.got}", error.wanted)
    got = ", ".join(f"{field} {shown(value)}" for field, value in fields.items())
    return ArgumentError("text", f"{name} of {got}", "values that go together")
