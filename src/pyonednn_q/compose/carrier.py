"""Carrier: a post-op together with the value of its operand."""

from __future__ import annotations

from dataclasses import dataclass

from pyonednn_q.expr.vec import Vec
from pyonednn_q.faults.capability import operand_dims
from pyonednn_q.primitive.dense_facts import PrimitiveFacts
from pyonednn_q.primitive.post_ops import BinaryPostOp, EltwisePostOp, PostOp
from pyonednn_q.primitive.tensor import TensorSpec

__all__ = ["Carrier", "binary", "linear", "operand"]


@dataclass(frozen=True, slots=True)
class Carrier:
    """One post-op with the value of its operand: a constant, a leaf of each call, or none."""

    post_op: PostOp
    value: Vec | None = None
    leaf: str | None = None


def linear(scale: Vec, shift: Vec) -> Carrier:
    """Return scale·x + shift, one number each."""
    # The numbers as the kernel holds them: a plan states what is computed. No -0.0.
    return Carrier(EltwisePostOp("linear", scale.narrow().least, shift.narrow().least + 0.0))


def binary(alg: str, value: Vec, facts: PrimitiveFacts) -> Carrier:
    """Return alg(x, value), value being one number, or one per channel."""
    extent = "per_tensor" if value.is_per_tensor else "per_channel"
    dims = operand_dims(facts, extent)
    assert dims is not None
    return Carrier(BinaryPostOp(alg, operand(dims, "f32", facts)), value.narrow())


def operand(dims: tuple[int, ...], dtype: str, facts: PrimitiveFacts) -> TensorSpec:
    """Return the tensor of an operand; one of dst's size lies in memory as dst does.

    Otherwise reference loops run, and one value per channel has dst's size where that is one place.
    """
    if dims == facts.dst_dims and facts.kind in {"convolution", "deconvolution"}:
        return TensorSpec.channels_last(dims, dtype)
    return TensorSpec.dense(dims, dtype)
