"""Which functions a call enters, and how many: its work, where a clock tells of the machine."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType


def frames(function: Callable[[], object]) -> list[str]:
    """Return the names of Python functions that a call enters, its own left out."""
    seen: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            seen.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return seen[1:]


def calls_of(function: Callable[[], object]) -> int:
    """Return how many functions of Python and of C a call enters."""
    count = 0

    def note(_frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count
