"""compose: a chain and the facts of a primitive in, a plan out.

First everything is rewritten against a store that takes nothing, so that what can go left goes
left: weight scale and bias are free and exact to one rounding. Then the store takes what remains
at its side. What is still there becomes post-ops; what those cannot carry is left over.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal, cast, get_args

import numpy as np

from pyonednn_q.acc.split import CODES
from pyonednn_q.argument import flag, instance, one_of
from pyonednn_q.compose.absorb import RIGHT_END, Rewritten, left_end, right_end, split_left
from pyonednn_q.compose.exact import exact_form
from pyonednn_q.compose.lower import NOTHING, Lowered, lower
from pyonednn_q.compose.plan import Plan
from pyonednn_q.dtypes import F32_WHOLE
from pyonednn_q.errors import ArgumentError, ShapeError, UnsupportedError
from pyonednn_q.expr.steps import Affine, Binary, Chain, Leaf, Step, Sum
from pyonednn_q.expr.vec import Vec
from pyonednn_q.faults.capability import ACCEPTS
from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.dense_facts import ACC_MAP, SRC_SCALE, SRC_ZERO_POINT, PrimitiveFacts
from pyonednn_q.primitive.post_ops import PostOp
from pyonednn_q.rewrite.catalogue import CATALOGUE
from pyonednn_q.rewrite.driver import rewrite
from pyonednn_q.rewrite.ends import FLT_MAX, Acc, Dst, Item, not_storable
from pyonednn_q.rewrite.rule import BITWISE, Event, Policy, RuleSet, Trace, permits
from pyonednn_q.rewrite.rules.affine import absorb_affine_in_acc, absorbed

Scales = Literal["folded", "separate"]

NO_RULES = RuleSet(())
_ONE = Vec(1.0)


def compose(
    chain: Chain,
    facts: PrimitiveFacts,
    policy: Policy = "real",
    *,
    rules: RuleSet = CATALOGUE,
    scales: Scales = "folded",
    exact_rounding: bool = False,
    strict: bool = False,
    apart: str = "",
) -> Plan:
    """Lower a chain onto a primitive.

    Parameters
    ----------
    chain : Chain
        Steps from x = src_scale · wei_scale · acc + bias to the real value that is stored.
    facts : PrimitiveFacts
        Facts of the primitive.
    policy : {"bitwise", "real", "fast"}
        Exactness that rewrites must have.
    rules : RuleSet
        `NO_RULES` lowers step by step, for comparison.
    scales : {"folded", "separate"}
        Folded: src and weight scale in one, folded in float64 and rounded once; all kernels then
        agree bit for bit. Separate: oneDNN's two scales, whose order of multiplication differs
        between kernels.
    exact_rounding : bool
        The integers of ONNX's QLinear operators: one float32 multiplier, rounded to nearest even
        before the zero point is added.
    strict : bool
        Refuse steps that no post-op carries, instead of leaving them over.
    apart : str
        Reason why the primitive stores f32 while later primitives add what dst holds and store
        the result; empty: one primitive does all.

    Returns
    -------
    Plan

    Raises
    ------
    ArgumentError
        Facts that contradict each other or the primitive.
    ShapeError
        The chain has another number of channels.
    UnsupportedError
        Steps are left over, and strict is set.

    Examples
    --------
    >>> from pyonednn_q.expr.fake_quantize import FakeQuantize
    >>> fq = FakeQuantize([0, 0], [2.55, 5.1], 0, 255)
    >>> facts = PrimitiveFacts("convolution", 2, src_scale=0.5, bias=Vec([1.0, -1.0]))
    >>> print(compose(fq.chain(), facts))
    convolution u8 · s8 -> u8, 2 channels with bias
    chain: clip(x, 0, [2.55, 5.1]) > [100, 50]*x > round(x)
                 mask  shape  value
      wei_scale  1     2      25 .. 50 (median 37.5)
      bias             2      f32 -50 .. 100 (median 25)
      store                   u8
    no post-op; REAL; estimated cost 1.00 of the bare primitive
    """
    instance("facts", facts, PrimitiveFacts)
    instance("chain", chain, Chain)
    instance("rules", rules, RuleSet)
    instance("apart", apart, str)
    one_of("policy", policy, get_args(Policy))
    one_of("scales", scales, get_args(Scales))
    for name, value in (("exact_rounding", exact_rounding), ("strict", strict)):
        flag(name, value)
    _check_chain(chain, facts)
    shift = added_to_sums(chain, facts)
    if shift is not None:
        return _sums(chain, facts, policy, shift, exact_rounding=exact_rounding)
    _check(facts)
    # Constants that leave float64 are infinite, and then refused.
    with np.errstate(over="ignore", invalid="ignore"):
        form = (
            exact_form(chain, facts) if exact_rounding else _rewritten(chain, facts, policy, rules)
        )
    # What comes later stands first: the map, scaled as the accumulator is, then scales of rows.
    first = (Binary("add", Leaf(ACC_MAP)),) if facts.acc_map else ()
    rows = () if facts.row_scale is None else (Binary("mul", facts.row_scale),)
    steps = (*first, *rows, *form.steps)
    # Without rules nothing is chosen either; the exact form's bits are promised.
    chosen: Policy | None = "bitwise" if exact_rounding else policy
    try:
        lowered = _lowered(steps, facts, chosen if rules.rules else None, apart)
    except ArgumentError as error:
        if error.argument != "alpha" or facts.dst_scale > 1.0 / FLT_MAX:
            raise
        wanted = f"one whose reciprocal ends within float32: above {1.0 / FLT_MAX:.3g}"
        raise ArgumentError("dst_scale", f"a scale of {facts.dst_scale:.3g}", wanted) from None
    if lowered.reason and strict:
        detail = f"no post-op for {Chain(*steps[lowered.taken :])}: {lowered.reason}"
        raise UnsupportedError("refused", "composing", facts.text(), detail)
    leftovers, dst = Chain(), form.dst
    if lowered.reason:
        leftovers, dst = Chain(*steps[lowered.taken :], *_store_steps(dst)), Dst(facts.dst)
    attr, constants, operands = _attributes(facts, form.wei_scale, dst, lowered, scales)
    weakest = form.trace.exactness
    for choice in lowered.choices:
        weakest = max(weakest, choice.taken.exactness)
    return Plan(
        facts=facts,
        chain=chain,
        policy=policy,
        exact_rounding=exact_rounding,
        attr=attr,
        constants=constants,
        operands=operands,
        wei_factor=form.wei_factor,
        bias=None if facts.bias_later or form.shift.is_all(0.0) else form.shift.narrow(),
        bias_later=Affine(form.bias_scale, form.shift) if facts.bias_later else None,
        bias_dtype=form.bias_dtype,
        leftovers=leftovers,
        because=lowered.reason,
        exactness=weakest,
        rate=form.trace.rate,
        trace=form.trace,
        choices=lowered.choices,
    )


# Its public name: `pyonednn_q.compose` is the room.
compose_chain = compose


def added_to_sums(chain: Chain, facts: PrimitiveFacts) -> Vec | None:
    """Return the whole numbers added to the accumulator, if a plan is one of sums.

    In units of the accumulator: the bias, unless its values come later, and dst's zero point.
    ``None`` where something else is asked, or float32 holds all of the integers.
    """
    is_other = chain.steps or facts.dst != "s32" or facts.src_later or facts.acc_map
    if is_other or not facts.is_int8 or not (facts.folded_scale / facts.dst_scale).is_all(1.0):
        return None
    if facts.bias_later and not facts.bias_in_acc:
        return None
    bias = facts.bias or Vec(0.0)
    if not facts.bias_in_acc:
        bias = bias / facts.folded_scale
    shift = bias + float(facts.dst_zero_point)
    return shift if bias.is_integer and not _fits_float32(facts, shift) else None


def _fits_float32(facts: PrimitiveFacts, shift: Vec) -> bool:
    """Tell whether a primitive with scales of 1 meets no whole number beyond 2^24 on its way.

    Kernels take zero points off sums of codes, an s8 source's 128 among them, and these sums can be
    larger than the accumulator.
    """
    acc = facts.acc
    if facts.bias_later or facts.wei_zero_point or not (acc.lo.is_finite and acc.hi.is_finite):
        return False
    if not facts.folded_scale.is_all(1.0):
        return False
    most = abs(acc.lo).maximum(abs(acc.hi))
    if facts.src_zero_point or facts.src == "s8":
        # hi - lo is 255 · Σ|wei|; a zero point is up to 128 and 128 away from a code.
        most = (acc.hi - acc.lo) * (256 / CODES)
    return (most + abs(shift)).greatest <= F32_WHOLE


def _sums(
    chain: Chain, facts: PrimitiveFacts, policy: Policy, shift: Vec, *, exact_rounding: bool
) -> Plan:
    """Return the plan of bare sums, to which the rest is added as integers."""
    return Plan(
        facts=facts,
        chain=chain,
        policy=policy,
        exact_rounding=exact_rounding,
        attr=Attr(),
        constants=(),
        operands=(),
        wei_factor=_ONE,
        bias=None if facts.bias_later or shift.is_all(0.0) else shift,
        bias_later=Affine(_ONE, shift) if facts.bias_later else None,
        bias_dtype="s32",
        leftovers=Chain(),
        because="",
        exactness=BITWISE,
        rate=0.0,
        trace=Trace(),
        sums=True,
    )


def _check(facts: PrimitiveFacts) -> None:
    """Refuse zero points that the primitive does not have, and scales that come too late."""
    for name in ("src", "wei"):
        argument = f"{name}_zero_point"
        zero_point = getattr(facts, argument)
        if zero_point is None:
            continue
        if not facts.is_int8:
            wanted = f"None: {getattr(facts, name)} has no zero point"
            raise ArgumentError(argument, str(zero_point), wanted)
        if not getattr(ACCEPTS[facts.kind], argument):
            wanted = f"None: no {facts.kind} takes one on generated code; a matmul does"
            raise ArgumentError(argument, str(zero_point), wanted)
    # A scale of the source that comes later is multiplied by kernels last: what stands before it is
    # the accumulator times the scale of the weights, in float32.
    if facts.src_later and facts.is_int8 and facts.wei_scale.greatest > FLT_MAX / 2.0**31:
        wanted = "up to 1.58e29 where the range of src comes with the call: float32 ends behind it"
        raise ArgumentError("wei_scale", f"{facts.wei_scale.greatest:.3g}", wanted)
    if facts.bias_later and facts.wei in {"bf16", "f16"} and not facts.folded_scale.is_all(1.0):
        wanted = f"its values: a scale of {facts.wei} weights must come before the bias"
        raise ArgumentError("bias", "values that come later", wanted)


def _check_chain(chain: Chain, facts: PrimitiveFacts) -> None:
    if chain.channels not in {None, facts.channels}:
        wanted = f"{facts.channels}, or constants of the whole tensor"
        raise ShapeError("chain", f"constants of {chain.channels} channels", wanted)
    taken = {ACC_MAP} if facts.acc_map else set()
    taken |= {SRC_SCALE, SRC_ZERO_POINT} if facts.src_later else set()
    for step in chain.steps:
        operand = step.operand if isinstance(step, Binary) else None
        if isinstance(operand, Leaf) and operand.name in taken:
            got = f"a leaf called {operand.name!r}"
            raise ArgumentError("chain", got, "another name: the primitive has an operand of it")


def _rewritten(chain: Chain, facts: PrimitiveFacts, policy: Policy, rules: RuleSet) -> Rewritten:
    acc, prefix = left_end(facts)
    point = float(facts.dst_zero_point)
    is_plain = facts.dst_scale == 1.0 and point == 0.0
    store = () if is_plain else (Affine(_ONE / Vec(facts.dst_scale), point),)
    if store and not (prefix or chain.steps) and rules is CATALOGUE:
        taken = _with_store(acc, store[0], policy)
        if taken is not None:
            trace = Trace((Event(absorb_affine_in_acc, 0, (acc, *store), (taken,)),))
            return split_left(taken, (), right_end(facts.dst), trace, facts)
    items: tuple[Item, ...] = (acc, *prefix, *chain.steps, *store, right_end(facts.dst))
    items, trace = rewrite(items, rules, policy)
    if rules.rules and len(items) > 2:
        items = (*items[:-1], right_end(facts.dst, facts.kind))
        items, further = rewrite(items, RIGHT_END, policy)
        trace = trace + further
    first, last = items[0], items[-1]
    steps = cast("tuple[Step, ...]", items[1:-1])
    assert isinstance(first, Acc)
    assert isinstance(last, Dst)
    return split_left(first, steps, last, trace, facts)


def _with_store(acc: Acc, store: Affine, policy: Policy) -> Acc | None:
    """Return the left end that takes the store of a layer without steps: all that there is to do.

    ``None`` where it does not take all of it, or a bias is no whole number, which may be noise:
    then the driver tries every rule.
    """
    if not permits(policy, absorb_affine_in_acc.exactness):
        return None
    match absorbed(acc, store):
        case (Acc() as taken,) if taken.shift.is_integer:
            return taken
    return None


def _store_steps(dst: Dst) -> tuple[Step, ...]:
    """Return what the store would have done, for a store that comes after the leftovers."""
    return () if dst.is_plain else (Affine(1.0 / dst.scale, float(dst.zero_point)),)


def _lowered(
    steps: tuple[Step, ...], facts: PrimitiveFacts, policy: Policy | None, apart: str
) -> Lowered:
    """Lower the steps; if some are left over, none of the primitive's may read dst.

    The primitive then stores f32, and what dst held before would be read as that.
    """
    if not steps and not apart:
        return NOTHING
    lowered = lower(steps, facts, policy)
    if apart and not lowered.reason:
        lowered = replace(lowered, reason=apart)
    if not lowered.reason:
        return lowered
    sums = [index for index, step in enumerate(steps[: lowered.taken]) if isinstance(step, Sum)]
    if not sums or (facts.dst == "f32" and not apart):
        return lowered
    before = lower(steps[: sums[0]], facts, policy)
    return replace(before, reason=lowered.reason)


def _attributes(
    facts: PrimitiveFacts, wei_scale: Vec, dst: Dst, lowered: Lowered, scales: Scales
) -> tuple[Attr, tuple[tuple[str, Vec], ...], tuple[tuple[str, str], ...]]:
    """Return the attributes; and by the names of run-time values, constants and leaves."""
    src_scale = _ONE
    if scales == "separate" and facts.is_int8:
        src_scale = Vec(facts.src_scale).narrow()
        wei_scale = wei_scale / src_scale
        problem = not_storable("weight scale", wei_scale)
        if problem:
            raise ArgumentError("scales", "'separate'", f"'folded': {problem}")
    wei_scale = wei_scale.narrow()
    values: dict[str, Vec | int | None] = {
        "src_scale": src_scale,
        "wei_scale": wei_scale,
        "dst_scale": Vec(dst.scale),
        "src_zero_point": facts.src_zero_point,
        "wei_zero_point": facts.wei_zero_point,
        "dst_zero_point": dst.zero_point or None,
    }
    constants, operands = {}, {}
    for name, value in values.items():
        if isinstance(value, Vec):
            if not value.is_all(1.0):
                constants[name] = value
        elif value is not None:
            constants[name] = Vec(float(value))
    names = tuple(constants)
    if facts.src_later == "per_tensor":
        names = (SRC_SCALE, *names)
        constants.pop(SRC_ZERO_POINT, None)
    for index, carrier in enumerate(lowered.carriers):
        if carrier.value is not None:
            constants[f"post_op_{index}"] = carrier.value
        if carrier.leaf is not None:
            operands[f"post_op_{index}"] = carrier.leaf
    attr = _structure(names, facts.wei_mask(wei_scale), lowered.post_ops)
    return attr, tuple(constants.items()), tuple(operands.items())


@lru_cache(maxsize=1024)
def _structure(names: tuple[str, ...], wei_mask: int, post_ops: tuple[PostOp, ...]) -> Attr:
    """Return the attributes that have these scales and zero points; layers share a few of them."""
    structures: dict[str, Any] = {
        name: Scale() if name.endswith("_scale") else ZeroPoint() for name in names
    }
    if "wei_scale" in structures:
        structures["wei_scale"] = Scale(wei_mask)
    return Attr(**structures, post_ops=post_ops)
