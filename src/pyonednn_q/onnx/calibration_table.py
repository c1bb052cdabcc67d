"""The table of a calibration: how each node runs, its error and its time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.native.timing import medians_us
from pyonednn_q.ops.operator import Operator
from pyonednn_q.qparams import QParams
from pyonednn_q.report.table import Column, Table
from pyonednn_q.shown import shortened

if TYPE_CHECKING:
    from pyonednn_q.onnx.float_types import Values
    from pyonednn_q.onnx.fused_node import FusedNode

_ROUNDS = 21


def table(
    heads: Iterable[str], rows: Sequence[Sequence[str]], whys: Mapping[str, str], *, times: bool
) -> Iterator[str | Table]:
    """Yield the table of a calibration, and behind it why layers run in floats.

    Parameters
    ----------
    heads : iterable of str
        Heads of the columns before SQNR and, if measured, the times.
    rows : sequence of sequence of str
        Cells, a row for each node.
    whys : mapping of str to str
        Reasons, by the names of layers.
    times : bool
        Whether rows have times.
    """
    numbers = ("SQNR dB", "us", "FP32 us") if times else ("SQNR dB",)
    columns = [*map(Column, heads), *(Column(name, right=True) for name in numbers)]
    yield Table(columns, rows)
    yield from (f"{name}: {why}" for name, why in whys.items())


def described(node: FusedNode, values: Values) -> list[str]:
    """Return the cells of a node: name, how it runs, what, implementation, exactness."""
    name = shortened(", ".join(node.originals) or node.output, 40)
    exactness = implementation = "-"
    if isinstance(node.runs, Operator) and not node.runs.in_groups:
        planned = node.runs.prepare(values[node.inputs[0]].shape)
        exactness, implementation = str(planned.plan.exactness), planned.seen.impl
    return [name, node.how, shortened(str(node), 40), implementation, exactness]


def times_of(node: FusedNode, values: Values) -> list[str]:
    """Return the cells of a layer's median microseconds, and those of the same in float32."""
    if not isinstance(node.runs, Operator):
        return ["-", "-"]
    own, twin = node.runs, _float_twin(node.runs)
    if twin is None:
        return ["-", "-"]
    src = values[node.inputs[0]]
    operands = {leaf: values[name] for leaf, name in node.operands.items()}
    q = own.settings.src_q
    reals = (q.dequantize(src) if isinstance(q, QParams) else src).astype(np.float32)
    if own.weights.dtype == "bf16":
        src = src.astype(dtypes.numpy_dtype("bf16"))
    floats = {leaf: each.astype(np.float32) for leaf, each in operands.items()}
    pair = medians_us(_ROUNDS, lambda: own(src, **operands), lambda: twin(reals, **floats))
    return [f"{us:.1f}" for us in pair]


def _float_twin(operator: Operator) -> Operator | None:
    """Return the layer that computes the same of float32, of weights that are what codes mean."""
    weights = operator.weights
    if weights.parts is not None or operator.in_groups:
        return None
    wei = weights.values.astype(np.float32)
    if operator.settings.src_q is not None:
        wei = np.moveaxis(wei, operator.axis, -1)
        wei = wei * weights.scale.spread(wei.shape[-1]).astype(np.float32)
        wei = np.ascontiguousarray(np.moveaxis(wei, -1, operator.axis))
    groups = {"groups": operator.groups} if operator.window else {}
    make: Callable[..., Operator] = type(operator)
    return make(wei, operator.bias, **operator.window, **groups, post=operator.settings.post)
