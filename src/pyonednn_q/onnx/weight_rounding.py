"""Codes of weights that lose least of their layers' results: each rounded up or down for that.

Each layer by itself, of the float network's sources: `quantize.searched_rounding` over the rows
that its weights are multiplied with, patches of a convolution. Scales are those of nearest codes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import ceil, prod
from typing import Any

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import GraphNode
from pyonednn_q.onnx.geometry import convolution
from pyonednn_q.onnx.quantized_form import channels_axis
from pyonednn_q.quantize.quantizers import Quantizers
from pyonednn_q.quantize.rounding_search import searched_by_products

__all__ = ["SourceProducts"]

_PLACES = 4096  # of a batch that a convolution's patches are taken from, about, evenly apart


class SourceProducts:
    """Products of the rows that layers multiply weights with, summed over batches.

    Convolutions, and products whose weights are a matrix. Each takes 8 · K² bytes, K being how many
    weights make one result (of depthwise layers for each channel).

    """

    def __init__(self) -> None:
        self._layers: dict[str, GraphNode] = {}
        self._weights: dict[str, Array] = {}
        self._sums: dict[str, Array] = {}

    def add(
        self,
        layers: Iterable[GraphNode],
        constants: Mapping[str, Array],
        values: Mapping[str, Array],
    ) -> None:
        """Take a batch in.

        Parameters
        ----------
        layers : iterable of GraphNode
            Layers that ran on it.
        constants : mapping of str to ndarray
            Constants of their graph, their weights among them.
        values : mapping of str to ndarray
            Tensors of the batch, by name.
        """
        for node in layers:
            if node.inputs[0] not in values or not _is_searched(node, constants):
                continue
            self._layers.setdefault(node.name, node)
            wei = self._weights.setdefault(node.name, constants[node.inputs[1]])
            rows = _rows(node, values[node.inputs[0]], wei)
            total = np.matmul(rows.transpose(0, 2, 1), rows)
            self._sums[node.name] = self._sums.get(node.name, 0.0) + total.astype(np.float64)

    def rounded(self, quantizers: Quantizers) -> Quantizers:
        """Return the same quantizers with the codes of these layers' weights.

        Parameters
        ----------
        quantizers : Quantizers
            Nearest codes, and scales. Weights with zero points keep their nearest codes.
        """
        searched: dict[str, Array] = {}
        for node in self._layers.values():
            wei, axis = self._weights[node.name], channels_axis(node, self._weights[node.name])
            nearest, q = quantizers.weights(node.name, wei, axis)
            if node.name not in self._sums or np.any(q.zero_point):
                continue
            products = self._sums[node.name]
            rows = np.moveaxis(wei, axis or 0, 0)
            flat = rows.reshape(len(products), -1, products.shape[-1])
            scales = np.broadcast_to(np.asarray(q.scale), (len(rows),)).reshape(len(products), -1)
            lo, hi = min(int(nearest.min()), 0), max(int(nearest.max()), 1)
            groups = zip(products, flat, scales, strict=True)
            codes = np.stack([searched_by_products(*each, qmin=lo, qmax=hi) for each in groups])
            searched[node.name] = np.moveaxis(codes.reshape(rows.shape), 0, axis or 0)
        return replace(quantizers, codes=searched)


def _is_searched(node: GraphNode, constants: Mapping[str, Array]) -> bool:
    """Tell whether a layer is a convolution, or a product whose weights are a matrix."""
    wei = constants[node.inputs[1]]
    if wei.dtype != np.float32 or node.inputs[0] in constants:
        return False
    if node.row is kinds.GEMM:
        return not node.attributes.get("transA", 0)
    return node.row is kinds.CONV or (node.row is kinds.MATMUL and wei.ndim == 2)


def _rows(node: GraphNode, src: Array, wei: Array) -> Array:
    """Return what each group's weights are multiplied with, (groups, places, K)."""
    if node.row is not kinds.CONV:
        return src.reshape(1, -1, src.shape[-1])
    told = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
    defaults: dict[str, Any] = {"auto_pad": "NOTSET", "group": 1}
    attributes = (node.attributes.get(name, defaults.get(name)) for name in told)
    how = convolution(("src", "wei"), src.shape, wei.shape, *attributes)
    sides = ((0, 0), (0, 0), *zip(how.lo, how.hi, strict=True))
    spatial = len(how.dst)
    axes = tuple(range(2, 2 + spatial))
    reach = [(k - 1) * d + 1 for k, d in zip(wei.shape[2:], how.dilation, strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(src, sides), reach, axes)
    few = ceil((len(src) * prod(how.dst) / _PLACES) ** (1 / spatial))
    places = tuple(slice(None, None, step * few) for step in how.stride)
    taps = tuple(slice(None, None, step) for step in how.dilation)
    every = (slice(None), slice(None))
    taken = windows[every + places + taps]
    by_group = taken.reshape(len(src), how.groups, -1, *taken.shape[2:])
    last = tuple(range(3, 3 + spatial))
    kernel = tuple(range(3 + spatial, 3 + 2 * spatial))
    moved = by_group.transpose(1, 0, *last, 2, *kernel)
    return np.ascontiguousarray(moved).reshape(how.groups, -1, prod(wei.shape[1:]))
