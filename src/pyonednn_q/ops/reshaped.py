"""Reshaped: results of a call where the primitive has other dimensions than the caller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.errors import DTypeError, ShapeError
from pyonednn_q.native.arrays import check_out

if TYPE_CHECKING:
    from collections.abc import Mapping

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Reshaped:
    """The caller's dimensions of dst, and the primitive's: the same elements in the same order."""

    asked: tuple[int, ...]
    run: tuple[int, ...]

    @property
    def is_needed(self) -> bool:
        """Whether the two differ."""
        return self.asked != self.run

    def into(self, name: str, array: Array) -> Array:
        """Return an array of dst's dims in those that run; others as they are.

        Raises
        ------
        ShapeError
            An array in the dims that run, which are none of the caller's business.
        """
        if not self.is_needed or array.shape != self.asked:
            if self.is_needed and array.shape == self.run:
                raise ShapeError(name, str(array.shape), str(self.asked))
            return array
        return array.reshape(self.run)

    def output(self, out: Array, dtype: str, read: Mapping[str, Array]) -> Array:
        """Return where to store in the dims that run: `out`, seen so, or a copy of it.

        Raises
        ------
        ArgumentError, DTypeError, ShapeError, LayoutError, AliasError
            An `out` that cannot take the result.
        """
        if not self.is_needed:
            return out
        if out.shape != self.asked:
            raise ShapeError("out", str(out.shape), str(self.asked))
        wanted = dtypes.numpy_dtype(dtype)
        if out.dtype != wanted:
            raise DTypeError("out", str(out.dtype), str(wanted))
        seen = out.reshape(self.run)
        if not np.may_share_memory(seen, out) and out.size:
            check_out(out, read, [name for name in read if name != "src"])
        return seen

    def back(self, dst: Array) -> Array:
        """Return a result in the caller's dims."""
        return dst.reshape(self.asked) if self.is_needed else dst
