"""Post-ops of oneDNN: steps on the result before it is stored, in the order of the list.

Only structure and the constants that oneDNN bakes in; operands of binary and prelu are run-time
arguments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import instance, one_of, real, whole
from pyonednn_q.errors import ArgumentError
from pyonednn_q.primitive.tensor import TensorSpec

MAX_POST_OPS = 32  # the library's; a longer chain fails with out_of_memory

ELTWISE_ALGS = (
    "relu",
    "tanh",
    "elu",
    "square",
    "abs",
    "sqrt",
    "linear",
    "soft_relu",
    "hardsigmoid",
    "logistic",
    "exp",
    "gelu_tanh",
    "gelu_erf",
    "swish",
    "log",
    "clip",
    "clip_v2",
    "pow",
    "round",
    "mish",
    "hardswish",
)

# Not "select": it needs oneDNN 3.9 and with a scalar operand always takes one branch on AMX.
COMPARISONS = ("ge", "gt", "le", "lt", "eq", "ne")
BINARY_ALGS = ("add", "mul", "max", "min", "div", "sub", *COMPARISONS)


@dataclass(frozen=True, slots=True)
class SumPostOp:
    """y = x + scale · (dst_before − zero_point), dst_before being the raw stored value.

    Parameters
    ----------
    scale : float
        Scale of what dst holds before the call.
    zero_point : int
        Zero point of what dst holds before the call.
    dtype : str, optional
        Reads the stored bits as another type of the same size. It converts nothing, and naming the
        type that dst has anyway costs the fast kernel on some machines: leave it out.
    """

    scale: float = 1.0
    zero_point: int = 0
    dtype: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", real("scale", self.scale))
        object.__setattr__(self, "zero_point", whole("zero_point", self.zero_point))
        if self.dtype is not None:
            object.__setattr__(self, "dtype", dtypes.checked(self.dtype))

    def boundary(self) -> tuple[Any, ...]:
        """Return what the extension receives: ("sum", scale, zero_point, dtype)."""
        return "sum", self.scale, self.zero_point, self.dtype or "undef"

    def text(self) -> str:
        """Return one readable word, ``sum:scale:zero_point:dtype``."""
        return f"sum:{self.scale!r}:{self.zero_point}" + (f":{self.dtype}" if self.dtype else "")


@dataclass(frozen=True, slots=True)
class EltwisePostOp:
    """y = alg(x), with oneDNN's meaning of `alpha` and `beta`.

    Parameters
    ----------
    alg : str
        One of `ELTWISE_ALGS`.
    alpha, beta : float
        relu: alpha is the negative slope. linear: alpha·x + beta. clip, clip_v2: alpha ≤ beta are
        the bounds (and may be infinite). elu, swish, soft_relu, hardsigmoid, hardswish, pow: see
        oneDNN's table. Otherwise unused.
    """

    alg: str
    alpha: float = 0.0
    beta: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "alg", one_of("alg", self.alg, ELTWISE_ALGS))
        is_clip = self.alg in ("clip", "clip_v2")
        alpha = real("alpha", self.alpha, infinite=is_clip)
        beta = real("beta", self.beta, infinite=is_clip)
        if is_clip and alpha > beta:
            raise ArgumentError(argument="alpha", got=f"{alpha}", wanted=f"at most beta = {beta}")
        if self.alg == "soft_relu" and not np.float32(alpha):
            wanted = "not 0: soft_relu is log(1 + exp(alpha·x)) / alpha"
            raise ArgumentError(argument="alpha", got=f"{alpha}", wanted=wanted)
        # Never -0: the library's cache takes it for 0, so what it would mean depends on the past.
        object.__setattr__(self, "alpha", alpha + 0.0)
        object.__setattr__(self, "beta", beta + 0.0)

    def boundary(self) -> tuple[Any, ...]:
        """Return what the extension receives: ("eltwise", alg, alpha, beta)."""
        return "eltwise", self.alg, self.alpha, self.beta

    def text(self) -> str:
        """Return one readable word, ``eltwise_alg:alpha:beta``."""
        parameters = f":{self.alpha!r}:{self.beta!r}" if self.alpha or self.beta else ""
        return f"eltwise_{self.alg}{parameters}"


@dataclass(frozen=True, slots=True)
class BinaryPostOp:
    """y = alg(x, src1), src1 being broadcast along its dimensions of 1.

    Parameters
    ----------
    alg : str
        One of `BINARY_ALGS`. Comparisons give 1 or 0.
    src1 : TensorSpec
        Tensor with as many dimensions as dst.
    """

    alg: str
    src1: TensorSpec

    def __post_init__(self) -> None:
        object.__setattr__(self, "alg", one_of("alg", self.alg, BINARY_ALGS))
        instance("src1", self.src1, TensorSpec)

    def boundary(self) -> tuple[Any, ...]:
        """Return what the extension receives: ("binary", alg, src1)."""
        return "binary", self.alg, self.src1.boundary()

    def text(self) -> str:
        """Return one readable word, ``binary_alg:dtype:dims``."""
        return f"binary_{self.alg}:{self.src1.text()}"


@dataclass(frozen=True, slots=True)
class PReluPostOp:
    """y = x if x ≥ 0 else slope · x, with f32 slopes given at run time.

    Parameters
    ----------
    mask : int
        Bit i set: one slope per index of dst's dimension i. 0: one slope.
    """

    mask: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "mask", whole("mask", self.mask, lo=0, hi=2**12 - 1))

    def boundary(self) -> tuple[Any, ...]:
        """Return what the extension receives: ("prelu", mask)."""
        return "prelu", self.mask

    def text(self) -> str:
        """Return one readable word, ``prelu:mask``."""
        return f"prelu:{self.mask}"


@dataclass(frozen=True, slots=True)
class DepthwisePostOp:
    """A second, depthwise convolution on the result of a 1x1 one.

    For int8 the library runs two kernels with a buffer between: it saves nothing.

    Parameters
    ----------
    wei_dtype, dst_dtype : str
        Data types of the weights and of the result of the second convolution.
    bias_dtype : str or None
        Data type of the bias; None when it has no bias.
    kernel, stride, padding : int
        The same in both spatial dimensions; padding is that on the low side.
    """

    wei_dtype: str
    bias_dtype: str | None
    dst_dtype: str
    kernel: int
    stride: int
    padding: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "wei_dtype", dtypes.checked(self.wei_dtype, "wei_dtype"))
        object.__setattr__(self, "dst_dtype", dtypes.checked(self.dst_dtype, "dst_dtype"))
        if self.bias_dtype is not None:
            object.__setattr__(self, "bias_dtype", dtypes.checked(self.bias_dtype, "bias_dtype"))
        for name, lo in (("kernel", 1), ("stride", 1), ("padding", 0)):
            object.__setattr__(self, name, whole(name, getattr(self, name), lo=lo))

    def boundary(self) -> tuple[Any, ...]:
        """Return what the extension receives: ("depthwise", dtypes..., kernel, stride, padding)."""
        window = (self.kernel, self.stride, self.padding)
        return "depthwise", self.wei_dtype, self.bias_dtype or "undef", self.dst_dtype, *window

    def text(self) -> str:
        """Return one readable word, ``depthwise:k3s1p1:wei:bias:dst``."""
        window = f"k{self.kernel}s{self.stride}p{self.padding}"
        types = f"{self.wei_dtype}:{self.bias_dtype or 'undef'}:{self.dst_dtype}"
        return f"depthwise:{window}:{types}"


PostOp = SumPostOp | EltwisePostOp | BinaryPostOp | PReluPostOp | DepthwisePostOp
POST_OPS = (SumPostOp, EltwisePostOp, BinaryPostOp, PReluPostOp, DepthwisePostOp)
