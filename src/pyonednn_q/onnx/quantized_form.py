"""Float graphs between quantizers: which tensors become codes, and the graph that has them.

A tensor becomes codes where a layer reads it, itself or through operations on codes: as
`place_quantizers` decides, of layers whose chains are known. What follows a layer and belongs to
its chain stays real, and so does what only float nodes read. Tensors that are moved to each other
(pools, Concat, reshapes) share one scale, so that codes are moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError
from pyonednn_q.graph import kinds
from pyonednn_q.graph.change import Change
from pyonednn_q.graph.graph import Graph, GraphNode, Value
from pyonednn_q.onnx.attention_masks import masked_scores
from pyonednn_q.onnx.float_layers import norm_weights
from pyonednn_q.onnx.graph_edit import GraphEdit
from pyonednn_q.onnx.graph_view import GraphView
from pyonednn_q.onnx.spelled_activations import spelled
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.alignment import GraphOperator
from pyonednn_q.quantize.placement import QuantizationTarget, QuantizerSpec
from pyonednn_q.quantize.propagation import place_quantizers
from pyonednn_q.quantize.quantizers import Quantizers

Ends = Mapping[str, tuple[float, float]]
Shared = dict[str, tuple[float, float]]
_NONE: Ends = MappingProxyType({})

# Every tensor of codes has quantizers here, so that they move through nothing. What chains take in
# follows from dims and constants, not from kinds, and the way from ranges: `Quantizers` knows it.
_LAYER, _OPERATION = "layer", "operation"
_TARGET = QuantizationTarget(
    quantized=((_LAYER, (QuantizerSpec("u8", symmetric=False),)),),
    weights=(),
    agnostic=(),
    fused=(),
    on_codes=(_OPERATION,),
)


class QuantizerPlacement:
    """Tensors of a float graph that become codes, if all layers but some are quantized.

    Parameters
    ----------
    graph : Graph
        A float graph, as `prepared` returns it.
    floats : frozenset of str
        Names of layers that stay in floats.
    ranges : mapping of str to (lo, hi)
        Ranges of tensors; those with infinite ends, such as a mask of -inf, stay real.

    Attributes
    ----------
    layers : tuple of GraphNode
        Layers with constant weights that become INT8.
    tensors : tuple of str
        Real tensors that become codes, in the graph's order.
    reals : frozenset of str
        Tensors that are there as floats, too: inputs, and results of layers that stay in floats.
    """

    def __init__(self, graph: Graph, floats: frozenset[str], ranges: Ends = _NONE) -> None:
        self._graph = graph
        self._floats = floats
        self._view = GraphView(graph)
        layers = layers_of(graph)
        self.layers = tuple(node for node in layers if node.name not in floats)
        self._owners = {id(node): node.name for node in layers}  # the layer whose chain has a node
        self._residuals: dict[str, str] = {}  # the layer that adds each
        self._inside: set[str] = set()  # tensors within chains
        # The later of two that meet takes the addition.
        ends = [(layer.name, self._chain(layer)) for layer in reversed(layers)]
        self.reals = frozenset({*graph.inputs, *(end for name, end in ends if name in floats)})
        self._endless = {name for name, ends in ranges.items() if not np.isfinite(ends).all()}
        placed = place_quantizers(tuple(self._operators()), _TARGET)
        coded = {each.tensor for each in placed}
        for node in graph.nodes:  # of a Split all parts are codes, or none
            if node.row is kinds.SPLIT and coded.intersection(node.outputs):
                coded.update(node.outputs)
        order = [*graph.inputs, *(name for node in graph.nodes for name in node.outputs)]
        self.tensors = tuple(name for name in order if name in coded)

    def _operators(self) -> Iterator[GraphOperator]:
        """Yield what may read codes: INT8 layers, what their chains add, operations on codes."""
        sources = masked_scores(self._view)
        sources |= {id(node): node.inputs[:1] for node in self.layers}  # no weights, no bias
        for node in self._graph.nodes:
            layer = self._owners.get(id(node))
            if layer in self._floats or (layer is None and not node.row.is_on_codes):
                continue
            names = sources.get(id(node), node.inputs)
            real = (name for name in names if self._is_real(name) and name not in self._inside)
            reads = tuple(name for name in real if name not in self._endless)
            if reads:
                kind = _OPERATION if layer is None else _LAYER
                results = node.outputs if node.row is kinds.SPLIT else node.outputs[:1]
                yield from (GraphOperator(kind, reads, name) for name in results)

    def _is_real(self, name: str) -> bool:
        return name not in self._graph.constants and self._view.dtype(name) == "float32"

    def is_in_chain(self, node: GraphNode) -> bool:
        """Tell whether a node is a layer or belongs to the chain of one."""
        return id(node) in self._owners

    def reads_floats(self, node: GraphNode) -> bool:
        """Tell whether a node reads the floats of a tensor that is there in both forms."""
        if (layer := self._owners.get(id(node))) is not None:
            return layer in self._floats
        return not any(name in self.tensors for name in node.outputs)

    def _chain(self, layer: GraphNode) -> str:
        """Record nodes, tensors and addends of a layer's chain; return its last tensor."""
        value, is_open = layer.outputs[0], True
        while is_open and (steps := self._next(value)):
            own = {value, *(name for node in steps for name in node.outputs)}
            reads = {name for node in steps for name in node.inputs if self._is_real(name)}
            others, last = reads - own, steps[-1]
            is_taken = id(last) in self._owners or others & self._residuals.keys()
            if is_taken or len(others) > (last.row.chain in {"add", "sub", "mul"}):
                break
            if layer.name not in self._floats:
                self._residuals.update(dict.fromkeys(others, layer.name))
            self._owners.update(dict.fromkeys(map(id, steps), layer.name))
            self._inside |= {value, *(node.outputs[0] for node in steps[:-1])}
            value = last.outputs[0]
            is_open = not others or self._is_activation_behind(value)
        return value

    def _is_activation_behind(self, value: str) -> bool:
        steps = self._next(value)
        return len(steps) > 1 or any(node.row.is_activation for node in steps)

    def _next(self, value: str) -> list[GraphNode]:
        """Return the nodes of the step after a value without other readers."""
        readers = self._view.readers.get(value, [])
        if value in self._graph.outputs:
            return []
        if (activation := spelled(self._view, value)) is not None:
            return list(activation.nodes)
        if len(readers) != 1 or self._view.reads(value) != 1:
            return []
        (node,) = readers
        if node.row.is_activation:
            return [node] if node.inputs[0] == value else []
        if not node.row.is_arithmetic:
            return []
        (other,) = [name for name in node.inputs if name != value] or [""]
        if other in self._graph.constants:
            return [node]
        same = bool(other) and self._view.dims(other) == self._view.dims(value)
        return [node] if same and node.row.chain in {"add", "mul"} else []

    def readers(self) -> dict[str, str]:
        """Return the first layer that reads each tensor, directly or after moves."""
        layers = {id(node) for node in self.layers}
        readers: dict[str, str] = {}
        for node in reversed(self._graph.nodes):
            if id(node) in layers:
                readers[node.inputs[0]] = node.name
            elif node.row.moves_values(node.attributes):
                behind = [readers[name] for name in node.outputs if name in readers]
                for name in node.inputs if behind else ():
                    readers.setdefault(name, behind[0])
        return readers

    def why(self, name: str) -> str:
        """Return why a tensor becomes codes."""
        if name in self._residuals:
            return f"added to the sums of {self._residuals[name]}"
        reader = self.readers().get(name)
        return f"a source of {reader}" if reader else "operations on codes read it"

    def changes(self) -> tuple[Change, ...]:
        """Return the tensors that become codes, with the reason of each."""
        makers = {name: node for node in self._graph.nodes for name in node.outputs}
        changes = []
        for name in self.tensors:
            maker = makers.get(name)
            originals = (name,) if maker is None else maker.originals or (maker.name,)
            before = ("input",) if maker is None else (maker.kind,)
            after = (*before, kinds.QUANTIZE.name)
            changes.append(Change("placement", originals, before, after, self.why(name)))
        return tuple(changes)

    def shared(self, ranges: Ends, linked: Iterable[Iterable[str]] = ()) -> Shared:
        """Return the range of every tensor, one for those that are linked or moved together."""
        return shared_ranges(self.tensors, [*self.moved(), *linked], ranges)

    def moved(self) -> list[tuple[str, ...]]:
        """Return tensors that are moved to each other, by the nodes that do it."""
        return [
            (*node.inputs, *node.outputs)
            for node in self._graph.nodes
            if node.row.moves_values(node.attributes) or node.row.shares
        ]


