"""Which operators run by their definition in Python: those that were compared with onnxruntime.

tests/peers/test_reference_drawn.py draws attributes for each of them, of opset 7 to the newest that
onnxruntime knows. What is not in the list has been compared by nobody, and is refused; so are cases
in which runtimes or opsets disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from pyonednn_q.onnx.graph import GraphNode

__all__ = ["COMPARED", "DOUBTS"]

COMPARED = frozenset(
    {
        "Abs", "Acos", "Acosh", "Add", "And", "ArgMax", "ArgMin", "Asin", "Asinh", "Atan", "Atanh",
        "AveragePool", "BatchNormalization", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor",
        "Cast", "CastLike", "Ceil", "Celu", "Clip", "Concat", "ConstantOfShape", "Conv",
        "ConvInteger", "ConvTranspose", "Cos", "Cosh", "CumSum", "DepthToSpace",
        "DequantizeLinear", "Div", "Dropout", "DynamicQuantizeLinear", "Einsum", "Elu", "Equal",
        "Erf", "Exp", "Expand", "Flatten", "Floor", "Gather", "GatherElements", "GatherND", "Gelu",
        "Gemm", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "Greater", "GreaterOrEqual",
        "GroupNormalization", "HardSigmoid", "HardSwish", "Hardmax", "Identity",
        "InstanceNormalization", "IsInf", "IsNaN", "LRN", "LayerNormalization", "LeakyRelu",
        "Less", "LessOrEqual", "Log", "LogSoftmax", "LpNormalization", "LpPool", "MatMul",
        "MatMulInteger", "Max", "MaxPool", "Mean", "MeanVarianceNormalization", "Min", "Mish",
        "Mod", "Mul", "Neg", "Not", "OneHot", "Or", "PRelu", "Pad", "Pow", "QLinearConv",
        "QLinearMatMul", "QuantizeLinear", "RMSNormalization", "Range", "Reciprocal", "ReduceL1",
        "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
        "ReduceProd", "ReduceSum", "ReduceSumSquare", "Relu", "Reshape", "Resize",
        "ReverseSequence", "Round", "ScatterElements", "Selu", "Shape", "Shrink", "Sigmoid",
        "Sign", "Sin", "Sinh", "Size", "Slice", "Softmax", "Softplus", "Softsign", "SpaceToDepth",
        "Split", "Sqrt", "Squeeze", "Sub", "Sum", "Tan", "Tanh", "ThresholdedRelu", "Tile",
        "TopK", "Transpose", "Trilu", "Unsqueeze", "Upsample", "Where", "Xor",
    }
)  # fmt: skip


def _resize(node: GraphNode, opset: int) -> str:
    """Say where the length that is meant is one that no tensor has."""
    mode = node.attributes.get("coordinate_transformation_mode", "half_pixel")
    if opset >= 11 and mode == "align_corners" and not node.input(3):
        return "align_corners with scales, where runtimes disagree: give sizes"
    return ""


DOUBTS: Mapping[str, Callable[[GraphNode, int], str]] = MappingProxyType({"Resize": _resize})
