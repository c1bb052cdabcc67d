"""Cost: what post-ops were measured to add to a convolution, in parts of the bare one.

The numbers order lowerings that mean the same; they predict no time. Measured on 64 channels of
56x56, 3x3, one thread of an Intel Xeon with AMX, 2 cores: oneDNN 3.13.2 (SYCL) and 3.7.2 (OpenMP),
the levels below AMX by ONEDNN_MAX_CPU_ISA, random sources, as `benchmarks/post_op_cost.py`
does. On a 1x1 convolution they weigh differently, and in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyonednn_q import dtypes
from pyonednn_q.primitive.dense_facts import PrimitiveFacts
from pyonednn_q.primitive.post_ops import (
    BinaryPostOp,
    EltwisePostOp,
    PostOp,
    PReluPostOp,
    SumPostOp,
)

__all__ = ["BEFORE_3_8", "COSTS", "Cost", "added", "cost"]


@dataclass(frozen=True, slots=True)
class Cost:
    """What one thing adds, with AMX, with VNNI or AVX-512, and with less."""

    amx: float
    vnni: float
    avx2: float


_SMOOTH = {
    "tanh": Cost(2.5, 0.20, 0.22),
    "logistic": Cost(2.9, 0.31, 0.13),
    "swish": Cost(3.5, 0.31, 0.15),
    "gelu_erf": Cost(2.5, 0.19, 0.14),
    "gelu_tanh": Cost(3.7, 0.29, 0.26),
    "mish": Cost(3.1, 0.26, 0.12),
    "elu": Cost(2.5, 0.22, 0.10),
    "soft_relu": Cost(4.1, 0.47, 0.22),
    "exp": Cost(2.3, 0.18, 0.08),
    "log": Cost(2.1, 0.40, 0.15),
    "pow": Cost(0.5, 0.12, 0.03),
    "sqrt": Cost(0.5, 0.12, 0.03),
    "hardswish": Cost(0.17, 0.04, 0.02),
    "hardsigmoid": Cost(0.08, 0.02, 0.02),
}

COSTS: dict[str, Cost] = {
    **_SMOOTH,
    "relu": Cost(0.0, 0.0, 0.01),
    "clip": Cost(0.02, 0.01, 0.01),
    "round": Cost(0.02, 0.01, 0.01),
    "abs": Cost(0.02, 0.01, 0.01),
    "square": Cost(0.02, 0.01, 0.01),
    "leaky_relu": Cost(0.05, 0.01, 0.02),
    "linear": Cost(0.05, 0.01, 0.01),
    "sum": Cost(0.05, 0.02, 0.01),
    "binary_per_tensor": Cost(0.04, 0.01, 0.01),
    "binary_per_channel": Cost(0.20, 0.07, 0.05),
    "prelu_per_tensor": Cost(0.07, 0.01, 0.02),
    "prelu_per_channel": Cost(0.25, 0.08, 0.05),
    # Every per-channel operand after the first has its addresses computed again.
    "another_per_channel": Cost(0.55, 0.10, 0.065),
    "binary_full": Cost(0.66, 0.12, 0.02),
    "binary_full_of_bytes": Cost(0.19, 0.04, 0.01),
    "division": Cost(0.12, 0.03, 0.02),
    # The first multiplication of what nothing was added to since the kernel's own scale.
    "product_of_product": Cost(0.22, 0.0, 0.0),
    "src_zero_point": Cost(0.47, 0.06, 0.14),  # of a padded convolution; else it is in the weights
    "dst_zero_point": Cost(0.0, 0.0, 0.0),
    "dst_scale": Cost(0.0, 0.0, 0.0),
}

# What 3.7 does in another time.
BEFORE_3_8: dict[str, Cost] = {
    "binary_per_channel": Cost(0.05, 0.01, 0.02),
    "prelu_per_channel": Cost(0.08, 0.02, 0.03),
    "another_per_channel": Cost(0.20, 0.015, 0.015),
    "binary_full": Cost(0.47, 0.08, 0.02),
    "division": Cost(0.20, 0.10, 0.02),
}
_OLD = COSTS | BEFORE_3_8

_MULTIPLY = frozenset(("linear", "hardsigmoid", "hardswish"))
_ADD = frozenset(("add", "sub"))


def cost(post_ops: Sequence[PostOp], facts: PrimitiveFacts) -> float:
    """Estimate the time of a primitive with these post-ops, the bare one being 1."""
    total = 1.0
    for index, op in enumerate(post_ops):
        total += added((op,), post_ops[:index], facts)
    if facts.src_zero_point is not None:
        total += _price(facts)("src_zero_point")
    return total


def added(post_ops: Sequence[PostOp], before: Sequence[PostOp], facts: PrimitiveFacts) -> float:
    """Estimate what post-ops add behind others.

    Examples
    --------
    >>> mul, add = (EltwisePostOp("linear", 2.0), EltwisePostOp("linear", 1.0, 3.0))
    >>> facts = PrimitiveFacts("convolution", 8)
    >>> [round(added((mul,), before, facts), 2) for before in ((), (add,))]
    [0.27, 0.05]
    """
    price, total = _price(facts), 0.0
    seen = list(before)
    for op in post_ops:
        total += sum(map(price, _rows(op, seen)))
        seen.append(op)
    return total


def _price(facts: PrimitiveFacts) -> Callable[[str], float]:
    """Return the column of a process; of an unknown one, AMX on the newest: there it matters."""
    process = facts.process
    if process is None:
        return lambda row: COSTS[row].amx
    table = COSTS if process.version >= (3, 8, 0) else _OLD
    if process.isa.has_amx():
        return lambda row: table[row].amx
    if process.isa.is_beyond_avx2():
        return lambda row: table[row].vnni
    return lambda row: table[row].avx2


def _rows(op: PostOp, before: Sequence[PostOp]) -> list[str]:
    rows = [_row(op)]
    if rows[0].endswith("_per_channel") and any(map(_is_per_channel, before)):
        rows[0] = "another_per_channel"
    if isinstance(op, BinaryPostOp) and op.alg == "div":
        rows.append("division")
    if _multiplies(op) and _is_product(before):
        rows.append("product_of_product")
    return rows


def _row(op: PostOp) -> str:
    if isinstance(op, EltwisePostOp):
        if op.alg == "relu":
            return "leaky_relu" if op.alpha else "relu"
        return "clip" if op.alg == "clip_v2" else op.alg
    if isinstance(op, SumPostOp):
        return "sum"
    if isinstance(op, PReluPostOp):
        return "prelu_per_channel" if op.mask else "prelu_per_tensor"
    if not isinstance(op, BinaryPostOp):
        msg = f"{op} has no measured cost: plans do not hold it"
        raise NotImplementedError(msg)
    wide = sum(dim > 1 for dim in op.src1.dims)
    if wide < 2:
        return "binary_per_channel" if wide else "binary_per_tensor"
    return "binary_full_of_bytes" if dtypes.bits(op.src1.dtype) == 8 else "binary_full"


def _is_per_channel(op: PostOp) -> bool:
    return _row(op).endswith("_per_channel")


def _multiplies(op: PostOp) -> bool:
    if isinstance(op, EltwisePostOp):
        return op.alg in _MULTIPLY or (op.alg == "relu" and op.alpha != 0.0)
    return isinstance(op, BinaryPostOp) and op.alg in {"mul", "div"}


def _is_product(before: Sequence[PostOp]) -> bool:
    """Tell whether a value is a product still: nothing was added since, and nothing rounded."""
    product = True
    for op in before:
        if isinstance(op, SumPostOp):
            product = False
        elif isinstance(op, EltwisePostOp):
            product = product and op.alg in {"relu", "clip", "clip_v2", "abs"}
        elif isinstance(op, BinaryPostOp):
            product = op.alg in {"mul", "div"} or (product and op.alg not in _ADD)
    return product
