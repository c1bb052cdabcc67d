"""Loop and Scan by the standard's text: their bodies run step by step.

`onnx.reference` joins what steps of a Loop make along dimension 0, where the standard stacks it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.errors import Error, UnsupportedError
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph, GraphNode
from pyonednn_q.onnx.subgraphs import captured
from pyonednn_q.shown import shortened, shown

__all__ = ["looped"]

Values = dict[str, Array]
Call = Callable[[Values], tuple[Array, ...]]
Run = Callable[[Values], list[Array]]
Step = Callable[[tuple[Array, ...]], list[Array]]

_MOST_STEPS = 1 << 20  # a minute or more of Python
_MOST_BYTES = 1 << 30  # of what steps make


def looped(node: GraphNode, run: Run) -> Call:
    """Return a call of a Loop or Scan.

    Parameters
    ----------
    node : GraphNode
        Node of opset 9 or later.
    run : callable
        Function from the body's inputs, by name, to its results in order.

    Returns
    -------
    callable
        Function from values by name to the outputs.

    Raises
    ------
    UnsupportedError
        Raised by the call: what `run` raises; no step, where the dims of results are not known;
        more than 2^20 steps, or more than a GiB of results.
    """
    body: Graph = node.attributes["body"]
    free = captured(node.attributes)
    own = len(node.inputs) - len(free)
    is_loop = node.row is kinds.LOOP
    turns = _loop if is_loop else _scan
    # What is handed from step to step comes first, in a Loop behind a condition.
    handed = own - (1 if is_loop else int(node.attributes["num_scan_inputs"]))

    def call(values: Values) -> tuple[Array, ...]:
        around = {n: values[name] for n, name in zip(free, node.inputs[own:], strict=True)}

        what = f"{node.kind} {shown(node.name)}"
        steps = nbytes = 0

        def step(arrays: tuple[Array, ...]) -> list[Array]:
            nonlocal steps, nbytes
            results = run({**around, **dict(zip(body.inputs, arrays, strict=True))})
            steps += 1
            nbytes += sum(each.nbytes for each in results[handed:])
            if steps > _MOST_STEPS or nbytes > _MOST_BYTES:
                got = f"at most {_MOST_STEPS} steps and {_MOST_BYTES} bytes of results"
                raise UnsupportedError("refused", "running it step by step", what, got)
            return results

        read = [values[name] if name else None for name in node.inputs[:own]]
        try:
            results = turns(node, body, read, step)
        except Error:
            raise
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # of what it is told
            detail = f"{type(error).__name__}: {shortened(str(error), 150)}"
            raise UnsupportedError("failed", "running it step by step", what, detail) from None
        pairs = zip(node.outputs, results, strict=True)
        return tuple(each if name else np.empty(0) for name, each in pairs)

    return call


def _loop(node: GraphNode, body: Graph, read: list[Array | None], step: Step) -> list[Array]:
    most, condition, *states = read
    goes = condition is None or bool(condition.reshape(()))
    rows: list[list[Array]] = []
    for at in count() if most is None else range(int(most.reshape(()))):
        if not goes:
            break
        inputs = (np.asarray(at, np.int64), np.asarray(True), *_all(states))
        more, *results = step(inputs)
        goes = bool(more.reshape(()))
        states, row = [*results[: len(states)]], results[len(states) :]
        rows.append(row)
    kept = [*_all(states)]
    return [*kept, *_stacked(node, body, 1 + len(kept), rows)]


def _scan(node: GraphNode, body: Graph, read: list[Array | None], step: Step) -> list[Array]:
    number = int(node.attributes["num_scan_inputs"])
    arrays = [*_all(read)]
    states, sources = arrays[: len(arrays) - number], arrays[len(arrays) - number :]
    axes = node.attributes.get("scan_input_axes", (0,) * number)
    backward = node.attributes.get("scan_input_directions", (0,) * number)
    moved = [np.moveaxis(each, axis, 0) for each, axis in zip(sources, axes, strict=True)]
    moved = [each[::-1] if way else each for each, way in zip(moved, backward, strict=True)]
    rows: list[list[Array]] = []
    for at in range(len(moved[0])):
        results = step((*states, *(np.asarray(each[at], order="C") for each in moved)))
        states, row = results[: len(states)], results[len(states) :]
        rows.append(row)
    stacked = _stacked(node, body, len(states), rows)
    axes = node.attributes.get("scan_output_axes", (0,) * len(stacked))
    backward = node.attributes.get("scan_output_directions", (0,) * len(stacked))
    turned = [each[::-1] if way else each for each, way in zip(stacked, backward, strict=True)]
    moved = [np.moveaxis(each, 0, axis) for each, axis in zip(turned, axes, strict=True)]
    return [*states, *(np.ascontiguousarray(each) for each in moved)]


def _all(arrays: list[Array | None]) -> Iterator[Array]:
    return (each for each in arrays if each is not None)


def _stacked(node: GraphNode, body: Graph, first: int, rows: list[list[Array]]) -> list[Array]:
    """Return what steps made, from one of the body's outputs on, along a new dimension 0."""
    if rows:
        return [np.stack(each) for each in zip(*rows, strict=True)]
    known = [*body.outputs.values()][first:]
    if any(each.dims is None or not each.dtype for each in known):
        what = f"{node.kind} {shown(node.name)}"
        raise UnsupportedError("refused", "no step", what, "dims of what it makes are not known")
    return [np.empty((0, *(each.dims or ())), np.dtype(each.dtype)) for each in known]
