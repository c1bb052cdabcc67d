"""A model in one precision, ready to be timed: whole, or node by node in their places."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyonednn_q.errors import ArgumentError, UnsupportedError
from pyonednn_q.models.peer_sessions import ready
from pyonednn_q.native import Prepared
from pyonednn_q.network.carrier import spec_of_array
from pyonednn_q.onnx.fused_node import fused_nodes
from pyonednn_q.shown import shortened

if TYPE_CHECKING:
    from pyonednn_q.graph.graph import Graph
    from pyonednn_q.network import Compiled, Network

__all__ = ["TimedForm", "node_samples", "peer_calls"]

Array = np.ndarray[Any, Any]
_NODE_ROUNDS = 15


class TimedForm(NamedTuple):
    """A model in one precision, ready to run.

    Attributes
    ----------
    dtype : str
        As `bench` has it: ``"u8s8u8"`` or ``"f32"``.
    source : Graph
        Its model, for other runtimes.
    graph : Graph
        What it computes.
    compiled : Compiled
        The same, as one program.
    arrays : list of ndarray
        Its inputs.
    owners : dict of str to str
        Owner of each of the program's nodes: the first output of the fused node that it belongs to.
    """

    dtype: str
    source: Graph
    graph: Graph
    compiled: Compiled
    arrays: list[Array]
    owners: dict[str, str]

    @classmethod
    def of(
        cls,
        dtype: str,
        source: Graph,
        graph: Graph,
        network: Network,
        inputs: Mapping[str, Array],
    ) -> TimedForm:
        """Compile a network for its inputs, and run it once."""
        arrays = [inputs[name] for name in network.inputs]
        specs = {name: spec_of_array(inputs[name], name) for name in network.inputs}
        compiled = network.compile(specs)
        owners = {step.dst: node.output for node in fused_nodes(graph) for step in node.steps}
        form = cls(dtype, source, graph, compiled, arrays, owners)
        form.call()
        return form

    def call(self) -> object:
        """Run on the inputs."""
        return self.compiled(*self.arrays)

    def times(self) -> dict[str, float]:
        """Run once; return microseconds by the output of the node."""
        total: dict[str, float] = defaultdict(float)
        for name, us in self.compiled.times(*self.arrays).items():
            total[self.owners.get(name, name)] += us
        return total

    @property
    def pythonic(self) -> set[str]:
        """Outputs of nodes for which Python is entered."""
        return {
            self.owners.get(step.node, step.node)
            for step in self.compiled.steps
            if _is_function(step.runs)
        }


def _is_function(runs: object) -> bool:
    """Tell whether a step of a program is a function of Python."""
    return callable(runs) and not isinstance(runs, Prepared)


def node_samples(forms: Sequence[TimedForm]) -> dict[str, dict[str, list[float]]]:
    """Return microseconds of each node, by dtype of the form and output; forms take turns."""
    samples: dict[str, dict[str, list[float]]] = {form.dtype: {} for form in forms}
    for form in forms:
        form.times()
    for _ in range(_NODE_ROUNDS):
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
