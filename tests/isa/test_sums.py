"""Emulated sums against the kernels themselves, saturation and all, on this process's ISA.

Every implementation that the library offers and the guard table trusts, on random problems with
values at the ends of their types: equal in every output. With PYONEDNN_Q_SUMS set to a file's name,
what was compared is written there, for tools/pages/saturation.py.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pyonednn_q.acc.emulation import sums
from pyonednn_q.acc.pairing import Summation, summations
from pyonednn_q.errors import UnsupportedError
from pyonednn_q.faults import guards
from pyonednn_q.native import runtime
from pyonednn_q.primitive.isa import InstructionSet, classify
from support import sum_cases, unguarded

if TYPE_CHECKING:
    from collections.abc import Iterator

COMPARED: Counter[tuple[str, str, str, str]] = Counter()


@pytest.fixture(scope="module", autouse=True)
def report() -> Iterator[None]:
    """Write what was compared, when asked."""
    yield
    target = os.environ.get("PYONEDNN_Q_SUMS")
    if target:
        rows = [[*key, count] for key, count in sorted(COMPARED.items())]
        version = ".".join(map(str, runtime.version()))
        head = {
            "version": version,
            "runtime": runtime.threading_runtime(),
            "isa": runtime.isa().text(),
        }
        Path(target).write_text(json.dumps({**head, "rows": rows}, indent=1))


def check(case: sum_cases.SumCase) -> None:
    problem = case.problem
    arrays = {"src": case.src, "wei": case.wei}
    for impl, got in unguarded.results(problem, case.attr, arrays, case.values):
        kind = classify(impl)
        if kind == "reference" or guards.matching(problem, case.attr, runtime.facts(), impl):
            continue
        ways = summations(problem, runtime.isa(), impl, src_zero_point=case.zero_point != 0)
        equal = np.any([got == emulated(case, way) for way in ways], axis=0)
        assert equal.all(), f"{impl}, {problem.text()}: {np.count_nonzero(~equal)} of {got.size}"
        # A matrix product in few columns may have parts of one column, which are summed otherwise.
        words = ways[0].text() if len(ways) == 1 else "either"
        COMPARED[problem.kind, problem.src.dtype, impl, words] += got.size


def emulated(case: sum_cases.SumCase, way: Summation) -> np.ndarray:
    wanted = sums(case.problem, case.src, case.wei, way, case.zero_point)
    if case.zero_point:
        # The sum goes through float32 on its way to s32.
        wanted = np.rint(wanted.astype(np.float32)).astype(np.int64)
    return wanted


@pytest.mark.parametrize("kind", sum_cases.KINDS)
def test_only_matrix_products_in_few_columns_leave_their_sums_open(kind: str) -> None:
    """Else every comparison below may pass for want of a decision."""
    impl = (
        "brg_matmul:avx512_core"
        if kind in {"inner_product", "matmul"}
        else "brg_conv_fwd:avx512_core"
    )
    known = InstructionSet("AVX512_CORE", vbmi=True)
    for case in sum_cases.stream(kind, "s8", 30, seed=0):
        for name in (impl, "gemm:jit"):
            ways = summations(case.problem, known, name, src_zero_point=False)
            few = name == "gemm:jit" and (
                case.src.shape[0] == 1 or case.problem.dst.dims[1:2] < (4,)
            )
            assert len(ways) == 1 or few


@pytest.mark.parametrize("window", sum_cases.WINDOWS, ids=str)
@pytest.mark.parametrize("groups", [1, 2])
def test_sums_of_one_output_channel(window: dict[str, Any], groups: int) -> None:
    """Products of one column: long sums are cut in halves if the source is copied first."""
    check(sum_cases.one_column(window, groups))


@pytest.mark.parametrize("src", ["u8", "s8"])
@pytest.mark.parametrize("kind", sum_cases.KINDS)
def test_sums_are_those_of_every_kernel(kind: str, src: str) -> None:
    for case in sum_cases.stream(kind, src, 25, seed=0):
        try:
            check(case)
        except UnsupportedError:
            continue


@pytest.mark.slow
@pytest.mark.truth
@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("src", ["u8", "s8"])
@pytest.mark.parametrize("kind", sum_cases.KINDS)
def test_very_many_sums(kind: str, src: str, seed: int) -> None:
    for case in sum_cases.stream(kind, src, 100, seed):
        try:
            check(case)
        except UnsupportedError:
            continue
