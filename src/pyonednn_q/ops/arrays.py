"""Tensors of callers as NumPy arrays, without a copy: NumPy, DLPack, the buffer protocol.

NumPy reads no bf16 from DLPack. Such a tensor is lent to it as 16-bit integers, and seen as the
bfloat16 of ml_dtypes again.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.shown import shown

Array = np.ndarray[Any, Any]

_MEMORY = 2**47  # bytes that a process can address
_ON_CPU = (1, 3)  # DLPack's numbers of the CPU and of memory that it shares with CUDA
_ELSEWHERE = "on a device of DLPack's type {}"
_WANTED = "a NumPy array, a CPU tensor with __dlpack__, or an object with a buffer"


def as_array(name: str, value: Any) -> Array:  # noqa: ANN401 - what it is, is the question
    """Return a tensor as an array over the same memory.

    Parameters
    ----------
    name : str
        Of the argument, for errors.
    value : ndarray, object with __dlpack__, or buffer
        A tensor that a framework holds on the CPU. Strides are kept: channels last stays so.

    Raises
    ------
    ArgumentError
        Nothing of the kind, or a tensor that cannot be shared: on another device, or of a type that
        NumPy lacks. Lists of numbers are not taken: they have no data type.
    ShapeError
        Dimensions beyond any memory.
    """
    array = _shared(name, value)
    if array.nbytes > _MEMORY:  # strides of 0 can claim that
        wanted = "no more than memory has addresses for"
        raise ShapeError(name, f"{array.shape}, {array.nbytes} bytes", wanted)
    return array


def _shared(name: str, value: Any) -> Array:  # noqa: ANN401
    if isinstance(value, np.ma.MaskedArray):
        wanted = "an array without mask, for example array.filled(0)"
        raise ArgumentError(name, "a masked array", wanted)
    if isinstance(value, np.ndarray):
        return np.asarray(value)  # of no subclass: matrices multiply where arrays scale
    if hasattr(value, "__dlpack__"):
        try:
            device = value.__dlpack_device__()[0]  # NumPy does not look
            if device not in _ON_CPU:
                raise BufferError(_ELSEWHERE.format(device))
            return _from_dlpack(value)
        except MemoryError:
            raise
        except Exception as error:  # of a producer's own code, which may raise anything
            raise ArgumentError(name, f"{shown(value)}: {error}", _WANTED) from None
    try:
        return np.asarray(memoryview(value))
    except Exception:  # no buffer, or one that NumPy cannot read
        raise ArgumentError(name, type(value).__name__, _WANTED) from None


def _from_dlpack(value: Any) -> Array:  # noqa: ANN401
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError):  # a data type that NumPy lacks
        bits = _AsIntegers(value)
        array = np.from_dlpack(bits)
        if not bits.are_bf16:
            raise
        return array.view(dtypes.numpy_dtype("bf16"))


class _AsIntegers:
    """A producer of DLPack whose bf16 tensors say that they hold unsigned integers of 16 bits.

    In a capsule, the tensor's data type (code, bits: a byte each; lanes: two) follows a pointer,
    two 32-bit numbers of the device and one of the dimensions. A versioned capsule has four words
    of its own before it.
    """

    _AT = ((b"dltensor", 20), (b"dltensor_versioned", 52))
    _BF16 = bytes((4, 16, 1, 0))  # DLPack's bfloat, 16 bits, one lane
    _U16 = bytes((1, 16, 1, 0))

    def __init__(self, value: Any) -> None:  # noqa: ANN401
        self.value = value
        self.are_bf16 = False

    def __dlpack_device__(self) -> Any:  # noqa: ANN401
        return self.value.__dlpack_device__()

    def __dlpack__(self, **asked: Any) -> Any:  # noqa: ANN401
        capsule = self.value.__dlpack__(**asked)
        api = ctypes.pythonapi
        api.PyCapsule_IsValid.argtypes = api.PyCapsule_GetPointer.argtypes = (
            ctypes.py_object,
            ctypes.c_char_p,
        )
        api.PyCapsule_GetPointer.restype = ctypes.c_void_p
        for name, at in self._AT:
            if api.PyCapsule_IsValid(capsule, name):
                place = api.PyCapsule_GetPointer(capsule, name) + at
                if ctypes.string_at(place, 4) == self._BF16:
                    ctypes.memmove(place, self._U16, 4)
                    self.are_bf16 = True
        return capsule


def as_output(name: str, value: object) -> Array:
    """Return a tensor as an array over the same memory, to be written.

    DLPack without versions cannot say that memory may be written; an object that offers NumPy the
    very same memory writeable settles it.

    Raises
    ------
    ArgumentError
        As `as_array` does.
    """
    array = as_array(name, value)
    if array.flags.writeable or isinstance(value, np.ndarray) or not hasattr(value, "__array__"):
        return array
    try:
        offered = _offered(value, array.dtype)
    except Exception:  # of a producer's own code
        return array
    same = offered.__array_interface__["data"][0] == array.__array_interface__["data"][0]
    return offered if same and offered.flags.writeable else array


def _offered(value: Any, dtype: np.dtype[Any]) -> Array:  # noqa: ANN401
    """Return what an object offers NumPy; torch offers bf16 as integers alone."""
    if dtype.name != "bfloat16":
        return np.asarray(value)
    framework = sys.modules[type(value).__module__.partition(".")[0]]
    return np.asarray(value.view(framework.int16)).view(dtype)
