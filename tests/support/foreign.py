"""Tensors of somebody else: producers of DLPack, buffers, and objects that only pretend."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class Producer:
    """A tensor of a framework, of which only DLPack is known."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __dlpack__(self, **more: Any) -> Any:
        return self.array.__dlpack__(**more)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class OldProducer:
    """A producer from before versions and copies could be asked for."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __dlpack__(self, stream: Any = None) -> Any:
        return self.array.__dlpack__(stream=stream)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class Bf16Producer:
    """A tensor of bf16 in a framework's memory: what it lends says so, as NumPy's own never does.

    Parameters
    ----------
    array : ndarray of bfloat16
        Whose memory it lends.
    versioned : bool
        Whether it knows versions of the protocol, and says that its memory may be written.
    """

    def __init__(self, array: Array, *, versioned: bool = True) -> None:
        self.array = array
        self.versioned = versioned

    def __dlpack_device__(self) -> Any:
        return 1, 0

    def __dlpack__(self, **more: Any) -> Any:
        if not self.versioned:
            more = {}
        capsule = self.array.view(np.uint16).__dlpack__(**more)
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.argtypes, get.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
        is_new = "versioned" in repr(capsule)
        start = get(capsule, b"dltensor_versioned" if is_new else b"dltensor")
        tensor = _Versioned.from_address(start).tensor if is_new else _Tensor.from_address(start)
        assert (tensor.code, tensor.bits, tensor.lanes) == (1, 16, 1)
        tensor.code = 4  # kDLBfloat
        return capsule


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
    ]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint32 * 2),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


class OnDevice(Producer):
    """A tensor that lies on a device."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0  # CUDA


class Raising(Producer):
    """A producer that fails when it is asked."""

    def __init__(self, array: Array, error: Exception) -> None:
        super().__init__(array)
        self.error = error

    def __dlpack__(self, **_: Any) -> Any:
        raise self.error


class Lying(Producer):
    """A producer that returns something else than a capsule."""

    def __dlpack__(self, **_: Any) -> Any:
        return self.array


class WithoutDevice:
    """Something that has __dlpack__ and not the other half."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __dlpack__(self, **more: Any) -> Any:
        return self.array.__dlpack__(**more)


class NotCallable:
    """Something whose __dlpack__ is a number."""

    __dlpack__ = 3
    __dlpack_device__ = (1, 0)


class RaisingArray:
    """Something whose __array__ fails; it has no other way in."""

    def __array__(self, *_: Any, **__: Any) -> Array:
        msg = "no array today"
        raise RuntimeError(msg)


class Own(np.ndarray[Any, Any]):
    """An array of a class of its own."""
