"""The tables of docs/dialects.md: counted again, they come out the same."""

from __future__ import annotations

from pathlib import Path

import pytest

import dialects
import dialects_mismatch
from dialects_mismatch import REGIMES, ROWS

PAGE = Path(__file__).parents[2] / "docs" / "dialects.md"


@pytest.mark.slow
@pytest.mark.truth
def test_the_page_is_what_the_tool_writes_now() -> None:
    page = "\n".join([*dialects.static_page(), *dialects.mismatch_page()]) + "\n"
    assert PAGE.read_text() == page, "run: python tools/dialects.py > docs/dialects.md"


def test_ties_explain_what_one_exact_rounding_changes() -> None:
    """On dyadic multipliers, dialects that round once differ from exact at halves only."""
    counted = dialects_mismatch.tallies(REGIMES[2], ROWS)["exact"]
    for name in ("exact_half_away", "tflite_1step", "onednn", "tpu_mlir"):
        tally = counted[name]
        assert tally.count > 0
        assert tally.ties == tally.looked_at > 0
    assert 0 < counted["tflite_2step"].ties < counted["tflite_2step"].looked_at


@pytest.mark.parametrize("regime", REGIMES[:2], ids=lambda regime: regime.letter)
def test_one_rounding_is_exact_on_generic_scales_and_two_are_not(
    regime: dialects_mismatch.Regime,
) -> None:
    counted = dialects_mismatch.tallies(regime, ROWS)["exact"]
    assert counted["tflite_1step"].count == counted["exact_half_away"].count == 0
    assert counted["tflite_2step"].count > 1000
    assert 0 < counted["onnxruntime"].count < 100
