"""Hot calls of float sources: codes are made in the call of the primitive, without Python."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.compose.stages import SRC
from pyonednn_q.ops.source import as_rows_take_them
from pyonednn_q.ops.unsigned import OFFSET
from pyonednn_q.primitive.dense_facts import ACC_MAP, SRC_SCALE, SRC_ZERO_POINT
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.ranges import Dynamic

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyonednn_q.native import Prepared
    from pyonednn_q.ops.planned import Planned
    from pyonednn_q.ops.ready import Ready
    from pyonednn_q.ops.source import Codes

Array = np.ndarray[Any, Any]
Dims = tuple[int, ...]

_BY_RANGE = frozenset((SRC, SRC_SCALE, SRC_ZERO_POINT, ACC_MAP))


def hot_call_for(
    ready: Ready, planned: Planned, params: object, src: Array, codes: Codes, dst_dims: Dims
) -> Callable[..., Any] | None:
    """Return f(src, residual, out) for calls like one that ran, in the meaning of `Planned.hot`.

    Parameters
    ----------
    ready : Ready
        What says how codes reach the primitive.
    planned : Planned
        What ran: that of `ready`, or its row-major form.
    params : QParams, Dynamic, SourceLevels or None
        How the source is quantized.
    src : ndarray
        The source.
    codes : Codes
        Its codes, with a scale for each row that has one; or the source, if it is codes.
    dst_dims : tuple of int
        Of a result, as the caller has it.

    Returns
    -------
    callable or None
        None where more runs than the primitive, and where it reads what C++ does not make.
    """
    if codes.values is src:
        return planned.hot
    # Other levels than those have a quantizer of their own.
    if not isinstance(params, (QParams, Dynamic)) or src.dtype != np.float32:
        return None
    # Weights in parts take each channel several times.
    if not src.size or planned.primitive.kind == "none" or src.size != prod(planned.src_dims):
        return None
    if planned not in ready.of_floats:
        rows = 1 if codes.scale is None else codes.scale.size
        ready.of_floats[planned] = _made(ready, planned, params, rows, (src.shape, dst_dims))
    return ready.of_floats[planned]


def _made(
    ready: Ready, planned: Planned, params: QParams | Dynamic, rows: int, dims: tuple[Dims, Dims]
) -> Callable[..., Any] | None:
    inputs = planned.inputs
    # Leaves of a chain may have any name where no range takes it.
    known = _BY_RANGE if isinstance(params, Dynamic) else {SRC}
    if inputs is None or not known.issuperset((*inputs, *planned.leaves)):
        return None
    unit: list[float] = []
    if ACC_MAP in inputs:
        # That of a tensor is scaled, too.
        if ready.unit_map is None or planned.plan.facts.src_later != "per_row":
            return None
        unit = ready.unit_map.reshape(-1).tolist()
    primitive = _seen(planned, *dims)
    if primitive is None:
        return None
    fixed = None
    if not isinstance(params, Dynamic):
        scale, point = as_rows_take_them(params)
        fixed = float(scale[0]), int(point[0])
    return primitive.hot_of_floats(
        inputs,
        params=fixed,
        is_symmetric=isinstance(params, Dynamic) and params.is_symmetric,
        offset=OFFSET if ready.is_unsigned else 0,
        rows=rows,
        unit=unit,
    )


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
