"""FakeQuantize: OpenVINO's operator, with constants, as a value.

    n = levels - 1
    x <= min(il, ih) -> ol;  x > max(il, ih) -> oh
    else  round((x - il)/(ih - il)*n)/n*(oh - ol) + ol

With il == ih that is a threshold. With il > ih it jumps: from ol at ih to the last level, down to
the first at il, and up to oh; it can be computed, but no steps of a chain do that.

Seen as a quantizer and a dequantizer, with ``S_i = (ih-il)/n``, ``Z_i = -il/S_i``,
``S_o = (oh-ol)/n``, ``Z_o = -ol/S_o``::

    q = clamp(round(x/S_i + Z_i), 0, n)          y = (q - Z_o)*S_o
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyonednn_q.argument import numbers, real, whole
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.expr.fq_orders import FqOrder, fake_quantize
from pyonednn_q.expr.steps import Affine, Binary, Chain, Clip, Round, Step
from pyonednn_q.expr.vec import Vec, VecLike, constant
from pyonednn_q.qparams import along
from pyonednn_q.shown import shown

Array: TypeAlias = NDArray[Any]

_MAX_LEVELS = 65536
Constant: TypeAlias = "VecLike | ArrayLike"


@dataclass(frozen=True, slots=True, init=False)
class FakeQuantize:
    """FakeQuantize with constant ranges, per tensor or per channel.

    Parameters
    ----------
    input_low, input_high : float or array_like
        Range that is divided into levels: one value, or one for each channel, as (C,) or in the
        rank of the tensor, (1, C, 1, 1) for an activation and (C, 1, 1, 1) for weights. Low may be
        above high. Functions that need levels need low < high (`has_levels`); `chain` needs
        that, or a threshold.
    output_low, output_high : float or array_like
        Values of the first and the last level; low may be above high.
    levels : int
        Number of levels that the range is divided into, 2 to 65536.

    Attributes
    ----------
    axis : int or None
        Dimension of the channels, counted from the end of the tensor: -3 for (1, C, 1, 1). None:
        constants have one dimension, or are one value.

    Raises
    ------
    ArgumentError
        A range that is not finite, or too wide or too narrow for its levels in float64.
    ShapeError
        Constants with more than one dimension that is not 1, or with channels in different places.

    Examples
    --------
    >>> fq = FakeQuantize(0, 2.55, 0, 255, 256)
    >>> print(fq.chain())
    clip(x, 0, 2.55) > 100*x > round(x)
    """

    input_low: Vec
    input_high: Vec
    output_low: Vec
    output_high: Vec
    levels: int
    axis: int | None = field(default=None, compare=False, repr=False)

    def __init__(
        self,
        input_low: Constant,
        input_high: Constant,
        output_low: Constant,
        output_high: Constant,
        levels: int = 256,
    ) -> None:
        names = ("input_low", "input_high", "output_low", "output_high")
        ends = (input_low, input_high, output_low, output_high)
        axis: int | None = None
        for name, value in zip(names, ends, strict=True):
            vec, along = _with_axis(name, value)
            if not vec.is_finite:
                raise ArgumentError(name, str(vec), "finite numbers")
            if None not in (axis, along) and axis != along:
                got = f"channels along dimension {along}"
                raise ShapeError(name, got, f"{axis}, as in the ranges before it")
            axis = along if axis is None else axis
            object.__setattr__(self, name, vec)
        object.__setattr__(self, "axis", axis)
        object.__setattr__(self, "levels", _levels(levels))
        _ = self.channels
        with np.errstate(over="ignore", divide="ignore"):
            width = self.input_high - self.input_low
            per_unit = self.levels / np.abs(width.values())
        if not width.is_finite or np.isinf(per_unit[width.values() != 0.0]).any():
            got = f"a range of width {width}"
            raise ArgumentError("input_high", got, "one that float64 can divide into levels")

    @classmethod
    def symmetric(
        cls,
        high: Constant,
        levels: int = 256,
        *,
        output_low: Constant | None = None,
        output_high: Constant | None = None,
    ) -> FakeQuantize:
        """Build the signed range around zero in which 0 is a level and stays 0.

        An odd number of levels lies evenly around its middle: il = -ih. An even number has one
        more below 0 than above, il = -ih*levels/(levels - 2); il is then moved to the
        next number for which the definition, computed in float64, maps 0 to exactly 0.

        Without an output range, the output range is the input range.
        """
        if _levels(levels) == 2:
            raise ArgumentError("levels", "2", "at least 3: two levels have no zero")
        top, axis = _with_axis("high", high)
        if not top.is_finite:
            raise ArgumentError("high", str(top), "finite numbers")
        if top.least <= 0.0:
            raise ArgumentError("high", top.first(lambda t: t <= 0), "numbers above 0")
        low = -top if levels % 2 else _below_zero(top, levels)
        ends: tuple[Constant, Constant] = low, top
        if axis is not None:
            channels = numbers("high", high).size
            rank = (channels,) + (1,) * (-axis - 1)
            ends = low.spread(channels).reshape(rank), top.spread(channels).reshape(rank)
        return cls(
            *ends,
            ends[0] if output_low is None else output_low,
            ends[1] if output_high is None else output_high,
            levels,
        )

    def check_axis(self, argument: str, *axes: int) -> None:
        """Refuse constants whose channels are in another dimension than the tensor's.

        Parameters
        ----------
        argument : str
            Name of the argument in the error message.
        *axes : int
            Allowed dimensions, counted from the end of the tensor.

        Raises
        ------
        ShapeError
            The ranges lie along another dimension: (1, C, 1, 1) for weights (OC, IC, H, W), say.
        """
        if self.axis is not None and self.axis not in axes:
            wanted = f"{axes[0]}, the output channels; or constants of shape (C,)"
            raise ShapeError(argument, f"ranges along dimension {self.axis}", wanted)

    @property
    def channels(self) -> int | None:
        """Number of channels of the ranges, or ``None`` if all are per tensor."""
        count: int | None = None
        for name in ("input_low", "input_high", "output_low", "output_high"):
            channels = getattr(self, name).channels
            if None not in (channels, count) and channels != count:
                raise ShapeError(name, f"{channels} channels", f"{count} as the ranges before it")
            count = count or channels
        return count

    @property
    def is_threshold(self) -> bool:
        """Whether the input range is empty in every channel."""
        return self.input_low == self.input_high

    @property
    def has_levels(self) -> bool:
        """Whether input_low < input_high in every channel: x is cut to it and rounded to levels."""
        return (self.input_high - self.input_low).least > 0.0

    def check_levels(self, argument: str) -> None:
        """Refuse a FakeQuantize whose input range is empty or reversed in a channel.

        Parameters
        ----------
        argument : str
            Name of the argument in the error message.

        Raises
        ------
        ArgumentError
            Saying which of these, and where.
        """
        if self.has_levels:
            return
        width = self.input_high - self.input_low
        if self.is_threshold:
            got = "a threshold"
        elif width.least < 0.0:
            got = f"a reversed range, width {width.first(lambda w: w < 0)}"
        else:
            got = f"an empty range, width {width.first(lambda w: w == 0)}"
        raise ArgumentError(argument, got, "input_low < input_high in every channel")

    @property
    def scale_in(self) -> Vec:
        """S_i, the width of one level of the input."""
        self.check_levels("scale_in")
        return (self.input_high - self.input_low) / float(self.levels - 1)

    @property
    def zero_in(self) -> Vec:
        """Z_i, the (real) level of input 0."""
        self.check_levels("zero_in")
        return -self.input_low * self.levels_per_unit

    @property
    def levels_per_unit(self) -> Vec:
        """1/S_i, computed as n/(ih - il): the scale into levels, with one rounding less."""
        self.check_levels("levels_per_unit")
        return Vec(float(self.levels - 1)) / (self.input_high - self.input_low)

    @property
    def scale_out(self) -> Vec:
        """S_o, the width of one level of the output; negative where its range is reversed."""
        return (self.output_high - self.output_low) / float(self.levels - 1)

    @property
    def zero_out(self) -> Vec:
        """Z_o, the (real) level that becomes 0."""
        return -self.output_low / self.scale_out

    def chain(self) -> Chain:
        """Write the same function as steps: clip, into levels, round, out of levels.

        Steps that do nothing are left out. Exact in real arithmetic, up to the float64 rounding of
        the constants. Several values are one per channel of what the chain runs on: it does not
        know `axis`, which layers compare with their own (`check_axis`).

        Raises
        ------
        ArgumentError
            The input range is reversed in a channel; or it is empty in some but not in all, and
            there are more than two levels.
        """
        width = self.input_high - self.input_low
        # Of two levels, too: the upper one begins above the middle, whose tie goes down.
        if self.is_threshold or (self.levels == 2 and width.least == 0.0):
            middle = self.input_low + width * 0.5
            out_of = Affine(self.output_high - self.output_low, self.output_low)
            return Chain(Binary("gt", middle), *_unless_identity(out_of))
        return Chain(
            *self.quantize_steps(), *_unless_identity(Affine(self.scale_out, self.output_low))
        )

    def quantize_steps(self) -> tuple[Step, ...]:
        """Return the steps from x to the level q in 0..n."""
        self.check_levels("input_low")
        into = Affine(self.levels_per_unit, self.zero_in)
        return (Clip(self.input_low, self.input_high), *_unless_identity(into), Round())

    def __call__(self, x: ArrayLike, *, axis: int | None = None) -> NDArray[np.float64]:
        """Compute the definition in float64; channels lie where the constants say, else along 1."""
        return self._define(numbers("x", x).astype(np.float64), axis, "core")

    def evaluate_f32(
        self, x: ArrayLike, *, axis: int | None = None, order: FqOrder = "core"
    ) -> NDArray[np.float32]:
        """Compute the definition in float32, in its own operation order or in a shipping one."""
        with np.errstate(over="ignore"):
            return self._define(numbers("x", x).astype(np.float32), axis, order)

    def _define(
        self, x: NDArray[np.float64] | NDArray[np.float32], axis: int | None, order: FqOrder
    ) -> NDArray[Any]:
        if axis is None:
            axis = 1 if self.axis is None else self.axis
        low, high = _along(self.input_low, x, axis), _along(self.input_high, x, axis)
        first, last = _along(self.output_low, x, axis), _along(self.output_high, x, axis)
        return fake_quantize(x, low, high, first, last, levels=self.levels, order=order)

    def __str__(self) -> str:
        into, out = (f"[{a}, {b}]" for a, b in (
            (self.input_low, self.input_high), (self.output_low, self.output_high)))  # fmt: skip
        return f"fake_quantize(x, {into} -> {out}, {self.levels} levels)"


def _with_axis(name: str, value: Constant) -> tuple[Vec, int | None]:
    """Return a constant, and where its channels lie if it is in a tensor's rank."""
    if isinstance(value, (Vec, float, int)):
        return constant(name, value), None
    raw = numbers(name, value)
    if raw.ndim < 2 or not raw.size:
        return constant(name, raw), None
    along = [at - raw.ndim for at, length in enumerate(raw.shape) if length != 1]
    if len(along) > 1:
        wanted = "one value, or one per channel: no more than one dimension that is not 1"
        raise ShapeError(name, f"shape {raw.shape}", wanted)
    return constant(name, raw.reshape(-1)), along[0] if along else None


