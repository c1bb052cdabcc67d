"""A primitive is described, made and run for one number of threads, whoever sets another between.

oneDNN books scratch memory for the number that a descriptor was made with, and finds primitives in
its cache by the number that they are made with. Where the two differ, it works beyond the memory
that it asked for.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.native import runtime
from pyonednn_q.primitive.attr import Attr
from pyonednn_q.primitive.problem import MatMulProblem
from support.threads import run_together

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyonednn_q._core import Candidate, Prepared

RNG = np.random.default_rng(5)
WEI = RNG.integers(-5, 6, (32, 24)).astype(np.int8)


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    if runtime.threading_runtime() != "OMP":
        pytest.skip("OpenMP alone keeps the number of threads per thread")
    with runtime.threads(runtime.get_num_threads()):
        yield


def openmp() -> ctypes.CDLL:
    """The OpenMP that oneDNN uses in this process."""
    library = ctypes.CDLL(runtime.loaded().path)
    assert library.omp_get_max_threads() >= 1
    return library


def candidate(rows: int) -> Candidate:
    problem = MatMulProblem.of((rows, 32), (32, 24), dst="s32")
    return runtime.core.Candidate(problem.boundary(), Attr().boundary())


def prepared(of: Candidate) -> Prepared:
    return runtime.core.Prepared(of, ["src", "dst"], {"wei": of.pack("wei", WEI)}, {})


def expect_right(primitive: Prepared, rows: int) -> None:
    src = RNG.integers(0, 9, (rows, 32)).astype(np.uint8)
    dst = np.empty((rows, 24), np.int32)
    primitive.run(src, dst)
    np.testing.assert_array_equal(dst, src.astype(np.int32) @ WEI.astype(np.int32))


def set_by_us(n: int) -> None:
    runtime.set_num_threads(n)


def set_by_others(n: int) -> None:
    openmp().omp_set_num_threads(n)


@pytest.mark.parametrize("change", [set_by_us, set_by_others])
@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (2, 3)])
@pytest.mark.parametrize("rows", [40, 130])
def test_a_primitive_asks_for_what_its_descriptor_said(
    change: Callable[[int], None], before: int, after: int, rows: int
) -> None:
    with runtime.threads(after):
        prepared(candidate(rows))  # the library's cache has it now
    with runtime.threads(before):
        described = candidate(rows)
        change(after)
        made = prepared(described)
        assert made.scratchpad_bytes == described.scratchpad_bytes
        expect_right(made, rows)


def test_scratch_memory_depends_on_the_number_of_threads() -> None:
    """Or the test above would show nothing."""
    if not runtime.isa().has_vnni():
        pytest.skip("without VNNI gemm:jit takes this problem, and no scratch memory")
    sizes = []
    for n in (1, 3):
        with runtime.threads(n):
            sizes.append(candidate(40).scratchpad_bytes)
    assert sizes[0] < sizes[1], "another problem is to be taken above"


def test_the_number_of_the_calling_thread_stays_its_own() -> None:
    library = openmp()

    def numbers(index: int) -> Any:
        library.omp_set_num_threads(5 + index)
        made = prepared(candidate(40))
        expect_right(made, 40)
        return library.omp_get_max_threads()

    with runtime.threads(2):
        assert [rounds[0] for rounds in run_together(3, numbers)] == [5, 6, 7]


def test_a_network_runs_primitives_of_different_numbers() -> None:
    q = pq.QParams(1.0, 0, "u8")
    rows = RNG.integers(0, 3, (40, 32)).astype(np.uint8)
    wei = [RNG.integers(-1, 2, (32, 32)).astype(np.int8) for _ in range(3)]
    layers = [pq.MatMul(w, src_q=q, wei_q=pq.QParams(1.0, 0, "s8"), dst_q=q) for w in wei]
    expected = rows
    for n, layer in zip((1, 3, 2), layers, strict=True):
        with runtime.threads(n):
            expected = layer(expected)
    nodes = [
        pq.network.Node(f"t{at}", layer, f"t{at - 1}" if at else "x")
        for at, layer in enumerate(layers)
    ]
    network = pq.network.Network(["x"], nodes, ["t2"])
    for n in (3, 1):
        with runtime.threads(n):
            np.testing.assert_array_equal(network(rows)["t2"], expected)
