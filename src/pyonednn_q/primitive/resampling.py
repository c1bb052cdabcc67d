"""Resampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from pyonednn_q.argument import one_of
from pyonednn_q.errors import ShapeError
from pyonednn_q.primitive.operation import Operation, tensor
from pyonednn_q.primitive.tensor import TensorSpec

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
        src, dst = tensor("src", self.src), tensor("dst", self.dst)
        if not 3 <= src.ndim <= 5:
            wanted = "(N, C, 1 to 3 spatial dimensions)"
            raise ShapeError(argument="src", got=str(src.dims), wanted=wanted)
        if dst.ndim != src.ndim or dst.dims[:2] != src.dims[:2]:
            wanted = f"{src.dims[:2]} and {src.ndim - 2} spatial dimensions, as src"
            raise ShapeError(argument="dst", got=str(dst.dims), wanted=wanted)

    def params(self) -> dict[str, Any]:
        """Return the algorithm."""
        return {"alg": self.alg}
