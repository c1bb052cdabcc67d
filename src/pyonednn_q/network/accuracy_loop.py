"""Which layers stay in floats, in which type, and how many for a metric to be good enough."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias, TypeVar

import numpy as np

from pyonednn_q.argument import applied, function, items, named, one_of, real
from pyonednn_q.errors import ArgumentError
from pyonednn_q.native import runtime
from pyonednn_q.shown import shown

FLOAT_TYPES = ("f32", "bf16")
Floats: TypeAlias = Iterable[str] | Mapping[str, str]
Runs = TypeVar("Runs")

_BF16_LEVELS = ("AVX512_CORE_BF16", "AVX2_VNNI_2")


def float_type(asked: str) -> tuple[str, str]:
    """Return in which type a layer runs here that was asked for in one, and why.

    Parameters
    ----------
    asked : {"f32", "bf16"}
        bf16 becomes f32 on a processor without instructions for it.
    """
    isa = runtime.isa()
    if asked == "bf16" and not any(isa.has(level) for level in _BF16_LEVELS):
        return "f32", f"f32 in place of bf16, for which {isa.text()} has no instructions"
    return asked, f"{asked}, as asked for"


def float_types(floats: object, layers: tuple[str, ...]) -> dict[str, str]:
    """Return the types of layers that stay in floats.

    Parameters
    ----------
    floats : iterable of str, or mapping of str to {"f32", "bf16"}
        Names of layers; f32 unless said.
    layers : tuple of str
        All that there are.

    Raises
    ------
    ArgumentError
        A name that is no layer's; another type.
    """
    if isinstance(floats, Mapping):
        types = named("floats", floats, str)
    else:
        types = dict.fromkeys(items("floats", floats, str), "f32")
    for name, dtype in types.items():
        if name not in layers:
            raise ArgumentError("floats", shown(name), f"layers of {shown(layers)}")
        one_of(f"floats[{shown(name)}]", dtype, FLOAT_TYPES)
    return types


def usual_wei_bits() -> int:
    """Return how many bits weights may have for this processor to add products exactly: 8 or 7."""
    return 8 if runtime.isa().has_vnni() else 7


def turned_back(
    layers: tuple[str, ...],
    floats: Mapping[str, str],
    make: Callable[[Mapping[str, str]], Runs],
    metric: Callable[[Runs], float],
    least: float,
    dtype: str,
    sensitivity: Callable[[], Iterable[str]],
) -> dict[str, str]:
    """Return which layers are in floats when a metric has reached what it must.

    Parameters
    ----------
    layers : tuple of str
        All of them.
    floats : mapping of str to str
        Those that are in floats to begin with, and their types.
    make : callable
        From such a mapping to what runs.
    metric : callable
        From what runs to a number that is higher where it is better.
    least : float
        What it must reach.
    dtype : {"f32", "bf16"}
        Of the layers that are turned back.
    sensitivity : callable
        Gives all layers, the one to turn back first at the front; called if one must be.

    Raises
    ------
    ArgumentError
        Not even with all layers in floats.
    """
    function("metric", metric)
    least = real("least", least, wide=True)
    one_of("dtype", dtype, FLOAT_TYPES)
    found = dict(floats)
    order: list[str] = []
    while True:
        reached = _number(metric, make(found))
        if reached >= least:
            return found
        if len(found) == len(layers):
            raise ArgumentError("least", f"{least:g}, where no layer is INT8", f"<= {reached:g}")
        order = order or [name for name in sensitivity() if name not in found]
        found[order.pop(0)] = dtype


def _number(metric: Callable[[Runs], float], runs: Runs) -> float:
    result = np.asarray(applied("metric", metric, runs))
    if result.size != 1:
        raise ArgumentError("metric", f"a result of shape {result.shape}", "a number")
    return real("metric", result.item(), wide=True)
