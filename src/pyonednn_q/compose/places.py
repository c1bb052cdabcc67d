"""Places: elements of a result, and the exact sums of products that belong to them.

For comparison with a kernel, so as unlike one as can be: for each place the elements of src that
its window meets are gathered, and multiplied with the weights, in float64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.compose.convolution import ConvProblem, DeconvProblem
from pyonednn_q.compose.dense import InnerProductProblem, MatMulProblem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyonednn_q.compose.primitive import DenseProblem

    F64 = NDArray[np.float64]
    Indices = tuple[NDArray[np.intp], ...]

__all__ = ["MOST_GATHERED", "MOST_MACS", "Places"]

Array = np.ndarray[Any, Any]

MOST_MACS = 2**27  # some tenths of a second in float64
MOST_GATHERED = 2**22
_LEAST = 16


@dataclass(frozen=True, slots=True)
class Places:
    """Places of a result, all channels of each.

    Attributes
    ----------
    problem : ConvProblem, DeconvProblem, InnerProductProblem or MatMulProblem
        Whose result.
    index : tuple of ndarray
        One array for each dimension but the channels'.
    """

    problem: DenseProblem
    index: Indices

    @classmethod
    def of(cls, problem: DenseProblem, seed: int = 0) -> Places:
        """Return all places, or as many as `MOST_MACS` and `MOST_GATHERED` allow.

        Those are the corners, and others drawn evenly.
        """
        dims = _dims(problem)
        total = math.prod(dims)
        met = problem.wei.size // _channels(problem)  # elements of src that a channel meets
        if isinstance(problem, (ConvProblem, DeconvProblem)):
            met *= problem.groups  # gathered for all groups
        if isinstance(problem, MatMulProblem):
            met = problem.k
        each = max(problem.macs // max(total, 1), 1)
        count = max(_LEAST, min(MOST_MACS // each, MOST_GATHERED // met))
        if count >= total:
            flat = np.arange(total)
        else:
            corners = np.array(list(product(*((0, d - 1) for d in dims)))).T
            drawn = np.random.default_rng(seed).choice(total, count, replace=False)
            flat = np.union1d(np.ravel_multi_index(tuple(corners), dims), drawn)
        return cls(problem, tuple(np.unravel_index(flat, dims)))

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.index[0])

    @property
    def are_all(self) -> bool:
        """Whether no place is missing."""
        return self.count == math.prod(_dims(self.problem))

    def take(self, array: Array) -> Array:
        """Return the values of an array of dst's dims, as (places, channels)."""
        last = array if self.problem.kind == "matmul" else np.moveaxis(array, 1, -1)
        return last[self.index]

    def at(self, place: int, channel: int) -> tuple[int, ...]:
        """Return where in dst a value of `take` is."""
        first, *rest = (int(index[place]) for index in self.index)
        if self.problem.kind == "matmul":
            return (first, *rest, channel)
        return (first, channel, *rest)

    def sums(self, src: Array, wei: Array) -> F64:
        """Return Σ src · wei at the places, in float64, as (places, channels).

        Parameters
        ----------
        src, wei : ndarray
            Of the problem's dims, zero points subtracted.
        """
        problem = self.problem
        src, wei = src.astype(np.float64), wei.astype(np.float64)
        if isinstance(problem, MatMulProblem):
            return self._products(problem, src, wei)
        if isinstance(problem, InnerProductProblem):
            rows: F64 = src.reshape(len(src), -1)[self.index[0]] @ wei.reshape(len(wei), -1).T
            return rows
        patches = self._patches(problem, src)  # (places, kernel, IC)
        groups, spatial = problem.groups, problem.spatial
        grouped = wei.reshape(groups, problem.oc // groups, -1, math.prod(wei.shape[-spatial:]))
        taps = patches.reshape(*patches.shape[:2], groups, -1).transpose(2, 0, 1, 3)
        taps = taps.reshape(groups, self.count, -1)
        weights = grouped.transpose(0, 3, 2, 1).reshape(groups, -1, problem.oc // groups)
        made: F64 = np.matmul(taps, weights).transpose(1, 0, 2).reshape(self.count, problem.oc)
        return made

    def _products(self, problem: MatMulProblem, src: F64, wei: F64) -> F64:
        *lead, row = self.index

        def of(dims: tuple[int, ...]) -> Indices:  # a dimension of 1 is broadcast
            pairs = zip(lead, dims[:-2], strict=True)
            return tuple(np.where(d == 1, 0, index) for index, d in pairs)

        where = (*of(src.shape), row)
        rows = src[where]
        if math.prod(wei.shape[:-2]) == 1:
            return np.asarray(rows @ wei.reshape(wei.shape[-2:]))
        made = np.empty((self.count, problem.n))
        batches = np.ravel_multi_index(of(wei.shape), wei.shape[:-2])
        for batch in np.unique(batches):
            mine = batches == batch
            made[mine] = rows[mine] @ wei.reshape(-1, *wei.shape[-2:])[batch]
        return made

    def _patches(self, problem: ConvProblem | DeconvProblem, src: F64) -> F64:
        """Return what each window meets, 0 beyond the edges: (places, taps, IC)."""
        spatial = problem.spatial
        index: list[Any] = [self.index[0].reshape(-1, *(1,) * spatial)]
        inside = np.ones((1,) * (spatial + 1), bool)
        for axis in range(spatial):
            at, valid = _met(problem, axis, self.index[1 + axis])
            shape = [self.count, *(1,) * spatial]
            shape[1 + axis] = at.shape[1]
            index.append(np.where(valid, at, 0).reshape(shape))
            inside = inside & valid.reshape(shape)
        found = np.moveaxis(src, 1, -1)[tuple(index)] * inside[..., np.newaxis]
        patches: F64 = found.reshape(self.count, -1, problem.ic)
        return patches


def _dims(problem: DenseProblem) -> tuple[int, ...]:
    dims = problem.dst.dims
    return dims[:-1] if problem.kind == "matmul" else (dims[0], *dims[2:])


def _channels(problem: DenseProblem) -> int:
    return problem.n if isinstance(problem, MatMulProblem) else problem.oc


def _met(
    problem: ConvProblem | DeconvProblem, axis: int, out: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return which element of src each tap meets along an axis, and whether there is one."""
    window = problem.window
    length = problem.src.dims[2 + axis]
    stride, low = problem.strides[axis], problem.padding_lo[axis]
    taps = np.arange(window.kernel[axis]) * problem.dilation[axis]
    if isinstance(problem, ConvProblem):
        at = out[:, np.newaxis] * stride - low + taps
        return at, (at >= 0) & (at < length)
    reach = out[:, np.newaxis] + low - taps  # i · stride
    at = reach // stride
    return at, (reach % stride == 0) & (at >= 0) & (at < length)
