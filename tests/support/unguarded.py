"""The raw escape: what the library computes when nobody stops it. Tests only.

Beside it the guarded way, in words that a child process can send back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hunt_oracle import amid_other_bytes
from pyonednn_q import native
from pyonednn_q.errors import (
    KnownWrongError,
    OneDNNError,
    ReferenceKernelError,
    SelfCheckError,
    UnsupportedError,
)
from pyonednn_q.faults import guards
from pyonednn_q.native import Prepared, first_run, preparation, runtime, trial
from pyonednn_q.native import arrays as native_arrays
from pyonednn_q.native.drawn import NoModelHereError
from pyonednn_q.native.selection import Selection, first_candidate, named
from pyonednn_q.primitive.isa import classify

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from pyonednn_q.primitive.attr import Attr
    from pyonednn_q.primitive.problem import Problem

    Arrays = Mapping[str, NDArray[Any]]


def results(
    problem: Problem,
    attr: Attr,
    arrays: Arrays,
    values: Arrays,
    wanted: Callable[[str], bool] = lambda _: True,
) -> Iterator[tuple[str, NDArray[Any]]]:
    """Run every implementation the library offers, in its order, if wanted; give names and dst."""
    for candidate, impl in candidates(problem, attr):
        if wanted(impl):
            yield impl, _run(candidate, impl, problem, attr, arrays, values)


def candidates(problem: Problem, attr: Attr) -> Iterator[tuple[Any, str]]:
    """Give the library's list: its candidate, which steps on, and each name.

    An implementation of which the library's cache holds a primitive is listed twice; here once, so
    that places stay the same when some have run.
    """
    candidate, before = first_candidate(problem, attr), ""
    while True:
        if (impl := named(candidate)) != before:
            yield candidate, impl
        before = impl
        if not candidate.next():
            return


def struck(row: str, problem: Problem, attr: Attr) -> tuple[int, str] | None:
    """Return place and name of the first implementation that a row of the guard table matches.

    None where no implementation takes the problem, or none of those that do is meant.
    """
    guard = next(guard for guard in guards.GUARDS if guard.id == row)
    try:
        for place, (_, impl) in enumerate(candidates(problem, attr)):
            if guard.matches(problem, attr, runtime.facts(), impl):
                return place, impl
    except UnsupportedError:
        pass
    return None


def result_at(
    place: int, problem: Problem, attr: Attr, arrays: Arrays, values: Arrays
) -> NDArray[Any] | str:
    """Run the implementation at a place of the list; return dst, or why there is none."""
    for at, (candidate, impl) in enumerate(candidates(problem, attr)):
        if at == place:
            try:
                return _run(candidate, impl, problem, attr, arrays, values)
            except OneDNNError as error:
                return str(error)
    msg = f"no implementation at {place}"
    raise IndexError(msg)


def _run(
    candidate: Any, impl: str, problem: Problem, attr: Attr, arrays: Arrays, values: Arrays
) -> NDArray[Any]:
    selection = Selection(candidate, impl, "unguarded", ())
    bound = preparation.bind(
        selection, problem, attr, values, arrays.get("wei"), arrays.get("bias")
    )
    inputs = _inputs(problem)
    specs = {name: preparation.spec_of(selection, name) for name in (*inputs, "dst")}
    core = runtime.core.Prepared(candidate, [*inputs, "dst"], bound)
    dst = native_arrays.empty(specs["dst"])
    # A sum reads dst. Beyond the end of a short array lies whatever was there.
    dst[...] = arrays.get("dst", np.zeros((), dst.dtype))
    placed = (native_arrays.in_layout(arrays[name], specs[name]) for name in inputs)
    core.run(*map(amid_other_bytes, placed), dst)
    return np.array(dst)


def _inputs(problem: Problem) -> list[str]:
    return [name for name in problem.tensors if name not in ("wei", "bias", "dst")]


@dataclass(frozen=True, slots=True)
class Guarded:
    """What comes of it through the guards: dst of a trusted implementation, or a refusal."""

    dst: NDArray[Any] | None
    text: str
    notes: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()


def guarded(
    problem: Problem,
    attr: Attr,
    arrays: Arrays,
    values: Arrays,
    allow_reference: bool = False,
) -> Guarded:
    """Prepare and run a problem as a caller would."""
    wei, bias = arrays.get("wei"), arrays.get("bias")
    try:
        call = native.prepare(
            problem, attr, wei=wei, bias=bias, values=values, allow_reference=allow_reference
        )
    except KnownWrongError as error:
        return Guarded(None, str(error), rows=tuple(error.guards))
    except ReferenceKernelError as error:
        return Guarded(None, str(error))
    out = call.empty()
    out[...] = arrays.get("dst", np.zeros((), out.dtype))
    inputs = (arrays[name] for name in _inputs(problem))
    return Guarded(np.array(call(*inputs, out=out)), call.describe(), call.notes)


def self_checked(place: int, problem: Problem, attr: Attr, arrays: Arrays, values: Arrays) -> str:
    """Let `self_check` judge the implementation at a place of the list; return what is raised."""
    for at, (candidate, impl) in enumerate(candidates(problem, attr)):
        if at == place:
            selection = Selection(candidate, impl, classify(impl, problem.kind), ())
            try:
                trial.try_out(
                    _prepared(selection, problem, attr, arrays, values),
                    arrays.get("wei"),
                    arrays.get("bias"),
                    values,
                )
            except (SelfCheckError, OneDNNError) as error:
                return str(error)
    return ""


def _prepared(
    selection: Selection, problem: Problem, attr: Attr, arrays: Arrays, values: Arrays
) -> Prepared:
    wei, bias = arrays.get("wei"), arrays.get("bias")
    bound = preparation.bind(selection, problem, attr, values, wei, bias)
    specs = {name: preparation.spec_of(selection, name) for name in ("src", "dst")}
    core = runtime.core.Prepared(selection.candidate, ["src", "dst"], bound)
    return Prepared(problem, attr, selection, ("src",), bound, specs, core, ())


def first_looked_at(
    place: int, problem: Problem, attr: Attr, arrays: Arrays, values: Arrays
) -> str:
    """Look at a sample of what the implementation at a place gives, as self_check="auto" does."""
    for at, (candidate, impl) in enumerate(candidates(problem, attr)):
        if at == place:
            wei, bias = arrays.get("wei"), arrays.get("bias")
            selection = Selection(candidate, impl, classify(impl, problem.kind), ())
            try:
                bound = preparation.bind(selection, problem, attr, values, wei, bias)
                inputs = _inputs(problem)
                specs = {name: preparation.spec_of(selection, name) for name in (*inputs, "dst")}
                core = runtime.core.Prepared(candidate, [*inputs, "dst"], bound)
                made = Prepared(problem, attr, selection, tuple(inputs), bound, specs, core, ())
                return first_run.looked_at(made, wei, bias, values)
            except OneDNNError as error:
                return str(error)
            except NoModelHereError:
                return ""
    msg = f"no implementation at {place}"
    raise IndexError(msg)
