"""Memory of other kinds than an array's own, and processes in which writes may pass unseen."""

from __future__ import annotations

import ctypes
import mmap
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.watched import LIBC, PAGE, Calls, address, skip_unless_watched


@pytest.fixture(autouse=True)
def kernel() -> None:
    skip_unless_watched()


@pytest.fixture
def mapped() -> Iterator[Callable[..., Any]]:
    """Arrays of memory that is mapped for them, and that they may lose."""
    LIBC.mmap.restype = ctypes.c_void_p
    LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *3 * [ctypes.c_int], ctypes.c_long]
    LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    made: list[tuple[int, int]] = []

    def map_array(size: int, flags: int, at: int | None = None, file: int = -1) -> Any:
        rights = mmap.PROT_READ | mmap.PROT_WRITE
        place = LIBC.mmap(at, size, rights, flags, file, 0)
        assert place not in (None, ctypes.c_void_p(-1).value)
        if at is None:
            made.append((place, size))
        return np.ctypeslib.as_array((ctypes.c_int8 * size).from_address(place))

    yield map_array
    for place, size in made:
        LIBC.munmap(place, size)


PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
MAP_FIXED = 0x10


@pytest.mark.parametrize("size", [64 * PAGE, 8 << 20])
def test_memory_given_back_is_seen(size: int, mapped: Callable[..., Any]) -> None:
    """The kernel takes pages away, of 8 MB with their tables; they are zeros from then on."""
    array = mapped(size, PRIVATE)
    array[...] = 3
    calls = Calls(array)
    assert calls.watch()
    LIBC.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    assert LIBC.madvise(address(array), size, mmap.MADV_DONTNEED) == 0
    assert not calls.find()


def test_other_memory_in_the_same_place_is_seen(mapped: Callable[..., Any]) -> None:
    array = mapped(64 * PAGE, PRIVATE)
    array[...] = 3
    calls = Calls(array)
    assert calls.watch()
    mapped(64 * PAGE, PRIVATE | MAP_FIXED, address(array))
    assert not calls.find()
    array[...] = 3
    assert calls.find()
    assert Calls(array).watch()
    mapped(16 * PAGE, PRIVATE | MAP_FIXED, address(array, 8 * PAGE))
    assert not calls.find()


def test_memory_that_moved_is_watched_where_it_is(mapped: Callable[..., Any]) -> None:
    old, new = mapped(64 * PAGE, PRIVATE), mapped(64 * PAGE, PRIVATE)
    old[...] = 3
    calls = Calls(old)
    assert calls.watch()
    LIBC.mremap.restype = ctypes.c_void_p
    LIBC.mremap.argtypes = [ctypes.c_void_p, *2 * [ctypes.c_size_t], ctypes.c_int, ctypes.c_void_p]
    may_move_to = 3
    place = LIBC.mremap(address(old), old.nbytes, old.nbytes, may_move_to, address(new))
    assert place == address(new)
    mapped(64 * PAGE, PRIVATE | MAP_FIXED, address(old))  # lest others get the place
    calls = Calls(new)
    assert calls.watch()
    new[9 * PAGE] = 1
    assert not calls.find()


@pytest.mark.parametrize("flags", [mmap.MAP_SHARED, mmap.MAP_PRIVATE])
def test_memory_of_a_file_is_compared(
    flags: int, tmp_path: Path, mapped: Callable[..., Any]
) -> None:
    """Somebody else may write the file, here through another mapping of it."""
    path = tmp_path / "weights"
    path.write_bytes(bytes(64 * PAGE))
    with path.open("r+b") as file:
        calls = Calls(mapped(64 * PAGE, flags, file=file.fileno()))
        assert not calls.watch()
        mapped(64 * PAGE, mmap.MAP_SHARED, file=file.fileno())[9 * PAGE] = 1
    assert not calls.find()


def in_a_process(script: str) -> str:
    """Run a script about known calls; return what it prints."""
    begin = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n"
    begin += "import ctypes, os\nfrom pyonednn_q.native import runtime\n"
    begin += "from support.watched import LIBC, SIZE, Calls, array_of\n"
    done = subprocess.run(
        [sys.executable, "-c", begin + script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_forked_child_compares() -> None:
    """What its parent may ask the kernel is about the parent's memory."""
    found = in_a_process("""
calls = Calls(array_of())
assert calls.watch()
child = os.fork()
if child == 0:
    assert runtime.why_not_watching()
    assert not calls.watch()
    calls.array[SIZE // 2] ^= 1
    os._exit(calls.find())
assert os.waitpid(child, 0)[1] == 0
before = calls.watched
assert calls.find() and calls.watched > before
print("seen")
""")
    assert found == "seen\n"


def test_with_asynchronous_reads_all_is_compared() -> None:
    """They write like devices, past the tables in which writes are seen."""
    found = in_a_process("""
context = ctypes.c_ulong(0)
before = Calls(array_of())
assert before.watch()
if LIBC.syscall(206, 1, ctypes.byref(context)) != 0:  # io_setup
    print("none")
else:
    calls = Calls(array_of())
    print("watched" if calls.watch() else "compared: " + runtime.why_not_watching())
""")
    if found == "none\n":
        pytest.skip("this system has no asynchronous reads")
    assert found == "compared: a device or an asynchronous read may write to this process\n"


def test_a_filter_of_system_calls_is_not_provoked() -> None:
    """Here one that kills whoever asks for userfaultfd, as sandboxes of services have it."""
    found = in_a_process("""
import struct
load, equal, give = 0x20, 0x15, 0x06  # of the number; skips the next unless equal
kill, allow = 0x80000000, 0x7FFF0000
steps = [(load, 0, 0, 0), (equal, 0, 1, 323), (give, 0, 0, kill), (give, 0, 0, allow)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
no_new_privileges, seccomp, filtered = 38, 22, 2
LIBC.prctl.argtypes = [ctypes.c_int, *4 * [ctypes.c_ulong]]
assert LIBC.prctl(no_new_privileges, 1, 0, 0, 0) == 0
if LIBC.prctl(seccomp, filtered, ctypes.addressof(program), 0, 0) != 0:
    print("none")
else:
    calls = Calls(array_of())
    print("watched" if calls.watch() else "compared: " + runtime.why_not_watching())
""")
    if found == "none\n":
        pytest.skip("this system has no filters")
    assert found == "compared: a seccomp filter may forbid userfaultfd\n"
