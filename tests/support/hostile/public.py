"""Hostile calls of everything public: drawn from a seed, made, and judged."""

from __future__ import annotations

import functools
import inspect
import resource
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.errors import ArgumentError, Error
from pyonednn_q.native import runtime
from pyonednn_q.shown import LONGEST, shown
from support.hostile.nasty import nasty
from support.hostile.right_calls import RightCall, right_calls
from support.hostile.right_methods import NOT_ASKED, PYTHONS_OWN, everything, right_methods
from support.hostile.verdict import Verdict
from support.hostile.worse import one_of

if TYPE_CHECKING:
    from support.hostile.chunk import Report
    from support.hostile.worse import Rng

_PROTOCOLS = (" __getitem__", " __hash__")  # which say what errors they raise
MEGABYTES = 1024  # that a call may take
READ_ON = ("collect", "channel_moments")  # as many batches as there are, which need not end
SECONDS = 5  # of the CPU; a call that takes longer hangs


@dataclass
class PublicAttempt:
    """A call that something is wrong about.

    wrong: what was done to it.
    """

    name: str
    function: Callable[..., Any]
    given: list[Any]
    named: dict[str, Any]
    wrong: list[str]

    def __str__(self) -> str:
        words = [shown(value) for value in self.given]
        words += [f"{shown(name)}={shown(value)}" for name, value in self.named.items()]
        return f"{self.name}({', '.join(words)})"


def public_attempt(seed: int) -> PublicAttempt:
    """Return the attempt of a seed."""
    rng = np.random.default_rng(seed)
    call = one_of(rng, right_methods() if rng.random() < 0.25 else right_calls())
    attempt = PublicAttempt(call.name, call.function, list(call.given), dict(call.named), [])
    for name in list(attempt.named):
        if rng.random() < 0.15 and _is_optional(call, name):
            del attempt.named[name]
    for _ in range(int(one_of(rng, (0, 1, 1, 1, 1, 2, 2, 3)))):
        way = one_of(rng, (*(_worse,) * 8, *(_another,) * 4, *(_swapped,) * 2, _more, _fewer))
        way(attempt, rng)
    return attempt


def _is_optional(call: RightCall, name: str) -> bool:
    try:
        parameter = inspect.signature(call.function).parameters.get(name)
    except (ValueError, TypeError):
        return False
    return parameter is None or parameter.default is not inspect.Parameter.empty


def _worse(attempt: PublicAttempt, rng: Rng) -> None:
    # The value whose operator or property it is stays.
    places = [*range(" " in attempt.name, len(attempt.given)), *attempt.named]
    if not places:
        return
    at = one_of(rng, places)
    into: Any = attempt.given if isinstance(at, int) else attempt.named
    into[at] = nasty(rng, into[at])
    attempt.wrong.append("a value that nobody means")


def _another(attempt: PublicAttempt, rng: Rng) -> None:
    """Pass what would be right elsewhere."""
    other = one_of(rng, everything())
    values = [*other.given, *other.named.values()]
    places = [*range(" " in attempt.name, len(attempt.given)), *attempt.named]
    if values and places:
        at = one_of(rng, places)
        (attempt.given if isinstance(at, int) else attempt.named)[at] = one_of(rng, values)
        attempt.wrong.append("an argument of another call")


def _swapped(attempt: PublicAttempt, rng: Rng) -> None:
    if len(attempt.named) > 1:
        one, other = (one_of(rng, list(attempt.named)) for _ in range(2))
        named = attempt.named
        named[one], named[other] = named[other], named[one]
        attempt.wrong.append("arguments in another order")


def _more(attempt: PublicAttempt, rng: Rng) -> None:
    if " " in attempt.name:
        return
    name = one_of(rng, ("strides", "relu", "self", "", "out", "axis", "dtype", "src_q", "policy"))
    attempt.named[name] = nasty(rng)
    attempt.wrong.append("an argument too many")


def _fewer(attempt: PublicAttempt, rng: Rng) -> None:
    if attempt.named:
        del attempt.named[one_of(rng, list(attempt.named))]
        attempt.wrong.append("an argument too few")
    elif " " not in attempt.name:
        attempt.given.append(nasty(rng))
        attempt.wrong.append("an argument too many")


