"""Lengths that a model leaves open: which they are in a call, and the graph that has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyonednn_q.errors import ArgumentError, Error, ShapeError
from pyonednn_q.graph.graph import Dims, Graph, Value
from pyonednn_q.onnx.shape_inference import with_tensors
from pyonednn_q.shown import shortened, shown

__all__ = [
    "bound",
    "check_bound",
    "check_dims",
    "check_lengths",
    "refusal_of_lengths",
]

Open = tuple[int | str, ...]


def bound(graph: Graph, dims: Mapping[str, Dims]) -> Graph:
    """Return a graph of certain lengths.

    Parameters
    ----------
    graph : Graph
        Graph with open lengths.
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
    check_lengths(graph.symbols, dims)


def check_lengths(
    symbols: Mapping[str, Open],
    dims: Mapping[str, Dims | None],
    lengths: Mapping[str, int] | None = None,
) -> None:
    """Check dims of inputs against the model, and symbols against each other.

    Parameters
    ----------
    symbols : mapping of str to tuple of (int or str)
        Dims by input: fixed lengths, symbols, and empty strings for any length.
    dims : mapping of str to tuple of int
        Dims of these inputs.
    lengths : mapping of str to int, optional
        Lengths of symbols that are told beside them, by `load`, whose ``dims`` errors name then.

    Raises
    ------
    ShapeError
        Naming the input.
    """
    argument = "inputs" if lengths is None else "dims"
    known = {name: (length, "is told") for name, length in (lengths or {}).items()}
    for name, own_symbols in symbols.items():
        of_input = f"{argument}[{shown(name)}]"
        own = dims.get(name)
        if own is None or len(own) != len(own_symbols):
            got = "none" if own is None else str(own)
            raise ShapeError(of_input, got, shown_dims(own_symbols))
        for length, symbol in zip(own, own_symbols, strict=True):
            if isinstance(symbol, int):
                if length != symbol:
                    raise ShapeError(of_input, str(own), shown_dims(own_symbols))
            elif symbol:
                first, of = known.setdefault(symbol, (length, f"{shown(name)} has"))
                if first != length:
                    wanted = f"{symbol} = {first}, as {of}"
                    raise ShapeError(of_input, f"{own}, {symbol} = {length}", wanted)


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


def refusal_of_lengths(dims: Mapping[str, Dims], error: Error) -> ShapeError:
    """Return what says by the inputs' names what a node says that no user knows.

    Parameters
    ----------
    dims : mapping of str to tuple of int
        Dims of inputs whose lengths are open.
    error : Error
        Error of the node.
    """
    (name, own), *others = dims.items()
    argument = "inputs" if others else f"inputs[{shown(name)}]"
    got = ", ".join(f"{shown(n)} {each}" for n, each in dims.items()) if others else str(own)
    why = f"lengths that all nodes take; here {shortened(str(error), 300)}"
    return ShapeError(argument, got, why)


def shown_dims(symbols: Open) -> str:
    """Return dims as they are shown: ``[batch, 3, ?, 224]``."""
    return f"[{', '.join(str(each) or '?' for each in symbols)}]"
