"""Sources: float values of a call as the integers that a primitive takes.

    code = clamp(rne(x / scale) + zero_point)            float32, one operation after the other

with the scale and zero point of the operator; or with those of each call, which follow from the
range of its values (`pyonednn_q.quantize.ranges`) and go to the primitive as arguments. Levels of a
FakeQuantize that are no such codes are a `Quantizer`'s.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.errors import ArgumentError
from pyonednn_q.native.passes import as_rows, quantize, ranges
from pyonednn_q.ops.quantizer import Quantizer, SourceLevels
from pyonednn_q.ops.unsigned import OFFSET
from pyonednn_q.primitive.dense_facts import ACC_MAP, SRC_SCALE, SRC_ZERO_POINT
from pyonednn_q.primitive.tensor import TensorSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyonednn_q.ops.ready import Ready
    from pyonednn_q.qparams import QParams
    from pyonednn_q.quantize.ranges import Dynamic

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Codes:
    """Codes of a source, and what they are worth where only the call knows it.

    Attributes
    ----------
    values : ndarray
        Integers; or the source itself, where that is what the primitive takes.
    scale, zero_point : ndarray or None
        One value, or one for each row.
    """

    values: Array
    scale: NDArray[np.float32] | None = None
    zero_point: NDArray[np.int32] | None = None

    def unsigned(self) -> Codes:
        """Return the same for s8 codes as u8 ones, 128 more."""
        point = None if self.zero_point is None else self.zero_point + np.int32(OFFSET)
        return Codes(self.values.view(np.uint8) ^ np.uint8(OFFSET), self.scale, point)

    def operands(self, ready: Ready) -> dict[str, Array]:
        """Return what the primitive takes beside the codes."""
        if self.scale is None or self.zero_point is None:
            return {}
        planned, scale, point = ready.planned, self.scale, self.zero_point
        later = planned.plan.facts.src_later
        if later == "per_row_of_batch":
            rows = (*planned.src_dims[:-1], 1)
            scale = np.broadcast_to(scale.reshape(rows), planned.dst.dims)
            point = point.reshape(rows)
        given = {SRC_SCALE: scale, SRC_ZERO_POINT: point}
        found = {name: value for name, value in given.items() if name in planned.leaves}
        if ready.unit_map is not None:
            # A tensor is scaled before the map is added, rows after it.
            factor = -point.astype(np.float32)
            if later == "per_row":
                factor = factor[:, np.newaxis]
            with np.errstate(over="ignore"):  # as in the kernels
                added = (factor * scale if later == "per_tensor" else factor) * ready.unit_map
            found[ACC_MAP] = np.broadcast_to(added, planned.dst.dims)
        return found


def static_codes(
    values: Array, params: QParams | SourceLevels, ready: Ready | None = None
) -> Codes:
    """Return codes of float32 values, in the layout they have.

    Raises
    ------
    ArgumentError
        NaN; or a scale that is no normal float32 number.
    """
    if isinstance(params, SourceLevels):
        assert ready is not None  # none with requantize, which refuses such sources
        return Codes(_levels(values, params, ready))
    scale, point = as_rows_take_them(params)
    if not values.size:
        return Codes(np.empty(values.shape, dtypes.numpy_dtype(params.dtype)))
    return Codes(quantize(as_rows(values), scale, point, params.dtype))


def _levels(values: Array, params: SourceLevels, ready: Ready) -> Array:
    """Return codes by a quantizer for the way in which the values lie, made at the first call."""
    if np.isnan(values).any():
        raise ArgumentError("src", "NaN", "numbers: NaN has no code")
    if not values.size:
        return np.empty(values.shape, dtypes.numpy_dtype(params.dtype))
    lies = TensorSpec.dense if values.flags.c_contiguous else TensorSpec.channels_last
    spec = lies(values.shape, params.dtype)
    quantizer = ready.quantizers.get(spec)
    if quantizer is None:
        quantizer = ready.quantizers[spec] = Quantizer(params.cut, spec)
    return quantizer(values)


@functools.lru_cache(maxsize=256)
def as_rows_take_them(params: QParams) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Return scale and zero point as arrays of one value.

    Raises
    ------
    ArgumentError
        A scale that is no normal float32 number.
    """
    with np.errstate(over="ignore"):
        scale = np.array([params.scale], np.float32)
    if not (np.isfinite(scale[0]) and scale[0] >= np.finfo(np.float32).tiny):
        wanted = "one that float32 holds, to quantize float values; or codes"
        raise ArgumentError("src_q", f"a scale of {params.scale}", wanted)
    point = np.array([params.zero_point], np.int32)
    scale.flags.writeable = point.flags.writeable = False  # the next call's, too
    return scale, point


def dynamic_codes(values: Array, dynamic: Dynamic, rows: int | None) -> Codes:
    """Return codes of float32 values by their own range, or that of each row.

    Parameters
    ----------
    values : ndarray
        A source.
    dynamic : Dynamic
        Type of the codes.
    rows : int or None
        How many rows have a range of their own; the codes are (rows, rest) then.

    Raises
    ------
    ArgumentError
        Values that are not finite, or a range that float32 cannot span.
    """
    if not values.size:
        count = 1 if rows is None else rows
        codes = np.empty(values.shape, dtypes.numpy_dtype(dynamic.dtype))
        return Codes(codes, np.ones(count, np.float32), np.zeros(count, np.int32))
    ready = as_rows(values) if rows is None else as_rows(values.reshape(rows, -1), rows)
    count = rows or 1
    scale, point = dynamic.parameters(*ranges(ready, count))
    return Codes(quantize(ready, scale, point, dynamic.dtype), scale, point)
