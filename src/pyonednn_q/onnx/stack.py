"""Stacks of a matmul's operands, and the places of values for rows and columns."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ShapeError
from pyonednn_q.onnx.trace import record

Dims = tuple[int, ...]


class MatrixStack(NamedTuple):
    """Stacks of matrices as NumPy multiplies them: (..., M, K) by (..., K, N).

    Attributes
    ----------
    lead_a, lead_b, lead : tuple of int
        Leading dimensions of A, of B, and what they broadcast to.
    m, k, n : int
        Rows, what is summed over, and columns; 1 that a vector lacks.
    dst : tuple of int
        Dims of the result, without what vectors lack.
    """

    lead_a: Dims
    lead_b: Dims
    lead: Dims
    m: int
    k: int
    n: int
    dst: Dims

    @classmethod
    def of(cls, a: Array, b: Array, names: tuple[str, str] = ("A", "B")) -> MatrixStack:
        """Return the stacks of two operands.

        Raises
        ------
        ShapeError
            Naming the one that does not fit.
        """
        for name, array in zip(names, (a, b), strict=True):
            if not array.ndim:
                raise ShapeError(name, "()", "at least one dimension")
        *lead_a, m, k = a.shape if a.ndim > 1 else (1, *a.shape)
        *lead_b, inner, n = b.shape if b.ndim > 1 else (*b.shape, 1)
        if k != inner:
            raise ShapeError(names[1], str(b.shape), f"{k} rows, as {names[0]} has columns")
        try:
            lead = np.broadcast_shapes(tuple(lead_a), tuple(lead_b))
        except ValueError:
            wanted = f"leading dimensions that broadcast against {tuple(lead_a)}"
            raise ShapeError(names[1], str(b.shape), wanted) from None
        dst = (*lead, *([m] if a.ndim > 1 else []), *([n] if b.ndim > 1 else []))
        return cls(tuple(lead_a), tuple(lead_b), lead, m, k, n, dst)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to multiply."""
        return not (math.prod(self.lead) and self.m and self.k and self.n)

    @property
    def is_one(self) -> bool:
        """Whether one matrix B multiplies all of A."""
        return math.prod(self.lead_b) == 1

    @property
    def whole(self) -> Dims:
        """The dims of the result with those that vectors lack."""
        return (*self.lead, self.m, self.n)

    def matrices(self, a: Array, b: Array) -> tuple[Array, Array]:
        """Return A and B as a matmul of ours takes them: of two dimensions, or of three."""
        if self.is_one:
            return a.reshape(-1, self.k), b.reshape(self.k, self.n)
        stacked_a = np.broadcast_to(
            a.reshape(*self.lead_a, self.m, self.k), (*self.lead, self.m, self.k)
        )
        stacked_b = np.broadcast_to(
            b.reshape(*self.lead_b, self.k, self.n), (*self.lead, self.k, self.n)
        )
        return stacked_a.reshape(-1, self.m, self.k), stacked_b.reshape(-1, self.k, self.n)

    def zeros(self, operator: str, dtype: np.dtype[Any]) -> Array:
        """Return the sums of nothing."""
        record(operator, (), "an empty dimension: nothing to multiply")
        return np.zeros(self.dst, dtype)

    def rows(self, name: str, values: Array) -> Array:
        """Return values of each row of A, (..., M, 1), or one."""
        if values.size == 1:
            return values.reshape(())
        values = values.reshape(-1, 1) if values.ndim == 1 else values
        self._check(name, values, (*self.lead, self.m, 1), f"one value, ({self.m},)")
        return values

    def columns(self, name: str, values: Array) -> Array:
        """Return values of each column of B, (..., 1, N), or one."""
        if values.size == 1:
            return values.reshape(())
        self._check(name, values, (*self.lead, 1, self.n), f"one value, ({self.n},)")
        return values.reshape(1, -1) if values.ndim == 1 else values

    def placed(self, name: str, values: Array) -> Array:
        """Return values that say by their dims whether they are of rows or of columns."""
        if values.size == 1:
            return values.reshape(())
        wanted = f"one value, ({self.m}, 1)"
        if values.ndim < 2:
            raise ShapeError(name, str(values.shape), f"{wanted} or (1, {self.n})")
        self._check(name, values, self.whole, wanted)
        return values

    def is_by_column(self, values: Array) -> bool:
        """Tell whether values are one, or one for each column of one matrix B."""
        return values.size == 1 or (self.is_one and values.size == values.shape[-1])

    @staticmethod
    def _check(name: str, values: Array, dims: Dims, wanted: str) -> None:
        try:
            fits = np.broadcast_shapes(values.shape, dims) == dims
        except ValueError:
            fits = False
        if not fits:
            raise ShapeError(name, str(values.shape), f"{wanted} or what broadcasts to {dims}")
