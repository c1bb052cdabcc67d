"""Plan: how a chain is computed by one primitive, as a value that can be read, stored and run."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import check_fields, instance, numbers, one_of, real
from pyonednn_q.compose import benchdnn_options, codec, plan_table
from pyonednn_q.compose.became import Became, became
from pyonednn_q.compose.choice import Choice, cost
from pyonednn_q.compose.lower import store_notes
from pyonednn_q.compose.record import Record, records
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.expr.steps import Affine, Binary, Chain, Leaf
from pyonednn_q.expr.vec import Vec, constant
from pyonednn_q.faults.capability import operand_dims
from pyonednn_q.primitive.attr import Attr
from pyonednn_q.primitive.dense_facts import (
    ACC_MAP,
    DENSE,
    SRC_SCALE,
    SRC_ZERO_POINT,
    PrimitiveFacts,
)
from pyonednn_q.primitive.post_ops import BinaryPostOp, PostOp, PReluPostOp
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.qparams import along
from pyonednn_q.report.told import Told
from pyonednn_q.rewrite.rule import Exactness, Trace

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from pyonednn_q.primitive.dense_facts import DenseProblem


@dataclass(frozen=True, slots=True, repr=False)
class Plan(Told):
    """A chain lowered onto a primitive. Made by `compose`.

    A value: hashable, comparable, picklable, and the same after a way through JSON.

    Attributes
    ----------
    facts, chain, policy, exact_rounding
        Arguments of the composition.
    attr : Attr
        Scales, zero points and post-ops.
    constants : tuple of (str, Vec)
        Their values, by the names of run-time values; rounded to float32.
    operands : tuple of (str, str)
        Operands that come with each call: run-time name and name of the leaf in the chain.
    wei_factor : Vec
        Factor of the weights before packing: -1, 0 or 1 for integers.
    bias : Vec or None
        The bias to give to the primitive.
    bias_later : Affine or None
        Formula of the bias from values that come later.
    bias_dtype : str
        f32, or s32 in the exact form.
    leftovers : Chain
        Steps that the primitive does not carry; it then stores f32, and the rest, the store to
        facts.dst included, is to be computed from that.
    because : str
        Reason why steps are left over; empty when none are.
    exactness : Exactness
        The weakest promise of the rewrites that were made.
    rate : float
        Upper bound for the fraction of evenly spread inputs that they may change.
    trace : Trace or tuple of Record
        Rewrites that fired and rewrites that were refused, with reasons; use `records`. Not
        compared, since it follows from the arguments of the composition.
    choices : tuple of Choice
        Steps that other post-ops could have carried, and what each would have cost.
    sums : bool
        The primitive stores bare s32 sums of codes. The zero points of its facts, and `bias`, whole
        numbers with dst's zero point among them, are added to those as integers.
    later : tuple of str
        Attributes whose values come with each call.
    is_whole : bool
        Whether the primitive does everything, the store included.
    dst : str
        Data type that the primitive stores: facts.dst, or f32 when steps are left over.
    has_bias : bool
        Whether the primitive is to have a bias.
    """

    facts: PrimitiveFacts
    chain: Chain
    policy: str
    exact_rounding: bool
    attr: Attr
    constants: tuple[tuple[str, Vec], ...]
    operands: tuple[tuple[str, str], ...]
    wei_factor: Vec
    bias: Vec | None
    bias_later: Affine | None
    bias_dtype: str
    leftovers: Chain
    because: str
    exactness: Exactness
    rate: float
    trace: Trace | tuple[Record, ...] = field(compare=False, repr=False)
    choices: tuple[Choice, ...] = ()
    sums: bool = False
    later: tuple[str, ...] = field(init=False, repr=False, compare=False)
    is_whole: bool = field(init=False, repr=False, compare=False)
    dst: str = field(init=False, repr=False, compare=False)
    has_bias: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse a plan whose values are not those that its attributes declare."""
        check_fields(self)
        real("rate", self.rate)
        facts, points = self.facts, 1 if self.attr.src_zero_point is None else 2
        names_later = (SRC_SCALE, SRC_ZERO_POINT)[:points]
        has_bias = self.bias is not None or self.bias_later is not None
        follows = {
            "later": names_later if facts.src_later == "per_tensor" else (),
            "is_whole": not self.because,
            "dst": "f32" if self.because else facts.dst,
            "has_bias": has_bias and not self.sums,
        }
        for name, value in follows.items():
            object.__setattr__(self, name, value)
        names = sorted((*self.later, *dict(self.constants), *dict(self.operands)))
        if names != sorted(self.attr.names):
            wanted = ", ".join(self.attr.names) or "none"
            raise ArgumentError("constants", f"values for {', '.join(names) or 'none'}", wanted)
        vecs = [*self.constants, ("wei_factor", self.wei_factor)]
        vecs += [] if self.bias is None else [("bias", self.bias)]
        for name, vec in vecs:
            if vec.channels not in (None, self.facts.channels):
                raise ShapeError("constants", f"{vec.channels} channels", str(self.facts.channels))
            if not (vec.is_finite or name.startswith("post_op_")):  # of minimum and maximum
                raise ArgumentError("constants", f"{name} of {vec}", "finite numbers")
            if name.endswith("_zero_point") and not vec.is_integer:
                raise ArgumentError("constants", f"{name} of {vec}", "whole numbers")

    @property
    def records(self) -> tuple[Record, ...]:
        """The trace as text: what was rewritten, what was refused, and why."""
        # Written when somebody asks: numbers as text cost as much as composing.
        return records(self.trace) if isinstance(self.trace, Trace) else self.trace

    @property
    def became(self) -> tuple[Became, ...]:
        """Outcome of each step of the chain; nothing where it has a form of its own."""
        left, has_bias = None if self.is_whole else self.leftovers, self.has_bias
        parts = (self.chain, self.facts, self.attr, self.records, left)
        return () if self.exact_rounding else became(*parts, has_bias=has_bias)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the caller about what is stored."""
        return () if self.sums else store_notes(self.chain, self.facts)

    @property
    def post_ops(self) -> tuple[PostOp, ...]:
        """The post-ops, in order."""
        return self.attr.post_ops

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """The tensors that the chain names, and the facts, each once, as they occur."""
        leaves = {ACC_MAP: Leaf(ACC_MAP)} if self.facts.acc_map else {}
        if self.facts.row_scale is not None:
            leaves[SRC_SCALE] = self.facts.row_scale
        elif self.facts.src_later:
            later = self.later
            leaves |= {n: Leaf(n, "f32" if n == SRC_SCALE else "s32", "per_tensor") for n in later}
        for step in self.chain.steps:
            if isinstance(step, Binary) and isinstance(step.operand, Leaf):
                leaves[step.operand.name] = step.operand
        return tuple(leaves.values())

    @property
    def acc_scale(self) -> Vec:
        """Factor of the accumulator in the primitive, weights' factor included.

        An `acc_map` in units of the accumulator is to be multiplied by it before it is passed.
        """
        constants, one = dict(self.constants), Vec(1.0)
        return self.wei_factor * constants.get("src_scale", one) * constants.get("wei_scale", one)

    @property
    def cost(self) -> float:
        """Estimated time, in parts of the primitive without any post-op."""
        return cost(self.post_ops, self.facts)

    def values(self) -> dict[str, Array]:
        """Return the constants as arrays, under the names that `native.prepare` takes."""
        return {name: self._array(name, vec) for name, vec in self.constants}

    def operand_dims(self, name: str) -> tuple[int, ...]:
        """Return the dimensions in which the primitive takes an operand, by its run-time name."""
        operands = {
            f"post_op_{at}": post_op.src1.dims
            for at, post_op in enumerate(self.post_ops)
            if isinstance(post_op, BinaryPostOp)
        }
        one_of("name", name, tuple(operands))
        return operands[name]

    def _array(self, name: str, vec: Vec) -> Array:
        if name.endswith("_zero_point"):
            return vec.values().astype(np.int32)
        values = vec.values().astype(np.float32)
        if not name.startswith("post_op_"):
            return values
        aligned = along(values, self.facts.axis, self.facts.ndims)
        post_op = self.post_ops[int(name.removeprefix("post_op_"))]
        if isinstance(post_op, BinaryPostOp):
            return np.ascontiguousarray(np.broadcast_to(aligned, post_op.src1.dims))
        assert isinstance(post_op, PReluPostOp)
        if len(values) == 1 or post_op.mask == 1 << self.facts.axis:
            return values
        # Slopes, one per channel; again for every batch where the post-op's mask says so.
        dims = operand_dims(self.facts, "per_channel")
        assert dims is not None
        return np.broadcast_to(aligned, dims).ravel()

    def problem(self, problem: DenseProblem) -> DenseProblem:
        """Return the problem to prepare: with the plan's bias, and with what the plan stores."""
        instance("problem", problem, *DENSE)
        if (problem.kind, problem.oc) != (self.facts.kind, self.facts.channels):
            wanted = f"a {self.facts.kind} with {self.facts.channels} channels"
            raise ShapeError("problem", problem.text(), wanted)
        bias: TensorSpec | None = None
        if self.has_bias:
            lead = 0 if problem.row_axis is None else problem.channel_axis
            bias = TensorSpec.dense((*(1,) * lead, self.facts.channels), self.bias_dtype)
        return replace(problem, bias=bias, dst=replace(problem.dst, dtype=self.dst))

    def wei(self, wei: NDArray[Any]) -> Array:
        """Return the weights to prepare with: multiplied by `wei_factor`, in their own type.

        Parameters
        ----------
        wei : ndarray
            Weights in the problem's logical dims.

        Raises
        ------
        DTypeError
            Weights of another type than the plan is for: scaled, they would be rounded.
        ArgumentError
            A weight that has no opposite, in a channel that changes its sign; or one that leaves
            its type's range.
        """
        instance("wei", wei, np.ndarray)
        name = dtypes.from_numpy(wei.dtype, "wei", f"{self.facts.wei}, which the plan is for")
        if name != self.facts.wei:
            raise DTypeError("wei", name, self.facts.wei)
        wei = np.asarray(wei)  # of no subclass: matrices multiply where arrays scale
        if self.wei_factor.is_all(1.0):
            return wei
        factor = self.wei_factor.spread(self.facts.channels)
        if self.facts.kind == "matmul":
            aligned = factor
        else:
            lead = 2 if wei.ndim > self.facts.ndims and self.facts.kind != "inner_product" else 1
            aligned = factor.reshape(wei.shape[:lead] + (1,) * (wei.ndim - lead))
        if dtypes.is_integer(self.facts.wei):
            lowest = dtypes.qmin(self.facts.wei)
            if bool(((wei == lowest) & (aligned < 0)).any()):
                wanted = f"no {lowest} in channels that change their sign (facts: wei_has_min)"
                raise ArgumentError("wei", f"weights of {lowest}", wanted)
        scaled = wei * aligned
        if self.facts.wei_zero_point:
            # A weight worth nothing is one that equals its zero point.
            scaled = np.where(aligned == 0.0, self.facts.wei_zero_point, scaled)
        with np.errstate(over="ignore"):
            stored = scaled.astype(wei.dtype)
        if not np.isfinite(stored).all():
            wanted = f"weights that stay finite in {name} when multiplied by {self.wei_factor}"
            raise ArgumentError("wei", "values that are too large", wanted)
        return np.asarray(stored)

    def bias_values(self, bias: ArrayLike | None = None) -> Array | None:
        """Return the bias to prepare with, or ``None`` for a primitive without.

        Parameters
        ----------
        bias : array_like, optional
            The values that were to come later; one per channel.
        """
        if self.bias_later is not None:
            if bias is None:
                wanted = f"{self.facts.channels} values: the plan was made without them"
                raise ArgumentError("bias", "None", wanted)
            later = self.bias_later
            vec = later.scale * constant("bias", numbers("bias", bias)) + later.shift
        elif bias is not None:
            raise ArgumentError("bias", "values", "None: the plan has them already")
        elif self.bias is None:
            return None
        else:
            vec = self.bias
        if self.sums and not vec.is_integer:
            raise ArgumentError("bias", str(vec), "whole numbers: units of the accumulator")
        narrow = np.int32 if self.bias_dtype == "s32" else np.float32
        return vec.spread(self.facts.channels).astype(np.int64 if self.sums else narrow)

    def explain(self) -> str:
        """Return every rewrite with its identity and label, every refusal and choice with why."""
        lines = [line for one in self.records for line in one.lines()] or ["nothing was rewritten"]
        return "\n".join(lines + [f"chosen for {choice}" for choice in self.choices])

    def __reduce__(self) -> tuple[type[Plan], tuple[object, ...]]:
        # Rules are functions; what they did is text.
        plain = replace(self, trace=self.records)
        return Plan, tuple(getattr(plain, f.name) for f in fields(plain) if f.init)

    def __str__(self) -> str:
        return plan_table.text(self.facts.text(), self.chain, self._rows(), self._verdict())

    def _repr_html_(self) -> str:
        try:
            options = self.benchdnn()
        except ArgumentError:  # it has no word for everything
            options = ""
        parts = (self.facts.text(), self.chain, self._rows(), self._verdict(), self.exactness)
        return plan_table.fragment(*parts, self.became, self.records, options)

    def _rows(self) -> list[plan_table.Row]:
        """Return name, mask, shape and value of everything that acts, in order."""
        constants, operands = dict(self.constants), dict(self.operands)

        def of(*names: str) -> list[plan_table.Row]:
            present = {name: getattr(self.attr, name) for name in names}
            return [
                plan_table.attribute(name, value.mask, constants.get(name))
                for name, value in present.items()
                if value is not None
            ]

        rows = of("src_scale", "src_zero_point")
        if not self.wei_factor.is_all(1.0):
            rows.append(plan_table.constant("wei factor", self.wei_factor))
        rows += of("wei_scale", "wei_zero_point")
        if self.bias is not None:
            rows.append(plan_table.constant("bias", self.bias, self.bias_dtype))
        elif self.bias_later is not None:
            rows.append(("bias", "", "", str(self.bias_later).replace("x", "bias")))
        for index, op in enumerate(self.post_ops):
            name = f"post_op_{index}"
            rows.append(plan_table.post_op(index, op, constants.get(name), operands.get(name)))
        rows += [*of("dst_scale", "dst_zero_point"), ("store", "", "", self.dst)]
        if not self.is_whole:
            rows.append(("left over", "", "", f"{self.leftovers} > {self.facts.dst}"))
            rows.append(("because", "", "", self.because))
        if self.sums:
            point = self.facts.src_zero_point
            terms = [f"{-point:+d} · Σ wei"] if point else []
            terms += [] if self.bias is None and self.bias_later is None else ["bias"]
            rows.append(("added", "", "", f"in s32: {' + '.join(terms)}" if terms else "nothing"))
        rows += [("chosen", "", "", str(choice)) for choice in self.choices]
        return rows + [("note", "", "", note) for note in self.notes]

    def _verdict(self) -> str:
        as_onnx = "the integers of ONNX; " if self.exact_rounding else ""
        return plan_table.verdict(len(self.post_ops), as_onnx, self.exactness, self.rate, self.cost)

    def benchdnn(self, problem: DenseProblem | None = None) -> str:
        """Return the options that make benchdnn run the same types and attributes.

        With a problem, the whole line that runs it.
        """
        constants = dict(self.constants)
        if problem is None:
            bias = self.bias_dtype if self.has_bias else None
            return benchdnn_options.options(self.facts, bias, self.dst, self.attr, constants)
        return benchdnn_options.line(self.problem(problem), self.attr, constants)

    def to_json(self) -> str:
        """Return the plan as JSON text, with a schema number."""
        return codec.dumps(replace(self, trace=self.records))

    @staticmethod
    def from_json(text: str) -> Plan:
        """Return the plan that `to_json` wrote.

        Raises
        ------
        ArgumentError
            Not the JSON of a plan, or of another schema; or values that do not belong together.
        """
        plan = codec.loads(text, {"Plan": Plan})
        if not isinstance(plan, Plan):
            raise DTypeError("text", type(plan).__name__, "the JSON of a plan")
        return plan
