"""Selection: which implementation runs.

oneDNN offers implementations in its own order of preference and says nothing when the first is
wrong (the guard table) or thousands of times slower than the second (reference loops). This walks
its list.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from pyonednn_q.errors import (
    ArgumentError,
    Error,
    KnownWrongError,
    OneDNNError,
    OutOfMemoryError,
    Reasons,
    ReferenceKernelError,
    ShapeError,
    UnsupportedError,
)
from pyonednn_q.faults import guards
from pyonednn_q.faults.variants import nearest
from pyonednn_q.native import child, library, runtime
from pyonednn_q.primitive.attr import Attr
from pyonednn_q.primitive.convolution import DeconvProblem
from pyonednn_q.primitive.isa import classify
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from pyonednn_q._core import Candidate
    from pyonednn_q.primitive.problem import Problem

OUT_OF_MEMORY = "out_of_memory"  # a status of the library
_LONGEST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Skipped:
    """An implementation that was offered and not taken."""

    impl: str
    why: str
    guards: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"passed over {self.impl}: {self.why}"


@dataclass(frozen=True, slots=True)
class Offer:
    """An implementation of the library's list, and what the guard table says of it."""

    impl: str
    kind: str
    guards: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Selection:
    """The implementation taken and those passed over before it."""

    candidate: Candidate
    impl: str
    kind: str
    skipped: tuple[Skipped, ...]


def first_candidate(problem: Problem, attr: Attr) -> Candidate:
    """Return the library's first candidate, with errors that know the problem.

    Raises
    ------
    ShapeError
        A dimension beyond 32 bits.
    UnsupportedError
        No implementation takes the problem; the reasons are asked for when they are read.
    LibraryError
        The library finds no CPU: see `library.no_engine`.
    OneDNNError
        The library refused for another cause (bad arguments, memory).
    """
    for name, spec in problem.tensors.items():
        # Where oneDNN counts in 32 bits, larger ones divide by zero or never return.
        if max(spec.dims) > _LONGEST:
            raise ShapeError(name, str(spec.dims), f"dimensions up to {_LONGEST}")
    for name in ("stride", "dilation", "padding_lo", "padding_hi"):
        if max(getattr(problem, name, ()), default=0) > _LONGEST:
            raise ShapeError(name, str(getattr(problem, name)), f"values up to {_LONGEST}")
    try:
        return runtime.core.Candidate(problem.boundary(), attr.boundary())
    except UnsupportedError as error:
        raise UnsupportedError(
            error.status,
            error.call,
            _text(problem, attr),
            explain=partial(child.why, problem, attr),
            suggest=partial(nearest, problem, attr, _runs),
        ) from None
    except OneDNNError as error:
        if error.call == "dnnl_engine_create":
            raise library.no_engine(error.status) from None
        kind = OutOfMemoryError if error.status == OUT_OF_MEMORY else OneDNNError
        raise kind(error.status, error.call, _text(problem, attr), error.detail) from None


@contextmanager
def memory_for(problem: Problem, attr: Attr) -> Iterator[None]:
    """Say what was asked for where there is no memory for it.

    Raises
    ------
    OutOfMemoryError
        Instead of any `MemoryError`.
    """
    try:
        yield
    except (MemoryError, OneDNNError) as error:
        status = error.status if isinstance(error, OneDNNError) else OUT_OF_MEMORY
        if status != OUT_OF_MEMORY:
            raise
        call = error.call if isinstance(error, OneDNNError) else ""
        sizes = (f"{name} of {spec.nbytes:,} bytes" for name, spec in problem.tensors.items())
        text = _text(problem, attr)
        raise OutOfMemoryError(OUT_OF_MEMORY, call, text, ", ".join(sizes)) from error


def implementations(problem: Problem, attr: Attr | None = None) -> tuple[Offer, ...]:
    """Return every implementation the library offers, in its order of preference.

    Parameters
    ----------
    problem : Problem
        Problem to compute.
    attr : Attr, optional
        Attributes of the primitive. None: no attributes.

    Raises
    ------
    UnsupportedError
        The library offers no implementation.
    """
    attr = attr if attr is not None else Attr()
    offers = []
    candidate = first_candidate(problem, attr)
    while True:
        impl = named(candidate)
        rows = guards.matching(problem, attr, runtime.facts(), impl)
        offers.append(Offer(impl, classify(impl, problem.kind), tuple(guard.id for guard in rows)))
        if not candidate.next():
            return tuple(offers)


