"""Why the library refused: one reason an implementation, from its own dispatch log."""

from __future__ import annotations

import functools
import json
import re
from typing import TYPE_CHECKING

from pyonednn_q.native import child

if TYPE_CHECKING:
    from pyonednn_q.primitive.attr import Attr
    from pyonednn_q.primitive.problem import Problem

Reasons = tuple[tuple[str, str], ...]

_DISPATCH = re.compile(r"^onednn_verbose,(?:v1,)?(?:primitive,)?create:dispatch,(?P<rest>.*)$")
_WHERE = re.compile(r"^(?:\./)?(?P<file>[\w./-]+\.[ch]pp):\d+$")
_LONG = 9  # fields before the reason: component, engine, primitive, implementation, ..., problem

NOTHING_LISTED: Reasons = (("oneDNN", "no implementation is listed for these data types"),)

_CHILD = """
import json, sys
from pyonednn_q.native import runtime
problem, attr = json.loads(sys.stdin.read())
def frozen(value):
    return tuple(map(frozen, value)) if isinstance(value, list) else value
problem = (problem[0], {k: frozen(v) for k, v in problem[1].items()},
           {k: frozen(v) for k, v in problem[2].items()})
try:
    candidate = runtime.core.Candidate(problem, {k: frozen(v) for k, v in attr.items()})
    while candidate.next():
        pass
except Exception:
    pass
"""


def why(problem: Problem, attr: Attr) -> Reasons:
    """Return (implementation, reason) of every implementation that refused, in the library's order.

    Takes a few tenths of a second the first time; answers are kept.
    """
    return _ask(json.dumps([problem.boundary(), attr.boundary()]))


@functools.lru_cache(maxsize=256)
def _ask(question: str) -> Reasons:
    return parse(child.log(_CHILD, question.encode(), "dispatch")) or NOTHING_LISTED


def parse(log: str) -> Reasons:
    """Return the (implementation, reason) pairs of a dispatch log.

    Lines come in two forms, after ``onednn_verbose,v1,primitive,create:dispatch,``: the long one
    names primitive, engine, implementation and problem before the reason, the short one only a
    component; both end with the source line that refused.

    Examples
    --------
    >>> parse("onednn_verbose,v1,primitive,create:dispatch,brgemm_matmul,no such isa,src/x.cpp:12")
    (('brgemm_matmul', 'no such isa'),)
    """
    reasons: dict[tuple[str, str], None] = {}
    for line in log.splitlines():
        match = _DISPATCH.match(line.strip())
        if match is None:
            continue
        fields = match["rest"].split(",")
        if _WHERE.match(fields[-1]):
            fields.pop()
        long = len(fields) > _LONG and fields[1] == "cpu"
        name = fields[3] if long else fields[0]
        reason = ",".join(fields[_LONG:] if long else fields[1:])
        reasons[name, reason] = None
    return tuple(reasons)
