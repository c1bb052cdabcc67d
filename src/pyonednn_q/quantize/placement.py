"""Where quantizers go in a network, from a list of its operators and what a target runs quantized.

    a quantizer begins at each source of an operator that runs quantized, and moves up
    through           operators that only move or choose values (agnostic): one quantizer serves all
    stays free        between the operators of a fused sequence: convolution, then add, then relu
    stops             at the result of anything else, at a network's input, at an ignored operator,
                      and where a tensor is also read as floats or in another way
    linked            quantizers that meet in an operator whose operands must agree (concat) share
                      one scale

Source: NNCF's quantizer propagation, in aim; the algorithm here is one pass from the last operator
to the first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyonednn_q import dtypes
from pyonednn_q.argument import flag, instance, items
from pyonednn_q.errors import ArgumentError
from pyonednn_q.primitive.isa import InstructionSet
from pyonednn_q.quantize.alignment import GraphOperator
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "Placement",
    "QuantizationTarget",
    "QuantizerSpec",
    "onednn_target",
    "place_quantizers",
    "scoped",
]

_RE = "{re}"
AGNOSTIC = (
    *("concat", "flatten", "max_pool", "pad", "permute", "reshape", "slice", "split"),
    *("squeeze", "transpose", "unsqueeze", "upsample"),
)
DENSE = ("conv", "deconv", "inner_product", "matmul")
_POINTWISE = ("abs", "clip", "elu", "gelu", "hard_swish", "leaky_relu", "prelu", "relu", "sigmoid")


@dataclass(frozen=True, slots=True)
class QuantizerSpec:
    """How a tensor may be quantized.

    Attributes
    ----------
    dtype : str
        Of the codes.
    symmetric : bool
        Whether the zero point is that in the middle (0 of s8).
    note : str
        What this way has on the target: fast, exact, saturating.
    """

    dtype: str
    symmetric: bool
    note: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", dtypes.checked(self.dtype, "dtype"))
        flag("symmetric", self.symmetric)
        instance("note", self.note, str)

    def __str__(self) -> str:
        way = "symmetric" if self.symmetric else "asymmetric"
        return f"{self.dtype} {way}" + (f" ({self.note})" if self.note else "")


@dataclass(frozen=True, slots=True)
class QuantizationTarget:
    """What a target runs quantized: plain data.

    Attributes
    ----------
    quantized : tuple of (str, tuple of QuantizerSpec)
        Kinds of operators that run on codes, and how their sources may be quantized, best first.
    weights : tuple of (str, QuantizerSpec)
        How the weights of those kinds are.
    agnostic : tuple of str
        Kinds that quantizers move through.
    linked : tuple of str
        Those of them whose sources must have one scale.
    fused : tuple of str
        Kinds that a dense operator takes in behind it, in any number and order.
    """

    quantized: tuple[tuple[str, tuple[QuantizerSpec, ...]], ...]
    weights: tuple[tuple[str, QuantizerSpec], ...]
    agnostic: tuple[str, ...] = AGNOSTIC
    linked: tuple[str, ...] = ("concat",)
    fused: tuple[str, ...] = ("add", "batch_norm", "mul", *_POINTWISE)

    def __post_init__(self) -> None:
        for name in ("agnostic", "linked", "fused"):
            object.__setattr__(self, name, items(name, getattr(self, name), str))
        for name in ("quantized", "weights"):
            pairs = [items(name, pair, object) for pair in items(name, getattr(self, name), object)]
            object.__setattr__(self, name, tuple(_pair(name, pair) for pair in pairs))


def _pair(name: str, pair: Sequence[object]) -> tuple[str, object]:
    if len(pair) != 2 or not isinstance(pair[0], str):
        raise ArgumentError(name, shown(pair), "pairs of a kind and how it is quantized")
    if name == "weights":
        instance(name, pair[1], QuantizerSpec)
        return pair[0], pair[1]
    specs = items(name, pair[1], QuantizerSpec)
    if not specs:
        raise ArgumentError(name, shown(pair), "at least one way for each kind")
    return pair[0], specs


@dataclass(frozen=True, slots=True)
class Placement:
    """One quantizer.

    Attributes
    ----------
    tensor : str
        What it quantizes.
    readers : tuple of str
        Results of the operators that read the codes; those of other readers read floats.
    spec : QuantizerSpec
    group : int or None
        Quantizers of one number share their scale.
    reason : str
        Why it stands here.
    """

    tensor: str
    readers: tuple[str, ...]
    spec: QuantizerSpec
    group: int | None
    reason: str

    def __str__(self) -> str:
        group = "" if self.group is None else f", scale of group {self.group}"
        readers = ", ".join(self.readers)
        return f"{self.tensor} -> {readers}: {self.spec}{group}; {self.reason}"


def onednn_target(isa: InstructionSet | str) -> QuantizationTarget:
    """Return what oneDNN runs quantized on a CPU: u8 or s8 sources, s8 weights by output channel.

    With VNNI all of it is exact. Without, products of u8 and full-range s8 saturate in pairs: the
    weights are marked so, half of the range is exact; convolutions of s8 sources lose a bit.

    Parameters
    ----------
    isa : InstructionSet or str
        What kernels may use: ``"AVX2"``, ``"AVX512_CORE_VNNI"``.

    Raises
    ------
    ArgumentError
        No instruction set.
    """
    exact = InstructionSet.of(isa).has_vnni()
    u8 = QuantizerSpec("u8", symmetric=False, note="fast, exact" if exact else "fast")
    s8 = QuantizerSpec(
        "s8", symmetric=True, note="fast, exact" if exact else "odd weights lose a bit"
    )
    plain_s8 = QuantizerSpec("s8", symmetric=True, note="fast, exact" if exact else "fast")
    weights = QuantizerSpec(
        "s8", symmetric=True, note="exact" if exact else "saturating beyond half of the range"
    )
    ways = {kind: (u8, s8 if "conv" in kind else plain_s8) for kind in DENSE}
    return QuantizationTarget(tuple(ways.items()), tuple((kind, weights) for kind in DENSE))


def scoped(name: str, scopes: Sequence[str]) -> bool:
    """Return whether scopes name an operator.

    Parameters
    ----------
    name : str
        Of the operator: that of its result.
    scopes : sequence of str
        Names, or regular expressions behind ``{re}`` that match anywhere in one, as NNCF has it.

    Raises
    ------
    ArgumentError
        An expression that is none.

    Examples
    --------
    >>> scoped("block1/conv", ["head", "{re}block[12]/"])
    True
    """
    instance("name", name, str)
    for scope in items("scopes", scopes, str):
        if not scope.startswith(_RE):
            if scope == name:
                return True
            continue
        try:
            match = re.search(scope.removeprefix(_RE), name)
        except re.error as error:
            raise ArgumentError("scopes", shown(scope), f"a regular expression: {error}") from None
        if match:
            return True
    return False


@dataclass(frozen=True, slots=True)
class _Demand:
    """What the readers of a tensor want: ways, best first, and a scale group."""

    specs: tuple[QuantizerSpec, ...]
    readers: tuple[str, ...]
    group: int | None


def place_quantizers(
    graph: Sequence[GraphOperator],
    target: QuantizationTarget,
    *,
    ignored: Sequence[str] = (),
    linked: Sequence[Sequence[str]] = (),
) -> tuple[Placement, ...]:
    """Return the quantizers of a network's activations, each with the reason of its place.

    Parameters
    ----------
    graph : sequence of GraphOperator
        In the order in which they run. An operator's name is that of its result; sources are
        activations (weights are none).
    target : QuantizationTarget
        `onednn_target`, or your own.
    ignored : sequence of str
        Operators that run in float and that no quantizer moves through, as in `scoped`.
    linked : sequence of sequence of str
        Sets of tensors whose quantizers must share one scale, beside those of the target.

    Raises
    ------
    ArgumentError
        Naming the argument: a tensor that is written twice or after it is read.

    Examples
    --------
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
    _check(operators)
    return _Propagation(operators, target, ignored).placements(linked)


