"""What people read: results as one line or in a notebook; errors that say what would do."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.acc.repair import repair
from pyonednn_q.acc.verdict import saturation
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.explain import presets
from pyonednn_q.explain.description import read
from pyonednn_q.explain.plan_report import Report
from pyonednn_q.predict.difference import DifferenceReport
from support.bench_runs import row, run

WEI = np.full((64, 16, 3, 3), 127, np.int8)
CODES = np.ones((16, 8, 3, 3), np.int8)
Q: dict[str, Any] = {"src_q": pq.QParams(0.5, 2, "u8"), "wei_q": pq.QParams(0.25, 0, "s8")}
CONV = pq.Conv(
    WEI,
    src_q=pq.QParams(0.1, 0, "u8"),
    wei_q=pq.QParams(0.1, 0, "s8"),
    padding=1,
    saturation="allow",
)
DIMS = (1, 16, 8, 8)
REPORT = Report.of(read(presets.get("conv_bias_relu")))
RESULTS: dict[str, tuple[Callable[[], object], str]] = {
    "operator": (lambda: CONV, "64 x 16 x 3 x 3"),
    "prepared operator": (lambda: CONV.prepare(DIMS), "scratchpad"),
    "primitive": (lambda: CONV.prepare(DIMS).primitive, "scratchpad"),
    "plan": (lambda: REPORT.plan, "wei_scale"),
    "explanation of a layer": (lambda: REPORT, "holds for every oneDNN"),
    "inspection": (lambda: pq.inspect(CONV, DIMS, verbose=False), "scratchpad"),
    "verdict": (
        lambda: saturation(CONV.prepare(DIMS).form.asked, WEI, "AVX2"),
        f"  63: sums of pairs from 0 to {2 * 255 * 127},",
    ),
    "repair": (lambda: repair(CONV.prepare(DIMS).form.asked, WEI, "AVX2"), "dB"),
    "difference": (lambda: DifferenceReport(9, 1, ((0, 3),), 2, 0.1), "first at (0, 3)"),
    "run of bench": (lambda: run(row("conv1", "u8s8u8", 10.0)), '<td class="right">10.0</td>'),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_one_line_and_all_of_it_in_a_notebook(name: str) -> None:
    make, words = RESULTS[name]
    result: Any = make()
    line = repr(result)
    assert len(line) <= 160
    assert "\n" not in line
    assert line.startswith(f"<{type(result).__name__} ")
    shown = result._repr_html_()
    assert words in html.unescape(shown)
    assert "<script" not in shown


def test_other_orders_of_dims_are_told_what_would_do() -> None:
    """What a message says to pass is taken."""
    last = np.ones((1, 6, 5, 8), np.uint8)
    with pytest.raises(ShapeError, match=r"goes as src\.transpose\(0, 3, 1, 2\), which"):
        pq.Conv(CODES, **Q)(last)
    assert pq.Conv(CODES, **Q)(last.transpose(0, 3, 1, 2)).shape[1] == len(CODES)
    hwio = np.ascontiguousarray(CODES.transpose(2, 3, 1, 0))
    with pytest.raises(ShapeError, match=r"go as wei\.transpose\(3, 2, 0, 1\)$"):
        pq.Conv(hwio, **Q)(np.ones((1, 8, 6, 5), np.uint8))
    turned = pq.Conv(hwio.transpose(3, 2, 0, 1), **Q)
    assert turned(np.ones((1, 8, 6, 5), np.uint8)).shape[1] == len(CODES)


def test_real_weights_where_codes_are_wanted_are_told_what_would_do() -> None:
    with pytest.raises(DTypeError, match=r"^wei: got f32; .*quantize\(wei\), or from_float"):
        pq.Conv(CODES.astype(np.float32), **Q)
    with pytest.raises(ArgumentError, match=r"did you mean gelu_erf or gelu_tanh\?\)$"):
        pq.Eltwise("gelu")
