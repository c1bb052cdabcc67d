"""From a problem, attributes and constants to a primitive ready to run."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.argument import flag, instance, items, named, one_of
from pyonednn_q.errors import ArgumentError, OneDNNError, SaturationError, UnsupportedError
from pyonednn_q.faults.guards.products import bare_nibbles
from pyonednn_q.native import arrays, first_run
from pyonednn_q.native.arrays import Packed, pack
from pyonednn_q.native.first_run import SelfCheck, checked_self_check
from pyonednn_q.native.prepared import Prepared, new_core
from pyonednn_q.native.selection import Selection, memory_for, select
from pyonednn_q.native.sums import float32_notes, inexact_weights, may_saturate
from pyonednn_q.native.trial import try_out
from pyonednn_q.primitive.attr import Attr, Scale
from pyonednn_q.primitive.problem import MatMulProblem
from pyonednn_q.primitive.tensor import Operation, TensorSpec
from pyonednn_q.primitive.windowed import arranged
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from pyonednn_q._core import Memory
    from pyonednn_q.primitive.problem import Problem

_NO_CODE = "runtime_error"  # a status: the library failed to generate what it had offered
_OPERAND = re.compile(r"^post_op_\d+(_wei|_bias)?$")


def prepare(
    problem: Problem,
    attr: Attr | None = None,
    *,
    wei: object = None,
    bias: object = None,
    values: Mapping[str, object] | None = None,
    later: Collection[str] = (),
    allow_reference: bool = False,
    saturation: str = "refuse",
    self_check: SelfCheck = "auto",
    implementation: str | None = None,
    arrays: Mapping[str, TensorSpec] | None = None,
    apart: bool = False,
) -> Prepared:
    """Choose an implementation, pack the constants, and return a primitive that is ready to run.

    Parameters
    ----------
    problem : Problem
        Problem to compute, for example ``ConvProblem.of(...)``.
    attr : Attr, optional
        Scales, zero points and post-ops (structure only; their values go into `values`).
    wei : ndarray or Packed, optional
        Weights in logical dims (with groups, also in the dims that `Conv` takes), packed once into
        the implementation's layout; `Packed` shares them with other primitives. Without weights,
        they are an argument of each call (a matmul of two activations).
    bias : ndarray, optional
        Bias in real units, in the problem's bias dims or one-dimensional.
    values : mapping, optional
        Values under the names `attr` gives them: ``"wei_scale"``, ``"dst_scale"``,
        ``"src_zero_point"``, ``"post_op_0"``, ... Binary operands left out become arguments of each
        call.
    later : collection of str
        Names of scales and zero points that become arguments of each call, too: float32 or int32
        arrays, whose values are not checked.
    allow_reference : bool
        Accept a reference loop if no faster implementation takes the problem.
    saturation : {"refuse", "allow"}
        Treatment of weights whose products can overflow 16 bits on a CPU without VNNI, or whose
        sums can leave 32 bits on any.
    self_check : {"auto"} or bool
        Auto: run a primitive that is new in this process once on seeded codes, compare a sample of
        its result with exact sums, and pass over an implementation that is wrong. True: compare
        all of several results with a float64 model. False: nothing.
    implementation : str, optional
        oneDNN's name of the implementation to use, instead of the first one that may be trusted.
    arrays : mapping of str to TensorSpec, optional
        Specs of ``"src"`` and ``"dst"`` of calls, if they differ from those of the implementation:
        another layout (the library then copies in each call), a source that is shorter in a
        dimension (zeros are appended), or other dims over the same bytes (nothing is copied).
    apart : bool
        Run the first primitive of a kernel that no hunt has covered here in a child process first;
        an implementation that crashes is passed over. ``self_check=True`` does this, too.

    Returns
    -------
    Prepared

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        A bad argument, by name.
    UnsupportedError
        No implementation takes the problem; has the library's reasons. `ReferenceKernelError`,
        `KnownWrongError` or `SaturationError` if only such implementations take it.
    OutOfMemoryError
        There is not enough memory; this is also a `MemoryError`.
    SelfCheckError
        The primitive computes something else than the arguments mean.
    """
    attr = attr if attr is not None else Attr()
    instance("problem", problem, Operation)
    instance("attr", attr, Attr)
    one_of("saturation", saturation, ("refuse", "allow"))
    for name, value in (("allow_reference", allow_reference), ("apart", apart)):
        flag(name, value)
    self_check = checked_self_check(self_check)
    if implementation is not None:
        instance("implementation", implementation, str)
    attr_values: dict[str, object] = named("values", values, object)
    later = items("later", later, str)
    array_specs = named("arrays", arrays, TensorSpec)
    if isinstance(wei, np.ndarray):
        wei = arranged(problem, wei)
    if wei is None:
        problem = _with_wei_of_each_call(problem)
    tensors = problem.tensors
    _check_names(problem, attr, attr_values, later, wei, bias)
    if tensors["dst"].size == 0:
        return _empty(problem, attr, wei)

    notes = []
    if isinstance(problem, MatMulProblem) and bare_nibbles(problem, attr):
        attr, attr_values = replace(attr, src_scale=Scale()), {"src_scale": np.float32(1)}
        notes.append("with a source scale of 1: see matmul-bare-nibbles in the guard table")
    with memory_for(problem, attr):
        prepared = _first_right(
            problem,
            attr,
            attr_values,
            (wei, bias),
            array_specs,
            notes=tuple(notes),
            allow_reference=allow_reference,
            saturation=saturation,
            implementation=implementation,
            looks=self_check == "auto",
            later=later if apart or self_check is True else None,
        )
    if saturation == "refuse" and "wei" in prepared.inputs and may_saturate(problem, prepared.impl):
        prepared.check_wei_of_each_call()
    if self_check is True:
        try_out(prepared, wei.array if isinstance(wei, Packed) else wei, bias, attr_values)
    return prepared


def _first_right(
    problem: Problem,
    attr: Attr,
    attr_values: Mapping[str, object],
    constants: tuple[object, object],
    array_specs: Mapping[str, TensorSpec],
    *,
    notes: tuple[str, ...],
    allow_reference: bool,
    saturation: str,
    implementation: str | None,
    looks: bool,
    later: Collection[str] | None,
) -> Prepared:
    """Return the primitive of the first implementation that can be made, and is not found wrong."""
    wei, bias = constants
    array = wei.array if isinstance(wei, Packed) else wei
    passed: dict[str, str] = {}
    lost: list[int] = []
    notes_of_sums = partial(_sum_notes, problem, attr, array, bias, attr_values, saturation, lost)
    while True:
        lost.clear()
        selection, sum_notes = _selected(
            problem, attr, passed, notes_of_sums, allow_reference, implementation
        )
        if later is not None:
            seen = {"later": tuple(later), "arrays": dict(array_specs)}
            asked = {"problem": problem, "attr": attr, "wei": array, "bias": bias, **seen}
            named_values = {"values": dict(attr_values)}
            why = first_run.crash({**asked, **named_values}, selection.impl, problem.kind)
            if why:
                passed[selection.impl] = why
                continue
        bound = bind(selection, problem, attr, attr_values, wei, bias)
        needed = (*problem.tensors, *attr.names)
        inputs = tuple(name for name in needed if name not in bound and name != "dst")
        try:
            core = new_core(selection, inputs, bound, array_specs)
        except OneDNNError as error:
            if error.status != _NO_CODE:
                raise
            passed[selection.impl] = "the library failed to generate its code"
            continue
        specs = {
            name: array_specs.get(name) or spec_of(selection, name) for name in (*inputs, "dst")
        }
        all_notes = (*notes, *map(str, selection.skipped), *sum_notes)
        prepared = Prepared(problem, attr, selection, inputs, bound, specs, core, all_notes)
        why = first_run.fault(prepared, array, bias, attr_values, lost) if looks else ""
        if not why:
            return prepared
        passed[selection.impl] = why


def _selected(
    problem: Problem,
    attr: Attr,
    passed: dict[str, str],
    notes_of_sums: Callable[[str], list[str]],
    allow_reference: bool,
    implementation: str | None,
) -> tuple[Selection, list[str]]:
    """Return the first implementation that may be trusted with these weights, and notes on it.

    Some behind the first sum u8 sources otherwise, and exactly. (Those of s8 run as u8.)
    """
    refusal: SaturationError | None = None
    while True:
        try:
            selection = select(
                problem,
                attr,
                allow_reference=allow_reference,
                implementation=implementation,
                passed=passed,
            )
        except UnsupportedError as error:
            raise refusal or first_run.with_faults(error, problem, attr, passed) from None
        if refusal is not None and selection.kind != "jit":
            raise refusal
        try:
            return selection, notes_of_sums(selection.impl)
        except SaturationError as error:
            if implementation is not None or problem.tensors["src"].dtype != "u8":
                raise
            refusal = refusal or error
            passed[selection.impl] = "its sums may saturate with these weights"


def _sum_notes(
    problem: Problem,
    attr: Attr,
    wei: object,
    bias: object,
    attr_values: Mapping[str, object],
    saturation: str,
    lost: list[int],
    impl: str,
) -> list[str]:
    """Refuse weights whose sums are not exact, unless told to go on; return how they may differ.

    Then `lost` takes the channels.
    """
    codes = wei if isinstance(wei, np.ndarray) else None
    error = None
    if codes is not None:
        error = inexact_weights(problem, attr, impl, codes, attr_values.get("wei_zero_point"))
    if error is not None and saturation != "allow":
        raise error
    if error is not None:
        lost += error.channels
    added = {"dst_zero_point": attr_values.get("dst_zero_point")} if attr.dst_zero_point else {}
    added |= {"bias": bias} if bias is not None else {}
    rounded = float32_notes(problem, attr, impl, codes, added)
    return [*([error.detail] if error is not None else []), *rounded]


def _with_wei_of_each_call(problem: Problem) -> Problem:
    """Ask for weights as arrays have them: those of each call cannot be packed beforehand."""
    if "wei" not in problem.tensors:
        return problem
    spec = problem.tensors["wei"]
    if not isinstance(problem, MatMulProblem):
        wanted = f"an array of dims {spec.dims}: only matmul is fast with weights of each call"
        raise ArgumentError("wei", "None", wanted)
    if spec.strides is not None:
        return problem
    return replace(problem, wei=TensorSpec.dense(spec.dims, spec.dtype))


def _check_names(
    problem: Problem,
    attr: Attr,
    attr_values: Mapping[str, object],
    later: Collection[str],
    wei: object,
    bias: object,
) -> None:
    attr.check(problem)
    needed = attr.names
    for name in later:
        if name not in needed or name in attr_values:
            wanted = "names of scales and zero points that attr declares and `values` lacks"
            raise ArgumentError("later", shown(name), wanted)
    for name in attr_values:
        if name not in needed:
            wanted = f"one of {', '.join(needed)}" if needed else "nothing: attr declares no values"
            raise ArgumentError("values", shown(name), wanted)
    for name in needed:
        if name not in attr_values and name not in later and not _OPERAND.match(name):
            raise ArgumentError(name, "nothing", "a value in `values`: attr declares it")
    for name, value in (("wei", wei), ("bias", bias)):
        if value is not None and name not in problem.tensors:
            raise ArgumentError(name, "an array", f"None: a {problem.kind} without it")
    if "bias" in problem.tensors and bias is None:
        raise ArgumentError("bias", "None", f"an array of dims {problem.tensors['bias'].dims}")


def bind(
    selection: Selection,
    problem: Problem,
    attr: Attr,
    attr_values: Mapping[str, object],
    wei: object,
    bias: object,
) -> dict[str, Memory]:
    """Pack every constant that was given into what the chosen implementation wants."""
    candidate = selection.candidate
    bound: dict[str, Memory] = {}
    for name, value in (("wei", wei), ("bias", bias)):
        if isinstance(value, Packed):
            bound[name] = value.memory(candidate, name, problem.tensors[name])
        elif value is not None:
            bound[name] = pack(candidate, name, value, problem.tensors[name])
    for name, value in attr_values.items():
        if _OPERAND.match(name):
            layout = candidate.layout(name)
            spec = TensorSpec(tuple(layout.dims), layout.dtype)
            bound[name] = pack(candidate, name, value, spec)
        elif name.endswith("_scale"):
            scale = getattr(attr, name)
            bound[name] = candidate.hold(name, arrays.scale_values(name, value, scale.dtype))
        else:
            zero_point = getattr(attr, name)
            tensor = problem.tensors[name.removesuffix("_zero_point")]
            numbers = arrays.zero_point_values(name, value, zero_point.dtype, tensor.dtype)
            if zero_point.dtype in {"s4", "u4"}:
                bound[name] = candidate.pack_nibbles(name, arrays.packed_nibbles(numbers))
            else:
                bound[name] = candidate.hold(name, numbers)
    return bound


def spec_of(selection: Selection, name: str) -> TensorSpec:
    """Return the layout in which the chosen implementation takes an argument of each call."""
    layout = selection.candidate.layout(name)
    return TensorSpec(tuple(layout.dims), layout.dtype, layout.strides)


def _empty(problem: Problem, attr: Attr, wei: object) -> Prepared:
    """Return a primitive with nothing to compute; the library runs empty problems in a stub."""
    inputs = tuple(name for name in problem.tensors if name not in {"dst", "bias"})
    if wei is not None:
        inputs = tuple(name for name in inputs if name != "wei")
    specs = {name: _with_strides(problem.tensors[name]) for name in (*inputs, "dst")}
    return Prepared(problem, attr, None, inputs, {}, specs, None, ("dst is empty: nothing runs",))


def _with_strides(spec: TensorSpec) -> TensorSpec:
    return spec if spec.strides is not None else TensorSpec.dense(spec.dims, spec.dtype)
