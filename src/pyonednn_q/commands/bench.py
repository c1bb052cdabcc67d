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

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pyonednn_q.bench import check, processes, report, suite
from pyonednn_q.bench.bench_run import Run, joined, metadata
from pyonednn_q.bench.case import Cache, Setting
from pyonednn_q.bench.measure import F32, Request, measure
from pyonednn_q.bench.peers import require
from pyonednn_q.bench.precision import Precision
from pyonednn_q.bench.run_page import html
from pyonednn_q.commands.option_table import is_model
from pyonednn_q.commands.words import reading_of
from pyonednn_q.errors import ArgumentError
from pyonednn_q.native import runtime
from pyonednn_q.native.timing import Budget
from pyonednn_q.report.progress import Progress
from pyonednn_q.report.table import Column, Table
from pyonednn_q.shown import shown

__all__ = ["measured", "request", "run"]

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

INT8 = Precision("u8", "s8", "u8")
_WRONG = 1


def run(options: argparse.Namespace) -> int:
    """Measure and report; or list, or check: then 1 where something is wrong."""
    if not options.what:
        print(_listing(as_json=options.json))
        return 0
    if options.what[0] == "check":
        return _checked(options)
    if is_model(options):
        return _run_model(options)
    to_measure = request(options)
    require(to_measure.peers)
    result = measured(to_measure, options.isa)
    if options.json:
        print(result.to_json())
    elif options.markdown:
        print(report.markdown(result, repro=options.repro))
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        print(report.text(result, width=width, repro=options.repro))
    _write(options, result, lambda: html(result))
    return 0


def _run_model(options: argparse.Namespace) -> int:
    """Measure a model and report."""
    from pyonednn_q.models import times_report
    from pyonednn_q.models.model_file import arrays_of, inputs_of, read
    from pyonednn_q.models.model_times import measure as measure_model
    from pyonednn_q.models.peer_sessions import checked_peers, installed

    if len(options.what) > 1:
        raise ArgumentError("MODEL", shown(options.what), "one model")
    if options.threads is not None and len(options.threads) > 1:
        raise ArgumentError("--threads", shown(options.threads), "one number for a model")
    peers = checked_peers("--peers", options.peers)
    arrays = None if options.input is None else arrays_of(options.input)
    file = read(Path(options.what[0]), arrays, **reading_of(options))
    inputs = inputs_of(file.graph.inputs, arrays, options.seed)
    file = file.chosen(inputs)
    file.run(inputs)
    threads = options.threads[0] if options.threads else runtime.get_num_threads()
    budget = Budget(options.min_time, options.repeat)
    times = measure_model(file, inputs, peers or installed(), budget, threads, options.callers)
    if options.json:
        print(times.run.to_json())
    else:
        print(times_report.markdown(times) if options.markdown else times_report.text(times))
    _write(options, times.run, lambda: times_report.html(times))
    return 0


def _write(options: argparse.Namespace, result: Run, page: Callable[[], str]) -> None:
    """Write the files of --save, --csv and --html."""
    for path, written in (
        (options.save, result.to_json),
        (options.csv, lambda: report.csv_text(result)),
        (options.html, page),
    ):
        if path is not None:
            path.write_bytes(written().encode("utf-8", "replace"))


def _checked(options: argparse.Namespace) -> int:
    """Check suites and problems, print each verdict; 1 where one is wrong, or a line is dead."""
    bad, documents = False, []
    for name, findings in check.findings(options.what[1:], options.dtype):
        if options.json:
            documents.append({"suite": name, "findings": [each.plain() for each in findings]})
        else:
            print(check.verdict(name, findings))
        bad |= check.is_bad(findings)
    if options.json:
        print(json.dumps(documents, indent=1))
    return _WRONG if bad else 0


def measured(to_measure: Request, isas: Sequence[str]) -> Run:
    """Measure here, or in one process per instruction set."""
    if not isas:
        with Progress(to_measure.steps) as progress:
            return measure(to_measure, progress)
    runs = [processes.measure_at(to_measure, level) for level in processes.levels(isas)]
    return joined(metadata(), runs)


def request(options: argparse.Namespace) -> Request:
    """Return the request that the options describe.

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
        raise ArgumentError("--filter", shown(options.filter.pattern), "a part of some line's name")
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
        raise ArgumentError("--peers", "--isa", "none: peers have kernels that know no such limit")
    if peers and options.cold:
        raise ArgumentError("--peers", "--cold", "none: peers are timed with warm caches")
    return peers


def _listing(*, as_json: bool) -> str:
    """Return the suites of the package, and a hint at --help."""
    suites = [suite.find(name) for name in suite.names()]
    if as_json:
        told = [{"suite": s.name, "lines": len(s.lines), "title": s.title} for s in suites]
        return json.dumps(told, indent=1)
    columns = [Column("suite"), Column("lines", right=True), Column("what it is")]
    cells = [[entry.name, str(len(entry.lines)), entry.title] for entry in suites]
    table = Table(columns, cells).text()
    return f"{table}\n\npyonednn-q bench SUITE measures one; --help says how"
