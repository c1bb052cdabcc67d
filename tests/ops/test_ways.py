"""Ways: rows are tried in their order, and what each refusal said is kept and shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.compose.plan import Plan
from pyonednn_q.ops import asking, planned, ways

RNG = np.random.default_rng(9)
WEI = (2 * RNG.integers(-9, 10, (16, 8, 3, 3))).astype(np.int8)
PAGE = Path(__file__).parents[2] / "docs" / "what_runs_instead.md"
SRC = RNG.integers(0, 256, (2, 8, 6, 5)).astype(np.uint8)
SAID = "not today"


def convolution(**more: Any) -> pq.Conv:
    """One with a zero point that a bias can carry."""
    options: dict[str, Any] = {"dst": "f32", **more}
    return pq.Conv(WEI, src_q=pq.QParams(0.5, 7, "u8"), wei_q=pq.QParams(0.25, 0, "s8"), **options)


def refuse(patch: pytest.MonkeyPatch, is_refused: Callable[[Plan], bool]) -> None:
    """Let no kernel take plans of some kind, and no guard be known."""
    usual = planned.prepare_plan

    def prepare_plan(plan: Plan, *args: Any, **options: Any) -> Any:
        if is_refused(plan):
            raise pq.UnsupportedError("refused", "preparing", "a problem", "not today")
        return usual(plan, *args, **options)

    patch.setattr(asking, "prepare_plan", prepare_plan)
    patch.setattr(ways, "wrong_with_zero_point", lambda *_: ())


def has_point(plan: Plan) -> bool:
    return plan.attr.src_zero_point is not None


def test_what_was_refused_is_kept_and_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = convolution()(SRC)
    refuse(monkeypatch, has_point)
    operator = convolution()
    np.testing.assert_array_equal(operator(SRC), expected)
    shown = pq.inspect(operator, SRC.shape, verbose=False)
    assert shown.tried == (("as asked", SAID),)
    assert f"  tried           as asked: {SAID}\n" in str(shown)
    assert "not by attribute: no kernel takes it" in shown.notes


def test_ways_are_named_by_all_that_they_change(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, lambda plan: has_point(plan) or plan.is_whole)
    rounded = convolution(dst_q=pq.QParams(2.0, 0, "u8"), dst=None).prepare(SRC.shape)
    names = ["as asked", "f32 first", "zero point by bias or map"]
    assert [name for name, _ in rounded.tried] == names
    assert any("f32, then what stores it" in note for note in rounded.notes)


def test_the_first_refusal_is_raised_where_no_row_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, lambda _: True)
    with pytest.raises(pq.UnsupportedError, match="not today"):
        convolution().prepare(SRC.shape)


def test_a_policy_permits_what_a_row_promises(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bias rounds the share of the zero point on its own: not where bits are promised."""
    refuse(monkeypatch, has_point)
    with pytest.raises(pq.UnsupportedError, match="not today"):
        convolution(policy="bitwise").prepare(SRC.shape)


def test_every_row_says_what_it_asks_for() -> None:
    runs = {(row.level, row.moment) for row in ways.WAYS if row.moment != "advised"}
    assert {level for level, _ in runs} == set(ways.LEVELS)
    assert {level for level, moment in runs if moment == "timed"} == {"form"}
    assert all(row.asks.__doc__ for row in ways.WAYS)
    # What has other numbers is never run in place of what was asked.
    assert {row.moment for row in ways.WAYS if row.exactness is None} == {"advised"}


def test_the_page_has_every_row_in_order() -> None:
    rows = [
        f"| {row.moment} | {row.name} | {(row.asks.__doc__ or '').splitlines()[0]} "
        f"| {row.exactness or 'numbers may change'} |"
        for row in ways.WAYS
    ]
    table = PAGE.read_text("utf-8").partition("## All ways")[2].partition("|---|---|---|---|\n")[2]
    assert table.partition("\n\n")[0].rstrip("\n").splitlines() == rows, "\n".join(rows)
