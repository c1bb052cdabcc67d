"""The guard table: what oneDNN accepts and computes wrong, or crashes on.

Rows are data. They were measured on 3.7.2 (OpenMP) and 3.13.2 (SYCL) at six instruction set levels
against a float64 reference, every implementation that the library offers and not only its first;
a row's `source` says what failed. A few were read instead, in release notes and sources of versions
that were not run. Where the extent of a fault is not known, rows err on the side of matching:

- versions between the two measured ones have the faults of both, unless the fix is known;
- versions after 3.13 keep those of 3.13;
- an implementation that hides its name matches every pattern.

A fault that cannot be asked for has no row: the select post-op (with a scalar operand it always
takes one branch on AMX, 3.13) is not among `BINARY_ALGS`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from pyonednn_q.faults.guards.convolution import CONVOLUTION_GUARDS
from pyonednn_q.faults.guards.deconvolution import DECONVOLUTION_GUARDS
from pyonednn_q.faults.guards.dense import DENSE_GUARDS
from pyonednn_q.faults.guards.guard import Guard, traits
from pyonednn_q.faults.guards.layer_layouts import LAYER_LAYOUT_GUARDS
from pyonednn_q.faults.guards.layouts import LAYOUT_GUARDS
from pyonednn_q.faults.guards.lowered import LOWERED_GUARDS
from pyonednn_q.faults.guards.plain import PLAIN_GUARDS
from pyonednn_q.faults.guards.post_ops import POST_OP_GUARDS

if TYPE_CHECKING:
    from pyonednn_q.primitive.attr import Attr
    from pyonednn_q.primitive.isa import Facts
    from pyonednn_q.primitive.problem import Problem

__all__ = ["GUARDS", "Guard", "matching"]

GUARDS: tuple[Guard, ...] = (
    *DENSE_GUARDS,
    *CONVOLUTION_GUARDS,
    *LOWERED_GUARDS,
    *DECONVOLUTION_GUARDS,
    *POST_OP_GUARDS,
    *PLAIN_GUARDS,
    *LAYOUT_GUARDS,
    *LAYER_LAYOUT_GUARDS,
)


def matching(problem: Problem, attr: Attr, facts: Facts | None, impl: str) -> tuple[Guard, ...]:
    """Return the rows that forbid an implementation for a problem.

    Parameters
    ----------
    problem : Problem
        The problem to compute.
    attr : Attr
        Scales, zero points and post-ops of the problem.
    facts : Facts or None
        Version and instruction set. None: of any process.
    impl : str
        The implementation's name. Empty matches whatever any implementation would.

    Returns
    -------
    tuple of Guard
        Empty: nothing wrong is known, and the implementation may run.
    """
    rows = _rows_in(facts, problem.kind)
    has = traits(problem, attr)
    return tuple(guard for guard in rows if guard.strikes(problem, attr, impl, has))


@lru_cache(maxsize=64)
def _rows_in(facts: Facts | None, kind: str) -> tuple[Guard, ...]:
    """Return the rows of a process and a kind of problems: there are few of either."""
    return tuple(guard for guard in GUARDS if guard.is_in(facts, kind))
