"""Times of a model, node by node and whole, beside its FP32 form and other runtimes.

Whole models take turns in one process, each called from Python on the same arrays. Each layer has a
row, timed inside the running network, so with the caches as the network leaves them; a second row
has its FP32 counterpart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyonednn_q.bench import probe
from pyonednn_q.bench.bench_run import Run, metadata, rows
from pyonednn_q.bench.precision import Precision
from pyonednn_q.bench.row import OURS, Rival, Row
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import Error
from pyonednn_q.models.callers import waits_at_once
from pyonednn_q.models.timed_form import TimedForm, node_samples, peer_calls
from pyonednn_q.native import runtime
from pyonednn_q.native.timing import REST_S, TAKEN_AGAIN, Budget, interleaved, looped
from pyonednn_q.onnx.float_form import float_form
from pyonednn_q.onnx.float_model import float_model
from pyonednn_q.onnx.fused_node import fused_nodes
from pyonednn_q.ops.operator import Operator
from pyonednn_q.report.progress import Progress
from pyonednn_q.report.table import Table
from pyonednn_q.report.told import Told
from pyonednn_q.shown import shortened

if TYPE_CHECKING:
    from pyonednn_q.models.model_file import ModelFile
    from pyonednn_q.onnx.fused_node import FusedNode
from pyonednn_q.graph.graph import Graph

__all__ = ["AT_ONCE", "WHOLE", "ModelTimes", "NodeTime", "measure"]

WHOLE, AT_ONCE = "whole model", "whole model, callers at once"
_INT8, _F32 = Precision("u8", "s8", "u8"), Precision("f32", "f32", "f32")
_IN_PLACE = "in place"


class NodeTime(NamedTuple):
    """Time of a node within the running network.

    Attributes
    ----------
    name, how : str
        Name of the node, and how it runs.
    us : float
        Median microseconds.
    calls_python : bool
        Whether a function of Python runs for it, between primitives.
    """

    name: str
    how: str
    us: float
    calls_python: bool


@dataclass(frozen=True, slots=True, repr=False)
class ModelTimes(Told):
    """Measured times of a model.

    Attributes
    ----------
    title : str
        The model's file.
    run : Run
        Rows: of the whole model in INT8 and FP32, with other runtimes as rivals; of the same with
        several callers; and of each layer, in both.
    nodes : tuple of NodeTime
        Every node of the INT8 model, in order.
    refused : tuple of (str, str)
        Forms that were not measured, with reasons.
    callers : int
        Number of simultaneous callers in the second measurement.
    memory : str
        Memory of the INT8 network without weights, in words.
    left : tuple of str
        Names of the nodes that are not part of a program, because values decide dims.
    """

    title: str
    run: Run
    nodes: tuple[NodeTime, ...]
    refused: tuple[tuple[str, str], ...]
    callers: int
    memory: str
    left: tuple[str, ...] = ()

    def summary(self) -> str:
        """Return the file, and what was measured of it."""
        return f"{self.title}: {self.run.summary()}"

    def _parts(self) -> Iterator[str | Table]:
        yield self.title
        yield rows(self.run)

    @property
    def python_share(self) -> float:
        """Share of the time of all nodes in those for which Python is entered, 0 to 1."""
        us = sum(node.us for node in self.nodes if node.calls_python)
        return us / (sum(node.us for node in self.nodes) or 1.0)

    @property
    def shares(self) -> dict[str, tuple[int, float]]:
        """Number of nodes that run in each way, and their microseconds; the longest first."""
        by_way: dict[str, tuple[int, float]] = {}
        for node in self.nodes:
            way = f"{node.how}, by Python" if node.calls_python else node.how
            count, us = by_way.get(way, (0, 0.0))
            by_way[way] = count + 1, us + node.us
        return dict(sorted(by_way.items(), key=lambda each: -each[1][1]))


def measure(
    file: ModelFile,
    inputs: Mapping[str, Array],
    peers: Sequence[str],
    budget: Budget,
    threads: int,
    callers: int = 1,
) -> ModelTimes:
    """Measure a model.

    Parameters
    ----------
    file : ModelFile
        The model.
    inputs : mapping of str to ndarray
        Inputs of the model.
    peers : sequence of str
        Other runtimes.
    budget : Budget
        Time or number of samples for each whole model.
    threads : int
        Number of threads of every runtime, in each call.
    callers : int
        Number of simultaneous callers in the second measurement.

    Raises
    ------
    Error
        The model cannot be run.
    """
    refused: list[tuple[str, str]] = []
    with runtime.threads(threads), Progress(5 + (callers > 1)) as progress:
        progress.phase("probing the machine")
        limits = probe.probe((_INT8, _F32), lambda: None)
        progress.tick()
        progress.phase("making all forms ready")
        forms = [TimedForm.of(_INT8.name, file.graph, file.model, inputs)]
        floats = _float_form(file.graph, inputs, refused)
        forms += [] if floats is None else [floats]
        ready_peers = peer_calls(forms, peers, inputs, threads, refused)
        progress.tick()
        progress.phase("whole models, in turn")
        whole = _whole(forms, ready_peers, budget, refused, threads)
        progress.tick()
        if callers > 1:
            progress.phase(f"{callers} callers at once")
            at_once = _calls_at_once(forms, ready_peers, peers, inputs, threads, callers)
            whole += _at_once(forms, at_once, budget, threads)
            progress.tick()
        progress.phase("node by node, in their places")
        samples = node_samples(forms)
        progress.tick()
        layers = _layers(forms, samples, file, threads)
        limits = probe.at_least(limits, layers)
    about = metadata() | {peer: _version(peer) for peer in peers}
    rows = (*_summed(whole, layers), *layers)
    run = Run(about, ((("", threads), limits),), (), rows)
    first = forms[0]
    pythonic = first.pythonic
    nodes = tuple(
        NodeTime(
            node.name,
            node.how,
            float(np.median(samples[first.dtype].get(node.output, [0.0]))),  # 0: a view
            node.output in pythonic,
        )
        for node in fused_nodes(first.graph)
    )
    left = tuple(node.name for node, _ in first.left)
    return ModelTimes(file.path.name, run, nodes, tuple(refused), callers, first.memory, left)


def _float_form(
    graph: Graph, inputs: Mapping[str, Array], refused: list[tuple[str, str]]
) -> TimedForm | None:
    """Return the FP32 form of a model, ready to run, if there is one."""
    try:
        source = float_form(graph)
        model = float_model(source)
        arrays = {
            name: np.asarray(array, source.inputs[name].dtype) for name, array in inputs.items()
        }
        return TimedForm.of(_F32.name, source, model, arrays)
    except Error as error:
        refused.append((f"{OURS} FP32", shortened(str(error), 200)))
        return None


def _whole(
    forms: Sequence[TimedForm],
    peers: Mapping[tuple[str, str], Callable[[], object]],
    budget: Budget,
    refused: Sequence[tuple[str, str]],
    threads: int,
) -> list[Row]:
    """Return a row of each form as a whole, with the other runtimes as rivals."""
    calls = [*(form.call for form in forms), *peers.values()]
    seconds = [looped(call) for call in calls]
    timed = interleaved(seconds, budget, taken_again=TAKEN_AGAIN, rest_s=REST_S)
    ours, theirs = timed[: len(forms)], dict(zip(peers, timed[len(forms) :], strict=True))
    rows = []
    for form, own in zip(forms, ours, strict=True):
        rivals = [Rival(OURS, "call", own.calls, own.samples_us, "", own.disturbed)]
        rivals += [
            Rival(peer, "call", each.calls, each.samples_us, "", each.disturbed)
            for (dtype, peer), each in theirs.items()
            if dtype == form.dtype
        ]
        rivals += [
            Rival(name.partition(" ")[0], "call", 0, (), why)
            for name, why in refused
            if name.endswith(f" {form.dtype}")
        ]
        row = _row(WHOLE, WHOLE, form.dtype, own.samples_us, threads)
        row = replace(row, calls=own.calls, taken_again=own.taken_again, disturbed=own.disturbed)
        rows.append(replace(row, cache="warm", suite="", rivals=tuple(rivals)))
    return rows


def _calls_at_once(
    forms: Sequence[TimedForm],
    ready_peers: Mapping[tuple[str, str], Callable[[], object]],
    peers: Sequence[str],
    inputs: Mapping[str, Array],
    threads: int,
    callers: int,
) -> dict[tuple[str, str], list[Callable[[], object]]]:
    """Return what each caller calls: our network, which all of them share; a session of its own."""
    calls = {(form.dtype, OURS): [form.call] * callers for form in forms}
    more = [peer_calls(forms, peers, inputs, threads, []) for _ in range(callers - 1)]
    for key, first in ready_peers.items():
        calls[key] = [first, *(each[key] for each in more)]
    return calls


def _at_once(
    forms: Sequence[TimedForm],
    calls: Mapping[tuple[str, str], Sequence[Callable[[], object]]],
    budget: Budget,
    threads: int,
) -> list[Row]:
    """Return a row of each form with several callers, other runtimes as rivals."""
    seconds = budget.min_time_s * (1 if budget.rounds is None else 0)
    waits = dict(zip(calls, waits_at_once([*calls.values()], seconds, threads), strict=True))
    rows = []
    for form in forms:
        rivals = [
            Rival(name, "call", 1, tuple(each), "")
            for (dtype, name), each in waits.items()
            if dtype == form.dtype
        ]
        own = waits[form.dtype, OURS]
        row = _row(AT_ONCE, AT_ONCE, form.dtype, own, threads)
        rows.append(replace(row, cache="warm", suite="", rivals=tuple(rivals)))
    return rows


def _layers(
    forms: Sequence[TimedForm],
    samples: Mapping[str, Mapping[str, list[float]]],
    file: ModelFile,
    threads: int,
) -> list[Row]:
    """Return rows of the layers, INT8 and FP32 side by side."""
    first = forms[0]
    likes = {} if len(forms) < 2 else _by_original(forms[1].graph)
    rows = []
    for node in fused_nodes(first.graph):
        own = samples[first.dtype].get(node.output)
        if not isinstance(node.runs, Operator) or node.runs.in_groups or own is None:
            continue
        rows.append(_layer_row(node, node.name, first.graph, own, file, threads))
        like = next((likes[name] for name in _layer_names(node) if name in likes), None)
        theirs = None if like is None else samples[_F32.name].get(like.output)
        if like is not None and theirs is not None:
            row = _layer_row(like, node.name, forms[1].graph, theirs, file, threads)
            rows.append(replace(row, problem=rows[-1].problem))
    return rows


def _layer_names(node: FusedNode) -> tuple[str, ...]:
    """Return names of the model's nodes that multiply, of those that a layer stands for."""
    return tuple(name for part in node.parts if part.row.multiplies for name in part.originals)


