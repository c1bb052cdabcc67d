"""Choice: of the post-ops that can carry a step, the cheapest that the policy permits.

The numbers of `COSTS` order lowerings that mean the same; they predict no time. Measured on 64
channels of 56x56, 3x3, one thread of an Intel Xeon with AMX, 2 cores: oneDNN 3.13.2 (SYCL) and
3.7.2 (OpenMP), the levels below AMX by ONEDNN_MAX_CPU_ISA, random sources, as
`benchmarks/post_op_cost.py` does. On a 1x1 convolution they weigh differently, and in the same
order.

==============  ==========================  ===============================  ========
step            as a rule                   instead                          promise
==============  ==========================  ===============================  ========
x + t           linear                      binary add of one number         BITWISE
s·x + t, per    mul, add                    add of t/s, mul                  REAL
channel
relu, slope a   relu                        prelu with one slope             BITWISE
==============  ==========================  ===============================  ========

Each was measured to be cheaper on AMX convolutions of integers and equal elsewhere; float ones were
not measured and stay with the rule. Rewriting has decided before what the steps are; this decides
how each is said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyonednn_q import dtypes
from pyonednn_q.argument import real
from pyonednn_q.expr.steps import Affine, Step
from pyonednn_q.expr.vec import Vec
from pyonednn_q.faults.capability import operand_dims
from pyonednn_q.primitive.dense_facts import PrimitiveFacts
from pyonednn_q.primitive.post_ops import (
    BinaryPostOp,
    EltwisePostOp,
    PostOp,
    PReluPostOp,
    SumPostOp,
)
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.rewrite.ends import not_storable
from pyonednn_q.rewrite.rule import BITWISE, REAL, Exactness, Policy, permits


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


@dataclass(frozen=True, slots=True)
class Cost:
    """Relative cost of one step: with AMX, with VNNI or AVX-512, and with less."""

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


_ONE, _ZERO = Vec(1.0), Vec(0.0)


@dataclass(frozen=True, slots=True)
class Option:
    """Post-ops that may stand for a step.

    Attributes
    ----------
    post_ops : tuple of PostOp
        Post-ops in order.
    cost : float
        Cost that they add after the post-ops before them, in parts of the bare primitive.
    exactness : Exactness
        Promise, compared with the usual post-ops.
    permitted : bool
        Whether the policy lets them be taken.
    """

    post_ops: tuple[PostOp, ...]
    cost: float
    exactness: Exactness
    permitted: bool

    def __post_init__(self) -> None:
        """Refuse a cost that is no number."""
        real("cost", self.cost)

    def __str__(self) -> str:
        names = ", ".join(" ".join(op.text().split(":")[:1]) for op in self.post_ops)
        refused = "" if self.permitted else f", {self.exactness} is not permitted"
        return f"{names} (+{self.cost:.2f}{refused})"


@dataclass(frozen=True, slots=True)
class Choice:
    """Lowering that was taken for a step, and those that were not."""

    step: Step
    taken: Option
    rejected: tuple[Option, ...]

    def __str__(self) -> str:
        return f"{self.step}: {self.taken}, not {' or '.join(map(str, self.rejected))}"


def choose(
    step: Step,
    usual: Sequence[Carrier],
    before: Sequence[PostOp],
    facts: PrimitiveFacts,
    policy: Policy,
) -> tuple[Sequence[Carrier], Choice | None]:
    """Return the carriers to take for a step.

    Parameters
    ----------
    step : Step
        Step to carry.
    usual : sequence of Carrier
        Usual carriers of the step.
    before : sequence of PostOp
        Post-ops before it.
    facts : PrimitiveFacts
        Facts of the primitive, on which the cost depends.
    policy : {"bitwise", "real", "fast"}
        Exactness that the choice must have.

    Returns
    -------
    carriers : sequence of Carrier
        The usual ones, if none is cheaper.
    choice : Choice or None
        Choice, or None where there was nothing to choose.
    """
    others = _others(step, usual, facts) if facts.is_int8 else []
    if not others:
        return usual, None
    forms = [(usual, BITWISE), *others]
    options = []
    for carriers, exactness in forms:
        post_ops = tuple(carrier.post_op for carrier in carriers)
        price = added(post_ops, before, facts)
        options.append(Option(post_ops, price, exactness, permits(policy, exactness)))
    best = min(
        (index for index, option in enumerate(options) if option.permitted),
        key=lambda index: options[index].cost,
    )
    rejected = tuple(option for index, option in enumerate(options) if index != best)
    return forms[best][0], Choice(step, options[best], rejected)


_Forms = list[tuple[Sequence[Carrier], Exactness]]


def _others(step: Step, usual: Sequence[Carrier], facts: PrimitiveFacts) -> _Forms:
    forms: _Forms = []
    if isinstance(step, Affine):
        forms += _with_scalar_add(usual, facts, BITWISE)
        first = _adding_first(step, facts)
        if first:
            forms += [(first, REAL), *_with_scalar_add(first, facts, REAL)]
    else:
        forms += _with_prelu(usual)
    return forms


def _with_scalar_add(usual: Sequence[Carrier], facts: PrimitiveFacts, promise: Exactness) -> _Forms:
    """Say x + t as a binary add of one number: both round once."""
    carriers = [_scalar_add(carrier, facts) or carrier for carrier in usual]
    return [] if carriers == list(usual) else [(carriers, promise)]


def _scalar_add(carrier: Carrier, facts: PrimitiveFacts) -> Carrier | None:
    op = carrier.post_op
    if isinstance(op, EltwisePostOp) and op.alg == "linear" and op.alpha == 1.0:
        return binary("add", Vec(op.beta), facts)
    return None


def _adding_first(step: Affine, facts: PrimitiveFacts) -> list[Carrier]:
    """Say s·x + t as s·(x + t/s), where s is not 0: the same post-ops in the other order."""
    scale, shift = step.scale, step.shift
    plain = scale.is_per_tensor and shift.is_per_tensor
    if plain or scale.is_all(1.0) or shift.is_all(0.0) or bool((scale.values() == 0.0).any()):
        return []
    early = shift / scale
    if not early.is_finite or not_storable("shift", early):
        return []
    head = linear(_ONE, early) if early.is_per_tensor else binary("add", early, facts)
    tail = linear(scale, _ZERO) if scale.is_per_tensor else binary("mul", scale, facts)
    return [head, tail]


def _with_prelu(usual: Sequence[Carrier]) -> _Forms:
    """Say relu with a slope as prelu with one slope: the same product below 0."""
    if len(usual) != 1:
        return []
    op = usual[0].post_op
    if not isinstance(op, EltwisePostOp) or op.alg != "relu" or op.alpha == 0.0:
        return []
    return [([Carrier(PReluPostOp(0), Vec(op.alpha))], BITWISE)]
