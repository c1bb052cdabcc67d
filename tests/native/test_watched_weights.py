"""Weights that are not compared, because the kernel saw no write to them: no write goes unseen."""

from __future__ import annotations

import ctypes
import mmap
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyonednn_q.native import runtime

PAGE = mmap.PAGESIZE
SIZE = 40 * PAGE + 100  # neither whole pages nor on a page's border, as arrays are
PATIENCE = 30  # calls after which what nobody writes is watched

LIBC = ctypes.CDLL(None, use_errno=True)


@pytest.fixture(autouse=True)
def kernel() -> None:
    why = runtime.why_not_watching()
    if why:
        pytest.skip(f"weights are compared here: {why}")


class Calls:
    """One known call on an array; what it finds must be what comparing would have found."""

    def __init__(self, array: Any) -> None:
        self.array, self.first = array, array.copy()
        self.calls = runtime.core().KnownCalls()
        self.remember()

    def remember(self) -> None:
        self.first = self.array.copy()
        self.calls.remember("matmul", self.array, None, {}, "found", self.first.copy(), None)

    @property
    def watched(self) -> int:
        return int(self.calls.looks[1])

    def find(self) -> bool:
        found = self.calls.find("matmul", self.array, None, {}) is not None
        assert found == np.array_equal(self.array, self.first)
        return found

    def watch(self) -> bool:
        """Call until it is watched; False if it never is."""
        before = self.watched
        for _ in range(PATIENCE):
            assert self.find()
        return self.watched > before


def array_of(size: int = SIZE) -> Any:
    return np.random.default_rng(size).integers(-128, 128, size).astype(np.int8)


def address(array: Any, at: int = 0) -> int:
    return int(array.ctypes.data) + at


def by_numpy(array: Any, at: int, _: Path) -> None:
    array[at] ^= 1


def by_a_view(array: Any, at: int, _: Path) -> None:
    view: Any = np.from_dlpack(array.view(np.uint8))
    view[at] ^= 1


def by_pointer(array: Any, at: int, _: Path) -> None:
    ctypes.memset(address(array, at), (int(array[at]) ^ 1) & 255, 1)


def by_another_thread(array: Any, at: int, path: Path) -> None:
    thread = threading.Thread(target=by_numpy, args=(array, at, path))
    thread.start()
    thread.join()


def by_reading_a_file(array: Any, at: int, path: Path) -> None:
    path.write_bytes(bytes([(int(array[at]) ^ 1) & 255]))
    with path.open("rb", buffering=0) as file:
        assert file.readinto(memoryview(array)[at : at + 1]) == 1


def by_reading_a_pipe(array: Any, at: int, _: Path) -> None:
    out, into = os.pipe()
    os.write(into, bytes([(int(array[at]) ^ 1) & 255]))
    assert os.readv(out, [memoryview(array)[at : at + 1]]) == 1
    os.close(out)
    os.close(into)


def by_memory_file(array: Any, at: int, _: Path) -> None:
    with Path("/proc/self/mem").open("r+b", buffering=0) as memory:
        memory.seek(address(array, at))
        memory.write(bytes([(int(array[at]) ^ 1) & 255]))


def by_another_process(array: Any, at: int, _: Path) -> None:
    """Write as a debugger does, from a child that has not our memory."""
    script = (
        "import sys; pid, address, value = map(int, sys.argv[1:])\n"
        "with open(f'/proc/{pid}/mem', 'r+b', buffering=0) as memory:\n"
        "    memory.seek(address)\n"
        "    memory.write(bytes([value]))\n"
    )
    value = (int(array[at]) ^ 1) & 255
    command = [sys.executable, "-c", script, str(os.getpid()), str(address(array, at)), str(value)]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip("this system lets no process write another's memory")


