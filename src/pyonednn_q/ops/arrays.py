"""Tensors of callers as NumPy arrays, without a copy: NumPy, DLPack, the buffer protocol."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.shown import shown

__all__ = ["as_array", "as_output"]

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
            return np.from_dlpack(value)
        except MemoryError:
            raise
        except Exception as error:  # of a producer's own code, which may raise anything
            raise ArgumentError(name, f"{shown(value)}: {error}", _WANTED) from None
    try:
        return np.asarray(memoryview(value))
    except Exception:  # no buffer, or one that NumPy cannot read
        raise ArgumentError(name, type(value).__name__, _WANTED) from None


def as_output(name: str, value: object) -> Array:
    """Return a tensor as an array over the same memory, to be written.

    DLPack cannot always say that memory may be written; an object that offers NumPy the very same
    memory writeable settles it.

    Raises
    ------
    ArgumentError
        As `as_array` does.
    """
    array = as_array(name, value)
    if array.flags.writeable or isinstance(value, np.ndarray) or not hasattr(value, "__array__"):
        return array
    offered = np.asarray(value)
    same = offered.__array_interface__["data"][0] == array.__array_interface__["data"][0]
    return offered if same and offered.flags.writeable else array