def shared_ranges(names: Iterable[str], groups: Iterable[Iterable[str]], ranges: Ends) -> Shared:
    """Return the range of every tensor, one for those in a group; groups may overlap.

    Examples
    --------
    >>> ranges = {"a": (0.0, 1.0), "b": (-1.0, 0.5), "c": (0.0, 2.0)}
    >>> shared_ranges(ranges, [["a", "b"]], ranges)
    {'a': (-1.0, 1.0), 'b': (-1.0, 1.0), 'c': (0.0, 2.0)}
    """
    roots = {name: name for name in names}

    def root(name: str) -> str:
        while roots[name] != name:
            name = roots[name]
        return name

    for group in groups:
        members = [name for name in group if name in roots]
        for name in members[1:]:
            roots[root(name)] = root(members[0])
    ends: Shared = {}
    for name in roots:
        lo, hi = ranges[name]
        known = ends.get(root(name), (lo, hi))
        ends[root(name)] = min(lo, known[0]), max(hi, known[1])
    return {name: ends[root(name)] for name in roots}


def with_norms_as_layers(graph: Graph) -> Graph:
    """Write batch norms that follow no layer as convolutions of single channels.

    They then are INT8 with the activation behind them, as in networks that normalize what they
    concatenate. gain = scale / sqrt(var + epsilon); weights are gain, the bias is b - mean · gain.

    Parameters
    ----------
    graph : Graph
        A float graph, as `prepared` returns it.
    """
    placement = QuantizerPlacement(graph, frozenset())
    edit = GraphEdit(graph)
    for node in graph.nodes:
        dims = graph.tensors[node.inputs[0]].dims if node.inputs[0] in graph.tensors else None
        is_open = dims is None or len(dims) < 3
        if node.row is not kinds.BATCH_NORM or placement.is_in_chain(node) or is_open:
            edit.nodes.append(node)
            continue
        weights = norm_weights(node, graph.constants)
        if weights is None:
            edit.nodes.append(node)
            continue
        gain, shift = weights
        assert dims is not None
        values = (gain.reshape(-1, *(1,) * (len(dims) - 1)), shift)
        names = [
            edit.constant(f"{node.outputs[0]}:{part}", value)
            for part, value in zip(("gain", "shift"), values, strict=True)
        ]
        attributes = MappingProxyType({"group": len(gain)})
        inputs = (node.inputs[0], *names)
        edit.nodes.append(
            replace(node, operator=kinds.CONV.name, inputs=inputs, attributes=attributes)
        )
    return edit.result()


