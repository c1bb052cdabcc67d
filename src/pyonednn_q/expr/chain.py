"""Chain: an immutable sequence of steps applied to one value, first step first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import overload

from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.expr.steps import Step

__all__ = ["Chain"]


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

    @property
    def channels(self) -> int | None:
        """How many channels the constants have, or ``None`` if all are per tensor."""
        return _count_channels(self.steps)

    def __add__(self, other: Chain) -> Chain:
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
        return Chain(*self.steps[index]) if isinstance(index, slice) else self.steps[index]

    def __str__(self) -> str:
        return " > ".join(map(str, self.steps)) or "x"


def _count_channels(steps: Iterable[Step]) -> int | None:
    found: int | None = None
    for index, step in enumerate(steps):
        channels = step.channels
        if channels is None or channels == found:
            continue
        if found is not None:
            name = f"steps[{index}]"
            raise ShapeError(name, f"{channels} channels", f"{found} as before it")
        found = channels
    return found
