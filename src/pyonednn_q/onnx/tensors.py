"""Tensors of ONNX operators: arrays, scales and zero points, checked by ONNX's names of them."""

from __future__ import annotations

import functools
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.ops.arrays import as_array

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Result = TypeVar("Result")

_FLOATS = ("f32", "f16", "bf16")
_SMALL = 1 << 16  # bytes of constants that are remembered with what was made of them


def codes(name: str, value: object) -> Array:
    """Return a tensor of u8 or s8 codes.

    Raises
    ------
    ArgumentError, DTypeError
        Naming the argument.
    """
    array = as_array(name, value)
    if array.dtype not in (np.uint8, np.int8):
        raise DTypeError(name, str(array.dtype), "uint8 or int8")
    return array


def floats(name: str, value: object, like: Array | None = None) -> Array:
    """Return a tensor of f32, f16 or bf16, of the data type of `like` if that is given.

    Raises
    ------
    ArgumentError, DTypeError
        Naming the argument; float64 and integers have no kernels.
    """
    array = as_array(name, value)
    if like is not None and array.dtype != like.dtype:
        raise DTypeError(name, str(array.dtype), f"{like.dtype}, as the first input has")
    wanted = "float32, float16 or bfloat16: oneDNN multiplies no others here"
    dtype = dtypes.from_numpy(array.dtype, name, wanted)
    if dtype not in _FLOATS:
        raise DTypeError(name, str(array.dtype), wanted)
    return array


def scale(name: str, value: Array) -> Array:
    """Return scales in float32: finite, above 0, of any shape.

    Raises
    ------
    ArgumentError, DTypeError
        Naming the argument.
    """
    if value.dtype.kind != "f" and value.dtype.name not in {"bfloat16", "float8_e8m0fnu"}:
        raise DTypeError(name, str(value.dtype), "float32, float16 or bfloat16")
    with np.errstate(over="ignore"):
        single = value.astype(np.float32)
    if not (np.isfinite(single) & (single > 0)).all():
        bad = single[~(np.isfinite(single) & (single > 0))]
        raise ArgumentError(name, str(bad.flat[0]), "values that are finite and above 0")
    return single


def zero_point(name: str, value: Constant | None, dtype: np.dtype[Any], of: str) -> Array:
    """Return zero points in int32; 0 where there are none.

    Parameters
    ----------
    name : str
        Name of the argument.
    value : Constant or None
        Zero point, with the data type of its tensor.
    dtype : numpy.dtype
        Data type of that tensor.
    of : str
        The tensor's name.

    Raises
    ------
    ArgumentError, DTypeError
        Naming the argument.
    """
    if value is None:
        return np.zeros((), np.int32)
    if value.dtype != dtype:
        raise DTypeError(name, str(value.dtype), f"{dtype}, as {of} has")
    return np.asarray(value.array.astype(np.int32))


def dst_point(value: Constant | None, default: np.dtype[Any]) -> tuple[Array, str]:
    """Return y_zero_point in int32, and the data type of codes that it says.

    Parameters
    ----------
    value : Constant or None
        Value; None: 0 of the default type.
    default : numpy.dtype
        Data type of the first input.

    Raises
    ------
    ArgumentError, DTypeError
        Naming the argument.
    """
    point = codes("y_zero_point", np.zeros((), default) if value is None else value.array)
    return point.astype(np.int32), dtypes.from_numpy(point.dtype)


def multiplier(src_scale: Array, wei_scale: Array, dst_scale: Array) -> Array:
    """Return M = f32(f32(src_scale · wei_scale) / dst_scale), which scales broadcast to.

    Raises
    ------
    ArgumentError
        The value is not finite in float32.
    """
    with np.errstate(over="ignore", under="ignore"):
        factor: Array = np.asarray(src_scale * wei_scale / dst_scale)
    if not np.isfinite(factor).all():
        wanted = "scales whose product over y_scale is finite in float32"
        raise ArgumentError("y_scale", str(np.min(dst_scale)), wanted)
    return factor


def one(name: str, array: Array) -> Array:
    """Return the only value of an array.

    Raises
    ------
    ShapeError
        There are several.
    """
    if array.size != 1:
        raise ShapeError(name, str(array.shape), "one value")
    return array.reshape(())


def per_tensor_or_channel(name: str, array: Array, channels: int) -> Array:
    """Return one value, or a vector of one per channel.

    Raises
    ------
    ShapeError
        Neither.
    """
    if array.size == 1:
        return array.reshape(())
    if array.shape != (channels,):
        raise ShapeError(name, str(array.shape), f"one value, or ({channels},)")
    return array


def bias(name: str, value: object, dtype: np.dtype[Any], channels: int) -> Array | None:
    """Return a bias, or None.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument.
    """
    if value is None:
        return None
    array = as_array(name, value)
    if array.dtype != dtype:
        raise DTypeError(name, str(array.dtype), str(dtype))
    if array.shape != (channels,):
        raise ShapeError(name, str(array.shape), f"({channels},): one per output channel")
    return array


class Constant(NamedTuple):
    """A scale or zero point by its content: what was checked of it need not be checked again.

    Parameters
    ----------
    dtype : numpy.dtype
        Data type of the array.
    shape : tuple of int
        Shape of the array.
    data : bytes
        Values in row-major order.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    data: bytes

    @property
    def array(self) -> Array:
        """The values, read-only."""
        return np.frombuffer(self.data, self.dtype).reshape(self.shape)


def content(name: str, value: Any) -> Constant:  # noqa: ANN401 - array_like
    """Return a small tensor by its content.

    Raises
    ------
    ArgumentError, DTypeError
        Naming the argument.
    """
    array = constant(name, value)
    if array.dtype.hasobject:
        raise DTypeError(name, str(array.dtype), "numbers")
    return Constant(array.dtype, array.shape, array.tobytes())


def content_or_none(name: str, value: Any) -> Constant | None:  # noqa: ANN401 - array_like
    """Return a small tensor by its content; None where there is none."""
    return None if value is None else content(name, value)


def by_content(function: Callable[..., Result]) -> Callable[..., Result]:
    """Return a function that caches its results for small constants, not for large ones.

    Parameters
    ----------
    function : callable
        Function of hashable arguments, some of them `Constant`.
    """
    remembered = functools.lru_cache(maxsize=1024)(function)

    @functools.wraps(function)
    def call(*arguments: Any) -> Result:  # noqa: ANN401
        sizes = (len(each.data) for each in arguments if isinstance(each, Constant))
        return (remembered if sum(sizes) <= _SMALL else function)(*arguments)

    return call


@contextmanager
def named(src: str, wei: str, added: str) -> Iterator[None]:
    """Raise errors about src, wei and bias by the names that an operator of ONNX has for them."""
    try:
        yield
    except ArgumentError as error:
        names = {"src": src, "wei": wei, "bias": added}
        if error.argument not in names:
            raise
        raise type(error)(names[error.argument], error.got, error.wanted) from None


def constant(name: str, value: Any) -> Array:  # noqa: ANN401
    """Return a small tensor; scalars of NumPy and floats of Python are some."""
    if isinstance(value, float):
        with np.errstate(over="ignore"):
            return np.asarray(value, np.float32)
    if isinstance(value, np.generic):
        return np.asarray(value)
    return as_array(name, value)
