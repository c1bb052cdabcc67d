"""primitive: what is asked of oneDNN, as values: problems, tensors, attributes, post-ops.

Frozen, hashable, with a plain-tuple ``boundary()`` for the extension. Every constructor raises
`ArgumentError`, `DTypeError` or `ShapeError` with the name of the argument that is wrong.
What may not enter: arrays that belong to one call, how a chain is lowered, and the extension.
"""

from __future__ import annotations

from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.dense_facts import PrimitiveFacts
from pyonednn_q.primitive.isa import InstructionSet
from pyonednn_q.primitive.post_ops import (
    BinaryPostOp,
    DepthwisePostOp,
    EltwisePostOp,
    PReluPostOp,
    SumPostOp,
)
from pyonednn_q.primitive.problem import (
    BinaryProblem,
    ConvProblem,
    DeconvProblem,
    EltwiseProblem,
    InnerProductProblem,
    MatMulProblem,
    PoolingProblem,
    PReluProblem,
    ReorderProblem,
    ResamplingProblem,
    SoftmaxProblem,
    SumProblem,
)
from pyonednn_q.primitive.tensor import TensorSpec

__all__ = [
    "Attr",
    "BinaryPostOp",
    "BinaryProblem",
    "ConvProblem",
    "DeconvProblem",
    "DepthwisePostOp",
    "EltwisePostOp",
    "EltwiseProblem",
    "InnerProductProblem",
    "InstructionSet",
    "MatMulProblem",
    "PReluPostOp",
    "PReluProblem",
    "PoolingProblem",
    "PrimitiveFacts",
    "ReorderProblem",
    "ResamplingProblem",
    "Scale",
    "SoftmaxProblem",
    "SumPostOp",
    "SumProblem",
    "TensorSpec",
    "ZeroPoint",
]
