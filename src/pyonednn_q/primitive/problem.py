"""What to compute: a primitive's tensors and parameters as one frozen value."""

from __future__ import annotations

from pyonednn_q.primitive.convolution import ConvProblem, DeconvProblem
from pyonednn_q.primitive.dense import InnerProductProblem, MatMulProblem
from pyonednn_q.primitive.pointwise import (
    BinaryProblem,
    EltwiseProblem,
    PReluProblem,
    ReorderProblem,
    SoftmaxProblem,
    SumProblem,
)
from pyonednn_q.primitive.pooling import PoolingProblem
from pyonednn_q.primitive.resampling import ResamplingProblem

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
