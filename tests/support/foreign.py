"""Tensors of somebody else: producers of DLPack, buffers, and objects that only pretend."""

from __future__ import annotations

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
