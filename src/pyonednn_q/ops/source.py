"""Sources: values of a call as the integers that a primitive takes.

Signed codes may become unsigned ones:

    (src + 128) − (zero_point + 128) = src − zero_point

so u8 codes 128 greater, with a zero point 128 greater, are the same numbers. Without VNNI the
kernels of convolutions halve the weights of s8 sources and lose their odd bits; for u8 sources they
do not, and only pairs of large weights leave 16 bits.

Float values become codes, in the call of the primitive where it is hot:

    code = clamp(rne(x / scale) + zero_point)            float32, one operation after the other

with the scale and zero point of the operator; or with those of each call, which follow from the
range of its values (`pyonednn_q.quantize.ranges`) and go to the primitive as arguments. Levels of a
FakeQuantize that are no such codes are a `Quantizer`'s.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.compose.stages import SRC
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, OneDNNError, SaturationError
from pyonednn_q.native.passes import as_rows, quantize, ranges
from pyonednn_q.native.program import Pass
from pyonednn_q.ops.staged import Quantizer, SourceLevels
from pyonednn_q.primitive.dense_facts import ACC_MAP, SRC_SCALE, SRC_ZERO_POINT
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.ranges import Dynamic
from pyonednn_q.shown import shortened

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from pyonednn_q.errors import Error, UnsupportedError
    from pyonednn_q.native import Prepared
    from pyonednn_q.ops.planned import Planned
    from pyonednn_q.ops.weights import Parts

OFFSET = 128
_AS_U8 = "s8 source as u8, 128 more, and so its zero point: "
NOT_EXACT_AS_S8 = f"{_AS_U8}as s8 these weights are not summed exactly"
NOT_TAKEN_AS_S8 = f"{_AS_U8}no kernel here takes it as s8"
SLOW = "s8 runs in loops over gemm here, many times slower than u8"
SLOW_AS_S8 = f"{_AS_U8}{SLOW}"


def as_unsigned(params: QParams | Dynamic | SourceLevels) -> QParams | Dynamic | SourceLevels:
    """Return the parameters of the same values stored as u8: codes and zero point + 128.

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


def both_refused(signed: UnsupportedError, unsigned: Error) -> UnsupportedError:
    """Return the refusal of s8 sources; that of inexact sums with what is wrong with u8 ones."""
    if not isinstance(signed, SaturationError):
        return signed
    if isinstance(unsigned, SaturationError):
        why = f"{len(unsigned.channels)} output channel(s) are not exact, either"
    else:
        why = unsigned.detail if isinstance(unsigned, OneDNNError) else str(unsigned)
    # What to do ends the detail of the first, and stays whole at the end of both.
    detail = f"as u8, {OFFSET} more: {shortened(why, 95)}; as s8: {signed.detail}"
    return SaturationError(
        signed.status, signed.call, signed.problem, detail, channels=signed.channels
    )


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

    def operands(self, planned: Planned) -> dict[str, Array]:
        """Return arrays that the primitive takes beside the codes."""
        if self.scale is None or self.zero_point is None:
            return {}
        scale, point = self.scale, self.zero_point
        later = planned.plan.facts.src_later
        if later == "per_row_of_batch":
            rows = (*planned.src_dims[:-1], 1)
            scale = np.broadcast_to(scale.reshape(rows), planned.dst.dims)
            point = point.reshape(rows)
        points = {SRC_SCALE: scale, SRC_ZERO_POINT: point}
        operands = {name: value for name, value in points.items() if name in planned.leaves}
        if planned.unit_map is not None:
            # A tensor is scaled before the map is added, rows after it.
            factor = -point.astype(np.float32)
            if later == "per_row":
                factor = factor[:, np.newaxis]
            with np.errstate(over="ignore"):  # as in the kernels
                added = (factor * scale if later == "per_tensor" else factor) * planned.unit_map
            operands[ACC_MAP] = np.broadcast_to(added, planned.dst.dims)
        return operands


def static_codes(
    values: Array, params: QParams | SourceLevels, planned: Planned | None = None
) -> Codes:
    """Return codes of float32 values, in the layout they have.

    Raises
    ------
    ArgumentError
        NaN; or a scale that is no normal float32 number.
    """
    if isinstance(params, SourceLevels):
        assert planned is not None  # none with requantize, which refuses such sources
        return Codes(_levels(values, params, planned))
    scale, point = as_rows_take_them(params)
    if not values.size:
        return Codes(np.empty(values.shape, dtypes.numpy_dtype(params.dtype)))
    return Codes(quantize(as_rows(values), scale, point, params.dtype))


def _levels(values: Array, params: SourceLevels, planned: Planned) -> Array:
    """Return codes by a quantizer for the way in which the values lie, made at the first call."""
    if np.isnan(values).any():
        raise ArgumentError("src", "NaN", "numbers: NaN has no code")
    if not values.size:
        return np.empty(values.shape, dtypes.numpy_dtype(params.dtype))
    lies = TensorSpec.dense if values.flags.c_contiguous else TensorSpec.channels_last
    spec = lies(values.shape, params.dtype)
    quantizer = planned.quantizers.get(spec)
    if quantizer is None:
        quantizer = planned.quantizers[spec] = Quantizer(params.cut, spec)
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
        Number of rows that have a range each; the codes are (rows, rest) then. None: one range for
        all.

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


