"""Names of data types, their ranges, and the NumPy dtypes that carry them.

A name is oneDNN's without prefix. ``bf16``, ``s4`` and ``u4`` have no NumPy dtype of their own; the
optional package ml_dtypes lends them one (4-bit values then take a byte each in NumPy, half a byte
in a oneDNN tensor). Wherever callers name a type, NumPy's own name for it (``"uint8"``), its scalar
type (``np.uint8``) and its dtype do, too: `checked` makes the short name of them.
"""

from __future__ import annotations

import functools
import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pyonednn_q.errors import DTypeError
from pyonednn_q.shown import install, shown

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import DTypeLike


Array: TypeAlias = np.ndarray[Any, Any]

# What a caller may write for a data type: "u8", "uint8", np.uint8 or np.dtype("uint8").
DType: TypeAlias = str | type[np.generic] | np.dtype[Any]


@dataclass(frozen=True, slots=True)
class _Type:
    bits: int
    numpy: str  # attribute of numpy, or of ml_dtypes
    lo: int | None = None  # None: a float
    hi: int | None = None


_TABLE = {
    "u8": _Type(8, "uint8", 0, 255),
    "s8": _Type(8, "int8", -128, 127),
    "s32": _Type(32, "int32", -(2**31), 2**31 - 1),
    "f32": _Type(32, "float32"),
    "bf16": _Type(16, "bfloat16"),
    "f16": _Type(16, "float16"),
    "s4": _Type(4, "int4", -8, 7),
    "u4": _Type(4, "uint4", 0, 15),
}

_BORROWED = ("bf16", "s4", "u4")

NAMES = tuple(_TABLE)
_OF_NUMPY = {row.numpy: name for name, row in _TABLE.items()}

FLOATS = ("f32", "bf16", "f16")
INT8 = ("u8", "s8")
F32_WHOLE = 2**24  # float32 holds all whole numbers up to it
F32_UNIT = 2.0**-24  # what one float32 rounding changes at most, in parts of the value
F32_BELOW_S32 = 2**31 - 128  # the largest below 2**31: where some kernels saturate
F32_LEAST = 2.0**-126  # the least normal number of float32: below, it is coarser, or 0
F32_FAR = 3.4e38  # float32 is infinite a little beyond


def checked(name: object, argument: str = "dtype", allowed: Collection[str] = NAMES) -> str:
    """Return the one of `allowed` that `name` is.

    Parameters
    ----------
    name : str, numpy.dtype or NumPy scalar type
        Name of a data type: ``"u8"``, ``"uint8"``, ``np.uint8`` and ``np.dtype("uint8")`` are one.
    argument : str
        Name of the argument in the error message.
    allowed : collection of str
        Short names.

    Raises
    ------
    DTypeError
        Naming `argument`.

    Examples
    --------
    >>> checked("u8"), checked(np.uint8), checked("uint8"), checked(np.dtype("int8"))
    ('u8', 'u8', 'u8', 's8')
    """
    if type(name) is str and name in allowed:
        return name
    short = _short(name)
    if short not in allowed:
        raise DTypeError(argument, shown(name), f"one of {', '.join(allowed)}")
    return next(known for known in allowed if known == short)


def _short(name: Any) -> str | None:  # noqa: ANN401
    """Return the short name of a data type, however it is written; None for what is none."""
    if isinstance(name, str):
        return name if name in _TABLE else _OF_NUMPY.get(name)
    is_scalar_type = isinstance(name, type) and issubclass(name, np.generic)
    if not (is_scalar_type or isinstance(name, np.dtype)):
        return None
    try:
        dtype = np.dtype(name)
    except TypeError:  # an abstract one: np.floating
        return None
    return _names(has_bf16()).get(dtype)


def bits(name: str) -> int:
    """Return the number of bits of one value in a oneDNN tensor."""
    return _TABLE[checked(name)].bits


def is_integer(name: str) -> bool:
    """Tell whether values are integers."""
    return _TABLE[checked(name)].lo is not None


