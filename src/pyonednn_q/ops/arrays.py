"""Arrays of callers: taken without a copy, checked by name, in the dims that primitives take.

NumPy reads no bf16 from DLPack. Such a tensor is lent to it as 16-bit integers, and seen as the
bfloat16 of ml_dtypes again.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import named
from pyonednn_q.compose.stages import RESIDUAL, SRC
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.expr.steps import Leaf
from pyonednn_q.native.arrays import check_out, refuse_mask
from pyonednn_q.qparams import along
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from pyonednn_q.primitive.dense_facts import DenseProblem
    from pyonednn_q.primitive.tensor import TensorSpec

Dims = tuple[int, ...]

_MEMORY = 2**47  # bytes that a process can address
_ON_CPU = (1, 3)  # DLPack's numbers of the CPU and of memory that it shares with CUDA
_ELSEWHERE = "on a device of DLPack's type {}"
_WANTED = "a NumPy array, a CPU tensor with __dlpack__, or an object with a buffer"


def as_array(name: str, value: Any) -> Array:  # noqa: ANN401 - what it is, is the question
    """Return a tensor as an array over the same memory.

    Parameters
    ----------
    name : str
        Name of the argument, for errors.
    value : ndarray, object with __dlpack__, or buffer
        A tensor that a framework holds on the CPU. Strides are kept: channels last stays so.

    Raises
    ------
    ArgumentError
        Not an array, or a tensor that cannot be shared: on another device, or of a type that NumPy
        lacks. Lists of numbers are refused, since they have no data type.
    ShapeError
        Dimensions beyond any memory.
    """
    refuse_mask(name, value)
    # Of no subclass: matrices multiply where arrays scale.
    array = np.asarray(value) if isinstance(value, np.ndarray) else _shared(name, value)
    if array.nbytes > _MEMORY:  # strides of 0 can claim that
        wanted = "no more than memory has addresses for"
        raise ShapeError(name, f"{array.shape}, {array.nbytes} bytes", wanted)
    return array


def by_name(argument: str, names: tuple[str, ...], values: tuple[Any, ...]) -> dict[str, Any]:
    """Return the arrays of a call by the names of inputs.

    Parameters
    ----------
    argument : str
        Name of the argument in errors.
    names : tuple of str
        Names of the inputs, in order.
    values : tuple
        One for each input; or one mapping of all of them.

    Raises
    ------
    ArgumentError
        Another number, or other names.

    Examples
    --------
    >>> by_name("inputs", ("a", "b"), (1, 2)), by_name("inputs", ("a", "b"), ({"b": 2, "a": 1},))
    ({'a': 1, 'b': 2}, {'a': 1, 'b': 2})
    """
    if len(values) == 1 and isinstance(values[0], Mapping):
        known = named(argument, values[0], object)
        if set(known) != set(names):
            raise ArgumentError(argument, shown(sorted(known)), shown(sorted(names)))
        return {name: known[name] for name in names}
    if len(values) != len(names):
        raise ArgumentError(argument, f"{len(values)}", f"{len(names)}: {shown(names)}")
    return dict(zip(names, values, strict=True))


def _shared(name: str, value: Any) -> Array:  # noqa: ANN401
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
        Errors of `as_array`.
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


_TAKEN = frozenset((SRC, "out", RESIDUAL))


def check_name(argument: str, name: str) -> None:
    """Refuse a leaf that is called as an argument of a call.

    Raises
    ------
    ArgumentError
        Naming `argument`.
    """
    if name in _TAKEN:
        wanted = "another name: a call has an argument of this one"
        raise ArgumentError(argument, f"a leaf called {name!r}", wanted)


def operand(leaves: Mapping[str, Leaf], name: str, value: object, problem: DenseProblem) -> Array:
    """Return the value of a leaf as an array.

    Parameters
    ----------
    leaves : mapping of str to Leaf
        Leaves that there are, by name.
    name : str
        Name of the leaf.
    value : ndarray
        Array from a call.
    problem : ConvProblem, DeconvProblem, InnerProductProblem or MatMulProblem
        Problem whose dst sets the dims of the leaf, or its channels or rows.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        A leaf has no value or a wrong one, or there is no such leaf; the error names it.
    """
    if name not in leaves:
        wanted = f"one of {', '.join(leaves)}" if leaves else "none: there are no leaves"
        raise ArgumentError("operands", shown(name), wanted)
    leaf = leaves[name]
    if not isinstance(value, (np.ndarray, np.generic)):
        got = "nothing" if value is None else type(value).__name__
        raise ArgumentError(name, got, "a NumPy array: the chain has a leaf of this name")
    array = np.asarray(value)
    if array.dtype != dtypes.numpy_dtype(leaf.dtype):
        raise DTypeError(name, str(array.dtype), str(dtypes.numpy_dtype(leaf.dtype)))
    if leaf.extent == "per_tensor":
        if array.size != 1:
            raise ShapeError(name, str(array.shape), "one value")
        return array
    one = problem.channel_axis if leaf.extent == "per_channel" else -2
    dims = problem.dst.dims if leaf.extent == "full" else (problem.dst.dims[one],)
    if array.shape != dims:
        raise ShapeError(name, str(array.shape), str(dims))
    return array


def operand_in_dims(leaf: Leaf, array: Array, problem: DenseProblem, dims: Dims) -> Array:
    """Return a checked operand in the dimensions of a primitive's argument."""
    if leaf.extent != "per_channel":
        return array.reshape(dims)
    return np.broadcast_to(along(array, problem.channel_axis, problem.dst.ndim), dims)


# The caller's dims of dst and those of the primitive, where they differ: the same elements in the
# same order.


def asked_array(name: str, array: Array, asked: Dims, run: Dims) -> Array:
    """Return an array of dst's dims in those that run; others as they are.

    Parameters
    ----------
    name : str
        Name of the array, for errors.
    array : ndarray
        Array from a call.
    asked, run : tuple of int
        Dims of dst, as the caller and as the primitive has them.

    Raises
    ------
    ShapeError
        An array in the dims that run, which are none of the caller's business.
    """
    if asked == run or array.shape != asked:
        if asked != run and array.shape == run:
            raise ShapeError(name, str(array.shape), str(asked))
        return array
    return array.reshape(run)


def asked_output(out: Array, dst: TensorSpec, asked: Dims, read: Mapping[str, Array]) -> Array:
    """Return where to store in the dims that run: `out`, seen so, or a copy of it.

    Parameters
    ----------
    out : ndarray
        Array that the caller wants written.
    dst : TensorSpec
        The result, as the primitive has it.
    asked : tuple of int
        Dims of the array, as the caller has it.
    read : mapping of str to ndarray
        Arrays that are read meanwhile.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError, LayoutError, AliasError
        An `out` that cannot take the result.
    """
    if asked == dst.dims:
        return out
    if out.shape != asked:
        raise ShapeError("out", str(out.shape), str(asked))
    wanted = dtypes.numpy_dtype(dst.dtype)
    if out.dtype != wanted:
        raise DTypeError("out", str(out.dtype), str(wanted))
    seen = out.reshape(dst.dims)
    if not np.may_share_memory(seen, out) and out.size:
        check_out(out, read, [name for name in read if name != "src"])
    return seen
