"""Report of a fused model's node: what it replaces, how it runs, and why."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from math import isfinite
from typing import TYPE_CHECKING, Any

from pyonednn_q.acc.verdict import saturations
from pyonednn_q.errors import Error
from pyonednn_q.faults import guards
from pyonednn_q.graph import kinds
from pyonednn_q.native.creation import creations
from pyonednn_q.onnx.fused_node import fused_nodes
from pyonednn_q.ops.operator import Operator
from pyonednn_q.primitive.isa import ISA_ORDER
from pyonednn_q.qparams import QParams

if TYPE_CHECKING:
    from pyonednn_q.compose.plan import Plan
    from pyonednn_q.graph.graph import Graph
    from pyonednn_q.models.node_measures import NodeMeasure
    from pyonednn_q.native.creation import Creation
    from pyonednn_q.onnx.fused_node import FusedNode
    from pyonednn_q.ops.planned import Planned

__all__ = ["NodeReport", "SaturationAt", "TensorText", "of_nodes"]


@dataclass(frozen=True, slots=True)
class TensorText:
    """A tensor that a node reads or writes.

    Attributes
    ----------
    name, type : str
        Name of the tensor; data type and dims.
    quantizer : str
        Meaning of its codes; empty for floats.
    """

    name: str
    type: str
    quantizer: str = ""

    def __str__(self) -> str:
        return ", ".join(filter(None, [f"{self.name}: {self.type}", self.quantizer]))


@dataclass(frozen=True, slots=True)
class SaturationAt:
    """The verdict on a layer's weights at an instruction set.

    Attributes
    ----------
    isa : str
        Name as in ``ONEDNN_MAX_CPU_ISA``.
    channels, flagged : int
        Number of output channels, and of those that some source makes wrong.
    reason : str
        Reason for the verdict, in a few words; empty where every channel is exact.
    """

    isa: str
    channels: int
    flagged: int
    reason: str

    def __str__(self) -> str:
        if not self.flagged:
            return f"{self.isa}: exact"
        return f"{self.isa}: {self.flagged} of {self.channels} channels, {self.reason}"


@dataclass(frozen=True, slots=True)
class NodeReport:
    """A node, told.

    Attributes
    ----------
    name, runs, how, why : str
        Name of the node; what runs; in which way; why that is not in INT8 and what would change it.
    originals, operators : tuple of str
        Names of the model's nodes that it stands for; their operators, quantizers left out.
    reads, writes : tuple of TensorText
        Tensors of the node, with operands of its chain.
    problem, attributes : str
        The primitive's problem; its scales, zero points and post-ops. Empty where none runs.
    post_ops : tuple of str
        Post-ops in order.
    exactness : str
        Promise of the rewrites of its plan.
    saturation : tuple of SaturationAt
        One for each instruction set; empty where no s8 weights are multiplied.
    implementation, kind : str
        The library's name of what runs; ``"jit"``, ``"gemm"``, ``"reference"`` or ``"unknown"``.
    rejected : tuple of (str, str)
        (implementation, reason) of those asked before: by the library, then by this package.
    guards, after, notes : tuple of str
        Known faults met on the way; primitives that run after it; what else a caller should know.
    plan : Plan or None
        Plan of the layer.
    us, sqnr_db : float or None
        Results of `node_measures`; None where nothing was measured.
    """

    name: str
    runs: str
    how: str
    why: str
    originals: tuple[str, ...]
    operators: tuple[str, ...]
    reads: tuple[TensorText, ...]
    writes: tuple[TensorText, ...]
    problem: str = ""
    attributes: str = ""
    post_ops: tuple[str, ...] = ()
    exactness: str = ""
    saturation: tuple[SaturationAt, ...] = ()
    implementation: str = ""
    kind: str = ""
    rejected: tuple[tuple[str, str], ...] = ()
    guards: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    plan: Plan | None = None
    us: float | None = None
    sqnr_db: float | None = None

    @classmethod
    def of(
        cls, node: FusedNode, graph: Graph, planned: Planned | None, creation: Creation | None
    ) -> NodeReport:
        """Tell a node; of a layer, also what is planned for it and what the library logged."""
        operator = node.runs
        told: dict[str, Any] = {}
        if isinstance(operator, Operator) and planned is not None:
            told = _of_layer(operator, planned, creation)
        elif isinstance(operator, Operator):
            told = {"notes": operator.notes}
        return cls(
            name=node.name,
            runs=str(node),
            how=node.how,
            why=node.why,
            originals=node.originals,
            operators=_operators(node),
            reads=tuple(_tensor(name, graph) for name in node.reads),
            writes=tuple(_tensor(name, graph) for name in node.outputs if name),
            **told,
        )

    @property
    def measured(self) -> str:
        """Time and SQNR in a few words; empty where nothing was measured."""
        taken = "" if self.us is None else f"{self.us:.1f} us"
        return ", ".join(filter(None, [taken, self.sqnr]))

    @property
    def sqnr(self) -> str:
        """SQNR beside the float model in a few words; empty where nothing was compared."""
        if self.sqnr_db is None:
            return ""
        return f"{self.sqnr_db:.1f} dB" if isfinite(self.sqnr_db) else "as in floats"

    @property
    def saturates(self) -> str:
        """Instruction sets on which a channel can be wrong; empty where there are none."""
        wrong = [each for each in self.saturation if each.flagged]
        counts = {f"{each.flagged}/{each.channels}" for each in wrong}
        names = ", ".join(each.isa for each in wrong)
        return f"{names}: {' to '.join(sorted(counts))}" if wrong else ""

    def plain(self) -> dict[str, Any]:
        """Return all of it as JSON has it."""
        told = {each.name: getattr(self, each.name) for each in fields(self)}
        for name in ("reads", "writes", "saturation"):
            told[name] = [asdict(each) for each in told[name]]
        if self.sqnr_db is not None and not isfinite(self.sqnr_db):
            told["sqnr_db"] = str(self.sqnr_db)  # JSON has no infinity
        told["plan"] = None if self.plan is None else json.loads(self.plan.to_json())
        return told

    def lines(self) -> list[tuple[str, str]]:
        """Return pairs of a word and what it says, in order, the plan left out."""
        return [
            ("stands for", ", ".join(self.originals)),
            ("runs", self.runs),
            ("how", self.how),
            *([("why not INT8", self.why)] if self.why else []),
            *([("measured", self.measured)] if self.measured else []),
            *(("reads", str(each)) for each in self.reads),
            *(("writes", str(each)) for each in self.writes),
            *([("problem", self.problem)] if self.problem else []),
            *([("attributes", self.attributes or "none")] if self.problem else []),
            *([("exactness", self.exactness)] if self.exactness else []),
            *(("saturation", line) for line in self._saturation()),
            *([("implementation", f"{self.implementation} ({self.kind})")] if self.kind else []),
            *(("rejected", f"{impl}: {why}") for impl, why in self.rejected),
            *(("guard", each) for each in self.guards),
            *(("after it", each) for each in self.after),
            *(("note", each) for each in self.notes),
        ]

    def _saturation(self) -> list[str]:
        """Return a line for the instruction sets that are exact, and one for each other verdict."""
        by_verdict: dict[str, list[str]] = {}
        for each in self.saturation:
            verdict = str(each).partition(": ")[2]
            by_verdict.setdefault(verdict, []).append(each.isa)
        return [f"{verdict} on {', '.join(names)}" for verdict, names in by_verdict.items()]


def _operators(node: FusedNode) -> tuple[str, ...]:
    """Return the operators that a node stands for; the quantizer's own, if it is nothing else."""
    beside = {kinds.QUANTIZE, kinds.DEQUANTIZE, kinds.DYNAMIC_QUANTIZE, kinds.CAST}
    own = tuple(part.kind for part in node.parts if part.row not in beside)
    return own or (node.parts[-1].kind,)


