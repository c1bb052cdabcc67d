"""The rooms of the maths hand round values: frozen, without a dict, compared by what they say."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest

ROOMS = (
    *("primitive", "expr", "rewrite", "requantize", "quantize", "check"),
    *("faults", "acc", "compose", "predict"),
)
# They hold arrays, so that equality is theirs to define, or none.
OF_ARRAYS = {
    *("FactorCodes", "IntegerWeights", "Layer", "Repair", "Requantizer", "RotaryAngles"),
    "SourceRepair",
    *("WeightCodes", "Witness"),
}
STILL_BUILT = {"_Builder", "_Item"}


def classes() -> Iterator[type]:
    for name in ROOMS:
        room = importlib.import_module(f"pyonednn_q.{name}")
        for found in pkgutil.walk_packages(room.__path__, room.__name__ + "."):
            module = importlib.import_module(found.name)
            own = [each for each in vars(module).values() if isinstance(each, type)]
            own = [each for each in own if each.__module__ == module.__name__]
            yield from (each for each in own if "__dataclass_params__" in vars(each))


CLASSES = list(classes())


def test_there_are_many() -> None:
    assert len(CLASSES) > 80


@pytest.mark.parametrize("each", CLASSES, ids=lambda each: each.__name__)
def test_is_a_value(each: type) -> None:
    how = vars(each)["__dataclass_params__"]
    assert how.frozen is (each.__name__ not in STILL_BUILT)
    assert "__slots__" in vars(each)
    assert how.eq is (each.__name__ not in OF_ARRAYS)
    made_by: Any = vars(each).get("__init__")
    assert how.init is (made_by.__code__.co_filename == "<string>")
