"""Operator kinds, a row each: all that the rooms above ask of an ONNX operator by its name.

A room compares a node's row with a row of here, or asks for a column; no name stands elsewhere. A
column that says how something is done has a word, and the room that does it a `match` of the words.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

from pyonednn_q.expr.steps import Affine, Eltwise, Step
from pyonednn_q.graph.kind import Attributes, Form, Kind


def kind_of(name: str) -> Kind:
    """Return the row of a kind, by ONNX's name; one that says nothing where there is none."""
    return KINDS.get(name) or Kind(name, compared=False)


def _always(step: Step) -> Callable[[Attributes], Step]:
    return lambda _: step


def _told(alg: str, **defaults: float) -> Callable[[Attributes], Step]:
    """Return what reads alpha, or alpha and beta, with the defaults of ONNX."""
    return lambda attributes: Eltwise(alg, *(attributes.get(n, v) for n, v in defaults.items()))


def _gelu(attributes: Attributes) -> Step:
    return Eltwise("gelu_tanh" if attributes.get("approximate") == "tanh" else "gelu_erf")


# Layers.
CONV = Kind("Conv", ours="Conv", layer="convolution", bound="sum")
CONV_TRANSPOSE = Kind("ConvTranspose", ours="Deconv", layer="deconvolution", bound="sum")
GEMM = Kind("Gemm", ours="InnerProduct", layer="inner_product", bound="sum")
MATMUL = Kind("MatMul", ours="MatMul", layer="matmul", on_codes=True, bound="sum")

# Layers on codes.
CONV_INTEGER = Kind(
    "ConvInteger", since=10, ours="Conv", means="Conv", form="integer", bound="exact_sum"
)
MATMUL_INTEGER = Kind(
    "MatMulInteger", since=10, ours="MatMul", means="MatMul", form="integer", bound="exact_sum"
)
QLINEAR_CONV = Kind("QLinearConv", since=10, ours="Conv", means="Conv", form="conv")
QLINEAR_MATMUL = Kind("QLinearMatMul", since=10, ours="MatMul", means="MatMul", form="matmul")

# Quantizers.
QUANTIZE = Kind("QuantizeLinear", since=10, axis_since=13, ours="Quantize", elementwise=True)
DEQUANTIZE = Kind(
    "DequantizeLinear",
    since=10,
    axis_since=13,
    ours="Dequantize",
    elementwise=True,
    bound="dequantize",
)
DYNAMIC_QUANTIZE = Kind("DynamicQuantizeLinear", since=11, bound="dynamic")
CAST = Kind("Cast", ours="NumberCast", bound="cast")

# Arithmetic.
ADD = Kind("Add", chain="add", elementwise=True, on_codes=True, bound="total", emulated="add")
SUB = Kind("Sub", chain="sub", elementwise=True, on_codes=True, bound="total")
MUL = Kind("Mul", chain="mul", elementwise=True, on_codes=True, bound="product")
DIV = Kind("Div", chain="div", elementwise=True, on_codes=True, bound="quotient")
POW = Kind("Pow", ours="FloatArithmetic")
RECIPROCAL = Kind("Reciprocal", ours="FloatArithmetic", elementwise=True)
MAX = Kind("Max", ours="FloatArithmetic", elementwise=True, bound="step")
MIN = Kind("Min", ours="FloatArithmetic", elementwise=True, bound="step")
NEG = Kind("Neg", chain="step", step=_always(Affine(-1.0)), elementwise=True, bound="step")
ABS = Kind("Abs", chain="step", step=_always(Eltwise("abs")), elementwise=True, bound="step")
BATCH_NORM = Kind("BatchNormalization", chain="norm", older=(9, "norm"))

