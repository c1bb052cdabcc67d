"""Lengths that a model leaves open: which they are in a call, and the graph that has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.graph.graph import Dims, Graph, Value
from pyonednn_q.onnx.shape_inference import with_tensors
from pyonednn_q.shown import shown

__all__ = ["bound", "check_bound", "check_dims", "shown_dims"]

Open = tuple[int | str, ...]


def bound(graph: Graph, dims: Mapping[str, Dims]) -> Graph:
    """Return a graph of certain lengths.

    Parameters
    ----------
    graph : Graph
        With lengths that are open.
    dims : mapping of str to tuple of int
        Dims of its open inputs, at least.

    Raises
    ------
    ShapeError
        Naming the input whose dims do not fit.
    """
    check_dims(graph, dims)
    inputs = {name: Value(v.dtype, dims.get(name, v.dims)) for name, v in graph.inputs.items()}
    return with_tensors(replace(graph, inputs=inputs))


def check_dims(graph: Graph, dims: Mapping[str, Dims]) -> None:
    """Check dims of inputs against those that a graph fixes, and symbols against each other.

    Raises
    ------
    ShapeError
        Naming the input.
    """
    known: dict[str, tuple[int, str]] = {}
    for name, symbols in graph.symbols.items():
        argument = f"inputs[{shown(name)}]"
        own = dims.get(name)
        if own is None or len(own) != len(symbols):
            raise ShapeError(argument, "none" if own is None else str(own), shown_dims(symbols))
        for length, symbol in zip(own, symbols, strict=True):
            if isinstance(symbol, int):
                if length != symbol:
                    raise ShapeError(argument, str(own), shown_dims(symbols))
            elif symbol:
                first, of = known.setdefault(symbol, (length, name))
                if first != length:
                    wanted = f"{symbol} = {first}, as {shown(of)} has"
                    raise ShapeError(argument, f"{own}, {symbol} = {length}", wanted)


def check_bound(graph: Graph) -> None:
    """Check that no length of an input is open.

    Raises
    ------
    ArgumentError
        Naming the inputs, and what binds them.
    """
    if graph.symbols:
        got = ", ".join(f"{shown(n)} of {shown_dims(of)}" for n, of in graph.symbols.items())
        name = shown(next(iter(graph.symbols)))
        wanted = f"lengths: dims={{{name}: (...)}}, or a call on arrays"
        raise ArgumentError("dims", f"open ones: {got}", wanted)


def shown_dims(symbols: Open) -> str:
    """Return dims as they are shown: ``[batch, 3, ?, 224]``."""
    return f"[{', '.join(str(each) or '?' for each in symbols)}]"
