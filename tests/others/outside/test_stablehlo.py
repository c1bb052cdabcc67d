"""StableHLO's quantized test data: modules of operators that there are here, to the last code."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest

from pyonednn_q.native import runtime
from support.outside import stablehlo
from support.outside.tally import compared, is_told
from support.outside.vectors import DATA, Case, load

pytestmark = pytest.mark.executed

# Cases and outputs in tests/data/stablehlo.npz.
COUNTS = {
    "convolution": (44, 191496),
    "dot_general": (5, 196),
    "add": (2, 13),
    "gather": (39, 7575),
    "uniform_quantize": (4, 8),
}
PRODUCTS = ("convolution", "dot_general")
WITHOUT = {
    **dict.fromkeys(("abs", "cbrt", "exponential", "exponential_minus_one", "log", "sqrt"), 1),
    **dict.fromkeys(("ceil", "cosine", "floor", "negate", "sign", "sine", "subtract", "tanh"), 2),
    "log_plus_one": 1,
    "round_nearest_afz": 3,
    "divide": 5,
    "multiply": 6,
}


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    origin, found = load(DATA / "stablehlo.npz")
    assert origin["source"] == "openxla/stablehlo"
    return found


@pytest.mark.parametrize("op", COUNTS)
def test_every_code_of_an_operator(op: str, cases: list[Case]) -> None:
    tally = compared([case for case in cases if case.op == op], stablehlo.answer)
    assert tally.wrong == []
    assert tally.cases + tally.refused == COUNTS[op][0]
    if op not in PRODUCTS or runtime.isa().has_vnni():
        assert (tally.outputs, tally.refused) == (COUNTS[op][1], 0)


@pytest.mark.parametrize("op", PRODUCTS)
def test_every_code_from_exact_sums(op: str, cases: list[Case]) -> None:
    """The interpreter multiplies sums by one float32, as the dialect of that name."""
    answer = partial(stablehlo.answer, requantize="onednn_one_scale")
    tally = compared([case for case in cases if case.op == op], answer)
    assert tally.wrong == []
    assert tally.cases + tally.refused == COUNTS[op][0]
    # Without VNNI there are only reference loops for a few groups of a few channels.
    assert tally.refused <= (0 if runtime.isa().has_vnni() else 6)


def test_what_has_no_answer_is_listed(cases: list[Case]) -> None:
    without = [case for case in cases if stablehlo.left_out(case) is not None]
    assert Counter(case.op for case in without) == WITHOUT
    assert {case.op for case in cases} == {*COUNTS, *WITHOUT}


def test_a_neighbouring_code_is_seen(cases: list[Case]) -> None:
    (case,) = (case for case in cases if case.name.startswith("quantized_ops") and case.op == "add")
    want = case.tensors[case.attributes["want"]]
    case.tensors[case.attributes["want"]] = want + 1
    assert len(compared([case], stablehlo.answer).wrong) == 1


@pytest.mark.parametrize("op", COUNTS)
def test_the_page_has_the_counts(op: str) -> None:
    assert is_told("StableHLO", op, *COUNTS[op]), "run tools/pages/outside_suites.py"