WRITERS: tuple[Callable[[Any, int, Path], None], ...] = (
    by_numpy,
    by_a_view,
    by_pointer,
    by_another_thread,
    by_reading_a_file,
    by_reading_a_pipe,
    by_memory_file,
    by_another_process,
)


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("at", [0, PAGE + 7, SIZE // 2, SIZE - PAGE - 120, SIZE - 1])
def test_every_write_is_seen(
    write: Callable[[Any, int, Path], None], at: int, tmp_path: Path
) -> None:
    calls = Calls(array_of())
    assert calls.watch()
    write(calls.array, at, tmp_path / "byte")
    assert not calls.find()
    calls.remember()
    assert calls.watch()


def test_what_is_watched_is_not_compared() -> None:
    calls = Calls(array_of())
    assert calls.watch()
    compared, watched = calls.calls.looks
    for _ in range(10):
        calls.find()
    now_compared, now_watched = calls.calls.looks
    assert now_compared + now_watched - compared - watched == 10 * SIZE
    assert now_compared - compared < 10 * 2 * PAGE  # the rims, which are not whole pages


def test_few_bytes_are_compared() -> None:
    calls = Calls(array_of(4 * PAGE))
    assert not calls.watch()


def test_rows_apart_are_compared() -> None:
    calls = Calls(array_of(80 * PAGE).reshape(80, PAGE)[::2])
    assert not calls.watch()


def test_the_same_bytes_written_again_are_the_same() -> None:
    """Whoever writes now and then is watched later each time: a write costs a fault of the page."""
    calls = Calls(array_of())
    waits = []
    for _ in range(4):
        before = calls.watched
        waits.append(0)
        while calls.watched == before:
            assert calls.find()
            waits[-1] += 1
        calls.array[...] = calls.first
    assert waits == sorted(set(waits))


def test_switched_off_all_is_compared() -> None:
    calls = Calls(array_of())
    assert calls.watch()
    runtime.set_watching(False)
    try:
        assert runtime.why_not_watching() == "switched off"
        assert not calls.watch()
        calls.array[SIZE // 2] ^= 1
        assert not calls.find()
    finally:
        runtime.set_watching(True)
    calls.remember()
    assert calls.watch()


@pytest.mark.parametrize("skew", [0, 5 * PAGE])
def test_who_marks_later_hides_no_write(skew: int) -> None:
    """Both watch the same pages, or some; after a write one of them marks them anew."""
    whole = array_of()
    one, other = Calls(whole), Calls(whole[skew:])
    assert one.watch()
    assert other.watch()
    whole[SIZE // 2] ^= 1
    assert not other.find()
    other.remember()
    assert other.watch()
    assert not one.find()


def test_two_calls_on_the_same_weights_are_both_watched() -> None:
    weights = array_of()
    one, other = Calls(weights), Calls(weights)
    for _ in range(2 * PATIENCE):
        one.find()
        other.find()
    before = one.watched, other.watched
    one.find()
    other.find()
    assert one.watched > before[0]
    assert other.watched > before[1]


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


@pytest.mark.parametrize("seed", range(48))
def test_a_write_during_the_comparison_is_seen(seed: int) -> None:
    """It may come before or after the comparison reads the byte, which is without the GIL."""
    rng = np.random.default_rng(seed)
    calls = Calls(array_of(8 << 20))
    at = int(rng.integers(calls.array.size // 8))  # read early, likely written later
    for _ in range(seed % 6):  # one of the first few marks the pages
        assert calls.find()
    begin = threading.Event()

    def write() -> None:
        begin.wait()
        for _ in range(int(rng.integers(2000))):
            pass
        by_pointer(calls.array, at, Path())

    thread = threading.Thread(target=write)
    thread.start()
    begin.set()
    calls.calls.find("matmul", calls.array, None, {})
    thread.join()
    assert not calls.find()


def in_a_process(script: str) -> str:
    """Run a script that has what this file has; return what it prints."""
    begin = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
    begin += "from test_watched_weights import *\n"
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


@pytest.mark.parametrize("seed", range(4))
def test_many_writes_and_calls_in_any_order(seed: int, tmp_path: Path) -> None:
    """Calls on parts of one memory that overlap: each finds what comparing finds."""
    rng = np.random.default_rng(seed)
    whole = array_of()
    parts = [whole, whole, whole[: 25 * PAGE], whole[9 * PAGE + 5 :], whole[PAGE // 2 : -PAGE]]
    many = [Calls(part) for part in parts]
    writers = WRITERS[:-1]  # the last one starts a process each time
    for _ in range(60):
        for _ in range(int(rng.integers(1, 2 * PATIENCE))):
            many[int(rng.integers(len(many)))].find()
        at = int(rng.choice([rng.integers(SIZE), rng.integers(SIZE // PAGE) * PAGE, 0, SIZE - 1]))
        if rng.random() < 0.3:
            whole[at] = whole[at]
        else:
            writers[int(rng.integers(len(writers)))](whole, at, tmp_path / "byte")
        for calls in rng.permutation(np.array(many, object)):
            if not calls.find():
                calls.remember()
    assert all(calls.watched > 0 for calls in many)
