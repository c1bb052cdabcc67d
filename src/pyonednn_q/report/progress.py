"""Progress: a bar on standard error, with what is being done, of how many steps, and until when."""

from __future__ import annotations

import math
import os
import sys
import time
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.progress import Progress as Bars
    from typing_extensions import Self

__all__ = ["Progress", "counted", "length"]

Item = TypeVar("Item")

_PATIENCE_S, _PAUSE_S = 1.0, 0.1  # before steps of no phase are shown; between two drawings
_OUTER: ContextVar[Progress | None] = ContextVar("outer", default=None)


class Progress:
    """A bar on a terminal for as long as a ``with`` lasts; elsewhere nothing is written.

    A phase is drawn at once, steps without one after a second. A bar inside of another one stands
    below it. No thread draws, as it would disturb what is measured.

    Parameters
    ----------
    steps : int, optional
        Number of ticks of the whole; None: nobody knows.
    name : str
        Name of the work, as long as no phase has a name.
    """

    def __init__(self, steps: int | None, name: str = "") -> None:
        self._steps = steps or None
        self._name = name
        self._done = 0
        self._next = time.monotonic() + _PATIENCE_S
        self._bars: Bars | None = None

    def __enter__(self) -> Self:
        self._outer = _OUTER.get()
        self._token = _OUTER.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _OUTER.reset(self._token)
        if self._bars is not None:
            with suppress(OSError):
                self._bars.remove_task(self._task)
                self._bars.refresh() if self._outer else self._bars.stop()

    def phase(self, name: str) -> None:
        """Name what is being done now."""
        self._name = name
        self._draw()

    def tick(self) -> None:
        """Count one more step as done."""
        self._done += 1
        if time.monotonic() >= self._next:
            self._draw()

    def over(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield items, each of which is a step; a loop over it ends before the bar does."""
        for item in items:
            yield item
            self.tick()

    def _draw(self) -> None:
        self._next = time.monotonic() + _PAUSE_S
        if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
            # A terminal that cannot be written to must not end a measurement.
            with suppress(OSError):
                bars = self._shown()
                bars.update(self._task, description=self._name, completed=self._done)
                bars.refresh()

    def _shown(self) -> Bars:
        """Return the bars of which this is one; the outermost of them opens the display."""
        if self._bars is None:
            self._bars = _opened() if self._outer is None else self._outer._shown()  # noqa: SLF001
            self._task = self._bars.add_task(self._name, total=self._steps)
        return self._bars


def counted(items: Iterable[Item], name: str, total: int | None = None) -> Iterator[Item]:
    """Yield items under a bar that counts those that are done; `total` where they have no `len`."""
    with Progress(length(items) if total is None else total, name) as progress:
        yield from progress.over(items)


def length(items: Any) -> int | None:  # noqa: ANN401
    """Return how many items there are; None: nobody knows.

    Torch's loaders of streams say so by the TypeError of what has no length. Another exception is
    a fault of a caller's own length, and comes through.
    """
    try:
        return len(items)
    except TypeError:
        return None


def _opened() -> Bars:
    from rich import progress
    from rich.console import Console

    columns = (
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(bar_width=30),
        progress.MofNCompleteColumn(),
        progress.TimeRemainingColumn(),
    )
    bars = progress.Progress(
        *columns,
        console=Console(stderr=True, get_time=time.monotonic),
        auto_refresh=False,
        speed_estimate_period=math.inf,  # a step may take minutes
        transient=True,
        redirect_stdout=False,
    )
    bars.start()
    return bars
