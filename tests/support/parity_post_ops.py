"""Post-op cases: every eltwise and binary algorithm, sum with zero point, prelu, chains."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from pyonednn_q.primitive.attr import Attr, Scale
from pyonednn_q.primitive.post_ops import (
    BinaryPostOp,
    EltwisePostOp,
    PReluPostOp,
    SumPostOp,
)
from pyonednn_q.primitive.tensor import TensorSpec
from support import parity
from support.cases import Recipe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyonednn_q.primitive.post_ops import PostOp

# alg -> alpha, beta: dyadic, so that the exact algorithms stay exact.
ELTWISE: dict[str, tuple[float, float]] = {
    "relu": (0.0, 0.0),
    "tanh": (0.0, 0.0),
    "elu": (0.5, 0.0),
    "square": (0.0, 0.0),
    "abs": (0.0, 0.0),
    "sqrt": (0.0, 0.0),
    "linear": (2.0, -1.5),
    "soft_relu": (1.0, 0.0),
    "hardsigmoid": (0.25, 0.5),
    "logistic": (0.0, 0.0),
    "exp": (0.0, 0.0),
    "gelu_tanh": (0.0, 0.0),
    "gelu_erf": (0.0, 0.0),
    "swish": (1.0, 0.0),
    "log": (0.0, 0.0),
    "clip": (-3.0, 4.0),
    "clip_v2": (-3.0, 4.0),
    "pow": (2.0, 0.5),
    "round": (0.0, 0.0),
    "mish": (0.0, 0.0),
    "hardswish": (0.25, 0.5),
}
BINARY = ("add", "mul", "max", "min", "div", "sub", "ge", "gt", "le", "lt", "eq", "ne")
# Shapes that stay on fast kernels: one per kind, small.
SHAPE = {
    "convolution": "3x3_pad1",
    "deconvolution": "3x3_pad1",
    "inner_product": "2d",
    "matmul": "2d",
}
BROADCASTS = ("scalar", "per_channel", "full")
SRC1_DTYPES = ("f32", "s32", "s8", "u8")
_POSITIVE = ("sqrt", "log", "pow")


def eltwise_chain(alg: str) -> tuple[PostOp, ...]:
    """Return the algorithm alone, behind a clip where its domain is positive."""
    alpha, beta = ELTWISE[alg]
    step = EltwisePostOp(alg, alpha, beta)
    return (EltwisePostOp("clip", 0.25, 8.0), step) if alg in _POSITIVE else (step,)


def src1_spec(of: parity.DenseProblem, broadcast: str, dtype: str) -> TensorSpec:
    """Spec of a binary operand; a full tensor takes the layout of dst."""
    dims = of.dst.dims
    axis = len(dims) - 1 if of.kind == "matmul" else 1
    if broadcast == "full":
        if len(dims) > 2 and of.kind != "matmul":
            return TensorSpec.channels_last(dims, dtype)
        return TensorSpec.dense(dims, dtype)
    kept = {axis} if broadcast == "per_channel" else set()
    return TensorSpec.dense(tuple(d if i in kept else 1 for i, d in enumerate(dims)), dtype)


def prelu_mask(of: parity.DenseProblem, broadcast: str) -> int:
    """Mask of prelu weights over dst."""
    rank = len(of.dst.dims)
    channel = 1 << (rank - 1) if of.kind == "matmul" else 2
    return {"scalar": 0, "per_channel": channel, "full": (1 << rank) - 1}[broadcast]


def _recipe(
    kind: str, name: str, dst: str, chain: tuple[PostOp, ...], shape: str | None = None
) -> Recipe:
    of = parity.problem(kind, shape or SHAPE[kind], "u8", dst, "f32")
    attr = Attr(wei_scale=Scale(mask=parity.channel_mask(of)), dst_scale=Scale(), post_ops=chain)
    return Recipe(f"{kind}-{name}-{dst}", of, attr)


def eltwise_recipes(kind: str) -> Iterator[Recipe]:
    """Every algorithm as the only (or last) post-op; transcendental ones on f32 dst."""
    for alg, dst in product(ELTWISE, ("u8", "f32")):
        yield _recipe(kind, alg, dst, eltwise_chain(alg))


def binary_recipes(kind: str) -> Iterator[Recipe]:
    """Every algorithm with every broadcast that stays fast, and every operand dtype for add."""
    of = parity.problem(kind, SHAPE[kind], "u8", "u8", None)
    for alg, broadcast, dst in product(BINARY, BROADCASTS, ("u8", "f32")):
        step = BinaryPostOp(alg, src1_spec(of, broadcast, "f32"))
        chain: tuple[PostOp, ...] = (step,)
        if alg in {"eq", "ne"}:
            # Whole numbers on both sides, or equality never happens.
            chain = (EltwisePostOp("round"), EltwisePostOp("clip", -2.0, 2.0), step)
        yield _recipe(kind, f"binary_{alg}-{broadcast}", dst, chain)
    for dtype, broadcast in product(SRC1_DTYPES, BROADCASTS):
        step = BinaryPostOp("add", src1_spec(of, broadcast, dtype))
        yield _recipe(kind, f"binary_add-{broadcast}-{dtype}", "s8", (step,))


def sum_recipes(kind: str) -> Iterator[Recipe]:
    """Sum alone, with scale and zero point, before and after a relu, and reinterpreted."""
    relu = EltwisePostOp("relu")
    for dst in ("u8", "s8", "s32"):
        for zero_point in (0, 4):
            chain = (SumPostOp(0.5, zero_point),)
            yield _recipe(kind, f"sum-zp{zero_point}", dst, chain)
            yield _recipe(kind, f"sum-zp{zero_point}-relu", dst, (*chain, relu))
            yield _recipe(kind, f"relu-sum-zp{zero_point}", dst, (relu, *chain))
    yield _recipe(kind, "sum", "f32", (SumPostOp(0.5),))
    yield _recipe(kind, "sum-as-s8", "u8", (SumPostOp(1.0, 0, "s8"),))
    yield _recipe(kind, "sum-as-u8", "s8", (SumPostOp(1.0, 2, "u8"),))


def prelu_recipes(kind: str) -> Iterator[Recipe]:
    """Prelu with one weight, one per channel, and one per element."""
    of = parity.problem(kind, SHAPE[kind], "u8", "u8", None)
    for broadcast, dst in product(BROADCASTS, ("s8", "f32")):
        chain = (PReluPostOp(prelu_mask(of, broadcast)),)
        yield _recipe(kind, f"prelu-{broadcast}", dst, chain)


def chain_recipes(kind: str) -> Iterator[Recipe]:
    """Chains that a composer emits: FakeQuantize per tensor and per channel, residuals."""
    of = parity.problem(kind, SHAPE[kind], "u8", "u8", None)
    per_channel = src1_spec(of, "per_channel", "f32")
    full_u8 = src1_spec(of, "full", "u8")
    mul, add = BinaryPostOp("mul", per_channel), BinaryPostOp("add", per_channel)
    relu, rnd = EltwisePostOp("relu"), EltwisePostOp("round")
    clip = EltwisePostOp("clip", 0.0, 15.0)
    back = EltwisePostOp("linear", 0.5, -1.0)
    chains: dict[str, tuple[PostOp, ...]] = {
        "fq_per_tensor": (EltwisePostOp("linear", 2.0, 2.0), rnd, clip, back),
        "fq_per_channel": (mul, add, rnd, clip, mul, add),
        "leaky_relu": (EltwisePostOp("relu", 0.25),),
        "residual_relu": (SumPostOp(0.5, 2), relu),
        "residual_other_dtype": (
            BinaryPostOp("add", full_u8),
            EltwisePostOp("linear", 0.5, -2.0),
        ),
        "relu_fq_residual": (relu, mul, add, rnd, clip, SumPostOp(0.25)),
    }
    for (name, chain), dst in product(chains.items(), ("u8", "s8")):
        yield _recipe(kind, name, dst, chain)


def all_recipes() -> Iterator[Recipe]:
    """Every post-op case of every dense kind."""
    families: tuple[Any, ...] = (
        eltwise_recipes,
        binary_recipes,
        sum_recipes,
        prelu_recipes,
        chain_recipes,
    )
    for kind, family in product(parity.KINDS, families):
        yield from family(kind)
