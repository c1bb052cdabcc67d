"""Codes of groups: no step of a group's own scale further away than half of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.quantize.group_codes import group_codes


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("bits", [4, 8])
def test_codes_are_the_nearest_of_a_scale_that_holds_the_group(bits: int, symmetric: bool) -> None:
    rng = np.random.default_rng(bits)
    wei = rng.standard_normal((6, 40)) + 0.3
    codes, wei_q = group_codes(wei, 8, bits, symmetric=symmetric)
    assert wei_q.dtype == {True: "s", False: "u"}[symmetric] + str(bits)
    assert (wei_q.axis, wei_q.block) == (1, (8,))
    scale = np.repeat(wei_q.scale, 8, axis=1)
    # A zero point is a whole number, so that an end may be half a step off, and its code another.
    assert np.abs(wei_q.dequantize(codes) - wei).max() <= scale.max() * (0.5 if symmetric else 1.0)
    assert np.array_equal(wei_q.scale, np.float32(wei_q.scale))
    qmax = 2 ** (bits - 1) - 1 if symmetric else 2**bits - 1
    qmin = -(2 ** (bits - 1)) if symmetric else 0
    parts = codes.reshape(6, 5, 8).astype(int)
    assert ((parts.max(axis=2) == qmax) | (parts.min(axis=2) == qmin)).all()


def test_a_matmul_has_its_channels_last() -> None:
    wei = np.random.default_rng(0).standard_normal((12, 5))
    codes, wei_q = group_codes(wei, 4, 4, axis=-1, symmetric=False)
    turned, turned_q = group_codes(wei.T, 4, 4, axis=0, symmetric=False)
    assert np.array_equal(codes, turned.T)
    assert codes.flags.c_contiguous
    assert (wei_q.axis, wei_q.block) == (0, (4,))
    assert np.array_equal(wei_q.scale, np.transpose(turned_q.scale))
    assert np.array_equal(wei_q.zero_point, np.transpose(turned_q.zero_point))


def test_both_ends_use_their_last_code() -> None:
    codes, wei_q = group_codes([[7.0, -4.0], [3.5, -8.0]], 2)
    assert codes.tolist() == [[7, -4], [4, -8]]  # 3.5 is a tie, to even
    assert np.array_equal(wei_q.scale, [[1.0], [1.0]])
    codes, wei_q = group_codes([[0.0, 0.0, 30.0, -15.0]], 2, symmetric=False)
    assert codes.tolist() == [[0, 0, 15, 0]]
    assert np.array_equal(wei_q.scale, [[1.0, 3.0]])
    assert np.array_equal(wei_q.zero_point, [[0, 5]])


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        (([[1.0] * 6], 4), ShapeError, r"^groups: got 4; wanted a divisor of 6"),
        (([1.0] * 4, 4), ShapeError, r"^wei: got shape \(4,\)"),
        (([[np.nan, 1.0]], 2), ArgumentError, r"^wei: got values that are not finite"),
        (([[1e300, 1.0]], 2), ArgumentError, r"^wei: got a range of"),
        (([[1.0, 1.0]], 2, 3), ArgumentError, r"^bits: got 3; wanted 4 or 8"),
        (([[1.0, 1.0]], 0), ArgumentError, r"^groups: got 0"),
    ],
)
def test_what_has_no_groups_is_refused(arguments: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        group_codes(*arguments)
