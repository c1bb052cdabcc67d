"""Trial: the tests that reach a mutant, run in a forked child until one fails."""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType

import hypothesis
import pytest

from mutant import PACKAGE, Mutant
from mutant_reach import Reach

__all__ = ["OPTIONS", "Chosen", "Copy", "Warm", "in_fork", "set_limits"]

OPTIONS = ["-q", "-s", "-p", "no:cacheprovider", "--assert=plain", "--hypothesis-seed=0"]
_CPU_SECONDS, _TIMES = 10, 5  # a test that takes so much and so many times longer never ends
_IMPORT_CPU_SECONDS, _SECONDS = 60, 1800  # the latter for what waits
_NOT_LOADED = 99


class Copy:
    """A copy of the package without the extension, in which one file at a time is changed."""

    def __init__(self, folder: Path) -> None:
        self.package = folder / PACKAGE.name
        unwanted = shutil.ignore_patterns("*.so", "__pycache__")
        shutil.copytree(PACKAGE, self.package, ignore=unwanted)
        self._age = 0

    def path(self, mutant: Mutant) -> Path:
        """Return where the copy has the file of a mutant."""
        return self.package / mutant.path.relative_to(PACKAGE)

    @contextlib.contextmanager
    def changed(self, mutant: Mutant) -> Iterator[None]:
        """Hold a mutant; each text has a date of its own, so that none is taken for another."""
        for text in (mutant.changed, mutant.text):
            self.path(mutant).write_text(text)
            self._age += 1
            os.utime(self.path(mutant), (self._age, self._age))
            if text is mutant.changed:
                yield


def in_fork(work: Callable[[], int]) -> int:
    """Return what the work returns in a forked child; negative: the signal that ended it."""
    child = os.fork()
    if child == 0:
        os.setpgrp()
        os._exit(work())
    try:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)


def set_limits() -> None:
    """End this process if it does not end, and let it be silent."""
    signal.setitimer(signal.ITIMER_PROF, _IMPORT_CPU_SECONDS)
    signal.alarm(_SECONDS)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)


class _Plugin:
    def __init__(self, seconds: dict[str, float]) -> None:
        self._seconds = seconds

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        """End this process if the test takes far more time than it did."""
        known = self._seconds.get(item.nodeid, 0.0)
        signal.setitimer(signal.ITIMER_PROF, _CPU_SECONDS + _TIMES * known)

    def pytest_collection(self) -> None:
        """Have Hypothesis stop at what it finds: a smaller example is of no use."""
        phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
        hypothesis.settings.register_profile("mutants", deadline=None, database=None, phases=phases)
        hypothesis.settings.load_profile("mutants")


class Chosen(_Plugin):
    """What has a new run of pytest take some tests in order, and those that were not known."""

    def __init__(self, tests: list[str], known: dict[str, float]) -> None:
        super().__init__(known)
        self._order = {test: number for number, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the chosen tests."""
        names = self._order.keys() | {item.nodeid for item in items} - self._seconds.keys()
        items[:] = [item for item in items if item.nodeid in names]
        items.sort(key=lambda item: self._order.get(item.nodeid, len(names)))


class Warm(_Plugin):
    """What tries, in one run of pytest, all mutants whose code is executed in calls.

    A child of this run puts the changed code into the functions that exist and runs the tests. What
    is alive then, but is executed at import as well, is left to a run of its own.

    Parameters
    ----------
    mutants : dict of int to Mutant
        What to try, by number.
    reach : Reach
        The tests of each.
    copy : Copy
        The package that is imported.
    tell : callable
        Called with the number of a mutant and "killed" or "alive".
    """

    def __init__(
        self, mutants: dict[int, Mutant], reach: Reach, copy: Copy, tell: Callable[[int, str], None]
    ) -> None:
        super().__init__(reach.seconds)
        self._mutants, self._reach, self._copy, self._tell = mutants, reach, copy, tell

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try the mutants in place of running all tests."""
        items = {item.nodeid: item for item in session.items}
        for number, mutant in self._mutants.items():
            direct, others = self._reach.tests(mutant)
            chosen = [items[test] for test in direct if test in items]
            with self._copy.changed(mutant):
                code = in_fork(lambda: self._run(session, mutant, chosen))  # noqa: B023 - at once
            if code != _NOT_LOADED and (code or not others):
                self._tell(number, "killed" if code else "alive")
        return True

    def _run(self, session: pytest.Session, mutant: Mutant, items: list[pytest.Item]) -> int:
        set_limits()
        if not _replace(mutant, str(self._copy.path(mutant))):
            return _NOT_LOADED
        for item, following in itertools.pairwise([*items, None]):
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.testsfailed:
                return 1
        return 0


def _replace(mutant: Mutant, path: str) -> bool:
    """Put the changed code into all functions that have it, and return whether there are any."""
    old, new = (
        compile(text, path, "exec", dont_inherit=True) for text in (mutant.text, mutant.changed)
    )
    pairs = [(was, now) for was, now in zip(_codes(old), _codes(new), strict=True) if was != now]
    functions = [each for each in gc.get_objects() if isinstance(each, FunctionType)]
    ours = [each for each in functions if each.__code__.co_filename == path]
    swaps = [(each, now) for each in ours for was, now in pairs if each.__code__ == was]
    for each, now in swaps:
        each.__code__ = now
    return bool(swaps)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of all functions in the code of a module, outer ones first."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _codes(each)
