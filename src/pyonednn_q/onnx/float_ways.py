"""Branches that samples take through a float graph, and the tensors observed on each path.

Lengths do not matter for the places of quantizers, branches do: each way has layers and tensors of
its own. Those that several ways have in common have one name in all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, ShapeError, UnsupportedError
from pyonednn_q.graph.graph import Graph, GraphNode
from pyonednn_q.onnx.bias_correction import SourceMeans
from pyonednn_q.onnx.calibration_options import ROUNDED, CalibrationOptions, Decide
from pyonednn_q.onnx.choices import Bindings, Key, Path, is_open
from pyonednn_q.onnx.dynamic_recurrences import recurrences_worth_codes
from pyonednn_q.onnx.float_model import float_model
from pyonednn_q.onnx.float_types import Values
from pyonednn_q.onnx.model import Model
from pyonednn_q.onnx.open_dims import refusal_of_lengths
from pyonednn_q.onnx.passes import prepared
from pyonednn_q.onnx.quantized_form import (
    QuantizerPlacement,
    layers_of,
    quantized_outputs,
    with_norms_as_layers,
)
from pyonednn_q.onnx.weight_rounding import SourceProducts
from pyonednn_q.ops.shapes import Shapes
from pyonednn_q.quantize.quantizers import Quantizers

__all__ = ["FloatWay", "FloatWays"]


class FloatWay(NamedTuple):
    """A graph of certain branches, at the lengths of the first batch that took them.

    Attributes
    ----------
    graph : Graph
        Ready for quantizers.
    layers : tuple of GraphNode
        Layers with constant weights.
    recurrences : tuple of str
        Names of what may have products of codes beside them.
    codes : tuple of str
        Tensors whose ranges are wanted.
    batch : (mapping of str to ndarray, mapping of str to ndarray), optional
        First batch, and every tensor of it that is an input, a result or becomes codes; None before
        it ran.
    """

    graph: Graph
    layers: tuple[GraphNode, ...]
    recurrences: tuple[str, ...]
    codes: tuple[str, ...]
    batch: tuple[Values, Values] | None = None


class FloatWays:
    """Samples of a float graph, on every way that they take.

    Parameters
    ----------
    graph : Graph
        Graph of floats; `prepared`, where its lengths are known.
    options : CalibrationOptions
        Options of the caller.
    inputs : mapping of str to ndarray
        The first batch.

    Attributes
    ----------
    means : SourceMeans
        Means of the layers' sources, where biases are corrected.
    products : SourceProducts
        Products of the layers' sources, where codes of weights are searched.

    Raises
    ------
    ArgumentError
        A model with quantizers, or without layers on the way of the first batch.
    """

    def __init__(
        self, graph: Graph, options: CalibrationOptions, inputs: Mapping[str, Array]
    ) -> None:
        self._graph, self._options = graph, options
        self._bindings = Bindings(graph)
        self._ways: dict[Path, FloatWay] = {}
        self._models: Shapes[Key, Model] = Shapes()
        self.means, self.products = SourceMeans(), SourceProducts()
        (_, path), known = self._bindings.of(inputs)
        plain = prepared(known()) if is_open(graph) else graph
        recurrences = self._recurrences(plain)
        if any(node.row.is_quantizer for node in plain.nodes):
            wanted = "a model of floats; `fuse` takes quantized ones"
            raise ArgumentError("model", "quantizers", wanted)
        if not layers_of(plain) and not recurrences:
            raise ArgumentError("model", "no layer of constant weights", "one at least")
        self._add(path, plain)

    @property
    def ways(self) -> tuple[FloatWay, ...]:
        """Ways so far, the way of the first batch first."""
        return tuple(self._ways.values())

    @property
    def layers(self) -> dict[str, tuple[GraphNode, Graph]]:
        """Layers by their names, each with the graph of a way that has it."""
        ways = reversed(self.ways)
        return {node.name: (node, way.graph) for way in ways for node in way.layers}

    @property
    def recurrences(self) -> tuple[str, ...]:
        """Names of recurrences that may have products of codes."""
        return tuple(dict.fromkeys(name for way in self.ways for name in way.recurrences))

    def names(self) -> tuple[str, ...]:
        """Return the names of all layers, in order."""
        return tuple(dict.fromkeys(node.name for way in self.ways for node in way.layers))

    def deciding(self) -> Decide:
        """Return what makes Quantizers of a configuration, for the layers of all ways."""
        readers: dict[str, str] = {}
        for way in reversed(self.ways):
            readers |= QuantizerPlacement(way.graph, frozenset()).readers()
        return self._options.deciding(self.names(), readers, frozenset(self._graph.inputs))

    def quantizers(self) -> Quantizers:
        """Return the quantization of tensors, by the options' configuration."""
        return self.deciding()(self._options.config)

    def run(self, inputs: Values) -> Values:
        """Run the float graph on a batch; return the tensors that become codes on its way."""
        key, known = self._bindings.of(inputs)
        path = key[1]
        try:
            if path not in self._ways:
                self._add(path, prepared(known()))
            way = self._ways[path]
            if (floats := self._models.get(key)) is None:
                here = way.graph
                if way.batch is not None:  # of other lengths
                    here = with_norms_as_layers(prepared(known()))
                floats = self._models.add(key, _observed(here, way.codes), 0)
            values = {**inputs, **floats.run(inputs)}
        except (ShapeError, UnsupportedError) as error:
            if dims := {name: inputs[name].shape for name in self._bindings.open_inputs}:
                raise refusal_of_lengths(dims, error) from error
            raise
        if way.batch is None:
            self._ways[path] = way._replace(batch=(inputs, values))
        if self._options.bias_correction:
            self.means.add(way.layers, values)
        if ROUNDED in self._options.passes:
            self.products.add(way.layers, way.graph.constants, values)
        return {name: values[name] for name in way.codes}

    def clear(self) -> None:
        """Drop what runs, whose weights are as large as the model."""
        self._models.clear()

    def _recurrences(self, plain: Graph) -> tuple[str, ...]:
        if self._options.config is not None:
            return ()
        return tuple(node.name for node in recurrences_worth_codes(plain))

    def _add(self, path: Path, plain: Graph) -> None:
        graph = with_norms_as_layers(plain)
        placement = QuantizerPlacement(graph, frozenset())
        self._ways[path] = FloatWay(graph, placement.layers, self._recurrences(plain), ())
        outputs = quantized_outputs(graph, self.quantizers())
        codes = tuple(dict.fromkeys((*placement.tensors, *outputs)))
        self._ways[path] = self._ways[path]._replace(codes=codes)


def _observed(source: Graph, codes: tuple[str, ...]) -> Model:
    """Return a float model whose results are the tensors that become codes, and its own results."""
    seen = {name: source.tensors[name] for name in codes if name not in source.inputs}
    return float_model(replace(source, outputs={**seen, **source.outputs}))
