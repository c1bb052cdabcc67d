"""Calibration of a network of float operators and samples of its inputs to an INT8 network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.argument import flag
from pyonednn_q.errors import ArgumentError
from pyonednn_q.native import Prepared
from pyonednn_q.network.accuracy_loop import Array, Floats, MixedCalibration, Values, table
from pyonednn_q.network.calibration_options import CalibrationOptions, found_ranges, named_inputs
from pyonednn_q.network.carrier import spec_of_array
from pyonednn_q.network.graph import Network, Node
from pyonednn_q.network.quantized_network import (
    code_tensors,
    is_layer,
    quantized_network,
    readers_of,
)
from pyonednn_q.ops.operator import Operator
from pyonednn_q.quantize.config import QuantizationConfig
from pyonednn_q.quantize.precision import WeighedLayer
from pyonednn_q.quantize.quantizers import PLAIN, Quantizers
from pyonednn_q.shown import shortened

if TYPE_CHECKING:
    from pyonednn_q.network.compiled import Compiled

_ROUNDS = 21
_PRECISIONS = {"f32": "FP32", "bf16": "BF16"}  # of weights


def calibrated_network(
    network: Network, batches: Iterable[Any], options: CalibrationOptions
) -> NetworkCalibration:
    """Return what `pyonednn_q.calibrate` does of a network of operators.

    Parameters
    ----------
    network : Network
        Of operators with float32 weights and what lies between them. Batch norms and activations
        are steps of chains, additions are Sums.
    batches : iterable
        Samples of its inputs.
    options : CalibrationOptions
        What the caller asks for.

    Raises
    ------
    ArgumentError
        No operator of float32 weights; no batches; a configuration that quantizes outputs.
    """
    layers = tuple(node.dst for node in network.nodes if is_layer(node))
    if not layers:
        raise ArgumentError("model", "no operator of float32 weights", "one at least")
    if options.config is not None and options.config.quantize_outputs:
        wanted = "false: results of a Network are floats; those of an ONNX model may be codes"
        raise ArgumentError("config.quantize_outputs", "true", wanted)
    if options.bias_correction:
        wanted = "False: biases of a Network stay; those of an ONNX model can be corrected"
        raise ArgumentError("bias_correction", "True", wanted)
    decided = options.deciding(layers, readers_of(network), frozenset(network.inputs))
    quantizers = decided(options.config)
    stay = options.staying(quantizers, layers)
    everything = _with_all(network)
    first: list[tuple[Values, Values]] = []

    def run(batch: Any) -> Values:  # noqa: ANN401
        inputs = named_inputs(network.inputs, batch)
        values = {**inputs, **everything(*inputs.values())}
        if not first:
            first.append((inputs, values))
        return values

    ranges = found_ranges(run, batches, code_tensors(network), quantizers, options.estimators)

    def calibrated(settled: QuantizationConfig | None) -> NetworkCalibration:
        return NetworkCalibration(network, ranges, *first[0], stay, decided(settled))

    weighed = {
        node.dst: _weighed(node.runs, first[0][1][node.dst])
        for node in network.nodes
        if is_layer(node) and node.dst not in stay
    }
    return calibrated(options.settled(weighed, lambda settled: calibrated(settled).network))


def _weighed(operator: Operator, result: Array) -> WeighedLayer:
    wei = np.moveaxis(operator.weights.values, operator.axis, 0)
    return WeighedLayer(wei, 2.0 * result.size * wei.size / len(wei))


class NetworkCalibration(MixedCalibration[Network, Network]):
    """A float network, the ranges of its tensors, and which of its operators are INT8.

    Parameters
    ----------
    source : Network
        Of float32 operators.
    ranges : mapping of str to (lo, hi)
        Of its float32 tensors, in their units.
    inputs, values : mapping of str to ndarray
        One batch, and what the float network makes of it: every tensor.
    floats : iterable of str, or mapping of str to {"f32", "bf16"}
        Operators that stay in floats, by the names of their results; f32 unless said.
    quantizers : Quantizers
        What tensors become.

    Attributes
    ----------
    network : Network
        Of INT8 operators, with inputs and outputs of floats as before.
    source, ranges
        As given.
    floats : mapping of str to str
        Data types of the operators that stay in floats.
    layers : tuple of str
        Results of all operators that may become INT8, in order.
    """

    def __init__(
        self,
        source: Network,
        ranges: Mapping[str, tuple[float, float]],
        inputs: Values,
        values: Values,
        floats: Floats = (),
        quantizers: Quantizers = PLAIN,
    ) -> None:
        layers = (node.dst for node in source.nodes if is_layer(node))
        super().__init__(source, layers, ranges, inputs, values, floats, quantizers)
        self._quantized = quantized_network(source, self.ranges, self.floats, quantizers)
        self.network = self._quantized.network

    def _make(self) -> Network:
        return self.network

    def _outputs(self, runs: Network) -> Values:
        return runs(*self._inputs.values())

    def summary(self, *, times: bool = False) -> str:
        """Return a table, a line for each node that runs: how, exactness, SQNR, time.

        SQNR, in dB, of the node's result against the float network's, errors of the nodes before it
        included, on the first batch of the calibration. Under the table it says why operators run
        in floats.

        Parameters
        ----------
        times : bool
            Measure as well: median microseconds of each node in its place in the network, and in
            the float network.
        """
        flag("times", times)
        arrays = tuple(self._inputs.values())
        compiled, wide = (_compiled(n, self._inputs) for n in (self.network, self.source))
        values = {**self._inputs, **_with_all(self.network)(*arrays)}
        taken = [_medians(each, arrays) for each in (compiled, wide)] if times else []
        heads = ("nodes", "how", "implementation", "exactness")
        rows = []
        impls = {s.node: s.runs.impl for s in compiled.steps if isinstance(s.runs, Prepared)}
        running = {step.node for step in compiled.steps}
        for node in self.network.nodes:
            if node.dst not in running:
                continue
            real = self._quantized.reals.get(node.dst, node.dst)
            q = self._quantized.qparams.get(node.dst)
            cells = [
                _how(node, q is not None),
                impls.get(node.dst, "-"),
                self._exactness(node, values),
            ]
            measured = [
                f"{t.get(n, 0.0):.1f}" for t, n in zip(taken, (node.dst, real), strict=False)
            ]
            sqnr = self._sqnr(real, values[node.dst], q)
            rows.append([shortened(node.dst, 40), *cells, sqnr, *measured])
        whys = {**self._quantized.whys, **self.notes()}
        return table(heads, rows, whys, times=times)

    def _exactness(self, node: Node, values: Values) -> str:
        if not isinstance(node.runs, Operator):
            return "-"
        return str(node.runs.plan(values[node.srcs[0]].shape).exactness)


def _with_all(network: Network) -> Network:
    """Return the network with all tensors as outputs."""
    return Network(network.inputs, network.nodes, [node.dst for node in network.nodes])


def _compiled(network: Network, inputs: Values) -> Compiled:
    return network.compile({name: spec_of_array(array, name) for name, array in inputs.items()})


def _medians(compiled: Compiled, arrays: tuple[Array, ...]) -> dict[str, float]:
    samples = [compiled.times(*arrays) for _ in range(_ROUNDS)]
    return {name: median(each[name] for each in samples) for name in samples[0]}


def _how(node: Node, is_codes: bool) -> str:
    what = node.runs
    if isinstance(what, Operator):
        return f"{_PRECISIONS.get(what.weights.dtype, 'INT8')} {what.kind}"
    name = type(what).__name__
    if name in {"Quantize", "Dequantize", "Convert"}:
        return "quantizer" if name != "Convert" else "converted"
    return f"codes moved, {name}" if is_codes else f"floats, {name}"