def named(candidate: Candidate) -> str:
    """Return the candidate's name, stepping on while it hides it.

    A descriptor served from the library's cache can come without its name; those behind it are the
    same implementation again, and one of them is named.
    """
    while not candidate.impl and candidate.next():
        pass
    return str(candidate.impl)


def select(
    problem: Problem,
    attr: Attr,
    *,
    allow_reference: bool = False,
    implementation: str | None = None,
    passed: Mapping[str, str] = MappingProxyType({}),
    any_speed: bool = False,
) -> Selection:
    """Return the first implementation that may be trusted, or that of a name if it may be.

    Those in `passed` are passed over, for the reasons that are there. So are slow loops where
    something else stands behind them, unless any speed will do.

    Raises
    ------
    ArgumentError
        No implementation of that name is offered.
    UnsupportedError
        No implementation takes the problem at all.
    KnownWrongError
        Every implementation that takes it computes it wrong, or only reference loops are left
        beside those that do.
    ReferenceKernelError
        Only reference loops take it and `allow_reference` is false.
    """
    candidate = first_candidate(problem, attr)
    skipped: list[Skipped] = []
    while True:
        impl = named(candidate)
        kind = classify(impl, problem.kind)
        matched = guards.matching(problem, attr, runtime.facts(), impl)
        slow = "" if any_speed or implementation else slow_loop(problem, impl)
        if matched:
            why = "; ".join(f"{guard.id}: {guard.effect}" for guard in matched)
            skipped.append(Skipped(impl, why, tuple(guard.id for guard in matched)))
        elif impl in passed:
            skipped.append(Skipped(impl, passed[impl]))
        elif kind == "reference" and not (allow_reference and not _was_slow(problem, skipped)):
            skipped.append(Skipped(impl, "a reference loop, up to 80 000 times slower"))
        elif implementation not in {None, impl}:
            skipped.append(Skipped(impl, f"{implementation} was asked for"))
        elif slow or (kind == "gemm" and not any_speed and _was_slow(problem, skipped)):
            why = slow or "loops over gemm, no faster than what was passed over"
            skipped.append(Skipped(impl, why))
        else:
            return Selection(candidate, impl, kind, tuple(skipped))
        if not candidate.next():
            break
    names = [entry.impl for entry in skipped]
    if implementation not in {None, *names}:
        raise ArgumentError("implementation", shown(implementation), f"one of {names}")
    if _was_slow(problem, skipped):
        return select(problem, attr, allow_reference=allow_reference, passed=passed, any_speed=True)
    raise _nothing_left(problem, attr, tuple(skipped))


def _was_slow(problem: Problem, skipped: Collection[Skipped]) -> bool:
    """Tell whether one was passed over for its speed alone: better than a reference loop."""
    return any(entry.why == slow_loop(problem, entry.impl) for entry in skipped)


def slow_loop(problem: Problem, impl: str) -> str:
    """Return why an implementation takes many times what others do; empty where it does not.

    The library offers some of these before, or instead of, generated code for the same problem.
    """
    if isinstance(problem, DeconvProblem) and problem.is_depthwise and "brgconv_strided" in impl:
        return "loops over channels here, many times slower than what stands behind it"
    return ""


def _nothing_left(problem: Problem, attr: Attr, skipped: tuple[Skipped, ...]) -> UnsupportedError:
    text = _text(problem, attr)
    rows = tuple(dict.fromkeys(row for entry in skipped for row in entry.guards))
    explain = partial(_reasons, problem, attr, skipped)
    suggest = partial(nearest, problem, attr, _runs)
    call = "choosing an implementation"
    if not rows:
        detail = "only reference loops take it; pass allow_reference=True to run one all the same"
        return ReferenceKernelError("refused", call, text, detail, explain=explain, suggest=suggest)
    of_rows = (guard.remedy for guard in guards.GUARDS if guard.id in rows)
    remedies = "; ".join(dict.fromkeys(of_rows))
    detail = f"oneDNN is known to compute this wrong ({', '.join(rows)}); instead: {remedies}"
    return KnownWrongError(
        "refused", call, text, detail, guards=rows, explain=explain, suggest=suggest
    )


def _text(problem: Problem, attr: Attr) -> str:
    """Return what was asked for, for a message."""
    return f"{problem.text()} {attr.text()}".rstrip()


def _runs(problem: Problem, attr: Attr) -> str | None:
    """Return the implementation that would run, or ``None``."""
    try:
        attr.check(problem)
        return select(problem, attr).impl
    except Error:
        return None


def _reasons(problem: Problem, attr: Attr, skipped: tuple[Skipped, ...]) -> Reasons:
    return tuple((entry.impl, entry.why) for entry in skipped) + child.why(problem, attr)
