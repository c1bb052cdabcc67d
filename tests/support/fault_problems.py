"""Small problems that show faults, for the table's cases and for what the library computes."""

from __future__ import annotations

from pyonednn_q.primitive.attr import Attr
from pyonednn_q.primitive.post_ops import BinaryPostOp
from pyonednn_q.primitive.problem import ConvProblem, DeconvProblem
from pyonednn_q.primitive.tensor import TensorSpec


def by_bf16(dst: str) -> ConvProblem:
    """Return f32 by bf16."""
    return ConvProblem.of((1, 8, 6, 6), (8, 8, 3, 3), src="f32", wei="bf16", dst=dst)


def few_columns(oc: int, dst: str = "u8", stride: int = 3, padding: int = 2) -> ConvProblem:
    """Return a row of three columns, from 16 channels."""
    return ConvProblem.of((1, 16, 9), (oc, 16, 3), dst=dst, stride=stride, padding=((padding, 0),))


def rows_in_padding(kernel: int, dilation: int, lo: int, hi: int) -> ConvProblem:
    """Return a convolution of 7 rows, padded on all sides."""
    wei, padding = (16, 16, kernel, 2), ((lo, hi), (3, 1))
    return ConvProblem.of(
        (1, 16, 7, 7), wei, src="s8", dst="s32", padding=padding, dilation=(dilation, 3)
    )


def one_tap() -> DeconvProblem:
    """Return a deconvolution of one tap."""
    return DeconvProblem.of((1, 8, 2, 5), (8, 8, 1, 1))


def compared_with(*dims: int) -> Attr:
    """Return a comparison with an operand of those dims."""
    return Attr(post_ops=(BinaryPostOp("ge", TensorSpec.dense(dims, "f32")),))
