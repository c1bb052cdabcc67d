"""Recognisers: which special forms a FakeQuantize has, and what they are good for.

Tolerances are arguments with documented defaults; nothing is rounded silently.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import flag, instance, real
from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.fq_qparams import WHOLE_WITHIN
from pyonednn_q.expr.steps import Affine, Clip, Round, Step
from pyonednn_q.expr.vec import Vec


@dataclass(frozen=True, slots=True)
class FqParams:
    """The Q+DQ view of a FakeQuantize: q = clamp(round(x/S_i + Z_i)), y = (q - Z_o)*S_o.

    ``offset`` (Z_0) has been subtracted from both zero points and from q: 0 for unsigned codes,
    levels/2 for signed ones.
    """

    scale_in: Vec
    zero_in: Vec
    scale_out: Vec
    zero_out: Vec
    offset: int
    zero_in_is_integer: bool
    zero_out_is_integer: bool


def fq_params(
    fq: FakeQuantize, *, signed: bool = False, tolerance: float = WHOLE_WITHIN
) -> FqParams:
    """View a FakeQuantize as a quantizer and a dequantizer.

    Parameters
    ----------
    fq : FakeQuantize
        FakeQuantize with levels (`has_levels`), and with an output range that is not empty.
    signed : bool
        Subtract Z_0 = levels/2 from the codes. Refused where Z_0 is odd or not whole: moving an odd
        number into a round turns ties the other way (round(0.5) is 0, round(0.5 + 127) - 127 is 1).
    tolerance : float
        Largest distance of a zero point from a whole number at which it still counts as one.

    Examples
    --------
    >>> p = fq_params(FakeQuantize.symmetric(127, 256), signed=True)
    >>> p.scale_in, p.zero_in, p.zero_in_is_integer
    (Vec(1), Vec(0), True)
    """
    tolerance = _checked(fq, tolerance)
    fq.check_levels("fq")
    flag("signed", signed)
    offset = 0
    if signed:
        if fq.levels % 4:
            got = f"{fq.levels} levels, so an offset of {fq.levels / 2:g}"
            raise ArgumentError("signed", got, "levels divisible by 4: an even offset")
        offset = fq.levels // 2
    if _has_zero(fq.scale_out):
        raise ArgumentError(
            "fq", f"an empty output range {fq.output_low}", "output_low != output_high"
        )
    zero_in, zero_out = fq.zero_in - float(offset), fq.zero_out - float(offset)
    return FqParams(
        fq.scale_in,
        zero_in,
        fq.scale_out,
        zero_out,
        offset,
        _is_near_integer(zero_in, tolerance),
        _is_near_integer(zero_out, tolerance),
    )


@dataclass(frozen=True, slots=True)
class CutFakeQuantize:
    """A FakeQuantize cut in two: what the producer stores, and what the consumer computes.

    ``quantize`` leads from x to integer codes in qmin..qmax, ``dequantize`` from codes to y.
    """

    quantize: tuple[Step, ...]
    dequantize: tuple[Step, ...]
    qmin: int
    qmax: int


def codes(fq: FakeQuantize, *, signed: bool = False) -> CutFakeQuantize:
    """Split a FakeQuantize into steps for its producer and steps for its consumer.

    Signed codes subtract levels // 2. Where that is odd it happens after the round, so that ties
    still go where the definition sends them.

    Examples
    --------
    >>> cut = codes(FakeQuantize(-4, 3, -4, 3, 8), signed=True)
    >>> print(*cut.quantize, sep=" > ")
    clip(x, -4, 3) > x > round(x)
    """
    instance("fq", fq, FakeQuantize)
    fq.check_levels("fq")
    flag("signed", signed)
    low, n = fq.output_low, fq.levels - 1
    offset = fq.levels // 2 if signed else 0
    if offset % 2:
        into: tuple[Step, ...] = (*fq.quantize_steps(), Affine(1.0, -float(offset)))
    else:
        clip = Clip(fq.input_low, fq.input_high)
        into = (clip, Affine(fq.levels_per_unit, fq.zero_in - float(offset)), Round())
    # S_o*(q + offset) + ol, with the offset folded into the shift.
    out = Affine(fq.scale_out, fq.scale_out * float(offset) + low)
    return CutFakeQuantize(into, (out,), -offset, n - offset)


def quantizes_to(fq: FakeQuantize, *, tolerance: float = 0.0) -> str | None:
    """Name the integer type whose codes are exactly the output levels, or ``None``.

    That is the quantize-only form: levels one apart (S_o == 1), beginning at a whole number, and
    within the type. The narrowest such type is named; unsigned comes first.
    """
    tolerance = _checked(fq, tolerance)
    if not _is_near(fq.scale_out, 1.0, tolerance) or not _is_near_integer(fq.output_low, tolerance):
        return None
    return _narrowest(fq.output_low.rint(), fq.levels)


def scale_alone(fq: FakeQuantize, dtype: str, *, tolerance: float = WHOLE_WITHIN) -> Vec | None:
    """Return 1/S_i if storing x/S_i in an integer type is the whole FakeQuantize, or ``None``.

    The store rounds and saturates. So its codes must be the output levels, first to last, and 0
    must be stored as 0: in u8, il = 0 and output levels 0..255; in s8, Z_i = 128 and output levels
    -128..127.

    Parameters
    ----------
    fq : FakeQuantize
        Any.
    dtype : str
        Data type of the codes, an integer type.
    tolerance : float
        Largest distance of Z_i and of the output levels from these numbers, in levels.

    Examples
    --------
    >>> fq = FakeQuantize.symmetric(0.5, output_low=-128, output_high=127)
    >>> scale_alone(fq, "s8"), scale_alone(fq, "u8")
    (Vec(254), None)
    """
    tolerance = _checked(fq, tolerance)
    dtype = dtypes.checked(dtype)
    lo, hi = dtypes.qmin(dtype), dtypes.qmax(dtype)
    if not fq.has_levels or fq.levels != hi - lo + 1:
        return None
    ends = ((fq.zero_in, -lo), (fq.output_low, lo), (fq.output_high, hi))
    if all(_is_near(vec, float(value), tolerance) for vec, value in ends):
        return fq.levels_per_unit
    return None


def dequantizes_from(fq: FakeQuantize, *, tolerance: float = 0.0) -> str | None:
    """Name the integer type whose codes are exactly the input levels, or ``None``.

    On such codes the FakeQuantize rounds nothing: it is an affine map, clamped to its range.
    """
    tolerance = _checked(fq, tolerance)
    if not fq.has_levels or not _is_near(fq.scale_in, 1.0, tolerance):
        return None
    if not _is_near_integer(fq.input_low, tolerance):
        return None
    return _narrowest(fq.input_low.rint(), fq.levels)


def pure_scale(fq: FakeQuantize, *, tolerance: float = 1e-3) -> Vec | None:
    """Return the factor if output and input range are proportional, or ``None``.

    Then y is x times the factor, clamped and snapped to levels: |ol/(oh-ol) - il/(ih-il)| stays
    below the tolerance (in units of the range) in every channel.
    """
    tolerance = _checked(fq, tolerance)
    if not fq.has_levels or _has_zero(fq.scale_out):
        return None
    width_in, width_out = fq.input_high - fq.input_low, fq.output_high - fq.output_low
    off = abs(fq.output_low / width_out - fq.input_low / width_in)
    return width_out / width_in if off.greatest < tolerance else None


def binarising_threshold(fq: FakeQuantize) -> Vec | None:
    """Return the threshold above which a FakeQuantize of two values gives output_high, or ``None``.

    Only outputs 0 and 1 (either way round) make it binarising. With a range that is not empty the
    threshold is its middle, and the middle itself goes down, as the tie goes to even.
    """
    instance("fq", fq, FakeQuantize)
    if not fq.is_threshold and (fq.levels != 2 or (fq.input_high - fq.input_low).least < 0.0):
        return None
    low, high = fq.output_low.values(), fq.output_high.values()
    if not (np.isin(low, (0.0, 1.0)) & (high == 1.0 - low)).all():
        return None
    return (fq.input_low + fq.input_high) * 0.5


def _checked(fq: FakeQuantize, tolerance: float) -> float:
    instance("fq", fq, FakeQuantize)
    return real("tolerance", tolerance)


def _narrowest(low: Vec, levels: int) -> str | None:
    for name in ("u4", "s4", "u8", "s8"):
        if dtypes.qmin(name) <= low.least and low.greatest + levels - 1 <= dtypes.qmax(name):
            return name
    return None


def _is_near(vec: Vec, value: float, tolerance: float) -> bool:
    return abs(vec - value).greatest <= tolerance


def _is_near_integer(vec: Vec, tolerance: float) -> bool:
    return abs(vec - vec.rint()).greatest <= tolerance


def _has_zero(vec: Vec) -> bool:
    return bool((vec.values() == 0.0).any())
