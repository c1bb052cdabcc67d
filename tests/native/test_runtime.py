"""Threads, instruction sets, forks: what the process shares."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from pyonednn_q import native
from pyonednn_q.errors import ArgumentError
from pyonednn_q.native import runtime
from pyonednn_q.primitive.problem import MatMulProblem
from support.threads import run_together


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | environment,
        check=False,
    )


def test_threads_are_set_and_restored() -> None:
    before = runtime.get_num_threads()
    with runtime.threads(1):
        assert runtime.get_num_threads() == 1
    assert runtime.get_num_threads() == before
    with pytest.raises(ArgumentError, match="n: got 0"):
        runtime.set_num_threads(0)


def test_the_setting_reaches_other_threads() -> None:
    with runtime.threads(1):
        assert run_together(4, lambda _: runtime.get_num_threads()) == [[1]] * 4


def test_one_thread_and_all_threads_agree() -> None:
    problem = MatMulProblem.of((64, 96), (96, 80), dst="s32")
    rng = np.random.default_rng(3)
    src = rng.integers(0, 20, (64, 96)).astype(np.uint8)
    wei = rng.integers(-4, 5, (96, 80)).astype(np.int8)
    many = native.prepare(problem, wei=wei)(src)
    with runtime.threads(1):
        one = native.prepare(problem, wei=wei)(src)
    np.testing.assert_array_equal(one, many)


def test_isa_can_be_limited_before_first_use_only() -> None:
    early = python(
        """
        from pyonednn_q.native import runtime
        runtime.limit_isa("SSE41")
        assert runtime.isa().level == "SSE41"
        try:
            runtime.limit_isa("AVX2")
        except Exception as error:
            print(type(error).__name__)
        try:
            runtime.limit_isa("MMX")
        except Exception as error:
            print(error)
        """,
        ONEDNN_MAX_CPU_ISA="DEFAULT",
    )
    assert early.stdout.startswith("OneDNNError\nisa: got 'MMX'"), early


LINUX = tuple(map(int, re.findall(r"\d+", platform.release())[:2]))
LISTS = """
    from pyonednn_q.primitive.attr import Attr
    from pyonednn_q.primitive.problem import ConvProblem
    from pyonednn_q.native import child, runtime

    def names():
        problem = ConvProblem.of((1, 16, 5, 5), (16, 16, 3, 3))
        candidate = runtime.core.Candidate(problem.boundary(), Attr().boundary())
        yield candidate.impl
        while candidate.next():
            yield candidate.impl

    LIMIT
    assert runtime.isa().vex_vnni == any("avx2_vnni" in name for name in names())
    assert runtime.isa().has_avx512() == any("avx512" in name for name in names())
    ask = "from pyonednn_q.native import runtime; print(runtime.isa())"
    assert str(runtime.isa()) in child.log(ask, b"", "none")
"""


@pytest.mark.parametrize(
    "limit", ["", "avx2_vnni", "AVX512_CORE_BF16", "AVX512_CORE_FP16", "AVX99"]
)
@pytest.mark.parametrize("prefix", ["ONEDNN", "DNNL"])
def test_the_instruction_set_is_what_kernels_find(prefix: str, limit: str) -> None:
    """The library lists kernels for AVX2_VNNI where it may use that; a child has the same limit."""
    cleared = {"ONEDNN_MAX_CPU_ISA": "", "DNNL_MAX_CPU_ISA": ""}
    listed = python(LISTS.replace("LIMIT", ""), **cleared | {f"{prefix}_MAX_CPU_ISA": limit})
    assert listed.returncode == 0, listed


@pytest.mark.parametrize("limit", ["AVX2_VNNI", "AVX512_CORE_BF16", "DEFAULT"])
def test_a_limit_that_was_set_comes_before_the_environments(limit: str) -> None:
    code = LISTS.replace("LIMIT", f"runtime.limit_isa('{limit}')")
    listed = python(code, ONEDNN_MAX_CPU_ISA="AVX2")
    assert listed.returncode == 0, listed


def test_the_processor_says_what_linux_says_of_it() -> None:
    """Linux knows AVX_VNNI from 5.12 on; kernels of oneDNN ask the processor whatever Linux is."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    told = next(line for line in lines if line.startswith("flags")).split()
    known = {"avx512vbmi", "avx_vnni"} if LINUX >= (5, 12) else {"avx512vbmi"}
    assert known.intersection(runtime.core.cpu_flags()) == known.intersection(told)


def test_a_fork_after_use_is_an_error_not_a_hang() -> None:
    child = python(
        """
        import os, sys
        import numpy as np
        from pyonednn_q import native
        from pyonednn_q.primitive.problem import MatMulProblem
        from pyonednn_q.errors import ForkedError
        wei = np.ones((8, 8), "i1")
        call = native.prepare(MatMulProblem.of((8, 8), (8, 8), dst="s32"), wei=wei)
        src = np.ones((8, 8), "u1")
        call(src)
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                call(src)
            except ForkedError:
                try:
                    native.prepare(MatMulProblem.of((8, 9), (9, 8), dst="s32"))
                except ForkedError:
                    code = 7
            os._exit(code)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), call(src)[0, 0])
        """
    )
    assert child.stdout == "7 8\n", child


def test_a_fork_before_use_works() -> None:
    child = python(
        """
        import os
        import numpy as np
        import pyonednn_q
        from pyonednn_q import native
        from pyonednn_q.primitive.problem import MatMulProblem
        pid = os.fork()
        wei = np.ones((8, 8), "i1")
        call = native.prepare(MatMulProblem.of((8, 8), (8, 8), dst="s32"), wei=wei)
        right = bool((call(np.ones((8, 8), "u1")) == 8).all())
        if pid == 0:
            os._exit(7 if right else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), right)
        """
    )
    assert child.stdout == "7 True\n", child


@pytest.mark.parametrize(
    "call", ["buffer_statistics()", "limit_buffers(1000)", "clear_buffers()", "set_num_threads(2)"]
)
def test_what_a_process_asks_first_opens_the_library(call: str) -> None:
    first = python(f"import pyonednn_q as pq; pq.native.{call}")
    assert first.returncode == 0, first.stderr
