"""Ends of processes, forks and signals in the middle of a call: an answer or an error, no hang."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

SETUP = """
import os, signal, sys, threading, time
import numpy as np
import pyonednn_q as pq
from pyonednn_q import native
from pyonednn_q.errors import ForkedError
from pyonednn_q.ops import asking, functional, on_primitives, tunings

Q = {"src_q": pq.QParams(1.0, 0, "u8"), "wei_q": pq.QParams(1.0, 0, "s8")}
SRC, WEI = np.full((2, 64), 2, np.uint8), np.ones((64, 32), np.int8)


def is_right(dst, rows=2):
    return dst.shape == (rows, 32) and bool((dst == 128).all())
"""


def python(code: str, timeout: float = 60, seconds: float = 0) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SETUP + textwrap.dedent(code), str(seconds)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


CALLS = {
    "an operator": "big(src, out=out)",
    "an operator, new results": "big(src)",
    "an operator, another shape each": "big(src[: 1 + next(turn) % 500])",
    "a functional call": "pq.matmul(src, wei, **Q)",
    "float sources": "real(src.astype(np.float32))",
    "a refused call": "refused(lambda: big(src[:, 1:]))",
    "prepared anew": "pq.MatMul(wei, **Q)(src[:1])",
}


@pytest.mark.parametrize("call", CALLS)
def test_a_daemon_thread_in_a_call_does_not_disturb_the_end(call: str) -> None:
    """Python ends such a thread where it asks for the GIL again."""
    code = f"""
        from itertools import count
        src, wei = np.ones((512, 512), np.uint8), np.ones((512, 512), np.int8)
        out, turn = np.empty((512, 512), np.float32), count()
        big = pq.MatMul(wei, **Q)
        real = pq.MatMul(wei, **Q)

        def refused(call):
            try:
                call()
            except pq.errors.ShapeError:
                return

        def work():
            while True:
                {CALLS[call]}

        {CALLS[call]}
        for _ in range(2):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(float(sys.argv[1]))
        """
    for seconds in (0.01, 0.02, 0.03, 0.05, 0.08, 0.1):
        done = python(code, seconds=seconds)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("has_run", [False, True])
@pytest.mark.parametrize("which", ["operator", "cache", "tunings", "packing", "every"])
def test_a_child_forked_while_a_thread_holds_a_lock_does_not_wait(
    which: str, has_run: bool
) -> None:
    """After oneDNN ran it says that it is forked; before, it computes."""
    done = python(
        f"""
        from pyonednn_q.native import runtime
        op = pq.MatMul(WEI, **Q)
        packed = native.Packed(WEI)
        if {has_run}:
            assert is_right(pq.MatMul(WEI, **Q)(SRC))
        locks = {{
            "operator": [op._lock],
            "cache": [functional._CACHE._lock],
            "tunings": [tunings._LOCK],
            "packing": [packed._lock],
            "every": list(runtime._LOCKS),
        }}
        holds, ended = threading.Event(), threading.Event()

        def hold():
            for one in locks[{which!r}]:
                one.held.acquire()
            holds.set()
            ended.wait()

        threading.Thread(target=hold, daemon=True).start()
        holds.wait()
        tuned = pq.MatMul(WEI, **Q, tune=True)
        problem = pq.primitive.MatMulProblem.of((2, 64), (64, 32), dst="f32")
        uses = [
            lambda: op(SRC),
            lambda: pq.matmul(SRC, WEI, **Q),
            lambda: tuned(SRC),
            lambda: pq.prepare(problem, wei=packed)(SRC),
        ]
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            found = []
            for use in uses:
                try:
                    found.append(is_right(use()))
                except ForkedError:
                    found.append("forked")
            pq.ops.clear_tuning()
            pq.ops.operator_cache_clear()
            found = set(found)
            os._exit(7 if found == ({{"forked"}} if {has_run} else {{True}}) else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    )
    assert done.stdout == "7\n", done


def test_a_forked_child_makes_no_codes_of_floats() -> None:
    done = python(
        """
        ops = [
            pq.MatMul(WEI, src_q=source, wei_q=Q["wei_q"])
            for source in (Q["src_q"], pq.Dynamic("u8"), pq.Dynamic("s8", "per_row"))
        ]
        real = SRC.astype(np.float32)
        for op in ops:
            assert op(real).shape == op(real).shape == (2, 32)
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            told = 0
            for op in ops:
                try:
                    op(real)
                except ForkedError:
                    told += 1
            os._exit(told)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), len(ops))
        """
    )
    assert done.stdout == "3 3\n", done