# Activations.
CLIP = Kind(
    "Clip",
    chain="clip",
    elementwise=True,
    on_codes=True,
    bound="step",
    reads=(11, ("min", "max")),
)
PRELU = Kind("PRelu", chain="prelu", elementwise=True, on_codes=True)
RELU = Kind(
    "Relu",
    chain="activation",
    step=_always(Eltwise("relu")),
    elementwise=True,
    on_codes=True,
    bound="step",
)
LEAKY_RELU = Kind(
    "LeakyRelu",
    chain="activation",
    step=_told("relu", alpha=0.01),
    elementwise=True,
    on_codes=True,
    bound="leaky",
    emulated="leaky_relu",
)
ELU = Kind("Elu", chain="activation", step=_told("elu", alpha=1.0), elementwise=True)
SOFTPLUS = Kind(
    "Softplus", chain="activation", step=_always(Eltwise("soft_relu", 1.0)), elementwise=True
)
MISH = Kind("Mish", since=18, chain="activation", step=_always(Eltwise("mish")), elementwise=True)
SIGMOID = Kind(
    "Sigmoid",
    chain="activation",
    step=_always(Eltwise("logistic")),
    gate=_always(Eltwise("swish", 1.0)),
    elementwise=True,
    on_codes=True,
    bound="function",
    alg="logistic",
    units=3.0,
    slope=0.25,
    emulated="sigmoid",
)
TANH = Kind(
    "Tanh",
    chain="activation",
    step=_always(Eltwise("tanh")),
    elementwise=True,
    on_codes=True,
    bound="function",
    alg="tanh",
    units=5.5,
    slope=1.0,
)
GELU = Kind(
    "Gelu",
    since=20,
    chain="activation",
    step=_gelu,
    elementwise=True,
    on_codes=True,
    bound="function",
    alg="gelu_erf",
    units=2.2,
    slope=1.13,
)
HARD_SIGMOID = Kind(
    "HardSigmoid",
    chain="activation",
    step=_told("hardsigmoid", alpha=0.2, beta=0.5),
    gate=_told("hardswish", alpha=0.2, beta=0.5),
    elementwise=True,
    on_codes=True,
    bound="line",
)
HARD_SWISH = Kind(
    "HardSwish",
    since=14,
    chain="activation",
    step=_always(Eltwise("hardswish", 1 / 6, 0.5)),
    elementwise=True,
    on_codes=True,
    bound="hard_swish",
)

# Functions.
SQRT, LOG, ROUND = Kind("Sqrt"), Kind("Log"), Kind("Round", since=11)
FLOOR = Kind("Floor", bound="floor")
EXP = Kind("Exp", elementwise=True, bound="exponential", alg="exp", units=1.3)
ERF = Kind(
    "Erf", since=9, elementwise=True, bound="function", units=1.05, slope=2 / math.sqrt(math.pi)
)
SOFTMAX = Kind(
    "Softmax",
    axis_since=13,
    ours="Softmax",
    on_codes=True,
    bound="softmax",
    emulated="softmax",
    older=(13, "softmax"),
)
LOG_SOFTMAX = Kind("LogSoftmax", axis_since=13, older=(13, "softmax"))
LAYER_NORM = Kind("LayerNormalization", since=17, ours="LayerNorm", bound="layer_norm")

# Pools and means.
MAX_POOL = Kind("MaxPool", ours="Pool", moves="always", pool="max", over="windows", bound="step")
GLOBAL_MAX_POOL = Kind("GlobalMaxPool", ours="Pool", moves="always", pool="max", over="places")
AVERAGE_POOL = Kind(
    "AveragePool",
    ours="Pool",
    shares=True,
    pool="mean",
    over="windows",
    on_codes=True,
    bound="mean",
    emulated="average_pool",
)
GLOBAL_AVERAGE_POOL = Kind(
    "GlobalAveragePool",
    ours="Pool",
    pool="mean",
    over="places",
    on_codes=True,
    bound="mean",
    emulated="average_pool",
)
REDUCE_MEAN = Kind("ReduceMean", ours="Pool", pool="mean", over="axes", on_codes=True, bound="mean")
REDUCE_SUM = Kind("ReduceSum", ours="Reduction", reads=(13, ("axes",)))
REDUCE_MAX = Kind("ReduceMax", ours="Reduction", bound="step")

# What moves elements.
CONCAT = Kind("Concat", ours="Concat", moves="always")
SPLIT = Kind("Split", ours="Slice", moves="always", reads=(13, ("split",)))
SLICE = Kind("Slice", ours="Slice", moves="always", reads=(10, ("starts", "ends", "axes")))
TRANSPOSE = Kind("Transpose", ours="Transpose", moves="always")
RESHAPE = Kind("Reshape", ours="Reshape", moves="always", reshapes=True)
FLATTEN = Kind("Flatten", ours="Reshape", moves="always", reshapes=True)
_AXES = (13, ("axes",))
SQUEEZE = Kind("Squeeze", ours="Reshape", moves="always", reshapes=True, reads=_AXES)
UNSQUEEZE = Kind("Unsqueeze", ours="Reshape", moves="always", reshapes=True, reads=_AXES)
GATHER = Kind("Gather", ours="TableRows", moves="always")
DEPTH_TO_SPACE = Kind("DepthToSpace", moves="always")
SPACE_TO_DEPTH = Kind("SpaceToDepth", moves="always")
RESIZE = Kind(
    "Resize",
    since=10,
    ours="Repeat",
    moves="nearest",
    on_codes=True,
    grows=True,
    older=(11, "resize"),
)
UPSAMPLE = Kind("Upsample", grows=True, reads=(9, ("scales",)), older=(13, "upsample"))

PAD = Kind("Pad", ours="Pick", grows=True, reads=(11, ("pads", "value")))
TILE = Kind("Tile", ours="Pick", grows=True)
EXPAND = Kind("Expand", since=8, ours="Pick", grows=True)
GATHER_ND = Kind("GatherND", since=11, ours="Pick")

