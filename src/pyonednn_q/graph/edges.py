"""Sorting of nodes by their edges: nodes may come in any order, but must not form a cycle."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from typing import TypeAlias

from pyonednn_q.errors import ArgumentError
from pyonednn_q.shown import shown

__all__ = ["check_no_circle"]

Ends: TypeAlias = "tuple[str, Sequence[str], Sequence[str]]"


def check_no_circle(nodes: Sequence[Ends]) -> None:
    """Raise ArgumentError where nodes need results of each other.

    Parameters
    ----------
    nodes : sequence of (str, sequence of str, sequence of str)
        Name, inputs and outputs of each, in any order.
    """
    makers = {name: at for at, (*_, outputs) in enumerate(nodes) for name in outputs if name}
    edges = {
        at: {makers[name] for name in inputs if name in makers}
        for at, (_, inputs, _) in enumerate(nodes)
    }
    if all(before < at for at, read in edges.items() for before in read):
        return  # as nearly all models have them
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        circle = " -> ".join(shown(nodes[at][0]) for at in error.args[1])
        wanted = "nodes that do not need their own results"
        raise ArgumentError("nodes", f"a circle: {circle}", wanted) from None
