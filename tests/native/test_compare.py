"""Whether arrays hold the same bytes, however they lie in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pyonednn_q.native import runtime

RNG = np.random.default_rng(9)


def numbers() -> Any:
    return RNG.integers(-4, 5, (8, 16)).astype(np.int8)


LAYOUTS: dict[str, Callable[[], Any]] = {
    "rows": numbers,
    "columns": lambda: np.asfortranarray(numbers()),
    "every other column": lambda: np.repeat(numbers(), 2, axis=1)[:, ::2],
    "every other row": lambda: np.repeat(numbers(), 2, axis=0)[::2],
    "backwards": lambda: numbers()[::-1, ::-1],
    "a part": lambda: np.tile(numbers(), (2, 2))[:8, :16],
}


@pytest.mark.parametrize("one", LAYOUTS)
@pytest.mark.parametrize("other", LAYOUTS)
def test_bytes_are_the_same_however_arrays_lie(one: str, other: str) -> None:
    same_bytes = runtime.core.same_bytes
    a, b = LAYOUTS[one](), LAYOUTS[other]()
    b[...] = a
    assert same_bytes(a, b) is True
    for index in [(0, 0), (3, 7), (7, 15)]:
        b[index] ^= 1
        assert same_bytes(a, b) is False
        b[index] ^= 1


def test_what_has_another_form_is_not_the_same() -> None:
    same_bytes = runtime.core.same_bytes
    zeros = np.zeros((4, 6), np.int8)
    assert not same_bytes(zeros, zeros.reshape(6, 4))
    assert not same_bytes(zeros, zeros.ravel())
    assert not same_bytes(zeros, np.zeros((4, 6), np.int16))
    assert same_bytes(zeros[:0], zeros[:0])
    assert same_bytes(np.zeros((), np.float32), np.zeros((), np.float32))
    assert not same_bytes(np.zeros(1, np.float32), -np.zeros(1, np.float32))
    for wrong in ((zeros,), (zeros, None), (zeros, zeros, zeros)):
        with pytest.raises(TypeError, match="two NumPy arrays"):
            same_bytes(*wrong)
