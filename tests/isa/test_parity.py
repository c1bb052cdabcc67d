"""Every dense primitive against the float64 oracle: equality, on whatever ISA this process runs.

oneDNN fixes its instruction set at first use, so the matrix is processes: `.ci/isa` runs this
folder under each ``ONEDNN_MAX_CPU_ISA``. Fills are clean, weights small and even, so that pairs of
products cannot saturate without VNNI and every float32 step is exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pyonednn_q import native
from pyonednn_q.errors import ReferenceKernelError, UnsupportedError
from pyonednn_q.native import runtime
from support import isa, parity, parity_post_ops

if TYPE_CHECKING:
    from support.cases import Case, Recipe


@pytest.fixture(scope="module", autouse=True)
def row_is_what_was_asked_for() -> None:
    asked = isa.limit()
    reason = isa.reason_row_is_unavailable(runtime.isa(), asked) if asked else None
    if reason is not None:
        pytest.skip(reason)


def prepare(case: Case, **options: Any) -> native.Prepared:
    wei, bias = case.constants.get("wei"), case.constants.get("bias")
    return native.prepare(
        case.problem, case.attr, wei=wei, bias=bias, values=case.values, **options
    )


def run(case: Case, **options: Any) -> tuple[native.Prepared, np.ndarray]:
    call = prepare(case, **options)
    return call, call(*case.inputs, out=case.out())


def check(recipe: Recipe) -> None:
    """Run one recipe; where the library has no fast kernel, the slow one must agree as well."""
    case = recipe.build()
    try:
        _, got = run(case)
    except ReferenceKernelError:
        _, got = run(case, allow_reference=True)
    case.check(got)


@pytest.mark.parametrize("cell", list(parity.cells()), ids="-".join)
def test_parity(cell: tuple[str, str, str, str]) -> None:
    for recipe in parity.recipes(*cell):
        check(recipe)


FAMILIES = {
    "eltwise": parity_post_ops.eltwise_recipes,
    "binary": parity_post_ops.binary_recipes,
    "sum": parity_post_ops.sum_recipes,
    "prelu": parity_post_ops.prelu_recipes,
    "chain": parity_post_ops.chain_recipes,
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", parity.KINDS)
def test_post_ops(kind: str, family: str) -> None:
    for recipe in FAMILIES[family](kind):
        check(recipe)


# A depthwise deconvolution of signed input runs on a GEMM, which takes it with a bias or any
# attribute, a scale of 1 included, but not bare with a signed dst. So on every instruction set.
REFERENCE_ONLY = {"deconvolution-depthwise-s8-s8-bare"}


def test_only_what_is_named_here_needs_a_reference_loop() -> None:
    refused: dict[str, str] = {}
    for recipe in parity.all_recipes():
        try:
            prepare(recipe.build())
        except UnsupportedError as error:
            refused[recipe.name] = str(error)
    assert refused.keys() == REFERENCE_ONLY, refused
