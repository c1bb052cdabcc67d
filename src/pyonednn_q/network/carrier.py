"""Tensors that oneDNN has none for, carried between nodes as bytes: indices, conditions, scalars.

An int64 tensor of dims (2, 3) lies in a program as u8 of dims (2, 3, 8). Only functions of Python
read and write such a tensor, as what it is; and a network's caller, who sees no bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import DTypeError
from pyonednn_q.graph.graph import Value
from pyonednn_q.primitive.tensor import TensorSpec

__all__ = ["as_carrier", "carrier_of", "is_carried", "restored", "spec_of_array"]

_PACKED = ("s4", "u4")  # two in a byte there, one in NumPy


def is_carried(value: Value) -> bool:
    """Return whether oneDNN cannot hold the tensor: it has no dims, or another data type."""
    return not value.dims or not _is_known(dtypes.numpy_type(value.dtype))


def carrier_of(value: Value) -> TensorSpec:
    """Return the bytes that carry a tensor of known dims."""
    return TensorSpec.dense((*(value.dims or ()), dtypes.numpy_type(value.dtype).itemsize), "u8")


def as_carrier(array: Any) -> Any:  # noqa: ANN401 - what is no array stays as it is
    """Return an array, or its bytes if oneDNN has no such tensor."""
    if not isinstance(array, np.ndarray) or array.dtype.hasobject:
        return array  # and is refused where it is looked at
    if array.ndim and _is_known(array.dtype):
        return array
    dense = np.array(array, order="C", copy=None, ndmin=1)
    return dense.view(np.uint8).reshape(*array.shape, array.itemsize)


def restored(carrier: Array, value: Value) -> Array:
    """Return the tensor that bytes carry."""
    return (
        np.ascontiguousarray(carrier).view(dtypes.numpy_type(value.dtype)).reshape(value.dims or ())
    )


def spec_of_array(array: Array, name: str) -> TensorSpec:
    """Return dims, data type and layout of an array, or of its bytes."""
    return TensorSpec.of(as_carrier(array), name)


def _is_known(dtype: np.dtype[Any]) -> bool:
    try:
        name = dtypes.from_numpy(dtype)
    except (DTypeError, TypeError):
        return False
    return name not in _PACKED