# Conditions.
AND, OR = Kind("And", ours="Lookup"), Kind("Or", ours="Lookup")
NOT, XOR = Kind("Not", ours="Lookup"), Kind("Xor", ours="Lookup")
WHERE = Kind("Where", since=9, ours="Where")
EQUAL, LESS = Kind("Equal", ours="Compare"), Kind("Less", ours="Compare")
GREATER = Kind("Greater", ours="Compare")
LESS_OR_EQUAL = Kind("LessOrEqual", since=12, ours="Compare")
GREATER_OR_EQUAL = Kind("GreaterOrEqual", since=12, ours="Compare")
IS_NAN = Kind("IsNaN", since=9, ours="IsNaN")

# What a graph is rid of.
CONSTANT = Kind("Constant", compared=False)
IF = Kind("If", older=(13, "branches"), compared=False)
LOOP = Kind("Loop", older=(13, "branches"), compared=False)
SCAN = Kind("Scan", since=8, older=(13, "branches"), compared=False)
IDENTITY = Kind("Identity", bound="step")
DROPOUT = Kind("Dropout", older=(12, "dropout"))
SHAPE, SIZE = Kind("Shape"), Kind("Size")

# What runs by its definition, in some cases.
GRU, LSTM, RNN = Kind("GRU"), Kind("LSTM"), Kind("RNN")
LOSS = Kind("NegativeLogLikelihoodLoss", since=12)
CROSS_ENTROPY = Kind("SoftmaxCrossEntropyLoss", since=12)
ATTENTION, ROI_ALIGN = Kind("Attention", since=23), Kind("RoiAlign", since=10)


def _theirs(operator: str, means: str, form: Form, domain: str = "com.microsoft") -> Kind:
    """Return the row of another's operator on codes."""
    return Kind(f"{domain}.{operator}", means=means, form=form, compared=False)


MATMUL_BITS = _theirs("MatMulNBits", "MatMul", "blocks")
FAKE_QUANTIZE = _theirs("FakeQuantize", "", "fake_quantize", "org.openvinotoolkit")

_OTHERS = (
    _theirs("QuantizeLinear", "QuantizeLinear", "as_onnx"),
    _theirs("DequantizeLinear", "DequantizeLinear", "as_onnx"),
    _theirs("QGemm", "Gemm", "gemm"),
    _theirs("DynamicQuantizeLSTM", "LSTM", "lstm"),
    _theirs("QLinearAdd", "Add", "binary"),
    _theirs("QLinearMul", "Mul", "binary"),
    _theirs("QLinearSigmoid", "Sigmoid", "unary"),
    _theirs("QLinearLeakyRelu", "LeakyRelu", "unary"),
    _theirs("QLinearGlobalAveragePool", "GlobalAveragePool", "unary"),
    _theirs("QLinearAveragePool", "AveragePool", "unary"),
    _theirs("QLinearSoftmax", "Softmax", "softmax"),
    _theirs("QLinearConcat", "Concat", "concat"),
    *(Kind(name, elementwise=True) for name in ("Selu", "Softsign")),
    Kind("Celu", since=12, elementwise=True),
    Kind("TopK", reads=(10, ("k",))),
    *(Kind(name, since=9, grows=True) for name in ("ConstantOfShape", "OneHot")),
    Kind("Range", since=11, grows=True),
    Kind("Hardmax", axis_since=13, older=(13, "softmax")),
)
# By opset: what runs by its definition in Python, and nobody asks more of.
_BY_DEFINITION = {
    1: "ArgMax ArgMin Ceil GlobalLpPool InstanceNormalization LRN "
    "LpNormalization LpPool Mean ReduceL1 ReduceL2 ReduceLogSum "
    "ReduceLogSumExp ReduceMin ReduceProd ReduceSumSquare Sum",
    7: "Acos Asin Atan Cos Sin Tan",
    9: "Acosh Asinh Atanh Compress Cosh EyeLike MeanVarianceNormalization NonZero Shrink Sign Sinh",
    10: "IsInf Mod NonMaxSuppression ReverseSequence ThresholdedRelu",
    11: "BitShift CumSum Det GatherElements ScatterElements ScatterND Unique",
    12: "Einsum",
    14: "Trilu",
    15: "CastLike",
    16: "GridSample",
    17: "BlackmanWindow HammingWindow HannWindow",
    18: "BitwiseAnd BitwiseNot BitwiseOr BitwiseXor CenterCropPad Col2Im GroupNormalization",
    19: "DeformConv",
    20: "AffineGrid",
    23: "RMSNormalization RotaryEmbedding",
    24: "TensorScatter",
    26: "BitCast CumProd",
}

KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        row.name: row
        for row in (
            *(each for each in [*globals().values()] if isinstance(each, Kind)),
            *_OTHERS,
            *(Kind(n, since=at) for at, names in _BY_DEFINITION.items() for n in names.split()),
        )
    }
)
