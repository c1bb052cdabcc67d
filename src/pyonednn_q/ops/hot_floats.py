"""Hot calls of float sources: codes are made in the call of the primitive, without Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.compose.stages import SRC
from pyonednn_q.ops.formed import Formed
from pyonednn_q.ops.source import as_rows_take_them
from pyonednn_q.ops.unsigned import OFFSET
from pyonednn_q.primitive.dense_facts import ACC_MAP, SRC_SCALE, SRC_ZERO_POINT
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.quantize.ranges import Dynamic

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyonednn_q.native import Prepared
    from pyonednn_q.ops.operator import Operator
    from pyonednn_q.ops.planned import Planned
    from pyonednn_q.ops.ready import Ready
    from pyonednn_q.qparams import QParams

__all__ = ["hot_of_floats"]

Array = np.ndarray[Any, Any]
Dims = tuple[int, ...]

_BROUGHT = frozenset((SRC, SRC_SCALE, SRC_ZERO_POINT, ACC_MAP))


def hot_of_floats(
    operator: Operator, ready: Ready, planned: Planned, src: Array
) -> Callable[..., Any] | None:
    """Return f(src, residual, out) of float32 sources, in the meaning of `Planned.hot`.

    Parameters
    ----------
    operator : Operator
        What was called.
    ready : Ready
        What says how codes reach the primitive.
    planned : Planned
        What ran: that of `ready`, or its row-major form.
    src : ndarray
        The source.

    Returns
    -------
    callable or None
        None where the source has no codes, where more runs than the primitive, and where its
        operands are others than C++ makes.
    """
    params = operator.settings.src_q
    if params is None or src.dtype != np.float32 or not src.size:
        return None
    if operator.weights.parts is not None or planned.primitive.kind == "none":
        return None
    if planned not in ready.of_floats:
        is_by_row = isinstance(params, Dynamic) and params.extent == "per_row"
        rows = operator._rows(src.shape) if is_by_row else 1  # noqa: SLF001 - of this room
        dims = src.shape, operator._dst_dims(src.shape, planned)  # noqa: SLF001
        ready.of_floats[planned] = _made(ready, planned, params, rows, dims)
    return ready.of_floats[planned]


def _made(
    ready: Ready,
    planned: Planned,
    params: QParams | Dynamic,
    rows: int,
    dims: tuple[Dims, Dims],
) -> Callable[..., Any] | None:
    facts, unit = planned.plan.facts, ready.unit_map
    has_map = ACC_MAP in planned.leaves
    columns = 0 if unit is None else unit.size
    if has_map and (facts.src_later, columns) != ("per_row", facts.channels):
        return None
    inputs = None if facts.src_later == "per_row_of_batch" else planned.alone
    if inputs is None or not _BROUGHT.issuperset(inputs):
        return None
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
        unit=() if unit is None or not has_map else tuple(unit.reshape(-1).tolist()),
    )


def _seen(planned: Planned, src_dims: Dims, dst_dims: Dims) -> Prepared | None:
    """Return the primitive for arrays of the caller's dims, over the same memory."""
    wanted, primitive = {SRC: src_dims, "dst": dst_dims}, planned.primitive
    if isinstance(planned, Formed):
        asked = planned.form.asked
        if (src_dims, dst_dims) != (asked.src.dims, asked.dst.dims):
            return None
        return primitive.seen_as(planned.form.seen()) if planned.form.is_product else primitive
    specs = {name: primitive.layout(name) for name in wanted}
    if all(specs[name].dims == dims for name, dims in wanted.items()):
        return primitive
    return primitive.seen_as(
        {name: TensorSpec.dense(dims, specs[name].dtype) for name, dims in wanted.items()}
    )
