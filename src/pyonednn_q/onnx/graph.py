"""An ONNX graph as a small frozen value: what `load` makes of a model, and what is fused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

import numpy as np

from pyonednn_q.graph.kind import Kind
from pyonednn_q.graph.kinds import kind_of

Array = np.ndarray[Any, Any]
Dims = tuple[int, ...]

_NONE: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ValueInfo:
    """Type and dims of a tensor.

    Attributes
    ----------
    dtype : str
        NumPy's or ml_dtypes' name: ``"float32"``, ``"uint8"``, ``"int4"``.
    dims : tuple of int or None
        None where they are not known beforehand.
    """

    dtype: str
    dims: Dims | None

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.dims) if self.dims is not None else '[?]'}"


Restored = tuple[Callable[..., Any], tuple[Any, ...]]


def reduced(value: Any) -> Restored:  # noqa: ANN401 - any dataclass
    """Return what pickle and copy make a frozen dataclass of again, its mappings read-only."""
    known = [getattr(value, each.name) for each in fields(value)]
    plain = [dict(each) if isinstance(each, MappingProxyType) else each for each in known]
    return _restored, (type(value), plain)


def _restored(kind: Callable[..., Any], known: list[Any]) -> Any:  # noqa: ANN401
    for each in known:
        if isinstance(each, dict):
            for array in each.values():
                if isinstance(array, np.ndarray):
                    array.setflags(write=False)
    return kind(*(MappingProxyType(each) if isinstance(each, dict) else each for each in known))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GraphNode:
    """One node.

    Attributes
    ----------
    name : str
        Its name, or that of its first output where it has none.
    operator : str
        ONNX's `op_type`.
    inputs, outputs : tuple of str
        Names of tensors; empty where an optional one is left out.
    attributes : mapping
        Numbers, text, tuples of them, and arrays.
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

    def input(self, index: int) -> str:
        """Return the name of an input; empty where there is none."""
        return self.inputs[index] if index < len(self.inputs) else ""

    @property
    def kind(self) -> str:
        """The operator, with its domain unless that is ONNX's own."""
        return f"{self.domain}.{self.operator}" if self.domain else self.operator

    @property
    def row(self) -> Kind:
        """What the table of kinds says of the operator."""
        return kind_of(self.kind)

    def __reduce__(self) -> Restored:
        return reduced(self)

    def __repr__(self) -> str:
        return f"<GraphNode {self}>"

    def __str__(self) -> str:
        return f"{', '.join(self.outputs)} = {self.kind}({', '.join(self.inputs)})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OnnxGraph:
    """A model without subgraphs, with fixed dims.

    Attributes
    ----------
    nodes : tuple of GraphNode
        Each behind those whose outputs it reads.
    constants : mapping of str to ndarray
        Initializers and values of Constant nodes; cannot be written.
    inputs, outputs : mapping of str to ValueInfo
        In the model's order; initializers are no inputs.
    opsets : mapping of str to int
        Versions by domain.
    tensors : mapping of str to ValueInfo
        Of every tensor whose type could be inferred.
    """

    nodes: tuple[GraphNode, ...]
    constants: Mapping[str, Array]
    inputs: Mapping[str, ValueInfo]
    outputs: Mapping[str, ValueInfo]
    opsets: Mapping[str, int]
    tensors: Mapping[str, ValueInfo]

    @property
    def opset(self) -> int:
        """The version of ONNX's own operators."""
        return self.opsets.get("", 1)

    def __reduce__(self) -> Restored:
        return reduced(self)

    def __repr__(self) -> str:
        return f"<OnnxGraph {self}>"

    def __str__(self) -> str:
        parts = f"{len(self.nodes)} nodes, {len(self.constants)} constants, opset {self.opset}"
        ends = (
            ", ".join(f"{name}: {info}" for name, info in each.items())
            for each in (self.inputs, self.outputs)
        )
        return f"{parts}; {' -> '.join(ends)}"
