"""Signed codes of a source as unsigned ones, where only those are summed exactly.

    (src + 128) − (zero_point + 128) = src − zero_point

so u8 codes 128 greater, with a zero point 128 greater, are the same numbers. Without VNNI the
kernels of convolutions halve the weights of s8 sources and lose their odd bits; for u8 sources they
do not, and only pairs of large weights leave 16 bits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyonednn_q.errors import OneDNNError, SaturationError
from pyonednn_q.ops.quantizer import SourceLevels
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.ranges import Dynamic
from pyonednn_q.shown import shortened

if TYPE_CHECKING:
    from pyonednn_q.errors import Error

OFFSET = 128
NOTE = (
    "s8 source as u8, 128 more, and so its zero point: as s8 these weights are not summed exactly"
)


def as_unsigned(params: QParams | Dynamic | SourceLevels) -> QParams | Dynamic | SourceLevels:
    """Return what says of u8 codes what `params` says of s8 codes 128 smaller.

    Examples
    --------
    >>> as_unsigned(QParams(0.5, -3, "s8")) == QParams(0.5, 125, "u8")
    True
    """
    if isinstance(params, Dynamic):
        return Dynamic("u8", params.extent)
    if isinstance(params, SourceLevels):
        return replace(params, dtype="u8", zero_point=params.zero_point + OFFSET)
    return QParams(params.scale, int(params.zero_point) + OFFSET, "u8")


def both_refused(signed: SaturationError, unsigned: Error) -> SaturationError:
    """Return the refusal of s8 sources that also says what is wrong with u8 ones."""
    why = unsigned.detail if isinstance(unsigned, OneDNNError) else str(unsigned)
    # Both have to find room in one message.
    first, second = shortened(signed.detail, 95), shortened(why, 95)
    detail = f"{first}; and as u8, {OFFSET} more: {second}"
    return SaturationError(
        signed.status, signed.call, signed.problem, detail, channels=signed.channels
    )
