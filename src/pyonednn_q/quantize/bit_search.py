"""A search over widths by trying: propose, keep to the size, align, evaluate, keep the best.

    size ratio   Σ weights · bits / (Σ weights · 32): 0.25 of INT8. Less is smaller, the other way
                 round than the compression ratio of bit complexity
    constrained  from the last layer to the first each goes one width down, again and again, until
                 the ratio is kept
    aligned      layers that read one tensor: none is wider than the least of them, or than the
                 least width that all have where that one is not among those
    reward       score · 10^−floor(log10 |baseline|): what its agent learns from
    an action    from 0 to 1, of an agent: 2 bits up to 2^5/2^8, 4 up to 2^7/2^8, else 8; a width
                 that a layer has not becomes its nearest

The loop of the training tool's AutoQ (NNCF 2.18), but for its agent, a network that is trained on
the way: searches that learn nothing stand in its place (`pyonednn_q.quantize.proposals`), and any
function of one's own may.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.argument import function, integers, items, named, one_of, real, whole
from pyonednn_q.errors import ArgumentError, Error
from pyonednn_q.quantize.proposals import STRATEGIES, SearchTrial
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["BitSearch", "constrained_bits", "reward", "search_bits", "size_ratio"]

_ACTIONS = ((0.125, 2), (0.5, 4), (1.0, 8))
_REPEATS, _MOST_REPEATS = 50, 2000


@dataclass(frozen=True, slots=True)
class BitSearch:
    """Result of a search of widths.

    Attributes
    ----------
    bits : dict of str to int
        Widths of the best trial; the first one among equals.
    score : float
    trials : tuple of SearchTrial
        All trials, in order.
    """

    bits: dict[str, int]
    score: float
    trials: tuple[SearchTrial, ...]

    def __hash__(self) -> int:
        return hash((*self.bits.items(), self.score, self.trials))


def size_ratio(bits: Mapping[str, int], weights: Mapping[str, int]) -> float:
    """Return the size of all weights divided by their size in FP32.

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
    """Return widths that are lowered, from the last layer to the first, until the size fits.

    Parameters
    ----------
    bits : mapping of str to int
        Proposed widths.
    choices : mapping of str to sequence of int
        Widths that each layer may have.
    weights : mapping of str to int
        Number of weights by layer.
    ratio : float
        Largest size, divided by the size in FP32.

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


def reward(score: float, baseline: float) -> float:
    """Return a score divided by the power of ten of the baseline: 71.3 of 75 is 7.13.

    Parameters
    ----------
    score : float
        Score of a quantized network.
    baseline : float
        Score of the float network; 0 leaves the score as it is.

    Examples
    --------
    >>> round(reward(71.3, 75.0), 12), reward(0.5, 0.0)
    (7.13, 0.5)
    """
    value, of = real("score", score, wide=True), real("baseline", baseline, wide=True)
    return value if of == 0.0 else value * 10.0 ** -math.floor(math.log10(abs(of)))


Propose = Callable[[tuple[SearchTrial, ...]], Mapping[str, float]]


def search_bits(
    evaluate: Callable[[dict[str, int]], float],
    choices: Mapping[str, Sequence[int]],
    weights: Mapping[str, int],
    ratio: float,
    *,
    propose: str | Propose = "anneal",
    trials: int = 100,
    warmup: int = 0,
    same: Sequence[Sequence[str]] = (),
    baseline: float = 0.0,
    temperature: float = 0.1,
    seed: int = 0,
    log: Callable[[SearchTrial], object] | None = None,
) -> BitSearch:
    """Return the best widths of a search.

    Parameters
    ----------
    evaluate : callable
        Function from widths by layer to a score, higher for better, such as an accuracy.
    choices : mapping of str to sequence of int
        Widths that each layer may have.
    weights : mapping of str to int
        Number of weights by layer.
    ratio : float
        Largest size, divided by the size in FP32; every trial keeps it (`constrained_bits`).
    propose : {"anneal", "random", "greedy", "coordinate"} or callable
        Method that proposes widths. A callable takes all trials so far and returns, for each layer,
        a width or an agent's action, a float from 0 to 1.
    trials : int
        Number of evaluations; no widths are evaluated twice, and fewer are evaluated if the search
        finds no others. Each proposal of a callable counts; a repeated one keeps its score.
    warmup : int
        Number of trials with random widths before a callable is called.
    same : sequence of sequence of str
        Sets of layers that read one tensor; they get one width.
    baseline : float
        Score of the float network, for `reward`.
    temperature : float
        Fraction of the spread of all scores, for "anneal": a score worse by that much is at first
        accepted with probability 1/e; the fraction falls to 0.
    seed : int
        The same seed and scores give the same search.
    log : callable, optional
        Function that gets each `SearchTrial` when it is done. For TensorBoard:
        ``lambda trial: writer.add_scalar("score", trial.score, trial.number)``.

    Raises
    ------
    ArgumentError
        Naming the argument; what `evaluate` raises becomes an error about it.

    Examples
    --------
    >>> choices = {"a": (4, 8), "b": (4, 8)}
    >>> found = search_bits(lambda bits: bits["b"], choices, {"a": 9, "b": 9}, 0.2, trials=20)
    >>> found.bits, len(found.trials)
    ({'a': 4, 'b': 8}, 3)
    """
    function("evaluate", evaluate)
    _check_log(log)
    count = whole("trials", trials, lo=1, hi=10**6)
    heat = real("temperature", temperature)
    first = whole("warmup", warmup, lo=0)
    chance = np.random.default_rng(whole("seed", seed, lo=0))
    names = dict.fromkeys(named("choices", choices, object), 0)
    steps = _steps(choices, names)
    sets = _sets(same, steps)
    if not callable(propose):
        one_of("propose", propose, tuple(STRATEGIES))
    done: list[SearchTrial] = []
    known: dict[tuple[int, ...], SearchTrial] = {}
    heats = (heat * (1.0 - len(done) / count) for _ in iter(int, 1))
    kind = "random" if callable(propose) else propose
    search = STRATEGIES[kind](steps, chance, heats)
    proposal = next(search)
    repeats = 0
    while len(done) < count and repeats < _MOST_REPEATS:
        if callable(propose) and len(done) >= first:
            proposal = _proposed(propose, tuple(done), steps)
        elif repeats % _REPEATS == _REPEATS - 1:  # it goes round in what is known
            proposal = {name: int(chance.choice(of)) for name, of in steps.items()}
        widths = _aligned(constrained_bits(proposal, choices, weights, ratio), sets)
        key = tuple(widths.values())
        before = known.get(key)
        repeats = 0 if before is None else repeats + 1
        if before is None or callable(propose):
            repeats = 0
            score = _score(evaluate, widths) if before is None else before.score
            trial = SearchTrial(
                len(done),
                dict(widths),
                score,
                size_ratio(widths, weights),
                max(score, done[-1].best) if done else score,
                reward(score, baseline),
            )
            known.setdefault(key, trial)
            done.append(trial)
            _told(log, trial)
        proposal = search.send(known[key])
    best = max(done, key=lambda trial: trial.score)
    return BitSearch(dict(best.bits), best.score, tuple(done))


def _proposed(
    propose: Propose, done: tuple[SearchTrial, ...], steps: dict[str, list[int]]
) -> dict[str, int]:
    try:
        values = propose(done)
    except Error:
        raise
    except Exception as error:
        got = f"a function that raises {type(error).__name__}"
        raise ArgumentError("propose", got, "one that takes all trials so far") from error
    if set(proposed := named("propose()", values, object)) != set(steps):
        raise ArgumentError("propose()", shown(tuple(proposed)), f"layers {shown(tuple(steps))}")
    return {name: _width(proposed[name], steps[name]) for name in steps}


def _width(value: object, widths: list[int]) -> int:
    """Return a layer's width nearest to one proposed, or to what an action stands for."""
    number = real("propose()", value)
    if isinstance(value, float):
        if not 0.0 <= number <= 1.0:
            raise ArgumentError(
                "propose()", shown(value), "an action from 0 to 1, or a whole width"
            )
        number = next(width for most, width in _ACTIONS if number <= most)
    return min(widths, key=lambda width: abs(width - number))