def _by_original(graph: Graph) -> dict[str, FusedNode]:
    return {
        name: node
        for node in fused_nodes(graph)
        if isinstance(node.runs, Operator) and not node.runs.in_groups
        for name in _layer_names(node)
    }


def _layer_row(
    node: FusedNode,
    name: str,
    graph: Graph,
    samples: Sequence[float],
    file: ModelFile,
    threads: int,
) -> Row:
    assert isinstance(node.runs, Operator)
    info = graph.tensors[node.inputs[0]]
    assert info.dims is not None
    planned = node.runs.prepare(info.dims)
    problem = planned.form.asked
    src, wei, dst = problem.src, problem.wei, problem.dst
    precision = Precision(src.dtype, wei.dtype, planned.dst.dtype)
    operands = sum(_nbytes(graph, each) for each in node.operands.values())
    text = " ".join([problem.kind, *("x".join(map(str, each.dims)) for each in (src, wei, dst))])
    row = _row(name, text, precision.name, samples, threads)
    return replace(
        row,
        suite=file.path.name,
        ops=2 * problem.macs,
        padded_ops=2 * problem.macs,
        nbytes=max(src.nbytes + wei.nbytes + planned.dst.nbytes + operands, 1),
        impl=planned.primitive.impl,
        attributes=planned.primitive.attr.text(),
        notes=tuple(planned.after),
    )


