"""``pyonednn-q bench``: measure suites or single problems.

pyonednn-q bench                              list the suites
pyonednn-q bench resnet50                     FP32 against INT8, layer by layer
pyonednn-q bench "matmul 128x768 768x3072" --dtype bf16,u8s8u8 --tail gelu_tanh_fq
pyonednn-q bench check                        every line of every suite once, for correctness
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from pyonednn_q.bench import report, suite
from pyonednn_q.bench.case import LAYOUTS, Cache, Setting
from pyonednn_q.bench.measure import F32, Request, measure
from pyonednn_q.bench.precision import Precision
from pyonednn_q.bench.progress import Progress
from pyonednn_q.bench.tail import WORDS, Tail
from pyonednn_q.bench.timing import Budget
from pyonednn_q.errors import ArgumentError, Error
from pyonednn_q.native import runtime

__all__ = ["main", "parser", "request"]

INT8 = Precision("u8", "s8", "u8")


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``pyonednn-q bench`` and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    options = parser().parse_args(words)
    try:
        if not options.what:
            report.write(listing())
            return 0
        return run(options)
    except Error as error:
        report.complain(error)
        return 1


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    wanted = request(options)
    progress = Progress(wanted.steps)
    found = measure(wanted, progress)
    progress.clear()
    if options.json:
        options.json.write_text(found.to_json(), encoding="utf-8")
    if options.markdown:
        report.write(report.markdown(found, repro=options.repro))
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        report.write(report.text(found, width=width, repro=options.repro))
    return 0


def request(options: argparse.Namespace) -> Request:
    """Return what the options ask for.

    Raises
    ------
    ArgumentError, ShapeError, DTypeError
        Naming the option, what came and what would do.
    """
    lines = [line for word in options.what for line in suite.find(word).lines]
    chosen = [
        suite.Line(line.suite, line.name, line.shape.batched(batch), line.times)
        for line in lines
        for batch in options.batch
        if options.filter is None or options.filter.search(f"{line.name} {line.shape}")
    ]
    if not chosen:
        raise ArgumentError("filter", repr(options.filter.pattern), "a part of some line's name")
    precisions = tuple(dict.fromkeys(options.dtype))
    threads = options.threads or (runtime.get_num_threads(),)
    cache: Cache = "cold" if options.cold else "warm"
    return Request(
        lines=tuple(chosen),
        precisions=precisions,
        tails=tuple(options.tail),
        layouts=tuple(options.layout),
        settings=tuple(Setting(count, cache) for count in threads),
        budget=Budget(options.min_time, options.repeat),
    )


def listing() -> str:
    """Return the suites that come with the package, and how to ask for more."""
    found = [suite.find(name) for name in suite.names()]
    width = max(len(each.name) for each in found)
    lines = [f"{each.name:<{width}}  {len(each.lines):>3} lines  {each.title}" for each in found]
    return "\n".join([*lines, "", "pyonednn-q bench SUITE measures one; --help says how"])


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(
        prog="pyonednn-q bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = made.add_argument
    add("what", nargs="*", metavar="SUITE|PROBLEM", help="a suite, a .toml file, or a problem")
    add(
        "--dtype",
        type=_listed(Precision.parse),
        default=(F32, INT8),
        metavar="LIST",
        help="data types of src, weights and dst: f32, bf16, f16, u8s8u8, u8s8f32, s8s8s8, ... "
        "(default: f32,u8s8u8)",
    )
    add(
        "--tail",
        type=_listed(Tail),
        default=(Tail("none"),),
        metavar="LIST",
        help=f"what follows the products: none, or words joined by _: {', '.join(WORDS)}",
    )
    add(
        "--layout",
        type=_listed(_layout),
        default=LAYOUTS[:1],
        metavar="LIST",
        help=f"of activations: {', '.join(LAYOUTS)} (default: {LAYOUTS[0]})",
    )
    add("--batch", type=_listed(_positive), default=(1,), metavar="LIST", help="times the inputs")
    add("--threads", type=_listed(_positive), metavar="LIST", help="of the library (default: all)")
    add("--cold", action="store_true", help="touch other memory before each timed call")
    add("--min-time", type=float, default=Budget().min_time_s, metavar="S", help="per primitive")
    add("--repeat", type=_positive, metavar="N", help="samples of each, instead of --min-time")
    add("--filter", type=_pattern, metavar="REGEX", help="only lines whose name or problem has it")
    add("--json", type=Path, metavar="FILE", help="write the run there, samples included")
    add("--markdown", action="store_true", help="print the table as Markdown, with all columns")
    add(
        "--repro", action="store_true", help="print how to reproduce each row, here and in benchdnn"
    )
    return made


def _listed(kind: Callable[[str], object]) -> Callable[[str], tuple[object, ...]]:
    def convert(text: str) -> tuple[object, ...]:
        try:
            return tuple(kind(part) for part in text.split(","))
        except Error as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return convert


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentError("value", repr(text), "a whole number from 1")
    return int(text)


def _layout(text: str) -> str:
    if text not in LAYOUTS:
        raise ArgumentError("layout", repr(text), ", ".join(LAYOUTS))
    return text


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        message = f"{text!r} is no regular expression: {error}"
        raise argparse.ArgumentTypeError(message) from None
