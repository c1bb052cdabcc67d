"""Run attempts in a process of their own: a crash or a hang is told with its seed."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import resource
import signal
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.hostile.draw import attempt_of
from support.hostile.verdict import judge

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

MEMORY = 8 * 2**30  # bytes of addresses: what claims more fails at once instead of filling memory
CRASH_AT = "HOSTILE_CRASH_AT"  # environment: a seed to crash at, for the test of this file
SECONDS_EACH = 2.0  # far beyond what an attempt takes; a chunk that takes longer hangs


@dataclass
class Report:
    """What came of a chunk.

    outcomes: how often each outcome came, and for attempts with nothing wrong.
    ways: how often each way to be wrong was tried.
    wrong: what must not be, each with its seed.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    plain: Counter[str] = field(default_factory=Counter)
    ways: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, other: Report) -> None:
        """Take in another report."""
        self.outcomes += other.outcomes
        self.plain += other.plain
        self.ways += other.ways
        self.wrong += other.wrong


def one_operator(seed: int, report: Report) -> None:
    """Judge the attempt of a seed: a call of an operator."""
    attempt = attempt_of(seed)
    verdict = judge(attempt)
    report.outcomes[verdict.outcome] += 1
    report.ways.update(attempt.wrong)
    if not attempt.wrong:
        report.plain[verdict.outcome] += 1
    if not verdict.is_allowed:
        form = "functional" if attempt.functional else "prepared"
        what = ", ".join(attempt.wrong) or "nothing wrong with it"
        report.wrong.append(f"seed {seed}: {form} {attempt.kind}, {what}: {verdict.text}")


def run_chunk(
    seeds: range, trace: Path, one: Callable[[int, Report], None] = one_operator
) -> Report:
    """Judge the attempts of some seeds in a fresh process.

    trace: a file for what a crash says; the process works in a folder beside it.
    one: judges that of one seed.
    """
    context = multiprocessing.get_context("spawn")
    theirs, mine = context.Pipe()
    at = context.Value("q", seeds.start)
    process = context.Process(target=_work, args=(seeds, theirs, at, trace, one))
    process.start()
    theirs.close()
    report = Report()
    try:
        if not mine.poll(30.0 + SECONDS_EACH * len(seeds)):
            report.wrong.append(f"seed {at.value}: it hangs")
        else:
            report = mine.recv()
    except EOFError:
        process.join()
        text = trace.read_text() if trace.exists() else ""
        report.wrong.append(f"seed {at.value}: a crash, exit code {process.exitcode}\n{text}")
    finally:
        process.kill()
        process.join()
    return report


def _work(
    seeds: range,
    answer: Connection,
    at: Any,
    trace: Path,
    one: Callable[[int, Report], None],
) -> None:
    # Sanitizers reserve more addresses than this.
    if "LD_PRELOAD" not in os.environ:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    room = trace.with_name("room")
    room.mkdir(exist_ok=True)
    os.chdir(room)  # calls that write files write them there
    with trace.open("w") as file:
        faulthandler.enable(file)
        sys.stdout = sys.stderr
        report = Report()
        for seed in seeds:
            at.value = seed
            if os.environ.get(CRASH_AT) == str(seed):
                os.kill(os.getpid(), signal.SIGSEGV)
            one(seed, report)
        faulthandler.disable()
    answer.send(report)