def judge_public(attempt: PublicAttempt) -> Verdict:
    """Run an attempt and judge what comes: a result that can be read, or an error that says why."""
    try:
        with warnings.catch_warnings(), _in_time():
            warnings.simplefilter("error")
            result = attempt.function(*attempt.given, **attempt.named)
            _read(result)
    except Error as error:
        return _of_error(error)
    except MemoryError as error:
        return Verdict("MemoryError", str(error))
    except OSError as error:
        # Of the file system, which names the file.
        named = isinstance(error.filename, str)
        return Verdict("OSError" if named else "WRONG", f"a bare {type(error).__name__}: {error}")
    except (TypeError, AttributeError, IndexError, ValueError) as error:
        if _is_pythons_own(attempt, error):
            return Verdict(type(error).__name__, str(error))
        return _bare(error)
    except BaseException as error:  # this is the question
        goes_on = isinstance(error, TooLongError) and attempt.name in READ_ON
        return Verdict("TooLongError", str(error)) if goes_on else _bare(error)
    return Verdict("right")


def _read(result: Any) -> None:
    """Do what people do with results: what was accepted must not fail later."""
    kind: Any = type(result)
    if not kind.__module__.startswith("pyonednn_q") or isinstance(result, Error):
        return
    str(result)
    repr(result)
    _ = result == result  # noqa: PLR0124
    if kind.__hash__ is not None:
        hash(result)
    for name in questions(kind):
        with suppress(Error):
            found = getattr(result, name)
            if callable(found):
                found()


@functools.cache
def questions(kind: type) -> tuple[str, ...]:
    """Return the properties of a class, and the methods that need no argument."""
    found = []
    for name in dir(kind):
        method = inspect.getattr_static(kind, name)
        if name.startswith("_") or name in NOT_ASKED:
            continue
        if isinstance(method, property):
            found.append(name)
        elif inspect.isfunction(method):
            needed = [
                p
                for p in list(inspect.signature(method).parameters.values())[1:]
                if p.default is inspect.Parameter.empty and p.kind is not p.VAR_KEYWORD
            ]
            found += [] if needed else [name]
    return tuple(found)


def _of_error(error: Error) -> Verdict:
    text = str(error)
    if len(text) > LONGEST:
        return Verdict("WRONG", f"a message of {len(text)} characters: {text[:200]}")
    if isinstance(error, ArgumentError) and not (error.argument and error.got and error.wanted):
        return Verdict("WRONG", f"an error that does not say enough: {error!r}")
    return Verdict(type(error).__name__, text)


def _bare(error: BaseException) -> Verdict:
    return Verdict(
        "WRONG", f"a bare {type(error).__name__} at {_place(error)}: {shown(str(error))}"
    )


def _place(error: BaseException) -> str:
    """Return where in the package an error was raised, or on the way to where; empty: nowhere."""
    place, step = "", error.__traceback__
    while step is not None:
        name = step.tb_frame.f_code.co_filename
        if "/pyonednn_q/" in name:
            place = f"{name.rpartition('/pyonednn_q/')[2]}:{step.tb_lineno}"
        step = step.tb_next
    return place


def _is_pythons_own(attempt: PublicAttempt, error: Exception) -> bool:
    """Tell whether Python refused the call: its arguments, an operator, an index, an attribute."""
    if attempt.name.endswith(PYTHONS_OWN):
        return not _place(error) or attempt.name.endswith(_PROTOCOLS)
    if not isinstance(error, TypeError):
        return False
    try:
        inspect.signature(attempt.function).bind(*attempt.given, **attempt.named)
    except TypeError:
        return True
    except ValueError:
        pass
    return "multiple values for" in str(error) or "unexpected keyword" in str(error)


class TooLongError(BaseException):
    """A call that did not end."""


@contextmanager
def _in_time() -> Iterator[None]:
    def stop(*_: Any) -> None:
        msg = f"more than {SECONDS} s"
        raise TooLongError(msg)

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _most_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def one_public(seed: int, report: Report) -> None:
    """Judge the attempt of a seed: a call of anything public, on one thread."""
    runtime.isa()  # which settles it
    if runtime.get_num_threads() != 1:
        runtime.set_num_threads(1)
    attempt = public_attempt(seed)
    before = _most_memory()
    verdict = judge_public(attempt)
    taken = _most_memory() - before
    if taken > MEGABYTES:
        verdict = Verdict("WRONG", f"{taken} MB more than ever before")
    report.outcomes[verdict.outcome] += 1
    report.ways.update(attempt.wrong)
    report.ways[attempt.name] += 1
    if not attempt.wrong:
        report.plain[verdict.outcome] += 1
    if not verdict.is_allowed:
        what = ", ".join(attempt.wrong) or "nothing wrong with it"
        report.wrong.append(f"seed {seed}: {attempt}, {what}: {verdict.text}")
