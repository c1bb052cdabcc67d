"""Draw and quantizing: data on which a misreading shows, and what float sources mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.check.draw import Draw, by_own_range, quantized

RNG = np.random.default_rng(5)


@pytest.mark.parametrize(("dtype", "point"), [("u8", 0), ("u8", 7), ("u8", 255), ("s8", -3)])
@pytest.mark.parametrize("blocks", [(0, 1), (0, 3), (0, 64)])
def test_styles_go_from_quiet_to_both_ends(dtype: str, point: int, blocks: Any) -> None:
    toward = np.resize([1.0, -1.0], 32)
    turns = Draw.turns(blocks[1])
    draw, most = Draw(), {"u8": 255, "s8": 127}[dtype]
    drawn = [
        draw.source((64, 32), dtype, point, blocks=blocks, turn=turn, toward=toward)
        for turn in range(turns)
    ]
    rows = np.concatenate(drawn).astype(int)
    reach = np.abs(rows - point).max(axis=1)
    assert reach.min() <= 2
    assert reach.max() > 64
    ends = np.where(toward > 0, most, most - 255)
    assert (rows == ends).all(axis=1).any()
    assert (rows == most + most - 255 - ends).all(axis=1).any()


def test_styles_rise() -> None:
    """From a 128th of the range to all of it in six styles, then both ends; turn by turn."""
    rows = Draw().source((64, 32), "u8", blocks=(0, 8)).astype(int)
    reach = rows.reshape(8, -1).max(axis=1)
    assert (np.diff(reach[:6]) > 0).all()
    assert reach[0] <= 2
    assert reach[5] > 100
    turns = [Draw().source((4, 32), "u8", blocks=(0, 4), turn=turn) for turn in (0, 1)]
    assert turns[0].max() < 64
    assert turns[1][:2].max() > 64
    assert (turns[1][2:] == [[255], [0]]).all()


def test_floats_are_next_to_the_codes_that_they_mean() -> None:
    draw = Draw()
    for dtype, point, scale in (("u8", 3, 0.37), ("s8", -100, 1e-5)):
        codes = draw.source((16, 9), dtype, point)
        floats = draw.floats(codes, scale, point, dtype)
        found = quantized(floats, np.array(scale), np.array(point), dtype)
        np.testing.assert_array_equal(found, codes)
        assert len(np.unique(floats)) > len(np.unique(codes))


@pytest.mark.parametrize("rows", [1, 4])
def test_a_range_of_its_own_is_onnx_s(rows: int) -> None:
    """As DynamicQuantizeLinear's definition has it, in float32."""
    x = (RNG.normal(0.4, 1, (4, 6)) * np.array([[1], [10], [0.1], [3]])).astype(np.float32)
    found = by_own_range(x, "u8", rows)
    for row, scale, point, codes in zip(
        x.reshape(rows, -1), found.scale, found.zero_point, found.codes.reshape(rows, -1),
        strict=True,
    ):  # fmt: skip
        lo, hi = min(float(row.min()), 0.0), max(float(row.max()), 0.0)
        assert scale == np.float32(np.float32(hi) - np.float32(lo)) / np.float32(255)
        assert point == round(float(np.float32(-lo) / scale[0]))
        real = scale * (codes.astype(np.float64) - point)
        assert np.abs(real - row).max() <= 0.5001 * scale


def test_symmetric_ranges_and_nothing_at_all() -> None:
    found = by_own_range(np.array([-2.54, 1.0], np.float32), "s8")
    assert (found.codes.tolist(), float(found.zero_point[0, 0])) == ([-127, 50], 0.0)
    nothing = by_own_range(np.zeros((2, 3), np.float32), "u8", 2)
    assert (nothing.scale == 1).all()
    assert not nothing.codes.any()


def test_sources_of_32_bits_reach_20_of_them() -> None:
    codes = Draw().source((64, 32), "s32", toward=np.resize([1.0, -1.0], 32))
    assert (codes.min(), codes.max()) == (-(2**20), 2**20)
