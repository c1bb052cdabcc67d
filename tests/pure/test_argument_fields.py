"""What may be the field of a value, by its annotation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from pyonednn_q.argument import check_fields
from pyonednn_q.errors import ArgumentError


@dataclass(frozen=True)
class Tally:
    """A value of this file."""

    count: int
    mean: float
    sizes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)


RIGHT: dict[str, Any] = {"count": 3, "mean": 0.5, "sizes": (1, 2)}


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("count", 2**63 - 1, None),
        ("count", -(2**63) + 1, None),
        ("mean", 2**900, None),
        ("count", 2**63, "an int within 9223372036854775807"),
        ("count", -(10**5000), "an int within 9223372036854775807"),
        ("count", 1.0, "an int within 9223372036854775807"),
        ("count", True, "an int within 9223372036854775807"),
        ("mean", 10**400, "float"),
        ("sizes", (1, 10**5000), "tuple"),
    ],
    ids=range(9),
)
def test_whole_numbers_have_64_bits(name: str, value: object, wanted: str | None) -> None:
    fields = {**RIGHT, name: value}
    if wanted is None:
        assert getattr(Tally(**fields), name) == value
        return
    with pytest.raises(ArgumentError, match=f"^{name}: got .*; wanted {wanted}"):
        Tally(**fields)