Dims = tuple[int, ...]

_BY_RANGE = frozenset((SRC, SRC_SCALE, SRC_ZERO_POINT, ACC_MAP))


def hot_call_for(
    planned: Planned, params: object, src: Array, codes: Codes, dst_dims: Dims
) -> Callable[..., Any] | None:
    """Return f(src, residual, out) for calls like one that ran, in the meaning of `Planned.hot`.

    Parameters
    ----------
    planned : Planned
        Plan that ran.
    params : QParams, Dynamic, SourceLevels or None
        Quantization of the source.
    src : ndarray
        The source.
    codes : Codes
        Codes of the source, with a scale for each row that has one.
    dst_dims : tuple of int
        Dims of a result, as the caller has it.

    Returns
    -------
    callable or None
        Call, or None where more runs than the primitive, and where it reads what C++ does not make.
    """
    is_s8 = planned.is_unsigned and src.dtype == np.int8
    # Other levels than those have a quantizer of their own.
    if not (is_s8 or (isinstance(params, (QParams, Dynamic)) and src.dtype == np.float32)):
        return None
    # Weights in parts take each channel several times.
    if not src.size or planned.primitive.kind == "none" or src.size != prod(planned.src_dims):
        return None
    if is_s8 not in planned.hot_making:
        rows = 1 if codes.scale is None else codes.scale.size
        of = None if is_s8 else params
        planned.hot_making[is_s8] = _made(planned, of, rows, (src.shape, dst_dims))
    return planned.hot_making[is_s8]


def _made(
    planned: Planned, params: object, rows: int, dims: tuple[Dims, Dims]
) -> Callable[..., Any] | None:
    """Return what makes codes of float32 as `params` say; without them, codes as u8 of s8 ones."""
    inputs, unit = planned.inputs, _unit(planned)
    # Leaves of a chain may have any name where no range takes it.
    known = _BY_RANGE if isinstance(params, Dynamic) else {SRC}
    if inputs is None or not known.issuperset((*inputs, *planned.leaves)) or unit is None:
        return None
    primitive = _seen(planned, *dims)
    if primitive is None:
        return None
    fixed = None
    if isinstance(params, QParams):
        scale, point = as_rows_take_them(params)
        fixed = float(scale[0]), int(point[0])
    return primitive.hot_making_codes(
        inputs,
        params=fixed,
        is_symmetric=isinstance(params, Dynamic) and params.is_symmetric,
        offset=OFFSET if planned.is_unsigned else 0,
        rows=rows,
        unit=unit,
        is_s8=params is None,
    )


def codes_for(
    planned: Planned, dynamic: Dynamic, parts: Parts | None, rows: int, dims: tuple[Dims, Dims]
) -> tuple[Prepared, Pass, list[int]] | None:
    """Return the primitive of a dynamic source, and a pass of C++ that makes what it reads.

    Parameters
    ----------
    planned : Planned
        Plan that runs.
    dynamic : Dynamic
        Quantization of the source in each call.
    parts : Parts or None
        Channels of the source that are repeated, if any: codes are made once for each source
        channel.
    rows : int
        Number of rows that have a range each.
    dims : (tuple of int, tuple of int)
        Dims of the source and of a result, as the caller has them.

    Returns
    -------
    (Prepared, Pass, list of int) or None
        Primitive, its pass, and bytes of the pass's dst: at which each input of the primitive
        begins (0 for an operand), and how many there are. None where more runs than the primitive,
        and where C++ does not make what it reads.
    """
    unit = _unit(planned)
    if planned.inputs is None or unit is None:
        return None
    count = prod(dims[0])
    primitive = _seen(planned, dims[0] if parts is None else parts.dims(dims[0]), dims[1])
    if primitive is None or primitive.kind == "none":
        return None
    codes_pass = Pass.codes_by_range(
        primitive,
        count,
        tuple(name if name in _BY_RANGE else "operand" for name in planned.inputs),
        is_symmetric=dynamic.is_symmetric,
        offset=OFFSET if planned.is_unsigned else 0,
        rows=rows,
        unit=unit,
    )
    return None if codes_pass is None else (primitive, *codes_pass)


def _unit(planned: Planned) -> list[float] | None:
    """Return what a map's zero points are multiplied by, if any; None where C++ makes no map."""
    if planned.inputs is None or ACC_MAP not in planned.inputs:
        return []
    # That of a tensor is scaled, too.
    if planned.unit_map is None or planned.plan.facts.src_later != "per_row":
        return None
    unit: list[float] = planned.unit_map.reshape(-1).tolist()
    return unit


def _seen(planned: Planned, src_dims: Dims, dst_dims: Dims) -> Prepared | None:
    """Return the primitive for arrays of the caller's dims, over the same memory."""
    wanted = {SRC: src_dims, "dst": dst_dims}
    specs = {name: planned.seen.layout(name) for name in wanted}
    if all(specs[name].dims == dims for name, dims in wanted.items()):
        return planned.seen
    if any(spec != TensorSpec.dense(spec.dims, spec.dtype) for spec in specs.values()):
        return None
    return planned.seen.seen_as(
        {name: TensorSpec.dense(dims, specs[name].dtype) for name, dims in wanted.items()}
    )
