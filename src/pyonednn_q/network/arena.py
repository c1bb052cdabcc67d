"""Offsets of tensors in one block of memory; tensors that live at the same time do not overlap."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyonednn_q.native.arrays import LINE

if TYPE_CHECKING:
    from collections.abc import Mapping


def arranged(
    tensors: Mapping[str, tuple[int, int, int]],
) -> tuple[dict[str, int], int]:
    """Return where each tensor begins, on cache lines, and how many bytes all take.

    The largest first, each at the lowest place that is free as long as it lives: within a few
    percent of the least for networks, which is hard to find.

    Parameters
    ----------
    tensors : mapping of str to (int, int, int)
        Bytes of each tensor, from its first to its last; the step that writes it, and the last one
        that reads it.

    Examples
    --------
    >>> arranged({"a": (100, 0, 1), "b": (64, 1, 2), "c": (100, 2, 3)})
    ({'a': 0, 'c': 0, 'b': 128}, 192)
    """
    offsets: dict[str, int] = {}
    placed: list[tuple[int, int, int, int]] = []  # bytes and steps, each from and to
    total = 0
    for name, (nbytes, first, last) in sorted(
        tensors.items(), key=lambda each: (-each[1][0], each[1][1])
    ):
        size = -(-nbytes // LINE) * LINE
        at = 0
        for begin, end, since, until in sorted(placed, key=lambda one: one[0]):
            if until < first or last < since:
                continue
            if at + size <= begin:
                break
            at = max(at, end)
        offsets[name] = at
        placed.append((at, at + size, first, last))
        total = max(total, at + size)
    return offsets, total
