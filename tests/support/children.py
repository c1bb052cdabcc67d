"""Run a function in a process of its own, where a crash is an answer and not the end."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it: a value, or a crash."""

    value: Any
    crashed: bool


def run_child(work: Callable[..., Any], *arguments: object) -> Outcome:
    """Call work(*arguments) in a fresh process; exceptions come through, crashes are told."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        try:
            return Outcome(pool.submit(work, *arguments).result(timeout=120), crashed=False)
        except BrokenProcessPool:
            return Outcome(None, crashed=True)
