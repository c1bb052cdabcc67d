"""Data types: ranges, and the way to NumPy and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q import dtypes
from pyonednn_q.errors import DTypeError

INTEGERS = ("u8", "s8", "s32", "s4", "u4")
FLOATS = ("f32", "bf16", "f16")
PLAIN: dict[str, Any] = {
    "u8": np.uint8,
    "s8": np.int8,
    "s32": np.int32,
    "f32": np.float32,
    "f16": np.float16,
}


def test_every_name_is_an_integer_or_a_float() -> None:
    assert {name for name in dtypes.NAMES if dtypes.is_integer(name)} == set(INTEGERS)
    assert {name for name in dtypes.NAMES if dtypes.is_float(name)} == set(FLOATS)


@pytest.mark.parametrize("name", ["u8", "s8", "s32"])
def test_ranges_are_those_of_numpy(name: str) -> None:
    info = np.iinfo(PLAIN[name])
    assert (dtypes.qmin(name), dtypes.qmax(name)) == (info.min, info.max)
    assert dtypes.bits(name) == info.bits


def test_four_bit_ranges() -> None:
    assert (dtypes.qmin("s4"), dtypes.qmax("s4")) == (-8, 7)
    assert (dtypes.qmin("u4"), dtypes.qmax("u4")) == (0, 15)
    assert dtypes.bits("s4") == dtypes.bits("u4") == 4


@pytest.mark.parametrize("name", FLOATS)
def test_floats_have_no_integer_range(name: str) -> None:
    for limit in (dtypes.qmin, dtypes.qmax):
        with pytest.raises(DTypeError, match="an integer type"):
            limit(name)


@pytest.mark.parametrize("name", ["f64", "", "U8", None, 8])
def test_unknown_names_are_refused(name: object) -> None:
    with pytest.raises(DTypeError, match="one of u8, s8"):
        dtypes.checked(name)


@pytest.mark.parametrize(("name", "scalar"), PLAIN.items())
def test_names_go_to_numpy_and_back(name: str, scalar: type) -> None:
    assert dtypes.numpy_dtype(name) == np.dtype(scalar)
    assert dtypes.from_numpy(scalar) == name


def test_borrowed_names_go_to_numpy_and_back() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert dtypes.has_bf16()
    for name, scalar in (("bf16", "bfloat16"), ("s4", "int4"), ("u4", "uint4")):
        assert dtypes.numpy_dtype(name) == np.dtype(getattr(ml_dtypes, scalar))
        assert dtypes.from_numpy(getattr(ml_dtypes, scalar)) == name


def test_without_ml_dtypes_the_rest_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dtypes, "_ml_dtypes", lambda: None)
    assert not dtypes.has_bf16()
    assert dtypes.from_numpy(np.float32) == "f32"
    with pytest.raises(DTypeError, match="ml_dtypes"):
        dtypes.numpy_dtype("bf16")


@pytest.mark.parametrize("dtype", [">i4", ">f4", ">f2"])
def test_foreign_byte_order_is_refused_with_advice(dtype: str) -> None:
    with pytest.raises(DTypeError, match=r"foreign byte order; wanted native.*astype"):
        dtypes.from_numpy(dtype)


@pytest.mark.parametrize(
    ("dtype", "advice"),
    [("float64", "float32"), ("int64", "int32"), ("bool", "view"), ("complex64", "uint8, int8")],
)
def test_other_dtypes_are_refused_with_advice(dtype: str, advice: str) -> None:
    with pytest.raises(DTypeError, match=rf"^bias: got {dtype}; wanted .*{advice}"):
        dtypes.from_numpy(dtype, "bias")
