"""Sources: float values of a call as the integers that a primitive takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.errors import ArgumentError
from pyonednn_q.native.quantize import as_rows, quantize

if TYPE_CHECKING:
    from pyonednn_q.qparams import QParams

__all__ = ["static_codes"]

Array = np.ndarray[Any, Any]


def static_codes(values: Array, params: QParams) -> Array:
    """Return clamp(rne(x / scale) + zero_point) of float32 values, in the layout they have.

    Raises
    ------
    ArgumentError
        NaN; or a scale that is no normal float32 number.
    """
    scale = np.array([params.scale], np.float32)
    if not (np.isfinite(scale[0]) and scale[0] >= np.finfo(np.float32).tiny):
        wanted = "one that float32 holds, to quantise float values; or codes"
        raise ArgumentError("src_q", f"a scale of {params.scale}", wanted)
    if not values.size:
        return np.empty(values.shape, dtypes.numpy_dtype(params.dtype))
    return quantize(as_rows(values), scale, np.array([params.zero_point], np.int32), params.dtype)