def is_float(name: str) -> bool:
    """Tell whether values are floating point."""
    return not is_integer(name)


def qmin(name: str) -> int:
    """Return the smallest value of an integer type.

    Raises
    ------
    DTypeError
        `name` is a float type, or none at all.
    """
    lo = _TABLE[checked(name)].lo
    if lo is None:
        raise DTypeError(argument="dtype", got=name, wanted="an integer type")
    return lo


def qmax(name: str) -> int:
    """Return the largest value of an integer type.

    Raises
    ------
    DTypeError
        `name` is a float type, or none at all.
    """
    hi = _TABLE[checked(name)].hi
    if hi is None:
        raise DTypeError(argument="dtype", got=name, wanted="an integer type")
    return hi


def has_bf16() -> bool:
    """Tell whether `numpy_dtype` knows bf16, that is, whether ml_dtypes is installed."""
    return _ml_dtypes() is not None


def numpy_type(name: str) -> np.dtype[Any]:
    """Return NumPy's type of its own name, ``"uint8"``, or of ml_dtypes', ``"int4"``."""
    if hasattr(np, name):
        return np.dtype(name)
    known: np.dtype[Any] = np.dtype(getattr(importlib.import_module("ml_dtypes"), name))
    return known


def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return the NumPy dtype of `name`, in native byte order.

    Raises
    ------
    DTypeError
        The type needs ml_dtypes, which is not installed.

    Examples
    --------
    >>> numpy_dtype("u8"), numpy_dtype("f32")
    (dtype('uint8'), dtype('float32'))
    """
    row = _TABLE[checked(name)]
    if name not in _BORROWED:
        return np.dtype(row.numpy)
    module = _ml_dtypes()
    if module is None:
        wanted = f"the package ml_dtypes, which gives NumPy this type: {install('bf16')}"
        raise DTypeError(argument="dtype", got=name, wanted=wanted)
    borrowed: np.dtype[Any] = np.dtype(getattr(module, row.numpy))
    return borrowed


def from_numpy(dtype: DTypeLike, argument: str = "dtype", wanted: str = "") -> str:
    """Return the name of a NumPy dtype.

    Parameters
    ----------
    dtype : dtype_like
        Data type that `numpy.dtype` accepts.
    argument : str
        Name of the argument in the error message.
    wanted : str
        Description of valid types, if not all are.

    Raises
    ------
    DTypeError
        No primitive takes the dtype; the message says what to convert it to.

    Examples
    --------
    >>> from_numpy("int8")
    's8'
    """
    try:
        asked = np.dtype(dtype)
    except Exception:  # whatever NumPy raises for what is no data type
        raise DTypeError(argument, shown(dtype), wanted or _WANTED) from None
    native = asked.newbyteorder("=")
    name = _names(_ml_dtypes() is not None).get(native)
    if name is None:
        raise DTypeError(argument, str(asked), wanted or _ADVICE.get(asked.name, _WANTED))
    if native != asked:
        advice = f"native byte order: array.astype({native.name!r})"
        advice = f"{wanted}, in native byte order" if wanted else advice
        raise DTypeError(argument, f"{asked.name} in foreign byte order", advice)
    return name


_WANTED = "uint8, int8, int32, float32, float16, or bfloat16, int4, uint4 of the package ml_dtypes"
_ADVICE = {
    "bool": "array.view('uint8')",
    "float64": "array.astype('float32')",
    "int64": "array.astype('int32') if the values fit",
}


@functools.cache
def _names(borrowed: bool) -> dict[np.dtype[Any], str]:
    known = NAMES if borrowed else tuple(n for n in NAMES if n not in _BORROWED)
    return {numpy_dtype(name): name for name in known}


@functools.cache
def _ml_dtypes() -> Any:  # noqa: ANN401 - a module that need not exist
    try:
        return importlib.import_module("ml_dtypes")
    except ImportError:
        return None
