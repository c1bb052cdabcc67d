"""Meaning: what was asked of a call, in float64, as a band that a right result stays within.

Kernels compute in float32, in orders of their own, with constants that were folded and rounded
once. What a step may add to the error is stated here, generously but from its own arithmetic:

- each step costs at most four roundings of the terms that it adds up: two constants, a product, a
  sum; a rounding is 2**-24 of the term;
- a transcendental function is off by at most 2**-16, or that part of its value: a good ten times
  what kernels were measured to be off;
- an error that comes in goes out as far as the step moves when its input moves by it: so a step
  with jumps (round, compare) passes nothing on until a jump is within reach.

    acc = Σ (src − src_zero_point) · (wei − wei_zero_point)      each with scales of its own, if any
    x   = scale · acc + bias          or  scale · (acc + bias), for a bias that counts sums
    dst = saturate(rne(chain(x) / dst_scale + dst_zero_point)), or a cast of what is rounded there

The band is as wide as the rounding errors of float32 can make it (`bounded`), plus the levels
that rewrites declared; no wider. Integers that are asked for as they are have no band: they are
the integers. Another runtime's requantization may be as far from the real value as it declares.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.dtypes import F32_FAR, F32_LEAST, F32_UNIT, Array
from pyonednn_q.expr.evaluate import evaluate
from pyonednn_q.expr.steps import Affine, Binary, Chain, Clip, Eltwise, Leaf, Round, Step, Sum

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    from pyonednn_q.check.places import Places

    F64 = NDArray[np.float64]

ROUNDINGS = 4.0
_TRANSCENDENTAL = 2.0**-16
_CLIPS = frozenset(("clip", "clip_v2", "round"))
_PLAIN = frozenset(("relu", "linear", "abs", "square", "sqrt", "hardsigmoid", "hardswish"))


def evaluate_bounded(
    chain: Chain,
    x: ArrayLike,
    error: ArrayLike,
    *,
    levels: int = 0,
    dst_before: ArrayLike | None = None,
    operands: Mapping[str, Any] | None = None,
) -> tuple[F64, F64]:
    """Return values of a chain in float64, and bounds for float32 arithmetic.

    Parameters
    ----------
    chain, x, dst_before, operands
        Arguments of `evaluate`; channels are on axis 1.
    error : array_like
        Largest error of x, in the units of x; broadcasts to x.
    levels : int
        Number of levels by which a rounding may be off, as rewrites with a bound declare.

    Returns
    -------
    (ndarray, ndarray) of float64
        Values and bounds; infinite where float32 may leave its range.

    Examples
    --------
    >>> y, e = evaluate_bounded(Chain(Round()), [[0.25, 0.4999]], 1e-3)
    >>> y.tolist(), e.tolist()
    ([[0.0, 0.0]], [[0.0, 1.0]])
    """
    value = np.asarray(x, np.float64)
    bound = np.broadcast_to(np.asarray(error, np.float64), value.shape)
    run = partial(evaluate, dst_before=dst_before, operands=operands)
    with np.errstate(all="ignore"):
        for step in chain:
            alone = Chain(step)
            out = run(alone, value)
            moved = [np.abs(run(alone, value + sign * bound) - out) for sign in (-1.0, 1.0)]
            bound = np.maximum(*moved) + _own(step, value, out, levels)
            value = out
            bound = np.where(np.abs(value) + bound < F32_FAR, bound, np.inf)
    return value, bound


def _own(step: Step, x: F64, y: F64, levels: int) -> F64 | float:
    """Return the error that a step adds, on its way from x to y."""
    if isinstance(step, Round):
        return float(levels)
    if isinstance(step, Clip) or (isinstance(step, Eltwise) and step.alg in _CLIPS):
        return F32_UNIT * np.abs(y)  # its limits are constants
    if isinstance(step, Eltwise) and step.alg not in _PLAIN:
        size = max(1.0, abs(step.alpha), abs(step.beta))
        return _TRANSCENDENTAL * np.maximum(np.maximum(np.abs(y), np.abs(x)), size)
    terms = np.abs(y)
    if isinstance(step, Affine):
        terms = terms + np.abs(step.scale.spread(y.shape[1]) * x)
    elif isinstance(step, (Sum, Binary)):
        terms = terms + np.abs(x)  # what was added is no more than both together
    elif isinstance(step, Eltwise):
        terms = terms + abs(step.alpha) * np.abs(x) + abs(step.beta)
    return ROUNDINGS * F32_UNIT * terms


_ULP = {"f32": 2.0**-23, "bf16": 2.0**-7, "f16": 2.0**-10}
_LARGEST = {"f32": F32_FAR, "bf16": 3.3e38, "f16": 65504.0}
_SMALLEST = {"f32": F32_LEAST, "bf16": F32_LEAST, "f16": 2.0**-14}  # normal; below may be flushed
_NOTHING = np.zeros(1)


def _one() -> F64:
    return np.ones(1)


def _zero() -> F64:
    return np.zeros(1)


@dataclass(frozen=True, slots=True)
class Band:
    """The least and the greatest result that is right, as (places, channels)."""

    low: F64
    high: F64

    def wrong(self, dst: Array) -> NDArray[np.bool_]:
        """Tell where a result lies outside."""
        actual = dst.astype(np.float64)
        bounded = np.isfinite(self.low) & np.isfinite(self.high)
        return bounded & ~((actual >= self.low) & (actual <= self.high))


@dataclass(frozen=True, slots=True)
class Meaning:
    """Meaning of a call: its problem, and the real values of its integers.

    Attributes
    ----------
    chain : Chain
        The steps that follow the sums.
    dst : str
        Data type of the result.
    scale : ndarray
        Real value of a sum of 1: one value, one per output channel, or one per place and channel.
    dst_scale : ndarray
        One value, or one per output channel.
    src_zero_point, wei_zero_point : ndarray
        Codes of source and weights that stand for real 0; they broadcast to the tensors.
    dst_zero_point : int
        The code of the result that stands for real 0.
    bias : ndarray or None
        One value per output channel.
    bias_in_acc : bool
        Whether the bias is in units of the accumulator and added to it; if not, it is in real
        units.
    levels : int
        Number of levels by which rewrites may change a rounding.
    rounds_first : bool
        Whether the zero point of dst is added to rounded values.
    splits_src : bool
        Whether the zero point's share of the sums is rounded on its own.
    in_float32 : bool
        Whether integers that are asked for as they are may pass through float32.
    distance : (float, float, float) or None
        Largest distance of a result from the real value, if another runtime's arithmetic makes it:
        in levels, in parts of the value, and in parts of the sum.
    src_scale, wei_scale : ndarray
        Real values of codes of 1, element by element, where `scale` cannot express them; they
        broadcast.
    """

    chain: Chain
    dst: str
    scale: F64 = field(default_factory=_one)
    dst_scale: F64 = field(default_factory=_one)
    src_zero_point: F64 = field(default_factory=_zero)
    wei_zero_point: F64 = field(default_factory=_zero)
    dst_zero_point: int = 0
    bias: F64 | None = None
    bias_in_acc: bool = False
    levels: int = 0
    rounds_first: bool = False
    splits_src: bool = False
    in_float32: bool = False
    distance: tuple[float, float, float] | None = None
    src_scale: F64 = field(default_factory=_one)
    wei_scale: F64 = field(default_factory=_one)

    def band(
        self,
        places: Places,
        src: Array,
        wei: Array,
        *,
        before: Array | None = None,
        operands: Mapping[str, Array] | None = None,
    ) -> Band:
        """Return the right values of dst at the places.

        Parameters
        ----------
        places : Places
            The places of dst to compute.
        src, wei : ndarray
            Source and weights in the geometry's dims: codes, or real values of a float type.
        before : ndarray, optional
            Values that a Sum reads, in dst's dims.
        operands : mapping of str to ndarray, optional
            Leaves of the chain: in dst's dims, or one value per channel, per row, or one value.
        """
        is_rounded = wei.dtype.kind not in "iu" or self.src_scale.size * self.wei_scale.size > 1
        src = (src.astype(np.float64) - self.src_zero_point) * self.src_scale
        wei = (wei.astype(np.float64) - self.wei_zero_point) * self.wei_scale
        with np.errstate(all="ignore"):
            acc = places.sums(src, wei)
            if self.distance is not None:
                return self._near(acc, *self.distance)
            if self._is_whole:
                return self._whole(acc)
            # Sums of rounded products: every addition may round what there is so far.
            error = _summed(places, src, wei) if is_rounded else F32_UNIT * np.abs(acc)
            if self.splits_src:
                # Both parts of the sum are as large as all weights times the zero point.
                point = float(np.abs(self.src_zero_point).max())
                error = error + ROUNDINGS * F32_UNIT * point * _sizes(places, wei)
            return self._after(
                acc,
                error,
                None if before is None else places.take(before),
                self._at(places, operands or {}),
            )

    def band_of(
        self,
        acc: F64,
        error: F64,
        *,
        before: Array | None = None,
        operands: Mapping[str, Array] | None = None,
    ) -> Band:
        """Return the right values of dst for sums that are known, all as (places, channels).

        Parameters
        ----------
        acc : ndarray of float64
            Exact sums of codes, or other values that enter: as real values.
        error : ndarray of float64
            Largest error of a kernel in them.
        before, operands
            Arguments of `band`.
        """
        with np.errstate(all="ignore"):
            return (
                self._whole(acc)
                if self._is_whole
                else self._after(acc, error, before, dict(operands or {}))
            )

    def _after(
        self, acc: F64, error: F64, before: Array | None, operands: dict[str, Array]
    ) -> Band:
        """Return the right values of dst for sums with a bound of their error."""
        x, error = self._entering(acc, error)
        y, error = evaluate_bounded(
            self.chain,
            x,
            error,
            levels=self.levels,
            dst_before=None if before is None else before.astype(np.float64),
            operands=operands,
        )
        return self._stored(y, error)

    @property
    def _is_whole(self) -> bool:
        """Whether the result is the sum itself, as an integer."""
        is_scaled = self.src_scale.size > 1 or self.wei_scale.size > 1
        is_one = not is_scaled and bool((self.scale == self.dst_scale).all())
        has_real = self.bias is not None and not self.bias_in_acc
        plain = not len(self.chain) and not has_real and not self.in_float32
        return self.dst == "s32" and is_one and plain

    def _whole(self, acc: F64) -> Band:
        whole = acc + self.dst_zero_point + (0.0 if self.bias is None else self.bias)
        whole = np.clip(whole, dtypes.qmin(self.dst), dtypes.qmax(self.dst))
        return Band(np.where(whole > dtypes.F32_BELOW_S32, dtypes.F32_BELOW_S32, whole), whole)

    def _near(self, acc: F64, levels: float, relative: float, of_acc: float) -> Band:
        """Return the band around the real value that another runtime's arithmetic keeps to."""
        bias = _NOTHING if self.bias is None else self.bias
        count = bias if self.bias_in_acc else _NOTHING
        real = bias if not self.bias_in_acc else _NOTHING
        scaled = self.scale * (acc + count) / self.dst_scale
        value = scaled + real / self.dst_scale + self.dst_zero_point
        terms = np.abs(scaled) + np.abs(real / self.dst_scale) + abs(self.dst_zero_point)
        room = levels + relative * terms + of_acc * np.abs(acc + count)
        least, greatest = dtypes.qmin(self.dst), dtypes.qmax(self.dst)
        low, high = np.ceil(value - room), np.floor(value + room)
        for step in self.chain:
            if isinstance(step, Clip):  # a fused activation: of codes, its ends rounded to nearest
                ends = np.array([step.lo.least, step.hi.least]) / self.dst_scale.max()
                ends = ends + self.dst_zero_point
                low = np.clip(low, *np.ceil(ends - 0.5 - F32_UNIT * np.abs(ends)))
                high = np.clip(high, *np.floor(ends + 0.5 + F32_UNIT * np.abs(ends)))
        low = np.clip(low, least, greatest)
        if self.dst == "s32":
            low = np.minimum(low, dtypes.F32_BELOW_S32)
        return Band(low, np.clip(high, least, greatest))

    def _entering(self, acc: F64, error: F64) -> tuple[F64, F64]:
        """Return the values that enter the chain."""
        bias = _NOTHING if self.bias is None else self.bias
        shift = self.scale * bias if self.bias_in_acc else bias
        scaled = self.scale * acc
        error = self.scale * error + ROUNDINGS * F32_UNIT * (np.abs(scaled) + np.abs(shift))
        return scaled + shift, error

    def _stored(self, y: F64, error: F64) -> Band:
        y, error = y / self.dst_scale, error / self.dst_scale
        if dtypes.is_float(self.dst):
            if self.dst_zero_point:
                y = y + self.dst_zero_point
                error = error + ROUNDINGS * F32_UNIT * (np.abs(y) + abs(self.dst_zero_point))
            error = error + _ULP[self.dst] * np.abs(y) + _SMALLEST[self.dst]
            error = np.where(np.abs(y) + error < _LARGEST[self.dst], error, np.inf)
            return Band(y - error, y + error)
        point = self.dst_zero_point
        error = error + ROUNDINGS * F32_UNIT * (np.abs(y) + abs(point))
        if self.rounds_first:
            low, high = np.rint(y - error) + point, np.rint(y + error) + point
        else:
            low, high = np.rint(y + point - error), np.rint(y + point + error)
        least, greatest = dtypes.qmin(self.dst), dtypes.qmax(self.dst)
        low = np.clip(low - self.levels, least, greatest)
        if self.dst == "s32":
            low = np.minimum(low, dtypes.F32_BELOW_S32)
        return Band(low, np.clip(high + self.levels, least, greatest))

    def _at(self, places: Places, operands: Mapping[str, Array]) -> dict[str, Array]:
        """Return operands at the places."""
        steps = [step.operand for step in self.chain if isinstance(step, Binary)]
        extents = {leaf.name: leaf.extent for leaf in steps if isinstance(leaf, Leaf)}
        dims = places.geometry.dst
        at_places = {}
        for name, array in operands.items():
            if extents[name] == "full" or array.shape == dims:
                at_places[name] = places.take(np.broadcast_to(array, dims))
            elif extents[name] == "per_row":
                at_places[name] = array[places.index[-1]]
            else:
                at_places[name] = array.reshape(-1)
        return at_places


def summed_error(sizes: F64, terms: int) -> F64:
    """Return the bound for a sum of so many floating products, from that of their magnitudes."""
    return F32_UNIT * (terms + ROUNDINGS) * sizes


def _summed(places: Places, src: F64, wei: F64) -> F64:
    """Return bounds for sums of floating values."""
    geometry = places.geometry
    terms = wei.shape[-2] if geometry.kind == "matmul" else wei.size
    if geometry.kind in {"convolution", "inner_product"}:
        terms //= geometry.channels
    return summed_error(places.sums(np.abs(src), np.abs(wei)), terms)


def _sizes(places: Places, wei: F64) -> F64:
    """Return the sum of the absolute weights of each channel."""
    sizes = np.abs(wei)
    if places.geometry.kind == "matmul":
        return np.asarray(sizes.reshape(-1, *wei.shape[-2:]).sum(axis=1).max(axis=0))
    return np.asarray(sizes.reshape(places.geometry.channels, -1).sum(axis=1))
