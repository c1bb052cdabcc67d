"""Kind: what is known of an operator by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pyonednn_q.expr.steps import Step
from pyonednn_q.graph.dims_rule import DimsRule

__all__ = ["Attributes", "Form", "Kind"]

Attributes = Mapping[str, Any]
Older = Literal["", "branches", "dropout", "norm", "resize", "softmax", "upsample"]
Form = Literal[
    "", "as_onnx", "binary", "blocks", "concat", "conv", "fake_quantize", "gemm", "integer",
    "matmul", "recurrence", "softmax", "unary",
]  # fmt: skip
Bound = Literal[
    "", "cast", "dequantize", "dynamic", "exact_sum", "exponential", "floor", "function",
    "hard_swish", "layer_norm", "leaky", "line", "mean", "norm", "product", "quotient", "softmax",
    "step", "sum", "total",
]  # fmt: skip
Chain = Literal["", "step", "activation", "clip", "prelu", "norm", "add", "sub", "mul", "div"]

_CODES = ("QLinear", "Integer", "Quantize", "QAttention", "QGemm", "QMoE", "NBits")


@dataclass(frozen=True, slots=True, eq=False, repr=False, match_args=False)
class Kind:
    """One operator kind.

    Attributes
    ----------
    name : str
        ONNX's, with the domain before it unless that is ONNX's own.
    since : int
        Opset of its domain that has it first.
    axis_since : int
        Opset since which its axis is one dimension; before, all dimensions from there on, or none.
    ours : str
        Operator or operation of a network that computes it.
    means : str
        Name of the kind that computes the same on real values; empty where that is itself.
    form : str
        How a node of codes is written as one of `means` between quantizers; integer: where a
        dynamic quantizer makes its source.
    layer : str
        Problem that a layer of constant weights is.
    moves : {"", "always", "nearest"}
        Whether results are elements of the sources, whatever they mean; nearest: in that mode.
    shares : bool
        Whether results and sources should have one scale though values are computed.
    pool : {"", "max", "mean"}
        What is made of a window.
    over : {"", "windows", "places", "axes"}
        What a pool or mean goes over: windows, all places of a channel, axes as told.
    reshapes : bool
        Whether the elements stay in order, in other dims.
    elementwise : bool
        Whether an element of the result is made of those of the sources in its place, and is a
        number whatever they are.
    on_codes : bool
        Whether it computes codes from codes between quantizers, beside those that move them.
    chain : str
        How it joins the chain of a layer: step, activation by `step`; clip, prelu, norm by its
        constants; add, sub, mul, div with a constant or another tensor.
    step, gate : callable or None
        Attributes to the step of its function f; of x · f(x).
    bound : str
        How far float32 may be from its values: a rule of `models.node_bounds`, or of its
        functions.
    alg : str
        oneDNN's algorithm of a function whose error was measured.
    units, slope : float
        Error of onnxruntime's kernel, in 2^-24 of max(1, |f(x)|), of an exponential in parts of its
        value, rounded up; the largest |f'(x)|.
    emulated : str
        Operator of `emulate` on codes; empty where none is.
    grows : bool
        Whether much may come of little.
    reads : (int, tuple of str)
        The opset since which it reads what attributes said before, and their names, in order.
    older : (int, str)
        The opset since which it is written as now, and how a node of an older one becomes that: a
        rule of `onnx.opset_raising`.
    dims : DimsRule or None
        How dims and types of results follow from the sources; None: as the package onnx infers.
    compared : bool
        Whether its definition in Python was compared with onnxruntime's results.
    """

    name: str
    since: int = 1
    axis_since: int = 0
    ours: str = ""
    means: str = ""
    form: Form = ""
    layer: Literal["", "convolution", "deconvolution", "inner_product", "matmul"] = ""
    moves: Literal["", "always", "nearest"] = ""
    shares: bool = False
    pool: Literal["", "max", "mean"] = ""
    over: Literal["", "windows", "places", "axes"] = ""
    reshapes: bool = False
    elementwise: bool = False
    on_codes: bool = False
    chain: Chain = ""
    step: Callable[[Attributes], Step] | None = None
    gate: Callable[[Attributes], Step] | None = None
    bound: Bound = ""
    alg: str = ""
    units: float = 0.0
    slope: float = 0.0
    emulated: str = ""
    grows: bool = False
    reads: tuple[int, tuple[str, ...]] = (0, ())
    older: tuple[int, Older] = (0, "")
    dims: DimsRule | None = None
    compared: bool = True

    def __str__(self) -> str:
        return self.name

    def moves_values(self, attributes: Attributes) -> bool:
        """Tell whether a node moves or picks values, whatever they are."""
        is_nearest = self.moves == "nearest" and attributes.get("mode", "nearest") == "nearest"
        return self.moves == "always" or is_nearest

    @property
    def is_on_codes(self) -> bool:
        """Whether its sources are worth being codes."""
        return self.on_codes or bool(self.moves)

    @property
    def is_table(self) -> bool:
        """Whether it is looked up in a table of all codes, where its sources are codes."""
        return self.elementwise and not self.is_quantizer

    @property
    def is_quantizer(self) -> bool:
        """Whether it makes codes of reals by constant scales, or reals of codes."""
        return self.ours in {"Quantize", "Dequantize"}

    @property
    def multiplies(self) -> bool:
        """Whether it is a layer of floats, or one whose sums of codes others scale."""
        return bool(self.layer) or self.form == "integer"

    @property
    def is_activation(self) -> bool:
        """Whether the codes of a layer wait until it is done."""
        return self.chain in {"activation", "clip", "prelu", "norm"}

    @property
    def is_arithmetic(self) -> bool:
        """Whether it computes with two tensors."""
        return self.chain in {"add", "sub", "mul", "div"}

    @property
    def is_signed(self) -> bool:
        """Whether results are negative now and then: quantizers take the ReLU behind it."""
        return bool(self.layer) or self.chain in {"add", "sub", "mul", "norm"}

    @property
    def is_of_codes(self) -> bool:
        """Whether its name says that it computes with codes; of operators without a row, too."""
        return any(word in self.name.rpartition(".")[2] for word in _CODES)

    @property
    def has_measured_error(self) -> bool:
        """Whether its bound is what kernels were measured to be off by."""
        return self.bound in {"function", "exponential", "softmax", "layer_norm"}
