"""Planned: a plan on a prepared primitive, with what the primitive leaves over run after it."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import instance, items, named
from pyonednn_q.compose.plan import Plan
from pyonednn_q.compose.stages import RESIDUAL, SRC
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, DTypeError
from pyonednn_q.expr.steps import Sum
from pyonednn_q.native import Packed, Prepared, prepare
from pyonednn_q.native.arrays import check_out, checked, empty
from pyonednn_q.native.runtime import HotCallable
from pyonednn_q.ops.accumulator import Accumulator, accumulator
from pyonednn_q.ops.arrays import check_name, operand, operand_in_dims
from pyonednn_q.ops.form import AS_ASKED, RESIDUAL_LEAF, Form
from pyonednn_q.ops.staged import Quantizer, Rest
from pyonednn_q.primitive.post_ops import SumPostOp
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.primitive.windowed import arranged
from pyonednn_q.report.told import Told
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import ArrayLike, NDArray

    from pyonednn_q.native.first_run import SelfCheck
    from pyonednn_q.ops.gain import Tuning
    from pyonednn_q.primitive.dense_facts import DenseProblem


def prepare_plan(
    plan: Plan,
    problem: DenseProblem,
    *,
    wei: Array | Packed,
    bias: ArrayLike | None = None,
    operands: Mapping[str, Array] | None = None,
    decided: tuple[str, ...] = (),
    allow_reference: bool = False,
    saturation: str = "refuse",
    implementation: str | None = None,
    arrays: Mapping[str, TensorSpec] | None = None,
    self_check: SelfCheck = "auto",
    apart: bool = False,
) -> Planned:
    """Prepare a plan's primitive, and those of what it leaves over.

    Parameters
    ----------
    plan : Plan
        Result of `compose`.
    problem : ConvProblem, DeconvProblem, InnerProductProblem or MatMulProblem
        A problem with the kind, the channels and the data types that the plan was made for.
    wei : ndarray or Packed
        Weights as `prepare` takes them, before composing: the plan's factor is applied here.
        Those in a `Packed` have it already (`Plan.wei`).
    bias : array_like, optional
        Values of a bias that was to come later; one per channel.
    operands : mapping of str to ndarray, optional
        Leaves of the chain that are the same in every call, by name.
    decided : tuple of str
        Decisions before composing, for the notes.
    allow_reference, saturation, implementation, arrays, self_check, apart
        Options of `prepare`.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError, UnsupportedError
        A bad argument, by name; or as `prepare` raises it.
    """
    instance("plan", plan, Plan)
    facts, whole = plan.facts, plan.problem(problem)
    for name, dtype in (("src", facts.src), ("wei", facts.wei), ("dst", facts.dst)):
        got = problem.tensors[name].dtype
        if got != dtype:
            raise DTypeError("problem", f"{name} of {got}", f"{dtype}, which the plan is for")
    leaves = {leaf.name: leaf for leaf in plan.leaves}
    for name in leaves:
        check_name("chain", name)
    fixed = named("operands", operands, object)
    for name, value in fixed.items():
        fixed[name] = operand(leaves, name, value, problem)
    values = plan.values()
    for name, leaf in plan.operands:
        if leaf in fixed:
            dims = plan.operand_dims(name)
            values[name] = operand_in_dims(leaves[leaf], fixed[leaf], problem, dims)
    packed = wei if isinstance(wei, Packed) else Packed(plan.wei(arranged(problem, wei)))
    loops: Any = {"allow_reference": allow_reference, "self_check": self_check}
    options = {**loops, "saturation": saturation, "implementation": implementation, "apart": apart}
    seen = named("arrays", arrays, TensorSpec)
    for name, spec in seen.items():
        # Where something is left over, the primitive stores another type.
        seen[name] = replace(spec, dtype=whole.tensors[name].dtype)
    added = plan.bias_values(bias)
    primitive = prepare(
        whole,
        plan.attr,
        wei=packed,
        bias=None if plan.sums else added,
        values=values,
        later=plan.later,
        arrays=seen,
        **options,
    )
    rest: Rest | Accumulator | None = None
    if plan.sums:
        rest = accumulator(plan, primitive, packed, added, seen, **options)
    if not (plan.sums or plan.is_whole):
        rest = Rest.of(plan, primitive.layout("dst"), **loops)
    form = Form(problem, problem, plan.chain)
    return Planned(plan, primitive, form, fixed, rest, items("decided", decided, str))


class Planned(HotCallable, Told, hot=True):
    """A plan ready to run. Made by `prepare_plan`; safe from many threads at once.

    Attributes
    ----------
    plan : Plan
        Plan that runs.
    primitive, seen : Prepared
        The primitive that carries it; and as called with arrays of the dims that were asked.
    inputs : tuple of str or None
        Names of the inputs, by leaf; None if more runs than the primitive.
    carries_sum : bool
        Whether the primitive adds to what dst holds.
    form : Form
        Form in which the request is put to the primitive.
    leaves, fixed : tuple of str, and mapping of str to ndarray
        Operands that every call takes by keyword; and those that are the same, in the form's dims.
    decided : tuple of str
        Decisions before composing.
    dst, src_dims : TensorSpec and tuple of int
        Dims, data type and strides of a result that needs no copy; and dims of a source.
    nbytes : int
        About how many bytes it takes beside weights: those of its primitives.
    tuning, tried : Tuning or None, and tuple of (str, str)
        Reason for this choice, where several were timed; the ways tried before it, each with its
        refusal.
    unit_map : ndarray or None
        f32, of dst's dims or 1: what a call's own zero points are multiplied by and subtracted.
    is_unsigned : bool
        Whether it takes u8 codes that are 128 more than those of the s8 source.
    quantizers : dict
        Quantizers of `SourceLevels`, by the layout of the float source.
    hot_making : dict
        Calls that make codes of their source, by whether that is s8; from `hot_call_for`.
    """

    tuning: Tuning | None = None
    tried: tuple[tuple[str, str], ...] = ()
    unit_map: NDArray[np.float32] | None = None
    is_unsigned = False

    def __init__(
        self,
        plan: Plan,
        primitive: Prepared,
        form: Form,
        fixed: dict[str, Array],
        rest: Rest | Accumulator | None,
        decided: tuple[str, ...] = (),
    ) -> None:
        instance("plan", plan, Plan)
        instance("primitive", primitive, Prepared)
        instance("form", form, Form)
        self.plan = plan
        self.decided = decided
        self.primitive = primitive
        self.form = form
        bound = {*fixed, RESIDUAL_LEAF} if form.has_leaf else set(fixed)
        self._leaves = {leaf.name: leaf for leaf in plan.leaves}
        self.leaves = tuple(name for name in self._leaves if name not in bound)
        # The same memory: arrays need not be looked at in Python.
        specs = form.seen(primitive.layout("dst"))
        self.seen = primitive.seen_as(specs) if specs else primitive
        self.dst: TensorSpec = replace(self.seen.layout("dst"), dtype=plan.facts.dst)
        self.src_dims = form.asked.src.dims
        self.fixed, self._rest = fixed, rest
        leaf_of = dict(plan.operands)
        self._inputs = tuple(
            (name, (1,)) if name in plan.later else (leaf_of[name], plan.operand_dims(name))
            for name in primitive.inputs
            if name != SRC
        )
        self._read = self._leaves[RESIDUAL_LEAF].dtype if form.has_leaf else None
        for step in plan.chain.steps:
            if isinstance(step, Sum):  # all of a chain read the same
                self._read = step.dtype or plan.facts.dst
        self.carries_sum = SumPostOp in map(type, plan.attr.post_ops)
        self.nbytes = primitive.nbytes + (0 if rest is None else rest.nbytes)
        is_alone = not (rest or form.has_leaf) and (self._read is None or self.carries_sum)
        self.inputs = (SRC, *(leaf for leaf, _ in self._inputs)) if is_alone else None
        self._is_bare = is_alone and not self.leaves and self._read is None
        # Not itself, which would keep its memory until the garbage collector comes.
        self._row_major: Planned | None = None
        self.quantizers: dict[TensorSpec, Quantizer] = {}
        self.hot_making: dict[bool, Callable[..., Any] | None] = {}
        self._stays: bool | None = None
        if is_alone and not self.leaves:
            self._hot = self.seen.hot_with_residual if self.carries_sum else self.seen.hot

    def __call__(
        self,
        /,  # so that a leaf may be called self
        src: Array,
        *,
        out: Array | None = None,
        residual: Array | None = None,
        **operands: Array,
    ) -> Array:
        """Run the plan.

        Parameters
        ----------
        src : ndarray
            Source with the dims and data type of the problem; any strides.
        out : ndarray, optional
            Written in place and returned. Without a residual, it holds what a Sum reads.
        residual : ndarray, optional
            Tensor that a Sum reads, not changed: of dst's dims, and of its data type or the Sum's.
        **operands : ndarray
            The chain's leaves, by name: of dst's dims, one value per channel, or one value.

        Returns
        -------
        ndarray

        Raises
        ------
        ArgumentError, DTypeError, ShapeError, AliasError
            Naming the argument, what came and what would do.
        """
        if self._is_bare and residual is None and not operands:
            return self.seen(src, out=out)
        form, leaves = self.form, self.fixed | self._leaves_of(operands)
        before = self._before(out, residual)
        if out is not None:
            # As they were given: views of them may be copies.
            views = {name: np.asarray(array) for name, array in operands.items()}
            self._check_out(out, {"src": src, **self.fixed, **views}, before)
        before = None if before is None else form.inward(before)
        if form.has_leaf and before is not None:
            as_leaf = dtypes.numpy_dtype(self._leaves[RESIDUAL_LEAF].dtype)
            leaves[RESIDUAL_LEAF], before = before.view(as_leaf), None
        x = form.inward(checked("src", src, self.seen.layout(SRC)))
        return form.stored(partial(self._run, x, leaves, before), out)

    def _run(
        self, x: Array, leaves: dict[str, Array], before: Array | None, out: Array | None
    ) -> Array:
        """Run on arrays in the dims of the primitive."""
        problem, known = self.form.problem, self._leaves
        inputs = [
            operand_in_dims(known[leaf], leaves[leaf], problem, dims) for leaf, dims in self._inputs
        ]
        if self._rest is None:
            return self.primitive(x, *inputs, out=self._target(out, before))
        if isinstance(self._rest, Accumulator):
            return self._rest(x, out)
        leaves[SRC] = self.primitive(x, *inputs, out=self._target(None, before))
        if before is not None:
            leaves[RESIDUAL] = before
        return self._rest(leaves, out)

    @property
    def hot(self) -> Callable[[Any, Any, Any], Any] | None:
        """f(src, residual, out), which returns NotImplemented unless all fit as they are.

        residual and out may be None. So it does with neither where a Sum reads one. ``None`` where
        a call takes operands, or more runs than the primitive.
        """
        return self._hot

    @property
    def reads(self) -> tuple[str, ...] | None:
        """Arrays that `seen` reads beside dst, also a residual operand; None if more runs."""
        leaves = (RESIDUAL if leaf == RESIDUAL_LEAF else leaf for leaf, _ in self._inputs)
        return (SRC, *leaves) if self._rest is None else None

    @property
    def making_codes(self) -> tuple[Callable[..., Any] | None, ...]:
        """Calls that make codes of their source, row-major ones too."""
        other = {} if self._row_major is None else self._row_major.hot_making
        return (*self.hot_making.values(), *other.values())

    def row_major(self) -> Planned:
        """Return the same for row-major sources and results, which the library copies itself.

        This one, where they lie so already, where something runs after the primitive, and in a
        form of its own: how arrays lie was part of the choice.
        """
        if self._stays is None:
            layouts = {name: self.primitive.layout(name) for name in (SRC, "dst")}
            dense = {name: TensorSpec.dense(s.dims, s.dtype) for name, s in layouts.items()}
            runs_more = self._rest is not None or self.form.name != AS_ASKED
            stays = layouts == dense or runs_more or not self.dst.size
            self._row_major = None if stays else self._on(self.primitive.seen_as(dense), self.form)
            self._stays = stays
        return self._row_major or self

    def in_form(self, form: Form) -> Planned:
        """Return the same plan for calls in a form, of the problem and chain of this plan."""
        return self._on(self.primitive, form)

    def _on(self, primitive: Prepared, form: Form) -> Planned:
        rest = copy(self._rest) if isinstance(self._rest, Accumulator) else self._rest
        other = Planned(self.plan, primitive, form, self.fixed, rest, self.decided)
        other.tuning, other.tried = self.tuning, self.tried
        other.unit_map, other.is_unsigned = self.unit_map, self.is_unsigned
        return other

    def __copy__(self) -> Planned:
        return self._on(copy(self.primitive), self.form)

    def empty(self) -> Array:
        """Return an uninitialised array to pass as `out`, in the layout that needs no copy."""
        return empty(self.dst)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the caller: decisions, implementations passed over, steps left over."""
        because = (f"left over: {self.plan.because}",) if self.plan.because else ()
        done = () if self._rest is None else self._rest.notes
        own = (*self.plan.notes, *self.primitive.notes, *done, *because, *self.form.notes)
        return (*self.decided, *own)

    @property
    def after(self) -> tuple[str, ...]:
        """A line for every primitive that runs after the first."""
        return () if self._rest is None else tuple(self._rest.describe().splitlines())

    def describe(self) -> str:
        """Return the plan, the primitive, and what runs after it."""
        notes = (f"note: {note}" for note in self.decided)
        return "\n".join([*notes, str(self.plan), self.primitive.describe(), *self.after])

    def __repr__(self) -> str:
        after = f", then {len(self.after)} more" if self.after else ""
        return f"<Planned {self.primitive.problem.text()} on {self.primitive.impl}{after}>"

    def _leaves_of(self, operands: Mapping[str, Array]) -> dict[str, Array]:
        """Return what a call gives for leaves, checked, in the form's dims."""
        for name in operands:
            if name not in self.leaves:
                wanted = f"one of {', '.join(self.leaves)}" if self.leaves else "no operands"
                raise ArgumentError("operands", shown(name), wanted)
        seen = {name: self.form.operand(operands.get(name)) for name in self.leaves}
        problem, leaves = self.form.problem, self._leaves
        return {name: operand(leaves, name, array, problem) for name, array in seen.items()}

    def _before(self, out: Array | None, residual: Array | None) -> Array | None:
        """Return what the Sum reads, or ``None`` if the chain has none."""
        if self._read is None:
            if residual is not None:
                raise ArgumentError("residual", "an array", "None: the chain has no Sum")
            return None
        from_out = out is not None and residual is None
        name, array = ("out", out) if from_out else ("residual", residual)
        if array is None:
            raise ArgumentError(name, "None", "the array that the Sum reads, or `out` with it")
        instance(name, array, np.ndarray)
        dtype = dtypes.from_numpy(array.dtype, name, f"{self._read}, as the Sum reads it")
        dst = self.plan.facts.dst
        # Bits may be read as another type, but only as one of the same size.
        wanted = {self._read, dst} if dtypes.bits(self._read) == dtypes.bits(dst) else {self._read}
        if dtype not in wanted:
            raise DTypeError(name, dtype, f"{' or '.join(sorted(wanted))}, as the Sum reads it")
        return checked(name, array, replace(self.dst, dtype=dtype))

    def _check_out(self, out: Array, read: Mapping[str, Array], before: Array | None) -> None:
        """Refuse an `out` that cannot take the result, before anything is written to it."""
        read = read if before is None or before is out else {**read, "residual": before}
        for name, array in read.items():
            instance(name, array, np.ndarray)
        # Where a sum's residual is copied to `out` first, nothing else may lie there.
        is_copied = self.carries_sum and "residual" in read
        in_place = ["residual"] if is_copied else [name for name in read if name != "src"]
        check_out(checked("out", out, self.dst), read, in_place)

    def _target(self, out: Array | None, before: Array | None) -> Array | None:
        """Return where the primitive stores: holding what its sum reads, if it has one."""
        if not self.carries_sum or before is out:
            return out
        assert before is not None
        dst = self.primitive.empty("dst") if out is None else out
        np.copyto(dst, before.view(dst.dtype))
        return dst
