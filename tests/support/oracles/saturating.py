"""What becomes of a model in a process of its own, where weights of 8 bits may saturate."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import pyonednn_q as pq
from pyonednn_q.native import runtime
from pyonednn_q.network import PythonCall

Array = np.ndarray[Any, Any]


class Became(NamedTuple):
    """How a model ran.

    Attributes
    ----------
    has_vnni : bool
        Whether the process has.
    how : dict of str to str
        Of each node by name.
    python : list of str
        Tensors that the network computes by Python.
    nodes, network : ndarray
        What both ways to run it gave.
    warnings : list of str
        What the package logged.
    """

    has_vnni: bool
    how: dict[str, str]
    python: list[str]
    nodes: Array
    network: Array
    warnings: list[str]


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def ran(path: Path, x: Array, **options: Any) -> Became:
    """Run a model of one input, ``x``, and one output."""
    kept = _Kept()
    logging.getLogger("pyonednn_q").addHandler(kept)
    model = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(path), **options))
    (nodes,) = model.run({"x": x}).values()
    network = model.network()
    result = network(x)
    by_python = [node.dst for node in network.nodes if isinstance(node.runs, PythonCall)]
    return Became(
        runtime.isa().has_vnni(),
        {node.name: node.how for node in model.nodes},
        by_python,
        nodes,
        next(iter(result.values())),
        kept.lines,
    )
