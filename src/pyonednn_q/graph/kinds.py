"""Operator kinds, a row each: every property of an ONNX operator that other rooms use.

Other rooms compare a node's row with a row of this file, or read a column; they never use the name.
A column that says how something is done holds a word, which the room that does it matches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from pyonednn_q.expr.steps import Affine, Eltwise, Step
from pyonednn_q.graph import attention_rules as attended
from pyonednn_q.graph import move_rules as moved
from pyonednn_q.graph import shape_rules as rules
from pyonednn_q.graph.defined_kinds import DEFINED, theirs
from pyonednn_q.graph.kind import Attributes, Kind


def kind_of(name: str) -> Kind:
    """Return the row of a kind, by ONNX's name; a row of defaults if there is none."""
    return KINDS.get(name) or Kind(name, compared=False)


def _always(step: Step) -> Callable[[Attributes], Step]:
    return lambda _: step


def _told(alg: str, **defaults: float) -> Callable[[Attributes], Step]:
    """Return a function from attributes to the step, with ONNX's defaults of alpha and beta."""
    return lambda attributes: Eltwise(alg, *(attributes.get(n, v) for n, v in defaults.items()))


def _activation(name: str, step: Callable[[Attributes], Step], **columns: Any) -> Kind:  # noqa: ANN401
    """Return the row of a function of one tensor that joins the chain of a layer."""
    columns |= {"chain": "activation", "elementwise": True, "dims": rules.same}
    return Kind(name, step=step, **columns)


def _gelu(attributes: Attributes) -> Step:
    return Eltwise("gelu_tanh" if attributes.get("approximate") == "tanh" else "gelu_erf")


# Layers.
CONV = Kind("Conv", ours="Conv", layer="convolution", bound="sum", dims=rules.convolution)
CONV_TRANSPOSE = Kind(
    "ConvTranspose",
    ours="Deconv",
    layer="deconvolution",
    bound="sum",
    dims=rules.transposed_convolution,
)
GEMM = Kind("Gemm", ours="InnerProduct", layer="inner_product", bound="sum", dims=rules.matrix)
MATMUL = Kind(
    "MatMul", ours="MatMul", layer="matmul", on_codes=True, bound="sum", dims=rules.matrix_product
)

# Layers on codes.
CONV_INTEGER = Kind(
    "ConvInteger",
    since=10,
    ours="Conv",
    means="Conv",
    form="integer",
    bound="exact_sum",
    dims=rules.convolution.making("int32"),
)
MATMUL_INTEGER = Kind(
    "MatMulInteger",
    since=10,
    ours="MatMul",
    means="MatMul",
    form="integer",
    bound="exact_sum",
    dims=rules.matrix_product.making("int32"),
)
QLINEAR_CONV = Kind(
    "QLinearConv",
    since=10,
    ours="Conv",
    means="Conv",
    form="conv",
    dims=rules.convolution.reading((0, 3)).making(7),
)
QLINEAR_MATMUL = Kind(
    "QLinearMatMul",
    since=10,
    ours="MatMul",
    means="MatMul",
    form="matmul",
    dims=rules.matrix_product.reading((0, 3)).making(7),
)

# Quantizers.
QUANTIZE = Kind(
    "QuantizeLinear",
    since=10,
    axis_since=13,
    ours="Quantize",
    elementwise=True,
    dims=rules.same.making(("@output_dtype", 2, "uint8")),
)
DEQUANTIZE = Kind(
    "DequantizeLinear",
    since=10,
    axis_since=13,
    ours="Dequantize",
    elementwise=True,
    bound="dequantize",
    dims=rules.same.making(("@output_dtype", 1)),
)
DYNAMIC_QUANTIZE = Kind(
    "DynamicQuantizeLinear", since=11, bound="dynamic", dims=rules.codes_and_range
)
CAST = Kind("Cast", ours="NumberCast", bound="cast", dims=rules.converted)

