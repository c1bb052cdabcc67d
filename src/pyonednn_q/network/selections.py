"""Operations that select: elements by places, rows by indices, values by a condition.

What oneDNN has no tensors of, as indices and conditions, lies in a network as bytes: the last
dimension of such a tensor is those of one element.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import flag, instance, real
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.native.program import Pass
from pyonednn_q.network.floats import floats_of
from pyonednn_q.network.lowering import layout_like
from pyonednn_q.network.moves import dims_together, known, strides_along
from pyonednn_q.primitive.tensor import TensorSpec

if TYPE_CHECKING:
    from pyonednn_q.network.lowering import Lowering

_INDEX = 8  # bytes of int64
_CODES = 4  # in as many bytes as a float


@dataclass(frozen=True, eq=False, slots=True)
class Pick:
    """Elements of a tensor picked by constant indices; an element may be picked several times.

    Parameters
    ----------
    places : ndarray of int64
        Row-major index of the source element for each element of dst; -1: `fill`.
    fill : bytes
        Bytes of one element, for indices of -1.
    in_bytes : bool
        Whether tensors hold bytes, with the bytes of an element along the last dimension.
    """

    places: Array
    fill: bytes = b""
    in_bytes: bool = False

    def __post_init__(self) -> None:
        instance("places", self.places, np.ndarray)
        instance("fill", self.fill, bytes)
        flag("in_bytes", self.in_bytes)
        if self.places.dtype != np.int64:
            raise DTypeError("places", str(self.places.dtype), "int64")
        if not self.places.size or not self.places.ndim:
            raise ShapeError(
                "places", str(self.places.shape), "one dimension, one element at least"
            )

    def lower(self, at: Lowering, dst: str, src: tuple[str, ...]) -> None:
        """Add our pass over memory."""
        (name,) = src
        spec = at.specs[name]
        name = at.in_layout(name, TensorSpec.dense(spec.dims, spec.dtype))
        item = spec.dims[-1] if self.in_bytes else dtypes.bits(spec.dtype) // 8
        count = prod(spec.dims[:-1]) if self.in_bytes else spec.size
        dims = (*self.places.shape, item) if self.in_bytes else self.places.shape
        run = Pass.pick(count, item, self.places, self.fill)
        at.add(run, (name,), dst, TensorSpec.dense(dims, spec.dtype))


@dataclass(frozen=True, eq=False, slots=True)
class TableRows:
    """Rows of a table by int64 indices; negative indices count from the end.

    Parameters
    ----------
    table : (rows, columns) ndarray of float32 or int8
        Table, in C order; of int8 with a multiple of 4 columns.
    """

    table: Array

    def __post_init__(self) -> None:
        instance("table", self.table, np.ndarray)
        if self.table.dtype not in {np.dtype(np.float32), np.dtype(np.int8)}:
            raise DTypeError("table", str(self.table.dtype), "float32 or int8")
        if self.table.ndim != 2 or not self.table.size or not self.table.flags.c_contiguous:
            raise ShapeError("table", str(self.table.shape), "(rows, columns), in C order")
        if self.table.dtype == np.int8 and self.table.shape[1] % _CODES:
            raise ShapeError("table", str(self.table.shape), f"a multiple of {_CODES} columns")

    def lower(self, at: Lowering, dst: str, src: tuple[str, ...]) -> None:
        """Add our pass over memory."""
        (name,) = src
        dims = _of_bytes(at, name, _INDEX)
        name = at.in_layout(name, TensorSpec.dense((*dims, _INDEX), "u8"))
        dtype = "f32" if self.table.dtype == np.float32 else "s8"
        result = TensorSpec.dense((*dims, self.table.shape[1]), dtype)
        # It copies bytes, whatever they are.
        at.add(Pass.rows(prod(dims), self.table.view(np.float32)), (name,), dst, result)


@dataclass(frozen=True, eq=False, slots=True)
class Where:
    """The first float32 value if a condition is true, else the second.

    Parameters
    ----------
    first, second : float or ndarray of float32, optional
        Constant in place of a tensor.
    """

    first: float | Array | None = None
    second: float | Array | None = None

    def __post_init__(self) -> None:
        for name in ("first", "second"):
            value = getattr(self, name)
            if value is None:
                continue
            if not isinstance(value, np.ndarray):
                is_nan = isinstance(value, (float, np.floating)) and bool(np.isnan(value))
                value = np.float32(np.nan if is_nan else real(name, value, infinite=True))
                value = np.full(1, value)
            if value.dtype != np.float32:
                raise DTypeError(name, str(value.dtype), "float32")
            if not value.size:
                raise ShapeError(name, str(value.shape), "an element at least")
            object.__setattr__(self, name, value)

    def lower(self, at: Lowering, dst: str, src: tuple[str, ...]) -> None:
        """Add our pass over memory."""
        constants: list[Any] = [self.first, self.second]
        tensors = sum(each is None for each in constants)
        if len(src) != 1 + tensors:
            raise ArgumentError("src", f"{len(src)} tensors", f"{1 + tensors}")
        condition = TensorSpec(_of_bytes(at, src[0], 1), "u8", known(at.specs[src[0]])[:-1])
        left = iter([floats_of(at, name) for name in src[1:]])
        specs = [condition]
        for each in constants:
            is_tensor = each is None
            specs.append(next(left) if is_tensor else TensorSpec.dense(each.shape or (1,), "f32"))
        dims = dims_together(specs)
        result = layout_like(dims, "f32", [at.specs[name] for name in src[1:]])
        strides = [*(strides_along(spec, dims) for spec in specs), known(result)]
        at.add(Pass.select(dims, strides, constants), src, dst, result)


@dataclass(frozen=True, slots=True)
class IsNaN:
    """Whether float32 values are NaN; results are bytes, 1 or 0."""

    def lower(self, at: Lowering, dst: str, src: tuple[str, ...]) -> None:
        """Add our pass over memory."""
        (name,) = src
        dims = floats_of(at, name).dims
        name = at.in_layout(name, TensorSpec.dense(dims, "f32"))
        at.add(Pass.is_nan(prod(dims)), (name,), dst, TensorSpec.dense((*dims, 1), "u8"))


def _of_bytes(at: Lowering, name: str, item: int) -> tuple[int, ...]:
    """Return the dims of a tensor as bytes, with a number of bytes for each element."""
    spec = at.specs[name]
    if spec.dtype != "u8":
        raise DTypeError("src", spec.dtype, "u8, the bytes of elements")
    if spec.dims[-1] != item:
        raise ShapeError("src", str(spec.dims), f"{item} bytes along the last dimension")
    return spec.dims[:-1]
