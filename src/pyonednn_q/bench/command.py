"""``pyonednn-q bench``: measure suites, single problems, or an ONNX model.

pyonednn-q bench                          list the suites
pyonednn-q bench resnet50                 FP32 against INT8, layer by layer
pyonednn-q bench resnet50 --isa ladder    the same at each instruction set this machine has
pyonednn-q bench "matmul 128x768 768x3072" --dtype bf16,u8s8u8 --tail gelu_tanh_fq
pyonednn-q bench bert_base --peers onnxruntime,openvino,torch
pyonednn-q bench mobilenet_v2 --tune       the fastest of all implementations, line by line
pyonednn-q bench check                    every line of every suite once, for correctness

A problem is a kind (conv, deconv, ip, matmul), the dimensions of src and of the weights, and
options: stride=2 padding=1 dilation=2 (2x1 per dimension, padding=0:1 per side), groups=32 (or
32x1x1x3x3 for the weights), out=HxW for a deconvolution, wei=transposed for a matmul of two
activations. benchdnn's descriptors do as well: "conv mb1ic64ih56oc64kh3ph1".
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from pyonednn_q.bench import check, processes, report, suite
from pyonednn_q.bench.arguments import choice, listed, pattern, positive
from pyonednn_q.bench.case import LAYOUTS, Cache, Setting
from pyonednn_q.bench.measure import F32, Request, measure
from pyonednn_q.bench.peers import PEERS, require
from pyonednn_q.bench.precision import Precision
from pyonednn_q.bench.run import Run, joined, metadata
from pyonednn_q.bench.run_page import html
from pyonednn_q.bench.tail import WORDS, Tail
from pyonednn_q.errors import ArgumentError
from pyonednn_q.native import runtime
from pyonednn_q.native.timing import Budget
from pyonednn_q.primitive.isa import ISA_ORDER
from pyonednn_q.report.progress import Progress
from pyonednn_q.report.table import Column, Table
from pyonednn_q.shown import install, shown

__all__ = ["add_arguments", "request", "run"]

INT8 = Precision("u8", "s8", "u8")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "what",
        nargs="*",
        metavar="SUITE|PROBLEM|MODEL",
        help="a suite, a .toml file, a problem, an .onnx file; or check, and suites behind it",
    )
    _add_what(parser.add_argument_group("what to measure"))
    _add_how(parser.add_argument_group("how"))
    _add_report(parser.add_argument_group("report"))


def run(options: argparse.Namespace) -> int:
    """Measure and report; or list, or check: then 1 where something is wrong."""
    if not options.what:
        report.write(_listing())
        return 0
    if options.what[0] == "check":
        return check.run(options.what[1:], options.dtype)
    to_measure = request(options)
    require(to_measure.peers)
    for path in (options.json, options.csv, options.html):
        if path is not None and not path.absolute().parent.is_dir():
            raise ArgumentError("file", shown(str(path)), "a name in a folder that exists")
    result = measured(to_measure, options.isa)
    if options.markdown:
        report.write(report.markdown(result, repro=options.repro))
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        report.write(report.text(result, width=width, repro=options.repro))
    for path, written in (
        (options.json, Run.to_json),
        (options.csv, report.csv_text),
        (options.html, html),
    ):
        if path is not None:
            path.write_bytes(written(result).encode())
    return 0


def measured(to_measure: Request, isas: Sequence[str]) -> Run:
    """Measure here, or in one process per instruction set."""
    if not isas:
        progress = Progress(to_measure.steps)
        result = measure(to_measure, progress)
        progress.clear()
        return result
    runs = [processes.measure_at(to_measure, level) for level in processes.levels(isas)]
    return joined(metadata(), runs)


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
        raise ArgumentError("filter", shown(options.filter.pattern), "a part of some line's name")
    precisions = tuple(options.dtype or (F32, INT8))
    if all(precision.is_int8 for precision in precisions):
        precisions = (F32, *precisions)
    threads = options.threads or (runtime.get_num_threads(),)
    cache: Cache = "cold" if options.cold else "warm"
    return Request(
        lines=tuple(chosen),
        precisions=precisions,
        tails=tuple(options.tail),
        layouts=tuple(options.layout),
        settings=tuple(Setting(count, cache) for count in threads),
        budget=Budget(options.min_time, options.repeat),
        peers=_peers(options),
        tune=options.tune,
    )


def _peers(options: argparse.Namespace) -> tuple[str, ...]:
    peers = tuple(options.peers)
    if peers and options.isa:
        raise ArgumentError("peers", "--isa", "none: peers have kernels that know no such limit")
    if peers and options.cold:
        raise ArgumentError("peers", "--cold", "none: peers are timed with warm caches")
    return peers


def _listing() -> str:
    """Return the suites that come with the package, and how to ask for more."""
    suites = [suite.find(name) for name in suite.names()]
    columns = [Column("suite"), Column("lines", right=True), Column("what it is")]
    cells = [[entry.name, str(len(entry.lines)), entry.title] for entry in suites]
    table = Table(columns, cells).text()
    return f"{table}\n\npyonednn-q bench SUITE measures one; --help says how"


def _add_what(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--dtype",
        type=listed(Precision.parse),
        metavar="LIST",
        help="types of src, weights and dst: f32, bf16, f16, u8s8u8, u8s8f32, s8s8s8, ... "
        "(default: f32,u8s8u8, and s8s8s8 of check; f32 joins where only integer types are named)",
    )
    group.add_argument(
        "--tail",
        type=listed(Tail),
        default=(Tail("none"),),
        metavar="LIST",
        help=f"what follows the products: none, or words joined by _, of {', '.join(WORDS)}; "
        "fq only for integer types",
    )
    group.add_argument(
        "--layout",
        type=listed(choice("layout", LAYOUTS)),
        default=LAYOUTS[:1],
        metavar="LIST",
        help=f"of the src and dst of convolutions: {', '.join(LAYOUTS)} (default: {LAYOUTS[0]})",
    )
    group.add_argument(
        "--batch",
        type=listed(positive),
        default=(1,),
        metavar="LIST",
        help="as many times the inputs (default: 1)",
    )
    group.add_argument(
        "--filter",
        type=pattern,
        metavar="REGEX",
        help="only lines whose name or problem has a match",
    )


def _add_how(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--isa",
        type=listed(choice("isa", ("ladder", *ISA_ORDER))),
        default=(),
        metavar="LIST",
        help="limits of the instruction set, each in a process of its own; ladder: "
        + ", ".join(processes.LADDER),
    )
    group.add_argument(
        "--threads", type=listed(positive), metavar="LIST", help="of the library (default: all)"
    )
    group.add_argument(
        "--cold", action="store_true", help="send other memory through the caches before each call"
    )
    group.add_argument(
        "--min-time",
        type=float,
        default=Budget().min_time_s,
        metavar="SECONDS",
        help="timed, of each primitive on average (default: %(default)s)",
    )
    group.add_argument(
        "--repeat", type=positive, metavar="N", help="samples of each, instead of --min-time"
    )
    group.add_argument(
        "--tune",
        action="store_true",
        help="measure each case on the fastest implementation, not the library's first, where "
        "it surely is faster",
    )

    group.add_argument(
        "--peers",
        type=listed(choice("peers", tuple(PEERS))),
        default=(),
        metavar="LIST",
        help=f"other runtimes on the same arrays, in turn: {', '.join(PEERS)} ({install('peers')})",
    )


def _add_report(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--json", type=Path, metavar="FILE", help="write the run there, with every sample"
    )
    group.add_argument("--csv", type=Path, metavar="FILE", help="write a row there for each case")
    group.add_argument(
        "--html", type=Path, metavar="FILE", help="write a page, with plots and tables that sort"
    )
    group.add_argument(
        "--markdown", action="store_true", help="print the table as Markdown, with all columns"
    )
    group.add_argument(
        "--repro", action="store_true", help="print how to reproduce each row, here and in benchdnn"
    )
