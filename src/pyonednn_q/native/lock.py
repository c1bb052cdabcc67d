"""Lock: one that neither a fork nor a signal turns into a wait without end."""

from __future__ import annotations

import os
import threading
from weakref import WeakSet

__all__ = ["Lock"]


class Lock:
    """``with lock.held:``, in one thread at a time.

    The thread that holds it may take it again: in a signal handler, or in a ``__del__``, that uses
    what it interrupts. In a forked child it is free, whoever held it in the parent, for that thread
    does not exist there. So whatever it guards has to be in order between any two of its changes.

    Attributes
    ----------
    held : threading.RLock
        What is taken; another one after a fork.
    """

    __slots__ = ("__weakref__", "held")

    def __init__(self) -> None:
        self.held = threading.RLock()
        _LOCKS.add(self)


_LOCKS: WeakSet[Lock] = WeakSet()


def _renew() -> None:
    for lock in _LOCKS:
        lock.held = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
