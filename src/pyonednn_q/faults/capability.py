"""Capability: what each primitive takes at full speed, and what never to ask for.

Data, measured with oneDNN 3.7 and 3.13 on AMX, AVX512 and AVX2; functions only look rows up. What
is accepted and computed wrongly is in `guards`, which `native` consults for every primitive.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyonednn_q import dtypes
from pyonednn_q.primitive.dense_facts import KINDS, PrimitiveFacts
from pyonednn_q.primitive.isa import Facts, InstructionSet, Version
from pyonednn_q.primitive.post_ops import (
    MAX_POST_OPS,
    BinaryPostOp,
    PostOp,
    SumPostOp,
)
from pyonednn_q.rewrite.ends import Takes


@dataclass(frozen=True, slots=True)
class Accepts:
    """Attributes that a primitive takes on generated code, for int8 sources.

    Attributes
    ----------
    wei_scale, bias, dst_scale, dst_zero_point : Takes
        The finest granularity. oneDNN's own checks admit more: a per-channel dst scale multiplies
        instead of dividing in 3.7 and repeats its first value in 3.13, a per-channel dst zero point
        runs on reference loops.
    src_zero_point, wei_zero_point : bool
        Whether it takes one value for the tensor.
    """

    wei_scale: Takes = Takes.PER_CHANNEL
    bias: Takes = Takes.PER_CHANNEL
    dst_scale: Takes = Takes.PER_TENSOR
    dst_zero_point: Takes = Takes.PER_TENSOR
    src_zero_point: bool = True
    wei_zero_point: bool = False


ACCEPTS: dict[str, Accepts] = {
    "convolution": Accepts(),
    "deconvolution": Accepts(),
    "inner_product": Accepts(dst_zero_point=Takes.NOTHING, src_zero_point=False),
    "matmul": Accepts(wei_zero_point=True),
}


@dataclass(frozen=True, slots=True)
class Ask:
    """One more post-op behind others, on a primitive."""

    post_op: PostOp
    before: tuple[PostOp, ...]
    facts: PrimitiveFacts


@dataclass(frozen=True, slots=True)
class NeverAsk:
    """A request that costs the fast kernel, or that the library refuses.

    Attributes
    ----------
    id : str
        A name that stays the same between versions.
    since, until : (int, int, int) or None
        First version concerned, and first not concerned.
    isas : callable
        Takes the instruction set of a process.
    kinds : tuple of str
        Kinds of primitives that it concerns.
    condition : callable
        Takes an `Ask`.
    effect, instead : str
        Effect, and advice.
    """

    id: str
    kinds: tuple[str, ...]
    condition: Callable[[Ask], bool]
    effect: str
    instead: str
    since: Version = (3, 7, 0)
    until: Version | None = None
    isas: Callable[[InstructionSet], bool] = lambda _: True

    def matches(self, ask: Ask) -> bool:
        """Tell whether the request is this one. Of an unknown process the worst is assumed."""
        facts = ask.facts
        if facts.kind not in self.kinds:
            return False
        process = facts.process
        if process is not None and not (
            self.since <= process.version
            and (self.until is None or process.version < self.until)
            and self.isas(process.isa)
        ):
            return False
        return self.condition(ask)


_DENSE = ("inner_product", "matmul")


def _up_to_avx2(isa: InstructionSet) -> bool:
    return not isa.is_beyond_avx2()


def _another_sum(ask: Ask) -> bool:
    op = ask.post_op
    return isinstance(op, SumPostOp) and any(
        isinstance(old, SumPostOp) and old != op for old in ask.before
    )


def _late_sum(ask: Ask) -> bool:
    return isinstance(ask.post_op, SumPostOp) and bool(ask.before)


def _late_sum_of_bf16(ask: Ask) -> bool:
    return ask.facts.wei == "bf16" and _late_sum(ask)


def _late_sum_of_bf16_in_groups(ask: Ask) -> bool:
    return ask.facts.wei_ndims > ask.facts.ndims and _late_sum_of_bf16(ask)


def _sum_of_another_size(ask: Ask) -> bool:
    op = ask.post_op
    if not isinstance(op, SumPostOp) or op.dtype is None:
        return False
    return dtypes.bits(op.dtype) != dtypes.bits(ask.facts.dst)


def _sum_with_dtype(ask: Ask) -> bool:
    return isinstance(ask.post_op, SumPostOp) and ask.post_op.dtype is not None


def _float_sum_with_zero_point(ask: Ask) -> bool:
    op = ask.post_op
    if not isinstance(op, SumPostOp) or not op.zero_point:
        return False
    return not dtypes.is_integer(op.dtype or ask.facts.dst) or not ask.facts.is_int8


def _sum_with_zero_point(ask: Ask) -> bool:
    return isinstance(ask.post_op, SumPostOp) and ask.post_op.zero_point != 0


def _half_operand(ask: Ask) -> bool:
    return isinstance(ask.post_op, BinaryPostOp) and ask.post_op.src1.dtype in {"bf16", "f16"}


def _is_full_beside_codes(ask: Ask) -> bool:
    op = ask.post_op
    if ask.facts.src == "f32" or not isinstance(op, BinaryPostOp):
        return False
    return sum(dim > 1 for dim in op.src1.dims) > 1


def _too_many(ask: Ask) -> bool:
    return len(ask.before) >= MAX_POST_OPS


NEVER_ASK: tuple[NeverAsk, ...] = (
    NeverAsk(
        "more_than_32",
        KINDS,
        _too_many,
        "append fails with out_of_memory",
        "run the rest afterwards",
    ),
    NeverAsk(
        "sums_that_differ",
        KINDS,
        _another_sum,
        "two sums with different scales run on reference loops",
        "one sum, and a binary add of the other tensor",
    ),
    NeverAsk(
        "sum_of_another_size",
        KINDS,
        _sum_of_another_size,
        "refused: sum reads dst as a type of the same size only",
        "a full-tensor binary add of the residual",
    ),
    NeverAsk(
        "float_sum_with_zero_point",
        KINDS,
        _float_sum_with_zero_point,
        "refused: only an integer residual has a zero point",
        "subtract scale · zero_point in the bias",
    ),
    NeverAsk(
        "late_sum",
        _DENSE,
        _late_sum,
        "a sum behind other post-ops runs on reference loops without VNNI",
        "sum first, or a full-tensor binary add",
        isas=_up_to_avx2,
    ),
    NeverAsk(
        "late_sum_of_bf16",
        ("convolution", *_DENSE),
        _late_sum_of_bf16,
        "a sum behind other post-ops runs on reference loops where the CPU multiplies no bf16",
        "sum first, or a full-tensor binary add",
        isas=lambda isa: not isa.has("AVX512_CORE_BF16"),
    ),
    NeverAsk(
        "late_sum_of_bf16_in_groups",
        ("convolution",),
        _late_sum_of_bf16_in_groups,
        "a sum behind other post-ops runs on reference loops without AMX: few channels a group",
        "sum first, or a full-tensor binary add",
        isas=lambda isa: not isa.has_amx(),
    ),
    NeverAsk(
        "sum_with_dtype",
        ("deconvolution", "inner_product", "matmul"),
        _sum_with_dtype,
        "a sum that names its type leaves the fast kernels without VNNI",
        "leave the type out, or a full-tensor binary add",
        isas=_up_to_avx2,
    ),
    NeverAsk(
        "sum_zero_point_in_inner_product",
        ("inner_product",),
        _sum_with_zero_point,
        "runs on the gemm form",
        "matmul",
        until=(3, 8, 0),
    ),
    NeverAsk(
        "half_operand",
        KINDS,
        _half_operand,
        "operands of 16 bits leave the fast kernels below AMX",
        "convert the operand to f32",
        isas=lambda isa: not isa.has_amx(),
    ),
    NeverAsk(
        "full_operand_of_deconvolution",
        ("deconvolution",),
        _is_full_beside_codes,
        "a full-size operand runs on the gemm form without VNNI",
        "a sum, where the residual can lie in dst",
        isas=_up_to_avx2,
    ),
    NeverAsk(
        "full_operand_of_old_deconvolution",
        ("deconvolution",),
        _is_full_beside_codes,
        "a full-size operand runs on the gemm form without AVX512",
        "a sum, where the residual can lie in dst",
        until=(3, 8, 0),
        isas=lambda isa: not isa.has_avx512(),
    ),
)


def forbidden(ask: Ask) -> NeverAsk | None:
    """Return the first row that speaks against a request, or ``None``."""
    return next((row for row in NEVER_ASK if row.matches(ask)), None)


def operand_dims(facts: PrimitiveFacts, extent: str) -> tuple[int, ...] | None:
    """Return the shape in which an operand keeps the fast kernel, or ``None`` if sizes are needed.

    One value: all dimensions 1. One per row: those of the last but one. One per channel: the
    channels at their axis; but {B, 1, N} for a batched matmul, because 3.9 and
    later run {1, 1, N} on the gemm form.
    """
    if extent == "full":
        return facts.dst_dims
    dims = [1] * facts.ndims
    if extent == "per_row":
        if facts.kind != "matmul" or facts.dst_dims is None:
            return None
        dims[-2] = facts.dst_dims[-2]
    if extent == "per_channel":
        dims[facts.axis] = facts.channels
        is_batched = facts.kind == "matmul" and facts.ndims == 3
        swapped = facts.process is None or facts.process.version >= (3, 9, 0)
        if is_batched and swapped and facts.dst_dims is not None:
            dims[0] = facts.dst_dims[0]
    return tuple(dims)


def leading_ones(process: Facts) -> int:
    """Return the number of leading dimensions of 1 that let a matmul scale rows on the fast kernel.

    Two dimensions: a reference loop. Three: the fast kernel; but 3.9 and later leave it for an
    operand per channel beside the one per row. Four: the fast kernel, except on AVX2 without VNNI;
    before 3.9 wrong with AMX.
    """
    swapped = process.version >= (3, 9, 0)
    return 2 if swapped and process.isa.is_beyond_avx2() else 1
