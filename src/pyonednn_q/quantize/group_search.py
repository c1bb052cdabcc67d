"""The least group that does: of layers in floats, say, that reach an accuracy together.

A group that does is found from the front of an order, its length doubled and then halved; from it
goes what can be left out, in halves, quarters and so on, down to one. Source of the second part:
"Simplifying and Isolating Failure-Inducing Input" (Zeller and Hildebrandt, 2002), section 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

__all__ = ["most_questions", "smallest_group"]

Group = tuple[str, ...]


def smallest_group(
    order: Sequence[str], suffices: Callable[[Group], bool], tries: int | None = None
) -> Group:
    """Return names that suffice together, and none of which can be left out.

    The latter where more names never spoil what fewer reach; elsewhere each was tried once.

    Parameters
    ----------
    order : sequence of str
        Names, those first that will help most. All of them suffice.
    suffices : callable
        Function from names, in their order, to whether they do. Called for no group twice.
    tries : int, optional
        Largest number of questions, from 1 on; then the least group that is known to suffice is
        returned. None: as often as it takes, about 2 · log2 of all, and twice the group's length.

    Examples
    --------
    >>> names = list("abcdefgh")
    >>> smallest_group(names, lambda group: {"b", "f"} <= set(group))
    ('b', 'f')
    """
    whole = tuple(order)
    known = {whole: True}
    for group in _candidates(whole, known):
        if group in known:
            continue
        if tries is not None and len(known) > tries:
            break
        known[group] = suffices(group)
    return min((group for group, does in known.items() if does), key=len)


def most_questions(count: int) -> int:
    """Return how often `smallest_group` asks of so many names at most."""
    lengths = range(1, count + 1)
    rests = (sum(math.ceil(long / size) for size in _sizes(long)) for long in lengths)
    return 2 * count.bit_length() + max(rests, default=0)


def _sizes(long: int) -> list[int]:
    """Return how many names of a group are left out together: half of them, a quarter and so on."""
    half = (long + 1) // 2
    return [half >> at for at in range(half.bit_length())]


def _candidates(names: Group, known: dict[Group, bool]) -> Iterator[Group]:
    """Give one group after another to try; what `known` says of it afterwards decides the next."""
    short, long = 0, 1
    while long < len(names):
        yield names[:long]
        if known[names[:long]]:
            break
        short, long = long, 2 * long
    long = min(long, len(names))
    while long - short > 1:
        middle = (short + long) // 2
        yield names[:middle]
        short, long = (short, middle) if known[names[:middle]] else (middle, long)
    group = names[:long]
    for size in _sizes(long):
        # From the back: what helps least goes first.
        for end in range(len(group), 0, -size):
            rest = group[: max(end - size, 0)] + group[end:]
            yield rest
            group = rest if known[rest] else group
