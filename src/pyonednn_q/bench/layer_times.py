"""Times of a network's layers in each width that they may have: the costs of a latency bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyonednn_q.argument import function, named
from pyonednn_q.bench.summary import summarise
from pyonednn_q.errors import ArgumentError
from pyonednn_q.native.timing import Budget, interleaved, looped
from pyonednn_q.shown import shown

__all__ = ["layer_times"]


def layer_times(
    layers: Mapping[str, Mapping[int, Callable[[], Any]]], *, min_time: float = 0.15
) -> dict[str, dict[int, float]]:
    """Return the median time of each layer in each width, in microseconds.

    Parameters
    ----------
    layers : mapping of str to mapping of int to callable
        Calls of each layer, by width in bits: ``lambda: conv(src, out=dst)``. All widths of all
        layers take turns, so that other work of the machine disturbs all of them alike.
    min_time : float
        Timed seconds of each, on average.

    Returns
    -------
    dict
        Microseconds by layer and width, which `pyonednn_q.quantize.assign_bits` takes as costs.

    Raises
    ------
    ArgumentError
        No layers, or what cannot be called.
    """
    table: dict[str, dict[int, Any]] = {}
    for name, row in named("layers", layers, object).items():
        if not isinstance(row, Mapping) or not row:
            raise ArgumentError("layers", shown(row), "calls by width, for every layer")
        table[name] = dict(row)
        for call in row.values():
            function("layers", call)
    if not table:
        raise ArgumentError("layers", "none", "at least one")
    places = [(name, bits) for name, row in table.items() for bits in row]
    timed = interleaved([looped(table[name][bits]) for name, bits in places], Budget(min_time))
    times: dict[str, dict[int, float]] = {name: {} for name in table}
    for (name, bits), each in zip(places, timed, strict=True):
        times[name][bits] = summarise(each.samples_us).median
    return times
