"""Right calls of networks: names, callables, arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pyonednn_q as pq
from pyonednn_q.network import (
    CachedAttention,
    CacheShape,
    CodeMatMul,
    Compare,
    Concat,
    Convert,
    Dequantize,
    Elementwise,
    FloatArithmetic,
    FloatMatMul,
    Interpolation,
    IsNaN,
    KeyValueCache,
    LayerNorm,
    Lookup,
    Network,
    Node,
    NumberCast,
    Pick,
    Pool,
    PythonCall,
    Quantize,
    Recurrence,
    Reduction,
    Repeat,
    Reshape,
    Slice,
    Softmax,
    TableRows,
    Transpose,
    Where,
    sequential,
)
from pyonednn_q.primitive import TensorSpec
from support.hostile.right_values import FLOATS, SRC, U8, Calls

_SPEC = TensorSpec.channels_last(SRC.shape, "u8")
_WEI = np.ones((4, *FLOATS.shape[1:]), np.float32)
_ONES = np.ones(4, np.float32)
_CACHE: dict[str, Any] = {
    "layers": 1,
    "batch": 1,
    "groups": 2,
    "depth": 4,
    "width": 4,
    "capacity": 16,
}
_NODES = [
    Node("pool", Pool("max", 2, stride=2), "x"),
    Node("pair", Concat(1), ("pool", "pool")),
    Node("flat", Reshape((1, -1)), "pair"),
]


def _called(network: Network) -> Callable[[object], object]:
    def call(x: Any) -> object:
        return network(x)

    return call


def _float_network() -> Network:
    last = pq.InnerProduct(np.ones((4, 4), np.float32))
    return sequential(pq.InnerProduct(_WEI), pq.Eltwise("relu"), last)


def _sequence(first: Any, then: Any) -> Network:
    return sequential(first, then)


def _graph_parts() -> dict[str, Any]:
    info = pq.graph.Value("float32", (2,))
    nodes = (pq.graph.GraphNode("n", "Relu", ("x",), ("y",)),)
    ends: dict[str, Any] = {"inputs": {"x": info}, "outputs": {"y": info}}
    constants = {"w": np.zeros(2, np.float32)}
    more = {"opsets": {"": 20}, "tensors": {}, "options": {"exact_rounding": True}}
    return {"nodes": nodes, "constants": constants, **ends, **more}


def network_calls() -> Calls:
    network = Network(["x"], _NODES, ["flat"])
    pool = {"alg": "max", "kernel": 2, "stride": 2, "padding": 0, "dilation": 1}
    return {
        "Pool": (Pool, pool),
        "Reshape": (Reshape, {"dims": (1, -1)}),
        "Concat": (Concat, {"axis": 1}),
        "Lookup": (Lookup, {"table": np.arange(256, dtype=np.uint8)}),
        "Transpose": (Transpose, {"perm": (0, 2, 3, 1)}),
        "Slice": (Slice, {"axis": 1, "start": 0, "length": 2, "step": 1}),
        "Repeat": (Repeat, {"times": (1, 1, 2, 2)}),
        "CodeMatMul": (CodeMatMul, {"src_q": U8, "wei_q": U8, "dst_q": U8}),
        "Softmax": (Softmax, {"axis": -1}),
        "LayerNorm": (LayerNorm, {"gain": _ONES, "shift": _ONES, "epsilon": 1e-5}),
        "CacheShape": (CacheShape, {**_CACHE, "dtype": "s8"}),
        "KeyValueCache": (KeyValueCache, {"shape": CacheShape(**_CACHE)}),
        "KeyValueCache.append": (KeyValueCache(CacheShape(**_CACHE)).append, {"tokens": 0}),
        "KeyValueCache.truncate": (KeyValueCache(CacheShape(**_CACHE)).truncate, {"length": 0}),
        "CachedAttention": (
            CachedAttention,
            {"cache": CacheShape(**_CACHE), "layer": 0, "heads": 4, "scale": 0.5},
        ),
        "Elementwise": (Elementwise, {"step": pq.Eltwise("tanh")}),
        "FloatArithmetic": (FloatArithmetic, {"alg": "sub", "constant": _ONES, "is_first": True}),
        "FloatMatMul": (FloatMatMul, {}),
        "IsNaN": (IsNaN, {}),
        "NumberCast": (NumberCast, {"src": "float32", "dst": "int64"}),
        "Compare": (
            Compare,
            {"alg": "less", "dtype": "float32", "constant": _ONES, "is_first": True},
        ),
        "Interpolation": (
            Interpolation,
            {
                "axis": 1,
                "index": np.zeros((2, 1), np.int64),
                "weights": np.ones((2, 1), np.float32),
            },
        ),
        "Reduction": (Reduction, {"alg": "mean", "axes": (1, -1)}),
        "Pick": (Pick, {"places": np.arange(3), "fill": b"", "in_bytes": False}),
        "TableRows": (TableRows, {"table": _WEI.reshape(4, -1)}),
        "Where": (Where, {"first": 1.0, "second": 0.0}),
        "Recurrence": (
            Recurrence,
            {"alg": "gru", "wei": np.zeros((1, 6, 2), np.float32), "directions": ("forward",)},
        ),
        "Convert": (Convert, {"dtype": "bf16"}),
        "Quantize": (Quantize, {"params": U8}),
        "Dequantize": (Dequantize, {"params": U8}),
        "PythonCall": (PythonCall, {"function": lambda x: x, "dst": _SPEC}),
        "Node": (Node, {"dst": "pool", "runs": Pool("max", 2), "src": ("x",)}),
        "Network": (Network, {"inputs": ["x"], "nodes": _NODES, "outputs": ["flat"]}),
        "calibrate": (
            pq.calibrate,
            {
                "model": _float_network(),
                "batches": [FLOATS],
                "estimators": pq.quantize.estimator,
                "floats": {"innerproduct1": "bf16"},
                "wei_bits": 7,
            },
        ),
        "Value": (
            pq.graph.Value,
            {"dtype": "uint8", "dims": None, "qparams": U8, "lengths": ("n", 2)},
        ),
        "GraphNode": (
            pq.graph.GraphNode,
            {"name": "n", "operator": "Relu", "inputs": ("x",), "outputs": ("y",), "domain": ""},
        ),
        "Graph": (pq.graph.Graph, _graph_parts()),
        "Graph.from_json": (
            pq.graph.Graph.from_json,
            {"text": pq.graph.Graph(**_graph_parts()).to_json()},
        ),
        "graph_of": (pq.onnx.graph_of, {"network": _float_network(), "dims": {"x": FLOATS.shape}}),
        "sequential": (_sequence, {"first": pq.InnerProduct(_WEI), "then": pq.Eltwise("relu")}),
        "Network.compile": (network.compile, {"specs": {"x": _SPEC}}),
        "Network.call": (_called(network), {"x": SRC}),
    }
