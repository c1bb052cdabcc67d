"""Comparisons of numbers, and conversion of numbers to other types.

Types that oneDNN has no tensors of lie as bytes, as `selections` says.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.argument import flag, instance, one_of
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.native.program import Pass
from pyonednn_q.network.moves import dims_together, known, strides_along
from pyonednn_q.primitive.tensor import TensorSpec

if TYPE_CHECKING:
    from pyonednn_q.network.lowering import Lowering

# NumPy's names, and the library's; bytes of an element where it has none.
_TYPES = {
    "bool": ("bool", 1),
    "uint8": ("u8", 0),
    "int8": ("s8", 0),
    "int32": ("s32", 0),
    "int64": ("s64", 8),
    "float32": ("f32", 0),
}
COMPARED = ("int32", "int64", "float32")
_ALGS = ("equal", "less", "less_or_equal")


@dataclass(frozen=True, slots=True)
class NumberCast:
    """Numbers in another data type: floats are truncated to integers; bools become 1 and 0.

    A number becomes the bool "not 0". Floats outside the range of an integer type, and NaN, become
    its lowest value, as on x86.

    Parameters
    ----------
    src, dst : {"bool", "uint8", "int8", "int32", "int64", "float32"}
        Data types of the source and the result.
    """

    src: str
    dst: str

    def __post_init__(self) -> None:
        one_of("src", self.src, tuple(_TYPES))
        one_of("dst", self.dst, tuple(_TYPES))

    def lower(self, at: Lowering, dst: str, src: tuple[str, ...]) -> None:
        """Add our pass over memory."""
        (name,) = src
        name, numbers = _side_by_side(at, name, self.src)
        of, item = _TYPES[self.dst]
        result = TensorSpec.dense((*numbers.dims, item), "u8")
        if not item:
            result = TensorSpec.dense(numbers.dims, of)
        run = Pass.conversion(prod(numbers.dims), _TYPES[self.src][0], of)
        at.add(run, (name,), dst, result)


@dataclass(frozen=True, eq=False, slots=True)
class Compare:
    """Comparison of two tensors of numbers, broadcast as in NumPy; results are bytes, 1 or 0.

    Parameters
    ----------
    alg : {"equal", "less", "less_or_equal"}
        Comparison of first and second; false if one of them is NaN.
    dtype : {"int32", "int64", "float32"}
        Data type of the numbers.
    constant : ndarray, optional
        Second operand, in that data type; then the operation reads one tensor.
    is_first : bool
        Whether the constant is the first operand instead.
    """

    alg: str
    dtype: str
    constant: Array | None = None
    is_first: bool = False

    def __post_init__(self) -> None:
        one_of("alg", self.alg, _ALGS)
        one_of("dtype", self.dtype, COMPARED)
        flag("is_first", self.is_first)
        if self.constant is not None:
            instance("constant", self.constant, np.ndarray)
            if self.constant.dtype.name != self.dtype:
                raise DTypeError("constant", str(self.constant.dtype), self.dtype)
            if not self.constant.size:
                raise ShapeError("constant", str(self.constant.shape), "an element at least")

    def lower(self, at: Lowering, dst: str, src: tuple[str, ...]) -> None:
        """Add our pass over memory."""
        pairs = [_side_by_side(at, name, self.dtype) for name in src]
        specs = [spec for _, spec in pairs]
        if self.constant is not None:
            held = TensorSpec.dense(self.constant.shape or (1,), "u8")
            specs.insert(0 if self.is_first else len(specs), held)
        if len(specs) != 2:
            raise ArgumentError("src", f"{len(src)} tensors", "2, of which a constant is one")
        dims = dims_together(specs)
        strides = [*(strides_along(spec, dims) for spec in specs)]
        strides.append(list(known(TensorSpec.dense(dims, "u8"))))
        of = (self.alg, _TYPES[self.dtype][0])
        run = Pass.comparison(*of, dims, strides, self.constant, is_first=self.is_first)
        names = tuple(name for name, _ in pairs)
        at.add(run, names, dst, TensorSpec.dense((*dims, 1), "u8"))


def _side_by_side(at: Lowering, name: str, dtype: str) -> tuple[str, TensorSpec]:
    """Return a tensor of numbers in row-major order, and its dims with strides in numbers."""
    spec = at.specs[name]
    of, item = _TYPES[dtype]
    if spec.dtype != ("u8" if item else of):
        raise DTypeError("src", spec.dtype, f"{dtype}, as told")
    if item and spec.dims[-1] != item:
        raise ShapeError("src", str(spec.dims), f"{item} bytes along the last dimension")
    name = at.in_layout(name, TensorSpec.dense(spec.dims, spec.dtype))
    dims = spec.dims[:-1] if item else spec.dims
    return name, TensorSpec.dense(dims or (1,), "u8")
