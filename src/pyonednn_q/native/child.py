"""Children: processes beside the same library; and the library's own log, asked of one.

Only the environment switches the log on, before the library is first used: the levels of the
run-time call, 0 to 2, have no refusals. The log goes to the standard output of the process. So a
child answers questions: no stream of the caller is redirected, output of other threads is kept, and
only questions cost anything.
"""

from __future__ import annotations

import functools
import json
import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from pyonednn_q.errors import Reasons
from pyonednn_q.native import library, runtime

if TYPE_CHECKING:
    from pyonednn_q.primitive.attr import Attr
    from pyonednn_q.primitive.problem import Problem

_TIMEOUT_S = 60


def environment() -> dict[str, str]:
    """Return the environment in which a process finds the same packages and the same library."""
    variables = dict(os.environ)
    variables[library.VARIABLE] = runtime.loaded().path
    variables["PYTHONPATH"] = os.pathsep.join(entry for entry in sys.path if entry)
    return variables


def interpreter() -> list[str]:
    """Return the words that start Python as this process was."""
    # Without site here, modules are found without it there: a finder of site's would come first.
    return [sys.executable, *(["-S"] if sys.flags.no_site else [])]


def log(code: str, question: bytes, levels: str) -> str:
    """Return the output of a child that runs `code` with `question` as its standard input.

    Parameters
    ----------
    code : str
        Python, to be run beside the same library at the same instruction set and thread count.
    question : bytes
        Standard input of the child.
    levels : str
        Levels of oneDNN's log, as in ``ONEDNN_VERBOSE``.
    """
    limit = {runtime.LIMIT_VARIABLES[0]: runtime.isa_limit() or ""}
    answer = subprocess.run(
        [*interpreter(), "-c", code],
        input=question,
        capture_output=True,
        timeout=_TIMEOUT_S,
        env=environment() | limit | {"ONEDNN_VERBOSE": levels},
        check=False,
    )
    return answer.stdout.decode(errors="replace")


def ending(code: str, question: bytes) -> str:
    """Return how a child ends that a signal or too long a time ends; nothing where it does not.

    Parameters
    ----------
    code, question
        Arguments of `log`.
    """
    limit = {runtime.LIMIT_VARIABLES[0]: runtime.isa_limit() or ""}
    try:
        answer = subprocess.run(
            [*interpreter(), "-c", code],
            input=question,
            capture_output=True,
            timeout=_TIMEOUT_S,
            env=environment() | limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no end within {_TIMEOUT_S} s"
    return signal.Signals(-answer.returncode).name if answer.returncode < 0 else ""


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
    return parse(log(_CHILD, question.encode(), "dispatch")) or NOTHING_LISTED


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
