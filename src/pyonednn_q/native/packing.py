"""Packed: a constant in every layout that primitives asked for, each made once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.native import arrays
from pyonednn_q.native.lock import Lock

if TYPE_CHECKING:
    from pyonednn_q._core import Candidate, Memory
    from pyonednn_q.native.arrays import Array
    from pyonednn_q.primitive.tensor import TensorSpec

__all__ = ["Packed", "pack"]


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
    array = arrays.constant(name, value, spec.dims, spec.dtype)
    if spec.dtype in {"s4", "u4"}:
        return candidate.pack_nibbles(name, arrays.packed_nibbles(array))
    # Not every order of weights can be packed by oneDNN together with sums for a zero point.
    return candidate.pack(name, np.ascontiguousarray(array))
