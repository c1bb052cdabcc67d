"""Distance of a fused node's values from a tie: near one, the order of roundings decides its code.

A node may round on the way, as quantizers between a convolution and an addition do. There a value
next to a tie may become either of two codes, which moves the result by one step of that scale. A
value is near a tie if the distance is within its bound of `float_bounds`, plus what a quantizer
adds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.dtypes import F32_UNIT, Array
from pyonednn_q.errors import Error
from pyonednn_q.graph import kinds
from pyonednn_q.models.node_bounds import bounds_of, values_of
from pyonednn_q.models.real_values import point_of, scale_of, wide

if TYPE_CHECKING:
    from pyonednn_q.onnx.fused_node import FusedNode

__all__ = ["by_ties"]

Values = dict[str, Array]

# Of a quantizer: of the scale's reciprocal, of the product with it, of the zero point's addition,
# and of scales that were divided by each other beforehand.
_OF_QUANTIZER = 4


def by_ties(
    node: FusedNode, values: Values, opsets: Mapping[str, int], *, is_whole: bool = False
) -> Array | None:
    """Return by how many codes each value of a node may differ, being beside a tie.

    Parameters
    ----------
    node : FusedNode
        Node with integer outputs.
    values : dict of str to ndarray
        Sources, and constants of the original nodes.
    opsets : mapping of str to int
        Opset version of each domain of the model.
    is_whole : bool
        Whether the reciprocals of scales are rounded down to whole numbers, as onnxruntime's
        softmax has them.

    Returns
    -------
    ndarray of float64 or None
        Distances in the output's dims: 0 where no rounding on the way is near a tie. None where the
        nodes that it stands for cannot be computed one by one, or a function among them has no
        bound.
    """
    own = {name: wide(array) for name, array in values.items()}
    apart: dict[str, Any] = {}
    reach: Any = 0.0  # in real values
    step: Any = 1.0
    try:
        for part in node.parts:
            if part.row is not kinds.QUANTIZE:
                results = values_of(part, own, opsets)
                bounds = bounds_of(part, own, apart, results, opsets)
                if bounds is None:
                    return None
                own.update(zip(part.outputs, results, strict=False))
                apart.update(zip(part.outputs, bounds, strict=False))
                continue
            step, point = scale_of(part, own), point_of(part, own)
            step = 1 / np.floor(np.float32(1) / np.float32(step)) if is_whole else step
            real = own[part.inputs[0]] / step
            size = np.abs(real) + abs(float(point))
            near = apart.get(part.inputs[0], 0.0) / step + _OF_QUANTIZER * F32_UNIT * size
            on_tie = np.abs(np.abs(real - np.rint(real)) - 0.5) <= near
            # What follows adds, or changes a value by no more than it is given.
            reach = reach + step * on_tie
            ends = np.iinfo(point.dtype)
            codes = np.clip(np.rint(real) + float(point), ends.min, ends.max)
            own[part.outputs[0]] = codes.astype(point.dtype)
        shape = own[node.output].shape
    except (Error, ValueError, KeyError, TypeError, IndexError):
        return None
    return np.asarray(np.ceil(np.broadcast_to(reach / step, shape)))