# Arithmetic.
ADD = Kind(
    "Add",
    chain="add",
    elementwise=True,
    on_codes=True,
    bound="total",
    emulated="add",
    dims=rules.added,
)
SUB = Kind(
    "Sub", chain="sub", elementwise=True, on_codes=True, bound="total", dims=rules.subtracted
)
MUL = Kind(
    "Mul", chain="mul", elementwise=True, on_codes=True, bound="product", dims=rules.multiplied
)
DIV = Kind(
    "Div", chain="div", elementwise=True, on_codes=True, bound="quotient", dims=rules.divided
)
POW = Kind("Pow", ours="FloatArithmetic", dims=rules.broadcast)
RECIPROCAL = Kind("Reciprocal", ours="FloatArithmetic", elementwise=True, dims=rules.same)
MAX = Kind("Max", ours="FloatArithmetic", elementwise=True, bound="step", dims=rules.broadcast)
MIN = Kind("Min", ours="FloatArithmetic", elementwise=True, bound="step", dims=rules.broadcast)
NEG = Kind(
    "Neg", chain="step", step=_always(Affine(-1.0)), elementwise=True, bound="step", dims=rules.same
)
ABS = Kind(
    "Abs",
    chain="step",
    step=_always(Eltwise("abs")),
    elementwise=True,
    bound="step",
    dims=rules.same,
)
SUM, MEAN = (Kind(name, ours="FloatArithmetic", dims=rules.broadcast) for name in ("Sum", "Mean"))
BATCH_NORM = Kind(
    "BatchNormalization",
    chain="norm",
    older=(9, "norm"),
    bound="norm",
    dims=rules.norm_over_batches,
)

# Activations.
CLIP = Kind(
    "Clip",
    chain="clip",
    elementwise=True,
    on_codes=True,
    bound="step",
    reads=(11, ("min", "max")),
    dims=rules.same,
)
PRELU = Kind("PRelu", chain="prelu", elementwise=True, on_codes=True, dims=rules.same)
RELU = _activation("Relu", _always(Eltwise("relu")), on_codes=True, bound="step")
LEAKY_RELU = _activation(
    "LeakyRelu", _told("relu", alpha=0.01), on_codes=True, bound="leaky", emulated="leaky_relu"
)
ELU = _activation("Elu", _told("elu", alpha=1.0))
SOFTPLUS = _activation("Softplus", _always(Eltwise("soft_relu", 1.0)))
MISH = _activation("Mish", _always(Eltwise("mish")), since=18)
SIGMOID = _activation(
    "Sigmoid",
    _always(Eltwise("logistic")),
    gate=_always(Eltwise("swish", 1.0)),
    on_codes=True,
    bound="function",
    alg="logistic",
    units=3.0,
    slope=0.25,
    emulated="sigmoid",
)
TANH = _activation(
    "Tanh",
    _always(Eltwise("tanh")),
    on_codes=True,
    bound="function",
    alg="tanh",
    units=5.5,
    slope=1.0,
)
GELU = _activation(
    "Gelu", _gelu, since=20, on_codes=True, bound="function", alg="gelu_erf", units=2.2, slope=1.13
)
SWISH = _activation("Swish", _told("swish", alpha=1.0), since=24, on_codes=True)
HARD_SIGMOID = _activation(
    "HardSigmoid",
    _told("hardsigmoid", alpha=0.2, beta=0.5),
    gate=_told("hardswish", alpha=0.2, beta=0.5),
    on_codes=True,
    bound="line",
)
HARD_SWISH = _activation(
    "HardSwish",
    _always(Eltwise("hardswish", 1 / 6, 0.5)),
    since=14,
    on_codes=True,
    bound="hard_swish",
)

# Functions.
SQRT, LOG = Kind("Sqrt", dims=rules.same), Kind("Log", dims=rules.same)
ROUND = Kind("Round", since=11, dims=rules.same)
FLOOR = Kind("Floor", bound="floor", dims=rules.same)
EXP = Kind("Exp", elementwise=True, bound="exponential", alg="exp", units=1.3, dims=rules.same)
ERF = Kind(
    "Erf",
    since=9,
    elementwise=True,
    bound="function",
    units=1.05,
    slope=2 / math.sqrt(math.pi),
    dims=rules.same,
)
SOFTMAX = Kind(
    "Softmax",
    axis_since=13,
    ours="Softmax",
    on_codes=True,
    bound="softmax",
    emulated="softmax",
    older=(13, "softmax"),
    dims=rules.same,
)
LAYER_NORM = Kind(
    "LayerNormalization", since=17, ours="LayerNorm", bound="layer_norm", dims=rules.norm_from_axis
)
RMS_NORM = Kind("RMSNormalization", since=23, ours="LayerNorm", bound="layer_norm", dims=rules.same)
INSTANCE_NORM = Kind("InstanceNormalization", ours="LayerNorm", dims=rules.same)
GROUP_NORM = Kind("GroupNormalization", since=18, ours="LayerNorm", dims=rules.same)
LOG_SOFTMAX = Kind("LogSoftmax", axis_since=13, older=(13, "softmax"), dims=rules.same)

