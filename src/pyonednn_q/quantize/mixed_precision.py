"""Number of bits of each layer: the least sensitivity whose cost stays within a bound.

A cost is any number that adds up over layers: FLOPs · bits, bytes, or microseconds measured on this
machine (`pyonednn_q.bench.layer_times`).

    bit complexity   Σ flops · max(wei_bits, src_bits)
    ratio            Σ flops · 8 / that: how much less than INT8
    assignment       minimise Σ sensitivity subject to Σ cost <= limit

Without `order` that is the multiple-choice knapsack problem, solved exactly by keeping all partial
choices that no other beats in both sums. With `order`, layers by ascending average trace, only
sequences of widths that never fall along it are looked at, all of them, as NNCF's HAWQ does; a
layer without a width of the sequence has its nearest. Layers that `same` names together have one
width, in both ways: those that read one tensor, where widths are "strict".
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.argument import integers, items, named, numbers, one_of, real, whole
from pyonednn_q.errors import ArgumentError
from pyonednn_q.report.told import Told
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["BitAssignment", "assign_bits", "bit_complexities", "ratio_limit", "source_bits"]

Table = dict[str, dict[int, float]]
_MOST_KEPT = 200_000
_MOST_SEQUENCES = 2_000_000
_WIDTHS = ("strict", "liberal")


@dataclass(frozen=True, slots=True, repr=False)
class BitAssignment(Told):
    """A width for each layer.

    Attributes
    ----------
    bits : dict of str to int
        Width of each layer, in bits.
    sensitivity, cost : float
        Sums over the layers.
    exact : bool
        Whether no other choice is less sensitive within the limit (with `order`: no other sequence
        that never falls). False where more than 200 000 partial choices had to be thinned out.
    """

    bits: dict[str, int]
    sensitivity: float
    cost: float
    exact: bool

    def __hash__(self) -> int:
        return hash((*self.bits.items(), self.sensitivity, self.cost))

    def text(self) -> str:
        """Return a line for each layer, and one for the sums."""
        lines = [f"{name}: {bits} bits" for name, bits in self.bits.items()]
        return "\n".join([*lines, f"sensitivity {self.sensitivity:.6g}, cost {self.cost:.6g}"])


def source_bits(
    wei_bits: int, allowed: Sequence[int], widths: str = "strict", group: Sequence[int] = ()
) -> int:
    """Return the width of a layer's source.

    Parameters
    ----------
    wei_bits : int
        Bits of the layer's weights.
    allowed : sequence of int
        Widths that its source may have.
    widths : {"strict", "liberal"}
        One width for the source and all weights that read it; or the least allowed width that
        weights which read the source have, and the least allowed where there is none.
    group : sequence of int
        Widths of all weights that read the source; these alone when empty.

    Raises
    ------
    ArgumentError
        No allowed width; of "strict" one that is not allowed, or several in the group (`same` of
        `assign_bits` makes them one).

    Examples
    --------
    >>> source_bits(4, (8,), "liberal"), source_bits(4, (4, 8), "liberal", group=(8, 4))
    (8, 4)
    """
    one_of("widths", widths, _WIDTHS)
    wei_bits = whole("wei_bits", wei_bits, lo=1, hi=64)
    may = integers("allowed", allowed)
    if not may:
        raise ArgumentError("allowed", "no widths", "at least one")
    readers = integers("group", group) or (wei_bits,)
    if widths == "strict":
        if wei_bits not in may:
            raise ArgumentError("wei_bits", shown(wei_bits), f"one of {may}, as the source")
        if set(readers) != {wei_bits}:
            raise ArgumentError("group", shown(readers), f"{wei_bits} bits alone, where strict")
        return wei_bits
    return min(set(may) & set(readers), default=min(may))


def bit_complexities(flops: Mapping[str, float], choices: Mapping[str, Mapping[int, int]]) -> Table:
    """Return the costs of widths: flops · max(wei_bits, src_bits), by layer and weight width.

    Parameters
    ----------
    flops : mapping of str to float
        Operations of each layer, above 0.
    choices : mapping of str to mapping of int to int
        Widths of each layer in bits: its weights' possible widths, and the width of the source with
        each (`source_bits`).

    Raises
    ------
    ArgumentError
        Layers differ; a number that is not above 0.

    Examples
    --------
    >>> bit_complexities({"conv": 100.0}, {"conv": {8: 8, 4: 8}})
    {'conv': {8: 800.0, 4: 800.0}}
    """
    operations = named("flops", flops, object)
    widths = named("choices", choices, object)
    if set(operations) != set(widths) or not widths:
        raise ArgumentError("choices", shown(tuple(widths)), f"layers {shown(tuple(operations))}")
    table: Table = {}
    for name, pairs in widths.items():
        argument = f"flops[{name!r}]"
        one = real(argument, operations[name], wide=True)
        if one <= 0.0 or not hasattr(pairs, "items") or not pairs:
            raise ArgumentError(argument, shown(one), "above 0, and widths of choices")
        table[name] = {}
        for wei, src in pairs.items():
            both = integers("choices", (wei, src))
            table[name][both[0]] = one * max(both)
    return table


def ratio_limit(
    flops: Mapping[str, float], costs: Mapping[str, Mapping[int, float]], ratio: float = 1.5
) -> float:
    """Return the bit complexity of INT8 divided by `ratio`.

    Parameters
    ----------
    flops : mapping of str to float
        Operations of each layer.
    costs : mapping of str to mapping of int to float
        Costs of the widths of each layer, for example from `bit_complexities`.
    ratio : float
        The compression, above 0.

    Raises
    ------
    ArgumentError
        A ratio that no choice of widths reaches.

    Examples
    --------
    >>> flops = {"a": 100.0, "b": 50.0}
    >>> costs = bit_complexities(flops, {"a": {8: 8, 4: 4}, "b": {8: 8, 4: 4}})
    >>> ratio_limit(flops, costs)
    800.0
    """
    table = _table("costs", costs)
    wanted = real("ratio", ratio)
    int8 = sum(real("flops", one, wide=True) * 8 for one in named("flops", flops, object).values())
    least = int8 / sum(max(row.values()) for row in table.values())
    most = int8 / sum(min(row.values()) for row in table.values())
    if not least <= wanted <= most:
        raise ArgumentError("ratio", shown(ratio), f"a number from {least:.4g} to {most:.4g}")
    return int8 / wanted


def assign_bits(
    sensitivities: Mapping[str, Mapping[int, float]],
    costs: Mapping[str, Mapping[int, float]],
    limit: float,
    *,
    order: Sequence[str] | None = None,
    by_hand: Mapping[str, int] | None = None,
    same: Sequence[Sequence[str]] = (),
) -> BitAssignment:
    """Return the widths of least sensitivity whose costs stay within a limit.

    Parameters
    ----------
    sensitivities : mapping of str to mapping of int to float
        Loss of each layer by each of its possible widths: from `sensitivity`, or from output
        error on data.
    costs : mapping of str to mapping of int to float
        Cost of each width, in any unit, for the same layers and widths.
    limit : float
        Largest sum of costs, in that unit.
    order : sequence of str, optional
        All layers by ascending average trace: widths never fall along it.
    by_hand : mapping of str to int, optional
        Widths of layers that are fixed beforehand.
    same : sequence of sequence of str
        Sets of layers with one width, such as those that read one tensor (`readers` of each
        `Placement`). Overlapping sets are joined.

    Raises
    ------
    ArgumentError
        No choice stays within the limit (the error says the least cost); layers or widths differ;
        layers of one width have none in common; too many sequences.

    Examples
    --------
    >>> lost = {"a": {8: 0.1, 4: 5.0}, "b": {8: 0.2, 4: 0.9}}
    >>> cost = {"a": {8: 8.0, 4: 4.0}, "b": {8: 8.0, 4: 4.0}}
    >>> assign_bits(lost, cost, 12.0).bits
    {'a': 8, 'b': 4}
    >>> assign_bits(lost, cost, 12.0, same=[("a", "b")]).bits
    {'a': 4, 'b': 4}
    """
    lost, price = _table("sensitivities", sensitivities), _table("costs", costs)
    if {n: set(r) for n, r in lost.items()} != {n: set(r) for n, r in price.items()}:
        raise ArgumentError("costs", "other layers or widths", "those of sensitivities")
    most = real("limit", limit, wide=True)
    for name, bits in named("by_hand", by_hand, int).items():
        if bits not in lost.get(name, {}):
            wanted = f"one of {sorted(lost.get(name, {}))}" if name in lost else "a layer's name"
            argument = f"by_hand[{name!r}]"
            raise ArgumentError(argument, shown(bits), wanted)
        lost[name], price[name] = {bits: lost[name][bits]}, {bits: price[name][bits]}
    groups = _groups(
        tuple(lost), [items("same", names, str) for names in items("same", same, tuple, list)]
    )
    one_lost, one_price = _summed(lost, groups), _summed(price, groups)
    least = sum(min(row.values()) for row in one_price.values())
    if least > most * (1.0 + 1e-12):  # sums in another order may differ in their last bit
        raise ArgumentError("limit", shown(limit), f"at least {least:.6g}, what the cheapest costs")
    if order is None:
        of_groups, exact = _knapsack(one_lost, one_price, most)
        widths = {name: of_groups[group[0]] for group in groups for name in group}
        widths = {name: widths[name] for name in lost}
    else:
        along = items("order", order, str)
        widths, exact = _never_falling(lost, price, most, along, groups), True
    return BitAssignment(
        widths,
        sum(lost[name][bits] for name, bits in widths.items()),
        sum(price[name][bits] for name, bits in widths.items()),
        exact,
    )


def _table(name: str, value: Any) -> Table:  # noqa: ANN401
    table: Table = {}
    for layer, row in named(name, value, object).items():
        argument = f"{name}[{layer!r}]"
        pairs = dict(row) if hasattr(row, "keys") else {}
        if not pairs or not all(type(bits) is int for bits in pairs):
            raise ArgumentError(argument, shown(row), "numbers by width in bits")
        values = [numbers(name, one).astype(float) for one in pairs.values()]
        if any(one.ndim or not np.isfinite(one) for one in values):
            raise ArgumentError(argument, shown(row), "finite numbers")
        table[layer] = dict(zip(pairs, map(float, values), strict=True))
    if not table:
        raise ArgumentError(name, "no layers", "at least one")
    return table


def _groups(layers: tuple[str, ...], same: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Return all layers in sets that have one width, in the order of the layers."""
    group = {name: {name} for name in layers}
    for names in same:
        if unknown := [name for name in names if name not in group]:
            raise ArgumentError("same", shown(unknown), f"layers of {shown(layers)}")
        joined = set().union(*(group[name] for name in names))
        group |= dict.fromkeys(joined, joined)
    ordered = (tuple(each for each in layers if each in group[name]) for name in layers)
    return tuple(dict.fromkeys(ordered))


