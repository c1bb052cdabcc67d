"""``pyonednn-q bench model.onnx``: what a model takes, beside its FP32 form and other runtimes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pyonednn_q.errors import ArgumentError
from pyonednn_q.models.model_arguments import refuse
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    import argparse

__all__ = ["run"]

_OF_PROBLEMS = {
    "dtype": None,
    "layout": ("channels_last",),
    "batch": (1,),
    "filter": None,
    "isa": (),
    "cold": False,
    "tune": False,
    "repro": False,
}


def run(options: argparse.Namespace) -> int:
    """Measure a model and report."""
    from pyonednn_q.bench import report
    from pyonednn_q.bench.tail import Tail
    from pyonednn_q.models import times_report
    from pyonednn_q.models.model_file import arrays_of, inputs_of, read
    from pyonednn_q.models.model_times import measure
    from pyonednn_q.models.peer_sessions import checked_peers, installed
    from pyonednn_q.native import runtime
    from pyonednn_q.native.timing import Budget

    refuse(options, {**_OF_PROBLEMS, "tail": (Tail("none"),)})
    if len(options.what) > 1:
        raise ArgumentError("what", shown(options.what), "one model")
    if options.threads is not None and len(options.threads) > 1:
        raise ArgumentError("--threads", shown(options.threads), "one number for a model")
    peers = checked_peers("--peers", options.peers)
    for path in (options.json, options.csv, options.html):
        if path is not None and not path.absolute().parent.is_dir():
            raise ArgumentError("file", shown(str(path)), "a name in a folder that exists")
    arrays = None if options.input is None else arrays_of(options.input)
    file = read(Path(options.what[0]), options, arrays)
    inputs = inputs_of(file.graph.inputs, arrays, options.seed)
    file = file.chosen(inputs)
    threads = options.threads[0] if options.threads else runtime.get_num_threads()
    budget = Budget(options.min_time, options.repeat)
    times = measure(file, inputs, peers or installed(), budget, threads, options.callers)
    report.write(times_report.markdown(times) if options.markdown else times_report.text(times))
    if options.json is not None:
        options.json.write_text(times.run.to_json(), "utf-8")
    if options.csv is not None:
        options.csv.write_text(report.csv_text(times.run), "utf-8", newline="")
    if options.html is not None:
        options.html.write_text(times_report.html(times), "utf-8", "replace")
    return 0
