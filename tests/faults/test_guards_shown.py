"""Faults of oneDNN, shown: the library's wrong answer beside our right or refused one.

Each case names a row of the guard table and a level where the fault shows; it runs in processes
limited to that level, so that one machine shows all that it includes. The unguarded escape walks
the library's list to the first implementation that the row matches. Rows that this library version
or machine does not have are skipped by name.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from pyonednn_q.faults import guards
from pyonednn_q.native import runtime
from support import oracle, unguarded
from support.children import TWO_THREADS, child, run_child, threads
from support.fault import MEASURED, Fault, filled
from support.faults import FAULTS
from support.faults_hunted import ALL, HUNTED_FAULTS, multiplied, ragged
from support.faults_layouts import LAYOUT_FAULTS
from support.guard_cases_lowered import skipping
from support.isa import LIMIT_VARIABLE, reason_row_is_unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def at_level() -> Iterator[Callable[[str], Ask]]:
    """Give a process per level that lasts: nothing unguarded runs in it."""
    with ExitStack() as stack:
        children: dict[str, Ask] = {}

        def ask(level: str) -> Ask:
            if level not in children:
                children[level] = stack.enter_context(child({LIMIT_VARIABLE: level}))
            return children[level]

        yield ask


def is_wrong(fault: Fault, place: int, arrays: Any, values: Any, expected: oracle.Result) -> bool:
    """Whether the implementation at a place crashes, cannot be made, or computes it wrong."""
    work = (unguarded.result_at, place, fault.problem, fault.attr, arrays, values)
    # Some faults show only where memory held something else before, or holds it beside an array.
    for held in ("85", "90", "165"):
        environment = {LIMIT_VARIABLE: fault.level, "MALLOC_PERTURB_": held}
        environment |= threads(fault.threads)
        shown = run_child(*work, environment=environment)
        if shown.crashed or isinstance(shown.value, str):
            return True
        if not expected.accepts(shown.value).all():
            return True
    return False


@pytest.mark.parametrize(
    "fault", [*FAULTS, *HUNTED_FAULTS, *LAYOUT_FAULTS], ids=lambda fault: fault.text
)
def test_the_library_is_wrong_and_we_are_not(fault: Fault, at_level: Callable[[str], Ask]) -> None:
    guard = next(guard for guard in guards.GUARDS if guard.id == fault.row)
    ask = at_level(fault.level)
    facts = ask(runtime.facts)
    if fault.level != ALL:
        reason = reason_row_is_unavailable(facts.isa, fault.level)
        if reason is not None:
            pytest.skip(reason)
    if facts.version < guard.since or (guard.until and facts.version >= guard.until):
        pytest.skip(f"{fault.row}: not in oneDNN {facts.version}")
    if facts.version < fault.since:
        pytest.skip(f"{fault.row}: not shown by oneDNN {facts.version}")

    if (
        fault.threads > 2 and facts.runtime != "OMP"
    ):  # others have as many threads as there are cores
        pytest.skip(f"{fault.row}: {fault.threads} threads are OpenMP's here")

    # Between these, a row counts as holding until its fix is known: the fault need not show.
    is_measured = facts.version[:2] in MEASURED
    found = ask(unguarded.struck, fault.row, fault.problem, fault.attr)
    if found is None and (fault.level == ALL or not is_measured):
        pytest.skip(f"{fault.row}: none of its kernels at {facts.isa}")
    assert found is not None, f"{fault.row} matches nothing that is offered here"
    place, impl = found
    arrays, values = filled(fault)
    expected = oracle.run(fault.problem, fault.attr, arrays | values)
    assert is_wrong(fault, place, arrays, values, expected) or not is_measured, (
        f"{impl} of oneDNN {facts.version} at {facts.isa.text()} is right: "
        f"is {fault.row} still needed?"
    )

    loops = guard.impl in ("^ref", "^conv:any")  # such a row stands where nothing else is offered
    ours = ask(unguarded.guarded, fault.problem, fault.attr, arrays, values, loops)
    if ours.dst is None:
        assert fault.row in ours.rows, ours.text
        assert guard.remedy in ours.text
    else:
        assert expected.accepts(ours.dst).all(), ours.text
        assert place > 0 or any(fault.row in note for note in ours.notes)


def test_operands_go_wrong_behind_another_kernel() -> None:
    """The kernel takes what another left in mask registers: in a fresh process it may be right."""
    row, attr = "operand-in-avx2-vnni", multiplied(19)
    arrays, values = filled(Fault(row, ALL, ragged(19), attr))
    before = filled(Fault(row, ALL, ragged(17), multiplied(17)))
    with child({LIMIT_VARIABLE: ALL}) as ask:
        found = ask(unguarded.struck, row, ragged(19), attr)
        if found is None:
            pytest.skip(f"{row}: none of its kernels here")
        ask(unguarded.result_at, 0, ragged(17), multiplied(17), *before)
        dst = ask(unguarded.result_at, found[0], ragged(19), attr, arrays, values)
    assert not oracle.run(ragged(19), attr, arrays | values).accepts(dst).all()


def test_skipped_rows_go_wrong_where_a_buffer_was_used_before() -> None:
    """The first primitive of a process may be right; which of the later ones are not is chance."""
    fault = Fault("conv-rows-skipped", "AVX512_CORE_AMX", skipping())
    arrays, values = filled(fault)
    environment = {LIMIT_VARIABLE: fault.level, "MALLOC_PERTURB_": "165", **TWO_THREADS}
    expected = oracle.run(fault.problem, fault.attr, arrays | values)
    with child(environment) as ask:
        reason = reason_row_is_unavailable(ask(runtime.facts).isa, fault.level)
        if reason is not None:
            pytest.skip(reason)
        place = ask(unguarded.struck, fault.row, fault.problem, fault.attr)[0]
        work = (unguarded.result_at, place, fault.problem, fault.attr, arrays, values)
        right = [expected.accepts(ask(*work)).all() for _ in range(6)]
        ours = ask(unguarded.guarded, fault.problem, fault.attr, arrays, values, False)
    assert not all(right)
    assert expected.accepts(ours.dst).all()


def test_every_measured_row_is_shown() -> None:
    """Above, or for all numbers of s32 in test_whole_numbers."""
    measured = {guard.id for guard in guards.GUARDS if guard.source.startswith("measured")}
    shown = {fault.row for fault in (*FAULTS, *HUNTED_FAULTS, *LAYOUT_FAULTS)}
    elsewhere = {"s32-in-float32", "s32-maxima", "conv-rows-skipped"}
    assert shown | elsewhere == measured
