"""An ONNX model of floats, the ranges of its tensors, and which of its layers are INT8."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from statistics import median
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import (
    flag,
    one_of,
)
from pyonednn_q.graph.graph import Graph, Value
from pyonednn_q.network.accuracy_loop import (
    Floats,
    MixedCalibration,
    Values,
    table,
)
from pyonednn_q.onnx.bias_correction import with_biases_corrected
from pyonednn_q.onnx.fake_quantize_form import fake_quantize_form
from pyonednn_q.onnx.fusion import fuse
from pyonednn_q.onnx.model import Model
from pyonednn_q.onnx.model_writer import save
from pyonednn_q.onnx.open_quantizers import at_lengths, opened
from pyonednn_q.onnx.quantized_form import (
    QuantizerPlacement,
    codes_name,
    layers_of,
    quantized_form,
)
from pyonednn_q.ops.operator import Operator
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.quantizers import PLAIN, Quantizers
from pyonednn_q.shown import shortened

if TYPE_CHECKING:
    from pyonednn_q.onnx.fused_node import FusedGraph, FusedNode

_ROUNDS = 21


class Calibration(MixedCalibration[Graph, Model]):
    """A float model, the ranges of its tensors, and which of its layers are INT8.

    Parameters
    ----------
    source : Graph
        Without quantizers. Lengths of its inputs may be open: those of `inputs` say where
        quantizers go.
    ranges : mapping of str to (lo, hi)
        Of its real tensors, in their units.
    inputs, values : mapping of str to ndarray
        One batch, and what the float model makes of it: every tensor.
    floats : iterable of str, or mapping of str to {"f32", "bf16"}
        Names of layers that stay in floats; f32 unless said.
    quantizers : Quantizers
        What tensors become.

    Attributes
    ----------
    graph : Graph
        With quantizers, as `fuse` takes it.
    changes : tuple of Change
        Tensors that become codes, each with the reason.
    source, ranges
        As given.
    floats : mapping of str to str
        Data types of the layers that stay in floats.
    layers : tuple of str
        Names of all layers, in order.
    """

    def __init__(
        self,
        source: Graph,
        ranges: Mapping[str, tuple[float, float]],
        inputs: Values,
        values: Values,
        floats: Floats = (),
        quantizers: Quantizers = PLAIN,
    ) -> None:
        known = at_lengths(source, {name: array.shape for name, array in inputs.items()})
        layers = (node.name for node in layers_of(known))
        super().__init__(source, layers, ranges, inputs, values, floats, quantizers)
        stay = frozenset(self.floats)
        placement = QuantizerPlacement(known, stay)
        self.changes = placement.changes()
        known = with_biases_corrected(known, placement.layers, quantizers)
        self._seen = quantized_form(known, self.ranges, stay, quantizers)
        self.graph = opened(source, known, self._seen)

    def model(self, *, exact_rounding: bool = False) -> Model:
        """Return the INT8 model; its `network()` runs it in one call.

        Parameters
        ----------
        exact_rounding : bool
            As of `fuse`.
        """
        return Model(self._fused(self.graph, exact_rounding=exact_rounding))

    def save(self, file: str | os.PathLike[str], *, form: str = "qdq") -> None:
        """Write the model with its quantizers; `pyonednn_q.load` makes the same calls of it.

        Parameters
        ----------
        file : path
            Is overwritten.
        form : {"qdq", "fake_quantize"}
            QuantizeLinear and DequantizeLinear; or FakeQuantize of OpenVINO's domain, as the
            training tool writes unless told otherwise. Layers in floats are float32 in either.
        """
        one_of("form", form, ("qdq", "fake_quantize"))
        graph = self.graph if form == "qdq" else fake_quantize_form(self.graph)
        save(graph, file, self.options())

    def options(self, *, exact_rounding: bool = False) -> dict[str, Any]:
        """Return what `fuse` is told, by name, to make of `graph` what `model` does."""
        flag("exact_rounding", exact_rounding)
        floats = dict(self.floats)
        return {"exact_rounding": exact_rounding, "keep_rounding": False, "floats": floats}

    def _make(self) -> Model:
        return self.model()

    def _outputs(self, runs: Model) -> Values:
        return runs.run(self._inputs)

    def summary(self, *, times: bool = False) -> str:
        """Return a table, a line for each node: how it runs, plan, exactness, SQNR, time.

        SQNR, in dB, of the node's result against the float model's, errors of the nodes before it
        included, on the first batch of the calibration. Under the table it says why layers run in
        floats.

        Parameters
        ----------
        times : bool
            Measure as well: microseconds of each layer with its chain by itself, and of the same
            layer in float32.
        """
        flag("times", times)
        ready = Model(
            self._fused(self._seen)
        ).graph  # with the nodes of layers that no kernel takes
        names = [name for node in ready.nodes for name in node.outputs if name]
        outputs = {name: ready.tensors.get(name, Value("float32", None)) for name in names}
        seen = Model(replace(ready, outputs=MappingProxyType({**outputs, **ready.outputs})))
        values = {**self._inputs, **seen.run(self._inputs)}
        reals = codes_name(self._seen.nodes)
        rows = []
        for node in seen.graph.nodes:
            name = reals.get(node.output, node.output)
            sqnr = self._sqnr(name, values[node.output], ready.qparams.get(node.output))
            measured = _times(node, values) if times else []
            rows.append([*_described(node, values), sqnr, *measured])
        heads = ("nodes", "how", "runs", "implementation", "exactness")
        whys = {
            node.name: node.why
            for node in seen.graph.nodes
            if any(part.name in self.layers for part in node.parts) and node.why
        }
        return table(heads, rows, {**whys, **self.notes()}, times=times)

    def _fused(self, graph: Graph, *, exact_rounding: bool = False) -> FusedGraph:
        fused = fuse(graph, **self.options(exact_rounding=exact_rounding))
        return replace(fused, changes=(*self.changes, *fused.changes))


def _described(node: FusedNode, values: Values) -> list[str]:
    name = shortened(", ".join(node.originals) or node.output, 40)
    exactness = implementation = "-"
    if isinstance(node.operator, Operator):
        planned = node.operator.prepare(values[node.inputs[0]].shape)
        exactness, implementation = str(planned.plan.exactness), planned.seen.impl
    return [name, node.how, shortened(str(node), 40), implementation, exactness]


def _times(node: FusedNode, values: Values) -> list[str]:
    if not isinstance(node.operator, Operator):
        return ["-", "-"]
    own, twin = node.operator, _float_twin(node.operator)
    if twin is None:
        return ["-", "-"]
    src = values[node.inputs[0]]
    operands = {leaf: values[name] for leaf, name in node.operands.items()}
    q = own.settings.src_q
    reals = (q.dequantize(src) if isinstance(q, QParams) else src).astype(np.float32)
    if own.weights.dtype == "bf16":
        src = src.astype(dtypes.numpy_dtype("bf16"))
    floats = {leaf: each.astype(np.float32) for leaf, each in operands.items()}
    pair = _medians(lambda: own(src, **operands), lambda: twin(reals, **floats))
    return [f"{1e6 * seconds:.1f}" for seconds in pair]


def _medians(*calls: Callable[[], Any]) -> list[float]:
    """Return the median seconds of calls that take turns, each behind one that is not timed."""
    samples: list[list[float]] = [[] for _ in calls]
    for _ in range(_ROUNDS):
        for call, seconds in zip(calls, samples, strict=True):
            call()
            start = perf_counter()
            call()
            seconds.append(perf_counter() - start)
    return [median(each) for each in samples]


def _float_twin(operator: Operator) -> Operator | None:
    """Return the layer that computes the same of float32, of weights that are what codes mean."""
    weights = operator.weights
    if weights.parts is not None:
        return None
    wei = weights.values.astype(np.float32)
    if operator.settings.src_q is not None:
        wei = np.moveaxis(wei, operator.axis, -1)
        wei = wei * weights.scale.spread(wei.shape[-1]).astype(np.float32)
        wei = np.ascontiguousarray(np.moveaxis(wei, -1, operator.axis))
    groups = {"groups": operator.groups} if operator.window else {}
    make: Callable[..., Operator] = type(operator)
    return make(wei, operator.bias, **operator.window, **groups, post=operator.settings.post)
