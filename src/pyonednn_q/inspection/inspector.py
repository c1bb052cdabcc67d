"""inspect: look at what a call runs, what surrounds it, and what that costs."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from pyonednn_q.argument import flag, instance, integers
from pyonednn_q.compose import benchdnn_options
from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.vec import Vec
from pyonednn_q.faults import guards
from pyonednn_q.inspection.inspection import Format, GuardMet, Inspection, Reorder
from pyonednn_q.native import Prepared, runtime
from pyonednn_q.native.arrays import empty, in_layout
from pyonednn_q.native.creation import Creation, creation
from pyonednn_q.native.first_run import standing
from pyonednn_q.native.timing import medians_us
from pyonednn_q.ops.operator import Operator
from pyonednn_q.ops.planned import Planned
from pyonednn_q.ops.prepared_layer import PreparedLayer
from pyonednn_q.primitive.convolution import ConvProblem, DeconvProblem
from pyonednn_q.primitive.dense import InnerProductProblem, MatMulProblem
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_DENSE = (ConvProblem, DeconvProblem, InnerProductProblem, MatMulProblem)
_COPIES = 7
_EACH = "each call with row-major arrays"


def inspect(
    prepared: Operator | Planned | PreparedLayer | Prepared,
    src_dims: tuple[int, ...] | None = None,
    *,
    verbose: bool = True,
) -> Inspection:
    """Return the kernel that runs, its layouts, the copies around it, and kernels passed over.

    It takes a few tenths of a second, because copies are timed and a child process reads the
    library's log; without `verbose`, a few milliseconds.

    Parameters
    ----------
    prepared : Conv, Deconv, InnerProduct, MatMul, Planned, PreparedLayer or Prepared
        Operator or prepared primitive to inspect.
    src_dims : tuple of int, optional
        Dims of the source of an operator; a primitive is made for them if there is none. Optional
        if the operator has exactly one primitive.
    verbose : bool
        Start the child process. Without it, the library's log line, oneDNN's layout tags and the
        library's refusals are missing.

    Returns
    -------
    Inspection

    Raises
    ------
    ArgumentError
        Something else, an operator without a shape, or `verbose` that is no bool.
    UnsupportedError
        Errors of `prepare`.

    Examples
    --------
    >>> import numpy as np
    >>> from pyonednn_q.ops.dense import MatMul
    >>> inspection = inspect(MatMul(np.ones((64, 32), np.float32)), (8, 64))
    >>> inspection.macs, inspection.ops
    (16384, 32768)
    """
    instance("prepared", prepared, Operator, Planned, PreparedLayer, Prepared)
    flag("verbose", verbose)
    if isinstance(prepared, Operator):
        planned = prepared.prepare(_dims(prepared, src_dims))
        primitive, rows = planned.primitive, planned.row_major().primitive
        copies = _copies_around(planned)
        if prepared.settings.layout != "channels_last" and rows is not primitive:
            copies = chain(_copied(rows, primitive), _copies(rows))
        return _inspection(planned.primitive, copies, verbose, planned)
    if src_dims is not None:
        raise ArgumentError("src_dims", shown(src_dims), "None: the shape is settled already")
    if isinstance(prepared, Prepared):
        return _inspection(prepared, _copies(prepared), verbose)
    if isinstance(prepared, Planned):
        return _inspection(prepared.primitive, _copies_around(prepared), verbose, prepared)
    planned = prepared.planned
    copies, notes = _copies_around(planned), prepared.layer.notes
    return _inspection(planned.primitive, copies, verbose, planned, notes)


def _dims(operator: Operator, src_dims: tuple[int, ...] | None) -> tuple[int, ...]:
    if src_dims is not None:
        return integers("src_dims", src_dims)
    if len(operator.shapes) != 1:
        wanted = f"the dims of a source: {len(operator.shapes)} primitives are ready"
        raise ArgumentError("src_dims", "None", wanted)
    return operator.shapes[0]


def _inspection(
    primitive: Prepared,
    copies: Iterable[Reorder],
    verbose: bool,
    planned: Planned | None = None,
    notes: tuple[str, ...] = (),
) -> Inspection:
    problem, attr = primitive.problem, primitive.attr
    log = Creation("", ())
    looked: tuple[str, ...] = ()
    if primitive.kind != "none":
        looked = (standing(problem, primitive.impl),)
        if verbose:
            log = creation(problem, attr, primitive.impl)
    macs = problem.macs if isinstance(problem, _DENSE) else 0
    skipped = tuple((entry.impl, entry.why) for entry in primitive.skipped)
    tags = log.tags
    return Inspection(
        problem=problem.text(),
        implementation=primitive.impl,
        kind=primitive.kind,
        isa=runtime.isa().text(),
        library=".".join(map(str, runtime.version())),
        runtime=runtime.threading_runtime(),
        threads=runtime.get_num_threads(),
        formats=tuple(
            Format(name, text, tags.get(name, "")) for name, text in primitive.layouts.items()
        ),
        reorders=(*_packing(primitive), *_copied(primitive), *copies),
        packed_bytes=primitive.wei_bytes,
        scratchpad_bytes=primitive.scratchpad_bytes,
        macs=macs,
        ops=2 * macs,
        attributes=attr.text(),
        exactness="" if planned is None else str(planned.plan.exactness),
        benchdnn=_benchdnn(primitive),
        verbose=log.line if verbose else None,
        guards=tuple(_met(primitive)),
        rejected=log.refused + skipped,
        after=() if planned is None else planned.after,
        notes=(*notes, *(primitive.notes if planned is None else planned.notes), *looked),
        tuning="" if planned is None or planned.tuning is None else str(planned.tuning),
        tried=() if planned is None else planned.tried,
    )


def _benchdnn(primitive: Prepared) -> str:
    problem = primitive.problem
    if not isinstance(problem, _DENSE) or primitive.kind == "none":
        return ""
    constants = {name: Vec(values.tolist()) for name, values in primitive.held().items()}
    try:
        return benchdnn_options.line(problem, primitive.attr, constants)
    except ArgumentError:  # groups, depthwise post-ops
        return ""


def _met(primitive: Prepared) -> Iterator[GuardMet]:
    for entry in primitive.skipped:
        for row in entry.guards:
            guard = next(guard for guard in guards.GUARDS if guard.id == row)
            yield GuardMet(row, entry.impl, guard.effect, f"{primitive.impl} runs instead")


def _packing(primitive: Prepared) -> Iterator[Reorder]:
    """Give how the weights came into their layout, if they are kept."""
    if primitive.wei_bytes:
        (us,) = medians_us(_COPIES, primitive.pack_again)
        yield Reorder("wei", "row-major", "packed", primitive.wei_bytes, us, "once, when prepared")


def _copied(primitive: Prepared, usual: Prepared | None = None) -> Iterator[Reorder]:
    """Give the copies that the library makes in each call, into and out of its own layouts.

    `usual` is the same primitive for arrays that it need not copy.
    """
    seconds = primitive.time_copies(_COPIES)
    copied = primitive.copied
    for name in (name for name in (*primitive.inputs, "dst") if name in copied):
        inner = copied[name]
        spec = primitive.layout(name)
        inside = inner if usual is None else _words(usual.layout(name))
        layouts = (inside, _words(spec)) if name == "dst" else (_words(spec), inside)
        yield Reorder(
            name, *layouts, spec.nbytes, seconds[name] * 1e6, _EACH if usual else "each call"
        )


def _copies_around(planned: Planned) -> Iterator[Reorder]:
    # A row-major matrix is an image of channels last: the same memory.
    return iter(()) if planned.form.is_image else _copies(planned.primitive)


def _copies(primitive: Prepared) -> Iterator[Reorder]:
    """Give the copies of a call whose arrays are row-major."""
    for name in primitive.inputs:
        spec = primitive.layout(name)
        dense = TensorSpec.dense(spec.dims, spec.dtype)
        if spec.strides == dense.strides or not spec.size:
            continue
        array = empty(dense)
        array[...] = 0
        (us,) = medians_us(_COPIES, partial(in_layout, array, spec))
        yield Reorder(name, _words(dense), _words(spec), spec.nbytes, us, _EACH)


def _words(spec: TensorSpec) -> str:
    _, at, layout = spec.text().partition("@")
    return layout.replace("_", " ") if at else "row-major"