def _summed(table: Table, groups: tuple[tuple[str, ...], ...]) -> Table:
    """Return a row for each set, by its first layer: the sums of widths that all of it may have."""
    rows: Table = {}
    for names in groups:
        common = [bits for bits in table[names[0]] if all(bits in table[name] for name in names)]
        if not common:
            raise ArgumentError("same", shown(names), "layers with a width in common")
        rows[names[0]] = {bits: sum(table[name][bits] for name in names) for bits in common}
    return rows


def _knapsack(lost: Table, price: Table, limit: float) -> tuple[dict[str, int], bool]:
    """Return the best choice: keep all partial ones that are not beaten in both sums."""
    names = list(lost)
    rest = [min(price[name].values()) for name in names]
    after = np.append(np.cumsum(rest[::-1])[::-1], 0.0)
    costs, losses = np.zeros(1), np.zeros(1)
    steps: list[tuple[Any, Any, list[int]]] = []  # of each layer: whence, which width
    exact = True
    for at, name in enumerate(names):
        widths = list(lost[name])
        new_costs = np.add.outer(costs, [price[name][b] for b in widths]).ravel()
        new_losses = np.add.outer(losses, [lost[name][b] for b in widths]).ravel()
        # Sums in another order may differ in their last bit from the caller's.
        within = new_costs + after[at + 1] <= limit * (1.0 + 1e-12) + 1e-300
        order = np.flatnonzero(within)
        order = order[np.lexsort((new_losses[order], new_costs[order]))]
        best = np.minimum.accumulate(new_losses[order])
        keep = np.append(True, new_losses[order][1:] < best[:-1])
        order = order[keep]
        if order.size > _MOST_KEPT:
            exact = False
            order = order[np.unique(np.linspace(0, order.size - 1, _MOST_KEPT).astype(int))]
        steps.append((order // len(widths), order % len(widths), widths))
        costs, losses = new_costs[order], new_losses[order]
    at_last = int(np.argmin(losses))
    chosen: dict[str, int] = {}
    for name, (whence, which, widths) in zip(reversed(names), reversed(steps), strict=True):
        chosen[name] = widths[int(which[at_last])]
        at_last = int(whence[at_last])
    return {name: chosen[name] for name in names}, exact


def _never_falling(
    lost: Table,
    price: Table,
    limit: float,
    order: tuple[str, ...],
    groups: tuple[tuple[str, ...], ...],
) -> dict[str, int]:
    if sorted(order) != sorted(lost):
        raise ArgumentError("order", shown(order), "every layer once")
    widths = sorted({bits for row in lost.values() for bits in row})
    count = 1
    for k in range(1, len(widths)):
        count = count * (len(order) + k) // k
    if count > _MOST_SEQUENCES:
        raise ArgumentError("order", f"{count} sequences", "fewer layers or widths, or no order")
    nearest = {
        name: {
            bits: min((abs(one - bits), at, one) for at, one in enumerate(row))[-1]
            for bits in widths
        }
        for name, row in lost.items()
    }
    best, least = None, np.inf
    for sequence in combinations_with_replacement(widths, len(order)):
        pairs = {n: nearest[n][bits] for n, bits in zip(order, sequence, strict=True)}
        if any(len({pairs[name] for name in group}) > 1 for group in groups):
            continue
        if sum(price[name][bits] for name, bits in pairs.items()) > limit * (1.0 + 1e-12):
            continue
        total = sum(lost[name][bits] for name, bits in pairs.items())
        if total < least:
            best, least = pairs, total
    if best is None:
        raise ArgumentError("limit", shown(limit), "one that a sequence that never falls keeps")
    return {name: best[name] for name in lost}
