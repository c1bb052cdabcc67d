"""calibrate: a float network and samples of its inputs to an INT8 network, and what that costs.

Ranges come from estimators that see the tensors that become codes while the float network runs,
compiled. Quantizers go where codes are read, and `fuse` makes layers of that: batch norms,
activations and additions join their chains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.argument import count, each, flag, whole
from pyonednn_q.errors import ArgumentError
from pyonednn_q.graph.graph import Graph, GraphNode
from pyonednn_q.network import Network
from pyonednn_q.onnx.batch_norms import DEFAULT_SAMPLES, has_norms, with_norms_of
from pyonednn_q.onnx.calibration import Calibration
from pyonednn_q.onnx.calibration_options import (
    CalibrationOptions,
    Config,
    estimators_of,
    first_batches,
    found_ranges,
    known_config,
    named_inputs,
    passes_of,
)
from pyonednn_q.onnx.choices import is_open
from pyonednn_q.onnx.equalization import equalized
from pyonednn_q.onnx.float_types import Floats, Values, usual_wei_bits
from pyonednn_q.onnx.float_ways import FloatWays
from pyonednn_q.onnx.model_reader import load, refuse_torch
from pyonednn_q.onnx.network_graph import graph_of
from pyonednn_q.onnx.passes import prepared
from pyonednn_q.onnx.quantized_form import channels_axis
from pyonednn_q.onnx.smoothing import smoothed
from pyonednn_q.quantize.calibrate import estimator
from pyonednn_q.quantize.config import QuantizationConfig
from pyonednn_q.quantize.weight_widths import Traces, WeighedLayer
from pyonednn_q.report.progress import Progress

if TYPE_CHECKING:
    from pyonednn_q.quantize.estimator import Estimator


def calibrate(
    model: Any,  # noqa: ANN401 - a Graph, a Network, or what `onnx.load` takes
    batches: Iterable[Any],
    *,
    config: Config | None = None,
    estimators: str | Callable[[], Estimator] = estimator,
    floats: Floats = (),
    wei_bits: int | None = None,
    bias_correction: bool | None = None,
    passes: str | Iterable[str] = (),
    traces: Traces | None = None,
    metric: Callable[[Any], float] | None = None,
) -> Calibration:
    """Find the ranges of the tensors of a float model, and make an INT8 model of it.

    The float model runs compiled, once for each batch; ranges of tensors that become codes are
    found.

    Parameters
    ----------
    model : Graph, Network, or ONNX model
        Model with float32 layers and without quantizers: a Graph of `onnx.load` or `torch.load`, a
        Network, or a path, bytes or ModelProto.
    batches : iterable of (mapping of str to array_like, sequence of array_like, or array_like)
        Samples of the inputs, as data loaders give them: by name, in the model's order, or the
        only input. NumPy arrays, or tensors on the CPU (DLPack). Other items of a mapping or
        sequence, such as labels, are ignored. Dims are the model's; open lengths may have any
        value. Batches may take different branches of the model; layers in branches that no batch
        takes stay in floats. Batches are read once; the first one of each choice of branches is
        kept, to compare results.
    config : mapping, path of a JSON file, or QuantizationConfig, optional
        Configuration of the training tool NNCF (`quantize.read_config`). It decides estimators of
        ranges, modes, widths of weights, shared scales, which layers stay in floats, and how many
        samples adapt the statistics of batch norms. Its scopes name nodes of ONNX, or results of a
        Network. `summary` lists what cannot be done.
    estimators : str or callable
        Kind of `quantize.ESTIMATORS`, such as "mse" or "percentile"; or a function that makes an
        `Estimator` for each tensor. Default: min_max. Not with `config`.
    floats : iterable of str, or mapping of str to {"f32", "bf16"}
        Names of layers that stay in floats, or patterns of names such as "head*"; with a data type,
        or f32. Operators after them stay in floats, too, up to a tensor that another layer reads as
        codes.
    wei_bits : int, optional
        Bits of a weight: 8, or 7, which processors without VNNI multiply exactly. None: 8 with VNNI
        on this processor, else 7. Not with `config`.
    bias_correction : bool, optional
        Whether biases of convolutions, and of products with a bias, correct the shift that rounding
        of weights adds to the mean result. None: true, unless `config` decides.
    passes : str or iterable of str
        Some of "renormalized", "equalized", "smoothed" and "rounded", which run in this order. The
        first three are `onnx.renormalized`, `onnx.equalized` and `onnx.smoothed`, without options.
        "rounded" rounds each weight up or down, whichever changes the layer's results less
        (`quantize.searched_rounding`; 8 · K² bytes for a layer with K weights for each result).
        "renormalized" and "smoothed" keep batches in memory. Also allowed with `config`, which
        renormalizes without this option.
    traces : mapping of str to float, or callable, optional
        Trace of the Hessian of the loss by each layer's weights, by name of the layer, or a
        function of the name; for a configuration with HAWQ.
    metric : callable, optional
        Function from an INT8 `Model` to a score, for a configuration with AutoQ.

    Returns
    -------
    Calibration

    Raises
    ------
    ArgumentError
        No batches; a model with quantizers, or without layers; a name that no layer has; a missing
        argument that the configuration needs.

    Examples
    --------
    >>> import numpy as np
    >>> import pyonednn_q as pq
    >>> wei = np.ones((2, 3), np.float32)
    >>> net = pq.network.sequential(pq.InnerProduct(wei), pq.Eltwise("relu"))
    >>> found = pq.calibrate(net, [np.eye(3, dtype=np.float32)])
    >>> found.ranges["x"]
    (0.0, 1.0)
    >>> images = [np.eye(3, dtype=np.float32)]
    >>> found = pq.calibrate(net, images, config={"algorithm": "quantization"})
    >>> found.quantizers.layers["innerproduct1"].weights.half_range
    True
    """
    make = estimators_of(estimators)
    if bias_correction is None:
        bias_correction = config is None
    flag("bias_correction", bias_correction)
    known = known_config(config, estimators=estimators is not estimator, wei_bits=wei_bits)
    bits = usual_wei_bits() if wei_bits is None else whole("wei_bits", wei_bits, lo=2, hi=8)
    options = CalibrationOptions(
        known, make, floats, bits, traces, metric, bias_correction, passes_of(passes)
    )
    refuse_torch(model)
    source = model if isinstance(model, (Graph, Network)) else load(model)
    with Progress(count("batches", batches), "calibrate") as progress:
        samples = progress.over(each("batches", batches))
        if isinstance(source, Network):
            samples, first = _peeked(samples, source.inputs)
            source = graph_of(source, {name: ("",) * each.ndim for name, each in first.items()})
        return _calibrated(source, samples, options)


def _calibrated(
    graph: Graph,
    samples: Iterator[Any],
    options: CalibrationOptions,
    told: tuple[str, ...] | None = None,
) -> Calibration:
    graph = graph if graph.symbols else prepared(graph)
    samples, inputs = _peeked(samples, tuple(graph.inputs))
    ways = FloatWays(graph, options, inputs)
    if told is None:
        keep = ways.quantizers().samples()
        changed, samples, told = _passed(graph, samples, options, keep)
        if changed is not graph:
            return _calibrated(changed, samples, options, told)
    names = tuple(graph.inputs)
    ranges = found_ranges(
        lambda batch: ways.run(named_inputs(names, batch)),
        samples,
        ways.quantizers,
        options.estimators,
    )
    layers = ways.layers
    for node, _ in layers.values():
        if not np.isfinite(ranges[node.inputs[0]]).all():
            argument = f"{node.inputs[0]}: batch"
            raise ArgumentError(argument, "values that are not finite", "finite numbers")
    ways.clear()
    source = graph if is_open(graph) else ways.ways[0].graph
    decided = ways.deciding()
    stay = options.staying(ways.quantizers(), (*ways.names(), *ways.recurrences))
    first, *others = (way.batch for way in ways.ways if way.batch is not None)

    def calibrated(settled: QuantizationConfig | None) -> Calibration:
        known = replace(decided(settled), means=ways.means.result(), told=told)
        ready = ways.products.rounded(known)
        return Calibration(source, ranges, *first, stay, ready, others)

    weighed = {name: _weighed(*layers[name]) for name in ways.names() if name not in stay}
    return calibrated(options.settled(weighed, lambda settled: calibrated(settled).model()))


def _passed(
    graph: Graph, samples: Iterator[Any], options: CalibrationOptions, keep: int | None
) -> tuple[Graph, Iterator[Any], tuple[str, ...]]:
    """Return the graph after the given passes, the samples, and notes.

    Parameters
    ----------
    graph : Graph
        Graph of floats.
    samples : iterator
        Batches.
    options : CalibrationOptions
        Options of the caller.
    keep : int or None
        Number of samples that later readers need; None: all.
    """
    asked = DEFAULT_SAMPLES if "renormalized" in options.passes else 0
    count = asked or (options.config.batch_norm_samples if options.config else 0)
    told: tuple[str, ...] = ()
    if count and has_norms(graph):
        graph, samples, told = with_norms_of(graph, samples, count, keep)
    if "equalized" in options.passes:
        graph = equalized(graph)
    if "smoothed" in options.passes:
        held = list(samples if keep is None else first_batches(samples, keep))
        graph, samples = smoothed(graph, held), iter(held)
    return graph, samples, told


def _peeked(samples: Iterator[Any], names: tuple[str, ...]) -> tuple[Iterator[Any], Values]:
    """Return samples from the first on, and that one's inputs."""
    try:
        first = next(samples)
    except StopIteration:
        raise ArgumentError("batches", "none", "one at least") from None
    return chain([first], samples), named_inputs(names, first)


def _weighed(node: GraphNode, graph: Graph) -> WeighedLayer:
    wei = graph.constants[node.inputs[1]]
    axis = channels_axis(node, wei) or 0
    dims = graph.tensors[node.outputs[0]].dims or ()
    return WeighedLayer(np.moveaxis(wei, axis, 0), 2.0 * prod(dims) * wei.size / wei.shape[axis])
