"""A child process with the library's log switched on.

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

__all__ = ["log"]

_TIMEOUT_S = 60


def log(code: str, question: bytes, levels: str) -> str:
    """Return what a child writes that runs `code` with `question` as its standard input.

    Parameters
    ----------
    code : str
        Python, to be run beside the same library at the same instruction set and thread count.
    question : bytes
        What it reads.
    levels : str
        As in ``ONEDNN_VERBOSE``.
    """
    environment = dict(os.environ)
    environment["ONEDNN_VERBOSE"] = levels
    environment[runtime.LIMIT_VARIABLES[0]] = runtime.isa_limit() or ""
    environment[library.VARIABLE] = runtime.loaded().path
    environment["PYTHONPATH"] = os.pathsep.join(entry for entry in sys.path if entry)
    # Without site here, modules are found without it there: a finder of site's would come first.
    flags = ["-S"] if sys.flags.no_site else []
    answer = subprocess.run(
        [sys.executable, *flags, "-c", code],
        input=question,
        capture_output=True,
        timeout=_TIMEOUT_S,
        env=environment,
        check=False,
    )
    return answer.stdout.decode(errors="replace")
