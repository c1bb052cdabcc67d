"""decoder_form: a decoder whose keys and values are inputs and outputs, on a cache that grows.

Exporters give each attention its keys and values of before as inputs, and what they and the new
ones are together as outputs: copies at each token. Here one input is the memory of a cache, which
attentions append to. Its length says which places tokens have, so that masks of ones and lengths
that were made of them are not read any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from pyonednn_q.errors import ArgumentError
from pyonednn_q.graph import kinds
from pyonednn_q.graph.dims_rule import Lengths
from pyonednn_q.graph.graph import Graph, GraphNode, Value
from pyonednn_q.network import CachedAttention, CacheShape, Node
from pyonednn_q.onnx.group_attention import KNOWN, WITHOUT_EFFECT
from pyonednn_q.onnx.shape_inference import known_lengths
from pyonednn_q.onnx.written_out import with_parts_written_out
from pyonednn_q.predict.attention_rows import RotaryAngles
from pyonednn_q.shown import shown

__all__ = ["CACHE", "cached_nodes", "decoder_form"]

CACHE = "pyonednn_q:cache"  # the name of the input that is its memory
_CACHED_SINKS = 5  # which input of a CachedAttention
_Q, _K, _V, _PAST_K, _PAST_V = range(5)
_COS, _SIN, _PLACES, _BIAS, _SINKS = range(7, 12)


def decoder_form(
    graph: Graph, *, batch: int, capacity: int, dtype: str
) -> tuple[Graph, CacheShape]:
    """Let the attention nodes of a decoder share one cache, and return the dims of the cache.

    Parameters
    ----------
    graph : Graph
        Graph as read from a file: each GroupQueryAttention, or causal Attention, has keys and
        values of before from inputs of the graph, and those of all tokens are its outputs.
    batch : int
        Number of sequences.
    capacity : int
        The most tokens of each.
    dtype : {"s8", "f32"}
        Data type of the cache.

    Returns
    -------
    (Graph, CacheShape)
        Graph whose inputs are those that are still read, and `CACHE`; and dims of the cache.

    Raises
    ------
    ArgumentError
        No such attention, or one that the kernel does not compute, by name.
    """
    rows = {kinds.GROUP_QUERY, kinds.ATTENTION}
    attentions = [node for node in graph.nodes if node.row in rows]
    if not attentions:
        names = " or ".join(row.name for row in (kinds.GROUP_QUERY, kinds.ATTENTION))
        wanted = f"nodes of {names}, whose keys and values are inputs"
        raise ArgumentError("model", "none of them", wanted)
    attentions = [*map(_as_group_query, attentions)]
    for node in attentions:
        _check(graph, node)
    dims = known_lengths(graph)
    groups, depth = _sizes(dims, attentions[0])
    for node in attentions:
        if _sizes(dims, node) != (groups, depth):
            raise ArgumentError(node.name, f"{_sizes(dims, node)}", f"{(groups, depth)}, as others")
    shape = CacheShape(len(attentions), batch, groups, depth, depth, capacity, dtype)
    cached = {node.outputs[0]: _cached(node, at, shape) for at, node in enumerate(attentions)}
    nodes = [cached.get(node.outputs[0], node) for node in graph.nodes]
    gone = {name for node in attentions for name in node.outputs[1:]}
    outputs = {name: value for name, value in graph.outputs.items() if name not in gone}
    needed = _needed(nodes, outputs)
    read = {name for node in needed for name in node.inputs} | outputs.keys()
    inputs = {name: value for name, value in graph.inputs.items() if name in read}
    inputs[CACHE] = Value("uint8", (shape.nbytes,))
    constants = {name: each for name, each in graph.constants.items() if name in read}
    known = {name: each for name, each in graph.tensors.items() if name not in gone}
    known[CACHE] = inputs[CACHE]
    form = replace(
        graph,
        nodes=tuple(needed),
        inputs=inputs,
        outputs=outputs,
        constants=constants,
        tensors=known,
    )
    return with_parts_written_out(form), shape


def cached_nodes(what: GraphNode, graph: Graph) -> list[Node]:
    """Return the node of a network that a CachedAttention is.

    Parameters
    ----------
    what : GraphNode
        Attention node that `decoder_form` wrote.
    graph : Graph
        Graph that it belongs to.
    """
    told = what.attributes
    layers, batch, groups, depth, width, capacity = told["sizes"]
    shape = CacheShape(layers, batch, groups, depth, width, capacity, told["cache"])
    reads = [name for name in what.inputs[:3] if name]
    angles = None
    if what.input(3):
        cos, sin = (graph.constants[what.input(at)] for at in (3, 4))
        angles = RotaryAngles(cos, sin, bool(told["rotary_interleaved"]))
    sinks = np.zeros(told["num_heads"], np.float32) if told["smooth_softmax"] else None
    attention = CachedAttention(
        shape,
        told["layer"],
        told["num_heads"],
        told["scale"],
        angles,
        is_packed=len(reads) == 1,
        window=told["window"],
        softcap=told["softcap"],
        sinks=graph.constants[what.input(_CACHED_SINKS)] if what.input(_CACHED_SINKS) else sinks,
    )
    return [Node(what.outputs[0], attention, (*reads, what.inputs[-1]))]


def _check(graph: Graph, node: GraphNode) -> None:
    """Refuse an attention that the kernel has no form of."""
    argument = f"node {shown(node.name)}"
    for name, value in node.attributes.items():
        if name not in KNOWN and WITHOUT_EFFECT.get(name, "") != value:
            raise ArgumentError(argument, f"{name} {shown(value)}", "none: it is not known here")
    for at, name in enumerate(node.inputs):
        # Places are those that tokens have in the cache, who asks for others writes them himself.
        is_read = at < _BIAS or (at == _SINKS and name in graph.constants)
        if name and (not is_read or (at == _PLACES and name not in graph.inputs)):
            raise ArgumentError(argument, f"input {at}, {shown(name)}", "none")
    past = [node.input(at) for at in (_PAST_K, _PAST_V)]
    if any(name not in graph.inputs for name in past):
        raise ArgumentError(argument, f"keys and values {past}", "inputs of the model")
    if (dtype := graph.inputs[past[0]].dtype) != "float32":
        raise ArgumentError(argument, f"keys of {dtype}", "float32")
    readers = [each for each in graph.nodes if {*past, *node.outputs[1:3]} & {*each.inputs}]
    if any(each.outputs != node.outputs for each in readers):
        raise ArgumentError(argument, "a cache that other nodes read", "one of its own")
    if node.attributes.get("do_rotary", 0):
        for at in (_COS, _SIN):
            table = graph.constants.get(node.input(at))
            if table is None or table.dtype != np.float32:
                got = f"cosines and sines {shown(node.input(at))}"
                raise ArgumentError(argument, got, "constants of float32")


def _as_group_query(node: GraphNode) -> GraphNode:
    """Return a causal Attention as the GroupQueryAttention that it is."""
    if node.row is not kinds.ATTENTION:
        return node
    told, argument = dict(node.attributes), f"node {shown(node.name)}"
    if not told.pop("is_causal", 0) or node.input(3) or node.input(6):
        raise ArgumentError(argument, "an Attention", "a causal one, without a mask and lengths")
    if any(node.outputs[3:]):
        raise ArgumentError(argument, "scores as a result", "none")
    told.pop("softmax_precision", 0)
    if told.pop("qk_matmul_output_mode", 0):
        raise ArgumentError(argument, "scores as a result", "none")
    told["local_window_size"] = told.pop("left_window_size", -1) + 1  # its own token is one more
    told.pop("right_window_size", None)  # where causal ones see nothing
    names = {"q_num_heads": "num_heads", "kv_num_heads": "kv_num_heads"}
    for theirs, ours in names.items():
        if theirs not in told:
            raise ArgumentError(argument, f"no {theirs}", "sources of three dims, of so many heads")
        told[ours] = told.pop(theirs)
    inputs = (*node.inputs[:3], *node.inputs[4:6])
    return replace(node, inputs=inputs, attributes=told)


def _sizes(dims: Mapping[str, Lengths], node: GraphNode) -> tuple[int, int]:
    """Return the number of heads of keys, and the length of each."""
    groups, heads = (int(node.attributes[name]) for name in ("kv_num_heads", "num_heads"))
    past, queries = dims.get(node.input(_PAST_K), ()), dims.get(node.input(_Q), ())
    depth = past[3] if len(past) == 4 else ""
    if not isinstance(depth, int) and len(queries) == 3 and isinstance(queries[2], int):
        depth = queries[2] // (heads if node.input(_K) else heads + 2 * groups)
    if not isinstance(depth, int):
        argument, got = f"node {shown(node.name)}", f"heads of an unknown length, keys {past}"
        raise ArgumentError(argument, got, "keys of a known length, or queries, of known nodes")
    return groups, depth


def _cached(node: GraphNode, layer: int, shape: CacheShape) -> GraphNode:
    told = node.attributes
    angles = (node.input(_COS), node.input(_SIN)) if told.get("do_rotary", 0) else ("", "")
    sizes = (shape.layers, shape.batch, shape.groups, shape.depth, shape.width, shape.capacity)
    domain, _, operator = kinds.CACHED_ATTENTION.name.rpartition(".")
    return replace(
        node,
        operator=operator,
        domain=domain,
        inputs=(*(node.input(at) for at in (_Q, _K, _V)), *angles, node.input(_SINKS), CACHE),
        outputs=node.outputs[:1],
        attributes={
            "layer": layer,
            "num_heads": int(told["num_heads"]),
            "kv_num_heads": shape.groups,
            "scale": float(told.get("scale", 0.0)),
            "rotary_interleaved": int(told.get("rotary_interleaved", 0)),
            "window": max(int(told.get("local_window_size", -1)), 0),
            "softcap": float(told.get("softcap", 0.0)),
            "smooth_softmax": int(told.get("smooth_softmax", 0)),
            "sizes": sizes,
            "cache": shape.dtype,
        },
    )


def _needed(nodes: list[GraphNode], outputs: Mapping[str, Value]) -> list[GraphNode]:
    """Return the nodes that outputs depend on, in order."""
    read, needed = {*outputs}, []
    for node in reversed(nodes):
        if read.intersection(node.outputs):
            read.update(node.inputs)
            needed.append(node)
    return needed[::-1]
