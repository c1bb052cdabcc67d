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


@pytest.mark.parametrize("name", ["s4g128", "u4g32", "s8g16", "u8g64"])
def test_groups(name: str) -> None:
    precision = Precision.parse(name)
    wei, _, group = name.partition("g")
    assert precision == Precision("s8", wei, "f32", int(group))
    assert precision.name == name
    assert precision.is_int8
    with pytest.raises(DTypeError, match="primitive"):
        precision.check_primitive()


@pytest.mark.parametrize(
    "name",
    [
        "",
        "int8",
        "u8",
        "s8",
        "u8s8",
        "u8u8u8",
        "f32bf16f32",
        "u8s8u8s8",
        "f32f32u8",
        "s4s8u8",
        "s4g0",
        "s4g",
        "f32g32",
    ],
)
def test_refused(name: str) -> None:
    with pytest.raises(DTypeError, match="u8s8u8"):
        Precision.parse(name)


def test_bytes() -> None:
    assert Precision.parse("u8s8f32").nbytes((10, 20, 30)) == 10 + 20 + 4 * 30
    # Float rows, half a byte a weight, and a scale of four bytes a group.
    assert Precision.parse("s4g32").nbytes((10, 64, 30)) == 4 * 10 + 32 + 2 * 4 + 4 * 30
