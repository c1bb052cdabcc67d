"""Network: operators and other operations that feed each other, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from pyonednn_q.argument import instance, items, named
from pyonednn_q.compose.stages import RESIDUAL, SRC
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, ShapeError, UnsupportedError
from pyonednn_q.graph.graph import Value
from pyonednn_q.native.arrays import memory_order
from pyonednn_q.network.cached_attention import CachedAttention
from pyonednn_q.network.carrier import spec_of_array
from pyonednn_q.network.compiled import Compiled
from pyonednn_q.network.conditions import Compare, NumberCast
from pyonednn_q.network.floats import (
    Elementwise,
    FloatArithmetic,
    FloatMatMul,
    Interpolation,
    Reduction,
)
from pyonednn_q.network.layers import lower_operator
from pyonednn_q.network.lowering import Lowering
from pyonednn_q.network.moves import Lookup, Repeat, Slice, Transpose
from pyonednn_q.network.operations import (
    Concat,
    Convert,
    Dequantize,
    PythonCall,
    Quantize,
    Reshape,
)
from pyonednn_q.network.recurrence import Recurrence
from pyonednn_q.network.rows import CodeMatMul, LayerNorm, Softmax
from pyonednn_q.network.selections import IsNaN, Pick, TableRows, Where
from pyonednn_q.network.window_pools import Pool
from pyonednn_q.ops.arrays import as_array, by_name
from pyonednn_q.ops.operator import Operator
from pyonednn_q.ops.shapes import Shapes
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.shown import shown

_NONE: Mapping[str, Value] = MappingProxyType({})
OPERATIONS = (
    Pool, Reshape, Concat, Quantize, Dequantize, Convert, Lookup, Transpose, Slice, Repeat,
    CodeMatMul, Softmax, LayerNorm, FloatArithmetic, Elementwise, FloatMatMul, Pick, TableRows,
    Where, IsNaN, NumberCast, Compare, Reduction, Interpolation, Recurrence, CachedAttention,
    PythonCall,
)  # fmt: skip
_OF_SEVERAL = (
    Concat, Lookup, CodeMatMul, FloatArithmetic, FloatMatMul, Where, Compare, Recurrence,
    CachedAttention, PythonCall,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Node:
    """One operation of a network.

    Parameters
    ----------
    dst : str
        Name of its result; no other tensor has it.
    runs : operator, or an operation of this room
        Operator or operation of this room: a Conv, a Pool, a Lookup, a PythonCall.
    src : str or tuple of str
        Names of the tensors that it reads, in order; kept as a tuple.
    residual : str, optional
        Name of the tensor that the Sum of an operator's chain adds.
    operands : mapping of str to str
        Names of tensors, by the names of the leaves in an operator's chain.

    Raises
    ------
    ArgumentError
        Naming the argument, what came and what would do.
    """

    dst: str
    runs: Any
    src: str | tuple[str, ...]
    residual: str | None = None
    operands: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        instance("dst", self.dst, str)
        instance("runs", self.runs, Operator, *OPERATIONS)
        src: tuple[str, ...] = (
            (self.src,) if isinstance(self.src, str) else items("src", self.src, str)
        )
        object.__setattr__(self, "src", src)
        object.__setattr__(self, "operands", named("operands", self.operands, str))
        if self.residual is not None:
            instance("residual", self.residual, str)
        is_operator = isinstance(self.runs, Operator)
        if not src or (len(src) > 1 and not isinstance(self.runs, _OF_SEVERAL)):
            raise ArgumentError("src", shown(self.src), "one tensor")
        if not is_operator and (self.residual is not None or self.operands):
            raise ArgumentError("residual", "a tensor", "none: only operators have chains")

    @property
    def reads(self) -> tuple[str, ...]:
        """All tensors that it reads."""
        more = () if self.residual is None else (self.residual,)
        return (*self.srcs, *more, *self.operands.values())

    @property
    def srcs(self) -> tuple[str, ...]:
        """Its sources."""
        return (self.src,) if isinstance(self.src, str) else self.src


class Network:
    """Nodes in an order in which they can run. Many threads may call it at once.

    Parameters
    ----------
    inputs : sequence of str
        Names of the tensors that a call passes.
    nodes : sequence of Node
        Operations, each after those whose results it reads.
    outputs : sequence of str
        Names of the tensors that a call returns.
    carried : mapping of str to Value, optional
        Inputs and outputs in data types that oneDNN does not have; only Python functions read and
        write them: see `network.carrier`.
    dims : mapping of str to tuple of int, optional
        Dims of inputs that the nodes need; errors about other dims name the input.

    Raises
    ------
    ArgumentError
        A tensor is read before a node makes it, or two nodes make it.

    Examples
    --------
    >>> import numpy as np
    >>> import pyonednn_q as pq
    >>> from pyonednn_q.network import Network, Node, Pool
    >>> q = pq.QParams(0.5, 0, "u8")
    >>> wei = np.ones((2, 1, 1, 1), np.int8)
    >>> conv = pq.Conv(wei, src_q=q, wei_q=pq.QParams(1.0, 0, "s8"), dst_q=q)
    >>> nodes = [Node("y", conv, "x"), Node("z", Pool("max", 2, stride=2), "y")]
    >>> net = Network(["x"], nodes, ["z"])
    >>> x = np.arange(4, dtype=np.uint8).reshape(1, 1, 2, 2)
    >>> net(x)["z"].ravel().tolist()
    [3, 3]
    """

    def __init__(
        self,
        inputs: Any,  # noqa: ANN401 - a sequence
        nodes: Any,  # noqa: ANN401 - a sequence
        outputs: Any,  # noqa: ANN401 - a sequence
        carried: Mapping[str, Value] = _NONE,
        dims: Mapping[str, tuple[int, ...]] = MappingProxyType({}),
    ) -> None:
        self._carried = named("carried", carried, Value)
        self._dims = named("dims", dims, tuple)
        self.inputs: tuple[str, ...] = items("inputs", inputs, str)
        self.nodes: tuple[Node, ...] = items("nodes", nodes, Node)
        self.outputs: tuple[str, ...] = items("outputs", outputs, str)
        known = set(self.inputs)
        if len(known) != len(self.inputs):
            raise ArgumentError("inputs", shown(self.inputs), "names that differ")
        for node in self.nodes:
            for name in node.reads:
                if name not in known:
                    got = f"{shown(name)}, which {shown(node.dst)} reads"
                    raise ArgumentError("nodes", got, "an input, or the result of a node before")
            if node.dst in known:
                raise ArgumentError("dst", shown(node.dst), "a name that no other tensor has")
            known.add(node.dst)
        for name in self.outputs:
            if name not in known:
                raise ArgumentError("outputs", shown(name), "a tensor of the network")
        self._compiled: Shapes[tuple[TensorSpec, ...], Compiled] = Shapes()

    def compile(self, specs: Mapping[str, TensorSpec]) -> Compiled:
        """Return the program for inputs of certain dims, data types and layouts.

        Parameters
        ----------
        specs : mapping of str to TensorSpec
            Spec of every input, with strides. Operators read channels-last sources without a copy.

        Returns
        -------
        Compiled
            Program; it is cached, within the limits of `ops.limit_shapes`, and returned again for
            the same inputs.
        """
        key = self._key(specs)
        compiled = self._compiled.get(key)
        if compiled is None:
            lowering = self._lowered(key)
            compiled = Compiled(lowering, self.inputs, self.outputs, self._carried)
            compiled = self._compiled.add(key, compiled, compiled.nbytes)
        return compiled

    def check(self, specs: Mapping[str, TensorSpec]) -> None:
        """Raise the errors of `compile`, and keep no program.

        Parameters
        ----------
        specs : mapping of str to TensorSpec
            Spec of every input, as for `compile`.
        """
        self._lowered(self._key(specs))

    def _key(self, specs: Mapping[str, TensorSpec]) -> tuple[TensorSpec, ...]:
        by_input = named("specs", specs, TensorSpec)
        if set(by_input) != set(self.inputs):
            raise ArgumentError("specs", shown(sorted(by_input)), f"{', '.join(self.inputs)}")
        key = tuple(by_input[name] for name in self.inputs)
        for name, spec in zip(self.inputs, key, strict=True):
            if spec.strides is None or not spec.size:
                raise ShapeError(name, str(spec), "a definite layout, and elements")
        return key

    def _lowered(self, key: tuple[TensorSpec, ...]) -> Lowering:
        inputs = dict(zip(self.inputs, key, strict=True))
        lowering = Lowering(inputs, {node.dst for node in self.nodes})
        try:
            self._lower(lowering)
        except (ArgumentError, UnsupportedError):
            self._check_dims(inputs)
            raise
        return lowering

    def _lower(self, lowering: Lowering) -> None:
        for node in self._needed():
            lowering.node = node.dst
            if isinstance(node.runs, Operator):
                residual = {} if node.residual is None else {RESIDUAL: node.residual}
                reads = {SRC: node.srcs[0], **residual, **node.operands}
                lower_operator(lowering, node.runs, reads, node.dst)
            else:
                node.runs.lower(lowering, node.dst, node.srcs)

    def _check_dims(self, inputs: Mapping[str, TensorSpec]) -> None:
        """Refuse inputs of other dims than those that the nodes were made for, by their names."""
        for name, dims in self._dims.items():
            if inputs[name].dims != dims:
                raise ShapeError(name, str(inputs[name].dims), str(dims)) from None

    def _needed(self) -> list[Node]:
        """Return the nodes that outputs depend on."""
        read = set(self.outputs)
        needed = []
        for node in reversed(self.nodes):
            if node.dst in read:
                read.update(node.reads)
                needed.append(node)
        return needed[::-1]

    def __call__(self, *arrays: Any) -> dict[str, Array]:  # noqa: ANN401 - see as_array
        """Run it, as models are.

        Parameters
        ----------
        *arrays : array_like, or one mapping of str to array_like
            Inputs in the order of `inputs`, or by name: NumPy arrays, and tensors that a framework
            holds on the CPU (DLPack).

        Returns
        -------
        dict of str to ndarray
            Results by name.

        Raises
        ------
        ArgumentError, DTypeError, ShapeError
            Naming the input.
        """
        named_arrays = by_name("arrays", self.inputs, arrays)
        tensors = {name: as_array(name, each) for name, each in named_arrays.items()}
        return self.program_for(tensors)(*tensors.values())

    def program_for(self, arrays: Mapping[str, Array]) -> Compiled:
        """Return the program that reads these arrays in place, or copies of arrays with gaps.

        Parameters
        ----------
        arrays : mapping of str to ndarray
            Every input.
        """
        known = named("arrays", arrays, np.ndarray)
        specs = {name: spec_of_array(array, name) for name, array in known.items()}
        for name, array in known.items():
            if memory_order(array) is None:
                specs[name] = TensorSpec.dense(specs[name].dims, specs[name].dtype)
        return self.compile(specs)
