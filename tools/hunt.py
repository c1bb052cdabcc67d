"""Hunt for wrong answers: odd shapes on purpose, exact integers, freed memory poisoned.

Every problem is drawn from a seed and its number, computed as callers would (through the guard
table: as a prepared primitive, on the first implementation or on another one, or as an operator),
and compared bit by bit with exact integers. With --plain it is the primitives without sums of
products instead, in any layout, where bytes beside the result count, too. Each instruction set is
a process of its own; one that crashes or hangs is a finding too, and the next goes on behind it.

    python tools/hunt.py --seconds 300                  # all levels, seed of the day
    python tools/hunt.py --levels AVX2 --count 20000 --seed 7 --results avx2.json
    python tools/hunt.py --levels AVX2 --seed 7 --only 123      # one problem again
    python tools/hunt.py --plain --seconds 60
    python tools/hunt.py --plain --ignore sum-into-gaps --count 40000   # what a row guards against
    python tools/hunt.py --page *.json > docs/hunt.md
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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# AVX10 and AMX are no more than ALL where a machine lacks them.
LEVELS = ("SSE41", "AVX2", "AVX2_VNNI", "AVX512_CORE", "AVX512_CORE_VNNI", "ALL")
POISON = {"MALLOC_PERTURB_": "165", "OPENBLAS_NUM_THREADS": "1"}
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

    def take(self, said: dict[str, Any]) -> None:
        """Add what a child said."""
        if "isa" in said:
            self.isa, self.onednn = said["isa"], said["onednn"]
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
        plain = "--plain " if self.plain else ""
        again = f"python tools/hunt.py {plain}--levels {self.level} --seed {self.seed}"
        print(f"WRONG {self.onednn} {self.isa}: {what}\n    {again} --only {number}", flush=True)

    def line(self) -> str:
        """Return the counts in a line."""
        ran, refused = self.ran.total(), self.refused.total()
        if self.ignored:
            refused = self.done - ran  # or not of that row
        counts = f"{self.done} problems, {ran} ran, {refused} refused, {len(self.findings)} wrong"
        return f"{self.onednn} {self.isa}, seed {self.seed} from {self.first}: {counts}"


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
) -> None:
    """Compute problems, one after the other, and say what came of them."""
    from hunt_plain import hunted_plain
    from hunt_run import hunted, without
    from pyonednn_q.native import runtime

    row = without(ignored) if ignored else None

    onednn = f"{'.'.join(map(str, runtime.version()))} {runtime.threading_runtime()}"
    _say(isa=runtime.isa().text(), onednn=onednn)
    handle = os.open(mark, os.O_WRONLY)
    end = time.monotonic() + seconds
    number = first
    while number < first + count and time.monotonic() < end:
        tells_at, begin = time.monotonic() + _TELLS_EACH, number
        ran: Counter[str] = Counter()
        refused: Counter[str] = Counter()
        while number < first + count and time.monotonic() < min(tells_at, end):
            os.pwrite(handle, struct.pack("q", number), 0)
            answer = (hunted_plain if plain else hunted)(seed, number, row)
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
) -> Tally:
    """Have the problems of a level computed, by as many children as it takes."""
    tally = Tally(level, seed, first, plain, ignored)
    end = time.monotonic() + seconds
    at = first
    with tempfile.NamedTemporaryFile() as mark:
        while at < first + count and (ignored or len(tally.findings) < _ENOUGH):
            if (left := end - time.monotonic()) <= 0:
                break
            mark.seek(0)
            mark.write(struct.pack("q", at))
            mark.flush()
            begin = tally.done
            code = _follow(tally, mark.name, at, first + count - at, left)
            if code == 0:
                break
            mark.seek(0)
            (number,) = struct.unpack("q", mark.read(8))
            tally.find(number, "no answer in time" if code is None else f"exit code {code}")
            tally.done = begin + number + 1 - at
            at = number + 1
    return tally


def available(levels: Sequence[str]) -> list[str]:
    """Return the levels that this machine tells apart."""
    by_isa: dict[str, str] = {}
    for level in levels:
        tally = Tally(level, 0, 0)
        _follow(tally, os.devnull, 0, 0, 0.0)  # no problem: it only tells its instruction set
        by_isa.setdefault(tally.isa, level)
    return list(by_isa.values())


def _follow(tally: Tally, mark: str, first: int, count: int, seconds: float) -> int | None:
    """Run a child to its end; return its exit code, None if it had to be stopped."""
    work = ("--seed", tally.seed, "--first", first, "--count", count, "--seconds", seconds)
    more = [*(["--plain"] if tally.plain else []), "--ignore", tally.ignored]
    command = [sys.executable, __file__, *(str(w) for w in ("--child", mark, *work, *more))]
    environment = os.environ | POISON | {"ONEDNN_MAX_CPU_ISA": tally.level}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as child:
        assert child.stdout is not None
        while select.select([child.stdout], [], [], _HANGS_AFTER)[0]:
            line = child.stdout.readline()
            if not line:
                return child.wait()
            tally.take(json.loads(line))
        child.kill()
        return None


# --- the page -----------------------------------------------------------------------------------


def page(tallies: Sequence[Tally]) -> Iterator[str]:
    """Give the lines of docs/hunt.md."""
    yield from HEAD.splitlines()
    yield "\n## Counts\n"
    yield "| problems of | oneDNN | instruction set | number | ran | refused | wrong | seeds |"
    yield "|---|---|---|--:|--:|--:|--:|---|"
    for where in sorted({_where(tally) for tally in tallies}):
        of = [tally for tally in tallies if _where(tally) == where]
        done, wrong = sum(tally.done for tally in of), sum(len(tally.findings) for tally in of)
        ran, refused = (sum(getattr(t, name).total() for t in of) for name in ("ran", "refused"))
        plain, onednn, isa = where
        what = "plain" if plain else "layers"
        yield f"| {what} | {onednn} | {isa} | {done} | {ran} | {refused} | {wrong} | {_seeds(of)} |"
    yield "\n## What ran\n"
    yield from _listed(item for tally in tallies for item in tally.ran.items())
    yield "\n## What was refused\n"
    yield "Several rows of the guard table may stand behind one refusal.\n"
    yield from _listed(
        (part, count)
        for tally in tallies
        for what, count in tally.refused.items()
        for part in _apart(what)
    )


def _where(tally: Tally) -> tuple[bool, str, str]:
    return tally.plain, tally.onednn, tally.isa


def _apart(refused: str) -> Iterator[str]:
    """Give each row of the guard table that a refusal names."""
    kind, _, rows = refused.partition(": known wrong: ")
    yield from (f"{kind}: known wrong: {row}" for row in rows.split(", ")) if rows else [refused]


def _listed(counts: Iterable[tuple[str, int]]) -> Iterator[str]:
    total: Counter[str] = Counter()
    for what, count in counts:
        total[what] += count
    yield from (f"- {count} {what}" for what, count in sorted(total.items()))


def _seeds(tallies: Sequence[Tally]) -> str:
    """Return seeds, and which of their numbers: those with the same ones together."""
    texts: dict[str, list[int]] = {}
    for tally in tallies:
        numbers = f"{tally.first} to {tally.first + tally.done - 1}"
        texts.setdefault(numbers, []).append(tally.seed)
    return "; ".join(
        f"{', '.join(map(str, sorted(seeds)))}: {text}" for text, seeds in texts.items()
    )


HEAD = """\
# The hunt

