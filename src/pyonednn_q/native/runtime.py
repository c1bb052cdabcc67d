"""runtime: the library in this process: version, instruction set, threads, buffers, locks.

A fresh large array costs page faults comparable to the kernel that fills it. So memory of results
goes back to a pool when the last array over it dies, and the next result of about that size takes
it from there.

A call of a `HotCallable`, ``x(*inputs, residual=None, out=None)`` is ``x._hot(*inputs, residual,
out)``, without a frame of Python. If there is no ``_hot``, if it returns NotImplemented, or if the
call has other names, the ``__call__`` of the class runs. It must mean the same for all arrays; the
class statement says ``hot=True``. A ``__call__`` that overrides it is always called.
"""

from __future__ import annotations

import functools
import importlib
import os
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakSet

from pyonednn_q import dtypes
from pyonednn_q.argument import instance, whole
from pyonednn_q.errors import ArgumentError, LibraryError
from pyonednn_q.native import library
from pyonednn_q.primitive.isa import Facts, InstructionSet
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from pyonednn_q import _core

__all__ = [
    "BufferStatistics",
    "HotCallable",
    "Lock",
    "buffer_statistics",
    "clear_buffers",
    "limit_buffers",
]

_MOST_THREADS = 4096  # OpenMP ends the process where it cannot start as many as it was told


# What oneDNN asks for the limit, in this order.
LIMIT_VARIABLES = ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")
_limit: str | None = None


@functools.cache
def loaded() -> library.Library:
    """Return the oneDNN of this process, found and opened on first use.

    Raises
    ------
    LibraryError
        No candidate can be used; the error lists each and why.
    """
    return library.load()


@functools.cache
def extension() -> ModuleType:
    """Return the extension, which opens no oneDNN by itself.

    Raises
    ------
    LibraryError
        The extension is not built, or cannot be imported; or another platform.
    """
    library.check_platform()
    try:
        return importlib.import_module("pyonednn_q._core")
    except ImportError as error:
        msg = (
            f"the extension pyonednn_q._core cannot be imported ({error}); see `pyonednn-q doctor`"
        )
        raise LibraryError(msg, ()) from error


@functools.cache
def _opened() -> ModuleType:
    """Return the extension with oneDNN loaded: what `core` is.

    Raises
    ------
    LibraryError
        The extension is not built, or no oneDNN that it can use was found.
    """
    module, chosen = extension(), loaded()
    library.check_directory(chosen.runtime)
    try:
        module.load(chosen.path)
    except LibraryError as error:  # opened for its version, but not all of oneDNN
        raise library.unusable((f"{chosen.source} {chosen.path}", error.message)) from None
    if dtypes.has_bf16():
        module.register_dtype("bf16", dtypes.numpy_dtype("bf16"))
    return module


if TYPE_CHECKING:
    core = _core
else:

    def __getattr__(name: str) -> ModuleType:
        """Give `core`, the extension with oneDNN loaded, which happens on first use."""
        if name != "core":
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message)
        globals()[name] = module = _opened()
        return module


def version() -> tuple[int, int, int]:
    """Return the version of the loaded oneDNN as (major, minor, patch)."""
    return loaded().version


def threading_runtime() -> str:
    """Return the CPU runtime of the loaded oneDNN: SEQ, OMP, TBB, THREADPOOL or SYCL."""
    return loaded().runtime


@functools.cache
def isa() -> InstructionSet:
    """Return the instruction set of this process.

    Asking fixes it: `limit_isa` has no effect afterwards.
    """
    return InstructionSet.of_process(_opened().effective_isa(), isa_limit(), _opened().cpu_flags())


def isa_limit() -> str | None:
    """Return the limit of the instruction set as it was asked for, ``None`` without one."""
    limits = (_limit, *(os.environ.get(name) for name in LIMIT_VARIABLES))
    return next((name for name in limits if name), None)


