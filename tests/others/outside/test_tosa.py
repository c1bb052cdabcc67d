"""TOSA's integer profile: what its test generator gives, against what its reference model computes.

tests/data/tosa.npz has cases of tosa-tools; where tosa-tools is installed, others are made.
"""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pyonednn_q.native import runtime
from support.outside import tosa
from support.outside.tally import compared, is_told
from support.outside.vectors import DATA, Case, load

if TYPE_CHECKING:
    from collections.abc import Iterable

pytestmark = pytest.mark.executed

GENERATOR = "tosa_verif_build_tests"
TOOL = Path(__file__).parents[3] / "tools/vectors/tosa_vectors.py"
# Cases and outputs in tests/data/tosa.npz.
COUNTS = {
    "RESCALE": (240, 10722),
    "CONV2D": (25, 2675),
    "CONV3D": (20, 2886),
    "DEPTHWISE_CONV2D": (40, 3793),
    "TRANSPOSE_CONV2D": (30, 10267),
    "MATMUL": (2, 756),
    "AVG_POOL2D": (40, 8887),
    "MAX_POOL2D": (20, 4704),
    "CLAMP": (4, 100),
    "MUL": (3, 13),
}


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    origin, found = load(DATA / "tosa.npz")
    assert origin["source"].startswith("tosa-tools")
    return found


def of(cases: Iterable[Case], op: str) -> list[Case]:
    return [case for case in cases if case.op == op and tosa.left_out(case) is None]


@pytest.mark.parametrize("op", tosa.OPERATORS)
def test_every_output_of_an_operator(op: str, cases: list[Case]) -> None:
    tally = compared(of(cases, op), tosa.answer)
    assert tally.wrong == []
    assert (tally.cases, tally.outputs) == COUNTS[op]


@pytest.mark.parametrize("form", tosa.FORMS)
@pytest.mark.parametrize("op", tosa.SUMS)
def test_every_sum_of_products(op: str, form: str, cases: list[Case]) -> None:
    tally = compared(of(cases, op), partial(tosa.answer, form=form))
    assert tally.wrong == []
    assert tally.cases + tally.refused == COUNTS[op][0]
    if form == "requantize" or runtime.isa().has_vnni():
        assert (tally.outputs, tally.refused) == (COUNTS[op][1], 0)


def test_what_has_no_answer_is_listed(cases: list[Case]) -> None:
    assert Counter(filter(None, map(tosa.left_out, cases))) == {
        "ADD of int32: oneDNN's binary goes through float32": 4,
        "MUL of int16: oneDNN's binary goes through float32": 4,
        "MUL of int32: oneDNN's binary goes through float32": 23,
    }
    assert {case.op for case in cases} == {*COUNTS, "ADD"}


@pytest.mark.parametrize("mode", [tosa.SINGLE, tosa.INEXACT, tosa.DOUBLE])
def test_rounding_modes_are_told_apart(mode: int, cases: list[Case]) -> None:
    """In another mode than their own, cases of 32-bit scales give other integers."""
    scaled = [case for case in of(cases, "RESCALE") if case.attributes["scale32"]]
    own = [case for case in scaled if case.attributes["rounding_mode"] == mode]
    for other in {tosa.SINGLE, tosa.INEXACT, tosa.DOUBLE} - {mode}:
        changed = [
            replace(case, attributes=case.attributes | {"rounding_mode": other}) for case in own
        ]
        assert compared(changed, tosa.answer).wrong


def test_new_cases_of_an_installed_generator(tmp_path: Path) -> None:
    found = shutil.which(GENERATOR)
    if found is None:
        pytest.skip(f"tosa-tools is not installed: no {GENERATOR} on the path")
    python = Path(found).with_name("python")
    part = tmp_path / "tosa.npz"
    command = [str(python), str(TOOL), str(part), "--seed", "7", "--quick"]
    subprocess.run(command, check=True, capture_output=True)
    _, made = load(part)
    for op in {case.op for case in made}:
        if op in tosa.SUMS:
            tally = compared(of(made, op), partial(tosa.answer, form="requantize"))
        else:
            tally = compared(of(made, op), tosa.answer)
        assert tally.wrong == []
        assert tally.outputs > 0


@pytest.mark.parametrize("op", COUNTS)
def test_the_page_has_the_counts(op: str) -> None:
    assert is_told("TOSA", op, *COUNTS[op]), "run tools/pages/outside_suites.py"
