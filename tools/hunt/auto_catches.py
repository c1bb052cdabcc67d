"""How many of oneDNN's known faults self_check="auto" notices, with all guards taken out.

Two counts on each instruction set, which is a process of its own:

- reproductions: a problem for each row of the guard table (tests/support/faults*.py), on the
  implementation that the row is about;
- the hunt's problems on whatever a row strikes, drawn as `tools/hunt/hunt.py` draws them.

Each is computed in full, and compared with exact integers; those that are wrong are looked at as
"auto" does. What crashes, or cannot be made, is counted apart: there is nothing to look at.

    python tools/hunt/auto_catches.py --seconds 300              # all levels
    python tools/hunt/auto_catches.py --levels AVX2 --seed 5 --count 20000 --verbose
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[2] / "tests"
sys.path.insert(0, str(TESTS))

from hunt import LEVELS, POISON, available  # noqa: E402 - tests are found now

LIMIT = "ONEDNN_MAX_CPU_ISA"
LEAST = 0.95  # of what gives wrong values


@dataclass
class Counted:
    """What came of faults: by rows of the guard table, or by kinds of problems.

    Attributes
    ----------
    wrong, noticed, crashed : Counter
        Those that gave wrong values; of these, those that were noticed; and those that crash, hang
        or cannot be made.
    """

    wrong: Counter[str] = field(default_factory=Counter)
    noticed: Counter[str] = field(default_factory=Counter)
    crashed: Counter[str] = field(default_factory=Counter)

    def line(self) -> str:
        """Return the counts in a line."""
        wrong, noticed = self.wrong.total(), self.noticed.total()
        share = f"{noticed / wrong:.1%}" if wrong else "-"
        return f"{wrong} wrong, {noticed} noticed ({share}), {self.crashed.total()} without values"

    def missed(self) -> Iterator[str]:
        """Give the rows of which some are not noticed."""
        for row, count in sorted(self.wrong.items()):
            if self.noticed[row] < count:
                yield f"{row}: {self.noticed[row]} of {count}"


# --- reproductions --------------------------------------------------------------------------------


def reproductions(level: str) -> Counted:
    """Count the reproductions of a level."""
    from pyonednn_q.errors import Error
    from support import oracle, unguarded
    from support.children import TWO_THREADS, child
    from support.fault import filled
    from support.faults import FAULTS
    from support.faults_hunted import ALL, HUNTED_FAULTS
    from support.faults_layouts import LAYOUT_FAULTS

    counted = Counted()
    faults = [f for f in (*FAULTS, *HUNTED_FAULTS, *LAYOUT_FAULTS) if f.level in (level, ALL)]
    with ExitStack() as stack:
        ask: Any = None
        for fault in faults:
            arrays, values = filled(fault)
            expected = oracle.run(fault.problem, fault.attr, arrays | values)
            for held in ("85", "90", "165"):
                environment = {LIMIT: level, "MALLOC_PERTURB_": held, **TWO_THREADS}
                ask = stack.enter_context(child(environment))
                try:
                    found = ask(unguarded.struck, fault.row, fault.problem, fault.attr)
                    if found is None:
                        break
                    work = (found[0], fault.problem, fault.attr, arrays, values)
                    dst = ask(unguarded.result_at, *work)
                    if isinstance(dst, str):
                        counted.crashed[fault.row] += 1
                        break
                    if expected.accepts(dst).all():
                        continue
                    counted.wrong[fault.row] += 1
                    stack.close()  # what a kernel writes elsewhere may lie where "auto" looks
                    ask = stack.enter_context(child(environment))
                    counted.noticed[fault.row] += bool(ask(unguarded.first_looked_at, *work))
                    break
                except (BrokenProcessPool, TimeoutError, Error):
                    counted.crashed[fault.row] += 1
                    break
                finally:
                    stack.close()
    return counted


# --- the hunt's problems --------------------------------------------------------------------------


def serve(seed: int, first: int, count: int, seconds: float) -> None:
    """Compute problems that guards strike, without guards, and say what came of them."""
    import numpy as np

    from hunt_run import _drawn, as_problem, difference
    from pyonednn_q.acc.pairs import pair_overflow
    from pyonednn_q.errors import Error
    from pyonednn_q.faults import guards
    from pyonednn_q.native import runtime
    from support import unguarded

    end = time.monotonic() + seconds
    for number in range(first, first + count):
        if time.monotonic() > end:
            _say(done=number)
            return
        rng = np.random.default_rng([seed, number])
        sample, right = _drawn(rng)
        rng.random()  # where the hunt may take an operator
        try:
            problem, attr, arrays = as_problem(rng, sample)
            tensors = problem.tensors
            if any(tensors[name].strides is None for name in ("src", "dst")):
                continue
            values = {name: arrays[name] for name in attr.names}
            attr.check(problem)
            for place, (_, impl) in enumerate(unguarded.candidates(problem, attr)):
                rows = guards.matching(problem, attr, runtime.facts(), impl)
                # Far down a list are kernels without VNNI, whose sums may saturate: as declared.
                if not rows or (
                    "wei" in arrays
                    and pair_overflow(problem, arrays["wei"], runtime.isa(), impl=impl)
                ):
                    continue
                row = rows[0].id
                _say(begin=number, row=row)
                dst = unguarded.result_at(place, problem, attr, arrays, values)
                if isinstance(dst, str):
                    _say(crashed=row)
                elif difference(dst, right):
                    what = unguarded.first_looked_at(place, problem, attr, arrays, values)
                    text = f"{number} {impl} {problem.text()} {attr.text()}"
                    _say(wrong=row, noticed=bool(what), text=text, how=difference(dst, right))
        except Error:
            continue
    _say(done=first + count)


def _say(**what: object) -> None:
    print(json.dumps(what), flush=True)


def hunted(level: str, seed: int, count: int, seconds: float, *, verbose: bool) -> Counted:
    """Count the hunt's problems of a level."""
    counted = Counted()
    at, end = 0, time.monotonic() + seconds
    while at < count and (left := end - time.monotonic()) > 0:
        words = ("--child", seed, at, count - at, left)
        command = [sys.executable, __file__, *map(str, words)]
        environment = os.environ | POISON | {LIMIT: level}
        row, done = "", False
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as child:
            assert child.stdout is not None
            for line in child.stdout:
                said = json.loads(line)
                if "begin" in said:
                    at, row = said["begin"] + 1, said["row"]
                elif "crashed" in said:
                    counted.crashed[said["crashed"]] += 1
                elif "wrong" in said:
                    counted.wrong[said["wrong"]] += 1
                    counted.noticed[said["wrong"]] += said["noticed"]
                    if verbose and not said["noticed"]:
                        print(f"    not noticed: {said['wrong']} {said['text']}: {said['how']}")
                else:
                    at, done = said["done"], True
        if done:
            break
        counted.crashed[row] += 1
    return counted


