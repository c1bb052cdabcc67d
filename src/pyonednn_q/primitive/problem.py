"""Problem: what a primitive computes; and the kinds of problems that have no weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from pyonednn_q.argument import flag, instance, integers, items, one_of, real, whole
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.primitive.convolution import ConvProblem, DeconvProblem
from pyonednn_q.primitive.dense import InnerProductProblem, MatMulProblem
from pyonednn_q.primitive.post_ops import BINARY_ALGS, EltwisePostOp
from pyonednn_q.primitive.tensor import Operation, TensorSpec
from pyonednn_q.primitive.window import Dims, Window

__all__ = [
    "BinaryProblem",
    "ConvProblem",
    "DeconvProblem",
    "EltwiseProblem",
    "InnerProductProblem",
    "MatMulProblem",
    "PReluProblem",
    "PoolingProblem",
    "Problem",
    "ReorderProblem",
    "ResamplingProblem",
    "SoftmaxProblem",
    "SumProblem",
]


def _check_same(dst: TensorSpec, argument: str, dims: tuple[int, ...]) -> None:
    if dst.dims != dims:
        raise ShapeError(argument="dst", got=str(dst.dims), wanted=f"{dims}, as {argument}")


def _check_broadcast(argument: str, dims: tuple[int, ...], src: tuple[int, ...]) -> None:
    if len(src) != len(dims) or any(
        have not in (1, want) for have, want in zip(dims, src, strict=True)
    ):
        wanted = f"{len(src)} dimensions, each 1 or as in {src}"
        raise ShapeError(argument=argument, got=str(dims), wanted=wanted)


@dataclass(frozen=True, slots=True)
class EltwiseProblem(Operation):
    """dst = alg(src), element by element.

    Parameters
    ----------
    src, dst : TensorSpec
        Tensors with the same dimensions.
    alg, alpha, beta
        Arguments of `EltwisePostOp`.
    """

    kind: ClassVar[str] = "eltwise"

    src: TensorSpec
    dst: TensorSpec
    alg: str
    alpha: float = 0.0
    beta: float = 0.0

    def __post_init__(self) -> None:
        for name in ("src", "dst"):
            instance(name, getattr(self, name), TensorSpec)
        _check_same(self.dst, "src", self.src.dims)
        checked = EltwisePostOp(self.alg, self.alpha, self.beta)
        object.__setattr__(self, "alpha", checked.alpha)
        object.__setattr__(self, "beta", checked.beta)

    def params(self) -> dict[str, Any]:
        """Return alg, alpha and beta."""
        return {"alg": self.alg, "alpha": self.alpha, "beta": self.beta}


@dataclass(frozen=True, slots=True)
class BinaryProblem(Operation):
    """dst = alg(src, src1), element by element; a dimension of 1 in src1 is broadcast.

    Parameters
    ----------
    src, src1, dst : TensorSpec
        Tensors of one rank; dst has the dimensions of src.
    alg : str
        One of `pyonednn_q.primitive.post_ops.BINARY_ALGS`.
    """

    kind: ClassVar[str] = "binary"

    src: TensorSpec
    src1: TensorSpec
    dst: TensorSpec
    alg: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "alg", one_of("alg", self.alg, BINARY_ALGS))
        for name in ("src", "src1", "dst"):
            instance(name, getattr(self, name), TensorSpec)
        _check_same(self.dst, "src", self.src.dims)
        _check_broadcast("src1", self.src1.dims, self.src.dims)

    def params(self) -> dict[str, Any]:
        """Return alg."""
        return {"alg": self.alg}


@dataclass(frozen=True, slots=True)
class SumProblem(Operation):
    """dst = Σ scales[i] · srcs[i].

    Parameters
    ----------
    srcs : tuple of TensorSpec
        Named ``src_0``, ``src_1``, ...; all of dst's dimensions.
    scales : tuple of float
        One per source.
    dst : TensorSpec
        Result, with the same dimensions.
    """

    kind: ClassVar[str] = "sum"

    srcs: tuple[TensorSpec, ...]
    scales: tuple[float, ...]
    dst: TensorSpec

    def __post_init__(self) -> None:
        object.__setattr__(self, "srcs", items("srcs", self.srcs, TensorSpec))
        scales = (real("scales", scale) for scale in items("scales", self.scales, object))
        object.__setattr__(self, "scales", tuple(scales))
        if not self.srcs:
            raise ArgumentError(argument="srcs", got="none", wanted="at least one")
        if len(self.scales) != len(self.srcs):
            wanted = f"{len(self.srcs)}, one per source"
            raise ArgumentError(argument="scales", got=f"{len(self.scales)}", wanted=wanted)
        instance("dst", self.dst, TensorSpec)
        for index, src in enumerate(self.srcs):
            instance(f"src_{index}", src, TensorSpec)
            _check_same(self.dst, f"src_{index}", src.dims)

    @property
    def tensors(self) -> dict[str, TensorSpec]:
        """The sources and dst, by name."""
        return {f"src_{index}": src for index, src in enumerate(self.srcs)} | {"dst": self.dst}

    def params(self) -> dict[str, Any]:
        """Return scales."""
        return {"scales": self.scales}


@dataclass(frozen=True, slots=True)
class SoftmaxProblem(Operation):
    """dst = exp(src) / Σ exp(src) along an axis, or its logarithm.

    Parameters
    ----------
    src, dst : TensorSpec
        Tensors with the same dimensions.
    axis : int
        Counted from the end when negative.
    log : bool
        The logarithm.
    """

    kind: ClassVar[str] = "softmax"

    src: TensorSpec
    dst: TensorSpec
    axis: int
    log: bool = False

    def __post_init__(self) -> None:
        for name in ("src", "dst"):
            instance(name, getattr(self, name), TensorSpec)
        ndim = self.src.ndim
        _check_same(self.dst, "src", self.src.dims)
        axis = whole("axis", self.axis, lo=-ndim, hi=ndim - 1)
        object.__setattr__(self, "axis", axis % ndim)
        flag("log", self.log)

    def params(self) -> dict[str, Any]:
        """Return alg and axis."""
        return {"alg": "softmax_log" if self.log else "softmax_accurate", "axis": self.axis}


@dataclass(frozen=True, slots=True)
class PReluProblem(Operation):
    """dst = src where src > 0, wei · src elsewhere; a dimension of 1 in wei is broadcast.

    Parameters
    ----------
    src, wei, dst : TensorSpec
        Tensors of one rank; dst has the dimensions of src. All with strides.
    """

    kind: ClassVar[str] = "prelu"

    src: TensorSpec
    wei: TensorSpec
    dst: TensorSpec

    def __post_init__(self) -> None:
        for name in ("src", "wei", "dst"):
            instance(name, getattr(self, name), TensorSpec)
        _check_same(self.dst, "src", self.src.dims)
        _check_broadcast("wei", self.wei.dims, self.src.dims)


@dataclass(frozen=True, slots=True)
class ReorderProblem(Operation):
    """dst = src in another data type, layout or scale.

    Parameters
    ----------
    src, dst : TensorSpec
        Tensors with the same dimensions, both with strides.
    """

    kind: ClassVar[str] = "reorder"

    src: TensorSpec
    dst: TensorSpec

    def __post_init__(self) -> None:
        for name in ("src", "dst"):
            instance(name, getattr(self, name), TensorSpec)
        _check_same(self.dst, "src", self.src.dims)
        for name in ("src", "dst"):
            if getattr(self, name).strides is None:
                raise ShapeError(name, "no strides", "a definite layout: nothing is left to choose")


_POOLING_ALGS = ("max", "avg_include_padding", "avg_exclude_padding")


@dataclass(frozen=True, slots=True)
class PoolingProblem(Operation):
    """The largest, or the mean, of every window of src.

    Parameters
    ----------
    src, dst : TensorSpec
        (N, C, spatial).
    alg : str
        max, avg_include_padding or avg_exclude_padding.
    kernel, stride, dilation, padding_lo, padding_hi : tuple of int
        One per spatial dimension. A dilation of 1 is dense.

    Raises
    ------
    ShapeError
        Anything that does not fit.
    """

    kind: ClassVar[str] = "pooling"

    src: TensorSpec
    dst: TensorSpec
    alg: str
    kernel: Dims
    stride: Dims
    dilation: Dims
    padding_lo: Dims
    padding_hi: Dims

    def __post_init__(self) -> None:
        object.__setattr__(self, "alg", one_of("alg", self.alg, _POOLING_ALGS))
        for name in ("kernel", "stride", "dilation", "padding_lo", "padding_hi"):
            object.__setattr__(self, name, integers(name, getattr(self, name)))
        for name in ("src", "dst"):
            instance(name, getattr(self, name), TensorSpec)
        src, dst = self.src, self.dst
        if not 3 <= src.ndim <= 5:
            wanted = "(N, C, 1 to 3 spatial dimensions)"
            raise ShapeError(argument="src", got=str(src.dims), wanted=wanted)
        if len(self.kernel) != src.ndim - 2:
            wanted = f"{src.ndim - 2} values, one per spatial dimension"
            raise ShapeError(argument="kernel", got=str(self.kernel), wanted=wanted)
        wanted_dims = (*src.dims[:2], *self.window.gathered(src.dims[2:]))
        if dst.dims != wanted_dims or min(wanted_dims[2:]) < 1:
            raise ShapeError(argument="dst", got=str(dst.dims), wanted=str(wanted_dims))

    @property
    def window(self) -> Window:
        """Kernel, stride, dilation and padding."""
        sides = (self.padding_lo, self.padding_hi)
        return Window(self.kernel, self.stride, self.dilation, *sides)

    def params(self) -> dict[str, Any]:
        """Return the algorithm and the window as the extension names them."""
        return {
            "alg": self.alg,
            "kernel": self.kernel,
            "strides": self.stride,
            "dilation": self.dilation,
            "padding_lo": self.padding_lo,
            "padding_hi": self.padding_hi,
        }

    def _shown(self) -> dict[str, Any]:
        names = ("alg", "kernel", "stride", "dilation", "padding_lo", "padding_hi")
        return {name: getattr(self, name) for name in names}


_RESAMPLING_ALGS = ("linear", "nearest")


@dataclass(frozen=True, slots=True)
class ResamplingProblem(Operation):
    """src at other spatial sizes; values stand at the centres of pixels.

    Parameters
    ----------
    src, dst : TensorSpec
        (N, C, spatial), of the same N and C.
    alg : str
        linear (along every spatial dimension) or nearest.

    Raises
    ------
    ShapeError
        Anything that does not fit.
    """

    kind: ClassVar[str] = "resampling"

    src: TensorSpec
    dst: TensorSpec
    alg: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "alg", one_of("alg", self.alg, _RESAMPLING_ALGS))
        for name in ("src", "dst"):
            instance(name, getattr(self, name), TensorSpec)
        src, dst = self.src, self.dst
        if not 3 <= src.ndim <= 5:
            wanted = "(N, C, 1 to 3 spatial dimensions)"
            raise ShapeError(argument="src", got=str(src.dims), wanted=wanted)
        if dst.ndim != src.ndim or dst.dims[:2] != src.dims[:2]:
            wanted = f"{src.dims[:2]} and {src.ndim - 2} spatial dimensions, as src"
            raise ShapeError(argument="dst", got=str(dst.dims), wanted=wanted)

    def params(self) -> dict[str, Any]:
        """Return the algorithm."""
        return {"alg": self.alg}


Problem = (
    ConvProblem
    | DeconvProblem
    | InnerProductProblem
    | MatMulProblem
    | EltwiseProblem
    | BinaryProblem
    | SumProblem
    | SoftmaxProblem
    | PoolingProblem
    | ResamplingProblem
    | PReluProblem
    | ReorderProblem
)