Written by `tools/hunt.py --page` from its results; do not edit. Problems are odd on purpose: sizes
around every block of the kernels, groups of one channel, kernels larger than the image, any
padding, stride and dilation, one to three spatial dimensions, batches that are broadcast, gaps
between rows, every data type, scales, zero points, sums and other post-ops. With `--plain` they are
reorders, element-wise operations, sums, pooling and resampling, of tensors whose dimensions lie in
any order, with gaps, beside bytes that must stay as they are. Each was computed as callers do,
through the [guard table](guards.md), with freed memory poisoned, and compared with exact integers.
A seed and a number give the same problem again as long as the hunt itself does not
change:

    python tools/hunt.py --levels AVX2 --seed 2026327 --only 123

What a processor lacks of AMX and AVX_VNNI can be computed, instruction by instruction, so that
kernels made of them are hunted as well; it takes AVX512_BF16, and says nothing of times:

    python tools/absent_instructions.py python tools/hunt.py --levels ALL AVX2_VNNI

It found what these rows of the table guard against: `one-channel-groups-in-odd-blocks`,
`one-channel-one-plane`, `depthwise-window-outside`, `conv-gemm-transposed-wei`,
`conv-1x1-strided-odd-channels`, `conv-dilated-padded-src-zero-point`, `deconv-beyond-taps`,
`matmul-bare-nibbles`, `matmul-batch-of-single-rows`, `matmul-nibbles-of-one-row`; and that
`conv-one-column-out-of-one-channel` shows in f32 and bf16, `operand-in-avx2-vnni` on 3.7,
`matmul-wei-scale-along-k` in groups of one row, `deconv-stride-s8` on a single place of src,
`depthwise-eight-taps` with 192 and 256 taps; and, among layouts, `operand-with-gaps`,
`resampling-of-one-place`, `binary-operand-across-layout`, `pooling-beside-operand`,
`maxima-stored-early`, `prelu-across-layout`, `sum-into-gaps`, `reorder-shifted-bytes`,
`deconv-into-gaps`, `deconv-pointwise-plain-wei`, `inner-product-in-two-orders`,
`inner-product-innermost-images`, `conv-gemm-with-gaps`, `deconv-strided-with-gaps`,
`matmul-column-with-gaps`, `matmul-row-declared-short`, `matmul-batches-within-rows`,
`matmul-4d-wei-batches-within`. Parts of
a run that met one of them were run again behind its row: the counts are those. Layers of the seeds
that are named here had tensors row-major or channels last, but for sources of matmul; operands of
seed 2026327 lay as dst. Now one layer in ten is laid in any order, or as a part of a larger tensor.
What a row guards against shows where it is left out:

    python tools/hunt.py --plain --ignore sum-into-gaps --count 40000"""


def main() -> int:
    """Hunt; return 1 if something was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--plain", action="store_true", help="no sums of products, any layout")
    parser.add_argument("--ignore", default="", metavar="ROW", help="of the guard table")
    parser.add_argument("--levels", nargs="+", default=LEVELS, choices=LEVELS)
    parser.add_argument("--seed", type=int, default=int(time.strftime("%Y%j")), help="of the day")
    parser.add_argument("--first", type=int, default=0, help="number of the first problem")
    parser.add_argument("--count", type=int, default=10**12, help="problems of each level")
    parser.add_argument("--seconds", type=float, default=1e9, help="in all")
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
        serve(*numbers, asked.seconds, asked.child, plain=asked.plain, ignored=asked.ignore)
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
        tally = hunt(level, *numbers, seconds, plain=asked.plain, ignored=asked.ignore)
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
