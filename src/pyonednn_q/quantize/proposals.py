"""Proposals of widths in a search: generators that are sent the result of the last one.

    random       each layer's width drawn anew
    anneal       one or two layers drawn anew, from the last widths that were accepted: better ones
                 always, worse ones with probability exp(−lost / (heat · spread of all scores))
    greedy       all that differ by one step of one layer; the best of them, while it is better
    coordinate   every width of one layer after the other; the best of each, while any gets better

The last two begin anew at random where nothing gets better. All begin with the greatest widths.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["STRATEGIES", "SearchTrial"]

Widths = dict[str, int]
Steps = dict[str, list[int]]


@dataclass(frozen=True, slots=True)
class SearchTrial:
    """One trial of a search.

    Attributes
    ----------
    number : int
        Number of the trial, from 0.
    bits : dict of str to int
        Width of each layer, in bits.
    score : float
        Score by `evaluate` of `search_bits`; higher is better.
    ratio : float
        Size divided by the size in FP32.
    best : float
        Highest score so far, this one included.
    reward : float
        Reward of the score (`reward`).
    """

    number: int
    bits: Widths
    score: float
    ratio: float
    best: float
    reward: float

    def __hash__(self) -> int:
        return hash((self.number, *self.bits.items(), self.score))


Proposals = Generator[Widths, SearchTrial, None]


def _drawn(steps: Steps, chance: np.random.Generator, names: Sequence[str] = ()) -> Widths:
    return {name: int(chance.choice(steps[name])) for name in names or steps}


def _widest(steps: Steps) -> Widths:
    return {name: max(widths) for name, widths in steps.items()}


def _at_random(steps: Steps, chance: np.random.Generator, heats: Iterator[float]) -> Proposals:
    del heats
    yield _widest(steps)
    while True:
        yield _drawn(steps, chance)


def _annealed(steps: Steps, chance: np.random.Generator, heats: Iterator[float]) -> Proposals:
    now = yield _widest(steps)
    least = greatest = now.score
    names = np.array(list(steps))
    for heat in heats:
        few = chance.choice(names, size=min(int(chance.integers(1, 3)), len(names)), replace=False)
        tried = yield now.bits | _drawn(steps, chance, [str(name) for name in few])
        least, greatest = min(least, tried.score), max(greatest, tried.score)
        heated = heat * (greatest - least)
        lost = now.score - tried.score
        if lost <= 0.0 or (heated > 0.0 and chance.random() < math.exp(-lost / heated)):
            now = tried


def _climbed(
    moves: Callable[[Steps, Mapping[str, int], np.random.Generator], list[list[Widths]]],
) -> Callable[[Steps, np.random.Generator, Iterator[float]], Proposals]:
    """Return the search that takes the best move of each set, until none gets better."""

    def climb(steps: Steps, chance: np.random.Generator, heats: Iterator[float]) -> Proposals:
        del heats
        start = _widest(steps)
        while True:
            now = yield start
            better = True
            while better:
                before = now
                for changes in moves(steps, now.bits, chance):
                    from_here = now.bits
                    for change in changes:
                        tried = yield from_here | change
                        now = tried if tried.score > now.score else now
                better = now.score > before.score
            start = _drawn(steps, chance)

    return climb


def _one_step(
    steps: Steps, bits: Mapping[str, int], chance: np.random.Generator
) -> list[list[Widths]]:
    """Return one set: each layer one width up or down."""
    del chance
    changes = []
    for name, widths in steps.items():
        at = widths.index(bits[name])
        changes += [
            {name: width} for width in widths[max(at - 1, 0) : at + 2] if width != bits[name]
        ]
    return [changes]


def _every_width(
    steps: Steps, bits: Mapping[str, int], chance: np.random.Generator
) -> list[list[Widths]]:
    """Return a set for each layer, in random order: all its widths."""
    del bits
    names = [str(name) for name in chance.permutation(list(steps))]
    return [[{name: width} for width in steps[name]] for name in names]


STRATEGIES: dict[str, Callable[[Steps, np.random.Generator, Iterator[float]], Proposals]] = {
    "anneal": _annealed,
    "random": _at_random,
    "greedy": _climbed(_one_step),
    "coordinate": _climbed(_every_width),
}
"""Searches by name: they take steps of width by layer, chance, and falling heats."""
