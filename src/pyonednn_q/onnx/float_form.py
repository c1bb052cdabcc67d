"""The FP32 form of a quantized model: weights and tensors as floats, quantizers left out.

A quantizer whose least code is 0 may have been the only ReLU: behind what can be negative it leaves
one. Other limits go with it. Sums of codes of dynamic quantizers become products of floats; scales
behind them go into the weights, and a bias in units of the sums becomes the bias that it is made
of.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.errors import UnsupportedError
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph, GraphNode, Value
from pyonednn_q.graph.kinds import kind_of
from pyonednn_q.onnx.dynamic_layers import scaling_of
from pyonednn_q.onnx.dynamic_recurrences import with_real_weights
from pyonednn_q.onnx.graph_view import GraphView
from pyonednn_q.onnx.linear import dequantize_linear
from pyonednn_q.onnx.passes import prepared
from pyonednn_q.onnx.shape_inference import inferred
from pyonednn_q.qparams import along

__all__ = ["float_form"]

CODES = ("uint8", "int8")
_OWN_DOMAINS = {"", "com.microsoft"}  # of operators that compute with floats, too


def float_form(graph: Graph) -> Graph:
    """Write codes as the floats that they mean, and leave quantizers out.

    Parameters
    ----------
    graph : Graph
        Graph that `onnx.load` returned. Codes that are inputs or outputs become float32.

    Raises
    ------
    UnsupportedError
        An operator on codes whose float operator is not known.
    """
    form = _FloatForm(with_real_weights(prepared(graph)))
    return form.result()


class _FloatForm:
    """Nodes and constants of the new graph under construction."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._view = GraphView(graph)
        self._nodes: list[GraphNode] = []
        self._constants: dict[str, Array] = dict(graph.constants)
        self._same: dict[str, str] = {}  # tensors that are others now
        self._weights: dict[str, str] = {}  # of products that were sums of codes
        self._makers: dict[str, str] = {}  # what computes a tensor
        self._biases: dict[str, Array] = {}  # of sums of codes, which count them in units of theirs
        self._totals: dict[str, str] = {}  # such sums and biases together, and the sums
        self._left_out: set[str] = set()  # what counts them
        for node in graph.nodes:
            self._find_bias(node)

    def _find_bias(self, node: GraphNode) -> None:
        store = self._view.producer.get(node.inputs[0]) if node.inputs else None
        if node.row.form != "integer" or store is None or store.row is not kinds.DYNAMIC_QUANTIZE:
            return
        scaling = scaling_of(self._view, node, store)
        if scaling is None or scaling.bias is None:
            return
        self._biases[node.outputs[0]] = scaling.bias
        self._totals[scaling.behind[0].outputs[0]] = node.outputs[0]
        for each in reversed([each for each in scaling.before if each.row is not kinds.MUL]):
            if self._view.reads(each.outputs[0]) != 1:
                break
            self._left_out.add(each.outputs[0])

    def result(self) -> Graph:
        graph = self._graph
        for node in graph.nodes:
            inputs = tuple(self._same.get(name, name) for name in node.inputs)
            self._add(replace(node, inputs=inputs))
        self._name_outputs()
        ends = MappingProxyType({n: self._input(n, info) for n, info in graph.inputs.items()})
        nodes = tuple(self._nodes)
        read = {name for node in nodes for name in node.inputs} | set(graph.outputs)
        constants = MappingProxyType({n: each for n, each in self._constants.items() if n in read})
        tensors = inferred(nodes, constants, ends, graph.opsets)
        outputs = {name: tensors.get(name, info) for name, info in graph.outputs.items()}
        return Graph(nodes, constants, ends, MappingProxyType(outputs), graph.opsets, tensors)

    def _name_outputs(self) -> None:
        """Give outputs that are other tensors now their names again."""
        names: dict[str, str] = {}
        for name in self._graph.outputs:
            source = self._same.get(name, name)
            if source == name:
                continue
            if source in self._makers and source not in names and source not in self._graph.outputs:
                names[source] = name
            else:
                self._put(GraphNode(name, kinds.IDENTITY.name, (source,), (name,)))
        self._nodes = [
            replace(
                node,
                inputs=tuple(names.get(each, each) for each in node.inputs),
                outputs=tuple(names.get(each, each) for each in node.outputs),
            )
            for node in self._nodes
        ]

    def _input(self, name: str, info: Value) -> Value:
        is_codes = info.dtype in CODES and any(
            node.row is kinds.DEQUANTIZE for node in self._view.readers.get(name, [])
        )
        return Value("float32", info.dims) if is_codes else info

    def _add(self, node: GraphNode) -> None:
        if node.row is kinds.DEQUANTIZE:
            self._dequantize(node)
        elif node.row is kinds.QUANTIZE:
            self._quantize(node)
        elif node.row is kinds.DYNAMIC_QUANTIZE:
            self._dynamic(node)
        elif node.row.form == "integer":
            self._integer(node)
        elif node.outputs[0] in self._left_out:
            return
        elif node.outputs[0] in self._totals:
            self._same[node.outputs[0]] = self._totals[node.outputs[0]]
        elif node.row is kinds.CAST:
            self._cast(node)
        elif node.domain not in _OWN_DOMAINS or node.row.is_of_codes:
            why = f"no float operator is known for {node.kind}"
            raise UnsupportedError("refused", "making the FP32 form", node.name, why)
        elif not (node.row is kinds.MUL and self._scales(node)):
            self._put(node)

    def _dequantize(self, node: GraphNode) -> None:
        if all(name in self._constants for name in node.inputs if name):
            known = [self._constants[name] for name in node.inputs if name]
            real = dequantize_linear(*known, **node.attributes)
            self._constants[node.outputs[0]] = real.astype(np.float32, copy=False)
        else:
            self._same[node.outputs[0]] = node.inputs[0]

    def _quantize(self, node: GraphNode) -> None:
        point = self._constants.get(node.input(2), np.zeros(1, np.uint8))
        maker = self._makers.get(node.inputs[0], "")
        if (
            kind_of(maker).is_signed
            and point.dtype in CODES
            and (point == np.iinfo(point.dtype).min).all()
        ):
            name = node.outputs[0]
            self._put(
                GraphNode(
                    node.name, kinds.RELU.name, node.inputs[:1], (name,), {}, "", node.originals
                )
            )
        else:
            self._same[node.outputs[0]] = node.inputs[0]

    def _put(self, node: GraphNode) -> None:
        self._nodes.append(node)
        self._makers.update((name, node.kind) for name in node.outputs)

    def _dynamic(self, node: GraphNode) -> None:
        self._same[node.outputs[0]] = node.inputs[0]
        for name, value in zip(node.outputs[1:], (np.float32(1), np.uint8(0)), strict=False):
            self._constants[name] = np.asarray(value)

    def _integer(self, node: GraphNode) -> None:
        wei = self._constants.get(node.inputs[1])
        if wei is None:
            why = "its weights are computed"
            raise UnsupportedError("refused", "making the FP32 form", node.name, why)
        point = self._constants.get(node.input(3), np.zeros((), wei.dtype))
        real = wei.astype(np.float32) - _by_channel(point.astype(np.float32), wei, node)
        name = f"{node.outputs[0]}:weights"
        self._constants[name] = real
        self._weights[node.outputs[0]] = name
        inputs = (node.inputs[0], name)
        self._put(replace(node, operator=node.row.means, inputs=inputs))

    def _cast(self, node: GraphNode) -> None:
        if node.inputs[0] in self._weights:
            self._same[node.outputs[0]] = node.inputs[0]
        else:
            self._put(node)

    def _scales(self, node: GraphNode) -> bool:
        """Put scales into weights, or multiply two constants; tell whether that was done."""
        known = [self._constants.get(name) for name in node.inputs]
        if known[0] is not None and known[1] is not None:
            self._constants[node.outputs[0]] = np.asarray(known[0] * known[1])
            return True
        for at in (0, 1):
            product, scale = node.inputs[at], known[1 - at]
            name = self._weights.get(product)
            if name is None or scale is None or self._view.reads(product) != 1:
                continue
            wei = self._constants[name]
            maker = next(each for each in reversed(self._nodes) if product in each.outputs)
            if scale.size not in {1, wei.shape[-1 if maker.row is kinds.MATMUL else 0]}:
                continue
            self._constants[name] = wei * _by_channel(scale.astype(np.float32), wei, maker)
            del self._weights[product]
            if product not in self._biases:
                self._same[node.outputs[0]] = product
                return True
            bias = f"{product}:bias"
            dims = (-1, *(1,) * (wei.ndim - 2)) if maker.row is kinds.CONV else (-1,)
            self._constants[bias] = self._biases[product].reshape(dims)
            added = replace(node, operator=kinds.ADD.name, inputs=(product, bias))
            self._put(added)
            return True
        return False


def _by_channel(values: Array, wei: Array, node: GraphNode) -> Array:
    """Return one value, or one of each output channel, so that it broadcasts over weights."""
    if values.size == 1:
        return values.reshape(())
    is_product = node.row in {kinds.MATMUL, kinds.MATMUL_INTEGER}
    return along(values, -1 if is_product else 0, wei.ndim)
