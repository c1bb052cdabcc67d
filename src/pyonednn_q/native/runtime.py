"""The loaded library: version, instruction set, threads. The only importer of the extension."""

from __future__ import annotations

import functools
import importlib
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyonednn_q import dtypes
from pyonednn_q.compose.argument import instance
from pyonednn_q.compose.facts import Facts
from pyonednn_q.errors import LibraryError
from pyonednn_q.native import library

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType


@functools.cache
def loaded() -> library.Library:
    """Return the oneDNN of this process, found and opened on first use.

    Raises
    ------
    LibraryError
        None of the candidates can be used; the error lists each and why.
    """
    return library.load()


@functools.cache
def extension() -> ModuleType:
    """Return the extension, which opens no oneDNN by itself.

    Raises
    ------
    LibraryError
        It is not built, or cannot be imported.
    """
    try:
        return importlib.import_module("pyonednn_q._core")
    except ImportError as error:
        msg = (
            f"the extension pyonednn_q._core cannot be imported ({error}); see `pyonednn-q doctor`"
        )
        raise LibraryError(msg, ()) from error


@functools.cache
def core() -> ModuleType:
    """Return the extension with oneDNN loaded, which happens on first use.

    Raises
    ------
    LibraryError
        The extension is not built, or no oneDNN that it can use was found.
    """
    found = extension()
    found.load(loaded().path)
    if dtypes.has_bf16():
        found.register_dtype("bf16", dtypes.numpy_dtype("bf16"))
    return found


def version() -> tuple[int, int, int]:
    """Return the version of the loaded oneDNN as (major, minor, patch)."""
    return loaded().version


def threading_runtime() -> str:
    """Return the CPU runtime of the loaded oneDNN: SEQ, OMP, TBB, THREADPOOL or SYCL."""
    return loaded().runtime


def isa() -> str:
    """Return the highest instruction set the library may use.

    Asking fixes it: `limit_isa` has no effect afterwards.
    """
    return str(core().effective_isa())


def limit_isa(name: str) -> None:
    """Lower the highest instruction set, as ``ONEDNN_MAX_CPU_ISA`` does.

    Parameters
    ----------
    name : str
        As in ``ONEDNN_MAX_CPU_ISA``, for example ``"AVX2"``.

    Raises
    ------
    ArgumentError
        No such instruction set.
    OneDNNError
        Too late: something has already asked for the instruction set.
    """
    core().limit_isa(name)


@functools.cache
def facts() -> Facts:
    """Return what the guard table wants to know about this process."""
    return Facts(version=version(), isa=isa(), runtime=threading_runtime())


def get_num_threads() -> int:
    """Return the number of threads of primitives prepared from now on, and of our own passes."""
    return int(core().get_num_threads())


def set_num_threads(n: int) -> None:
    """Set the number of threads of primitives prepared from now on, in every Python thread.

    Primitives that exist keep the number they were prepared with (OpenMP) or share the new limit
    (TBB). Passes of our own, as quantising a source, keep to it, too.

    Raises
    ------
    ArgumentError
        `n` is less than 1, or the library's runtime cannot be limited.
    """
    core().set_num_threads(n)


@contextmanager
def threads(n: int) -> Iterator[None]:
    """Set the number of threads for the duration of a ``with`` block."""
    before = get_num_threads()
    set_num_threads(n)
    try:
        yield
    finally:
        set_num_threads(before)


def set_watching(on: bool) -> None:
    """Set whether functional calls ask the kernel what was written to their weights.

    Weights that can be written are compared with a copy on every call. Where Linux tells which
    pages were written (`why_not_watching`), pages that were the same in some calls are not compared
    as long as nobody writes to them. That is as exact as comparing, but for memory that a device
    writes, which is why it is not done in a process that has mapped one; and a direct read
    (``O_DIRECT``) of another thread into the very weights that a call is reading is not seen.

    Parameters
    ----------
    on : bool
        As it is at first. False: all of them are compared, from now on.

    Raises
    ------
    ArgumentError
        It is neither True nor False.
    """
    instance("on", on, bool)
    extension().set_watching(on)


def why_not_watching() -> str:
    """Return why writes to weights are not watched, or an empty string if they are.

    They are on Linux from 6.7 on, on x86-64, unless there is a seccomp filter, as in many
    containers and sandboxed services: it may forbid ``userfaultfd``, and end who asks.
    """
    return str(extension().why_not_watching())