def _sets(
    same: Sequence[Sequence[str]], steps: dict[str, list[int]]
) -> list[tuple[tuple[str, ...], set[int]]]:
    """Return sets of layers, and the widths that all of each may have."""
    sets = []
    for each in items("same", same, tuple, list):
        names = items("same", each, str)
        if not names or not set(names) <= set(steps):
            raise ArgumentError("same", shown(names), f"layers of {shown(tuple(steps))}")
        common = set.intersection(*(set(steps[name]) for name in names))
        if not common:
            raise ArgumentError("same", shown(names), "layers with a width in common")
        sets.append((names, common))
    return sets


def _aligned(
    bits: dict[str, int], sets: Sequence[tuple[tuple[str, ...], set[int]]]
) -> dict[str, int]:
    aligned = dict(bits)
    for names, common in sets:
        least = min(aligned[name] for name in names)
        most = least if least in common else min(common)
        aligned |= {name: min(aligned[name], most) for name in names}
    return aligned


def _check_log(log: Callable[[SearchTrial], object] | None) -> None:
    if log is not None:
        function("log", log)
    if isinstance(log, type):  # what its instances take is no business of ours
        raise ArgumentError("log", f"the class {log.__name__}", "a function")


def _told(log: Callable[[SearchTrial], object] | None, trial: SearchTrial) -> None:
    if log is None:
        return
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
