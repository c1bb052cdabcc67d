"""A model in one precision, ready to be timed: whole, or node by node in their places."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, UnsupportedError
from pyonednn_q.models.peer_sessions import ready
from pyonednn_q.native import Prepared
from pyonednn_q.onnx.fused_node import fused_nodes
from pyonednn_q.report.progress import counted
from pyonednn_q.shown import shortened

if TYPE_CHECKING:
    from pyonednn_q.graph.graph import Graph
    from pyonednn_q.network import Compiled
    from pyonednn_q.onnx import Model
    from pyonednn_q.onnx.definitions import Run
    from pyonednn_q.onnx.fused_node import FusedNode

__all__ = ["TimedForm", "node_samples", "peer_calls"]

_NODE_ROUNDS = 15


class TimedForm(NamedTuple):
    """A model in one precision, ready to run.

    Attributes
    ----------
    dtype : str
        Data types in the notation of `bench`: ``"u8s8u8"`` or ``"f32"``.
    source : Graph
        Model for other runtimes.
    graph : Graph
        Graph that it computes.
    model : Model
        Model that runs.
    compiled : Compiled or None
        Part of the model that is one program.
    left : tuple of (FusedNode, callable)
        Nodes that run behind it, one by one: values decide their dims.
    inputs : dict of str to ndarray
        Inputs of the model.
    owners : dict of str to str
        Owner of each of the program's nodes: the first output of the fused node that it belongs to.
    """

    dtype: str
    source: Graph
    model: Model
    compiled: Compiled | None
    left: tuple[tuple[FusedNode, Run], ...]
    inputs: dict[str, Array]
    owners: dict[str, str]

    @classmethod
    def of(cls, dtype: str, source: Graph, model: Model, inputs: Mapping[str, Array]) -> TimedForm:
        """Compile a model for its inputs, and run it once."""
        arrays = {name: inputs[name] for name in model.graph.inputs}
        compiled, left = model.parts(arrays)
        steps = {step.dst: node.output for node in fused_nodes(model.graph) for step in node.steps}
        form = cls(dtype, source, model, compiled, left, arrays, steps)
        form.call()
        return form

    @property
    def graph(self) -> Graph:
        """Graph of the model."""
        return self.model.graph

    def call(self) -> object:
        """Run on the inputs."""
        if self.compiled is None or self.left:
            return self.model.run(self.inputs)
        return self.compiled(*self.inputs.values())

    def times(self) -> dict[str, float]:
        """Run once; return microseconds by the output of the node."""
        total: dict[str, float] = defaultdict(float)
        arrays = [*self.inputs.values()]
        if self.compiled is not None:
            for name, us in self.compiled.times(*arrays).items():
                total[self.owners.get(name, name)] += us
        if self.left:
            values = {**self.graph.constants, **self.inputs}
            values |= {} if self.compiled is None else self.compiled(*arrays)
            for node, call in self.left:
                start = time.perf_counter()
                outputs = call(values)
                total[node.output] += 1e6 * (time.perf_counter() - start)
                values.update(zip(node.outputs, outputs, strict=True))
        return total

    @property
    def pythonic(self) -> set[str]:
        """Outputs of nodes for which Python is entered."""
        steps = () if self.compiled is None else self.compiled.steps
        functions = (step.node for step in steps if _is_function(step.runs))
        behind = {node.output for node, _ in self.left if not node.is_compiled}
        return behind | {self.owners.get(name, name) for name in functions}

    @property
    def memory(self) -> str:
        """Memory of the model beside its weights, in words."""
        if self.compiled is None:
            return "of each node by itself"
        of_program = (
            f"tensors between nodes {self.compiled.arena_bytes} bytes, "
            f"scratchpad {self.compiled.scratchpad_bytes} bytes"
        )
        return of_program + (f"; {len(self.left)} nodes by themselves" if self.left else "")


def _is_function(runs: object) -> bool:
    """Tell whether a step of a program is a function of Python."""
    return callable(runs) and not isinstance(runs, Prepared)


def node_samples(forms: Sequence[TimedForm]) -> dict[str, dict[str, list[float]]]:
    """Return microseconds of each node, by dtype of the form and output; forms take turns."""
    samples: dict[str, dict[str, list[float]]] = {form.dtype: {} for form in forms}
    for form in forms:
        form.times()
    for _ in counted(range(_NODE_ROUNDS), "rounds of all nodes"):
        for form in forms:
            form.call()  # the caches are its own again
            for name, us in form.times().items():
                samples[form.dtype].setdefault(name, []).append(max(us, 1e-3))
    return samples


def peer_calls(
    forms: Sequence[TimedForm],
    peers: Sequence[str],
    inputs: Mapping[str, Array],
    threads: int,
    refused: list[tuple[str, str]],
) -> dict[tuple[str, str], Callable[[], object]]:
    """Return calls of other runtimes, by dtype of the form and name."""
    calls: dict[tuple[str, str], Callable[[], object]] = {}
    for form in forms:
        arrays = {
            name: np.asarray(array, form.source.inputs[name].dtype)
            for name, array in inputs.items()
        }
        for peer in peers:
            try:
                calls[form.dtype, peer] = ready(peer, form.source, arrays, threads)
            except (UnsupportedError, ArgumentError) as error:
                refused.append((f"{peer} {form.dtype}", shortened(str(error), 200)))
    return calls
