"""Widths of weights by a configuration: by traces of the Hessian (HAWQ), or by trying (AutoQ).

    hawq     least Σ trace/size · ‖Q(W) − W‖² of a bit complexity `compression_ratio` below INT8
    autoq    the best score of `iter_number` tries whose size against FP32 is within the ratio
    manual   what `bitwidth_per_scope` says, which all kinds keep to

Codes of 2 to 8 bits are s8 codes in narrower ranges: a width changes how exact a layer is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from pyonednn_q.argument import function, named, real
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError
from pyonednn_q.quantize.bit_search import search_bits
from pyonednn_q.quantize.mixed_precision import (
    assign_bits,
    bit_complexities,
    ratio_limit,
    source_bits,
)
from pyonednn_q.quantize.sensitivity import sensitivity
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from pyonednn_q.quantize.config import PrecisionSettings, QuantizationConfig

__all__ = ["Traces", "WeighedLayer", "with_widths"]

Traces: TypeAlias = "Mapping[str, float] | Callable[[str], float]"
_WIDEST = 8


class WeighedLayer(NamedTuple):
    """Cost and error of a layer at each width.

    Attributes
    ----------
    wei : ndarray of float32
        Real weights, output channels first.
    flops : float
        Operations of a call.
    """

    wei: Array
    flops: float


def with_widths(
    config: QuantizationConfig,
    layers: Mapping[str, WeighedLayer],
    traces: Traces | None,
    evaluate: Callable[[QuantizationConfig], float] | None,
) -> QuantizationConfig:
    """Return a configuration whose widths are settled, layer by layer.

    Parameters
    ----------
    config : QuantizationConfig
        Configuration of the training tool.
    layers : mapping of str to WeighedLayer
        Layers whose weights it quantizes.
    traces : mapping of str to float, or callable
        Trace of the loss's Hessian in each layer's weights (`hutchinson_trace`), by the layer's
        name, or a function that returns it for a name. Used by "hawq".
    evaluate : callable
        Function from a configuration of settled widths to a score; more is better. Used by "autoq".

    Raises
    ------
    ArgumentError
        Traces or a score that are wanted and not there; widths that reach no such ratio.
    """
    precision = config.precision
    if precision is None or precision.kind == "manual" or not layers:
        return config
    may = tuple(sorted({bits for bits in precision.bits if bits <= _WIDEST}))
    by_hand = config.by_hand(tuple(layers))
    choices = {name: (by_hand[name],) if name in by_hand else may for name in layers}
    if precision.kind == "hawq":
        if traces is None:
            wanted = "a trace for each layer, which HAWQ of the configuration goes by"
            raise ArgumentError("traces", "None", wanted)
        return _settled(config, _by_traces(precision, layers, traces, choices))
    if evaluate is None:
        wanted = "a function from a model to a score, which AutoQ of the configuration asks"
        raise ArgumentError("metric", "None", wanted)
    score = evaluate
    best = search_bits(
        lambda bits: score(_settled(config, bits)),
        choices,
        {name: each.wei.size for name, each in layers.items()},
        precision.compression_ratio,
        trials=precision.rounds,
    )
    return _settled(config, best.bits)


def _by_traces(
    precision: PrecisionSettings,
    layers: Mapping[str, WeighedLayer],
    traces: Traces,
    choices: Mapping[str, tuple[int, ...]],
) -> dict[str, int]:
    if not isinstance(traces, Mapping):
        function("traces", traces)
        traces = {name: real("traces", traces(name), wide=True) for name in layers}
    known = named("traces", traces, float, int)
    if set(known) != set(layers):
        raise ArgumentError("traces", shown(sorted(known)), f"layers {shown(sorted(layers))}")
    lost = {
        name: {bits: sensitivity(each.wei, bits, known[name]) for bits in choices[name]}
        for name, each in layers.items()
    }
    flops = {name: each.flops for name, each in layers.items()}
    sources = {
        name: {bits: source_bits(bits, precision.bits, precision.widths) for bits in choices[name]}
        for name in layers
    }
    costs = bit_complexities(flops, sources)
    limit = ratio_limit(flops, costs, precision.compression_ratio)
    order = sorted(layers, key=lambda name: known[name] / max(layers[name].wei.size, 1))
    return assign_bits(lost, costs, limit, order=order).bits


def _settled(config: QuantizationConfig, bits: Mapping[str, int]) -> QuantizationConfig:
    widths = tuple((width, f"{name}|WEIGHT") for name, width in bits.items())
    return replace(config, bitwidth_per_scope=(*config.bitwidth_per_scope, *widths))
