"""fuse: a quantized model to the list of calls that compute it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from pyonednn_q.acc import SATURATIONS
from pyonednn_q.argument import flag, instance, named, one_of
from pyonednn_q.dtypes import Array
from pyonednn_q.expr.steps import Chain
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph, GraphNode
from pyonednn_q.onnx.chain_reader import ChainReader
from pyonednn_q.onnx.choices import choice_of
from pyonednn_q.onnx.dynamic_layers import dynamic_layer
from pyonednn_q.onnx.dynamic_recurrences import with_real_weights
from pyonednn_q.onnx.float_layers import float_layer, float_norm
from pyonednn_q.onnx.float_types import FLOAT_TYPES, float_type
from pyonednn_q.onnx.float_warning import warn_of_floats
from pyonednn_q.onnx.fused_node import CodeOperation, FusedNode, with_meanings
from pyonednn_q.onnx.graph_view import GraphView
from pyonednn_q.onnx.grouped_layers import BLOCKS, grouped_layer, why_floats
from pyonednn_q.onnx.layer_reader import NoLayer, int8_layer
from pyonednn_q.onnx.passes import passed, prepared
from pyonednn_q.onnx.saturating_layers import IN_FLOATS, saturates, warn
from pyonednn_q.ops.operator import Operator
from pyonednn_q.qparams import QParams
from pyonednn_q.report.progress import counted
from pyonednn_q.shown import shown

_NONE: Mapping[str, str] = MappingProxyType({})


def fuse(
    graph: Graph,
    *,
    exact_rounding: bool = False,
    keep_rounding: bool = True,
    floats: Mapping[str, str] = _NONE,
    saturation: str = "f32",
    blocks: str = "model",
) -> Graph:
    """Return a graph whose nodes are single calls.

    Parameters
    ----------
    graph : Graph
        Graph of `load`, with QLinear nodes, or with nodes between quantizers.
    exact_rounding : bool
        Whether layers round before the zero point is added, as ONNX does. Without it, codes differ
        by one if a value is a tie and the zero point is odd.
    keep_rounding : bool
        Whether a quantizer within a layer, such as between a convolution and the addition after it,
        rounds. False: it only clips to the range of the codes. This is faster and no further from
        the float model, but gives other codes than the model defines.
    floats : mapping of str to {"f32", "bf16"}
        Data types of layers, by name, that run as float primitives with the steps after them. All
        layers that cannot be INT8 run in f32. Without instructions for bf16, f32 replaces bf16, and
        the node says so.
    saturation : {"f32", "narrow", "allow", "refuse"}
        Form of layers whose products no kernel adds exactly without VNNI
        (docs/reference/saturation.md). f32: float32 primitives on the dequantized source; on the
        source itself if it is quantized dynamically. narrow: weights of 7 bits; the node has the
        error. allow: unchanged. refuse: `Model` raises SaturationError. The logger ``pyonednn_q``
        counts these layers in one warning, and warns if no layer is INT8.
    blocks : {"model", "s8", "f32"}
        Form of the source of MatMulNBits, and of MatMul with a DequantizeLinear of blocks. s8:
        codes with a range for each block; f32: floats; model: s8 at accuracy_level 4, else f32.

    Returns
    -------
    Graph
        Each node is a `FusedNode`: a layer with the steps after it, an operation on codes, or a
        node that runs by its definition, with the reason. `options` has the options of this call.
        A graph with open lengths or branches gets the options only; `Model` fuses it for each call.

    Raises
    ------
    ArgumentError
        Naming the argument.
    """
    instance("graph", graph, Graph)
    flag("exact_rounding", exact_rounding)
    flag("keep_rounding", keep_rounding)
    one_of("saturation", saturation, SATURATIONS)
    one_of("blocks", blocks, BLOCKS)
    types = named("floats", floats, str)
    for name, dtype in types.items():
        one_of(f"floats[{shown(name)}]", dtype, FLOAT_TYPES)
    roundings = {"exact_rounding": exact_rounding, "keep_rounding": keep_rounding}
    options = {**roundings, "floats": dict(types), "saturation": saturation, "blocks": blocks}
    graph = replace(graph, options=options)
    if graph.symbols:
        return graph
    plain = prepared(with_real_weights(graph, types.__contains__))
    return plain if choice_of(plain) is not None else passed(plain, (with_calls,))


def with_calls(graph: Graph) -> Graph:
    """Make one call of each layer and what follows it, of each operation on codes, and the rest.

    Parameters
    ----------
    graph : Graph
        Behind `prepared`, with all the options of `fuse`.
    """
    view, options = GraphView(graph), graph.options
    chains = ChainReader(view, keep_rounding=options["keep_rounding"])
    return warn_of_floats(_Fusion(view, chains, options).result(), options["floats"])


class _Fusion:
    """The nodes while they are found: layers first, then operations on codes, then the rest."""

    def __init__(self, view: GraphView, chains: ChainReader, options: Mapping[str, Any]) -> None:
        self._saturation: str = options["saturation"]
        self._floats: Mapping[str, str] = options["floats"]
        exact: bool = options["exact_rounding"]
        self._int8 = partial(
            int8_layer, view, chains, exact_rounding=exact, saturation=self._saturation
        )
        self._sources: str = options["blocks"]
        self._saturating: list[str] = []  # names of layers
        self._graph, self._view = view.graph, view
        self._layer_chains, self._chains = chains, ChainReader(view)
        self._nodes: dict[int, FusedNode] = {}  # by the place of what they end with
        self._constants: dict[str, Array] = dict(view.graph.constants)
        self._why: dict[int, str] = {}

    def result(self) -> Graph:
        graph = self._graph
        # From the back: of two layers that meet in an addition, the later one takes it.
        last = reversed(graph.nodes)
        layers = [n for n in last if n.row.multiplies or n.row is kinds.MATMUL_BITS]
        for node in counted(layers, "composing layers"):
            if not self._view.is_taken(node):
                self._add_layer(node)
        for node in graph.nodes:
            if self._may_compute_codes(node) and not self._view.is_taken(node):
                self._add_operation(node)
        for node in graph.nodes:
            if not self._view.is_taken(node):
                self._add_single(node)
        self._fold()
        warn(self._saturating, self._saturation)
        nodes = self._needed()
        names = {n for node in nodes for n in node.reads} | {*graph.inputs, *graph.outputs}
        seen = names | {n for each in nodes for n in each.outputs}
        return replace(
            graph,
            nodes=tuple(nodes),
            constants=_only(self._constants, names | _read_by_parts(nodes)),
            tensors=with_meanings(_only(graph.tensors, seen), nodes),
        )

    def _put(self, fused: FusedNode, own: tuple[GraphNode, ...]) -> None:
        self._nodes[self._view.take(own)] = fused

    def _add_layer(self, node: GraphNode) -> None:
        layer = self._layer(node)
        if isinstance(layer, NoLayer):
            self._why[id(node)] = layer.why
            return
        at = next(index for index, part in enumerate(layer.parts) if part is node)
        # Quantizers before it may serve others, too.
        self._put(layer, layer.parts[at:])

    def _layer(self, node: GraphNode) -> FusedNode | NoLayer:
        if node.row.form == "integer":
            return self._exact(node, dynamic_layer(self._view, node, self._saturation))
        grouped = grouped_layer(self._view, node, self._sources)
        if not isinstance(grouped, NoLayer) or node.row is kinds.MATMUL_BITS:
            return grouped
        if node.name in self._floats:
            dtype, why = float_type(self._floats[node.name])
            layer = float_layer(self._view, self._chains, node, dtype)
            return layer if isinstance(layer, NoLayer) else replace(layer, why=why)
        exact = self._exact(node, self._int8(node))
        if not isinstance(exact, NoLayer):
            return exact
        real = float_layer(self._view, self._layer_chains, node)
        why = why_floats(self._view, node) or exact.why
        return exact if isinstance(real, NoLayer) else replace(real, why=why)

    def _exact(self, node: GraphNode, layer: FusedNode | NoLayer) -> FusedNode | NoLayer:
        """Return a layer, or its replacement if its weights may saturate."""
        if isinstance(layer, NoLayer) or not isinstance(layer.runs, Operator):
            return layer
        is_refused = saturates(layer.runs, self._view.dims(layer.inputs[0]))
        if is_refused or layer.why:  # that weights were narrowed
            self._saturating.append(node.name)
        if not is_refused or self._saturation == "refuse":
            return layer
        if node.row.form == "integer":
            real = dynamic_layer(self._view, node, "f32", in_floats=True)
        else:
            real = float_layer(self._view, self._layer_chains, node)
        return real if isinstance(real, NoLayer) else replace(real, why=IN_FLOATS)

    @staticmethod
    def _may_compute_codes(node: GraphNode) -> bool:
        return node.row.is_on_codes or node.row.is_table

    def _add_operation(self, node: GraphNode) -> None:
        view = self._view
        if node.domain or (any(node.outputs[1:]) and node.row is not kinds.SPLIT):
            return
        if view.dtype(node.inputs[0]) in {"uint8", "int8"}:
            self._add_mover(node)
            return
        if node.row is kinds.SPLIT:
            self._add_split(node)
            return
        srcs: list[str] = []
        srcs_q: list[QParams | None] = []
        constants: dict[int, Array] = {}
        before: list[GraphNode] = []
        for at, name in enumerate(node.inputs):
            codes = view.dequantized(name)
            if name in view.constants:
                constants[at] = view.constants[name]
            elif codes is not None and codes.q.axis is None:
                srcs.append(codes.name)
                srcs_q.append(codes.q)
                before.append(codes.node)
            elif name:
                return
        if not srcs or (node.row is kinds.CONCAT and constants):
            return
        tail = self._chains.tail(node.outputs[0], 1, operands=False)
        if tail.dst_q is None:
            return
        operation = CodeOperation(
            node.kind, node.attributes, tuple(srcs_q), tail.dst_q, tail.post, constants
        )
        own = (node, *tail.parts)
        fused = FusedNode.of(node, operation, srcs, (tail.value,), (*before, *own))
        self._put(fused, own)

    def _add_mover(self, node: GraphNode) -> None:
        """Add nodes that move codes and have no quantizer next to them."""
        if not node.row.moves_values(node.attributes):
            return
        view = self._view
        q = self._meaning(node.inputs[0])
        srcs = [name for name in node.inputs if name and name not in view.constants]
        constants = {
            at: view.constants[name]
            for at, name in enumerate(node.inputs)
            if name in view.constants
        }
        # Elements of the result, whose codes differ.
        is_beside = node.row is kinds.CONCAT and constants
        if q is None or is_beside or any(self._meaning(name) != q for name in srcs):
            return
        operation = CodeOperation(
            node.kind, node.attributes, (q,) * len(srcs), q, Chain(), constants
        )
        fused = FusedNode.of(node, operation, srcs, node.outputs, (node,))
        self._put(fused, (node,))

    def _add_split(self, node: GraphNode) -> None:
        """Add a Split of codes whose parts all mean what the whole means."""
        view = self._view
        codes = view.dequantized(node.inputs[0])
        readers = [view.only_reader(name) for name in node.outputs]
        stores = [each for each in readers if each is not None and each.row is kinds.QUANTIZE]
        lengths = node.input(1)
        is_known = not lengths or lengths in view.constants
        if codes is None or len(stores) < len(readers) or not is_known:
            return
        known = [view.quantizer(each) for each in stores]
        if any(each is None or each.q != codes.q for each in known):
            return
        constants = {1: view.constants[lengths]} if lengths else {}
        operation = CodeOperation(
            node.kind, node.attributes, (codes.q,), codes.q, Chain(), constants
        )
        outputs = tuple(each.outputs[0] for each in stores)
        own = (node, *stores)
        parts = (codes.node, *own)
        self._put(FusedNode.of(node, operation, (codes.name,), outputs, parts), own)

    def _meaning(self, name: str) -> QParams | None:
        """Return what codes mean, by the quantizer that made them, or by those that read them."""
        node = self._view.producer.get(name)
        while node is not None and node.row.moves_values(node.attributes):
            name = node.inputs[0]
            node = self._view.producer.get(name)
        if node is not None and node.row is kinds.QUANTIZE:
            codes = self._view.quantizer(node)
            return None if codes is None or codes.q.axis is not None else codes.q
        return None

    def _add_single(self, node: GraphNode) -> None:
        view = self._view
        if node.row.is_quantizer:
            codes = view.quantizer(node)
            if codes is not None and codes.q.axis is None:
                is_store = node.row is kinds.QUANTIZE
                srcs_q = (None if is_store else codes.q,)
                dst_q = codes.q if is_store else None
                known = {at: view.constants[node.input(at)] for at in (1, 2) if node.input(at)}
                operation = CodeOperation(node.kind, node.attributes, srcs_q, dst_q, Chain(), known)
                src, own = node.inputs[:1], (node,)
                self._put(FusedNode.of(node, operation, src, node.outputs, own), own)
                return
        fused = float_norm(view, self._layer_chains, node)
        if isinstance(fused, NoLayer):
            own_why = "" if node.row in kinds.DYNAMIC_RECURRENT else self._reason(node)
            why = why_floats(view, node) or self._why.get(id(node)) or own_why
            fused = FusedNode.as_it_is(node, why)
        self._put(fused, fused.parts)

    def _fold(self) -> None:
        """Replace quantizers of constants by their results, if a node reads them.

        Nodes that a layer stands for do, too: they compute it where no kernel takes the layer.
        """
        of_constants = [
            (place, node)
            for place, node in self._nodes.items()
            if node.parts[0].row is kinds.DEQUANTIZE
            and len(node.parts) == 1
            and all(name in self._view.constants for name in node.parts[0].inputs if name)
        ]
        nodes = [*self._nodes.values()]
        read = {name for node in nodes for name in node.reads}
        read |= _read_by_parts(
            node for node in nodes if len(node.parts) > 1 or isinstance(node.runs, Operator)
        )
        for place, node in of_constants:
            is_read = node.output in read or node.output in self._graph.outputs
            real = self._view.float_constant(node.output) if is_read else None
            if real is not None:
                self._constants[node.output] = real
            if real is not None or not is_read:
                del self._nodes[place]

    def _reason(self, node: GraphNode) -> str:
        """Say why a node runs as ONNX has it, and what would change that."""
        if node.row.is_quantizer:
            return "scales that are no f32 constants of u8 or s8: one for the tensor would do"
        if not self._may_compute_codes(node):
            more = ": DynamicQuantizeLSTM would do" if node.row is kinds.LSTM else ""
            return f"no operation on codes is known for {node.kind}{more}"
        floats = [
            name
            for name in node.inputs
            if name and name not in self._view.constants and not self._view.dequantized(name)
        ]
        if floats and node.row.moves_values(node.attributes):
            return f"it moves floats, {floats[0]}, and computes nothing"
        if floats:
            return f"a float source, {floats[0]}: quantize it"
        reader = self._view.only_reader(node.outputs[0])
        if reader is None:
            return "a float result that several read, or the caller: quantize it"
        return f"a float result for {reader.kind} {reader.name}: quantize it"

    def _needed(self) -> list[FusedNode]:
        """Return the nodes whose outputs are read, each after those that it reads."""
        makers = {name: node for node in self._nodes.values() for name in node.outputs if name}
        order: list[FusedNode] = []
        done: set[int] = set()
        todo = [(makers[n], False) for n in reversed([*self._graph.outputs]) if n in makers]
        while todo:
            node, is_ready = todo.pop()
            if id(node) in done:
                continue
            if is_ready:
                done.add(id(node))
                order.append(node)
                continue
            todo.append((node, True))
            todo += [
                (makers[name], False)
                for name in reversed(node.reads)
                if name in makers and id(makers[name]) not in done
            ]
        return order


def _read_by_parts(nodes: Iterable[FusedNode]) -> set[str]:
    """Return what nodes read that are fused to one, and do not make themselves."""
    return {
        name
        for node in nodes
        for part in node.parts
        for name in {*part.inputs} - {output for each in node.parts for output in each.outputs}
    }


def _only(values: Mapping[str, Any], names: set[str]) -> Mapping[str, Any]:
    return MappingProxyType({name: each for name, each in values.items() if name in names})
