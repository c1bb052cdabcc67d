"""Fused nodes, the results of `fuse`: each is one call, of an operator or on codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.steps import Chain
from pyonednn_q.graph import kinds
from pyonednn_q.graph.frozen import Restored, reduced
from pyonednn_q.graph.graph import WIDE, Graph, GraphNode, Value
from pyonednn_q.graph.kind import Kind
from pyonednn_q.graph.kinds import kind_of
from pyonednn_q.network import PythonCall
from pyonednn_q.ops.operator import Operator
from pyonednn_q.qparams import QParams
from pyonednn_q.report.table import Column, Table
from pyonednn_q.shown import shortened

if TYPE_CHECKING:
    from pyonednn_q.network import Node

_PRECISIONS = {"f32": "FP32", "bf16": "BF16", "s4": "INT4", "u4": "INT4"}  # of weights

_NONE: Mapping[str, str] = MappingProxyType({})


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
        Scale and zero point of the result; None: real values.
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
        """Row of f in the table of kinds."""
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FusedNode(GraphNode):
    """A node that is one call, with the nodes of the model that it replaces.

    Its name, operator, attributes and domain are those of the first node that it stands for which
    is no quantizer.

    Attributes
    ----------
    inputs : tuple of str
        Tensors, in the operator's order: of a layer the source, which one of bf16 weights rounds to
        bf16 first, and then those of its chain.
    outputs : tuple of str
        Tensors; of a layer one.
    runs : Conv, Deconv, InnerProduct, MatMul, CodeOperation or None
        Operator or operation on codes that computes the node. None: it runs as ONNX defines it, for
        the reason in `why`.
    leaves : tuple of str
        Names of the last inputs in a layer's chain: ``"residual"``, which a Sum reads, and leaves
        by name.
    parts : tuple of GraphNode
        The nodes that it stands for, in order, quantizers among them; together they compute the
        same.
    why : str
        Reason why the node does not run on codes, and a remedy; empty where it does.
    steps : tuple of network.Node
        Nodes of a network that replace it; empty before `with_operations`, and where it is nothing
        there.
    """

    runs: Operator | CodeOperation | None = None
    leaves: tuple[str, ...] = ()
    parts: tuple[GraphNode, ...] = ()
    why: str = ""
    steps: tuple[Node, ...] = ()

    @classmethod
    def of(
        cls,
        node: GraphNode,
        runs: Operator | CodeOperation | None,
        srcs: Sequence[str],
        outputs: Sequence[str],
        parts: Sequence[GraphNode],
        operands: Mapping[str, str] = _NONE,
        why: str = "",
    ) -> FusedNode:
        """Return the node that replaces some nodes.

        Parameters
        ----------
        node : GraphNode
            Node that gives the name.
        runs, parts, why
            New values of the attributes of these names.
        srcs, outputs : sequence of str
            Tensors.
        operands : mapping of str to str
            Tensors of a layer's chain, by leaf.
        """
        return cls(
            node.name,
            node.operator,
            (*srcs, *operands.values()),
            tuple(outputs),
            node.attributes,
            node.domain,
            tuple(dict.fromkeys(name for part in parts for name in part.originals)),
            runs,
            tuple(operands),
            tuple(parts),
            why,
        )

    @classmethod
    def as_it_is(cls, node: GraphNode, why: str = "") -> FusedNode:
        """Return what runs as ONNX has it."""
        return cls.of(node, None, node.inputs, node.outputs, (node,), why=why)

    @property
    def output(self) -> str:
        """The first output."""
        return self.outputs[0]

    @property
    def srcs(self) -> tuple[str, ...]:
        """Inputs without those of a chain."""
        return self.inputs[: len(self.inputs) - len(self.leaves)]

    @property
    def operands(self) -> Mapping[str, str]:
        """Tensors of a layer's chain, by leaf."""
        return dict(zip(self.leaves, self.inputs[len(self.srcs) :], strict=True))

    @property
    def reads(self) -> tuple[str, ...]:
        """All tensors that it reads."""
        return tuple(filter(None, self.inputs))

    @property
    def is_compiled(self) -> bool:
        """Whether no Python runs in a network for it."""
        return bool(self.steps) and not any(isinstance(s.runs, PythonCall) for s in self.steps)

    @property
    def how(self) -> str:
        """Way in which it runs, in some words; reference: by its definition, in Python."""
        if self.runs is None:
            if self.is_compiled and self.row.form == "recurrence":
                return f"INT8 {self.row.means.lower()}"
            if self.row is kinds.CACHED_ATTENTION and self.attributes["cache"] == "s8":
                return "INT8 attention"
            return "floats" if self.is_compiled else "reference"
        if isinstance(self.runs, CodeOperation):
            if self.runs.row.is_quantizer:
                return "quantizer"
            return "codes moved" if self.runs.moves_codes else "codes computed"
        return f"{_PRECISIONS.get(self.runs.weights.dtype, 'INT8')} {self.runs.kind}"

    def __reduce__(self) -> Restored:
        return reduced(replace(self, steps=()))  # which may enter Python

    def __repr__(self) -> str:
        return f"<FusedNode {self.name}: {self}, {self.how}>"

    def __str__(self) -> str:
        what = self.runs
        if what is None:
            return self.kind
        if isinstance(what, CodeOperation):
            return str(what)
        steps = what.settings.post
        return f"{type(what).__name__}{f' > {steps}' if steps.steps else ''}"


def is_fused(graph: Graph) -> bool:
    """Tell whether each node of a graph is one call."""
    return all(isinstance(node, FusedNode) for node in graph.nodes)


def fused_nodes(graph: Graph) -> tuple[FusedNode, ...]:
    """Return the nodes of a graph of `fuse`, each after those whose outputs it reads.

    Raises
    ------
    ArgumentError
        A graph that was not fused.
    """
    nodes = tuple(node for node in graph.nodes if isinstance(node, FusedNode))
    if len(nodes) != len(graph.nodes):
        raise ArgumentError("graph", "nodes that nothing runs", "what fuse returns")
    return nodes


def layer_bytes(graph: Graph) -> int:
    """Return about how many bytes layers take: codes of weights, and what kernels pack of them."""
    layers = [node.runs for node in fused_nodes(graph) if isinstance(node.runs, Operator)]
    return sum(
        layer.wei_bytes if layer.in_groups else 2 * layer.weights.values.nbytes for layer in layers
    )


def report(graph: Graph) -> Table:
    """Return a table of nodes: original nodes, how each runs, why it is not INT8."""
    rows = [
        [
            shortened(", ".join(node.originals) or node.name, WIDE),
            shortened(str(node), WIDE),
            node.how,
            node.why or "-",
        ]
        for node in fused_nodes(graph)
    ]
    columns = [Column(name) for name in ("nodes", "runs", "how", "why not INT8")]
    return Table(columns, rows)


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
        what = node.runs
        if what is None:
            continue
        dst_q = what.dst_q if isinstance(what, CodeOperation) else what.settings.dst_q
        if dst_q is not None:
            known.update(dict.fromkeys(filter(None, node.outputs), dst_q))
        srcs_q: Any = what.srcs_q if isinstance(what, CodeOperation) else (what.settings.src_q,)
        for name, q in zip(node.srcs, srcs_q, strict=True):
            if isinstance(q, QParams):
                known.setdefault(name, q)
    more = {n: replace(tensors[n], qparams=q) for n, q in known.items() if n in tensors}
    return MappingProxyType({**tensors, **more})