def _nbytes(graph: Graph, name: str) -> int:
    info = graph.tensors.get(name)
    if info is None or info.dims is None:
        return 0
    return int(np.prod(info.dims)) * np.dtype(info.dtype).itemsize


def _row(name: str, problem: str, dtype: str, samples: Sequence[float], threads: int) -> Row:
    return Row(
        suite="",
        line=name,
        times=1,
        problem=problem,
        dtype=dtype,
        tail="none",
        layout="channels_last",
        isa="",
        threads=threads,
        cache=_IN_PLACE,
        ops=0,
        nbytes=1,
        padded_ops=0,
        impl="",
        attributes="",
        notes=(),
        calls=1,
        samples_us=tuple(samples),
        sqnr_db=None,
        ours="",
        benchdnn="",
        refused="",
    )


def _summed(whole: Sequence[Row], layers: Sequence[Row]) -> list[Row]:
    """Return the rows of whole models with the operations and bytes of their layers."""
    rows = []
    for row in whole:
        is_float = row.dtype == _F32.name
        own = [each for each in layers if (each.dtype == _F32.name) == is_float]
        ops, nbytes = sum(each.ops for each in own), sum(each.nbytes for each in own)
        rows.append(replace(row, ops=ops, padded_ops=ops, nbytes=max(nbytes, 1)))
    return rows


def _version(peer: str) -> str:
    from importlib.metadata import version

    return version(peer)
