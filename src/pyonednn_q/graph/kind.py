"""Kind: the properties of an operator kind."""

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
        ONNX's name, with the domain before it unless it is ONNX's own.
    since : int
        First opset of its domain that has it.
    axis_since : int
        First opset in which `axis` is a single dimension; before, it meant all dimensions from
        there on, or did not exist. 0: no such change.
    ours : str
        Class of this package that computes it: an operator, or an operation of networks.
    means : str
        Name of the kind that computes the same on real values; empty: itself.
    form : str
        Rule by which a node on codes is rewritten as a `means` node between quantizers; integer:
        only if a dynamic quantizer makes its source.
    layer : str
        Problem of a layer with constant weights; empty: not a layer.
    moves : {"", "always", "nearest"}
        Whether results are copies of source elements; nearest: only with mode="nearest".
    shares : bool
        Whether results and sources should have one scale, although values are computed.
    pool : {"", "max", "mean"}
        Function of a window.
    over : {"", "windows", "places", "axes"}
        Extent of a pool or mean: windows, all places of a channel, or the axes of the node.
    reshapes : bool
        Whether the result has the same elements in the same order, with other dims.
    elementwise : bool
        Whether each element of the result depends only on the source elements in the same place,
        and is finite for all finite sources.
    on_codes : bool
        Whether it computes codes from codes between quantizers (kinds with `moves` do so anyway).
    chain : str
        Rule by which the node joins the chain of a layer. step, activation: by `step`; clip, prelu,
        norm: by its constants; add, sub, mul, div: with a constant or another tensor.
    step, gate : callable or None
        Functions from attributes to the step that computes f(x), and to the step of x · f(x).
    bound : str
        Rule of `models.node_bounds` that bounds the float32 error of its results.
    alg : str
        oneDNN's algorithm of a function whose error was measured; empty: none.
    units, slope : float
        Error of onnxruntime's kernel, rounded up, in units of 2^-24 · max(1, |f(x)|) (for an
        exponential 2^-24 · |f(x)|); the largest |f'(x)|.
    emulated : str
        Operator of `emulate` on codes; empty: none.
    grows : bool
        Whether a small input may give a large result; results are then limited in size.
    reads : (int, tuple of str)
        First opset in which inputs replace attributes, and the names of these attributes, in
        order.
    older : (int, str)
        First opset of the present form, and the rule of `onnx.opset_raising` that rewrites older
        nodes.
    dims : DimsRule or None
        Rule for dims and types of results; None: inferred by the package onnx.
    compared : bool
        Whether its Python definition was compared with onnxruntime.
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
        """Return whether a node with these attributes only moves or picks values."""
        is_nearest = self.moves == "nearest" and attributes.get("mode", "nearest") == "nearest"
        return self.moves == "always" or is_nearest

    @property
    def is_on_codes(self) -> bool:
        """Whether calibration should quantize its sources."""
        return self.on_codes or bool(self.moves)

    @property
    def is_table(self) -> bool:
        """Whether it becomes a table of all codes if its sources are codes."""
        return self.elementwise and not self.is_quantizer

    @property
    def is_quantizer(self) -> bool:
        """Whether it converts real values to codes by constant scales, or codes to real values."""
        return self.ours in {"Quantize", "Dequantize"}

    @property
    def multiplies(self) -> bool:
        """Whether it is a float layer, or a layer on codes whose sums are scaled by later nodes."""
        return bool(self.layer) or self.form == "integer"

    @property
    def is_activation(self) -> bool:
        """Whether the result of a layer is quantized only after it."""
        return self.chain in {"activation", "clip", "prelu", "norm"}

    @property
    def is_arithmetic(self) -> bool:
        """Whether it is arithmetic of two tensors."""
        return self.chain in {"add", "sub", "mul", "div"}

    @property
    def is_signed(self) -> bool:
        """Whether results may be negative: a quantizer can replace a ReLU after it."""
        return bool(self.layer) or self.chain in {"add", "sub", "mul", "norm"}

    @property
    def is_of_codes(self) -> bool:
        """Whether its name says that it computes with codes; also for operators without a row."""
        return any(word in self.name.rpartition(".")[2] for word in _CODES)

    @property
    def has_measured_error(self) -> bool:
        """Whether its bound is a measured error of kernels."""
        return self.bound in {"function", "exponential", "softmax", "layer_norm"}
