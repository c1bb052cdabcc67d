"""Operator kinds that no room names: those of other domains, and those run by definition."""

from __future__ import annotations

from pyonednn_q.graph.dims_rule import DimsRule
from pyonednn_q.graph.kind import Form, Kind
from pyonednn_q.graph.move_rules import (
    as_told,
    boxes,
    concat,
    cropped,
    folded_blocks,
    grid,
    largest,
    like_indices,
    numbers_between,
    one_hot,
    places_of_nonzero,
    some_along_axis,
)
from pyonednn_q.graph.shape_rules import (
    broadcast,
    convolution,
    einstein_sum,
    matrix,
    place_along_axis,
    pool,
    pool_over_places,
    same,
    sampled,
    stack_of_determinants,
)

__all__ = ["DEFINED", "theirs"]


def theirs(
    operator: str,
    means: str,
    form: Form,
    dims: DimsRule | None = None,
    domain: str = "com.microsoft",
) -> Kind:
    """Return the row of an operator of another domain."""
    return Kind(f"{domain}.{operator}", means=means, form=form, dims=dims, compared=False)


RANGE = Kind("Range", since=11, grows=True, dims=numbers_between)
_OTHERS = (
    theirs("QuantizeLinear", "QuantizeLinear", "as_onnx", same.making((2, "uint8"))),
    theirs("DequantizeLinear", "DequantizeLinear", "as_onnx", same.making(1)),
    theirs("QGemm", "Gemm", "gemm", matrix.reading((0, 3)).making((8, "float32"))),
    theirs("QLinearAdd", "Add", "binary", broadcast.reading((0, 3))),
    theirs("QLinearMul", "Mul", "binary", broadcast.reading((0, 3))),
    theirs("QLinearSigmoid", "Sigmoid", "unary", same),
    theirs("QLinearLeakyRelu", "LeakyRelu", "unary", same),
    theirs("QLinearGlobalAveragePool", "GlobalAveragePool", "unary", pool_over_places),
    theirs("QLinearAveragePool", "AveragePool", "unary", pool),
    theirs("QLinearSoftmax", "Softmax", "softmax", same),
    theirs("QLinearConcat", "Concat", "concat", concat.reading(slice(2, None, 3)).making(2)),
    *(Kind(name, elementwise=True, dims=same) for name in ("Selu", "Softsign")),
    Kind("Celu", since=12, elementwise=True, dims=same),
    Kind("TopK", reads=(10, ("k",)), dims=largest.making(0, "int64")),
    Kind("ConstantOfShape", since=9, grows=True, dims=as_told.making(("@value", "float32"))),
    Kind("OneHot", since=9, grows=True, dims=one_hot.making(2)),
    RANGE,
    Kind("Hardmax", axis_since=13, older=(13, "softmax"), dims=same),
)

_WINDOW = as_told.making(("@output_datatype", "float32"))
# By opset and rule: operators that only run by their definition in Python.
_BY_DEFINITION: tuple[tuple[int, DimsRule, str], ...] = (
    (1, place_along_axis.making("int64"), "ArgMax ArgMin"),
    (1, same, "Ceil LRN LpNormalization"),
    (1, pool, "LpPool"),
    (1, pool_over_places, "GlobalLpPool"),
    (7, same, "Acos Asin Atan Cos Sin Tan"),
    (9, same, "Acosh Asinh Atanh Cosh MeanVarianceNormalization Shrink Sign Sinh"),
    (9, same.making(("@dtype", 0)), "EyeLike"),
    (9, some_along_axis, "Compress"),
    (9, places_of_nonzero.making("int64"), "NonZero"),
    (10, same.making("bool"), "IsInf"),
    (10, same, "ReverseSequence ThresholdedRelu"),
    (10, broadcast, "Mod"),
    (10, boxes.making("int64"), "NonMaxSuppression"),
    (11, broadcast, "BitShift"),
    (11, same, "CumSum ScatterElements ScatterND"),
    (11, stack_of_determinants, "Det"),
    (11, like_indices, "GatherElements"),
    (11, some_along_axis.making(0, "int64"), "Unique"),
    (12, einstein_sum, "Einsum"),
    (15, same.making(1), "CastLike"),
    (16, sampled, "GridSample"),
    (17, _WINDOW, "BlackmanWindow HammingWindow HannWindow"),
    (18, broadcast, "BitwiseAnd BitwiseOr BitwiseXor"),
    (18, same, "BitwiseNot"),
    (18, cropped, "CenterCropPad"),
    (18, folded_blocks, "Col2Im"),
    (19, convolution, "DeformConv"),
    (20, grid, "AffineGrid"),
    (24, same, "TensorScatter"),
    (26, same.making("@to"), "BitCast"),
    (26, same, "CumProd"),
)

DEFINED: tuple[Kind, ...] = (
    *_OTHERS,
    *(Kind(n, since=at, dims=rule) for at, rule, names in _BY_DEFINITION for n in names.split()),
)
