"""Arrays for the tensors of a problem and the operands of its post-ops: small and dyadic.

Weights stay even and within [-6, 6], so no ISA saturates a pair and the halving of weights for
s8 sources loses nothing. Everything is an integer times a power of two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from support.oracle_numbers import INTEGER_RANGES, kept_dims, numpy_dtype

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyonednn_q.primitive.post_ops import BinaryPostOp, PostOp, PReluPostOp
    from pyonednn_q.primitive.problem import Problem
    from pyonednn_q.primitive.tensor import TensorSpec

    Array = NDArray[Any]
    Arrays = dict[str, NDArray[Any]]

WEI_LIMIT = 6
DENSE_KINDS = frozenset({"convolution", "deconvolution", "inner_product", "matmul"})
COMPARISONS = frozenset({"ge", "gt", "le", "lt", "eq", "ne"})
# Algorithms that are undefined for negative (or zero) values.
POSITIVE_ALGS = frozenset({"log", "sqrt", "pow"})


@dataclass(frozen=True, slots=True)
class Size:
    """How large the integers of a fill may get; smaller leaves more float32 bits to the chain."""

    src: int
    wei: int
    operand: int


# From the widest that a dtype holds down to the smallest that still has both signs and zero.
SIZES = (Size(255, WEI_LIMIT, 32), Size(15, 4, 8), Size(3, 2, 4))


def integers(rng: np.random.Generator, dims: tuple[int, ...], dtype: str, limit: int) -> Array:
    """Whole numbers up to ``limit`` in magnitude, inside the dtype's range."""
    lo, hi = -limit, limit
    if dtype in INTEGER_RANGES:
        lo, hi = max(lo, INTEGER_RANGES[dtype][0]), min(hi, INTEGER_RANGES[dtype][1])
    return rng.integers(lo, hi + 1, size=dims).astype(numpy_dtype(dtype))


def even_integers(rng: np.random.Generator, dims: tuple[int, ...], dtype: str, limit: int) -> Array:
    """Even whole numbers up to ``limit`` in magnitude, inside the dtype's range."""
    lo, hi = -limit, limit
    if dtype in INTEGER_RANGES:
        lo, hi = max(lo, INTEGER_RANGES[dtype][0]), min(hi, INTEGER_RANGES[dtype][1])
    return (2 * rng.integers(-(-lo // 2), hi // 2 + 1, size=dims)).astype(numpy_dtype(dtype))


def powers_of_two(
    rng: np.random.Generator, dims: tuple[int, ...], lo: int, hi: int, dtype: str = "f32"
) -> Array:
    """Return 2**k with k in [lo, hi]."""
    return np.ldexp(1.0, rng.integers(lo, hi + 1, size=dims)).astype(numpy_dtype(dtype))


def tensors(problem: Problem, size: Size, rng: np.random.Generator) -> Arrays:
    """Every input tensor of a problem except bias, which needs the accumulator's scale."""
    arrays: Arrays = {}
    for name, spec in problem.tensors.items():
        if name in {"dst", "bias"}:
            continue
        if name == "wei":
            arrays[name] = even_integers(rng, spec.dims, spec.dtype, size.wei)
        elif problem.kind in DENSE_KINDS:
            arrays[name] = integers(rng, spec.dims, spec.dtype, _src_limit(spec, size))
        else:
            arrays[name] = _plain(problem, name, spec, size, rng)
    return arrays


def _src_limit(spec: TensorSpec, size: Size) -> int:
    return size.src if spec.dtype in INTEGER_RANGES else min(size.src, 15)


def _plain(
    problem: Problem, name: str, spec: TensorSpec, size: Size, rng: np.random.Generator
) -> Array:
    """Src of a primitive without weights: quarters for floats, so integer stores see ties."""
    alg = getattr(problem, "alg", "")
    if problem.kind == "binary" and name == "src1" and alg in {"mul", "div"}:
        return powers_of_two(rng, spec.dims, 0, 2, spec.dtype)
    if problem.kind == "binary" and alg in COMPARISONS:
        # Few values, so that equality happens and a scalar src1 leaves both outcomes.
        return integers(rng, spec.dims, spec.dtype, 1 if name == "src1" else 3)
    limit = min(size.src, 128) if spec.dtype not in {"bf16", "f16"} else min(size.src, 15)
    if spec.dtype in INTEGER_RANGES:
        return integers(rng, spec.dims, spec.dtype, limit)
    values = rng.integers(-4 * limit, 4 * limit + 1, size=spec.dims) / 4
    if problem.kind in {"softmax", "eltwise"}:
        # The transcendental kernels were measured inside [-12, 12].
        values = np.clip(values / 16, -8, 8)
    if alg in POSITIVE_ALGS:
        values = np.abs(values) + 0.25
    return values.astype(numpy_dtype(spec.dtype))


def operand(
    post_op: PostOp, dst: TensorSpec, size: Size, step: float, rng: np.random.Generator
) -> Array | None:
    """Run-time operand of a binary or prelu post-op; ``step`` is a typical grid of the chain."""
    word = post_op.boundary()[0]
    step_op: Any = post_op
    if word == "prelu":
        return _prelu(step_op, dst, rng)
    if word == "binary":
        return _binary(step_op, size, step, rng)
    return None


def _prelu(post_op: PReluPostOp, dst: TensorSpec, rng: np.random.Generator) -> Array:
    dims = kept_dims(post_op.mask, (), dst.dims)
    return rng.choice(np.array([0.25, 0.5, 2.0, -0.5], dtype=np.float32), size=dims)


def _binary(post_op: BinaryPostOp, size: Size, step: float, rng: np.random.Generator) -> Array:
    spec = post_op.src1
    whole = spec.dtype in INTEGER_RANGES
    if post_op.alg in {"mul", "div"}:
        values = powers_of_two(rng, spec.dims, 0 if whole else -1, 1, spec.dtype)
        if spec.dtype in {"u8", "u4"}:
            return values
        signs: Array = rng.choice(np.array([-1, 1, 1]), size=spec.dims)
        signed: Array = values * signs
        return signed.astype(numpy_dtype(spec.dtype))
    if whole:
        return integers(rng, spec.dims, spec.dtype, size.operand)
    limit = size.operand
    if post_op.alg in COMPARISONS:
        limit, step = 2, 1.0  # few whole numbers, so that equality happens
    lo = 1 if post_op.alg == "min" else -limit  # a negative minimum empties an unsigned dst
    values = rng.integers(lo, limit + 1, size=spec.dims) * step
    return values.astype(numpy_dtype(spec.dtype))


def old_dst(problem: Problem, post_ops: tuple[PostOp, ...], rng: np.random.Generator) -> Array:
    """Return what the sum post-op reads: whole numbers in the dtype that the sum reads them as."""
    spec: TensorSpec = problem.tensors["dst"]
    named = next(op.boundary()[3] for op in post_ops if op.boundary()[0] == "sum")
    read_as = spec.dtype if named == "undef" else named
    limit = {"s32": 200, "f32": 64, "bf16": 15, "f16": 15}.get(read_as, 255)
    values = integers(rng, spec.dims, read_as, limit)
    return values.view(numpy_dtype(spec.dtype))


def power_of_two_near(value: float) -> float:
    """Return the power of two nearest in ratio; 1.0 for zero."""
    return 1.0 if value == 0 or not math.isfinite(value) else 2.0 ** round(math.log2(value))
