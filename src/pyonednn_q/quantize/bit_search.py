"""A search over widths by trying: propose, keep to the size, evaluate, keep the best.

    size ratio   Σ weights · bits / (Σ weights · 32): 0.25 of INT8. Less is smaller, the other way
                 round than the compression ratio of bit complexity
    constrained  from the last layer to the first each goes one width down, again and again, until
                 the ratio is kept

In place of the training tool's reinforcement-learning agent (AutoQ): simulated annealing over the
same choices, with the same constraint and the same in- and outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.argument import function, integers, named, real, whole
from pyonednn_q.errors import ArgumentError, Error
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["BitSearch", "SearchTrial", "constrained_bits", "search_bits", "size_ratio"]


@dataclass(frozen=True, slots=True)
class SearchTrial:
    """One try of a search.

    Attributes
    ----------
    number : int
        From 0 on.
    bits : dict of str to int
        By layer.
    score : float
        What `evaluate` said; more is better.
    ratio : float
        Size against FP32.
    best : float
        The greatest score so far, this one included.
    """

    number: int
    bits: dict[str, int]
    score: float
    ratio: float
    best: float

    def __hash__(self) -> int:
        return hash((self.number, *self.bits.items(), self.score))


@dataclass(frozen=True, slots=True)
class BitSearch:
    """What a search came to.

    Attributes
    ----------
    bits : dict of str to int
        Of the best try; of equal ones the first.
    score : float
    trials : tuple of SearchTrial
        All, in order.
    """

    bits: dict[str, int]
    score: float
    trials: tuple[SearchTrial, ...]

    def __hash__(self) -> int:
        return hash((*self.bits.items(), self.score, self.trials))


def size_ratio(bits: Mapping[str, int], weights: Mapping[str, int]) -> float:
    """Return the size of all weights against FP32.

    Parameters
    ----------
    bits : mapping of str to int
        Width by layer.
    weights : mapping of str to int
        Number of weights by layer, at least 1.

    Raises
    ------
    ArgumentError
        Layers differ.

    Examples
    --------
    >>> size_ratio({"a": 8, "b": 8}, {"a": 10, "b": 90})
    0.25
    """
    widths = named("bits", bits, int)
    counts = {
        n: whole(f"weights[{n!r}]", of, 1, 2**62)
        for n, of in named("weights", weights, int).items()
    }
    if set(widths) != set(counts) or not widths:
        raise ArgumentError("weights", shown(counts), f"of layers {shown(tuple(widths))}")
    size = sum(whole("bits", widths[n], lo=0) * counts[n] for n in widths)
    return float(size / (32 * sum(counts.values())))


def constrained_bits(
    bits: Mapping[str, int],
    choices: Mapping[str, Sequence[int]],
    weights: Mapping[str, int],
    ratio: float,
) -> dict[str, int]:
    """Return widths lowered, from the last layer to the first, until a size is kept.

    Parameters
    ----------
    bits : mapping of str to int
        Proposed widths.
    choices : mapping of str to sequence of int
        Those that each layer may have.
    weights : mapping of str to int
        Number of weights by layer.
    ratio : float
        Greatest size against FP32.

    Raises
    ------
    ArgumentError
        Even the least widths are larger.

    Examples
    --------
    >>> choices = {"a": (4, 8), "b": (4, 8)}
    >>> constrained_bits({"a": 8, "b": 8}, choices, {"a": 10, "b": 10}, 0.2)
    {'a': 8, 'b': 4}
    """
    chosen = named("bits", bits, int)
    steps = _steps(choices, chosen)
    most = real("ratio", ratio)
    while size_ratio(chosen, weights) > most:
        moved = False
        for name in reversed(chosen):
            below = [width for width in steps[name] if width < chosen[name]]
            if below:
                chosen[name], moved = max(below), True
                if size_ratio(chosen, weights) <= most:
                    return chosen
        if not moved:
            least = f"at least {size_ratio(chosen, weights):.6g}, the least widths"
            raise ArgumentError("ratio", shown(ratio), least)
    return chosen


def search_bits(
    evaluate: Callable[[dict[str, int]], float],
    choices: Mapping[str, Sequence[int]],
    weights: Mapping[str, int],
    ratio: float,
    *,
    trials: int = 100,
    temperature: float = 0.02,
    seed: int = 0,
    log: Callable[[SearchTrial], object] | None = None,
) -> BitSearch:
    """Return the best widths of a search by simulated annealing.

    Parameters
    ----------
    evaluate : callable
        Takes widths by layer, returns a score, more being better: an accuracy, say.
    choices : mapping of str to sequence of int
        Widths that each layer may have.
    weights : mapping of str to int
        Number of weights by layer.
    ratio : float
        Greatest size against FP32; every try keeps to it (`constrained_bits`).
    trials : int
        How many tries; the first has the greatest widths that keep to the ratio. Widths that came
        before are not evaluated again.
    temperature : float
        By how much a score may be worse at first, to be gone on from with probability 1/e; falls
        to 0.
    seed : int
        The same seed and scores give the same search.
    log : callable, optional
        Takes each `SearchTrial` as it is done. For TensorBoard:
        ``lambda trial: writer.add_scalar("score", trial.score, trial.number)``.

    Raises
    ------
    ArgumentError
        Naming the argument; what `evaluate` raises becomes an error about it.

    Examples
    --------
    >>> choices = {"a": (4, 8), "b": (4, 8)}
    >>> found = search_bits(lambda bits: bits["b"], choices, {"a": 9, "b": 9}, 0.2, trials=20)
    >>> found.bits
    {'a': 4, 'b': 8}
    """
    function("evaluate", evaluate)
    if log is not None:
        function("log", log)
        if isinstance(log, type):  # what its instances take is no business of ours
            raise ArgumentError("log", f"the class {log.__name__}", "a function")
    count = whole("trials", trials, lo=1, hi=10**6)
    heat = real("temperature", temperature)
    chance = np.random.default_rng(whole("seed", seed, lo=0))
    names = list(named("choices", choices, object))
    steps = _steps(choices, dict.fromkeys(names, 0))
    now = constrained_bits({n: max(steps[n]) for n in names}, choices, weights, ratio)
    known: dict[tuple[int, ...], float] = {}
    done: list[SearchTrial] = []
    best, at = now, -math.inf
    for number in range(count):
        widths = now
        if number:
            widths = dict(now)
            for name in chance.choice(names, size=min(2, len(names)), replace=False):
                widths[str(name)] = int(chance.choice(steps[str(name)]))
            widths = constrained_bits(widths, choices, weights, ratio)
        key = tuple(widths.values())
        if key not in known:
            known[key] = _score(evaluate, widths)
        score = known[key]
        top = max(score, done[-1].best) if done else score
        if not done or score > done[-1].best:
            best = widths
        done.append(SearchTrial(number, dict(widths), score, size_ratio(widths, weights), top))
        if log is not None:
            _told(log, done[-1])
        heated = heat * (1.0 - number / count)
        if score >= at or (heated > 0.0 and chance.random() < math.exp((score - at) / heated)):
            now, at = widths, score
    return BitSearch(dict(best), done[-1].best, tuple(done))


def _told(log: Callable[[SearchTrial], object], trial: SearchTrial) -> None:
    try:
        log(trial)
    except Error:
        raise
    except Exception as error:
        got = f"a function that raises {type(error).__name__}"
        raise ArgumentError("log", got, "one that takes a trial") from error


def _score(evaluate: Callable[[dict[str, int]], float], bits: dict[str, int]) -> float:
    try:
        score = evaluate(dict(bits))
    except Error:
        raise
    except Exception as error:
        got = f"a function that raises {type(error).__name__}"
        raise ArgumentError("evaluate", got, "one that takes widths by layer") from error
    return real("evaluate()", score, wide=True)


def _steps(choices: Mapping[str, Sequence[int]], layers: Mapping[str, int]) -> dict[str, list[int]]:
    by_layer = named("choices", choices, object)
    if set(by_layer) != set(layers) or not by_layer:
        raise ArgumentError("choices", shown(tuple(by_layer)), f"layers {shown(tuple(layers))}")
    steps = {name: sorted(set(integers("choices", widths))) for name, widths in by_layer.items()}
    if not all(widths and widths[0] > 0 for widths in steps.values()):
        raise ArgumentError("choices", shown(by_layer), "widths above 0 for every layer")
    return steps
