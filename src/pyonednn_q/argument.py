"""Checks of single arguments and of the fields of a value, which all rooms share.

Each names the argument when it refuses, and returns the value as a plain one of ours. An exception
that a caller's object raises, when it is asked for a number, an item or an array, becomes an
`ArgumentError` that names the argument.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import islice, repeat
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from pyonednn_q.errors import ArgumentError, Error, ShapeError
from pyonednn_q.report.progress import length
from pyonednn_q.shown import meant, shown

__all__ = [
    "applied",
    "broadcast",
    "check_fields",
    "content",
    "count",
    "each",
    "fits",
    "flag",
    "function",
    "instance",
    "integers",
    "items",
    "named",
    "numbers",
    "one_of",
    "ordered",
    "path",
    "real",
    "whole",
]

Array = np.ndarray[Any, Any]
Kind = TypeVar("Kind")

MANY = 1 << 20  # items of a sequence: a longer one counts as endless
_BEYOND_F32 = 2.0**128 - 2.0**103  # the least number that float32 rounds to infinity
_NO_SEQUENCE = (str, bytes, bytearray, AbstractSet, Mapping)
_INTEGERS = "a sequence of integers"
_ARRAYS = ("__array__", "__array_interface__", "__array_struct__", "__dlpack__")


def instance(argument: str, value: object, *kinds: type) -> None:
    """Refuse a `value` of any other type."""
    if not isinstance(value, kinds):
        wanted = ", ".join(kind.__name__ for kind in kinds)
        raise ArgumentError(argument, type(value).__name__, wanted)


def one_of(argument: str, value: object, allowed: tuple[str, ...]) -> str:
    """Return the one of `allowed` that `value` is."""
    if not isinstance(value, str) or value not in allowed:
        hint = meant(value, allowed) if type(value) is str else ""
        raise ArgumentError(argument, shown(value), f"one of {', '.join(allowed)}{hint}")
    return allowed[allowed.index(value)]


def flag(argument: str, value: object) -> bool:
    """Return `value`, and refuse what is neither True nor False."""
    if not isinstance(value, bool):
        raise ArgumentError(argument, shown(value), "True or False")
    return value


def function(argument: str, value: object) -> None:
    """Refuse what cannot be called."""
    if not callable(value):
        raise ArgumentError(argument, shown(value), "a function")


def applied(argument: str, function: Callable[[Any], Any], value: Any) -> Any:  # noqa: ANN401
    """Return the result of a caller's function for an array: as many numbers, or truths."""
    try:
        result = np.asarray(function(value))
    except Error:
        raise
    except Exception as error:
        got = f"a function that raises {type(error).__name__}"
        raise ArgumentError(argument, got, "one that takes an array") from error
    if result.shape != np.shape(value) or result.dtype.kind not in "biuf":
        got = f"a function that gives {result.dtype} of shape {result.shape}"
        raise ArgumentError(argument, got, f"numbers of shape {np.shape(value)}")
    return result


def whole(argument: str, value: Any, lo: int = -(2**31), hi: int = 2**31 - 1) -> int:  # noqa: ANN401
    """Return `value` as an int from `lo` to `hi`."""
    number = value if type(value) is int else _index(value)
    if number is None or not lo <= number <= hi:
        raise ArgumentError(argument, shown(value), f"an integer from {lo} to {hi}")
    return number


def real(
    argument: str,
    value: Any,  # noqa: ANN401
    *,
    infinite: bool = False,
    wide: bool = False,
) -> float:
    """Return `value` as a float that is still finite as f32, or infinite where allowed.

    Parameters
    ----------
    argument : str
        Name of the argument.
    value : object
        A number of Python or NumPy.
    infinite : bool
        Infinities will do.
    wide : bool
        Whether the value need be finite in float64 only.
    """
    if not isinstance(value, (int, float, np.integer, np.floating)):
        raise ArgumentError(argument, shown(value), "a number")
    try:
        number = float(value)
    except Exception:  # a whole number beyond float64, or a caller's own kind of number
        number = math.nan
    largest = math.inf if wide else _BEYOND_F32
    if not (abs(number) < largest or (infinite and math.isinf(number))):
        wanted = "a number that is finite" if wide else "a number that is finite in f32"
        raise ArgumentError(argument, shown(value), wanted)
    return number


