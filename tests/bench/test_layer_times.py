"""Times of layers by width: what takes longer costs more, and what cannot be timed is refused."""

from __future__ import annotations

import time
from typing import Any

import pytest

from pyonednn_q.bench.layer_times import layer_times
from pyonednn_q.errors import ArgumentError
from pyonednn_q.quantize import assign_bits

pytestmark = pytest.mark.executed


def test_times_are_medians_in_microseconds_of_every_width() -> None:
    calls = {
        "first": {32: lambda: time.sleep(4e-3), 8: lambda: time.sleep(1e-3)},
        "second": {32: lambda: time.sleep(2e-3), 8: lambda: None},
    }
    times = layer_times(calls, min_time=0.03)
    assert {name: set(row) for name, row in times.items()} == {"first": {32, 8}, "second": {32, 8}}
    assert times["first"][32] >= 4000 > times["first"][8] >= 1000 > times["second"][8]
    lost = {"first": {32: 0.0, 8: 1.0}, "second": {32: 0.0, 8: 5.0}}
    limit = times["first"][8] + times["second"][32]
    assert assign_bits(lost, times, limit).bits == {"first": 8, "second": 32}


@pytest.mark.parametrize("layers", [{}, {"a": {}}, {"a": {8: 3}}, {"a": 3}])
def test_what_cannot_be_timed(layers: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^layers: got"):
        layer_times(layers)
