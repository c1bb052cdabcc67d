"""save: an `Graph` as an ONNX model, for other runtimes and for `load`.

What `fuse` is told of it stands in its metadata, which other runtimes pass by.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from pyonednn_q.argument import instance, path
from pyonednn_q.errors import ArgumentError, LibraryError
from pyonednn_q.graph.graph import Graph, GraphNode
from pyonednn_q.graph.kind import Kind
from pyonednn_q.onnx.moves_at_branches import with_moves_before_quantizers
from pyonednn_q.onnx.own_functions import own_function
from pyonednn_q.onnx.shape_inference import node_proto, value_proto
from pyonednn_q.onnx.subgraphs import graphs_of
from pyonednn_q.reading import decoded
from pyonednn_q.shown import install, shown

_IR_VERSION = 10  # has all types that a graph may have, and is no newer than the runtimes
_MOST_BYTES = (1 << 31) - 1  # of protobuf
_KEY = "pyonednn_q.fuse"  # among ONNX's metadata_props
_VERSION = 1
_NAMES = ("exact_rounding", "keep_rounding", "floats", "saturation", "blocks")


def save(
    graph: Graph, file: str | os.PathLike[str], options: Mapping[str, Any] | None = None
) -> None:
    """Write a graph as an ONNX model.

    Parameters
    ----------
    graph : Graph
        Graph of `load`, or of a `Calibration`.
    file : path
        File to write; an existing one is overwritten.
    options : mapping of str to object, optional
        Options of `fuse` to store, which `pyonednn_q.load` then uses; other runtimes ignore them.

    Raises
    ------
    ArgumentError
        The model exceeds protobuf's limit of 2 GB.
    LibraryError
        The package onnx is not installed.
    """
    instance("graph", graph, Graph)
    target = path("file", file)
    target.write_bytes(model_bytes(graph, options=options))


def model_bytes(
    graph: Graph, outputs: Iterable[str] = (), options: Mapping[str, Any] | None = None
) -> bytes:
    """Return a graph as an ONNX model, with more of its tensors as outputs.

    Parameters
    ----------
    graph : Graph
        Graph that `onnx.load` returned.
    outputs : iterable of str
        Names of tensors of it, which are returned behind its own outputs.
    options : mapping of str to object, optional
        Options of `fuse`, as for `save`.

    Raises
    ------
    ArgumentError
        More than protobuf takes.
    """
    try:
        from onnx import helper, numpy_helper
    except ImportError:
        message = f"models are written by the package onnx: {install('onnx')}"
        raise LibraryError(message) from None
    more = [name for name in dict.fromkeys(outputs) if name not in graph.outputs]
    graph = with_moves_before_quantizers(graph, frozenset(more))
    read = {name for node in graph.nodes for name in node.inputs} | set(graph.outputs)
    constants = [
        numpy_helper.from_array(np.asarray(array), name)
        for name, array in graph.constants.items()
        if name in read
    ]
    proto = helper.make_graph(
        [node_proto(node) for node in graph.nodes],
        "graph",
        [value_proto(name, info) for name, info in graph.inputs.items()],
        [
            *(value_proto(name, info) for name, info in graph.outputs.items()),
            *map(helper.make_empty_tensor_value_info, more),
        ],
        constants,
    )
    imports = [helper.make_opsetid(domain, version) for domain, version in graph.opsets.items()]
    rows = dict.fromkeys(_rows(graph.nodes))
    own = [own_function(row, graph.opset) for row in rows]
    functions = [each for each in own if each is not None]
    model = helper.make_model(
        proto, opset_imports=imports, ir_version=_IR_VERSION, functions=functions
    )
    if options is not None:
        text = json.dumps({"version": _VERSION, **options})
        helper.set_model_props(model, {_KEY: text})
    if model.ByteSize() > _MOST_BYTES:
        raise ArgumentError("model", f"{model.ByteSize()} bytes", f"at most {_MOST_BYTES}")
    return bytes(model.SerializeToString())


def _rows(nodes: Iterable[GraphNode]) -> Iterator[Kind]:
    """Give the kinds of nodes, and of those of graphs within them."""
    for node in nodes:
        yield node.row
        for graph in graphs_of(node.attributes).values():
            yield from _rows(graph.nodes)


def options_of(metadata: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return the options of `fuse` that a model's file has; none where it has none.

    Parameters
    ----------
    metadata : iterable of (str, str)
        Keys and texts. What an option may be is left to `fuse`.

    Raises
    ------
    ArgumentError
        Another version, and what `save` does not write.
    """
    text = dict(metadata).get(_KEY)
    if text is None:
        return {}
    argument = f"model: metadata {_KEY}"
    options = decoded(argument, text)
    if not isinstance(options, dict) or options.get("version") != _VERSION:
        got = options.get("version") if isinstance(options, dict) else options
        raise ArgumentError(argument, shown(got), f"version {_VERSION}")
    known = {name: each for name, each in options.items() if name != "version"}
    for name in known:
        if name not in _NAMES:
            raise ArgumentError(argument, shown(name), f"options of {shown(_NAMES)}")
    return known
