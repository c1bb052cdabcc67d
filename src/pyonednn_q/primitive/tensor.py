"""Tensors of a primitive, and the operation that they belong to."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from operator import mul
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import instance, integers
from pyonednn_q.errors import LayoutError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyonednn_q.dtypes import DType
    from pyonednn_q.primitive.window import Window

MAX_NDIM = 12
_set = object.__setattr__
_MAX_BYTES = 2**63 - 1

Boundary = tuple[tuple[int, ...], str, tuple[int, ...] | None]


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Dimensions, data type and strides.

    Parameters
    ----------
    dims : tuple of int
        Dims in oneDNN's logical order: (N, C, spatial) for activations. 1 to 12 dimensions, a
        dimension may be 0.
    dtype : str
        A name of `pyonednn_q.dtypes`.
    strides : tuple of int, optional
        Strides in elements, one per dimension. None leaves the layout to the library. The stride of
        a dimension of 1 addresses nothing and NumPy puts anything there: it is kept as in a tensor
        without gaps, so that equal layouts compare equal.

    Attributes
    ----------
    ndim, size : int
        Number of dimensions, and of elements.
    nbytes : int
        Bytes from the first element to the end of the last, gaps included. Without strides: bytes
        of the elements alone; the library may add padding.
    has_gaps : bool
        Whether its bytes from the first to the last element hold more than its elements.

    Raises
    ------
    ShapeError
        Bad rank, a negative dimension, more than 2**63 - 1 bytes.
    LayoutError
        Negative strides, or elements that overlap. What oneDNN requires is required: by rising
        stride, each stride is at least stride times dimension of the one before.
    DTypeError
        An unknown data type.
    """

    dims: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...] | None = None
    ndim: int = field(init=False, repr=False, compare=False)
    size: int = field(init=False, repr=False, compare=False)
    nbytes: int = field(init=False, repr=False, compare=False)
    has_gaps: bool = field(init=False, repr=False, compare=False)

    if TYPE_CHECKING:  # it takes more types than the fields have

        def __init__(
            self, dims: Iterable[int], dtype: DType, strides: Iterable[int] | None = None
        ) -> None: ...

    def __post_init__(self) -> None:
        dims, dtype = integers("dims", self.dims), dtypes.checked(self.dtype)
        if not 1 <= len(dims) <= MAX_NDIM:
            raise ShapeError(
                argument="dims", got=f"{len(dims)} dimensions", wanted=f"1 to {MAX_NDIM} of them"
            )
        if min(dims) < 0:
            raise ShapeError(argument="dims", got=str(dims), wanted="no negative dimension")
        elements = size = prod(dims)
        if self.strides is not None:
            strides = integers("strides", self.strides)
            if strides not in (_packed(dims), _packed(dims, last=True)):
                _check_strides(dims, strides)
                strides = _canonical(dims, strides)
            _set(self, "strides", strides)
            if size:
                elements = 1 + sum(map(mul, strides, dims)) - sum(strides)
        bits = dtypes.bits(dtype)
        nbytes = (elements * bits + 7) // 8
        if nbytes > _MAX_BYTES:
            raise ShapeError("dims", f"{dims}, {nbytes} bytes", f"at most {_MAX_BYTES}")
        _set(self, "dims", dims)
        _set(self, "dtype", dtype)
        _set(self, "ndim", len(dims))
        _set(self, "size", size)
        _set(self, "nbytes", nbytes)
        _set(self, "has_gaps", nbytes * 8 > size * bits)

    @classmethod
    def dense(cls, dims: Iterable[int], dtype: DType) -> TensorSpec:
        """Return a tensor in row-major order, without gaps."""
        dims = integers("dims", dims)
        return cls(dims, dtype, _packed(dims))

    @classmethod
    def channels_last(cls, dims: Iterable[int], dtype: DType) -> TensorSpec:
        """Return a tensor of logical order (N, C, spatial) whose channels lie together (NHWC).

        Examples
        --------
        >>> TensorSpec.channels_last((1, 64, 56, 56), "u8").strides
        (200704, 1, 3584, 64)
        """
        dims = integers("dims", dims)
        return cls(dims, dtype, _packed(dims, last=True))

    @classmethod
    def of(cls, array: np.ndarray[Any, Any], argument: str = "array") -> TensorSpec:
        """Return the tensor that `array` is.

        Parameters
        ----------
        array : ndarray
            Array in any layout that NumPy allows.
        argument : str
            Name of the argument, for the message.

        Raises
        ------
        DTypeError
            No primitive takes the array's dtype.
        LayoutError
            Negative or overlapping strides, or strides that are no multiple of the item.
        """
        instance("argument", argument, str)
        argument = argument or "array"
        instance(argument, array, np.ndarray)
        name = dtypes.from_numpy(array.dtype, argument)
        if any(step % array.itemsize for step in array.strides):
            raise LayoutError(
                argument, f"byte strides {array.strides}", f"multiples of {array.itemsize}"
            )
        return cls(array.shape, name, tuple(step // array.itemsize for step in array.strides))

    def lies_as(self, other: TensorSpec) -> bool:
        """Tell whether elements are where those of a tensor of the same dims are.

        Both have strides; those of dimensions of 1 may be any.

        Raises
        ------
        ArgumentError, ShapeError
            No tensor, or one of other dims.
        """
        instance("other", other, TensorSpec)
        if other.dims != self.dims:
            raise ShapeError(argument="other", got=str(other.dims), wanted=str(self.dims))
        if self.strides is None or other.strides is None:
            return False
        steps = zip(self.dims, self.strides, other.strides, strict=True)
        return all(dim == 1 or step == wanted for dim, step, wanted in steps)

    @property
    def is_channels_last(self) -> bool:
        """Whether neighbouring channels are neighbours in memory; a single channel always is."""
        if self.strides is None or self.ndim < 2:
            return False
        return self.dims[1] == 1 or self.strides[1] == 1

    def boundary(self) -> Boundary:
        """Return what the extension receives: (dims, dtype, strides)."""
        return self.dims, self.dtype, self.strides

    def text(self) -> str:
        """Return ``dtype:dims``, with ``@strides`` unless the tensor is row-major.

        Examples
        --------
        >>> TensorSpec.dense((1, 64), "u8").text(), TensorSpec((1, 64), "s8").text()
        ('u8:1x64', 's8:1x64@any')
        """
        plain = f"{self.dtype}:{cross(self.dims)}"
        if self.strides is None:
            return f"{plain}@any"
        if self.strides == _packed(self.dims):
            return plain
        if self.strides == _packed(self.dims, last=True):
            return f"{plain}@channels_last"
        return f"{plain}@{cross(self.strides)}"


def cross(values: Iterable[int]) -> str:
    """Return integers as oneDNN writes dimensions: ``1x64x56x56``."""
    return "x".join(map(str, values))


def _packed(dims: tuple[int, ...], *, last: bool = False) -> tuple[int, ...]:
    """Strides without gaps: row-major, or with the channels innermost (`last`)."""
    order = (0, *range(2, len(dims)), 1)[: len(dims)] if last else range(len(dims))
    strides = [1] * len(dims)
    step = 1
    for axis in reversed(order):
        strides[axis] = step
        step *= max(dims[axis], 1)
    return tuple(strides)


def _canonical(dims: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """`strides`, where a dimension of 1 has the stride it has in a tensor without gaps."""
    for known in (_packed(dims), _packed(dims, last=True)):
        if all(d <= 1 or a == b for d, a, b in zip(dims, strides, known, strict=True)):
            return known
    filled = list(strides)
    for axis in reversed(range(len(dims))):
        if dims[axis] == 1:
            filled[axis] = filled[axis + 1] * dims[axis + 1] if axis + 1 < len(dims) else 1
    return tuple(filled)


def _check_strides(dims: tuple[int, ...], strides: tuple[int, ...]) -> None:
    if len(strides) != len(dims):
        raise LayoutError(argument="strides", got=str(strides), wanted=f"{len(dims)} values")
    if min(strides) < 0:
        raise LayoutError(argument="strides", got=str(strides), wanted="no negative stride")
    if 0 in dims:
        return
    needed = 1
    for step, dim in sorted(zip(strides, dims, strict=True)):
        if dim == 1:  # its stride addresses nothing
            continue
        if step < needed:
            wanted = f"strides at which elements of {dims} do not overlap"
            raise LayoutError(argument="strides", got=str(strides), wanted=wanted)
        needed = step * dim


_ProblemBoundary = tuple[str, dict[str, Boundary], dict[str, Any]]


class Operation:
    """Base of all problems.

    A problem is a frozen dataclass. Its fields that are `TensorSpec` are its tensors, the others
    its parameters; a tensor that is None is absent.
    """

    __slots__ = ()

    kind: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Any]]  # set by dataclass

    @property
    def channel_axis(self) -> int:
        """The axis of channels in src and dst."""
        return 1

    @property
    def row_axis(self) -> int | None:
        """The axis of rows, which only a matmul has."""
        return None

    @property
    def has_groups(self) -> bool:
        """Whether the weights have a group dimension."""
        return False

    @property
    def groups(self) -> int:
        """Number of groups; 1 for weights without a group dimension."""
        return 1

    @property
    def window(self) -> Window | None:
        """Kernel, stride, dilation and padding, where a kernel slides over src."""
        return None

    @property
    def wei_mask(self) -> int:
        """The mask of a value for each output channel of the weights."""
        return 0b11 if self.has_groups else 0b1

    @property
    def tensors(self) -> dict[str, TensorSpec]:
        """The tensors that are present, by name, in the order of the fields."""
        return {
            name: value
            for name in self.__dataclass_fields__
            if isinstance(value := getattr(self, name), TensorSpec)
        }

    def params(self) -> dict[str, Any]:
        """Return the parameters as the extension names them."""
        return {}

    def boundary(self) -> _ProblemBoundary:
        """Return what the extension receives: (kind, tensors, parameters)."""
        tensors = {name: spec.boundary() for name, spec in self.tensors.items()}
        return self.kind, tensors, self.params()

    def text(self) -> str:
        """Return one readable line: kind, tensors, parameters that are not the usual ones."""
        words = [self.kind]
        words += [f"{name}:{spec.text()}" for name, spec in self.tensors.items()]
        words += [f"{name}:{_plain(value)}" for name, value in self._shown().items()]
        return " ".join(words)

    def _shown(self) -> dict[str, Any]:
        return self.params()


def _plain(value: object) -> str:
    if isinstance(value, tuple):
        return cross(value)
    return str(value)
