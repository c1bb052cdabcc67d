"""Hunt for wrong answers: odd shapes on purpose, exact integers, freed memory poisoned.

Every problem is drawn from a seed and its number, computed as callers would (through the guard
table: as a prepared primitive, on the first implementation or on another one, or as an operator),
and compared bit by bit with exact integers. With --plain it is the primitives without sums of
products instead, in any layout, where bytes beside the result count, too. Each instruction set has
processes of its own, one for some thousand problems, of one to 16 threads; one that crashes or
hangs is a finding too, and the next goes on behind it.

    python tools/hunt/hunt.py --seconds 300                  # all levels, seed of the day
    python tools/hunt/hunt.py --levels AVX2 --count 20000 --seed 7 --results avx2.json
    python tools/hunt/hunt.py --levels AVX2 --seed 7 --only 123      # one problem again
    python tools/hunt/hunt.py --region volumes --seconds 60          # of tools/hunt/hunt_regions.py
    python tools/hunt/hunt.py --plain --seconds 60
    python tools/hunt/hunt.py --plain --ignore sum-into-gaps --count 40000   # what a row guards
    python tools/hunt/hunt.py --page *.json > docs/reference/hunt.md
"""

from __future__ import annotations

import argparse
import json
import os
import select
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from hunt_page import page
from hunt_regions import REGIONS

