"""Which FakeQuantize is nothing but a scale and a store to an integer type.

Accepted: the two patterns are recognised, u8 with Z_i = 0 and levels 0..255, s8 with Z_i = 128 and
levels -128..127; what is near them is not: another type, another number of levels, ends that are
off, a zero point that is not the store's, one channel that differs.
"""

from __future__ import annotations

import numpy as np
import pytest

from pyonednn_q.compose.composer import compose
from pyonednn_q.errors import DTypeError
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.fq_forms import scale_alone
from pyonednn_q.expr.vec import Vec
from pyonednn_q.primitive.dense_facts import PrimitiveFacts

HIGH = (0.75, 3.0, 12.5)
U8 = FakeQuantize(0, HIGH, 0, 255)
S8 = FakeQuantize.symmetric(HIGH, output_low=-128, output_high=127)
LIMITS = {"u8": (0, 255), "s8": (-128, 127)}
X = np.linspace(-20, 20, 3 * 4001).reshape(-1, 3)


@pytest.mark.parametrize(("fq", "dtype"), [(U8, "u8"), (S8, "s8")])
def test_the_two_patterns(fq: FakeQuantize, dtype: str) -> None:
    scale = scale_alone(fq, dtype)
    assert scale is not None
    top = 255 if dtype == "u8" else 127
    np.testing.assert_allclose(scale.values(), top / np.array(HIGH), rtol=1e-15)
    assert scale_alone(fq, "s8" if dtype == "u8" else "u8") is None


@pytest.mark.parametrize(("fq", "dtype"), [(U8, "u8"), (S8, "s8")])
def test_storing_the_scaled_value_is_the_definition(fq: FakeQuantize, dtype: str) -> None:
    scale = scale_alone(fq, dtype)
    assert scale is not None
    place = X * scale.spread(3)
    stored = np.clip(np.rint(place), *LIMITS[dtype])
    clear = abs(place % 1 - 0.5) > 1e-9  # the ranges are no float64 numbers, so ties are blurred
    want = np.rint(fq(X))
    assert (stored == want)[clear].all()
    assert clear.mean() > 0.99


@pytest.mark.parametrize("levels", ["u4", "s4"])
def test_four_bits_likewise(levels: str) -> None:
    low, top = (0, 15) if levels == "u4" else (-8, 7)
    fq = FakeQuantize(low * 0.5, top * 0.5, low, top, 16)
    assert scale_alone(fq, levels) == Vec(2.0)


@pytest.mark.parametrize(("fq", "dtype"), [(U8, "u8"), (S8, "s8")])
def test_the_composer_needs_nothing_but_a_weight_scale(fq: FakeQuantize, dtype: str) -> None:
    plan = compose(fq.chain(), PrimitiveFacts("convolution", 3, dst=dtype))
    assert plan.post_ops == ()
    assert plan.bias is None
    assert [name for name, _ in plan.constants] == ["wei_scale"]


NEAR_U8 = {
    "254 levels": FakeQuantize(0, 254, 0, 254, 255),
    "levels from 1": FakeQuantize(0, 1, 1, 256),
    "levels two apart": FakeQuantize(0, 1, 0, 510),
    "levels half apart": FakeQuantize(0, 1, 0, 127.5),
    "levels that fall": FakeQuantize(0, 1, 255, 0),
    "last level off": FakeQuantize(0, 1, 0, 255.001),
    "values, not levels": FakeQuantize(0, 1, 0, 1),
    "range from below 0": FakeQuantize(-0.01, 1, 0, 255),
    "range from above 0": FakeQuantize(0.01, 1, 0, 255),
    "zero point of s8": FakeQuantize(-128, 127, 0, 255),
    "one channel from below 0": FakeQuantize([0, -0.01], 1, 0, 255),
    "one channel with 254": FakeQuantize(0, 1, 0, [255, 254]),
    "a threshold": FakeQuantize(0.5, 0.5, 0, 1, 2),
    "two levels": FakeQuantize(0, 1, 0, 1, 2),
    "65536 levels": FakeQuantize(0, 1, 0, 65535, 65536),
}
NEAR_S8 = {
    "not stretched": FakeQuantize(-1, 1, -128, 127),
    "narrow": FakeQuantize(-127, 127, -127, 127, 255),
    "levels of u8": FakeQuantize(-128, 127, 0, 255),
    "levels from -127": FakeQuantize(-128, 127, -127, 128),
    "range of u8": FakeQuantize(0, 255, -128, 127),
    "half a zero point": FakeQuantize(-127.5, 127.5, -128, 127),
    "one channel not stretched": FakeQuantize([-128, -1], [127, 1], -128, 127),
    "values, not levels": FakeQuantize.symmetric(1.0),
}


@pytest.mark.parametrize(
    ("fq", "dtype"),
    [(fq, "u8") for fq in NEAR_U8.values()] + [(fq, "s8") for fq in NEAR_S8.values()],
    ids=[*(f"u8: {name}" for name in NEAR_U8), *(f"s8: {name}" for name in NEAR_S8)],
)
def test_near_misses(fq: FakeQuantize, dtype: str) -> None:
    assert scale_alone(fq, dtype) is None


def test_tolerance() -> None:
    """1e-4 of a level, so that ranges that went through float32 are recognised."""
    low = float(np.float32(-128 / 127))
    fq = FakeQuantize(low, 1, -128, 127)
    assert scale_alone(fq, "s8") is not None
    assert scale_alone(fq, "s8", tolerance=0.0) is None
    assert scale_alone(FakeQuantize(0, 1, 0, 255.001), "u8", tolerance=0.01) == Vec(255.0)
    assert scale_alone(FakeQuantize(0, 1, 0, 255.00009), "u8") is not None


@pytest.mark.parametrize("dtype", ["f32", "float32", "int7"])
def test_only_integers_store_levels(dtype: str) -> None:
    with pytest.raises(DTypeError, match="dtype"):
        scale_alone(U8, dtype)
