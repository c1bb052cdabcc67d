"""Parameters of TPU-MLIR: of a range, and of a threshold, in float64.

    affine      scale = (hi − lo) / 255          zero_point = half away(qmin − lo / scale)
                s8 if lo < 0, else u8; a zero point that leaves the type stops at its end, and the
                scale becomes that which keeps the other end of the range:
                lo > 0: zero_point = qmin, scale = hi / 255
                hi < 0: zero_point = qmax, scale = −lo / 255
    symmetric   scale = threshold / steps        zero_point = 0

with steps 127 for s8, as the compiler has them, 128 for s8 as its documentation prints, and 255 for
u8. Source: TPU-MLIR's chapter on quantization theory; the clamped cases from the compiler.
"""

from __future__ import annotations

import math

from pyonednn_q import dtypes
from pyonednn_q.argument import whole
from pyonednn_q.errors import ArgumentError
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.ranges import number
from pyonednn_q.shown import shown

__all__ = ["affine_qparams", "symmetric_qparams"]

_STEPS = {127: "s8", 128: "s8", 255: "u8"}


def affine_qparams(lo: float, hi: float) -> QParams:
    """Return TPU-MLIR's asymmetric parameters of a range; the range decides the type of the codes.

    Parameters
    ----------
    lo, hi : float
        Lowest and highest real value, lo < hi; 0 may be outside.

    Raises
    ------
    ArgumentError
        Ends that are no numbers, or not lo < hi.

    Examples
    --------
    >>> affine_qparams(-1.0, 1.55).zero_point, affine_qparams(0.5, 2.55).dtype
    (-28, 'u8')
    >>> affine_qparams(0.5, 255.0)  # the zero point stops at 0, and the scale reaches 255
    QParams(scale=1.0, zero_point=0, dtype='u8', axis=None)
    """
    least, greatest = number("lo", lo), number("hi", hi)
    if not least < greatest:
        raise ArgumentError("lo", f"{least} and hi {greatest}", "lo < hi")
    dtype = "s8" if least < 0.0 else "u8"
    qmin, qmax = dtypes.qmin(dtype), dtypes.qmax(dtype)
    scale = (greatest - least) / (qmax - qmin)
    exact = qmin - least / scale
    if exact < qmin:
        return QParams(greatest / (qmax - qmin), qmin, dtype)
    if exact > qmax:
        return QParams(least / (qmin - qmax), qmax, dtype)
    point = math.floor(abs(exact) + 0.5)
    return QParams(scale, -point if exact < 0 else point, dtype)


def symmetric_qparams(threshold: float, steps: int = 127) -> QParams:
    """Return TPU-MLIR's symmetric parameters of a threshold.

    Parameters
    ----------
    threshold : float
        Magnitude at the end of the range, in real units, above 0.
    steps : {127, 128, 255}
        Number of steps up to the threshold. 127: today's compiler, for signed values. 128: as
        printed in its documentation for activations (the threshold itself then saturates). 255:
        for u8.

    Raises
    ------
    ArgumentError
        Another number of steps, or a threshold that is not above 0.

    Examples
    --------
    >>> symmetric_qparams(2.5).scale
    0.01968503937007874
    """
    steps = whole("steps", steps)
    if steps not in _STEPS:
        raise ArgumentError("steps", shown(steps), f"one of {', '.join(map(str, _STEPS))}")
    if not (largest := number("threshold", threshold)) > 0.0:
        raise ArgumentError("threshold", f"{largest}", "a number above 0")
    return QParams(largest / steps, 0, _STEPS[steps])