def integers(argument: str, values: Iterable[Any]) -> tuple[int, ...]:
    """Return `values` as a tuple of ints.

    Raises
    ------
    ShapeError
        A value is not an integer (a float is not, even a whole one), or not one of 64 bits; or the
        values have no order.
    """
    numbers = values if type(values) is tuple else _listed(argument, values, _INTEGERS)
    if not {*map(type, numbers)} <= {int}:
        indices = [_index(value) for value in numbers]
        if None in indices:
            raise ShapeError(argument, shown(values), _INTEGERS)
        numbers = [index for index in indices if index is not None]
    if numbers and not -(2**63) <= min(numbers) <= max(numbers) < 2**63:
        raise ShapeError(argument, shown(tuple(numbers)), "integers of 64 bits")
    return tuple(numbers)


def ordered(argument: str, values: object) -> None:
    """Refuse sets and mappings, whose elements come in no order that a caller gave."""
    if isinstance(values, (AbstractSet, Mapping)):
        raise ShapeError(argument, shown(values), _INTEGERS)


def items(argument: str, values: object, *kinds: type) -> tuple[Any, ...]:
    """Return the items of a sequence, each an instance of one of `kinds`."""
    wanted = ", ".join(map(operator.attrgetter("__name__"), kinds))
    # What says that it is a tuple may be anything.
    listed: Any = values
    if type(values) is not tuple:
        listed = _listed(argument, values, f"a sequence of {wanted}")
    for at, item in enumerate(listed):
        instance(f"{argument}[{at}]", item, *kinds)
    return tuple(listed)


def named(argument: str, values: object, *kinds: type) -> dict[str, Any]:
    """Return a mapping of names to instances of one of `kinds` as a dict; None is empty."""
    if values is None:
        return {}
    try:
        mapping: dict[Any, Any] | None = dict(values) if isinstance(values, Mapping) else None
    except Exception:  # of a caller's own mapping
        mapping = None
    if mapping is None or not all(isinstance(name, str) for name in mapping):
        raise ArgumentError(argument, shown(values), "a mapping of names to values")
    for name, value in mapping.items():
        instance(f"{argument}[{name!r}]", value, *kinds)
    return mapping


def path(argument: str, value: Any) -> Path:  # noqa: ANN401
    """Return the name of a file as a path."""
    try:
        file = Path(os.fspath(value))
        is_name = b"\0" not in os.fsencode(file)
    except Exception:  # no path, or letters that no file can have in its name
        is_name = False
    if not is_name:
        raise ArgumentError(argument, shown(value), "the name of a file")
    return file