def of_nodes(graph: Graph, measures: Mapping[str, NodeMeasure]) -> Iterator[NodeReport]:
    """Yield what there is to tell of each node, once the library was asked what it refused.

    It is asked in another process, of all layers at once. What was measured has the names of first
    outputs.
    """
    layers = {node.output: _planned(node, graph) for node in fused_nodes(graph)}
    questions = {
        name: (layer.primitive.problem, layer.primitive.attr, layer.primitive.impl)
        for name, layer in layers.items()
        if layer is not None and layer.primitive.kind != "none"
    }
    by_output = dict(zip(questions, creations(list(questions.values())), strict=True))
    for node in fused_nodes(graph):
        told = NodeReport.of(node, graph, layers[node.output], by_output.get(node.output))
        measure = measures.get(node.output)
        yield told if measure is None else replace(told, us=measure.us, sqnr_db=measure.sqnr_db)


def _planned(node: FusedNode, graph: Graph) -> Planned | None:
    if not isinstance(node.runs, Operator) or node.runs.in_groups:
        return None
    info = graph.tensors[node.inputs[0]]
    assert info.dims is not None  # else it would not be a layer
    return node.runs.prepare(info.dims)


def _of_layer(operator: Operator, planned: Planned, creation: Creation | None) -> dict[str, Any]:
    primitive, plan = planned.primitive, planned.plan
    skipped = tuple((entry.impl, entry.why) for entry in primitive.skipped)
    met = {guard: entry.impl for entry in primitive.skipped for guard in entry.guards}
    return {
        "problem": primitive.problem.text(),
        "attributes": primitive.attr.text(),
        "post_ops": tuple(op.text() for op in plan.post_ops),
        "exactness": str(plan.exactness),
        "saturation": _saturation(operator, planned),
        "implementation": primitive.impl,
        "kind": primitive.kind,
        "rejected": (() if creation is None else creation.refused) + skipped,
        "guards": tuple(
            f"{row.id}: {met[row.id]} {row.effect}" for row in guards.GUARDS if row.id in met
        ),
        "after": planned.after,
        "notes": tuple(dict.fromkeys((*operator.notes, *planned.notes))),
        "plan": plan,
    }


