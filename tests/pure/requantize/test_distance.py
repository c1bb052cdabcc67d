"""How far dialects say that they are from the real value: never further, and as far as that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError
from pyonednn_q.requantize import DIALECTS, requantize

LIMITS = {"u8": (0, 255), "s8": (-128, 127), "s32": (-(2**31), 2**31 - 1)}


def drawn(rng: np.random.Generator, dst_dtype: str) -> tuple[dict[str, Any], float]:
    """Scales whose M is anything that runtimes take, and M."""
    src, wei = 10.0 ** rng.uniform(-3, 1, 2)
    multiplier = 2.0 ** rng.uniform(-30 if rng.random() < 0.5 else -3, 0)
    lo, hi = LIMITS[dst_dtype]
    point = 0 if dst_dtype == "s32" else int(rng.integers(lo, hi + 1))
    scales = {"src_scale": src, "wei_scale": wei, "dst_scale": src * wei / multiplier}
    return {**scales, "dst_zero_point": point, "dst_dtype": dst_dtype}, multiplier


@pytest.mark.parametrize("dst_dtype", LIMITS)
@pytest.mark.parametrize("name", DIALECTS)
def test_no_result_is_further_away(name: str, dst_dtype: str) -> None:
    distance, furthest = DIALECTS[name].distance, 0.0
    rng = np.random.default_rng(9)
    for _ in range(150):
        given, multiplier = drawn(rng, dst_dtype)
        multiplier = min(multiplier, DIALECTS[name].most)
        reach = min(2.0**31 - 1, 300 / multiplier)
        acc = rng.uniform(-reach, reach, 64).astype(np.int32)
        try:
            got = requantize(acc, name, **given).astype(np.float64)
        except ArgumentError:  # the dialect has no such multiplier
            continue
        real = acc * multiplier
        value = np.clip(real + given["dst_zero_point"], *LIMITS[dst_dtype])
        room = distance.levels + distance.relative * (np.abs(real) + abs(given["dst_zero_point"]))
        off = np.abs(got - value)
        assert (off <= room + distance.of_acc * np.abs(acc)).all()
        furthest = max(furthest, float(off.max()))
    assert furthest > 0.9 * distance.levels


def test_a_multiplier_beyond_the_most_is_that() -> None:
    acc = np.array([100, -50], np.int32)
    got = requantize(acc, "tpu_mlir_qdm", src_scale=3.0, wei_scale=1.0, dst_scale=1.0)
    assert got.tolist() == [100, -50]
    assert all(one.most == np.inf for one in DIALECTS.values() if one.name != "tpu_mlir_qdm")
