"""Children: processes beside the same library; and one with the library's log switched on.

The log can only be switched on by the environment before the library is first used (the run-time
call knows the levels 0 to 2, none of which says why anything was refused) and it goes to the
standard output of the process. So questions are put to a child: nothing of the caller's is
redirected, no other thread's output can be lost, and who never asks never pays.
"""

from __future__ import annotations

import os
import subprocess
import sys

from pyonednn_q.native import library, runtime

__all__ = ["environment", "interpreter", "log"]

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
    """Return what a child writes that runs `code` with `question` as its standard input.

    Parameters
    ----------
    code : str
        Python, to be run beside the same library at the same instruction set and thread count.
    question : bytes
        Standard input of the child.
    levels : str
        What oneDNN logs, as in ``ONEDNN_VERBOSE``.
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
