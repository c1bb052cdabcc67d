"""Where tensors lie in one block of memory: those that live at the same time lie apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

LINE = 64  # bytes of the caches


@dataclass(frozen=True, slots=True)
class Lifetime:
    """How long a tensor is needed, and how large it is.

    Attributes
    ----------
    name : str
        Name of the tensor.
    nbytes : int
        From its first byte to its last.
    first, last : int
        The step that writes it, and the last one that reads it.
    """

    name: str
    nbytes: int
    first: int
    last: int


def arranged(lifetimes: Iterable[Lifetime]) -> tuple[dict[str, int], int]:
    """Return where each tensor begins, on cache lines, and how many bytes all take.

    The largest first, each at the lowest place that is free as long as it lives: within a few
    percent of the least for networks, which is hard to find.

    Examples
    --------
    >>> chain = [Lifetime("a", 100, 0, 1), Lifetime("b", 64, 1, 2), Lifetime("c", 100, 2, 3)]
    >>> arranged(chain)
    ({'a': 0, 'c': 0, 'b': 128}, 192)
    """
    offsets: dict[str, int] = {}
    placed: list[tuple[int, int, Lifetime]] = []
    total = 0
    for tensor in sorted(lifetimes, key=lambda one: (-one.nbytes, one.first)):
        size = -(-tensor.nbytes // LINE) * LINE
        at = 0
        for begin, end, other in sorted(placed, key=lambda one: one[0]):
            if other.last < tensor.first or tensor.last < other.first:
                continue
            if at + size <= begin:
                break
            at = max(at, end)
        offsets[tensor.name] = at
        placed.append((at, at + size, tensor))
        total = max(total, at + size)
    return offsets, total
