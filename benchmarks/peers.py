"""Our call against each peer's, and against oneDNN's own loop, on the shapes of known networks.

One process per runtime, stopped while another is timed; samples in turn; INT8 (u8 · s8 to u8).
``call`` is our prepared call from Python with ``out=``, of the primitive that `pyonednn_q.Conv` and
its like run; ``loop`` the same primitive in a C++ loop.
Prints Markdown: medians in microseconds, the time of each peer in parts of our call's, and for each
shape where a peer is faster, why: those shapes are measured again with one thread on each side.
Peers that are not installed are left out by name.

    python benchmarks/peers.py
    python benchmarks/peers.py --suite bert_base --peers onnxruntime --rounds 41
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

from pyonednn_q.bench import noise, suite
from pyonednn_q.bench.bench_run import metadata
from pyonednn_q.bench.case import Case
from pyonednn_q.bench.peers import PEERS, PeerError, require
from pyonednn_q.bench.peers.contest import Contest
from pyonednn_q.bench.precision import Precision
from pyonednn_q.bench.row import OURS, Rival
from pyonednn_q.bench.shape import Shape
from pyonednn_q.bench.summary import Ratio, paired_ratio
from pyonednn_q.bench.tail import Tail
from pyonednn_q.native.timing import Budget

INT8 = Precision("u8", "s8", "u8")
# With tails that all runtimes have: MobileNet's relu6 is a relu here.
SUITES = {"resnet50": "relu", "mobilenet_v2": "relu", "bert_base": "none"}
# So small that what is timed is what any execution costs.
NOTHING = Shape.parse("matmul 1x16 16x16")


@dataclass(frozen=True)
class Line:
    """One shape, and what each runtime took for it."""

    name: str
    case: Case
    rivals: tuple[Rival, ...]

    def rival(self, name: str, way: str = "call") -> Rival:
        """Return one of them."""
        return next(r for r in self.rivals if (r.name, r.way) == (name, way))

    def over(self, peer: str) -> Ratio | None:
        """Return a peer's time in parts of our call's."""
        theirs, ours = self.rival(peer), self.rival(OURS)
        if not (theirs.samples_us and ours.samples_us):
            return None
        return paired_ratio(theirs.samples_us, ours.samples_us)

    def slower_than(self, peers: Sequence[str]) -> list[str]:
        """Return the peers that are faster, beyond the noise."""
        ratios = {peer: self.over(peer) for peer in peers}
        return [
            peer
            for peer, ratio in ratios.items()
            if ratio is not None and ratio.is_significant and ratio.value < 1
        ]

    @property
    def loop_us(self) -> float:
        """Microseconds of our primitive in a C++ loop."""
        return self.rival(OURS, "loop").median_us

    def cause(self, peer: str, empty_us: float, alone: Line, alone_empty_us: float) -> str:
        """Say what makes a peer faster, from what was measured.

        alone is the same with one thread; empty_us is what executing next to nothing takes.
        """
        theirs, theirs_alone = self.rival(peer).median_us, alone.rival(peer).median_us
        if theirs >= self.loop_us:
            return "the call from Python: our loop is as fast"
        if self.loop_us - empty_us <= theirs:
            return f"what executing anything costs our library, {empty_us:.1f} us"
        if alone.loop_us - alone_empty_us <= theirs_alone:
            return "what our library's threads cost: with one thread ours is as fast"
        return "its kernel: with one thread it is faster, too"


def main() -> int:
    """Measure and print."""
    options = parser().parse_args()
    peers = installed(options.peers)
    before = noise.Load.now()
    sys.stdout.write(heading(options, peers) + "\n")
    budget = Budget(rounds=options.rounds)
    with Contest(peers, options.threads) as contest:
        empty_us = raced(contest, Case(NOTHING, INT8), budget).loop_us
        sys.stdout.write(f"Executing next to nothing takes {empty_us:.1f} us in C++.\n")
        all_lines = []
        for name in options.suite or SUITES:
            lines = [
                raced(contest, Case(line.shape, INT8, tail_of(name)), budget, line.label)
                for line in suite.find(name).lines
            ]
            sys.stdout.write("\n" + "\n".join(table(name, lines, peers)) + "\n")
            sys.stdout.flush()
            all_lines += lines
    behind = [line for line in all_lines if line.slower_than(peers)]
    with Contest(peers, 1) as contest:
        alone = {line.case: raced(contest, line.case, budget) for line in behind}
        alone_empty_us = raced(contest, Case(NOTHING, INT8), budget).loop_us
    causes: dict[tuple[str, str], list[str]] = {}
    for line in behind:
        for peer in line.slower_than(peers):
            why = line.cause(peer, empty_us, alone[line.case], alone_empty_us)
            causes.setdefault((peer, why), []).append(line.name)
    sys.stdout.write("\n" + "\n".join(summary(all_lines, peers)) + "\n")
    for (peer, why), names in causes.items():
        sys.stdout.write(f"- {peer} is faster in {', '.join(names)}, by {why}\n")
    stolen, others = noise.Load.now().since(before)
    sys.stdout.write(
        f"\nOther processes used {others:.0%} of the CPUs, {stolen:.0%} were stolen.\n"
    )
    return 0


def raced(contest: Contest, case: Case, budget: Budget, name: str = "") -> Line:
    """Return a case with what all runtimes took."""
    (rivals,) = contest.run([case], budget)
    return Line(name or str(case.shape), case, rivals)


def installed(names: Sequence[str]) -> tuple[str, ...]:
    """Return the peers that are there; say which are not."""
    peers = []
    for name in names:
        try:
            require((name,))
            peers.append(name)
        except PeerError as error:
            sys.stderr.write(f"left out: {error}\n")
    return tuple(peers)


def tail_of(name: str) -> Tail:
    """Return the tail with which a suite is measured."""
    return Tail(SUITES.get(name, "none"))


def heading(options: argparse.Namespace, peers: Sequence[str]) -> str:
    """Say where this is."""
    about = metadata()
    versions = ", ".join(f"{peer} {version(peer)}" for peer in peers)
    return (
        f"oneDNN {about['onednn']} {about['runtime']}, {about['cpu']}, {about['isa']}, "
        f"{options.threads} threads, {about['time']}; {versions or 'no peers'}; "
        f"{options.rounds} rounds.\n"
    )


def table(name: str, lines: Sequence[Line], peers: Sequence[str]) -> list[str]:
    """Return a Markdown table of a suite."""
    heads = ["loop", "call", "call / loop"]
    heads += [head for peer in peers for head in (peer, "ratio")]
    rows = [f"| {name} ({tail_of(name).name}) | " + " | ".join(heads) + " |"]
    rows.append("|---|" + "---:|" * len(heads))
    for line in lines:
        loop, call = line.rival(OURS, "loop"), line.rival(OURS)
        over = paired_ratio(call.samples_us, loop.samples_us).value
        cells = [f"{loop.median_us:.1f}", f"{call.median_us:.1f}", f"{over:.2f}"]
        for peer in peers:
            theirs, ratio = line.rival(peer), line.over(peer)
            cells.append(f"{theirs.median_us:.1f}" if theirs.samples_us else "-")
            cells.append("-" if ratio is None else f"{ratio.value:.2f}" + _mark(ratio))
        rows.append(f"| {line.name} | " + " | ".join(cells) + " |")
    return rows


def _mark(ratio: Ratio) -> str:
    return "" if ratio.is_significant else " (n.s.)"


def summary(lines: Sequence[Line], peers: Sequence[str]) -> list[str]:
    """Return means, and what was refused."""
    items = []
    for peer in peers:
        ratios = [ratio for line in lines if (ratio := line.over(peer)) is not None]
        if ratios:
            mean = math.exp(sum(math.log(ratio.value) for ratio in ratios) / len(ratios))
            slower = sum(peer in line.slower_than([peer]) for line in lines)
            first = f"faster than ours in {slower} of {len(ratios)} shapes"
            items.append(f"- {peer}: {mean:.2f} times our time (geometric mean), {first}")
    refused = {(r.name, r.refused) for line in lines for r in line.rivals if r.refused}
    return items + [f"- {name} {why}" for name, why in sorted(refused)]


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    command = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    command.add_argument("--suite", action="append", help=f"default: {', '.join(SUITES)}")
    command.add_argument("--peers", nargs="*", choices=tuple(PEERS), default=tuple(PEERS))
    command.add_argument("--threads", type=int, default=2)
    command.add_argument("--rounds", type=int, default=21, help="samples of each runtime and shape")
    return command


if __name__ == "__main__":
    sys.exit(main())
