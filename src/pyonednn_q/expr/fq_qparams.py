"""Between FakeQuantize, QParams and chains; what does not fit is measured and said.

    y = S_o*(q - Z_o)  with q in 0..n     is     real = scale*(code - zero_point)
    code = q + first, zero_point = Z_o + first, first = the code of level 0

A FakeQuantize may have a fractional zero point, QParams may not: the residue says by how much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import flag, instance, one_of, whole
from pyonednn_q.dtypes import DType
from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.steps import Affine, Chain, Clip, Round
from pyonednn_q.expr.vec import Vec
from pyonednn_q.qparams import QParams

Side: TypeAlias = Literal["input", "output"]
WHOLE_WITHIN = 1e-4  # levels: a zero point that is off by less counts as whole


@dataclass(frozen=True, slots=True)
class FromFq:
    """QParams made from one side of a FakeQuantize.

    Attributes
    ----------
    qparams : QParams
        Scale, and zero point rounded to a whole number.
    first : int
        The code of level 0. Codes run from it to first + levels - 1.
    residue : Vec
        Part of the zero point that rounding removed, in levels: 0 where the FakeQuantize is a true
        affine quantizer, else the whole range is shifted by residue*scale.
    """

    qparams: QParams
    first: int
    residue: Vec

    def is_exact(self) -> bool:
        """Whether every zero point was whole, within 1e-4 levels."""
        return abs(self.residue).greatest <= WHOLE_WITHIN


def qparams_from_fq(
    fq: FakeQuantize, dtype: DType, *, side: Side = "output", axis: int = 1
) -> FromFq:
    """Describe the codes of a FakeQuantize as a quantized tensor.

    Parameters
    ----------
    fq : FakeQuantize
        FakeQuantize whose levels fit into the type. In a signed type with an odd number of levels
        (255), codes are symmetric: -127..127.
    dtype : str
        Data type of the codes, an integer type.
    side : {"input", "output"}
        Scale and zero point of the input range, or of the output range.
    axis : int
        The dimension of the tensor that channels run along, where the ranges are per channel.

    Raises
    ------
    ArgumentError
        The scale is not positive, or a zero point lies outside the type.

    Examples
    --------
    >>> codes = qparams_from_fq(FakeQuantize.symmetric(1.27), "s8")
    >>> codes.qparams.zero_point, codes.first, codes.is_exact()
    (0, -128, True)
    """
    instance("fq", fq, FakeQuantize)
    one_of("side", side, get_args(Side))
    dtype = dtypes.checked(dtype)
    lo, hi = dtypes.qmin(dtype), dtypes.qmax(dtype)
    if fq.levels > hi - lo + 1:
        raise ArgumentError(
            "dtype", f"{dtype} for {fq.levels} levels", "a type that holds them all"
        )
    first = 0 if lo == 0 else -(fq.levels // 2)
    if side == "input":
        fq.check_levels("fq")
        scale, zero = fq.scale_in, fq.zero_in
    else:
        scale = fq.scale_out
        if scale.least <= 0.0:
            got = f"a scale of {scale.first(lambda s: s <= 0)}"
            raise ArgumentError("fq", got, "output_low < output_high in every channel")
        zero = fq.zero_out
    exact = zero + float(first)
    whole = exact.rint()
    if not lo <= whole.least <= whole.greatest <= hi:
        got = f"a zero point of {whole.first(lambda z: (z < lo) | (z > hi))}"
        raise ArgumentError("fq", got, f"a range that holds 0, so that it fits into {dtype}")
    return FromFq(_qparams(scale, whole, dtype, axis), first, exact - whole)


def _qparams(scale: Vec, zero_point: Vec, dtype: str, axis: int) -> QParams:
    if scale.array is None and zero_point.array is None:
        return QParams(scale.least, int(zero_point.least), dtype)
    scales, points = np.broadcast_arrays(scale.values(), zero_point.values())
    return QParams(scales, points.astype(np.int64), dtype, axis)


def fq_from_qparams(
    qparams: QParams, *, levels: int | None = None, dequantize: bool = True
) -> FakeQuantize:
    """Write quantization, and dequantization unless told not to, as a FakeQuantize.

    Parameters
    ----------
    qparams : QParams
        Scale, zero point and data type of the codes, an integer type.
    levels : int, optional
        Number of codes that are used, counted from the top: 255 in s8 leaves -128 out. By default
        all.
    dequantize : bool
        Whether the result is in real units, or in codes.

    Notes
    -----
    FakeQuantize rounds x/scale + (zero_point - first code), `QParams.quantize` rounds x/scale:
    they differ at ties where zero_point - first code is odd.
    """
    flag("dequantize", dequantize)
    scale, zero_point = _vecs(qparams)
    hi = dtypes.qmax(qparams.dtype)
    count = hi - dtypes.qmin(qparams.dtype) + 1 if levels is None else whole("levels", levels, lo=2)
    low = (Vec(float(hi - count + 1)) - zero_point) * scale
    high = (Vec(float(hi)) - zero_point) * scale
    if dequantize:
        return FakeQuantize(low, high, low, high, count)
    return FakeQuantize(low, high, float(hi - count + 1), float(hi), count)


def quantize_chain(qparams: QParams) -> Chain:
    """Write `QParams.quantize` as steps: the zero point comes after the round, as in ONNX.

    Examples
    --------
    >>> print(quantize_chain(QParams(0.5, 3, "u8")))
    2*x > round(x) > x + 3 > clip(x, 0, 255)
    """
    scale, zero_point = _vecs(qparams)
    limits = Clip(float(dtypes.qmin(qparams.dtype)), float(dtypes.qmax(qparams.dtype)))
    shift = () if zero_point.is_all(0.0) else (Affine(1.0, zero_point),)
    return Chain(Affine(Vec(1.0) / scale), Round(), *shift, limits)


def dequantize_chain(qparams: QParams) -> Chain:
    """Write `QParams.dequantize` as steps.

    Examples
    --------
    >>> print(dequantize_chain(QParams(0.5, 3, "u8")))
    0.5*x - 1.5
    """
    scale, zero_point = _vecs(qparams)
    return Chain(Affine(scale, -(zero_point * scale)))


def _vecs(qparams: QParams) -> tuple[Vec, Vec]:
    instance("qparams", qparams, QParams)
    return Vec(qparams.scale), Vec(np.asarray(qparams.zero_point, np.float64))