class _Propagation:
    def __init__(
        self,
        operators: tuple[GraphOperator, ...],
        target: QuantizationTarget,
        ignored: Sequence[str],
    ) -> None:
        self.operators, self.target = operators, target
        self.ways = dict(target.quantized)
        self.producer = {operator.result: operator for operator in operators}
        self.readers: dict[str, list[GraphOperator]] = {}
        for operator in operators:
            for source in dict.fromkeys(operator.sources):
                self.readers.setdefault(source, []).append(operator)
        self.ignored = {each.result for each in operators if scoped(each.result, ignored)}
        self.inside = self._fused()
        self.moved: dict[str, _Demand] = {}  # by the result of an agnostic operator
        self.groups = 0
        self.found: list[Placement] = []

    def placements(self, linked: Sequence[Sequence[str]]) -> tuple[Placement, ...]:
        for operator in reversed(self.operators):
            self._resolve(operator.result, operator)
        inputs = [name for name in self.readers if name not in self.producer]
        for name in reversed(inputs):
            self._resolve(name, None)
        order = {name: at for at, name in enumerate([*inputs, *self.producer])}
        placed = sorted(self.found, key=lambda each: order[each.tensor])
        return tuple(self._joined(placed, linked))

    def _fused(self) -> set[tuple[str, str]]:
        """Return the edges (tensor, reader) inside fused sequences."""
        edges: set[tuple[str, str]] = set()
        for operator in self.operators:
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
        return self.moved.get(reader.result)

    def _resolve(self, tensor: str, producer: GraphOperator | None) -> None:
        wants = [(each, self._wanted(tensor, each)) for each in self.readers.get(tensor, [])]
        plain = [reader for reader, demand in wants if demand is None]
        merged: list[_Demand] = []
        for _, demand in wants:
            if demand is not None and not self._merge(merged, demand):
                merged.append(demand)
        if not merged:
            return
        passes = (
            producer is not None
            and producer.kind in self.target.agnostic
            and producer.result not in self.ignored
        )
        if passes and producer and not plain and len(merged) == 1:
            demand = merged[0]
            if producer.kind in self.target.linked and demand.group is None:
                demand = _Demand(demand.specs, demand.readers, self.groups)
                self.groups += 1
            self.moved[tensor] = demand
            return
        reason = self._reason(producer, plain, len(merged))
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

    def _reason(self, producer: GraphOperator | None, plain: list[GraphOperator], ways: int) -> str:
        if producer is None:
            reason = "the network's input"
        elif producer.result in self.ignored:
            reason = f"the result of {producer.kind}, which is ignored"
        else:
            reason = f"the result of {producer.kind}"
        if plain:
            reason += f", which {', '.join(each.result for each in plain)} read as floats"
        return reason + (", quantized in several ways" if ways > 1 else "")

    def _joined(self, placed: list[Placement], linked: Sequence[Sequence[str]]) -> list[Placement]:
        for names in items("linked", linked, tuple, list):
            tensors = items("linked", names, str)
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
    results = [operator.result for operator in operators]
    for at, operator in enumerate(operators):
        late = set(operator.sources) & set(results[at:])
        if late or operator.result in results[:at] or not operator.sources:
            got = f"{shown(operator.result)} of {shown(operator.sources)}"
            raise ArgumentError("graph", got, "operators in order, each with sources before it")
