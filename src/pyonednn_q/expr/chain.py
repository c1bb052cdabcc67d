"""Chain: an immutable sequence of steps applied to one value, first step first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import overload

from pyonednn_q.argument import whole
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.expr.steps import Binary, Leaf, Step, Sum


@dataclass(frozen=True, slots=True, init=False)
class Chain:
    """Steps applied one after the other to one value.

    Parameters
    ----------
    *steps : Step or Chain
        In order of application. A chain among them is spliced in.

    Raises
    ------
    ShapeError
        When two steps disagree about the number of channels.
    DTypeError
        When two sums read dst as different types, or two steps name one leaf in different ways.

    Examples
    --------
    >>> from pyonednn_q.expr.steps import Affine, Clip
    >>> print(Chain(Clip(0, 6), Affine(0.5, 1)))
    clip(x, 0, 6) > 0.5*x + 1
    """

    steps: tuple[Step, ...]

    def __init__(self, *steps: Step | Chain) -> None:
        flat: list[Step] = []
        for step in steps:
            if isinstance(step, Chain):
                flat.extend(step.steps)
            elif isinstance(step, Step):
                flat.append(step)
            else:
                raise ArgumentError("steps", type(step).__name__, "steps or chains")
        object.__setattr__(self, "steps", tuple(flat))
        _count_channels(flat)
        _check_readings(flat)

    @property
    def channels(self) -> int | None:
        """How many channels the constants have, or ``None`` if all are per tensor."""
        return _count_channels(self.steps)

    def __add__(self, other: Chain) -> Chain:
        if not isinstance(other, Chain):
            return NotImplemented
        return Chain(*self.steps, *other.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> Chain: ...
    def __getitem__(self, index: int | slice) -> Step | Chain:
        if isinstance(index, slice):
            return Chain(*self.steps[index])
        return self.steps[whole("index", index)]

    def __str__(self) -> str:
        return " > ".join(map(str, self.steps)) or "x"


def _count_channels(steps: Iterable[Step]) -> int | None:
    count: int | None = None
    for index, step in enumerate(steps):
        channels = step.channels
        if channels is None or channels == count:
            continue
        if count is not None:
            name = f"steps[{index}]"
            raise ShapeError(name, f"{channels} channels", f"{count} as before it")
        count = channels
    return count


def _check_readings(steps: Iterable[Step]) -> None:
    """Refuse a tensor that is read in two ways: its bytes mean one thing."""
    readings: dict[str, str] = {}
    for index, step in enumerate(steps):
        name, reading = _reading(step)
        before = readings.setdefault(name, reading)
        if reading != before:
            argument = f"steps[{index}]"
            raise DTypeError(argument, f"{name} as {reading}", f"{before}, as before it")


def _reading(step: Step) -> tuple[str, str]:
    """Name what a step reads beside x, and as what."""
    if isinstance(step, Sum):
        return "dst", step.dtype or "its own type"
    if isinstance(step, Binary) and isinstance(step.operand, Leaf):
        return f"operand {step.operand}", f"{step.operand.extent} {step.operand.dtype}"
    return "", ""
