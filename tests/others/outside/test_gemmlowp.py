"""gemmlowp's GEMM vectors, one of them captured from a network: each is one call, exact."""

from __future__ import annotations

from functools import partial

import pytest

from support.outside import gemmlowp
from support.outside.tally import compared
from support.outside.vectors import DATA, Case, load

pytestmark = pytest.mark.executed

# In tests/data/gemmlowp.npz.
COUNTS = {
    "TestWithRealData": 192 * 256,
    "TestWithSmallDataPerChannelQuantization": 2 * 9,
    "TestWithLargeDataPerChannelQuantization": 22 * 25,
}


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    origin, found = load(DATA / "gemmlowp.npz")
    assert origin["source"] == "google/gemmlowp"
    return found


@pytest.mark.parametrize("dialect", gemmlowp.DIALECTS)
def test_every_code(dialect: str, cases: list[Case]) -> None:
    assert [case.name for case in cases] == list(COUNTS)
    for case in cases:
        tally = compared([case], partial(gemmlowp.answer, dialect=dialect))
        assert tally.wrong == []
        assert tally.outputs == COUNTS[case.name]


def test_another_rounding_is_seen(cases: list[Case]) -> None:
    """A sixth of real sums lies where two roundings give another code."""
    assert compared(cases, partial(gemmlowp.answer, dialect="tpu_mlir_literal")).wrong