def _saturation(operator: Operator, planned: Planned) -> tuple[SaturationAt, ...]:
    """Return the verdicts on the weights as they are, for sources of all codes."""
    if not operator.settings.is_int8:
        return ()
    problem = planned.form.asked
    src_q = operator.settings.src_q
    has_point = bool(src_q.zero_point) if isinstance(src_q, QParams) else None
    rows = []
    try:
        wei = operator._wei_of(problem)  # noqa: SLF001 - an operator's own reading
        verdicts = saturations(problem, wei, ISA_ORDER, src_zero_point=has_point)
        for isa, verdict in zip(ISA_ORDER, verdicts, strict=True):
            reasons = dict.fromkeys(each.reason for each in verdict.channels if each.reason)
            flagged = len(verdict.flagged)
            rows.append(SaturationAt(isa, len(verdict.channels), flagged, ", ".join(reasons)))
    except Error:  # weights of u8, of which there are no pairs in 16 bits
        return ()
    return tuple(rows)


def _tensor(name: str, graph: Graph) -> TensorText:
    info = graph.tensors.get(name)
    if info is None and name in graph.constants:
        array = graph.constants[name]
        return TensorText(name, f"constant {array.dtype}{list(array.shape)}")
    if info is None or (q := info.qparams) is None:
        return TensorText(name, "unknown" if info is None else str(info))
    is_one = q.axis is None
    quantizer = f"scale {float(q.scale):.6g}, zero_point {q.zero_point}" if is_one else str(q)
    return TensorText(name, str(info), quantizer)
