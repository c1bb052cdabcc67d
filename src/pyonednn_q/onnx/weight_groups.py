"""grouped_weights: a float model with the weights of its products in groups of few bits.

    method       what stands before                           codes
    "rtn"        nothing                                      nearest
    "search"     nothing                                      scales that lose least
    "gptq"       nothing                                      errors fed back
    "awq"        sources divided, where a norm's gains or     as "search"
                 the layer before can take it
    "awq+gptq"   the same                                     as "gptq"

Every product is looked at by itself, on the sources that the float model has. Layers that read one
tensor have one divisor. Of several widths each layer gets one, so that errors are least within a
mean of bits, or bits within a mean of errors: `quantize.assign_bits`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from pyonednn_q.argument import each, flag, integers, one_of, real, whole
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError
from pyonednn_q.graph.graph import Graph, GraphNode
from pyonednn_q.network import Network
from pyonednn_q.onnx.calibration_options import named_inputs
from pyonednn_q.onnx.divided_sources import divisible_sources, with_sources_divided
from pyonednn_q.onnx.float_model import observed
from pyonednn_q.onnx.float_types import Floats, float_types
from pyonednn_q.onnx.group_products import FORMS, ConstantProduct, product_of, with_groups
from pyonednn_q.onnx.model_in_groups import LayerInGroups, ModelInGroups
from pyonednn_q.onnx.model_reader import load, refuse_torch
from pyonednn_q.onnx.network_graph import graph_of
from pyonednn_q.onnx.passes import prepared
from pyonednn_q.predict.matmul_nbits import LEVELS, SIZES
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.activation_divisors import activation_divisor
from pyonednn_q.quantize.error_feedback import output_errors
from pyonednn_q.quantize.group_codes import GroupMethod, group_codes
from pyonednn_q.quantize.mixed_precision import assign_bits
from pyonednn_q.shown import shown

__all__ = ["grouped_weights"]

ModelMethod: TypeAlias = Literal["rtn", "search", "gptq", "awq", "awq+gptq"]

# Of each method: how codes are chosen, and whether sources are divided before.
_METHODS: Mapping[str, tuple[Any, bool]] = {
    "rtn": ("rtn", False),
    "search": ("search", False),
    "gptq": ("gptq", False),
    "awq": ("search", True),
    "awq+gptq": ("gptq", True),
}
_WIDTHS = (4, 8)


class _LayerCodes(NamedTuple):
    """Codes of a layer, what they are worth, and what they err."""

    codes: Array
    wei_q: QParams
    error: float


class _GroupSettings(NamedTuple):
    """Options by which codes are chosen."""

    groups: int
    widths: tuple[int, ...]
    symmetric: bool


def grouped_weights(
    model: Any,  # noqa: ANN401 - as load takes it
    batches: Iterable[Any] = (),
    *,
    groups: int = 128,
    bits: int | Sequence[int] = 4,
    symmetric: bool = True,
    method: ModelMethod = "search",
    floats: Floats = (),
    mean_bits: float | None = None,
    mean_error: float | None = None,
    form: Literal["matmul_nbits", "dequantize"] = "matmul_nbits",
    accuracy_level: int = 4,
) -> ModelInGroups:
    """Return a float model whose products have weights in groups of few bits.

    It changes MatMul with a constant matrix, and Gemm that computes src · wei + bias with one. For
    other products, `report` says why they are unchanged.

    Parameters
    ----------
    model : path, bytes, onnx.ModelProto, Graph or Network
        Float model, as for `calibrate`.
    batches : iterable of (mapping of str to array_like, or array_like)
        Samples of the inputs, as for `calibrate`; read once. 8 · K² bytes are kept for each source.
        "rtn" and "search" work without batches; all inputs then have the same weight.
    groups : int
        Size of a group: neighbouring inputs that share a scale.
    bits : {4, 8} or sequence of those
        Bits of a code; with several widths, `mean_bits` or `mean_error` decides for each layer.
    symmetric : bool
        Whether groups have no zero points.
    method : {"rtn", "search", "gptq", "awq", "awq+gptq"}
        Method that chooses codes: see the table above.
    floats : iterable of str
        Names of products that stay in floats, or patterns of names.
    mean_bits : float, optional
        Largest mean number of bits of a weight, without scales.
    mean_error : float, optional
        Largest mean error of a layer, Σ (y − y_real)² / Σ y_real² over the samples.
    form : {"matmul_nbits", "dequantize"}
        ONNX form: com.microsoft.MatMulNBits, for groups of 16 to 256; or a DequantizeLinear of
        blocks before a MatMul, from opset 21 on.
    accuracy_level : {0, 1, 4}
        Attribute of MatMulNBits. With 4, the source becomes 8-bit codes in each call.

    Raises
    ------
    ArgumentError
        No batches for a method that needs some; a model with quantizers, or without such products;
        no choice of widths is within the bound.

    Examples
    --------
    >>> import pyonednn_q as pq
    >>> rng = np.random.default_rng(0)
    >>> wei = rng.standard_normal((8, 32)).astype(np.float32)
    >>> net = pq.network.sequential(pq.InnerProduct(wei))
    >>> src = rng.standard_normal((64, 32)).astype(np.float32)
    >>> small = grouped_weights(net, [src], groups=16, method="gptq")
    >>> [(each.bits, each.groups, each.method) for each in small.layers]
    [(4, 16, 'gptq')]
    """
    one_of("method", method, tuple(_METHODS))
    one_of("form", form, FORMS)
    level = whole("accuracy_level", accuracy_level)
    if level not in LEVELS:
        raise ArgumentError("accuracy_level", str(level), f"one of {LEVELS}")
    flag("symmetric", symmetric)
    settings = _GroupSettings(whole("groups", groups, lo=1), _widths(bits), symmetric)
    _check_bounds(settings.widths, mean_bits, mean_error)
    _check_form(form, settings.groups)
    samples = each("batches", batches)
    first = next(samples, None)
    graph = _float_graph(model, first)
    if first is None and method not in {"rtn", "search"}:
        raise ArgumentError("batches", "none", f"one at least, with method={method!r}")
    products, whys = _products(graph, settings.groups, floats)
    if not products:
        got = shown(whys) if whys else "none"
        raise ArgumentError("model", f"products: {got}", "products with constant weights to group")
    sums, divisible = ({}, {}) if first is None else _sums(graph, chain([first], samples), products)
    how, is_divided = _METHODS[method]
    divided: frozenset[str] = frozenset()
    if is_divided:
        graph, sums, divided = _divided(graph, settings, products, sums, divisible, how)
        products, _ = _products(graph, settings.groups, floats)
    codes = {
        each.name: {
            width: _codes_of(each, sums.get(each.source), settings, width, how)
            for width in settings.widths
        }
        for each in products
    }
    chosen = _chosen(products, codes, mean_bits, mean_error)
    layers = tuple(
        LayerInGroups(
            each.name,
            each.dims,
            settings.groups,
            width,
            method if each.source in divided or not is_divided else how,
            codes[each.name][width].error,
        )
        for each, width in zip(products, chosen, strict=True)
    )
    pairs = {
        each.name: codes[each.name][width][:2] for each, width in zip(products, chosen, strict=True)
    }
    return ModelInGroups(
        with_groups(graph, {each.name: each for each in products}, pairs, form, level),
        layers,
        whys,
        has_samples=first is not None,
    )


def _widths(bits: int | Sequence[int]) -> tuple[int, ...]:
    widths = (whole("bits", bits),) if isinstance(bits, int) else integers("bits", bits)
    if not widths or not set(widths) <= set(_WIDTHS):
        raise ArgumentError("bits", shown(bits), "4, 8 or (4, 8)")
    return tuple(dict.fromkeys(widths))


def _check_bounds(
    widths: tuple[int, ...], mean_bits: float | None, mean_error: float | None
) -> None:
    bounds = [each for each in (mean_bits, mean_error) if each is not None]
    if len(bounds) > 1:
        raise ArgumentError("mean_error", shown(mean_error), "None beside mean_bits")
    if bool(bounds) != (len(widths) > 1):
        wanted = "bits=(4, 8) with mean_bits or mean_error, and neither without"
        raise ArgumentError("bits", shown(widths), wanted)


def _check_form(form: str, groups: int) -> None:
    if form == "matmul_nbits" and groups not in SIZES:
        wanted = f"one of {SIZES}, which MatMulNBits takes; or form='dequantize'"
        raise ArgumentError("groups", str(groups), wanted)


def _float_graph(model: Any, batch: object) -> Graph:  # noqa: ANN401
    refuse_torch(model)
    source = model if isinstance(model, (Graph, Network)) else load(model)
    if isinstance(source, Network):
        if batch is None:
            raise ArgumentError("batches", "none", "one at least, for the lengths of a network")
        first = named_inputs(source.inputs, batch)
        source = graph_of(source, {name: ("",) * value.ndim for name, value in first.items()})
    if any(node.row.is_quantizer for node in source.nodes):
        raise ArgumentError("model", "quantizers", "a model of floats")
    return source if source.symbols else prepared(source)


def _products(
    graph: Graph, groups: int, floats: Floats
) -> tuple[tuple[ConstantProduct, ...], dict[str, str]]:
    """Return products whose weights may be in groups, and why others are not."""
    read = [product_of(node, graph) for node in graph.nodes]
    known = [each for each in read if each is not None]
    stay = float_types(floats, tuple(each.name for each in known))
    products, whys = [], {}
    for each_product in known:
        why = "as asked for" if each_product.name in stay else each_product.why(groups)
        if why:
            whys[each_product.name] = why
        else:
            products.append(each_product)
    return tuple(products), whys


def _sums(
    graph: Graph, samples: Iterable[Any], products: tuple[ConstantProduct, ...]
) -> tuple[dict[str, Array], dict[str, list[GraphNode]]]:
    """Return src.T @ src of each source over all samples, and the sources that may be divided."""
    names = tuple(dict.fromkeys(each.source for each in products))
    divisible: dict[str, list[GraphNode]] = {}

    def sources(plain: Graph) -> Iterable[str]:
        divisible.update({} if divisible else divisible_sources(plain, graph))
        return names

    sums: dict[str, Array] = {}
    for values in observed(graph, samples, sources):
        for name in names:
            rows = values[name].reshape(-1, values[name].shape[-1]).astype(np.float64)
            if not np.isfinite(rows).all():
                argument = f"{name}: batch"
                raise ArgumentError(argument, "values that are not finite", "finite ones")
            sums[name] = sums.get(name, 0.0) + rows.T @ rows
    own = {each.name for each in products}
    return sums, {
        name: nodes
        for name, nodes in divisible.items()
        if name in sums and all(node.name in own for node in nodes)
    }


def _divided(
    graph: Graph,
    settings: _GroupSettings,
    products: tuple[ConstantProduct, ...],
    sums: dict[str, Array],
    divisible: dict[str, list[GraphNode]],
    how: GroupMethod,
) -> tuple[Graph, dict[str, Array], frozenset[str]]:
    """Return a graph whose sources are divided, products of those, and which they are."""
    weights = {each.name: each.wei for each in products}
    divisors = {}
    for name, nodes in divisible.items():
        rows = np.concatenate([weights[node.name].T for node in nodes])
        divisors[name] = activation_divisor(
            rows,
            settings.groups,
            min(settings.widths),
            symmetric=settings.symmetric,
            method=how,
            products=sums[name],
        )
    divided = with_sources_divided(graph, divisible, divisors)
    places = {node.name: node.inputs[0] for node in divided.nodes if node.inputs}
    after = dict(sums)
    names: set[str] = set()
    for name, nodes in divisible.items():
        by = divisors[name]
        if (by != 1.0).any():
            own = places[nodes[0].name]
            after[own] = sums[name] / np.outer(by, by)
            names.add(own)
    return divided, after, frozenset(names)


def _codes_of(
    product: ConstantProduct,
    sums: Array | None,
    settings: _GroupSettings,
    bits: int,
    method: Any,  # noqa: ANN401
) -> _LayerCodes:
    codes, wei_q = group_codes(
        product.wei,
        settings.groups,
        bits,
        axis=-1,
        symmetric=settings.symmetric,
        method=method,
        products=sums,
    )
    gram = np.eye(product.dims[0]) if sums is None else sums
    wei = product.wei.T.astype(np.float64)
    apart = wei_q.dequantize(codes).T - wei
    whole_square = float(output_errors(wei, gram).sum())
    lost = float(output_errors(apart, gram).sum())
    return _LayerCodes(codes, wei_q, lost / whole_square if whole_square else 0.0)


def _chosen(
    products: tuple[ConstantProduct, ...],
    codes: Mapping[str, Mapping[int, _LayerCodes]],
    mean_bits: float | None,
    mean_error: float | None,
) -> list[int]:
    """Return the width of each layer."""
    if mean_bits is None and mean_error is None:
        return [next(iter(codes[each.name])) for each in products]
    errors = {name: {bits: one.error for bits, one in row.items()} for name, row in codes.items()}
    sizes = {
        each.name: {bits: float(bits * each.wei.size) for bits in codes[each.name]}
        for each in products
    }
    if mean_bits is not None:
        limit = real("mean_bits", mean_bits) * sum(each.wei.size for each in products)
        assigned = assign_bits(errors, sizes, limit)
    else:
        assert mean_error is not None
        assigned = assign_bits(sizes, errors, real("mean_error", mean_error) * len(products))
    return [assigned.bits[each.name] for each in products]