def main() -> int:
    """Count; return 1 if too few are noticed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--levels", nargs="+", default=LEVELS, choices=LEVELS)
    parser.add_argument("--seed", type=int, default=int(time.strftime("%Y%j")), help="of the day")
    parser.add_argument("--count", type=int, default=10**9, help="problems drawn on each level")
    parser.add_argument("--seconds", type=float, default=300.0, help="of drawing, in all")
    parser.add_argument("--verbose", action="store_true", help="print what is not noticed")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child is not None:
        seed, first, count, seconds = asked.child
        serve(int(seed), int(first), int(count), float(seconds))
        return 0
    levels = available(asked.levels)
    total = Counted()
    for level in levels:
        seconds = asked.seconds / len(levels)
        drawn = hunted(level, asked.seed, asked.count, seconds, verbose=asked.verbose)
        for name, counted in (("reproductions", reproductions(level)), ("hunt", drawn)):
            print(f"{level}, {name}: {counted.line()}", flush=True)
            for missed in counted.missed():
                print(f"    {missed}")
            for part in ("wrong", "noticed", "crashed"):
                getattr(total, part).update(getattr(counted, part))
    print(f"all: {total.line()}")
    return int(total.noticed.total() < LEAST * total.wrong.total())


if __name__ == "__main__":
    raise SystemExit(main())