# Pools and means.
MAX_POOL = Kind(
    "MaxPool",
    ours="Pool",
    moves="always",
    pool="max",
    over="windows",
    bound="step",
    dims=rules.pool.making(0, "int64"),
)
GLOBAL_MAX_POOL = Kind(
    "GlobalMaxPool",
    ours="Pool",
    moves="always",
    pool="max",
    over="places",
    dims=rules.pool_over_places,
)
AVERAGE_POOL = Kind(
    "AveragePool",
    ours="Pool",
    shares=True,
    pool="mean",
    over="windows",
    on_codes=True,
    bound="mean",
    emulated="average_pool",
    dims=rules.pool,
)
GLOBAL_AVERAGE_POOL = Kind(
    "GlobalAveragePool",
    ours="Pool",
    pool="mean",
    over="places",
    on_codes=True,
    bound="mean",
    emulated="average_pool",
    dims=rules.pool_over_places,
)
REDUCE_MEAN = Kind(
    "ReduceMean",
    ours="Pool",
    pool="mean",
    over="axes",
    on_codes=True,
    bound="mean",
    dims=rules.reduction,
)
REDUCE_SUM = Kind("ReduceSum", ours="Reduction", reads=(13, ("axes",)), dims=rules.reduction)
REDUCE_MAX = Kind("ReduceMax", ours="Reduction", bound="step", dims=rules.reduction)
REDUCE_MIN, REDUCE_L1, REDUCE_L2, REDUCE_SQUARES, REDUCE_PRODUCT, REDUCE_LOG_SUM, LOG_SUM_EXP = (
    Kind(f"Reduce{name}", ours="Reduction", dims=rules.reduction)
    for name in ("Min", "L1", "L2", "SumSquare", "Prod", "LogSum", "LogSumExp")
)

# Operators that move elements.
CONCAT = Kind("Concat", ours="Concat", moves="always", dims=moved.concat)
SPLIT = Kind("Split", ours="Slice", moves="always", reads=(13, ("split",)), dims=moved.parts)
SLICE = Kind(
    "Slice", ours="Slice", moves="always", reads=(10, ("starts", "ends", "axes")), dims=moved.part
)
TRANSPOSE = Kind("Transpose", ours="Transpose", moves="always", dims=moved.transpose)
RESHAPE = Kind("Reshape", ours="Reshape", moves="always", reshapes=True, dims=moved.reshape)
FLATTEN = Kind("Flatten", ours="Reshape", moves="always", reshapes=True, dims=moved.flatten)
_AXES = (13, ("axes",))
SQUEEZE = Kind(
    "Squeeze", ours="Reshape", moves="always", reshapes=True, reads=_AXES, dims=moved.squeeze
)
UNSQUEEZE = Kind(
    "Unsqueeze", ours="Reshape", moves="always", reshapes=True, reads=_AXES, dims=moved.unsqueeze
)
GATHER = Kind("Gather", ours="TableRows", moves="always", dims=moved.gather)
DEPTH_TO_SPACE = Kind("DepthToSpace", moves="always", dims=moved.depth_to_space)
SPACE_TO_DEPTH = Kind("SpaceToDepth", moves="always", dims=moved.space_to_depth)
RESIZE = Kind(
    "Resize",
    since=10,
    ours="Repeat",
    moves="nearest",
    on_codes=True,
    grows=True,
    older=(11, "resize"),
    dims=moved.resized,
)
UPSAMPLE = Kind(
    "Upsample", grows=True, reads=(9, ("scales",)), older=(13, "upsample"), dims=moved.upsampled
)

