"""What a model becomes: a list of nodes, each one call, and nothing that runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pyonednn_q.expr.steps import Chain
from pyonednn_q.graph.graph import Graph, GraphNode, Restored, Value, reduced
from pyonednn_q.graph.kind import Kind
from pyonednn_q.graph.kinds import kind_of
from pyonednn_q.ops.operator import Operator
from pyonednn_q.qparams import QParams
from pyonednn_q.shown import shortened
from pyonednn_q.tables import Column, Table

if TYPE_CHECKING:
    from pyonednn_q.onnx.passes import Change

_PRECISIONS = {"f32": "FP32", "bf16": "BF16"}  # of weights
_WIDE = 60  # characters of a cell; nodes have all of it

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CodeOperation:
    """An operation between layers, from codes to codes: dst = quantize(post(f(real values))).

    Attributes
    ----------
    operator : str
        ONNX's name of f: ``"MaxPool"``, ``"Concat"``, ``"Add"``, ``"QuantizeLinear"``.
    attributes : mapping
        ONNX's.
    srcs_q : tuple of (QParams or None)
        Scale and zero point of each input of the node; None where it holds real values, or is a
        shape.
    dst_q : QParams or None
        None: real values.
    post : Chain
        Steps behind f.
    constants : mapping of int to ndarray
        ONNX's inputs that are constants, by their places: a shape, bounds, scales of a Resize. The
        node's inputs are the others, in order.
    """

    operator: str
    attributes: Mapping[str, Any]
    srcs_q: tuple[QParams | None, ...]
    dst_q: QParams | None
    post: Chain
    constants: Mapping[int, Array]

    def __post_init__(self) -> None:
        object.__setattr__(self, "constants", MappingProxyType(dict(self.constants)))

    @property
    def row(self) -> Kind:
        """What the table of kinds says of f."""
        return kind_of(self.operator)

    @property
    def moves_codes(self) -> bool:
        """Whether codes are moved or picked, and nothing is computed."""
        moves = self.row.moves_values(self.attributes)
        same = all(each is None or each == self.dst_q for each in self.srcs_q)
        return moves and same and self.dst_q is not None and not self.post.steps

    def __reduce__(self) -> Restored:
        return reduced(self)

    def __repr__(self) -> str:
        return f"<CodeOperation {self}>"

    def __str__(self) -> str:
        steps = f" > {self.post}" if self.post.steps else ""
        return f"{self.operator}{steps}"


Operation: TypeAlias = Operator | CodeOperation | GraphNode


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FusedNode:
    """One call, and what of the model it stands for.

    Attributes
    ----------
    name : str
        Name of the first node that it stands for.
    operator : Conv, Deconv, InnerProduct, MatMul, CodeOperation or GraphNode
        What runs. A GraphNode runs as ONNX has it, and `why` says why.
    inputs : tuple of str
        Tensors, in the operator's order: of a layer the source alone, which one of bf16 weights
        rounds to bf16 first.
    operands : mapping of str to str
        Tensors of a layer's chain: ``"residual"``, which a Sum reads, and leaves by name.
    outputs : tuple of str
        Tensors; of a layer one.
    parts : tuple of GraphNode
        The nodes that it stands for, in order, quantizers among them; together they compute the
        same.
    why : str
        Why it does not run on codes, and what would change that; empty where it does.
    is_compiled : bool
        Whether operations of a network do the same as this GraphNode; known once a `Model` has it.
    """

    name: str
    operator: Operation
    inputs: tuple[str, ...]
    operands: Mapping[str, str]
    outputs: tuple[str, ...]
    parts: tuple[GraphNode, ...]
    why: str = ""
    is_compiled: bool = False

    @property
    def output(self) -> str:
        """The first output."""
        return self.outputs[0]

    @property
    def originals(self) -> tuple[str, ...]:
        """Names of the model's nodes that it stands for, each once."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.originals))

    @property
    def reads(self) -> tuple[str, ...]:
        """All tensors that it reads."""
        return (*filter(None, self.inputs), *self.operands.values())

    @property
    def how(self) -> str:
        """How it runs, in some words; reference: by its definition, in Python."""
        if isinstance(self.operator, GraphNode):
            if self.is_compiled and self.operator.row.form == "recurrence":
                return f"INT8 {self.operator.row.means.lower()}"
            return "floats" if self.is_compiled else "reference"
        if isinstance(self.operator, CodeOperation):
            if self.operator.row.is_quantizer:
                return "quantizer"
            return "codes moved" if self.operator.moves_codes else "codes computed"
        return f"{_PRECISIONS.get(self.operator.weights.dtype, 'INT8')} {self.operator.kind}"

    def __reduce__(self) -> Restored:
        return reduced(self)

    def __repr__(self) -> str:
        return f"<FusedNode {self.name}: {self}, {self.how}>"

    def __str__(self) -> str:
        what = self.operator
        if isinstance(what, GraphNode):
            return what.kind
        if isinstance(what, CodeOperation):
            return str(what)
        steps = what.settings.post
        return f"{type(what).__name__}{f' > {steps}' if steps.steps else ''}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FusedGraph:
    """A model as a list of calls.

    Attributes
    ----------
    nodes : tuple of FusedNode
        Each behind those whose outputs it reads.
    constants : mapping of str to ndarray
        Constants that the fused nodes, or the original nodes, read.
    inputs, outputs : mapping of str to Value
        The model's.
    tensors : mapping of str to Value
        Type and dims of what nodes read and write, where they are known, and what codes mean.
    opsets : mapping of str to int
        Versions of operators, by domain.
    source : Graph or None
        The model, where lengths of its inputs are open: there are no nodes then, until `Model`
        knows the lengths.
    options : mapping of str to object
        What `fuse` was told of it.
    changes : tuple of Change
        What passes made of the model's nodes before they were fused.
    """

    nodes: tuple[FusedNode, ...]
    constants: Mapping[str, Array]
    inputs: Mapping[str, Value]
    outputs: Mapping[str, Value]
    tensors: Mapping[str, Value]
    opsets: Mapping[str, int]
    source: Graph | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()

    def __reduce__(self) -> Restored:
        return reduced(self)

    @classmethod
    def unbound(cls, source: Graph, options: Mapping[str, Any]) -> FusedGraph:
        """Return what stands for a model until the lengths of its inputs are known."""
        return cls((), {}, source.inputs, source.outputs, {}, source.opsets, source, options)

    @property
    def nbytes(self) -> int:
        """About how many bytes its layers take: codes of weights, and what kernels pack of them."""
        layers = [node.operator for node in self.nodes if isinstance(node.operator, Operator)]
        return 2 * sum(layer.weights.values.nbytes for layer in layers)

    def __repr__(self) -> str:
        return f"<FusedGraph of {len(self.nodes) if self.source is None else 'open'} nodes>"

    def report(self) -> str:
        """Return a table, a line for each node: what it stands for, how it runs, why not INT8."""
        rows = [
            [
                shortened(", ".join(node.originals), _WIDE),
                shortened(str(node), _WIDE),
                node.how,
                node.why or "-",
            ]
            for node in self.nodes
        ]
        columns = [Column(name) for name in ("nodes", "runs", "how", "why not INT8")]
        return Table(columns, rows).text()


def with_meanings(tensors: Mapping[str, Value], nodes: Iterable[FusedNode]) -> Mapping[str, Value]:
    """Return tensors with what the codes among them mean, as the nodes that read and write have it.

    Parameters
    ----------
    tensors : mapping of str to Value
        Tensors by name.
    nodes : iterable of FusedNode
        Nodes in order.
    """
    known: dict[str, QParams] = {}
    for node in nodes:
        what = node.operator
        if isinstance(what, GraphNode):
            continue
        dst_q = what.dst_q if isinstance(what, CodeOperation) else what.settings.dst_q
        if dst_q is not None:
            known.update(dict.fromkeys(filter(None, node.outputs), dst_q))
        srcs_q: Any = what.srcs_q if isinstance(what, CodeOperation) else (what.settings.src_q,)
        for name, q in zip(node.inputs, srcs_q, strict=True):
            if isinstance(q, QParams):
                known.setdefault(name, q)
    more = {n: replace(tensors[n], qparams=q) for n, q in known.items() if n in tensors}
    return MappingProxyType({**tensors, **more})