def layers_of(graph: Graph) -> tuple[GraphNode, ...]:
    """Return the layers of a float graph whose weights are constants."""
    return tuple(
        node
        for node in graph.nodes
        if node.row.layer and node.inputs[1] in graph.constants and len(node.outputs) == 1
    )


def with_quantizers(
    graph: Graph, ranges: Ends, floats: frozenset[str], quantizers: Quantizers
) -> Graph:
    """Put quantizers where tensors become codes, and codes in the place of weights.

    Parameters
    ----------
    graph : Graph
        A float graph, as `prepared` returns it.
    ranges : mapping of str to (lo, hi)
        The range of every real tensor that may become codes.
    floats : frozenset of str
        Names of layers that stay in floats.
    quantizers : Quantizers
        QParams of tensors and weights.
    """
    if graph.opset < kinds.DEQUANTIZE.axis_since:
        wanted = f"at least {kinds.DEQUANTIZE.axis_since}: onnx.version_converter.convert_version"
        raise ArgumentError("graph", f"opset {graph.opset}", wanted)
    placement = QuantizerPlacement(graph, floats, ranges)
    edit = GraphEdit(graph)
    layers = {id(node) for node in placement.layers}
    renamed: dict[str, str] = {}
    beside: dict[str, tuple[GraphNode, GraphNode]] = {}
    outputs = quantized_outputs(graph, quantizers)
    inner = {name: edit.free(f"{name}:float") for name in outputs}  # before their quantizers
    coded: dict[str, Value] = {}
    for name, q in _activations(graph, ranges, placement, quantizers).items():
        dtype = dtypes.numpy_dtype(q.dtype)
        scale = edit.constant(f"{name}:scale", np.asarray(np.float32(q.scale)))
        point = edit.constant(f"{name}:point", np.asarray(q.zero_point, dtype).reshape(()))
        codes = edit.free(f"{name}:codes")
        renamed[name] = name if name in inner else edit.free(f"{name}:real")
        into = _node(kinds.QUANTIZE.name, (inner.get(name, name), scale, point), codes)
        back = _node(kinds.DEQUANTIZE.name, (codes, scale, point), renamed[name])
        beside[name] = into, back
        coded[codes] = Value(dtype.name, graph.dims(name), q)
    edit.nodes += [each for name in graph.inputs for each in beside.get(name, ())]
    for node in graph.nodes:
        inputs = tuple(renamed.get(name, name) for name in node.inputs)
        if id(node) in layers:
            wei = graph.constants[node.inputs[1]]
            codes_and_q = quantizers.weights(node.name, wei, channels_axis(node, wei))
            back = _weights(edit, node.inputs[1], *codes_and_q)
            edit.nodes.append(back)
            inputs = (inputs[0], back.outputs[0], *inputs[2:])
        elif placement.reads_floats(node):
            pairs = zip(node.inputs, inputs, strict=True)
            inputs = tuple(name if name in placement.reals else real for name, real in pairs)
        results = tuple(inner.get(name, name) for name in node.outputs)
        edit.nodes.append(replace(node, inputs=inputs, outputs=results))
        edit.nodes += [each for name in node.outputs for each in beside.get(name, ())]
    tensors = {**graph.tensors, **{inner[name]: graph.outputs[name] for name in outputs}, **coded}
    return replace(
        graph,
        nodes=tuple(edit.nodes),
        constants=edit.constants,
        tensors=tensors,
        changes=(*graph.changes, *placement.changes()),
    )