# As ONEDNN_MAX_CPU_ISA has them; FP16 and AMX under the names that AVX10 gave them.
LEVELS = (
    "SSE41",
    "AVX2",
    "AVX2_VNNI",
    "AVX2_VNNI_2",
    "AVX512_CORE",
    "AVX512_CORE_VNNI",
    "AVX512_CORE_BF16",
    "AVX10_1_512",
    "AVX512_CORE_AMX",
    "AVX10_1_512_AMX_FP16",
    "AVX10_2_512",
    "AVX10_2_512_AMX_2",
    "ALL",
)
POISON = {"MALLOC_PERTURB_": "165", "OPENBLAS_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
THREADS = (1, 2, 4, 16)
_OF_ONE_CHILD = 5000  # problems
_CPUINFO = Path("/proc/cpuinfo")
_FEATURES = (
    "avx_vnni",
    "avx512_vnni",
    "avx512vbmi",
    "avx512_bf16",
    "avx512_fp16",
    "amx_int8",
    "amx_bf16",
    "amx_fp16",
)
_HANGS_AFTER = 300.0  # seconds
_TELLS_EACH = 5.0
_ENOUGH = 100  # findings


@dataclass
class Tally:
    """What came of the problems of one level.

    Attributes
    ----------
    level, isa : str
        The limit that was asked for, and the instruction set that it gave.
    plain : bool
        Whether problems are those without sums of products.
    ignored : str
        A row of the guard table that did not count; then only problems that it matches ran.
    onednn : str
        Version and runtime.
    seed, first, done : int
        Problems `first` to `first` + `done` of that seed.
    ran, refused : Counter
        How many, by kind and implementation, and by kind and reason.
    findings : list of str
        Wrong answers, crashes and hangs, each with its number.
    features : str
        What the processor has of those that decide which code runs, whatever the limit.
    region : str
        What shapes are of; empty: of all kinds.
    threads : int
        Of the child that runs, or of all: 0 asks for another number in each.
    """

    level: str
    seed: int
    first: int
    plain: bool = False
    ignored: str = ""
    isa: str = ""
    onednn: str = ""
    done: int = 0
    ran: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    features: str = ""
    region: str = ""
    threads: int = 0

    def take(self, said: dict[str, Any]) -> None:
        """Add what a child said."""
        if "isa" in said:
            self.isa, self.onednn, self.features = said["isa"], said["onednn"], said["features"]
        elif "number" in said:
            self.find(said["number"], f"{said['wrong']} on {said['impl']}: {said['text']}")
        elif "told" in said:
            print(said["told"])
        else:
            self.done += said["done"]
            self.ran.update(said["ran"])
            self.refused.update(said["refused"])

    def find(self, number: int, what: str) -> None:
        """Add a finding, and print it with the line that shows it again."""
        self.findings.append(f"{number}: {what}")
        plain = "--plain " if self.plain else f"--region {self.region} " if self.region else ""
        again = f"python tools/hunt/hunt.py {plain}--levels {self.level} --seed {self.seed}"
        threads = self.threads or threads_at(self.level, self.seed, number)
        print(
            f"WRONG {self.onednn} {self.isa} ({self.features}): {what}\n"
            f"    {again} --only {number} --threads {threads}",
            flush=True,
        )

    def line(self) -> str:
        """Return the counts in a line."""
        ran, refused = self.ran.total(), self.refused.total()
        if self.ignored:
            refused = self.done - ran  # or not of that row
        counts = f"{self.done} problems, {ran} ran, {refused} refused, {len(self.findings)} wrong"
        where = f"{self.onednn} {self.isa} ({self.features})"
        return f"{where}, seed {self.seed} from {self.first}: {counts}"


def threads_at(level: str, seed: int, number: int) -> int:
    """Return how many threads the child has that computes a problem, where none are asked for."""
    return THREADS[(LEVELS.index(level) + seed + number // _OF_ONE_CHILD) % len(THREADS)]


def features() -> str:
    """Return what the processor says that it has, and what is computed in its stead.

    `absent_instructions.py` tells of the latter.
    """
    has: set[str] = set()
    if _CPUINFO.exists():
        lines = (line.split() for line in _CPUINFO.read_text().splitlines())
        has = next((set(line) for line in lines if line[:1] == ["flags"]), has)
    names = [name for name in _FEATURES if name in has]
    computed = os.environ.get("ABSENT_INSTRUCTIONS")
    return " ".join([*names, *([f"computed: {computed}"] if computed else [])]) or "none of VNNI"


# --- the child ----------------------------------------------------------------------------------


def serve(
    seed: int,
    first: int,
    count: int,
    seconds: float,
    mark: Path,
    *,
    plain: bool = False,
    ignored: str = "",
    region: str = "",
) -> None:
    """Compute problems, one after the other, and say what came of them."""
    from hunt_plain import hunted_plain
    from hunt_run import hunted, without
    from pyonednn_q.native import runtime

    row = without(ignored) if ignored else None
    compute = hunted_plain if plain else partial(hunted, region=region)

    onednn = f"{'.'.join(map(str, runtime.version()))} {runtime.threading_runtime()}"
    _say(isa=runtime.isa().text(), onednn=onednn, features=features())
    handle = os.open(mark, os.O_WRONLY)
    end = time.monotonic() + seconds
    number = first
    while number < first + count and time.monotonic() < end:
        tells_at, begin = time.monotonic() + _TELLS_EACH, number
        ran: Counter[str] = Counter()
        refused: Counter[str] = Counter()
        while number < first + count and time.monotonic() < min(tells_at, end):
            os.pwrite(handle, struct.pack("q", number), 0)
            answer = compute(seed, number, row)
            counts, what = (refused, answer.refused) if answer.refused else (ran, answer.impl)
            counts[f"{answer.kind}: {what}"] += 1
            if answer.wrong:
                _say(number=number, wrong=answer.wrong, impl=answer.impl, text=answer.text)
            elif count == 1:
                _say(told=f"{answer.refused or 'right'} on {answer.impl}: {answer.text}")
            number += 1
        _say(done=number - begin, ran=ran, refused=refused)


def _say(**what: object) -> None:
    print(json.dumps(what), flush=True)


# --- the parent ---------------------------------------------------------------------------------


def hunt(
    level: str,
    seed: int,
    first: int,
    count: int,
    seconds: float,
    *,
    plain: bool = False,
    ignored: str = "",
    region: str = "",
    threads: int = 0,
) -> Tally:
    """Have the problems of a level computed, by as many children as it takes."""
    tally = Tally(level, seed, first, plain, ignored, region=region, threads=threads)
    end = time.monotonic() + seconds
    at = first
    with tempfile.NamedTemporaryFile() as mark:
        while at < first + count and (ignored or len(tally.findings) < _ENOUGH):
            if (left := end - time.monotonic()) <= 0:
                break
            mark.seek(0)
            mark.write(struct.pack("q", at))
            mark.flush()
            begin, child_end = tally.done, (at // _OF_ONE_CHILD + 1) * _OF_ONE_CHILD
            of_child = min(first + count, child_end) - at
            code = _follow(tally, mark.name, at, of_child, left)
            if code == 0:
                at += of_child
                continue
            mark.seek(0)
            (number,) = struct.unpack("q", mark.read(8))
            tally.find(number, "no answer in time" if code is None else f"exit code {code}")
            tally.done = begin + number + 1 - at
            at = number + 1
    return tally


def available(levels: Sequence[str]) -> list[str]:
    """Return the levels that this machine tells apart, and say by name which it does not."""
    by_isa: dict[str, str] = {}
    for level in levels:
        tally = Tally(level, 0, 0)
        _follow(tally, os.devnull, 0, 0, 0.0)  # no problem: it only tells its instruction set
        same = by_isa.setdefault(tally.isa, level)
        if same != level:
            print(f"skipped {level}: here it is {tally.isa}, as {same} is", flush=True)
    return list(by_isa.values())


def _follow(tally: Tally, mark: str, first: int, count: int, seconds: float) -> int | None:
    """Run a child to its end; return its exit code, None if it had to be stopped."""
    work = ("--seed", tally.seed, "--first", first, "--count", count, "--seconds", seconds)
    more = [*(["--plain"] if tally.plain else []), "--ignore", tally.ignored]
    more += ["--region", tally.region] if tally.region else []
    command = [sys.executable, __file__, *(str(w) for w in ("--child", mark, *work, *more))]
    threads = str(tally.threads or threads_at(tally.level, tally.seed, first))
    environment = os.environ | POISON | {"ONEDNN_MAX_CPU_ISA": tally.level}
    # Of OpenMP, and of SYCL's device for CPUs.
    environment |= {"OMP_NUM_THREADS": threads, "DPCPP_CPU_NUM_CUS": threads}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as child:
        assert child.stdout is not None
        while select.select([child.stdout], [], [], _HANGS_AFTER)[0]:
            line = child.stdout.readline()
            if not line:
                return child.wait()
            tally.take(json.loads(line))
        child.kill()
        return None


def main() -> int:
    """Hunt; return 1 if something was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--plain", action="store_true", help="no sums of products, any layout")
    parser.add_argument("--region", default="", choices=REGIONS, help="shapes of one kind")
    parser.add_argument("--ignore", default="", metavar="ROW", help="of the guard table")
    parser.add_argument("--levels", nargs="+", default=LEVELS, choices=LEVELS)
    parser.add_argument("--seed", type=int, default=int(time.strftime("%Y%j")), help="of the day")
    parser.add_argument("--first", type=int, default=0, help="number of the first problem")
    parser.add_argument("--count", type=int, default=10**12, help="problems of each level")
    parser.add_argument("--seconds", type=float, default=1e9, help="in all")
    parser.add_argument(
        "--threads", type=int, default=0, help="of each process, in place of 1, 2, 4 and 16 in turn"
    )
    parser.add_argument("--only", type=int, help="number of one problem, which is told in any case")
    parser.add_argument("--results", type=Path, help="where to write counts, for --page")
    parser.add_argument("--page", nargs="+", type=Path, help="results to write a page of")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.page is not None:
        told = [line for path in asked.page for line in path.read_text().splitlines()]
        print("\n".join(page([_read(line) for line in told])))
        return 0
    if asked.only is not None:
        asked.first, asked.count = asked.only, 1
    if asked.child is not None:
        numbers = (asked.seed, asked.first, asked.count)
        what = {"plain": asked.plain, "ignored": asked.ignore, "region": asked.region}
        serve(*numbers, asked.seconds, asked.child, **what)
        return 0
    return _hunt_all(asked)


def _read(line: str) -> Tally:
    told = json.loads(line)
    counts = {name: Counter(told[name]) for name in ("ran", "refused")}
    return Tally(**{**told, **counts})


def _hunt_all(asked: argparse.Namespace) -> int:
    tallies: list[Tally] = []
    levels = available(asked.levels)
    for level in levels:
        seconds = asked.seconds / len(levels)
        numbers = (asked.seed, asked.first, asked.count)
        options = {"plain": asked.plain, "ignored": asked.ignore, "region": asked.region}
        tally = hunt(level, *numbers, seconds, **options, threads=asked.threads)
        tallies.append(tally)
        print(tally.line(), flush=True)
        if asked.results is not None:
            lines = (json.dumps(vars(tally)) for tally in tallies)
            asked.results.write_text("\n".join(lines) + "\n")
    kinds: Counter[str] = Counter()
    for tally in tallies:
        for what, count in tally.refused.items():
            kinds[what] += count
    print("\n".join(f"refused {count:7} {what}" for what, count in kinds.most_common()))
    # Once more, at the end, where a long log is read.
    wrong = [f"WRONG {tally.isa} {finding}" for tally in tallies for finding in tally.findings]
    print("\n".join(wrong) or "nothing wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
