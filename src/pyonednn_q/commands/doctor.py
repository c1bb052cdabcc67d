"""``pyonednn-q doctor``: which oneDNN is used, whether it works, and what to do if not.

The examination runs in a child process that writes down one fact after the other, so that a library
which crashes or hangs is a finding too. Judging the facts is a pure function.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pyonednn_q.examination import examine, judge

if TYPE_CHECKING:
    import argparse

__all__ = ["run"]

_ORDER = (
    *(
        "package",
        "python",
        "numpy",
        "extension",
        "searched",
        "library",
        "source",
        "onednn",
        "runtime",
    ),
    *("cpu", "isa", "vnni", "features", "threads", "self_check", "weights", "trial", "failure"),
)


def run(options: argparse.Namespace) -> int:
    """Print facts, verdict and advice; return 0 when an INT8 call works, else 1."""
    facts = examine()
    verdict = judge(facts)
    if options.json:
        print(json.dumps({**facts, "usable": verdict.usable, "advice": verdict.advice}, indent=2))
    else:
        for name in (name for name in _ORDER if name in facts):
            print(f"{name:>10}  " + facts[name].replace("\n", "\n" + " " * 12))
        print(f"{'verdict':>10}  {'usable' if verdict.usable else 'NOT usable'}")
        for line in verdict.advice:
            print(f"{'-':>10}  {line}")
    return 0 if verdict.usable else 1
