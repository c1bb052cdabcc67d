"""Which operators run by their definition in Python: those that were compared with onnxruntime.

tests/peers/test_reference_drawn.py draws attributes for each of them, of opset 7 to the newest that
onnxruntime knows. What is not in the list has been compared by nobody, and is refused; so are cases
in which runtimes or opsets disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from pyonednn_q.onnx.graph import GraphNode

__all__ = ["COMPARED", "DOUBTS"]

Array = np.ndarray[Any, Any]

_OF_OLD = 2  # inputs of a Resize of opset 10, and of Upsample
_ROUNDED = 1e-6  # of scales, which are float32

COMPARED = frozenset(
    {
        "Abs", "Acos", "Acosh", "Add", "And", "ArgMax", "ArgMin", "Asin", "Asinh", "Atan", "Atanh",
        "AveragePool", "BatchNormalization", "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr",
        "BitwiseXor", "Cast", "CastLike", "Ceil", "Celu", "Clip", "Compress", "Concat",
        "ConstantOfShape", "Conv", "ConvInteger", "ConvTranspose", "Cos", "Cosh", "CumSum",
        "DepthToSpace", "DequantizeLinear", "Div", "Dropout", "DynamicQuantizeLinear", "Einsum",
        "Elu", "Equal", "Erf", "Exp", "Expand", "EyeLike", "Flatten", "Floor", "GRU", "Gather",
        "GatherElements", "GatherND", "Gelu", "Gemm", "GlobalAveragePool", "GlobalLpPool",
        "GlobalMaxPool", "Greater", "GreaterOrEqual", "GroupNormalization", "HardSigmoid",
        "HardSwish", "Hardmax", "Identity", "InstanceNormalization", "IsInf", "IsNaN", "LRN",
        "LSTM", "LayerNormalization", "LeakyRelu", "Less", "LessOrEqual", "Log", "LogSoftmax",
        "LpNormalization", "LpPool", "MatMul", "MatMulInteger", "Max", "MaxPool", "Mean",
        "MeanVarianceNormalization", "Min", "Mish", "Mod", "Mul", "Neg", "NonZero", "Not", "OneHot",
        "Or", "PRelu", "Pad", "Pow", "QLinearConv", "QLinearMatMul", "QuantizeLinear",
        "RMSNormalization", "RNN", "Range", "Reciprocal", "ReduceL1", "ReduceL2", "ReduceLogSum",
        "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
        "ReduceSumSquare", "Relu", "Reshape", "Resize", "ReverseSequence", "Round",
        "ScatterElements", "ScatterND", "Selu", "Shape", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh",
        "Size", "Slice", "Softmax", "Softplus", "Softsign", "SpaceToDepth", "Split", "Sqrt",
        "Squeeze", "Sub", "Sum", "Tan", "Tanh", "ThresholdedRelu", "Tile", "TopK", "Transpose",
        "Trilu", "Unsqueeze", "Upsample", "Where", "Xor",
    }
)  # fmt: skip


def _resize(node: GraphNode, values: Mapping[str, Array]) -> str:
    """Say where runtimes disagree: which element is nearest, and how long a part of one is."""
    is_old = len(node.inputs) == _OF_OLD
    how = node.attributes.get("coordinate_transformation_mode", "half_pixel")
    if node.attributes.get("antialias", 0) or how == "tf_crop_and_resize":
        return "nobody compared antialias, and crops, with another runtime's"
    is_nearest = node.attributes.get("mode", "nearest") == "nearest"
    if not (is_nearest or is_old or how == "align_corners"):
        return ""
    dims = values[node.inputs[0]].shape
    scales = values.get(node.input(1 if is_old else 2))
    axes = node.attributes.get("axes") or range(len(dims))
    known = [] if scales is None else [*zip(axes, scales.tolist(), strict=False)]
    for length, by in ((dims[axis], by) for axis, by in known):
        if abs(length * by - round(length * by)) > _ROUNDED * length:
            return f"{by:g} times {length} is no whole length: runtimes disagree; give sizes"
    is_symmetric = is_nearest and how == "half_pixel_symmetric"
    return "half_pixel_symmetric: runtimes disagree; half_pixel would do" if is_symmetric else ""


DOUBTS: Mapping[str, Callable[[GraphNode, Mapping[str, Array]], str]] = MappingProxyType(
    {"Resize": _resize, "Upsample": _resize}
)
