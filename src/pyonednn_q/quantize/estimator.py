"""Common part of the estimators of ranges: batches in, states that merge, a range out."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.argument import flag, instance, numbers, whole
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["Estimator"]


class Estimator(ABC):
    """Estimator of the range of values, in one pass over batches.

    `estimator` makes one. It holds plain arrays, so it can be pickled, copied, and sent between
    processes. All kinds have these methods.

    Attributes
    ----------
    kind : str
        Name of the kind, as in `ESTIMATORS`.
    axis : int or None
        Dimension of the channels in a batch; None: one range for the tensor.
    symmetric : bool
        Whether ranges are (-t, t), or (0, t) if no value was below 0.
    by_batch : bool
        Whether a batch is one sample, as for weights; else each index of dimension 0 is one.
    """

    def __init__(
        self,
        kind: str,
        *,
        axis: int | None = None,
        symmetric: bool = False,
        by_batch: bool = False,
    ) -> None:
        self.kind = kind
        self.axis = None if axis is None else whole("axis", axis)
        flag("symmetric", symmetric)
        self.symmetric = symmetric
        flag("by_batch", by_batch)
        self.by_batch = by_batch
        self._least: Array | None = None
        self._greatest: Array | None = None

    def update(self, batch: ArrayLike) -> None:
        """Add the values of a batch.

        Parameters
        ----------
        batch : array_like
            Finite real values. Dimension 0 runs over samples, unless `axis` is 0 or `by_batch` is
            set.

        Raises
        ------
        ArgumentError
            No values, or some that are not finite.
        ShapeError
            There is no such dimension, or the number of channels differs from earlier batches.
        """
        values = numbers("batch", batch)
        if not values.size:
            raise ArgumentError("batch", "no values", "at least one, and finite numbers")
        least, greatest = self._by_sample(values)
        if not (np.isfinite(least).all() and np.isfinite(greatest).all()):  # NaN goes through both
            got = "values that are not finite"
            raise ArgumentError("batch", got, "at least one, and finite numbers")
        if self._least is not None and least.shape[-1] != self._least.size:
            wanted = f"{self._least.size} along axis {self.axis}, as before"
            raise ShapeError("batch", f"shape {values.shape}", wanted)
        self._widen(least.min(axis=0), greatest.max(axis=0))
        self._take(values, least, greatest)

    def merge(self, other: Estimator) -> Estimator:
        """Return the estimator of the values of both, these first.

        Neither changes; `absorb` changes this one instead.

        Raises
        ------
        ArgumentError
            The other is of another kind, or has other parameters.
        ShapeError
            The batch has another number of channels.
        """
        both = copy.deepcopy(self)
        both.absorb(other)
        return both

    def absorb(self, other: Estimator) -> None:
        """Add the values of another estimator: `merge` in place."""
        instance("other", other, type(self))
        if self.parameters() != other.parameters():
            wanted = f"a {self.kind} of the same parameters"
            raise ArgumentError("other", f"a {other.kind} of other parameters", wanted)
        theirs, ours = other.extremes, self.extremes
        if theirs is None:
            return
        if ours is not None and ours[0].size != theirs[0].size:
            raise ShapeError("other", f"{theirs[0].size} channels", f"{ours[0].size}")
        self._widen(*theirs)
        self._join(other)

    def range(self) -> tuple[Array, Array]:
        """Return the lowest and the highest value, (lo, hi), in the units of the values.

        Returns
        -------
        lo, hi : () or (C,) ndarray of float64
            One each for the tensor, or for each channel.

        Raises
        ------
        ArgumentError
            No values were added.
        """
        if self._least is None:
            raise ArgumentError("range", "an estimator without values", "an update before it")
        lo, hi = self._ends()
        if self.symmetric:
            lo = -hi if self.signed else np.zeros_like(hi)
        if self.axis is None:
            return lo.reshape(()), hi.reshape(())
        return lo, hi

    @property
    def signed(self) -> bool:
        """Whether any value was below 0; for means and medians, whether any of those was."""
        return self._least is not None and bool((self._least < 0.0).any())

    @property
    def extremes(self) -> tuple[Array, Array] | None:
        """Lowest and highest value of each channel, whatever the range; None without values."""
        if self._least is None or self._greatest is None:
            return None
        return self._least.copy(), self._greatest.copy()

    def _by_sample(self, values: Array) -> tuple[Array, Array]:
        """Return the least and the greatest values, each (samples, channels), in float64.

        They are looked for where they lie, in their own type: most tensors are channels last.
        """
        axis = None
        if self.axis is not None:
            if not -values.ndim <= self.axis < values.ndim:
                raise ShapeError("batch", f"shape {values.shape}", f"a dimension {self.axis}")
            axis = self.axis % values.ndim
        sample = 0 if values.ndim and axis != 0 and not self.by_batch else None
        over = tuple(at for at in range(values.ndim) if at not in {axis, sample})
        shape = tuple(1 if at is None else values.shape[at] for at in (sample, axis))
        least, greatest = (
            each(axis=over).astype(np.float64).reshape(shape) for each in (values.min, values.max)
        )
        return least, greatest

    def _rows(self, values: Array) -> Array:
        """Return values as (samples, values of a sample, channels), in float64."""
        values = values.astype(np.float64)
        if self.axis is None:
            samples = len(values) if values.ndim and not self.by_batch else 1
            return values.reshape(samples, -1, 1)
        last = np.moveaxis(values, self.axis, -1)
        by_sample = values.ndim > 1 and self.axis % values.ndim != 0 and not self.by_batch
        return last.reshape(len(last) if by_sample else 1, -1, last.shape[-1])

    def _widen(self, least: Array, greatest: Array) -> None:
        if self._least is not None and self._greatest is not None:
            least = np.minimum(self._least, least)
            greatest = np.maximum(self._greatest, greatest)
        self._least, self._greatest = least, greatest

    @abstractmethod
    def parameters(self) -> tuple[Any, ...]:
        """Return all parameters; only estimators with equal parameters merge."""

    @abstractmethod
    def _take(self, values: Array, least: Array, greatest: Array) -> None:
        """Take in values, whose ends are each (samples, channels)."""

    @abstractmethod
    def _join(self, other: Any) -> None:  # noqa: ANN401 - of the same class
        """Take in the state of another."""

    @abstractmethod
    def _ends(self) -> tuple[Array, Array]:
        """Return (lo, hi), each (C,); of a symmetric one, hi is the magnitude and lo anything."""
