"""Arrays for the extension: how they lie in memory, and constants in the layouts of kernels."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import AliasError, ArgumentError, DTypeError, LayoutError, ShapeError
from pyonednn_q.native.runtime import Lock
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pyonednn_q._core import Candidate, Memory


def by_strides(dims: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """Return the dimensions from outermost to innermost; those of one element go inside others."""

    def distance(axis: int) -> tuple[int, bool, int]:
        return -abs(strides[axis]), dims[axis] == 1, axis

    return tuple(sorted(range(len(dims)), key=distance))


def inverse(order: Sequence[int]) -> tuple[int, ...]:
    """Return where each dimension is in an order: that of the axes of what lies so."""
    return tuple(sorted(range(len(order)), key=order.__getitem__))


def memory_order(array: np.ndarray[Any, Any]) -> tuple[int, ...] | None:
    """Return the dimensions from outermost to innermost; None when there are gaps or overlaps.

    Examples
    --------
    >>> import numpy as np
    >>> memory_order(np.zeros((2, 3, 4)).transpose(0, 2, 1))
    (0, 2, 1)
    """
    return _dense_order(array.shape, array.strides, array.itemsize)


def lie_alike(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    """Tell whether arrays of the same dims have their elements in the same places."""
    return all(
        size <= 1 or first * b.itemsize == second * a.itemsize
        for size, first, second in zip(a.shape, a.strides, b.strides, strict=True)
    )


# A layer asks the same at every call.
@functools.lru_cache(maxsize=1024)
def _dense_order(
    dims: tuple[int, ...], strides: tuple[int, ...], itemsize: int
) -> tuple[int, ...] | None:
    order = by_strides(dims, strides)
    if 0 in dims:
        return order
    step = itemsize
    for axis in reversed(order):
        if dims[axis] != 1:
            if strides[axis] != step:
                return None
            step *= dims[axis]
    return order


LINE = 64  # bytes of the caches; a kernel whose loads straddle two lines takes up to 1.45 times


def aligned(
    dims: Sequence[int], dtype: np.dtype[Any], strides: Sequence[int] | None = None
) -> Array:
    """Return an uninitialised array that starts on a cache line.

    Parameters
    ----------
    dims : sequence of int
        Shape of the array.
    dtype : dtype
        NumPy's, of its elements.
    strides : sequence of int, optional
        Elements from one index to the next, for each dimension; none is negative. Row-major by
        default.
    """
    if strides is None or 0 in dims:
        elements, steps = math.prod(dims), None
    else:
        elements = 1 + sum((dim - 1) * step for dim, step in zip(dims, strides, strict=True))
        steps = [step * dtype.itemsize for step in strides]
    raw = np.empty(elements * dtype.itemsize + LINE - 1, np.uint8)
    start = -raw.__array_interface__["data"][0] % LINE
    array: Array = np.ndarray(dims, dtype, raw, start, steps)
    return array


def empty(spec: TensorSpec) -> Array:
    """Return an uninitialised array with the dims, dtype and physical layout of `spec`."""
    return aligned(spec.dims, dtypes.numpy_dtype(spec.dtype), spec.strides)


def refuse_mask(name: str, array: object) -> None:
    """Refuse a masked array: its mask would be lost."""
    if isinstance(array, np.ma.MaskedArray):
        wanted = "an array without mask, for example array.filled(0)"
        raise ArgumentError(name, "a masked array", wanted)


def checked(name: str, array: object, spec: TensorSpec) -> Array:
    """Return `array` after checking that it is an array of the dims and dtype of `spec`.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument, what came and what would do.
    """
    if not isinstance(array, np.ndarray):
        raise ArgumentError(name, type(array).__name__, "a NumPy array")
    refuse_mask(name, array)
    dtype = dtypes.numpy_dtype(spec.dtype)
    if array.dtype != dtype:
        got = str(array.dtype)
        if array.dtype.newbyteorder("=") == dtype:
            got += " in foreign byte order"
        raise DTypeError(name, got, f"{dtype}")
    if array.shape != spec.dims:
        raise ShapeError(name, str(array.shape), str(spec.dims))
    return array


def check_out(out: Array, inputs: Mapping[str, Array], in_place: Collection[str] = ()) -> None:
    """Refuse an `out` that cannot take a result, whatever layout it has.

    Parameters
    ----------
    out : ndarray
        The array that a call writes its result into.
    inputs : mapping of str to ndarray
        Arrays that the call reads, by the names of arguments.
    in_place : collection of str
        Names of arrays that are read element by element before `out` is written there: they may lie
        in it, in the same places.

    Raises
    ------
    ArgumentError
        A read-only array.
    LayoutError
        Elements of `out` that share memory: what is written last would stay.
    AliasError
        An input that overlaps it.
    """
    if not out.flags.writeable:
        raise ArgumentError("out", "a read-only array", "a writeable one")
    if _shares_with_itself(out):
        got = f"strides {out.strides} for {out.shape}"
        raise LayoutError("out", got, "elements that share no memory")
    for name, array in inputs.items():
        if not np.may_share_memory(out, array):  # by bounds, as oneDNN's kernels would
            continue
        if not (name in in_place and _lies_in(array, out)):
            raise AliasError(name, "memory that overlaps dst", "memory apart from dst")


def _shares_with_itself(array: Array) -> bool:
    reach = array.itemsize
    for stride, dim in sorted((abs(s), d) for s, d in zip(array.strides, array.shape, strict=True)):
        if dim > 1:
            if stride < reach:
                return True
            reach += (dim - 1) * stride
    return False


def _lies_in(array: Array, out: Array) -> bool:
    return (
        array.__array_interface__["data"][0] == out.__array_interface__["data"][0]
        and array.shape == out.shape
        and array.strides == out.strides
    )


def has_layout(array: Array, spec: TensorSpec) -> bool:
    """Tell whether `array` lies in memory as `spec` says; strides of dimensions of 1 are free."""
    assert spec.strides is not None
    itemsize = array.dtype.itemsize
    return array.flags.aligned and all(
        d <= 1 or step == s * itemsize
        for d, s, step in zip(spec.dims, spec.strides, array.strides, strict=True)
    )


def in_layout(array: Array, spec: TensorSpec) -> Array:
    """Return `array`, copied into the layout of `spec` unless it already has it."""
    if has_layout(array, spec):
        return array
    copy = empty(spec)
    np.copyto(copy, array)
    return copy


def constant(name: str, value: object, dims: Sequence[int], dtype: str) -> Array:
    """Return a constant operand as an aligned native array of `dims` and `dtype`.

    A one-dimensional value of the right length may stand for `dims`: a bias, a per-channel operand.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument, what came and what would do.
    """
    if not isinstance(value, (np.ndarray, np.generic)):
        raise ArgumentError(name, type(value).__name__, "a NumPy array")
    array = np.asarray(value)
    wanted = dtypes.numpy_dtype(dtype)
    if array.dtype != wanted:
        raise DTypeError(name, str(array.dtype), str(wanted))
    size = int(np.prod(dims))
    if array.shape != tuple(dims) and (array.ndim > 1 or array.size != size):
        raise ShapeError(name, str(array.shape), str(tuple(dims)))
    aligned = np.require(array, requirements=["ALIGNED"])
    whole = all(s >= 0 and s % array.itemsize == 0 for s in aligned.strides)
    return (aligned if whole else np.ascontiguousarray(aligned)).reshape(tuple(dims))


def packed_nibbles(array: Array) -> Array:
    """Return 4-bit values (one a byte, row-major) as bytes of two values, low nibble first."""
    low_bits = np.ascontiguousarray(array).astype(np.int8).view(np.uint8).ravel() & 0xF
    if low_bits.size % 2:
        low_bits = np.append(low_bits, np.uint8(0))
    return np.ascontiguousarray(low_bits[0::2] | (low_bits[1::2] << 4))


def scale_values(name: str, value: object, dtype: str) -> Array:
    """Return scales as a flat array of `dtype`, each finite and positive after rounding to it.

    Raises
    ------
    ArgumentError
        A value is not a number, not finite or not positive.
    """
    values = _numbers(name, value).astype(np.float64)
    with np.errstate(over="ignore", under="ignore"):
        rounded = values.astype(dtypes.numpy_dtype(dtype))
    bad = ~(np.isfinite(rounded) & (rounded > 0))
    if bad.any():
        at = int(np.argmax(bad))
        raise ArgumentError(name, f"{values[at]} at {at}", f"finite positive values in {dtype}")
    return rounded


def zero_point_values(name: str, value: object, dtype: str, tensor_dtype: str) -> Array:
    """Return zero points as a flat array of `dtype`, each inside the range of the tensor's type.

    Those of wider types than 8 bits stay within 2^23: kernels add them in float32, and what lies
    between a code that float32 rounds and a larger zero point would be lost.

    Raises
    ------
    ArgumentError
        A value is not an integer or outside that range.
    """
    values = _numbers(name, value)
    if values.dtype.name in {"int4", "uint4"}:  # of ml_dtypes, which NumPy does not know
        values = values.astype(np.int8)
    if values.dtype.kind not in "iu":
        raise ArgumentError(name, str(values.dtype), "integers")
    lo, hi, why = -(2**23), 2**23, "since it is added in float32"
    if dtypes.is_integer(tensor_dtype) and tensor_dtype != "s32":
        lo, hi = dtypes.qmin(tensor_dtype), dtypes.qmax(tensor_dtype)
        why = f"the range of {tensor_dtype}"
    if values.size and (values.min() < lo or values.max() > hi):
        worst = values.min() if values.min() < lo else values.max()
        raise ArgumentError(name, str(worst), f"values from {lo} to {hi}, {why}")
    return values.astype(dtypes.numpy_dtype(dtype))


def _numbers(name: str, value: object) -> Array:
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RecursionError):  # ragged rows, a list within itself
        raise ArgumentError(name, shown(value), "numbers, in rows of equal length") from None
    if array.dtype.kind not in "iuf" and not isinstance(value, np.ndarray):
        raise ArgumentError(name, type(value).__name__, "numbers")
    if array.dtype.kind in "OSUMmcb" or array.dtype.names:
        raise ArgumentError(name, str(array.dtype), "numbers")
    if array.ndim > 1 and array.size != max(array.shape):
        # Grouped values come as a table; their order is row-major.
        array = np.ascontiguousarray(array)
    return np.ascontiguousarray(array.reshape(-1))


class Packed:
    """Weights that several primitives share: pass it to `prepare` as ``wei``.

    Parameters
    ----------
    array : ndarray
        The weights in the problem's logical dims.

    Attributes
    ----------
    array : ndarray
        The weights, as they were passed.
    memories : list
        The packed forms, one for every layout.
    """

    def __init__(self, array: Array) -> None:
        self.array = array
        self.memories: list[Memory] = []
        self._lock = Lock()

    @property
    def nbytes(self) -> int:
        """Bytes of all packed forms."""
        return sum(int(memory.nbytes) for memory in self.memories)

    def memory(self, candidate: Candidate, name: str, spec: TensorSpec) -> Memory:
        """Return the form that a candidate wants, packed now if no other wanted the same."""
        with self._lock.held:
            layout = candidate.layout(name)
            for memory in self.memories:
                if memory.layout == layout:
                    return memory
            packed = pack(candidate, name, self.array, spec)
            self.memories.append(packed)
            return packed


def pack(candidate: Candidate, name: str, value: object, spec: TensorSpec) -> Memory:
    """Return a constant in the layout that a candidate wants."""
    array = constant(name, value, spec.dims, spec.dtype)
    if spec.dtype in {"s4", "u4"}:
        return candidate.pack_nibbles(name, packed_nibbles(array))
    # Not every order of weights can be packed by oneDNN together with sums for a zero point.
    return candidate.pack(name, np.ascontiguousarray(array))
