"""Thresholds made alike across operators that are free when S_x = S_y.

A leaky ReLU, a maximum or a copy costs a multiplication per value where source and result have
their own scales, and none where they share one. Calibration gives each tensor its own; then

    backward    the source takes the result's range, if this operator alone reads it: a ReLU or a
                maximum cuts off what the result would not hold anyway
    forward     the result takes the source's range: what only moves or bends values down holds no
                more than its source

first backward, from the last operator to the first, and through operators that only move values;
then forward, but for results that have their range from behind. Source: TPU-MLIR's forward and
backward calibration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from pyonednn_q.argument import instance, items, named
from pyonednn_q.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["GraphOperator", "align_thresholds"]

BACKWARD = ("abs", "max_pool", "relu")
_MOVING = ("pad", "permute", "reshape", "slice", "upsample")
FORWARD = (*_MOVING, "average_pool", "leaky_relu", "prelu")

Range = TypeVar("Range")


@dataclass(frozen=True, slots=True)
class GraphOperator:
    """One operator of a graph.

    Parameters
    ----------
    kind : str
        Kind of operator: one of `BACKWARD` (the source gets the range of the result) or of
        `FORWARD` (the result gets the range of the source). With any other name, both keep their
        ranges.
    sources : tuple of str
        Names of the tensors that it reads; the range of the first one is aligned.
    result : str
        Name of the tensor that it writes.

    Raises
    ------
    ArgumentError
        Naming the argument, what came and what would do.
    """

    kind: str
    sources: tuple[str, ...]
    result: str

    def __post_init__(self) -> None:
        instance("kind", self.kind, str)
        object.__setattr__(self, "sources", items("sources", self.sources, str))
        instance("result", self.result, str)


def align_thresholds(
    graph: Sequence[GraphOperator], thresholds: Mapping[str, Range]
) -> dict[str, Range]:
    """Return thresholds that give operators one scale for source and result where possible.

    Parameters
    ----------
    graph : sequence of GraphOperator
        Operators in the order in which they run.
    thresholds : mapping of str to threshold
        Threshold of every tensor in the graph, in real units: a magnitude, or a range (lo, hi).
        They are copied from tensor to tensor unchanged.

    Returns
    -------
    dict
        Thresholds of the same tensors. A source with several readers keeps its own.

    Raises
    ------
    ArgumentError
        A tensor without a threshold, or one that is written twice or read before.

    Examples
    --------
    >>> graph = [GraphOperator("conv", ("x",), "a"), GraphOperator("relu", ("a",), "b")]
    >>> align_thresholds(graph, {"x": 1.0, "a": 9.0, "b": 6.0})
    {'x': 1.0, 'a': 6.0, 'b': 6.0}
    """
    graph = items("graph", graph, GraphOperator)
    aligned: dict[str, Range] = named("thresholds", thresholds, object)
    _check(graph, aligned)
    readers: dict[str, int] = {}
    for operator in graph:
        for name in set(operator.sources):
            readers[name] = readers.get(name, 0) + 1
    settled: set[str] = set()
    for operator in reversed(graph):
        source, result = operator.sources[0], operator.result
        moved = operator.kind in _MOVING and result in settled
        if readers[source] == 1 and (moved or operator.kind in BACKWARD):
            aligned[source] = aligned[result]
            settled.add(source)
    for operator in graph:
        if operator.kind in FORWARD and operator.result not in settled:
            aligned[operator.result] = aligned[operator.sources[0]]
    return aligned


def _check(graph: Sequence[GraphOperator], thresholds: Mapping[str, object]) -> None:
    results = [operator.result for operator in graph]
    for at, operator in enumerate(graph):
        if not operator.sources:
            raise ArgumentError("graph", f"a {operator.kind} of nothing", "at least one source")
        for name in (*operator.sources, operator.result):
            if name not in thresholds:
                raise ArgumentError("thresholds", f"none of {name!r}", "one of every tensor")
        late = set(operator.sources) & set(results[at:])
        if late or operator.result in results[:at]:
            got = f"{sorted(late or {operator.result})} written after it is read, or twice"
            raise ArgumentError("graph", got, "operators in the order in which they run")