def limit_isa(name: str) -> None:
    """Lower the highest level of instruction sets, as ``ONEDNN_MAX_CPU_ISA`` does.

    Parameters
    ----------
    name : str
        Name of the level as in ``ONEDNN_MAX_CPU_ISA``, for example ``"AVX2"``.

    Raises
    ------
    ArgumentError
        No such instruction set.
    OneDNNError
        Too late: something has already asked for the instruction set, as operators do when made.
    """
    instance("name", name, str)
    if not name.isascii():
        raise ArgumentError("name", shown(name), "the name of an instruction set, such as AVX2")
    _opened().limit_isa(name)
    global _limit  # noqa: PLW0603 - oneDNN keeps it, and does not tell
    _limit = name


@functools.cache
def facts() -> Facts:
    """Return facts about this process that the guard table needs."""
    return Facts(version=version(), isa=isa(), runtime=threading_runtime())


def get_num_threads() -> int:
    """Return the number of threads of primitives prepared from now on, and of our own passes."""
    return int(_opened().get_num_threads())


def set_num_threads(n: int) -> None:
    """Set the number of threads of primitives prepared from now on, in every Python thread.

    Primitives that exist keep the number they were prepared with, and run with it (OpenMP), or
    share the new limit (TBB). Passes of our own, as quantizing a source, keep to it, too. What
    others that use OpenMP have set in a thread stays as it was.

    Parameters
    ----------
    n : int
        Number of threads, 1 to 4096.

    Raises
    ------
    ArgumentError
        `n` is less than 1 or more than 4096, or the library's runtime cannot be limited.
    """
    _opened().set_num_threads(whole("n", n, lo=1, hi=_MOST_THREADS))


@contextmanager
def threads(n: int) -> Iterator[None]:
    """Set the number of threads for the duration of a ``with`` block.

    Parameters
    ----------
    n : int
        Number of threads, 1 to 4096: see `set_num_threads`.

    Raises
    ------
    ArgumentError
        Errors of `set_num_threads`.
    """
    before = get_num_threads()
    set_num_threads(n)
    try:
        yield
    finally:
        set_num_threads(before)


@dataclass(frozen=True, slots=True)
class BufferStatistics:
    """Counts of the buffer pool.

    Attributes
    ----------
    taken, reused : int
        Buffers handed out since the start, and how many of them came from the pool.
    held, held_bytes : int
        Buffers that wait in the pool, and their bytes. Those of living arrays are not in it.
    limit : int
        Bytes that may wait; what would exceed them is freed at once.
    """

    taken: int
    reused: int
    held: int
    held_bytes: int
    limit: int


def buffer_statistics() -> BufferStatistics:
    """Return counts of the buffer pool."""
    now = _opened().buffer_statistics()
    return BufferStatistics(now.taken, now.reused, now.held, now.held_bytes, now.limit)


def limit_buffers(nbytes: int) -> None:
    """Set how many bytes may wait in the pool (256 MiB at first); 0 recycles nothing.

    Parameters
    ----------
    nbytes : int
        Number of bytes, 0 or more.

    Raises
    ------
    ArgumentError
        `nbytes` is no such number.
    """
    _opened().limit_buffers(whole("nbytes", nbytes, lo=0, hi=2**62))


def clear_buffers() -> None:
    """Free everything that waits in the pool."""
    _opened().clear_buffers()


class Lock:
    """``with lock.held:``, in one thread at a time.

    The thread that holds it may take it again: in a signal handler, or in a ``__del__``, that uses
    what it interrupts. In a forked child it is free, whoever held it in the parent, for that thread
    does not exist there. So whatever it guards has to be in order between any two of its changes.

    Attributes
    ----------
    held : threading.RLock
        Lock that ``with`` takes; another one after a fork.
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


if TYPE_CHECKING:
    from pyonednn_q._core import HotCallable
else:
    try:
        HotCallable = extension().HotCallable
    except LibraryError:  # said again, and in full, when something is to run

        class HotCallable:
            """Without the extension nothing runs, and nothing has a hot way."""

            _hot = None

            def __init_subclass__(cls, *, hot: bool = False) -> None:
                """Take what the extension takes."""
