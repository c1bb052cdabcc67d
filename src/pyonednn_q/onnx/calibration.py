"""calibrate: an FP32 model and samples of its inputs to an INT8 model, and what that costs.

Ranges come from estimators that see every tensor while the float model runs. Quantizers go where
codes are read, and `fuse` makes layers of that: batch norms, activations and additions join their
chains. Layers that cost too much accuracy are turned back to floats, one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from statistics import median
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import (
    flag,
    function,
    instance,
    named,
    whole,
)
from pyonednn_q.errors import ArgumentError
from pyonednn_q.network.accuracy_loop import (
    Floats,
    MixedCalibration,
    Values,
    table,
    usual_wei_bits,
)
from pyonednn_q.onnx.fusion import fuse
from pyonednn_q.onnx.graph import OnnxGraph, ValueInfo
from pyonednn_q.onnx.model import Model
from pyonednn_q.onnx.qdq_form import qdq_form
from pyonednn_q.onnx.quantized_form import (
    codes_name,
    layers_of,
    quantized_form,
    with_norms_as_layers,
)
from pyonednn_q.ops.arrays import as_array
from pyonednn_q.ops.operator import Operator
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.calibrate import collect, estimator
from pyonednn_q.shown import shortened, shown

if TYPE_CHECKING:
    from pyonednn_q.onnx.fused_node import FusedGraph, FusedNode
    from pyonednn_q.quantize.estimator import Estimator

_ROUNDS = 21


def calibrate(
    graph: OnnxGraph,
    batches: Iterable[Any],
    *,
    estimators: Callable[[], Estimator] = estimator,
    floats: Floats = (),
    wei_bits: int | None = None,
) -> Calibration:
    """Find the ranges of a float model's tensors, and make an INT8 model of it.

    Parameters
    ----------
    graph : OnnxGraph
        Of floats, as `load` returns it.
    batches : iterable of (mapping of str to array_like, or array_like)
        Inputs by name; or the input, of a model that has one. In the model's dims. Read once; the
        first stays, to compare results on.
    estimators : callable
        What makes an `Estimator` of each tensor's range; min-max unless said.
    floats : iterable of str, or mapping of str to {"f32", "bf16"}
        Names of layers that stay in floats: f32 unless said. What follows them, up to what other
        layers read as codes, stays with them.
    wei_bits : int, optional
        Of the weights, which get a scale for each output channel: 8; or 7, which processors
        without VNNI multiply exactly. None: what this one does.

    Returns
    -------
    Calibration

    Raises
    ------
    ArgumentError
        No batches; a model with quantizers, or without layers; a name that is no layer's.
    """
    instance("graph", graph, OnnxGraph)
    function("estimators", estimators)
    bits = usual_wei_bits() if wei_bits is None else whole("wei_bits", wei_bits, lo=2, hi=8)
    plain = qdq_form(graph)
    if any(node.row.is_quantizer for node in plain.nodes):
        raise ArgumentError("graph", "quantizers", "a model of floats; `fuse` takes quantized ones")
    if not layers_of(plain):
        raise ArgumentError("graph", "no layer of constant weights", "one at least")
    names = [*plain.inputs, *(name for node in plain.nodes for name in node.outputs if name)]
    reals = [name for name in names if name in plain.tensors and _is_real(plain, name)]
    seen = {name: plain.tensors[name] for name in reals if name not in plain.inputs}
    observed = Model(fuse(replace(plain, outputs=MappingProxyType({**seen, **plain.outputs}))))
    first: list[tuple[Values, Values]] = []

    def run(batch: Any) -> Values:  # noqa: ANN401
        inputs = _inputs(plain, batch)
        values = {**inputs, **observed.run(inputs)}
        if not first:
            first.append((inputs, values))
        return {name: values[name] for name in reals}

    states = collect(run, batches, estimators)
    ends = {name: (float(each.range()[0]), float(each.range()[1])) for name, each in states.items()}
    return Calibration(with_norms_as_layers(plain), ends, *first[0], floats, bits)


class Calibration(MixedCalibration[OnnxGraph, Model]):
    """A float model, the ranges of its tensors, and which of its layers are INT8.

    Parameters
    ----------
    source : OnnxGraph
        Without quantizers.
    ranges : mapping of str to (lo, hi)
        Of its real tensors, in their units.
    inputs, values : mapping of str to ndarray
        One batch, and what the float model makes of it: every tensor.
    floats : iterable of str, or mapping of str to {"f32", "bf16"}
        Names of layers that stay in floats; f32 unless said.
    wei_bits : int
        Of the weights.

    Attributes
    ----------
    graph : OnnxGraph
        With quantizers, as `fuse` takes it.
    source, ranges
        As given.
    floats : mapping of str to str
        Data types of the layers that stay in floats.
    layers : tuple of str
        Names of all layers, in order.
    """

    def __init__(
        self,
        source: OnnxGraph,
        ranges: Mapping[str, tuple[float, float]],
        inputs: Values,
        values: Values,
        floats: Floats = (),
        wei_bits: int = 8,
    ) -> None:
        layers = (node.name for node in layers_of(source))
        super().__init__(source, layers, ranges, inputs, values, floats, wei_bits)
        self.graph = quantized_form(source, self.ranges, frozenset(self.floats), wei_bits=wei_bits)

    def model(self, *, exact_rounding: bool = False) -> Model:
        """Return the INT8 model; its `network()` runs it in one call.

        Parameters
        ----------
        exact_rounding : bool
            As of `fuse`.
        """
        return Model(self._fused(exact_rounding=exact_rounding))

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
        ready = Model(self._fused()).graph  # with the nodes of layers that no kernel takes
        names = [name for node in ready.nodes for name in node.outputs if name]
        outputs = {name: ready.tensors.get(name, ValueInfo("float32", None)) for name in names}
        seen = Model(replace(ready, outputs=MappingProxyType({**outputs, **ready.outputs})))
        values = {**self._inputs, **seen.run(self._inputs)}
        reals = codes_name(self.graph.nodes)
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
        return table(heads, rows, whys, times=times)

    def _fused(self, *, exact_rounding: bool = False) -> FusedGraph:
        return fuse(
            self.graph, exact_rounding=exact_rounding, keep_rounding=False, floats=self.floats
        )


def _is_real(graph: OnnxGraph, name: str) -> bool:
    return graph.tensors[name].dtype == "float32" and name not in graph.constants


def _inputs(graph: OnnxGraph, batch: Any) -> Values:  # noqa: ANN401
    if not isinstance(batch, Mapping):
        if len(graph.inputs) != 1:
            raise ArgumentError("batches", "arrays", f"inputs by name: {shown(list(graph.inputs))}")
        batch = dict.fromkeys(graph.inputs, batch)
    by_name = named("batches", batch, object)
    return {name: as_array(f"batches[{shown(name)}]", array) for name, array in by_name.items()}


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