PAD = Kind("Pad", ours="Pick", grows=True, reads=(11, ("pads", "value")), dims=moved.pad)
TILE = Kind("Tile", ours="Pick", grows=True, dims=moved.repeated)
EXPAND = Kind("Expand", since=8, ours="Pick", grows=True, dims=moved.expand)
GATHER_ND = Kind("GatherND", since=11, ours="Pick", dims=moved.gather_slices)

# Conditions.
AND = Kind("And", ours="Lookup", dims=rules.compared)
OR = Kind("Or", ours="Lookup", dims=rules.compared)
NOT = Kind("Not", ours="Lookup", dims=rules.told)
XOR = Kind("Xor", ours="Lookup", dims=rules.compared)
WHERE = Kind("Where", since=9, ours="Where", dims=rules.broadcast.making(1))
EQUAL = Kind("Equal", ours="Compare", dims=rules.compared)
LESS = Kind("Less", ours="Compare", dims=rules.compared)
GREATER = Kind("Greater", ours="Compare", dims=rules.compared)
LESS_OR_EQUAL = Kind("LessOrEqual", since=12, ours="Compare", dims=rules.compared)
GREATER_OR_EQUAL = Kind("GreaterOrEqual", since=12, ours="Compare", dims=rules.compared)
IS_NAN = Kind("IsNaN", since=9, ours="IsNaN", dims=rules.told)

# Operators that reading a graph removes.
CONSTANT = Kind("Constant", compared=False)
IF = Kind("If", older=(13, "branches"), compared=False)
LOOP = Kind("Loop", older=(13, "branches"), compared=False)
SCAN = Kind("Scan", since=8, older=(13, "branches"), compared=False)
IDENTITY = Kind("Identity", bound="step", dims=rules.unchanged)
DROPOUT = Kind("Dropout", older=(12, "dropout"), dims=rules.same.making(0, "bool"))
SHAPE, SIZE = (Kind("Shape", dims=moved.shape), Kind("Size", dims=rules.scalar))

# Operators that run by their definition, at least in some cases.
GRU = Kind("GRU", dims=rules.recurrence)
LSTM = Kind("LSTM", dims=rules.recurrence)
RNN = Kind("RNN", dims=rules.recurrence)
LOSS = Kind("NegativeLogLikelihoodLoss", since=12, dims=rules.loss)
CROSS_ENTROPY = Kind("SoftmaxCrossEntropyLoss", since=12, dims=rules.loss)
ATTENTION, ROI_ALIGN = Kind("Attention", since=23), Kind("RoiAlign", since=10, dims=rules.regions)
ROTARY = Kind("RotaryEmbedding", since=23, dims=rules.same)
TRILU = Kind("Trilu", since=14, dims=rules.same)

DYNAMIC_LSTM = theirs("DynamicQuantizeLSTM", "LSTM", "recurrence", rules.recurrence)
# Our own: no other runtime has one.
DYNAMIC_GRU = theirs("DynamicQuantizeGRU", "GRU", "recurrence", rules.recurrence, "pyonednn_q")
DYNAMIC_RECURRENT = (DYNAMIC_LSTM, DYNAMIC_GRU)
# onnxruntime writes it in ONNX's domain, which does not have it.
SIMPLE_NORM = theirs("SimplifiedLayerNormalization", "", "", rules.norm_from_axis)
SKIP_NORM, SKIP_SIMPLE_NORM = (
    theirs(f"{name}LayerNormalization", "", "", rules.sum_and_norm)
    for name in ("Skip", "SkipSimplified")
)
THEIR_ROTARY = theirs("RotaryEmbedding", "", "", rules.same)
GROUP_QUERY = theirs("GroupQueryAttention", "", "", attended.of_groups)
CACHED_ATTENTION = theirs("CachedAttention", "", "", attended.of_groups, "pyonednn_q")
HEADS = theirs("MultiHeadAttention", "", "", attended.of_heads)
THEIR_ATTENTION = theirs("Attention", "", "", attended.of_one)
GATHER_BITS = theirs("GatherBlockQuantized", "", "")
MATMUL_BITS = theirs("MatMulNBits", "MatMul", "blocks", rules.block_product)
FAKE_QUANTIZE = theirs("FakeQuantize", "", "fake_quantize", rules.same, "org.openvinotoolkit")

KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        row.name: row
        for row in (*(each for each in [*globals().values()] if isinstance(each, Kind)), *DEFINED)
    }
)
