"""Model: a fused graph that runs: compiled as a whole, or node by node where that cannot be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import instance, integers
from pyonednn_q.errors import (
    DTypeError,
    SaturationError,
    ShapeError,
    UnsupportedError,
)
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Dims, Graph, GraphNode
from pyonednn_q.network import CodeMatMul, PythonCall
from pyonednn_q.onnx.choices import Bindings, Key
from pyonednn_q.onnx.fused_network import as_network, lowered, spec_of
from pyonednn_q.onnx.fused_node import CodeOperation, FusedGraph, FusedNode
from pyonednn_q.onnx.fusion import fuse
from pyonednn_q.onnx.linear import dequantize_linear, quantize_linear
from pyonednn_q.onnx.matmuls import qlinear_matmul
from pyonednn_q.onnx.open_dims import check_bound
from pyonednn_q.onnx.pools import onnx_numbers, pool
from pyonednn_q.onnx.reference_call import reference_call
from pyonednn_q.onnx.saturating_layers import warn_of_products
from pyonednn_q.ops.arrays import as_array, by_name
from pyonednn_q.ops.operator import Operator
from pyonednn_q.ops.shapes import Shapes
from pyonednn_q.shown import shortened, shown

if TYPE_CHECKING:
    from pyonednn_q.network import Compiled, Network, Node
    from pyonednn_q.onnx.fused_network import Run

Array = np.ndarray[Any, Any]
Values = dict[str, Array]


class Model:
    """A fused graph that is ready to run.

    Parameters
    ----------
    graph : FusedGraph
        As `fuse` returns it. A layer that no kernel takes here is replaced by the nodes that it
        stands for, with the reason. Where lengths of inputs are open, every call binds them; what
        was made for them is kept as what operators keep for their shapes is.

    Attributes
    ----------
    graph : FusedGraph
        What runs; without nodes where lengths are open: see `bound`.
    calls : tuple of callable
        One for each node of it: from values by name, among them constants, to the outputs, whose
        bits are those that `network` gives.

    Raises
    ------
    UnsupportedError
        Nodes that neither we nor `onnx.reference` know.
    """

    def __init__(self, graph: FusedGraph) -> None:
        instance("graph", graph, FusedGraph)
        nodes = tuple(each for node in graph.nodes for each in _prepared(node, graph))
        self.graph = replace(graph, nodes=nodes)
        taken = set(graph.tensors).union(graph.inputs, *(node.outputs for node in nodes))
        became = [_lowered(node, self.graph, taken) for node in nodes]
        self._steps = tuple(steps for steps, _, _ in became)
        self.calls = tuple(call for _, call, _ in became)
        nodes = tuple(
            replace(node, why=node.why or why, is_compiled=_is_compiled(steps))
            for node, (steps, _, why) in zip(nodes, became, strict=True)
        )
        self.graph = replace(graph, nodes=nodes)
        lowered_to = [step for steps in self._steps if isinstance(steps, list) for step in steps]
        warn_of_products(sum(isinstance(step.runs, CodeMatMul) for step in lowered_to))
        self._compiled: Compiled | None = None
        self._is_tried = False
        self._bound: Shapes[Key, Model] = Shapes()
        source = self.graph.source
        self._bindings = None if source is None else Bindings(source)
        self._reads = Counter(name for node in nodes for name in node.reads)
        self._reads.update(list(graph.outputs))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.graph,)

    def __call__(self, *inputs: Any) -> Array | Values:  # noqa: ANN401 - see as_array
        """Run it, as operators are called.

        Parameters
        ----------
        *inputs : array_like, or one mapping of str to array_like
            All inputs in the model's order; or by name. NumPy arrays, and tensors that a framework
            holds on the CPU (DLPack), of the types and dims of `run`.

        Returns
        -------
        ndarray or dict of str to ndarray
            The output where the model has one; else all outputs by name.

        Raises
        ------
        ArgumentError, DTypeError, ShapeError
            Naming the input.
        """
        results = self.run(by_name("inputs", tuple(self.graph.inputs), inputs))
        return next(iter(results.values())) if len(results) == 1 else results

    def bound(self, dims: Mapping[str, Any] | None = None) -> Model:
        """Return the model for certain lengths of its inputs.

        Parameters
        ----------
        dims : mapping of str to tuple of int, optional
            Dims of its open inputs. None: those of the last call.

        Raises
        ------
        ArgumentError, ShapeError
            Naming the input: lengths that are open, or do not fit.
        """
        source = self.graph.source
        if source is None or self._bindings is None:
            return self
        if dims is None and source.symbols:
            if (last := self._bound.last) is None:
                check_bound(source)
                raise AssertionError
            return last
        known = {
            name: integers(f"dims[{shown(name)}]", each) for name, each in (dims or {}).items()
        }
        return self._of(*self._bindings.at(known))

    def _of(self, key: Key, graph: Callable[[], Graph]) -> Model:
        if (model := self._bound.get(key)) is None:
            fused = fuse(graph(), **self.graph.options)
            model = self._bound.add(key, Model(fused), fused.nbytes)
        return model

    def run(self, inputs: Mapping[str, Any]) -> Values:
        """Return the outputs of the model by name.

        One call of the compiled `network`, made on the first run. A model that is none (dims of 0,
        or that only the values say) runs node by node, with the same bits.

        Parameters
        ----------
        inputs : mapping of str to array_like
            Arrays with the types and dims that the model has for its inputs; any dims, where it
            leaves them open.

        Raises
        ------
        ArgumentError, DTypeError, ShapeError
            Naming the input.
        """
        arrays = self._checked(inputs)
        if (source := self.graph.source) is not None and self._bindings is not None:
            model = self._of(*self._bindings.of(arrays))
            try:
                return model.run(arrays)
            except UnsupportedError as error:  # of a node that no user knows
                name = next(iter(source.symbols or arrays))
                why = f"lengths that all nodes take; here {shortened(str(error), 300)}"
                argument = f"inputs[{shown(name)}]"
                raise ShapeError(argument, str(arrays[name].shape), why) from error
        if (program := self._program()) is not None:
            results = program(*arrays.values())
            return {
                name: results[name] if name in results else self.graph.constants[name]
                for name in self.graph.outputs
            }
        values: Values = {**self.graph.constants, **arrays}
        left = Counter(self._reads)
        for node, call in zip(self.graph.nodes, self.calls, strict=True):
            outputs = call(values)
            values.update((name, each) for name, each in zip(node.outputs, outputs, strict=True))
            left.subtract(node.reads)
            for name in node.reads:  # memory for those that come
                if left[name] <= 0 and name not in self.graph.constants:
                    values.pop(name, None)
        return {name: values[name] for name in self.graph.outputs}

    def network(self) -> Network:
        """Return the same as a network: compiled for its dims, one call runs all of it.

        For a model with open lengths it is the network of the last call's lengths, or of those that
        `bound` is given.

        Raises
        ------
        ArgumentError
            Lengths of inputs that are open, and no call that bound them.
        UnsupportedError
            A tensor between nodes whose dims are not known.
        """
        if self.graph.source is not None:
            return self.bound().network()
        steps: list[list[Node]] = []
        for each in self._steps:
            if isinstance(each, UnsupportedError):
                raise each
            steps.append(each)
        return as_network(self.graph, steps)

    def _program(self) -> Compiled | None:
        """Return all of it compiled; None where it is no network: node by node then."""
        if not self._is_tried:
            self._compiled, self._is_tried = self._tried(), True
        return self._compiled

    def _tried(self) -> Compiled | None:
        if any(info.dims is None or 0 in info.dims for info in self.graph.inputs.values()):
            return None
        try:
            specs = {name: spec_of(name, self.graph) for name in self.graph.inputs}
            return self.network().compile(specs)
        except (ShapeError, UnsupportedError):
            return None

    def report(self) -> str:
        """Return a table, a line for each node: what it stands for, how it runs, why not INT8."""
        return self.bound().graph.report()

    def _checked(self, inputs: Mapping[str, Any]) -> Values:
        wanted = self.graph.inputs
        known = by_name("inputs", tuple(wanted), (inputs,))
        arrays: Values = {}
        for name, info in wanted.items():
            argument = f"inputs[{shown(name)}]"
            array = as_array(argument, known[name])
            if array.dtype.name != info.dtype:
                raise DTypeError(argument, str(array.dtype), info.dtype)
            if info.dims is not None and array.shape != info.dims:
                raise ShapeError(argument, str(array.shape), str(info.dims))
            arrays[name] = array
        return arrays


def _prepared(node: FusedNode, graph: FusedGraph) -> tuple[FusedNode, ...]:
    """Return a node, or what it stands for if no kernel takes it."""
    if not isinstance(node.operator, Operator):
        return (node,)
    try:
        node.operator.prepare(_dims(node.inputs[0], graph))
    except SaturationError:
        raise  # as `fuse` was asked to
    except (ShapeError, UnsupportedError) as error:
        why = f"{type(error).__name__}: {shortened(str(error), 300)}"
        parts = [part for part in node.parts if part.outputs[0] not in graph.constants]
        return tuple(
            FusedNode(
                part.name, part, part.inputs, MappingProxyType({}), part.outputs, (part,), why
            )
            for part in parts
        )
    return (node,)


def _dims(name: str, graph: FusedGraph) -> Dims:
    info = graph.tensors.get(name)
    return () if info is None or info.dims is None else info.dims


def _lowered(
    node: FusedNode, graph: FusedGraph, taken: set[str]
) -> tuple[list[Node] | UnsupportedError, Run, str]:
    """Return what a node is in a network, or why it is nothing there; what runs it; why Python."""

    @cache  # when it is needed first: few nodes run by their definition
    def call() -> Run:
        return _call(node, graph)

    def by_definition(values: Values) -> tuple[Array, ...]:
        return call()(values)

    try:
        steps, run, why = lowered(node, by_definition, graph, taken)
    except UnsupportedError as error:
        return error, call(), ""
    return steps, call() if run is by_definition else run, why


def _is_compiled(steps: list[Node] | UnsupportedError) -> bool:
    return isinstance(steps, list) and not any(isinstance(s.runs, PythonCall) for s in steps)


def _call(node: FusedNode, graph: FusedGraph) -> Callable[[Values], tuple[Array, ...]]:
    what = node.operator
    if isinstance(what, GraphNode):
        return reference_call(what, graph.opsets, graph.tensors)
    if isinstance(what, CodeOperation):
        return _operation(node, what, graph.opsets)

    narrow = dtypes.numpy_dtype("bf16") if what.weights.dtype == "bf16" else None

    def layer(values: Values) -> tuple[Array, ...]:
        operands = {name: values[tensor] for name, tensor in node.operands.items()}
        src = values[node.inputs[0]]
        return (what(src if narrow is None else src.astype(narrow), **operands),)

    return layer


def _operation(
    node: FusedNode, what: CodeOperation, opsets: Mapping[str, int]
) -> Callable[[Values], tuple[Array, ...]]:
    if what.row is kinds.MATMUL and len(what.srcs_q) == 2 and not what.post.steps:
        return lambda values: (_product(what, *(values[name] for name in node.inputs)),)
    if what.row.is_quantizer:
        run = quantize_linear if what.row is kinds.QUANTIZE else dequantize_linear
        q = what.srcs_q[0] if what.dst_q is None else what.dst_q
        return lambda values: (run(values[node.inputs[0]], *onnx_numbers(q)),)
    if (pooled := pool(what)) is not None:
        return lambda values: (pooled(values[node.inputs[0]]),)
    if what.moves_codes:
        (moved,) = [part for part in node.parts if part.operator == what.operator]
        return _moving(node, what, moved, opsets)
    calls = [(part, reference_call(part, opsets)) for part in node.parts]

    def by_definition(values: Values) -> tuple[Array, ...]:
        own = dict(values)
        for part, call in calls:
            own.update(zip(part.outputs, call(own), strict=True))
        return (own[node.output],)

    return by_definition


def _moving(
    node: FusedNode, what: CodeOperation, part: GraphNode, opsets: Mapping[str, int]
) -> Callable[[Values], tuple[Array, ...]]:
    """Return a call that gives a node of real values the codes instead."""
    call = reference_call(part, opsets)
    places = [at for at, name in enumerate(part.inputs) if name and at not in what.constants]

    def moving(values: Values) -> tuple[Array, ...]:
        own = {part.inputs[at]: each for at, each in what.constants.items()}
        own |= {part.inputs[at]: values[name] for at, name in zip(places, node.inputs, strict=True)}
        return call(own)

    return moving


def _product(what: CodeOperation, a: Array, b: Array) -> Array:
    a_q, b_q, y_q = (*what.srcs_q, what.dst_q)
    return qlinear_matmul(a, *onnx_numbers(a_q), b, *onnx_numbers(b_q), *onnx_numbers(y_q))
