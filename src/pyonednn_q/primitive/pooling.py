"""Pooling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from pyonednn_q.argument import integers, one_of
from pyonednn_q.errors import ShapeError
from pyonednn_q.primitive.operation import Operation, tensor
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.primitive.window import Dims, Window

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
        src, dst = tensor("src", self.src), tensor("dst", self.dst)
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
        return {"alg": self.alg, "kernel": self.kernel, **self.window.params()}

    def _shown(self) -> dict[str, Any]:
        names = ("alg", "kernel", "stride", "dilation", "padding_lo", "padding_hi")
        return {name: getattr(self, name) for name in names}
