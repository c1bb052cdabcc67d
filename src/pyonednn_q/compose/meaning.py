"""Meaning: what was asked of a primitive, in float64, as a band that a right result stays within.

    acc = Σ (src − src_zero_point) · (wei − wei_zero_point)      each with scales of its own, if any
    x   = scale · acc + bias          or  scale · (acc + bias), for a bias that counts sums
    dst = saturate(rne(chain(x) / dst_scale + dst_zero_point)), or a cast

Nothing here knows how a chain was lowered: a plan is compared with this by `self_check`. The band
is as wide as the rounding errors of float32 can make it (`expr.bounded`), plus the levels that
rewrites declared; no wider.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.expr.bounded import ROUNDINGS, UNIT, evaluate_bounded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from pyonednn_q.compose.places import Places
    from pyonednn_q.expr.chain import Chain

    F64 = NDArray[np.float64]

__all__ = ["Band", "Meaning"]

Array = np.ndarray[Any, Any]

_ULP = {"f32": 2.0**-23, "bf16": 2.0**-7, "f16": 2.0**-10}
_LARGEST = {"f32": 3.4e38, "bf16": 3.3e38, "f16": 65504.0}
_SMALLEST = {"f32": 2.0**-126, "bf16": 2.0**-126, "f16": 2.0**-14}  # normal; below may be flushed
_S32_SATURATED = 2147483520  # the largest float32 below 2**31: where some kernels saturate


@dataclass(frozen=True, slots=True)
class Band:
    """The least and the greatest result that is right, as (places, channels)."""

    low: F64
    high: F64

    def wrong(self, dst: Array) -> NDArray[np.bool_]:
        """Tell where a result lies outside."""
        got = dst.astype(np.float64)
        known = np.isfinite(self.low) & np.isfinite(self.high)
        return known & ~((got >= self.low) & (got <= self.high))


@dataclass(frozen=True, slots=True)
class Meaning:
    """What was asked.

    Attributes
    ----------
    scale, dst_scale : ndarray
        One value, or one per output channel.
    src_zero_point, wei_zero_point, dst_zero_point : int
        Of the tensors.
    bias : ndarray or None
        One value per output channel.
    bias_in_acc : bool
        Whether it counts sums.
    chain : Chain
        What follows.
    dst : str
        Data type of the result.
    levels : int
        How many levels rewrites may move a rounding by.
    rounds_first : bool
        Whether the zero point of dst is added to rounded values.
    splits_src : bool
        Whether the zero point's share of the sums is rounded on its own.
    src_scale, wei_scale : ndarray
        What elements are worth one by one, where `scale` cannot say it; they broadcast.
    """

    scale: F64
    dst_scale: F64
    src_zero_point: int
    wei_zero_point: int
    dst_zero_point: int
    bias: F64 | None
    bias_in_acc: bool
    chain: Chain
    dst: str
    levels: int = 0
    rounds_first: bool = False
    splits_src: bool = False
    src_scale: F64 = field(default_factory=lambda: np.ones(1))
    wei_scale: F64 = field(default_factory=lambda: np.ones(1))

    def band(
        self,
        places: Places,
        src: Array,
        wei: Array,
        *,
        before: Array | None = None,
        operands: Mapping[str, Array] | None = None,
    ) -> Band:
        """Return what dst may be at the places.

        Parameters
        ----------
        places : Places
            Where.
        src, wei : ndarray
            In the problem's dims.
        before : ndarray, optional
            What a Sum reads, in dst's dims.
        operands : mapping of str to ndarray, optional
            Leaves of the chain: in dst's dims, or one value per channel, or one value.
        """
        with np.errstate(all="ignore"):
            x, error = self._entering(places, src, wei)
            y, error = evaluate_bounded(
                self.chain,
                x,
                error,
                levels=self.levels,
                dst_before=None if before is None else places.take(before).astype(np.float64),
                operands=_at(places, operands or {}),
            )
            return self._stored(y, error)

    def _entering(self, places: Places, src: Array, wei: Array) -> tuple[F64, F64]:
        src = (src.astype(np.float64) - self.src_zero_point) * self.src_scale
        wei = (wei.astype(np.float64) - self.wei_zero_point) * self.wei_scale
        acc = places.sums(src, wei)
        error = UNIT * np.abs(acc)
        are_codes = self.src_scale.size == self.wei_scale.size == 1
        if dtypes.is_float(places.problem.wei.dtype) or not are_codes:
            # Sums of rounded products: every addition may round what there is so far.
            inner = places.problem.macs // max(places.problem.dst.size, 1) + ROUNDINGS
            if places.problem.kind == "deconvolution":
                inner = places.problem.wei.size
            error = UNIT * inner * places.sums(np.abs(src), np.abs(wei))
        if self.splits_src:
            # Both parts of the sum are as large as all weights times the zero point.
            error = error + ROUNDINGS * UNIT * abs(self.src_zero_point) * _sums(places, wei)
        bias = np.zeros(1) if self.bias is None else self.bias
        shift = self.scale * bias if self.bias_in_acc else bias
        scaled = self.scale * acc
        error = self.scale * error + ROUNDINGS * UNIT * (np.abs(scaled) + np.abs(shift))
        return scaled + shift, error

    def _stored(self, y: F64, error: F64) -> Band:
        y, error = y / self.dst_scale, error / self.dst_scale
        if dtypes.is_float(self.dst):
            error = error + _ULP[self.dst] * np.abs(y) + _SMALLEST[self.dst]
            error = np.where(np.abs(y) + error < _LARGEST[self.dst], error, np.inf)
            return Band(y - error, y + error)
        point = self.dst_zero_point
        error = error + ROUNDINGS * UNIT * (np.abs(y) + abs(point))
        if self.rounds_first:
            low, high = np.rint(y - error) + point, np.rint(y + error) + point
        else:
            low, high = np.rint(y + point - error), np.rint(y + point + error)
        least, greatest = dtypes.qmin(self.dst), dtypes.qmax(self.dst)
        low = np.clip(low - self.levels, least, greatest)
        if self.dst == "s32":
            low = np.minimum(low, _S32_SATURATED)
        return Band(low, np.clip(high + self.levels, least, greatest))


def _sums(places: Places, wei: F64) -> F64:
    """Return the sum of the absolute weights of each channel."""
    sizes = np.abs(wei)
    if places.problem.kind == "matmul":
        return np.asarray(sizes.reshape(-1, *wei.shape[-2:]).sum(axis=1).max(axis=0))
    return np.asarray(sizes.reshape(places.problem.dst.dims[1], -1).sum(axis=1))


def _at(places: Places, operands: Mapping[str, Array]) -> dict[str, Array]:
    dims = places.problem.dst.dims
    return {
        name: places.take(array) if array.shape == dims else array.reshape(-1)
        for name, array in operands.items()
    }
