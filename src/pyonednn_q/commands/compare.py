"""``pyonednn-q compare A.json B.json``: what became slower, what faster, for people and for CI.

A ratio counts when its interval leaves out 1, and as a regression when all of it is beyond the
threshold: two processes differ by a few per cent, because memory lies elsewhere.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pyonednn_q.argument import content
from pyonednn_q.bench.bench_run import Run
from pyonednn_q.bench.comparison import compare, differences, lost, plain, text
from pyonednn_q.errors import ArgumentError

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

__all__ = ["run"]

_REGRESSED = 1


def run(options: argparse.Namespace) -> int:
    """Run ``pyonednn-q compare``: 1 when a row became slower or is refused."""
    before, after = (_read(path) for path in (options.before, options.after))
    comparisons = compare(before, after, threshold=options.threshold, confidence=options.confidence)
    gone = lost(before, after)
    if not comparisons and not gone:
        raise ArgumentError("B.json", str(options.after), f"rows that {options.before} has too")
    told = (comparisons, gone, differences(before, after), options.threshold)
    print(json.dumps(plain(*told), indent=1) if options.json else text(*told))
    return _REGRESSED if gone or any(c.verdict == "slower" for c in comparisons) else 0


def _read(path: Path) -> Run:
    try:
        return Run.from_json(content("file", path))
    except OSError as error:
        raise ArgumentError("file", str(path), f"a file to read ({error.strerror})") from None
