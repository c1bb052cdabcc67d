"""ONNX's element types: numbers in a model, NumPy's dtypes, and what integers of them hold."""

from __future__ import annotations

import functools
import importlib
from typing import Any, NamedTuple

import numpy as np

from pyonednn_q.argument import whole
from pyonednn_q.errors import ArgumentError, DTypeError
from pyonednn_q.shown import install, shown


class ElementType(NamedTuple):
    """One element type.

    Parameters
    ----------
    name : str
        Name of the dtype, in NumPy or in ml_dtypes.
    number : int
        TensorProto's.
    lo, hi : int or None
        Lowest and highest code; None for floats.
    is_float8 : bool
        Whether values beyond its range may become infinite or NaN.
    """

    name: str
    number: int
    lo: int | None = None
    hi: int | None = None
    is_float8: bool = False

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's.

        Raises
        ------
        DTypeError
            The type needs ml_dtypes, which is not installed or too old.
        """
        if hasattr(np, self.name):
            return np.dtype(self.name)
        return _borrowed(self.name)


FLOAT, INT32 = 1, 6  # TensorProto's numbers
_TYPES = (
    ElementType("float32", 1),
    ElementType("uint8", 2, 0, 255),
    ElementType("int8", 3, -128, 127),
    ElementType("uint16", 4, 0, 2**16 - 1),
    ElementType("int16", 5, -(2**15), 2**15 - 1),
    ElementType("int32", 6, -(2**31), 2**31 - 1),
    ElementType("float16", 10),
    ElementType("bfloat16", 16),
    ElementType("float8_e4m3fn", 17, is_float8=True),
    ElementType("float8_e4m3fnuz", 18, is_float8=True),
    ElementType("float8_e5m2", 19, is_float8=True),
    ElementType("float8_e5m2fnuz", 20, is_float8=True),
    ElementType("uint4", 21, 0, 15),
    ElementType("int4", 22, -8, 7),
    ElementType("float4_e2m1fn", 23),
    ElementType("float8_e8m0fnu", 24),
    ElementType("uint2", 25, 0, 3),
    ElementType("int2", 26, -2, 1),
    ElementType("float6_e2m3fn", 27),
    ElementType("float6_e3m2fn", 28),
)
FLOAT32 = 1
_PLAIN = {7: "int64", 9: "bool", 11: "float64", 12: "uint32", 13: "uint64"}  # of no codes
_BY_NUMBER = {each.number: each for each in _TYPES}
_BY_NAME = {each.name: each for each in _TYPES}


def chosen(argument: str, value: Any) -> ElementType | None:  # noqa: ANN401 - however it is said
    """Return the element type of an attribute, None for 0, which chooses none.

    Raises
    ------
    ArgumentError, DTypeError
        Naming the argument.
    """
    if isinstance(value, (int, np.integer)) and whole(argument, value) == 0:
        return None
    return element_type(argument, value)


def element_type(argument: str, value: Any) -> ElementType:  # noqa: ANN401 - however it is said
    """Return an element type of a TensorProto number, a dtype, a scalar type or a name.

    Raises
    ------
    ArgumentError, DTypeError
        Naming the argument.

    Examples
    --------
    >>> element_type("output_dtype", 22).name, element_type("output_dtype", np.int8).number
    ('int4', 3)
    """
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        known = _BY_NUMBER.get(whole(argument, value))
        if known is None:
            wanted = f"a TensorProto number of {', '.join(map(str, _BY_NUMBER))}"
            raise ArgumentError(argument, shown(value), wanted)
        return known
    if isinstance(value, str) and value in _BY_NAME:
        return _BY_NAME[value]
    try:
        name = np.dtype(value).name
    except Exception:  # whatever NumPy raises for what is no data type
        name = ""
    if name not in _BY_NAME:
        raise DTypeError(argument, shown(value), f"one of {', '.join(_BY_NAME)}")
    return _BY_NAME[name]


def dtype_name(number: int) -> str:
    """Return the name of TensorProto's type; empty of text and complex numbers."""
    known = _BY_NUMBER.get(number)
    return _PLAIN.get(number, "") if known is None else known.name


@functools.cache
def _borrowed(name: str) -> np.dtype[Any]:
    try:
        dtype: np.dtype[Any] = np.dtype(getattr(importlib.import_module("ml_dtypes"), name))
    except (ImportError, AttributeError):
        wanted = f"a newer package ml_dtypes, which gives NumPy this type: {install('bf16')}"
        raise DTypeError("dtype", name, wanted) from None
    return dtype
