"""A network of float operators as one whose tensors stay codes between them.

A tensor becomes codes where an INT8 operator reads it, itself or through operations that move
codes. What an operator adds becomes codes if its result does. Tensors that are moved to each other
share one scale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.errors import ArgumentError, UnsupportedError
from pyonednn_q.expr.steps import Affine, Chain, Step, Sum
from pyonednn_q.graph.kinds import KINDS
from pyonednn_q.network.accuracy_loop import float_type
from pyonednn_q.network.graph import Network, Node
from pyonednn_q.network.operations import Concat, Convert, Dequantize, Pool, Quantize
from pyonednn_q.ops.operator import Operator
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.quantizers import Quantizers
from pyonednn_q.shown import shortened

Ends = Mapping[str, tuple[float, float]]

# A pool of codes, too: a mean of them has their scale.
_MOVERS = frozenset(row.ours for row in KINDS.values() if row.moves and row.ours)
_CARRIED = ("policy", "layout", "strict", "allow_reference", "self_check", "tune")


class QuantizedNetwork(NamedTuple):
    """A network, what its codes mean, and why layers are in floats.

    Attributes
    ----------
    network : Network
        Codes of a tensor have its name and ":codes" behind it; its real values keep the name.
    reals : mapping of str to str
        Real tensors by the names of their codes.
    qparams : mapping of str to QParams
        By the names of codes.
    whys : mapping of str to str
        By the names of layers.
    """

    network: Network
    reals: Mapping[str, str]
    qparams: Mapping[str, QParams]
    whys: Mapping[str, str]


def quantized_network(
    network: Network, ranges: Ends, floats: Mapping[str, str], quantizers: Quantizers
) -> QuantizedNetwork:
    """Return a network of INT8 operators, of inputs and outputs as before.

    Parameters
    ----------
    network : Network
        Of float32 operators.
    ranges : mapping of str to (lo, hi)
        Of every float32 tensor.
    floats : mapping of str to {"f32", "bf16"}
        Operators that stay in floats, by the names of their results. Those that no INT8 operator
        can stand for stay float32, with the reason.
    quantizers : Quantizers
        What tensors and weights become.
    """
    types = {name: float_type(dtype) for name, dtype in floats.items()}
    while True:
        build = _Build(network, ranges, types, quantizers)
        try:
            return build.result()
        except (ArgumentError, UnsupportedError) as error:
            if build.layer in types:
                raise
            types[build.layer] = "f32", shortened(str(error), 300)


def is_layer(node: Node) -> bool:
    """Tell whether a node may become INT8: an operator of float32 weights and results."""
    what = node.runs
    if not isinstance(what, Operator):
        return False
    return what.settings.src_q is None and {what.weights.dtype, what.settings.dst} == {"f32"}


def code_tensors(network: Network) -> list[str]:
    """Return the tensors that become codes if all layers do, in order."""
    wanted = _wanted(network, {node.dst for node in network.nodes if is_layer(node)})
    names = [*network.inputs, *(node.dst for node in network.nodes)]
    return [name for name in names if name in wanted]


def _wanted(network: Network, narrow: set[str]) -> set[str]:
    wanted: set[str] = set()
    for node in reversed(network.nodes):
        if node.dst in narrow:
            wanted.update(node.srcs)
            if node.residual is not None and node.dst in wanted:
                wanted.add(node.residual)
        elif _moves_codes(node, wanted):
            wanted.update(node.srcs)
    return wanted


def _moves_codes(node: Node, codes: Iterable[str]) -> bool:
    has_tables = isinstance(node.runs, Concat) and bool(node.runs.tables)
    return type(node.runs).__name__ in _MOVERS and not has_tables and node.dst in codes


def readers_of(network: Network) -> dict[str, str]:
    """Return the first layer that reads each tensor, itself or what it is moved to."""
    readers: dict[str, str] = {}
    for node in reversed(network.nodes):
        if is_layer(node):
            readers[node.srcs[0]] = node.dst
        elif type(node.runs).__name__ in _MOVERS and node.dst in readers:
            for name in node.srcs:
                readers.setdefault(name, readers[node.dst])
    return readers


def with_chain(operator: Operator, post: Chain) -> Operator:
    """Return a float operator with another chain."""
    options = {"dst": operator.settings.dst, "post": post}
    return _remade(operator, type(operator), operator.weights.values, options)


def shared_ranges(
    names: Iterable[str], groups: Iterable[Iterable[str]], ranges: Ends
) -> dict[str, tuple[float, float]]:
    """Return the range of every tensor, one for those in a group; groups may overlap.

    Examples
    --------
    >>> ranges = {"a": (0.0, 1.0), "b": (-1.0, 0.5), "c": (0.0, 2.0)}
    >>> shared_ranges(ranges, [["a", "b"]], ranges)
    {'a': (-1.0, 1.0), 'b': (-1.0, 1.0), 'c': (0.0, 2.0)}
    """
    roots = {name: name for name in names}

    def root(name: str) -> str:
        while roots[name] != name:
            name = roots[name]
        return name

    for group in groups:
        members = [name for name in group if name in roots]
        for name in members[1:]:
            roots[root(name)] = root(members[0])
    ends: dict[str, tuple[float, float]] = {}
    for name in roots:
        lo, hi = ranges[name]
        known = ends.get(root(name), (lo, hi))
        ends[root(name)] = min(lo, known[0]), max(hi, known[1])
    return {name: ends[root(name)] for name in roots}


class _Build:
    """The nodes of the new network, while they are made."""

    def __init__(
        self,
        network: Network,
        ranges: Ends,
        floats: dict[str, tuple[str, str]],
        quantizers: Quantizers,
    ) -> None:
        self.layer = ""  # that is being made
        self._network, self._floats, self._quantizers = network, floats, quantizers
        self._narrow = {n.dst for n in network.nodes if is_layer(n) and n.dst not in floats}
        wanted = _wanted(network, self._narrow)
        groups: list[Iterable[str]] = [
            (n.dst, *n.srcs) for n in network.nodes if _moves_codes(n, wanted)
        ]
        names = [*network.inputs, *(node.dst for node in network.nodes)]
        groups += quantizers.linked({name: name for name in wanted})
        ends = shared_ranges((name for name in names if name in wanted), groups, ranges)
        self._params = {name: quantizers.activation(name, *each) for name, each in ends.items()}
        self._taken = set(names)
        self._codes = {name: self._free(f"{name}:codes") for name in self._params}
        self._nodes: list[Node] = []

    def result(self) -> QuantizedNetwork:
        network = self._network
        for name in network.inputs:
            self._quantize(name)
        for node in network.nodes:
            self.layer = node.dst
            if node.dst in self._narrow:
                self._add_narrow(node)
            elif _moves_codes(node, self._params):
                srcs = tuple(self._codes[name] for name in node.srcs)
                runs, q = node.runs, self._params[node.dst]
                if isinstance(runs, Pool) and runs.counts_pads:
                    runs = replace(runs, src_q=q, dst_q=q)
                self._nodes.append(Node(self._codes[node.dst], runs, srcs))
                self._dequantize(node.dst)
            else:
                self._add_float(node)
                self._quantize(node.dst)
        reals = {codes: name for name, codes in self._codes.items()}
        params = {codes: self._params[name] for codes, name in reals.items()}
        whys = {name: why for name, (_, why) in self._floats.items()}
        quantized = Network(network.inputs, self._nodes, network.outputs)
        return QuantizedNetwork(quantized, reals, params, whys)

    def _add_narrow(self, node: Node) -> None:
        dst_q = self._params.get(node.dst)
        residual, steps = node.residual, node.runs.settings.post.steps
        if dst_q is not None and residual is not None:
            steps = _adding(steps, self._params[residual])
            residual = self._codes[residual]
        src = node.srcs[0]
        options: dict[str, Any] = {
            "src_q": self._params[src],
            "dst_q": dst_q,
            "post": Chain(*steps),
        }
        wei = node.runs.weights.values
        if node.dst in self._quantizers.layers:
            wei, options["wei_fq"] = self._quantizers.weights_fq(node.dst, wei, node.runs.axis)
        else:
            options["wei_levels"] = 2**self._quantizers.wei_bits - 1
        layer = _remade(node.runs, type(node.runs).from_float, wei, options)
        dst = node.dst if dst_q is None else self._codes[node.dst]
        self._nodes.append(Node(dst, layer, self._codes[src], residual, node.operands))
        if dst_q is not None:
            self._dequantize(node.dst)

    def _add_float(self, node: Node) -> None:
        dtype, _ = self._floats.get(node.dst, ("f32", ""))
        if dtype == "f32":
            self._nodes.append(node)
            return
        narrow = self._free(f"{node.srcs[0]}:{dtype}")
        wei = node.runs.weights.values.astype(dtypes.numpy_dtype(dtype))
        options = {"dst": "f32", "post": node.runs.settings.post}
        layer = _remade(node.runs, type(node.runs), wei, options)
        self._nodes += [
            Node(narrow, Convert(dtype), node.srcs),
            Node(node.dst, layer, narrow, node.residual, node.operands),
        ]

    def _quantize(self, name: str) -> None:
        if name in self._params:
            self._nodes.append(Node(self._codes[name], Quantize(self._params[name]), name))

    def _dequantize(self, name: str) -> None:
        # Nodes that nothing reads do not run.
        self._nodes.append(Node(name, Dequantize(self._params[name]), self._codes[name]))

    def _free(self, name: str) -> str:
        base, count = name, 1
        while name in self._taken:
            count += 1
            name = f"{base}{count}"
        self._taken.add(name)
        return name


def _adding(steps: tuple[Step, ...], q: QParams) -> list[Step]:
    """Return steps whose Sum reads codes: s·(r − z) of r = scale·(code − zero_point)."""
    reading: list[Step] = []
    for step in steps:
        if isinstance(step, Sum):
            reading.append(Sum(step.scale * float(q.scale), int(q.zero_point)))
            if step.zero_point:
                reading.append(Affine(1.0, -step.scale * step.zero_point))
        else:
            reading.append(step)
    return reading


def _remade(
    operator: Operator,
    make: Callable[..., Operator],
    wei: np.ndarray[Any, Any],
    options: Mapping[str, Any],
) -> Operator:
    """Return an operator of other weights, with the window and the options of one."""
    groups = {"groups": operator.groups} if operator.window else {}
    carried = {name: getattr(operator.settings, name) for name in _CARRIED}
    return make(wei, operator.bias, **operator.window, **groups, **{**carried, **options})
