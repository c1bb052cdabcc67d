"""Weights that are not compared, because the kernel saw no write to them: no write goes unseen."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError
from pyonednn_q.native import runtime
from support.watched import PAGE, PATIENCE, SIZE, Calls, address, array_of, skip_unless_watched


@pytest.fixture(autouse=True)
def kernel() -> None:
    skip_unless_watched()


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


@pytest.mark.parametrize(("pages", "watched"), [(4, False), (11, False), (12, True)])
def test_from_48_kb_on_it_is_watched(pages: int, watched: bool) -> None:
    room = array_of((pages + 1) * 4096)
    start = -address(room) % 4096
    calls = Calls(room[start : start + pages * 4096])
    assert calls.watch() == watched


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


def test_a_switch_is_on_or_off() -> None:
    with pytest.raises(ArgumentError, match="on"):
        runtime.set_watching("off")  # type: ignore[arg-type]


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
