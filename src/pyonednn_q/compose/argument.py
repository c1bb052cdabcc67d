"""What a single argument must be: the checks that constructors of frozen values share.

Each names the argument when it refuses.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Iterable


def integers(argument: str, values: Iterable[Any]) -> tuple[int, ...]:
    """Return `values` as a tuple of ints.

    Raises
    ------
    ShapeError
        A value is not an integer (a float is not, even a whole one), or not one of 64 bits; or the
        values have no order.
    """
    ordered(argument, values)
    try:
        numbers = tuple(operator.index(value) for value in values)
    except TypeError:
        raise ShapeError(argument, repr(values), "a sequence of integers") from None
    if any(not -(2**63) <= number < 2**63 for number in numbers):
        raise ShapeError(argument, str(numbers), "integers of 64 bits")
    return numbers


def ordered(argument: str, values: object) -> None:
    """Refuse sets and mappings, whose elements come in no order that a caller gave."""
    if isinstance(values, (AbstractSet, Mapping)):
        raise ShapeError(argument, repr(values), "a sequence of integers")


def one_of(argument: str, value: object, allowed: tuple[str, ...]) -> None:
    """Refuse a `value` that is not in `allowed`."""
    if not isinstance(value, str) or value not in allowed:
        raise ArgumentError(argument, repr(value), f"one of {', '.join(allowed)}")


def instance(argument: str, value: object, *kinds: type) -> None:
    """Refuse a `value` of any other type."""
    if not isinstance(value, kinds):
        wanted = ", ".join(kind.__name__ for kind in kinds)
        raise ArgumentError(argument, type(value).__name__, wanted)


def real(argument: str, value: Any, *, infinite: bool = False) -> float:  # noqa: ANN401
    """Return `value` as a float that is still finite as f32, or infinite where allowed."""
    if not isinstance(value, (int, float, np.integer, np.floating)):
        raise ArgumentError(argument, repr(value), "a number")
    number = float(value)
    with np.errstate(over="ignore"):
        overflows = not np.isfinite(np.float32(number))
    if math.isnan(number) or (overflows and not (infinite and math.isinf(number))):
        raise ArgumentError(argument, repr(number), "a number that is finite in f32")
    return number


def whole(argument: str, value: Any, lo: int = -(2**31), hi: int = 2**31 - 1) -> int:  # noqa: ANN401
    """Return `value` as an int from `lo` to `hi`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(argument, repr(value), "an integer") from None
    if not lo <= number <= hi:
        raise ArgumentError(argument, str(number), f"an integer from {lo} to {hi}")
    return number