def _below_zero(high: Vec, levels: int) -> Vec:
    """Return il beside -ih*levels/(levels - 2) that makes m/n*(ih - il) + il 0, m = levels/2."""
    level = (levels // 2) / (levels - 1)
    low = -(high * (levels / (levels - 2)))
    # Both operations never fall, so this walks one way; it halves its distance with every step.
    while (nearer := -((high - low) * level)) != low:
        low = nearer
    return low


def _levels(value: float) -> int:
    number = 0.0 if isinstance(value, bool) else real("levels", value, wide=True)
    if not (number.is_integer() and 2 <= number <= _MAX_LEVELS):
        raise ArgumentError("levels", shown(value), f"a whole number from 2 to {_MAX_LEVELS}")
    return int(number)


def _unless_identity(step: Affine) -> tuple[Step, ...]:
    return () if step == Affine() else (step,)


def _along(vec: Vec, x: NDArray[Any], axis: int) -> NDArray[np.float64]:
    if vec.array is None:
        return np.asarray(vec.least)
    axis = whole("axis", axis)
    if not -x.ndim <= axis < x.ndim or x.shape[axis] != len(vec.array):
        raise ShapeError("x", f"shape {x.shape}", f"{len(vec.array)} channels on axis {axis}")
    return along(vec.array, axis, x.ndim)
