"""Outputs: the exact sums of an operator on one source, and what the arguments make of them.

In whole numbers and float64, from weights and settings alone: no kernel has a part in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.acc.split import centred
from pyonednn_q.check.places import Geometry, exact_sums
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, DTypeError
from pyonednn_q.expr.evaluate import evaluate
from pyonednn_q.expr.steps import Chain, Clip, Eltwise
from pyonednn_q.qparams import along

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike

    from pyonednn_q.ops.operator import Operator

_FLOAT32_REACH = 2.0**-20  # what a few operations in float32 move a value by, in parts of its terms
_I32 = np.iinfo(np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class Outputs:
    """Sums, and the parameters of what follows them.

    Attributes
    ----------
    acc : ndarray of int64
        Σ (src − src_zero_point) · (wei − wei_zero_point) in dst's dims, without the bias.
    axis : int
        The dimension of dst that channels run along.
    src_scale, dst_scale : float
        Real value of one step of src and of dst.
    wei_scale : float or (C,) ndarray of float64
        Real value of one step of the weights: one value, or one per output channel.
    zero_point : int
        The code of dst that stands for real 0.
    dtype : str
        Data type of dst: "u8", "s8" or "s32".
    bias : (C,) ndarray or None
        int32: counts of the sums, worth src_scale · wei_scale each; float32: real values.
    chain : Chain
        Steps after  src_scale · wei_scale · acc + bias.
    residual, operands
        Arrays that a call takes besides the source, for the steps of the chain that read them.
    least : int or None
        The least code of the result, where that is more than the least of the data type.
    """

    acc: Array
    axis: int
    src_scale: float
    wei_scale: Any
    dst_scale: float
    zero_point: int
    dtype: str
    bias: Array | None = None
    chain: Chain = Chain()  # noqa: RUF009 - a Chain is frozen
    residual: Array | None = None
    operands: Mapping[str, Array] = field(default_factory=lambda: MappingProxyType({}))
    least: int | None = None

    @property
    def is_counted(self) -> bool:
        """Whether the bias counts sums."""
        return self.bias is not None and self.bias.dtype.kind in "iu"

    @property
    def ends(self) -> tuple[int, int]:
        """Return the least and the greatest code."""
        lo = dtypes.qmin(self.dtype)
        return lo if self.least is None else max(lo, self.least), dtypes.qmax(self.dtype)

    def along(self, values: ArrayLike) -> Array:
        """Return one value, or one per channel, so that it broadcasts over dst."""
        array = np.asarray(values)
        return along(array, self.axis, self.acc.ndim) if array.ndim else array

    @property
    def counts(self) -> Array | None:
        """Return the bias in units of the sums; real values are rounded to the nearest of them."""
        if self.bias is None or self.is_counted:
            return self.bias
        with np.errstate(all="ignore"):
            unit = self.src_scale * np.asarray(self.wei_scale)
            return np.asarray(np.rint(self.bias.astype(np.float64) / unit))

    def with_counts(self, counts: Array) -> Outputs:
        """Return the same with another bias, of whole numbers: it becomes one of 32 bits."""
        return replace(self, bias=np.clip(counts, _I32.min, _I32.max).astype(np.int32))

    def without_bias(self, acc: Array) -> Outputs:
        """Return the same for other sums, which no bias is added to."""
        return replace(self, acc=acc, bias=None)

    def real(self) -> Array:
        """Return the real values of dst, in float64: the chain's result, not rounded."""
        scale = self.along(self.src_scale * np.asarray(self.wei_scale))
        bias = self.along(0 if self.bias is None else self.bias)
        count, shift = (bias, 0.0) if self.is_counted else (0, bias)
        return evaluate(
            self.chain,
            scale * (self.acc + count) + shift,
            axis=self.axis,
            dst_before=self.residual,
            operands=self.operands,
        )

    def values(self) -> Array:
        """Return real / dst_scale + zero_point: what is rounded and clamped."""
        return np.asarray(self.real() / self.dst_scale + self.zero_point)

    def clamps(self) -> tuple[int, int] | None:
        """Return the codes between which a fused ReLU or clip keeps dst; None for other chains."""
        lo, hi = self.ends
        for step in self.chain:
            if isinstance(step, Clip) and step.channels is None:
                low, high = step.lo.least, step.hi.least
            elif isinstance(step, Eltwise) and step.alg == "relu" and step.alpha == 0.0:
                low, high = 0.0, math.inf
            elif isinstance(step, Eltwise) and step.alg.startswith("clip"):
                low, high = step.alpha, step.beta
            else:
                return None
            # As TFLite has the bounds of a fused activation: codes like any other.
            bounds = (np.rint(end / self.dst_scale) + self.zero_point for end in (low, high))
            low, high = (float(np.clip(bound, *self.ends)) for bound in bounds)
            lo, hi = max(lo, int(low)), min(hi, int(high))
        return (lo, hi) if lo <= hi else None

    def near_ties(self, values: Array) -> Array:
        """Tell which values are so near to a half that float32 may take them for one."""
        terms = np.abs(values) + abs(self.zero_point)
        return np.asarray(np.abs(values - np.floor(values) - 0.5) <= _FLOAT32_REACH * terms)

    def exact_ties(self, where: Array) -> int:
        """Return how many of the outputs at `where` are halves, with scales as float32 has them.

        A chain other than a clamp has no exact value: 0 then.
        """
        if self.clamps() is None:
            return 0
        with np.errstate(over="ignore"):
            src, dst = (Fraction(float(np.float32(s))) for s in (self.src_scale, self.dst_scale))
            wei = [Fraction(float(scale)) for scale in np.atleast_1d(np.float32(self.wei_scale))]
        bias = [0] * self.acc.shape[self.axis] if self.bias is None else self.bias.tolist()
        ties = 0
        for index in np.argwhere(where):
            channel = int(index[self.axis])
            scale = src * wei[channel if len(wei) > 1 else 0]
            count = int(self.acc[tuple(index)]) + (bias[channel] if self.is_counted else 0)
            shift = 0 if self.is_counted else Fraction(bias[channel])
            ties += ((scale * count + shift) * 2 / dst).denominator == 1
        return ties

    def saturated(self, codes: Array) -> Array:
        """Tell which codes are at the end of the type, or of a clamp."""
        lo, hi = self.clamps() or self.ends
        return (codes <= lo) | (codes >= hi)

    @classmethod
    def of(
        cls,
        operator: Operator,
        codes: Array,
        src_q: tuple[float, int],
        residual: Array | None,
        operands: Mapping[str, Array],
    ) -> Outputs:
        """Return the outputs that an operator's arguments mean for a source.

        Parameters
        ----------
        operator : Operator
            Operator with integer sums and an integer result.
        codes : ndarray
            The source, in u8 or s8.
        src_q : (float, int)
            Scale and zero point of the source.
        residual, operands
            Arrays that a call takes besides the source, for the steps of the chain that read them.

        Raises
        ------
        ArgumentError, DTypeError
            Sums that leave 32 bits, or a result of floats.
        """
        settings, weights = operator.settings, operator.weights
        dst_q = settings.dst_q
        if dst_q is None and dtypes.is_float(settings.dst):
            wanted = "an operator with dst_q: integers are compared"
            raise DTypeError("operator", f"one that stores {settings.dst}", wanted)
        if dst_q is not None and dst_q.axis is not None:
            wanted = "one scale for the result: channels can be asked for one by one"
            raise ArgumentError("operator", f"{dst_q.channels} scales of dst_q", wanted)
        scale, acc = weights.scale, sums_of(operator, codes, src_q[1])
        largest = int(np.abs(acc).max(initial=0))
        if largest > _I32.max:
            raise ArgumentError("src", f"sums of up to {largest}", "sums that fit into 32 bits")
        return cls(
            acc=acc,
            axis=acc.ndim - 1 if operator.axis == -1 else 1,
            src_scale=src_q[0],
            wei_scale=scale.least if scale.is_per_tensor else scale.values(),
            dst_scale=1.0 if dst_q is None else float(dst_q.scale),
            zero_point=0 if dst_q is None else int(dst_q.zero_point),
            dtype=settings.dst,
            bias=operator.bias,
            chain=settings.post,
            residual=residual,
            operands=operands,
        )


def sums_of(operator: Operator, codes: Array, zero_point: int, padded: int = 0) -> Array:
    """Return the exact sums of an operator, as int64 in dst's dims, without the bias.

    Parameters
    ----------
    operator : Operator
        The operator whose weights and window are used.
    codes : ndarray
        Codes of the source, u8 or s8.
    zero_point : int
        The code of the source that stands for real 0.
    padded : int
        Code in padded places, less the zero point: 0 stands for real 0.

    Raises
    ------
    ShapeError
        The source is not one for the weights.
    """
    weights = operator.weights
    wei = centred(weights.values, weights.zero_point.values(), operator.axis)
    wide = codes if weights.parts is None else weights.parts.of(codes)
    window = {**operator.window, "groups": operator.groups} if operator.window else {}
    geometry = Geometry.of(operator.kind, wide.shape, wei.shape, **window)
    src = wide.astype(np.float64) - zero_point
    acc = np.rint(exact_sums(geometry, src - padded, wei)).astype(np.int64)
    if padded:
        total = wei.reshape(len(wei), -1).sum(axis=1, dtype=np.int64)
        acc += padded * along(total, geometry.axis, acc.ndim)
    return acc
