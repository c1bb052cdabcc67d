"""Progress: a bar on standard error, with what is being done and how long it will take."""

from __future__ import annotations

import sys
import time
from contextlib import suppress

__all__ = ["Progress", "draw", "is_drawn"]

_BAR_WIDTH = 30


class Progress:
    """A bar on a terminal; elsewhere one line per phase.

    Parameters
    ----------
    steps : int
        Number of ticks of the whole.
    """

    def __init__(self, steps: int) -> None:
        self._steps = max(steps, 1)
        self._done = 0
        self._phase = ""
        self._start = time.monotonic()
        self._is_terminal = is_drawn()

    def phase(self, name: str) -> None:
        """Name what is being done now."""
        self._phase = name
        if not self._is_terminal:
            _say(f"{name} ...\n")
        self._draw()

    def tick(self) -> None:
        """Count one more step as done."""
        self._done = min(self._done + 1, self._steps)
        self._draw()

    def clear(self) -> None:
        """Wipe the bar."""
        if self._is_terminal:
            draw("")

    def _draw(self) -> None:
        if not self._is_terminal:
            return
        filled = _BAR_WIDTH * self._done // self._steps
        bar = "#" * filled + "." * (_BAR_WIDTH - filled)
        draw(f"[{bar}] {self._done}/{self._steps} {self._phase}{self._left()}")

    def _left(self) -> str:
        """Say how long the rest will take, once there is something to go by."""
        elapsed = time.monotonic() - self._start
        if elapsed < 2 or not self._done:
            return ""
        return f" ({elapsed * (self._steps - self._done) / self._done:.0f} s left)"


def is_drawn() -> bool:
    """Tell whether standard error is a terminal, on which a line can be drawn over."""
    return sys.stderr.isatty()


def draw(words: str) -> None:
    """Show words instead of the line on which the terminal is."""
    _say(f"\r\x1b[K{words}")


def _say(words: str) -> None:
    # A terminal that cannot be written to must not end a measurement.
    with suppress(OSError):
        sys.stderr.write(words)
        sys.stderr.flush()
