"""Graph: a model as one value, named tensors and the nodes that make them, whoever wrote it."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.argument import instance, integers, items, named
from pyonednn_q.dtypes import Array, numpy_type
from pyonednn_q.errors import ArgumentError
from pyonednn_q.graph.change import Change
from pyonednn_q.graph.edges import check_no_circle
from pyonednn_q.graph.frozen import Restored, equal, read_only, reduced
from pyonednn_q.graph.kinds import kind_of
from pyonednn_q.qparams import QParams
from pyonednn_q.reading import decoded
from pyonednn_q.report.graph_drawing import Box, figure
from pyonednn_q.report.table import Column, Table
from pyonednn_q.shown import shortened, shown

if TYPE_CHECKING:
    from pyonednn_q.graph.kind import Kind

__all__ = ["Dims", "Graph", "GraphNode", "Value"]

Dims = tuple[int, ...]

_NONE: Mapping[str, Any] = MappingProxyType({})
WIDE = 60  # characters of a cell
_MOST = 2000  # nodes of a drawing
_HEAD, _VERSION = "pyonednn_q graph", 1  # of JSON
_MISREAD = (LookupError, ArithmeticError, ValueError, TypeError, AttributeError, RecursionError)


@dataclass(frozen=True, slots=True)
class Value:
    """Type and dims of a tensor.

    Attributes
    ----------
    dtype : str
        NumPy's or ml_dtypes' name: ``"float32"``, ``"uint8"``, ``"int4"``.
    dims : tuple of int or None
        Dims, or None where they are not known beforehand.
    qparams : QParams or None
        Meaning of its codes, if known.
    lengths : tuple of (int or str)
        Dims of which some are open: there a symbol, or an empty text. Empty where all are known, or
        not even their number is.
    """

    dtype: str
    dims: Dims | None
    qparams: QParams | None = None
    lengths: tuple[int | str, ...] = ()

    def __post_init__(self) -> None:
        instance("dtype", self.dtype, str)
        if self.dims is not None:
            object.__setattr__(self, "dims", integers("dims", self.dims))
        if self.qparams is not None:
            instance("qparams", self.qparams, QParams)
        object.__setattr__(self, "lengths", items("lengths", self.lengths, int, str))
        if self.dims is not None and self.lengths:
            raise ArgumentError("lengths", shown(self.lengths), f"none, beside dims {self.dims}")

    def __str__(self) -> str:
        known = self.lengths if self.dims is None else self.dims
        text = ", ".join(str(each) or "?" for each in known)
        return f"{self.dtype}[{text if text or self.dims is not None else '?'}]"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GraphNode:
    """One node.

    Attributes
    ----------
    name : str
        Name, or the name of its first output if it has none.
    operator : str
        ONNX's `op_type`.
    inputs, outputs : tuple of str
        Names of tensors; empty where an optional one is left out.
    attributes : mapping
        Numbers, text, tuples of them, arrays, and graphs: the branches of an If.
    domain : str
        Empty: ONNX's own.
    originals : tuple of str
        Names of the model's nodes that it stands for.
    """

    name: str
    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=lambda: _NONE)
    domain: str = ""
    originals: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("name", "operator", "domain"):
            instance(name, getattr(self, name), str)
        for name in ("inputs", "outputs", "originals"):
            object.__setattr__(self, name, items(name, getattr(self, name), str))
        attributes = named("attributes", self.attributes, object)
        fixed = {name: read_only(each) for name, each in attributes.items()}
        object.__setattr__(self, "attributes", MappingProxyType(fixed))

    def input(self, index: int) -> str:
        """Return the name of an input; empty where there is none."""
        return self.inputs[index] if index < len(self.inputs) else ""

    @property
    def kind(self) -> str:
        """The operator, with its domain unless that is ONNX's own."""
        return f"{self.domain}.{self.operator}" if self.domain else self.operator

    @property
    def row(self) -> Kind:
        """Row of the operator in the table of kinds."""
        return kind_of(self.kind)

    def __eq__(self, other: object) -> bool:
        return equal(self, other)

    def __hash__(self) -> int:
        return hash((self.name, self.operator, self.domain, self.inputs, self.outputs))

    def __reduce__(self) -> Restored:
        return reduced(self)

    def __repr__(self) -> str:
        return f"<GraphNode {self}>"

    def __str__(self) -> str:
        return f"{', '.join(self.outputs)} = {self.kind}({', '.join(self.inputs)})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Graph:
    """A model: equal where all of its parts are, arrays among them.

    ``print(graph)`` is a table, a notebook shows a drawing; `to_json` and pickle keep all of it.

    Attributes
    ----------
    nodes : tuple of GraphNode
        Nodes in any order: edges say which runs first.
    constants : mapping of str to ndarray
        Initializers and values of Constant nodes; cannot be written. Arrays that can are copied.
    inputs, outputs : mapping of str to Value
        Inputs and outputs in the model's order; initializers are not inputs.
    opsets : mapping of str to int
        Versions by domain.
    tensors : mapping of str to Value
        Type and dims of every tensor whose type could be inferred.
    options : mapping
        Options of `onnx.fuse`, by name.
    changes : tuple of Change
        Changes by passes. They are not compared.

    Raises
    ------
    ArgumentError
        Naming the argument, what came and what would do.
    """

    nodes: tuple[GraphNode, ...]
    constants: Mapping[str, Array]
    inputs: Mapping[str, Value]
    outputs: Mapping[str, Value]
    opsets: Mapping[str, int]
    tensors: Mapping[str, Value]
    options: Mapping[str, Any] = field(default_factory=lambda: _NONE)
    changes: tuple[Change, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", items("nodes", self.nodes, GraphNode))
        kinds = {"constants": np.ndarray, "inputs": Value, "outputs": Value, "tensors": Value}
        object.__setattr__(self, "changes", items("changes", self.changes, Change))
        for name, kind in {**kinds, "opsets": int}.items():
            known = named(name, getattr(self, name), kind)
            fixed = {key: read_only(each) for key, each in known.items()}
            object.__setattr__(self, name, MappingProxyType(fixed))
        options = named("options", self.options, bool, str, Mapping)
        for name, each in options.items():
            if isinstance(each, Mapping):
                options[name] = named(f"options[{shown(name)}]", each, str)
        object.__setattr__(self, "options", MappingProxyType(options))
        check_no_circle([(each.name, each.inputs, each.outputs) for each in self.nodes])

    @property
    def opset(self) -> int:
        """The version of ONNX's own operators."""
        return self.opsets.get("", 1)

    @property
    def symbols(self) -> Mapping[str, tuple[int | str, ...]]:
        """Inputs of open lengths: `Value.lengths` of each."""
        return {name: each.lengths for name, each in self.inputs.items() if each.lengths}

    def dims(self, name: str) -> Dims | None:
        """Return the dims of a tensor, if they are known."""
        info = self.tensors.get(name)
        return None if info is None else info.dims

    def to_json(self) -> str:
        """Return all of it but `changes` as JSON, arrays as base64.

        Raises
        ------
        ArgumentError
            Nodes that something of ours runs, as `onnx.fuse` makes: pickle keeps those.
        """
        if any(type(node) is not GraphNode for node in self.nodes):
            raise ArgumentError("graph", "nodes that run", "the graph before fuse, or pickle")
        parts = {
            _HEAD: _VERSION,
            "nodes": [_of_node(node) for node in self.nodes],
            "constants": _encoded(self.constants),
            "inputs": _of_values(self.inputs),
            "outputs": _of_values(self.outputs),
            "opsets": dict(self.opsets),
            "tensors": _of_values(self.tensors),
            "options": dict(self.options),
        }
        return json.dumps(parts, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Graph:
        """Return the graph that `to_json` wrote.

        Raises
        ------
        ArgumentError
            Text that it did not write.
        """
        parts = decoded("text", text)
        try:
            if parts[_HEAD] != _VERSION:
                got = f"version {shown(parts[_HEAD])}"
                raise ArgumentError("text", got, f"a graph of version {_VERSION}")
            return cls(
                nodes=tuple(_node(each) for each in parts["nodes"]),
                constants=_decoded(parts["constants"]),
                inputs=_values(parts["inputs"]),
                outputs=_values(parts["outputs"]),
                opsets=MappingProxyType({str(k): int(v) for k, v in parts["opsets"].items()}),
                tensors=_values(parts["tensors"]),
                options=parts.get("options", {}),
            )
        except ArgumentError:
            raise
        except _MISREAD as error:
            got = f"text that ends in {type(error).__name__}"
            raise ArgumentError("text", got, "what Graph.to_json wrote") from None

    def __eq__(self, other: object) -> bool:
        return equal(self, other)

    def __hash__(self) -> int:
        return hash((self.nodes, *self.inputs, *self.outputs))

    def __reduce__(self) -> Restored:
        return reduced(self)

    def __repr__(self) -> str:
        parts = f"{len(self.nodes)} nodes, {len(self.constants)} constants, opset {self.opset}"
        ends = (
            ", ".join(f"{name}: {info}" for name, info in each.items())
            for each in (self.inputs, self.outputs)
        )
        return f"<Graph {parts}; {' -> '.join(ends)}>"

    def __str__(self) -> str:
        rows = [
            [
                shortened(node.name, WIDE),
                node.kind,
                shortened(", ".join(filter(None, node.inputs)), WIDE),
                shortened(", ".join(map(self._described, filter(None, node.outputs))), WIDE),
            ]
            for node in self.nodes
        ]
        columns = [Column(name) for name in ("node", "operator", "reads", "makes")]
        return f"{repr(self)[1:-1]}\n{Table(columns, rows).text()}"

    def _described(self, name: str) -> str:
        known = self.tensors.get(name, self.outputs.get(name))
        return name if known is None else f"{name}: {known}"

    def _repr_html_(self) -> str:
        return self.drawing({})

    def drawing(self, us: Mapping[str, float]) -> str:
        """Return a drawing as HTML.

        Parameters
        ----------
        us : mapping of str to float
            Microseconds of nodes, by name, to be written beside them; of some, or of none.

        Raises
        ------
        ArgumentError
            Not such a mapping.
        """
        times = named("us", us, int, float)
        whole = sum(times.values()) or 1.0
        inputs = self.inputs.items()
        boxes = [Box("input", name, "end", f"{name}: {info}", ()) for name, info in inputs]
        makers = {name: at for at, name in enumerate(self.inputs)}
        for node in self.nodes[:_MOST]:
            reads = tuple(dict.fromkeys(makers[name] for name in node.inputs if name in makers))
            makers.update((name, len(boxes)) for name in node.outputs if name)
            share = times.get(node.name, 0.0) / whole
            measured = f"{times[node.name]:.1f} us" if node.name in times else ""
            boxes.append(Box(node.kind, node.name, "node", str(node), reads, "", measured, share))
        for name, info in self.outputs.items():
            reads = (makers[name],) if name in makers else ()
            boxes.append(Box("output", name, "end", f"{name}: {info}", reads))
        note = f"and {left} nodes more" if (left := len(self.nodes) - _MOST) > 0 else ""
        return figure(boxes, note)


def _of_node(node: GraphNode) -> dict[str, Any]:
    parts = {each.name: getattr(node, each.name) for each in fields(node)}
    return {**parts, "attributes": _encoded(node.attributes)}


def _node(parts: dict[str, Any]) -> GraphNode:
    inputs, outputs, originals = (
        tuple(str(each) for each in parts[name]) for name in ("inputs", "outputs", "originals")
    )
    name, operator, domain = (str(parts[name]) for name in ("name", "operator", "domain"))
    attributes = _decoded(parts["attributes"])
    return GraphNode(name, operator, inputs, outputs, attributes, domain, originals)


def _of_values(values: Mapping[str, Value]) -> dict[str, Any]:
    return {
        name: [one.dtype, one.dims, one.qparams and _of_qparams(one.qparams), one.lengths]
        for name, one in values.items()
    }


def _of_qparams(q: QParams) -> list[Any]:
    scale, point = (np.asarray(value).tolist() for value in (q.scale, q.zero_point))
    return [scale, point, q.dtype, q.axis, *((q.block,) if q.block else ())]


def _values(parts: dict[str, Any]) -> Mapping[str, Value]:
    known = {}
    for name, (dtype, dims, qparams, lengths) in parts.items():
        numbers = None if dims is None else tuple(map(int, dims))
        q = None if qparams is None else QParams(*qparams)
        known[name] = Value(str(dtype), numbers, q, tuple(lengths))
    return MappingProxyType(known)


def _encoded(value: Any) -> Any:  # noqa: ANN401 - what attributes hold
    if isinstance(value, Mapping):
        return {name: _encoded(each) for name, each in value.items()}
    if isinstance(value, Graph):
        return {"graph": value.to_json()}
    if isinstance(value, np.ndarray):
        data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return {"array": data, "dtype": value.dtype.name, "dims": value.shape}
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, (tuple, list)):
        return [_encoded(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    return value


def _decoded(parts: dict[str, Any]) -> Mapping[str, Any]:
    return MappingProxyType({name: _one(each) for name, each in parts.items()})


def _one(part: Any) -> Any:  # noqa: ANN401
    if not isinstance(part, dict):
        return tuple(_one(each) for each in part) if isinstance(part, list) else part
    if "graph" in part:
        return Graph.from_json(part["graph"])
    if "array" in part:
        data = base64.b64decode(part["array"], validate=True)
        array = np.frombuffer(data, numpy_type(part["dtype"])).reshape(part["dims"])
        array.setflags(write=False)
        return array
    return float(part["float"]) if "float" in part else base64.b64decode(part["bytes"])
