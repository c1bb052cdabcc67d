"""Tensors and attributes of a model as arrays and numbers, held against the bytes that came."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, UnsupportedError
from pyonednn_q.shown import shortened, shown

if TYPE_CHECKING:
    from pyonednn_q.onnx.external_data import ExternalData

Dims = tuple[int, ...]

_BITS = {21: 4, 22: 4, 23: 4, 25: 2, 26: 2}  # of elements that share bytes
_NO_NUMBERS = {0: "no type", 8: "text", 14: "complex numbers", 15: "complex numbers"}
_SIX_BITS = {27, 28}
_FIELDS = {1: "float_data", 7: "int64_data", 11: "double_data", 12: "uint64_data"}
_FIELDS[13] = "uint64_data"
_ALL_FIELDS = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data")
MOST_DIMS = 32
_GRAPHS = {5, 10}  # types of attributes


class TensorReader:
    """Makes arrays of a model's tensors.

    Parameters
    ----------
    external : ExternalData
        Reader of tensors that are in files.
    max_elements : int
        Most elements of a tensor.
    """

    def __init__(self, external: ExternalData, max_elements: int) -> None:
        self._external = external
        self._most = max_elements

    def check_elements(self, name: str, dims: Dims) -> int:
        """Return the number of elements of dims.

        Raises
        ------
        ArgumentError
            More than are allowed, or a length below 0.
        """
        argument = f"tensor {shown(name)}"
        if len(dims) > MOST_DIMS:
            raise ArgumentError(argument, f"{len(dims)} dims", f"at most {MOST_DIMS}")
        if min(dims, default=0) < 0:
            raise ArgumentError(argument, shown(tuple(dims)), "lengths of at least 0")
        count = math.prod(dims)
        if count > self._most:
            wanted = f"at most max_elements = {self._most} elements"
            raise ArgumentError(argument, shown(tuple(dims)), wanted)
        return count

    @staticmethod
    def dtype(name: str, number: int) -> np.dtype[Any]:
        """Return NumPy's data type for TensorProto's number.

        Raises
        ------
        ArgumentError
            There is no such type.
        UnsupportedError
            Text or complex numbers.
        """
        from onnx import helper

        if number in _NO_NUMBERS or number in _SIX_BITS:
            raise refused("numbers do", f"{name}: {_NO_NUMBERS.get(number, 'floats of 6 bits')}")
        try:
            dtype: np.dtype[Any] = np.dtype(helper.tensor_dtype_to_np_dtype(number))
        except Exception:  # of onnx
            raise ArgumentError(name, f"data type {number}", "one of TensorProto's") from None
        return dtype

    def array(self, tensor: Any) -> Array:  # noqa: ANN401 - a TensorProto
        """Return a tensor as an array that cannot be written.

        Raises
        ------
        ArgumentError
            Dims that the data does not account for, or data in two places.
        UnsupportedError
            Errors of `dtype`.
        """
        import onnx
        from onnx import numpy_helper

        argument = f"tensor {shown(tensor.name)}"
        dtype = self.dtype(argument, tensor.data_type)
        dims = tuple(tensor.dims)
        count = self.check_elements(tensor.name, dims)
        bits = _BITS.get(tensor.data_type, 8 * dtype.itemsize)
        nbytes = (count * bits + 7) // 8
        if tensor.HasField("segment"):
            raise ArgumentError(argument, "a segment of it", "the whole tensor")
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            data = self._external.read(tensor.name, tensor.external_data, nbytes)
            whole = onnx.TensorProto(data_type=tensor.data_type, dims=dims, raw_data=data)
        else:
            self._check_size(argument, tensor, count, nbytes)
            whole = tensor
        try:
            array: Array = np.asarray(numpy_helper.to_array(whole))
        except Exception as error:  # of onnx
            got = shortened(str(error), 150)
            raise ArgumentError(argument, got, "data of its dims and type") from None
        if array.shape != dims:
            raise ArgumentError(argument, f"values of shape {array.shape}", str(dims))
        if not array.flags.owndata or array.flags.writeable:
            array.flags.writeable = False
        return array

    @staticmethod
    def _check_size(argument: str, tensor: Any, count: int, nbytes: int) -> None:  # noqa: ANN401
        if tensor.HasField("raw_data"):
            got, wanted, field = len(tensor.raw_data), nbytes, "raw_data"
        else:
            field = _FIELDS.get(tensor.data_type, "int32_data")
            got, wanted = len(getattr(tensor, field)), count
            if (bits := _BITS.get(tensor.data_type)) is not None:
                wanted = (count * bits + 7) // 8
        if got != wanted:
            raise ArgumentError(argument, f"{field} of {got}", f"{wanted}, as dims and type say")
        if any(len(getattr(tensor, each)) for each in _ALL_FIELDS if each != field):
            raise ArgumentError(argument, "data in several fields", f"{field} alone")

    def attribute(self, kind: str, attribute: Any) -> Any:  # noqa: ANN401 - an AttributeProto
        """Return the value of an attribute.

        Parameters
        ----------
        kind : str
            The node's operator, for errors.
        attribute : AttributeProto
            A number, text, a tensor, or a list of numbers or texts.

        Raises
        ------
        ArgumentError
            Text that is not UTF-8, or a tensor as in `array`.
        UnsupportedError
            Graphs and everything else.
        """
        from onnx import AttributeProto

        value: Any
        if attribute.type == AttributeProto.TENSOR:
            return self.array(attribute.t)
        if attribute.type == AttributeProto.FLOAT:
            value = attribute.f
        elif attribute.type == AttributeProto.INT:
            value = attribute.i
        elif attribute.type == AttributeProto.FLOATS:
            value = tuple(attribute.floats)
        elif attribute.type == AttributeProto.INTS:
            value = tuple(attribute.ints)
        elif attribute.type == AttributeProto.STRING:
            value = attribute.s.decode()
        elif attribute.type == AttributeProto.STRINGS:
            value = tuple(each.decode() for each in attribute.strings)
        else:
            what = "a subgraph" if attribute.type in _GRAPHS else f"of type {attribute.type}"
            name = shown(attribute.name)
            raise refused("numbers, text, tensors", f"{name} of {shown(kind)}, {what}")
        return value


def refused(instead: str, what: str) -> UnsupportedError:
    """Return the error for a part of a valid model that `Graph` does not have."""
    return UnsupportedError("unimplemented", "onnx.load", instead, shortened(what, 200))
