"""Places of quantizers in a network, from its operators and what a target runs quantized.

    a quantizer begins at each source of an operator that runs quantized, and moves up
    through           operators that only move or choose values (agnostic): one quantizer serves all
    stays free        between the operators of a fused sequence: convolution, then add, then relu
    begins again      at the sources of what computes on codes, where its result has a quantizer
    stops             at the result of anything else, at a network's input, at an ignored operator,
                      and where a tensor is also read as floats or in another way
    outputs           have quantizers too, if that is wanted: as the first kind of the target
    linked            quantizers that meet in an operator whose operands must agree (concat) share
                      one scale

Source: NNCF's quantizer propagation, in aim; the algorithm here is one pass from the last operator
to the first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyonednn_q.argument import flag, instance, items
from pyonednn_q.errors import ArgumentError
from pyonednn_q.quantize.alignment import GraphOperator
from pyonednn_q.quantize.placement import (
    DENSE,
    Placement,
    QuantizationTarget,
    QuantizerSpec,
    scoped,
)
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["place_quantizers"]


@dataclass(frozen=True, slots=True)
class _Demand:
    """Demands of the readers of a tensor: ways, best first, and a scale group."""

    specs: tuple[QuantizerSpec, ...]
    readers: tuple[str, ...]
    group: int | None


def place_quantizers(
    graph: Sequence[GraphOperator],
    target: QuantizationTarget,
    *,
    ignored: Sequence[str] = (),
    linked: Sequence[Sequence[str]] = (),
    quantize_inputs: bool = True,
    quantize_outputs: bool = False,
) -> tuple[Placement, ...]:
    """Return the quantizers of a network's activations, each with the reason of its place.

    Parameters
    ----------
    graph : sequence of GraphOperator
        Operators in the order in which they run. The name of an operator is that of its result;
        sources are activations, not weights.
    target : QuantizationTarget
        Target: `onednn_target`, or your own.
    ignored : sequence of str
        Scopes of operators that run in float, as in `scoped`; no quantizer moves through them.
    linked : sequence of sequence of str
        Sets of tensors whose quantizers must share one scale, beside those of the target; no
        tensor is in two.
    quantize_inputs : bool
        Whether the network's inputs may be quantized; if not, their readers read floats.
    quantize_outputs : bool
        Whether results that no operator reads have quantizers.

    Raises
    ------
    ArgumentError
        Naming the argument: a tensor that is written twice or after it is read; one in two sets.

    Examples
    --------
    >>> from pyonednn_q.quantize import onednn_target
    >>> graph = [
    ...     GraphOperator("conv", ("x",), "a"),
    ...     GraphOperator("relu", ("a",), "b"),
    ...     GraphOperator("max_pool", ("b",), "c"),
    ...     GraphOperator("conv", ("c",), "d"),
    ... ]
    >>> for placement in place_quantizers(graph, onednn_target("AVX512_CORE_VNNI")):
    ...     print(placement)
    x -> a: u8 asymmetric (fast, exact); the network's input
    b -> d: u8 asymmetric (fast, exact); the result of relu
    """
    operators = items("graph", graph, GraphOperator)
    instance("target", target, QuantizationTarget)
    flag("quantize_inputs", quantize_inputs)
    flag("quantize_outputs", quantize_outputs)
    _check(operators)
    places = _Propagation(operators, target, ignored, outputs=quantize_outputs)
    return places.placements(linked, inputs=quantize_inputs)


class _Propagation:
    def __init__(
        self,
        operators: tuple[GraphOperator, ...],
        target: QuantizationTarget,
        ignored: Sequence[str],
        *,
        outputs: bool,
    ) -> None:
        self.target = target
        self.ways = dict(target.quantized)
        self.producer = {operator.result: operator for operator in operators}
        self.readers: dict[str, list[GraphOperator]] = {}
        for operator in operators:
            for source in dict.fromkeys(operator.sources):
                self.readers.setdefault(source, []).append(operator)
        self.ignored = {each.result for each in operators if scoped(each.result, ignored)}
        moving = {each.result for each in operators if each.kind in target.agnostic}
        self.moving = moving - self.ignored
        ends = {operator.result for operator in operators} - set(self.readers)
        self.outputs = ends if outputs and target.quantized else set()
        self.inside = self._fused()
        self.moved: dict[str, _Demand] = {}  # by the result of an agnostic operator
        self.coded: set[str] = set()  # tensors with quantizers
        self.groups = 0
        self.found: list[Placement] = []

    def placements(self, linked: Sequence[Sequence[str]], *, inputs: bool) -> tuple[Placement, ...]:
        sources = [name for name in self.readers if name not in self.producer]
        order = {name: at for at, name in enumerate([*sources, *self.producer])}
        for name in reversed(order):
            if inputs or name in self.producer:
                self._resolve(name)
        placed = sorted(self.found, key=lambda each: order[each.tensor])
        return tuple(self._joined(placed, linked))

    def _fused(self) -> set[tuple[str, str]]:
        """Return the edges (tensor, reader) inside fused sequences."""
        edges: set[tuple[str, str]] = set()
        for operator in self.producer.values():
            if operator.kind not in DENSE or operator.result in self.ignored:
                continue
            at = operator.result
            while len(readers := self.readers.get(at, [])) == 1:
                following = readers[0]
                if following.kind not in self.target.fused or following.result in self.ignored:
                    break
                edges.add((at, following.result))
                at = following.result
        return edges

    def _wanted(self, tensor: str, reader: GraphOperator) -> _Demand | None:
        if reader.result in self.ignored or (tensor, reader.result) in self.inside:
            return None
        if reader.kind in self.ways:
            return _Demand(self.ways[reader.kind], (reader.result,), None)
        if reader.kind in self.target.on_codes and reader.result in self.coded:
            return _Demand(self.target.quantized[0][1], (reader.result,), None)
        return self.moved.get(reader.result)

    def _resolve(self, tensor: str) -> None:
        wants = [(each, self._wanted(tensor, each)) for each in self.readers.get(tensor, [])]
        plain = [reader for reader, demand in wants if demand is None]
        merged: list[_Demand] = []
        if tensor in self.outputs:
            merged.append(_Demand(self.target.quantized[0][1], (), None))
        for _, demand in wants:
            if demand is not None and not self._merge(merged, demand):
                merged.append(demand)
        if not merged:
            return
        if tensor in self.moving and not plain and len(merged) == 1:
            demand = merged[0]
            if self.producer[tensor].kind in self.target.linked and demand.group is None:
                demand = _Demand(demand.specs, demand.readers, self.groups)
                self.groups += 1
            self.moved[tensor] = demand
            return
        self.coded.add(tensor)
        reason = self._reason(tensor, plain, len(merged))
        for demand in merged:
            spec = demand.specs[0]
            self.found.append(Placement(tensor, demand.readers, spec, demand.group, reason))

    def _merge(self, merged: list[_Demand], demand: _Demand) -> bool:
        for at, other in enumerate(merged):
            both = tuple(spec for spec in other.specs if spec in demand.specs)
            if both:
                group = self._same_group(other.group, demand.group)
                readers = tuple(dict.fromkeys((*other.readers, *demand.readers)))
                merged[at] = _Demand(both, readers, group)
                return True
        return False

    def _same_group(self, one: int | None, other: int | None) -> int | None:
        if one is None or other is None or one == other:
            return other if one is None else one
        self.found = [replace(p, group=one) if p.group == other else p for p in self.found]
        self.moved = {
            name: _Demand(d.specs, d.readers, one if d.group == other else d.group)
            for name, d in self.moved.items()
        }
        return one

    def _reason(self, tensor: str, plain: list[GraphOperator], ways: int) -> str:
        producer = self.producer.get(tensor)
        reason = f"the result of {producer.kind}" if producer else "the network's input"
        reason += ", which is ignored" if tensor in self.ignored else ""
        if plain:
            reason += f", which {', '.join(each.result for each in plain)} read as floats"
        return reason + (", quantized in several ways" if ways > 1 else "")

    def _joined(self, placed: list[Placement], linked: Sequence[Sequence[str]]) -> list[Placement]:
        seen: set[str] = set()
        for names in items("linked", linked, tuple, list):
            tensors = items("linked", names, str)
            if twice := [name for name in tensors if name in seen]:
                raise ArgumentError("linked", shown(twice), "sets that do not overlap")
            seen |= set(tensors)
            known = {each.tensor for each in placed}
            if missing := [name for name in tensors if name not in known]:
                wanted = f"tensors with quantizers: {shown(sorted(known))}"
                raise ArgumentError("linked", shown(missing), wanted)
            group = self.groups
            self.groups += 1
            old = {each.group for each in placed if each.tensor in tensors} - {None}
            placed = [
                replace(each, group=group) if each.tensor in tensors or each.group in old else each
                for each in placed
            ]
        return placed


def _check(operators: tuple[GraphOperator, ...]) -> None:
    last = {operator.result: at for at, operator in enumerate(operators)}
    written: set[str] = set()
    for at, operator in enumerate(operators):
        is_late = any(last.get(source, -1) >= at for source in operator.sources)
        if is_late or operator.result in written or not operator.sources:
            got = f"{shown(operator.result)} of {shown(operator.sources)}"
            raise ArgumentError("graph", got, "operators in order, each with sources before it")
        written.add(operator.result)