def test_a_forked_child_runs_no_network() -> None:
    """Forked while threads are in the middle of calls, which hold locks of pool and program."""
    done = python(
        """
        from pyonednn_q.network import Network, Node, Quantize
        network = Network(["x"], [Node("y", Quantize(Q["src_q"]), "x")], ["y"])
        real = np.zeros((64, 64), np.float32)
        network(real)

        def call():
            while True:
                network(real)

        for _ in range(3):
            threading.Thread(target=call, daemon=True).start()
        found = []
        for _ in range(40):
            child = os.fork()
            if child == 0:
                signal.alarm(30)
                try:
                    network(real)
                except ForkedError:
                    os._exit(7)
                os._exit(1)
            found.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        print(*set(found), flush=True)
        os._exit(0)
        """
    )
    assert done.stdout == "7\n", done


def test_a_child_forked_amid_the_first_call_does_not_wait() -> None:
    """At any moment of it: of the making of the engine, and of the primitive."""
    done = python(
        """
        child = None
        op = pq.MatMul(WEI, **Q)
        thread = threading.Thread(target=lambda: op(SRC), daemon=True)
        thread.start()
        found = []
        while thread.is_alive() or len(found) < 10:
            child = os.fork()
            if child == 0:
                signal.alarm(30)
                try:
                    os._exit(7 if is_right(op(SRC)) else 1)
                except ForkedError:
                    os._exit(7)
            found.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            time.sleep(0.002)
        print(set(found))
        """
    )
    assert done.stdout == "{7}\n", done


def test_a_first_call_imports_nothing() -> None:
    """A child forked amid an import waits for it when it imports the same."""
    done = python(
        """
        op = pq.MatMul(WEI, **Q)
        before = set(sys.modules)
        assert is_right(op(SRC))
        print(sorted(set(sys.modules) - before))
        """
    )
    assert done.stdout == "[]\n", done


def test_a_thread_that_forks_holds_its_lock_on_both_sides() -> None:
    done = python(
        """
        from pyonednn_q.native.runtime import Lock
        lock = Lock()
        with lock.held:
            child = os.fork()
            with lock.held:
                pass
        with lock.held:
            pass
        if child == 0:
            os._exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    )
    assert done.stdout == "7\n", done


INTERRUPTED = {
    "prepare": (
        "on_primitives.OnPrimitives._make_ready",
        "op = pq.MatMul(WEI, **Q)",
        "op(SRC)",
    ),
    "the same, inside": ("asking.prepare_plan", "op = pq.MatMul(WEI, **Q)", "op(SRC)"),
    "packing": ("native.arrays.pack", "op = pq.MatMul(WEI, **Q)", "op(SRC)"),
    "a functional call": ("on_primitives.OnPrimitives._make_ready", "", "pq.matmul(SRC, WEI, **Q)"),
    "the cache": ("functional._CACHE._shrink", "", "pq.matmul(SRC, WEI, **Q)"),
    "tuning": (
        "on_primitives.OnPrimitives._make_ready",
        "op = pq.MatMul(WEI, **Q, tune=True)",
        "op(SRC)",
    ),
}
BY = {
    "a signal": """
        signal.signal(signal.SIGALRM, lambda *_: found.append(is_right(use())))
        def interrupt():
            signal.raise_signal(signal.SIGALRM)
        """,
    "a finalizer": """
        class Last:
            def __del__(self):
                found.append(is_right(use()))
        def interrupt():
            Last()
        """,
}


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("what", INTERRUPTED)
def test_what_is_interrupted_may_be_used_meanwhile(what: str, by: str) -> None:
    where, setup, use = INTERRUPTED[what]
    owner, _, name = where.rpartition(".")
    code = f"""
        import pyonednn_q.native.arrays
        found, left = [], [1]
        {setup}

        def use():
            return {use}
        {BY[by]}
        before = {where}

        def interrupted(*args, **named):
            if left:
                left.pop()
                interrupt()
            return before(*args, **named)

        {owner}.{name} = interrupted
        signal.alarm(30) if {by == "a finalizer"} else None
        found.append(is_right(use()))
        found.append(is_right(use()))
        print(found)
        """
    done = python(code)
    assert done.stdout == "[True, True, True]\n", done
