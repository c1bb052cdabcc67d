"""Work in processes of its own, each with an instruction set of its own, that may crash."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

TWO_THREADS = {"OMP_NUM_THREADS": "2"}


def threads(count: int) -> dict[str, str]:
    """Return the environment of a child whose oneDNN has so many threads: OpenMP's, or SYCL's."""
    return {"OMP_NUM_THREADS": str(count), "DPCPP_CPU_NUM_CUS": str(count)}


"""Some faults show only where threads share the work."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it: a value, or a crash."""

    value: Any
    crashed: bool


def run_child(
    work: Callable[..., Any], *arguments: object, environment: Mapping[str, str] | None = None
) -> Outcome:
    """Call work(*arguments) in a fresh process; exceptions come through, crashes are told."""
    with child(environment) as ask:
        try:
            return Outcome(ask(work, *arguments), crashed=False)
        except BrokenProcessPool:
            return Outcome(None, crashed=True)


@contextmanager
def child(environment: Mapping[str, str] | None = None) -> Iterator[Callable[..., Any]]:
    """Give what calls in one process that lasts, started with these variables set."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:

        def ask(work: Callable[..., Any], *arguments: object) -> Any:
            # the child finds what `pythonpath` names, and no module of tests
            assert not work.__module__.startswith("tests."), f"{work} belongs into tests/support"
            return pool.submit(work, *arguments).result(timeout=120)

        with patch.dict(os.environ, environment or {}):
            ask(os.getpid)  # the process takes over the environment when it starts
        yield ask