def _activations(
    graph: Graph, ranges: Ends, placement: QuantizerPlacement, quantizers: Quantizers
) -> dict[str, QParams]:
    """Return what the codes of each activation mean."""
    makers = {name: node.name for node in graph.nodes for name in node.outputs}
    linked = quantizers.linked({name: makers.get(name, "") for name in placement.tensors})
    shared = placement.shared(ranges, linked)
    for name in quantized_outputs(graph, quantizers):
        shared.setdefault(name, ranges[name])
    return {name: quantizers.activation(name, *ends) for name, ends in shared.items()}


def quantized_outputs(graph: Graph, quantizers: Quantizers) -> tuple[str, ...]:
    """Return the computed real outputs of a graph, if they are quantized, too."""
    if quantizers.config is None or not quantizers.config.quantize_outputs:
        return ()
    known = {*graph.inputs, *graph.constants}
    outputs = graph.outputs.items()
    return tuple(n for n, info in outputs if n not in known and info.dtype == "float32")


def codes_name(nodes: tuple[GraphNode, ...]) -> dict[str, str]:
    """Return the real tensors by the names of their codes."""
    return {node.outputs[0]: node.inputs[0] for node in nodes if node.row is kinds.QUANTIZE}


def _weights(edit: GraphEdit, wei: str, codes: Array, q: QParams) -> GraphNode:
    """Return what makes real weights of their codes, which it adds."""
    scale = np.asarray(q.scale, np.float32)
    point = np.broadcast_to(np.asarray(q.zero_point, np.int8), scale.shape)
    numbers = [edit.constant(f"{wei}:scale", scale), edit.constant(f"{wei}:point", point)]
    inputs = (edit.constant(f"{wei}:codes", codes), *numbers)
    attributes = {} if q.axis is None else {"axis": q.axis}
    return _node(kinds.DEQUANTIZE.name, inputs, edit.free(f"{wei}:real"), attributes)


def channels_axis(node: GraphNode, wei: Array) -> int | None:
    """Return the dimension of the weights that the channels of the result run along."""
    if node.row is kinds.CONV:
        return 0
    if node.row is kinds.CONV_TRANSPOSE:
        return 1 if node.attributes.get("group", 1) == 1 else None
    if node.row is kinds.GEMM:
        return 0 if node.attributes.get("transB", 0) else 1
    return wei.ndim - 1 if wei.ndim == 2 else None


def _node(
    operator: str, inputs: tuple[str, ...], output: str, attributes: Mapping[str, Any] | None = None
) -> GraphNode:
    frozen = MappingProxyType(dict(attributes or {}))
    return GraphNode(output, operator, inputs, (output,), frozen)
