"""Names of data types."""

from __future__ import annotations

import pytest

from pyonednn_q.bench.precision import Precision
from pyonednn_q.errors import DTypeError


@pytest.mark.parametrize(
    ("name", "types"),
    [
        ("f32", ("f32", "f32", "f32")),
        ("bf16", ("bf16", "bf16", "bf16")),
        ("bf16bf16f32", ("bf16", "bf16", "f32")),
        ("u8s8u8", ("u8", "s8", "u8")),
        ("s8s8s32", ("s8", "s8", "s32")),
        ("u8s8bf16", ("u8", "s8", "bf16")),
    ],
)
def test_name(name: str, types: tuple[str, str, str]) -> None:
    assert Precision.parse(name) == Precision(*types)
    assert Precision.parse(name).name == name


def test_one_type_in_three_words_is_that_type() -> None:
    assert Precision.parse("f32f32f32").name == "f32"


@pytest.mark.parametrize(
    "name",
    ["", "int8", "u8", "s8", "u8s8", "u8u8u8", "f32bf16f32", "u8s8u8s8", "f32f32u8", "s4s8u8"],
)
def test_refused(name: str) -> None:
    with pytest.raises(DTypeError, match="u8s8u8"):
        Precision.parse(name)


def test_bytes() -> None:
    assert Precision.parse("u8s8f32").nbytes((10, 20, 30)) == 10 + 20 + 4 * 30
