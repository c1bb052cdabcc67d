"""Float arrays to codes, against the definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import DTypeError, ShapeError
from pyonednn_q.expr.evaluate import evaluate
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.fq_forms import codes
from pyonednn_q.expr.steps import Chain
from pyonednn_q.ops.staged import Quantizer
from pyonednn_q.primitive.tensor import TensorSpec
from support.calls import layouts

DIMS = (2, 16, 5, 3)


def fq(first: float, count: int, step: float) -> FakeQuantize:
    low, high = first * step, (first + count - 1) * step
    return FakeQuantize(low, high, 0, 1, count)


RANGES = {
    "unsigned": (0.0, 256),
    "symmetric": (-128.0, 256),
    "odd": (-127.0, 255),
    "whole": (-77.0, 256),
    "fraction": (-42.3, 256),
    "16 levels": (-3.0, 16),
    "two": (0.0, 2),
}
LAYOUTS: dict[str, Any] = {
    **layouts.LAYOUTS,
    "one value": lambda x: np.broadcast_to(x[0, 0, 0, 0], x.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["u8", "s8"])
@pytest.mark.parametrize("name", RANGES)
def test_codes_of_clean_values_are_those_of_the_definition(
    name: str, dtype: str, layout: str
) -> None:
    """Quarters of a level: ties, ends and values outside, from arrays of any layout."""
    first, count = RANGES[name]
    step = 2.0**-4
    cut = codes(fq(np.rint(first * 2) / 2, count, step), signed=dtype == "s8")
    rng = np.random.default_rng(0)
    values = step / 4 * rng.integers(4 * int(first) - 9, 4 * (int(first) + count) + 9, DIMS)
    values = LAYOUTS[layout](values.astype(np.float32))
    spec = TensorSpec.channels_last(DIMS, dtype)
    got = Quantizer(cut, spec)(values)
    np.testing.assert_array_equal(got, evaluate(Chain(*cut.quantize), values))
    assert TensorSpec.of(got) == spec


@pytest.mark.parametrize("dtype", ["u8", "s8"])
@pytest.mark.parametrize("name", RANGES)
def test_codes_differ_only_next_to_ties(name: str, dtype: str) -> None:
    first, count = RANGES[name]
    step = 0.01234
    asked = fq(first, count, step)
    cut = codes(asked, signed=dtype == "s8")
    # A few float32 steps around ties, and anywhere.
    rng = np.random.default_rng(1)
    ties = ((first + rng.integers(0, count, (2000, 16)) + 0.5) * step).astype(np.float32)
    ties += np.spacing(ties) * rng.integers(-3, 4, ties.shape).astype(np.float32)
    spread = rng.uniform((first - 2) * step, (first + count + 1) * step, (2000, 16))
    values = np.concatenate([ties, spread.astype(np.float32)])
    got = Quantizer(cut, TensorSpec.dense(values.shape, dtype))(values)
    # The scale and the zero point rounded, a product and a sum of numbers this large; signed codes
    # lie 128 lower.
    exact = values.astype(np.float64)
    error = 4 * 2.0**-24 * (np.abs(exact) + (abs(first) + 128) * step)
    low, high = (evaluate(Chain(*cut.quantize), exact + e) for e in (-error, error))
    assert ((low <= got) & (got <= high)).all()
    assert (low != high)[:2000].any()
    assert not (low != high)[2000:].mean() > 2.0**-8


def test_values_of_another_type_or_shape_are_refused() -> None:
    quantize = Quantizer(codes(fq(0, 256, 1.0)), TensorSpec.dense((2, 3), "u8"))
    with pytest.raises(DTypeError, match="src: got float64; wanted float32, or u8 codes"):
        quantize(np.zeros((2, 3)))
    with pytest.raises(ShapeError, match="src"):
        quantize(np.zeros((3, 2), np.float32))
