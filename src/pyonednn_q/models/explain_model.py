"""``pyonednn-q explain model.onnx``: every node of a model, how it runs and why."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pyonednn_q.models.model_arguments import refuse

if TYPE_CHECKING:
    import argparse

__all__ = ["run"]

_OF_LAYERS = {
    "list": False,
    "show": False,
    "policy": None,
    "dst": None,
    "strict": False,
    "benchdnn": False,
    "isa": None,
    "version": None,
    "here": False,
}


def run(options: argparse.Namespace) -> int:
    """Print the report of a model, and write its page."""
    refuse(options, _OF_LAYERS)
    from pyonednn_q.bench.report import write
    from pyonednn_q.models.model_file import read
    from pyonednn_q.models.model_page import page
    from pyonednn_q.models.model_report import ModelReport

    report = ModelReport.of(read(Path(options.layer), options))
    if options.html is not None:
        options.html.write_text(page(report), "utf-8", "replace")
    write(report.json() if options.json else report.text(trace=options.trace))
    return 0
