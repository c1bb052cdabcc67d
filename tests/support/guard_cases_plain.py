"""What the guard table must match among primitives without weights, as `guard_cases` has it."""

from __future__ import annotations

from typing import Any

from pyonednn_q.primitive.attr import Attr
from pyonednn_q.primitive.problem import Problem
from support.guard_borders.plain import BORDERS
from support.guard_cases import AVX2, NEW, OLD, VNNI

ANYWHERE = ((OLD, AVX2), (NEW, VNNI))
FLOATS, MAXIMA, GAPS, LAYOUTS = (border[1] for border in BORDERS)

PLAIN_WRONG: list[tuple[str, Problem, Attr, Any, str, str]] = (
    [
        (row, problem, attr, version, isa, "ref:any")
        for version, isa in ANYWHERE
        for row, cases in (("s32-in-float32", FLOATS), ("s32-maxima", MAXIMA))
        for problem, attr in cases
    ]
    + [
        ("reorder-of-gaps-alike", problem, attr, OLD, AVX2, "jit_direct_copy:uni")
        for problem, attr in GAPS
    ]
    + [
        ("binary-of-other-layouts", problem, attr, version, isa, "jit:uni")
        for version, isa in ANYWHERE
        for problem, attr in LAYOUTS
    ]
)
PLAIN_RIGHT: list[tuple[Problem, Attr, Any, str, str]] = (
    [
        (problem, attr, version, isa, "jit_int:avx2")
        for version, isa in ANYWHERE
        for problem, attr in MAXIMA
    ]
    + [
        (problem, attr, *where)
        for problem, attr in GAPS
        for where in ((NEW, AVX2, "jit_direct_copy:uni"), (OLD, AVX2, "jit:uni"))
    ]
    + [
        (problem, attr, version, isa, "ref:any")
        for version, isa in ANYWHERE
        for problem, attr in LAYOUTS
    ]
)
