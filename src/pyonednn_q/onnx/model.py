"""Model: a fused graph that runs: compiled, and node by node from where that cannot be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from pyonednn_q.argument import instance, integers
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import DTypeError, ShapeError, UnsupportedError
from pyonednn_q.graph.graph import Graph
from pyonednn_q.network import CodeMatMul
from pyonednn_q.onnx.choices import Bindings, Key
from pyonednn_q.onnx.fused_network import (
    as_network,
    call_of,
    known_part,
    with_kernels,
    with_operations,
)
from pyonednn_q.onnx.fused_node import FusedNode, fused_nodes, is_fused, layer_bytes, report
from pyonednn_q.onnx.fusion import fuse
from pyonednn_q.onnx.open_dims import check_bound, refusal_of_lengths
from pyonednn_q.onnx.passes import passed
from pyonednn_q.onnx.saturating_layers import warn_of_products
from pyonednn_q.ops.arrays import as_array, by_name
from pyonednn_q.ops.shapes import Shapes
from pyonednn_q.report.told import Told
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from pyonednn_q.network import Compiled, Network
    from pyonednn_q.onnx.definitions import Run
    from pyonednn_q.report.table import Table

PASSES = (with_kernels, with_operations)

Values = dict[str, Array]
Call: TypeAlias = "tuple[FusedNode, Run]"
Parts: TypeAlias = "tuple[Compiled | None, tuple[Call, ...]]"


class Model(Told):
    """A graph that is ready to run.

    Parameters
    ----------
    graph : Graph
        Result of `fuse`; any other graph is fused first, with the options stored in it. A layer
        that no kernel takes here is replaced by its original nodes, with the reason. Each call
        sets open lengths of inputs; programs for them are cached, within the limits of
        `ops.limit_shapes`.

    Attributes
    ----------
    graph : Graph
        Graph that runs, after all passes; with open lengths, the model's own graph (see `bound`).

    Raises
    ------
    UnsupportedError
        Nodes that neither this package nor `onnx.reference` knows.
    """

    def __init__(self, graph: Graph) -> None:
        instance("graph", graph, Graph)
        if not graph.symbols and not is_fused(graph):
            graph = fuse(graph, **graph.options)
        self._bindings: Bindings | None = None
        if graph.symbols or not is_fused(graph):
            self.graph, self._bindings = graph, Bindings(graph)
        else:
            self.graph = passed(graph, PASSES)
            steps = [step for node in self.nodes for step in node.steps]
            warn_of_products(sum(isinstance(step.runs, CodeMatMul) for step in steps))
        self._compiled: Compiled | None = None  # what ran last
        self._is_refused = any(
            info.dims is None or 0 in info.dims for info in self.graph.inputs.values()
        )
        self._bound: Shapes[Key, Model] = Shapes()

    @property
    def nodes(self) -> tuple[FusedNode, ...]:
        """Nodes that run, each after the nodes whose outputs it reads.

        Raises
        ------
        ArgumentError
            Lengths of inputs are open, and no call has set them.
        """
        return fused_nodes(self.bound().graph)

    @cached_property
    def calls(self) -> tuple[Run, ...]:
        """Function that runs each node alone: from values by name, constants too, to its outputs.

        With the bits that `network` gives.
        """
        return tuple(call_of(node, self.graph) for node in fused_nodes(self.graph))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.graph,)

    def __repr__(self) -> str:
        return f"<Model {repr(self.graph)[1:-1]}>"

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
            Dims of the open inputs. None: dims of the last call.

        Raises
        ------
        ArgumentError, ShapeError
            Lengths are open, or do not fit; names the input.
        """
        if self._bindings is None:
            return self
        if dims is None and self.graph.symbols:
            if (last := self._bound.last) is None:
                check_bound(self.graph)
                raise AssertionError
            return last
        known = {
            name: integers(f"dims[{shown(name)}]", each) for name, each in (dims or {}).items()
        }
        return self._of(*self._bindings.at(known))

    def _of(self, key: Key, graph: Callable[[], Graph]) -> Model:
        if (model := self._bound.get(key)) is None:
            fused = fuse(graph(), **self.graph.options)
            model = self._bound.add(key, Model(fused), layer_bytes(fused))
        return model

    def run(self, inputs: Mapping[str, Any]) -> Values:
        """Return the outputs of the model by name.

        This is one call of the compiled `network`, which the first run makes. If values decide
        dims, as in a Loop, only the nodes before are compiled, and the rest runs node by node; so
        does the whole model if a dim is 0. The bits are the same.

        Parameters
        ----------
        inputs : mapping of str to array_like
            Arrays with the types and dims of the model's inputs; open lengths may have any value.

        Raises
        ------
        ArgumentError, DTypeError, ShapeError
            Naming the input.
        """
        arrays = self._checked(inputs)
        if self._bindings is not None:
            key, known = self._bindings.of(arrays)
            try:
                return self._of(key, known).run(arrays)
            except (ShapeError, UnsupportedError) as error:
                dims = {name: arrays[name].shape for name in self.graph.symbols or arrays}
                raise refusal_of_lengths(dims, error) from error
        results = self._compiled_results(arrays)
        if results is None or self._left:
            left = self._one_by_one(self.nodes) if results is None else self._left
            results = {**self.graph.constants, **arrays, **(results or {})}
            self._run(left, results)
        return {
            name: results[name] if name in results else self.graph.constants[name]
            for name in self.graph.outputs
        }

    def _run(self, left: tuple[Call, ...], values: Values) -> None:
        """Run nodes one by one; let go of what none of them reads any more."""
        reads = Counter([*(name for node, _ in left for name in node.reads), *self.graph.outputs])
        for node, call in left:
            outputs = call(values)
            values.update((name, each) for name, each in zip(node.outputs, outputs, strict=True))
            reads.subtract(node.reads)
            for name in node.reads:  # memory for those that come
                if reads[name] <= 0 and name not in self.graph.constants:
                    values.pop(name, None)

    def network(self) -> Network:
        """Return the model as a network, which runs in one call.

        With open lengths, it is the network for the lengths of the last call; `bound` sets others.

        Raises
        ------
        ArgumentError
            Lengths of inputs are open, and no call has set them.
        UnsupportedError
            Values decide the dims of a tensor, as in a Loop; names the node. `run` takes such
            models.
        """
        if self._bindings is not None:
            return self.bound().network()
        return as_network(self.graph) if self._left else self._network

    def parts(self, inputs: Mapping[str, Array]) -> Parts:
        """Return the parts of a call on these arrays: a compiled program, then single nodes.

        Parameters
        ----------
        inputs : mapping of str to ndarray
            All inputs, as for `run`.

        Returns
        -------
        Compiled or None
            Program; None if nothing is compiled, for example if a dim is 0.
        tuple of (FusedNode, callable)
            Nodes after the program, each with its call; empty if the program is the whole model.

        Raises
        ------
        ArgumentError
            Lengths of inputs are open, and no call has set them.
        """
        if self._bindings is not None:
            return self.bound().parts(inputs)
        if not self._is_network(inputs):
            return None, self._one_by_one(self.nodes)
        return self._network.program_for(inputs), self._left

    def _compiled_results(self, arrays: Values) -> Values | None:
        """Return the results of the compiled part; None if nothing is compiled."""
        program = self._compiled
        results = None if program is None else program.as_they_lie(*arrays.values())
        if results is not None:
            return results
        if program is None and not self._is_network(arrays):
            return None
        # Inputs may have other layouts: each layout has its program, which copies no input.
        self._compiled = self._network.program_for(arrays)
        return self._compiled(*arrays.values())

    @cached_property
    def _known(self) -> tuple[Graph, tuple[FusedNode, ...]]:
        return known_part(self.graph)

    @cached_property
    def _network(self) -> Network:
        return as_network(self._known[0])

    @cached_property
    def _left(self) -> tuple[Call, ...]:
        """Nodes that run after the compiled part."""
        return self._one_by_one(self._known[1])

    def _one_by_one(self, nodes: tuple[FusedNode, ...]) -> tuple[Call, ...]:
        calls = dict(zip(self.nodes, self.calls, strict=True)) if nodes else {}
        return tuple((node, calls[node]) for node in nodes)

    def _is_network(self, arrays: Mapping[str, Array]) -> bool:
        """Return whether it compiles for such arrays, up to nodes whose values decide dims."""
        if self._is_refused or not self._known[0].nodes:
            return False
        try:
            self._network.program_for(arrays)
        except (ShapeError, UnsupportedError):
            self._is_refused = True
        return not self._is_refused

    def report(self) -> str:
        """Return a table of nodes: original nodes, how each runs, why it is not INT8."""
        return report(self.bound().graph).text()

    def _parts(self) -> Iterable[str | Table]:
        yield repr(self.graph)[1:-1]
        yield report(self.bound().graph)

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
