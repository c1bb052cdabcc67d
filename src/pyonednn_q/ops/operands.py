"""Operands: the leaves of a chain, checked by name, in the shape that primitives take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.compose.stages import RESIDUAL, SRC
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.expr.steps import Leaf
from pyonednn_q.shown import shown

Array = np.ndarray[Any, Any]

_TAKEN = frozenset((SRC, "out", RESIDUAL))


def check_names(argument: str, names: Iterable[str]) -> None:
    """Refuse leaves that are called as an argument of a call.

    Raises
    ------
    ArgumentError
        Naming `argument`.
    """
    for name in names:
        if name in _TAKEN:
            wanted = "another name: a call has an argument of this one"
            raise ArgumentError(argument, f"a leaf called {name!r}", wanted)


@dataclass(frozen=True, slots=True)
class Operands:
    """The leaves of a plan, and the dimensions of the value that it changes.

    Attributes
    ----------
    leaves : mapping of str to Leaf
        By name.
    dims : tuple of int
        Of dst.
    axis : int
        The channel axis.
    """

    leaves: Mapping[str, Leaf]
    dims: tuple[int, ...]
    axis: int

    @classmethod
    def of(cls, leaves: Iterable[Leaf], dims: tuple[int, ...], axis: int) -> Operands:
        """Return the operands for leaves, none of which may be called as an argument of a call.

        Raises
        ------
        ArgumentError
            A name that is taken.
        """
        named = {leaf.name: leaf for leaf in leaves}
        check_names("chain", named)
        return cls(named, dims, axis)

    def checked(self, name: str, value: object) -> Array:
        """Return the value of a leaf as an array.

        Raises
        ------
        ArgumentError, DTypeError, ShapeError
            By the name of the leaf: no value, a wrong one, or no such leaf.
        """
        if name not in self.leaves:
            wanted = (
                f"one of {', '.join(self.leaves)}" if self.leaves else "none: there are no leaves"
            )
            raise ArgumentError("operands", shown(name), wanted)
        leaf = self.leaves[name]
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
        one = self.axis if leaf.extent == "per_channel" else -2
        dims = self.dims if leaf.extent == "full" else (self.dims[one],)
        if array.shape != dims:
            raise ShapeError(name, str(array.shape), str(dims))
        return array

    def in_dims(self, name: str, array: Array, dims: tuple[int, ...]) -> Array:
        """Return a checked operand in the dimensions of a primitive's argument."""
        if self.leaves[name].extent != "per_channel":
            return array.reshape(dims)
        aligned = [1] * len(self.dims)
        aligned[self.axis] = -1
        return np.broadcast_to(array.reshape(aligned), dims)
