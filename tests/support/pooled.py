"""Means with post-ops, which kernels store wrong beyond 16 or 32 bits."""

from __future__ import annotations

from pyonednn_q.primitive.attr import Attr
from pyonednn_q.primitive.post_ops import BinaryPostOp, EltwisePostOp, PostOp
from pyonednn_q.primitive.problem import PoolingProblem
from pyonednn_q.primitive.tensor import TensorSpec


def mean(dtype: str, alg: str = "avg_exclude_padding") -> PoolingProblem:
    src, dst = (TensorSpec.channels_last((1, 32, *dims), dtype) for dims in ((8, 8), (4, 4)))
    return PoolingProblem(src, dst, alg, (2, 2), (2, 2), (1, 1), (0, 0), (0, 0))


def after(*post_ops: PostOp) -> Attr:
    return Attr(post_ops=post_ops)


def times(alpha: float) -> EltwisePostOp:
    return EltwisePostOp("linear", alpha)


CLIP = EltwisePostOp("clip", 0.0, 255.0)
WIDE, WIDER = after(times(1e4)), after(times(1e12))
BY_CHANNEL = after(BinaryPostOp("mul", TensorSpec.dense((1, 32, 1, 1), "f32")))

JIT = "jit_int:avx2"
WRONG: list[tuple[str, PoolingProblem, Attr, str]] = [
    ("mean-beyond-16-bits", mean("u8"), WIDE, JIT),
    ("mean-beyond-16-bits", mean("u8", "avg_include_padding"), after(times(129)), JIT),
    ("mean-beyond-16-bits", mean("u8"), BY_CHANNEL, JIT),
    ("mean-beyond-16-bits", mean("u8"), after(CLIP, EltwisePostOp("square")), JIT),
    ("mean-beyond-32-bits", mean("s8"), WIDER, JIT),
    ("mean-beyond-32-bits", mean("s8"), BY_CHANNEL, "jit_int:sse41"),
]
# As a machine's only one of these kernels, and behind one for AVX-512.
ANYWHERE = [(*case, isa) for case in WRONG for isa in ("AVX2", "AVX512_CORE_AMX")]
RIGHT: list[tuple[PoolingProblem, Attr, str]] = [
    (mean("u8"), Attr(), JIT),
    (mean("u8"), after(times(128)), JIT),
    (mean("u8"), after(times(1e12), CLIP), JIT),
    (mean("u8"), after(times(100), EltwisePostOp("relu"), EltwisePostOp("round")), JIT),
    (mean("u8"), after(EltwisePostOp("exp"), EltwisePostOp("tanh")), JIT),
    (mean("s8"), WIDE, JIT),
    (mean("f32"), WIDER, JIT),
    (mean("u8", "max"), WIDER, JIT),
]