def content(argument: str, file: Path) -> str:
    """Return the content of a file: text in UTF-8.

    Raises
    ------
    ArgumentError
        The file is not in UTF-8.
    OSError
        The file cannot be read.
    """
    try:
        return file.read_text("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise ArgumentError(argument, f"{file}: {problem}", "text in UTF-8") from None


def numbers(argument: str, value: object, kinds: str = "iuf") -> Array:
    """Return real numbers as an array: of an array, a number, or numbers in lists of equal length.

    Parameters
    ----------
    argument : str
        Name of the argument.
    value : array_like
        Array, which is not copied, or what NumPy makes an array of.
    kinds : str
        Kinds of NumPy dtypes that are taken: signed and unsigned integers, floats, booleans ("b").

    Raises
    ------
    ArgumentError
        Anything else: text, complex numbers, dates, rows of different lengths, objects.
    """
    # Not whatever can be counted and indexed: that need not end.
    value = integers(argument, value) if isinstance(value, range) else value
    is_known = isinstance(value, (np.ndarray, np.generic, int, float, list, tuple))
    if not (is_known or any(hasattr(type(value), name) for name in _ARRAYS)):
        raise ArgumentError(argument, shown(value), "numbers")
    try:
        array = np.asarray(value)
    except MemoryError:
        raise
    except Exception:  # ragged rows, or what a caller's own object raises
        raise ArgumentError(argument, shown(value), "numbers, in rows of equal length") from None
    if array.dtype.kind not in kinds:
        got = f"{shown(value)} of {shown(array.dtype)}" if array.ndim else shown(value)
        wanted = "booleans" if kinds == "b" else "numbers" if "f" in kinds else "integers"
        raise ArgumentError(argument, got, wanted)
    return array


def each(argument: str, values: Iterable[Kind]) -> Iterator[Kind]:
    """Give the items of an iterable, which need not end; what it raises is wrong with it."""
    try:
        yield from values
    except Error:
        raise
    except Exception as error:
        got = f"{shown(values)}, which raises {type(error).__name__}"
        raise ArgumentError(argument, got, "an iterable to read") from error


def count(argument: str, values: object) -> int | None:
    """Return how many items an iterable says it has, or None; what `len` raises is its fault."""
    try:
        return length(values)
    except Exception as error:
        got = f"{shown(values)}, whose length raises {type(error).__name__}"
        raise ArgumentError(argument, got, "an iterable to read") from error


def broadcast(argument: str, array: Array, shape: tuple[int, ...]) -> Array:
    """Return an array as one of that shape, its dimensions of 1 repeated."""
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        wanted = f"what broadcasts to {shown(shape)}"
        raise ShapeError(argument, f"shape {shown(array.shape)}", wanted) from None


def _index(value: Any) -> int | None:  # noqa: ANN401
    try:
        return int(operator.index(value))
    except Exception:  # a caller's own __index__ may raise anything
        return None


def _listed(argument: str, values: Any, wanted: str) -> list[Any]:  # noqa: ANN401
    if isinstance(values, _NO_SEQUENCE):
        raise ShapeError(argument, shown(values), wanted)
    try:
        listed = list(islice(iter(values), MANY + 1))
    except Exception:  # no sequence, or one that breaks
        raise ShapeError(argument, shown(values), wanted) from None
    if len(listed) > MANY:
        raise ShapeError(argument, f"more than {MANY} items", wanted)
    return listed


_WIDEST = 2**63 - 1


def check_fields(value: Any, kind: type | None = None) -> None:  # noqa: ANN401 - a dataclass
    """Refuse a dataclass whose fields are of other types than they are annotated with.

    Annotations may name what is in the module of its class when the program runs. With `kind`, the
    value is a namespace of some fields of that class.

    Raises
    ------
    ArgumentError
        Naming the field.
    """
    for name, hint in _hints(kind or type(value)).items():
        if kind is not None and not hasattr(value, name):
            continue
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
        return any(map(is_one, repeat(value), inner))
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if inner[-1] is Ellipsis:
            return all(map(fits, value, repeat(inner[0])))
        return len(value) == len(inner) and all(map(fits, value, inner))
    if origin is Mapping and isinstance(value, Mapping):
        return all(fits(key, inner[0]) and fits(one, inner[1]) for key, one in value.items())
    if hint in (int, float):
        kind = type(value)  # an object may say that it is of another class
        is_number = issubclass(kind, (int, hint)) and not issubclass(kind, bool)
        return is_number and (issubclass(kind, float) or _is_wide_enough(value, hint))
    if hint in (Any, None, type(None)):
        return hint is Any or value is None
    return isinstance(value, origin or hint)


def _is_same(value: object, one: object) -> bool:
    return value is one or (type(value) is type(one) and bool(value == one))


def _is_wide_enough(value: Any, hint: type) -> bool:  # noqa: ANN401 - a whole number of any size
    return bool(abs(value) <= (_WIDEST if hint is int else sys.float_info.max))


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    hints = get_type_hints(cls, vars(sys.modules[cls.__module__]))
    # Fields that no caller gives follow from the others.
    return {field.name: hints[field.name] for field in dataclasses.fields(cls) if field.init}
