"""The register of ways to make an attempt worse; each is a function that changes it in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import numpy as np

    from support.hostile.attempt import Attempt

    Rng = np.random.Generator
    Worse = Callable[[Attempt, Rng], Any]

WORSE: dict[str, Any] = {}
T = TypeVar("T")


def worse(function: Worse) -> Worse:
    """Register a way to make an attempt worse, under its own name.

    It returns False where there is nothing to change.
    """
    WORSE[function.__name__] = function
    return function


def one_of(rng: Rng, choices: tuple[T, ...] | list[T]) -> T:
    """Draw one of several."""
    return choices[int(rng.integers(len(choices)))]


def tensors(attempt: Attempt) -> dict[str, Any]:
    """Return the tensors of an attempt that are arrays still, by name."""
    found = {name: getattr(attempt, name) for name in ("src", "wei", "bias")}
    found |= {name: attempt.call[name] for name in ("out", "residual") if name in attempt.call}
    operands = attempt.call.get("operands", {})
    if isinstance(operands, dict):
        found |= {f"operand {name}": value for name, value in operands.items()}
    return {name: value for name, value in found.items() if hasattr(value, "flags")}


def put(attempt: Attempt, name: str, value: Any) -> None:
    """Replace a tensor."""
    if name.startswith("operand "):
        attempt.call["operands"][name.removeprefix("operand ")] = value
    elif name in {"out", "residual"}:
        attempt.call[name] = value
    else:
        setattr(attempt, name, value)


def change_tensor(
    attempt: Attempt, rng: Rng, change: Callable[[np.ndarray[Any, Any]], Any]
) -> bool:
    """Change one tensor, drawn; the change may fail, which leaves it."""
    found = tensors(attempt)
    if not found:
        return False
    name = one_of(rng, list(found))
    try:
        changed = change(found[name])
    except (TypeError, ValueError, RuntimeError, OverflowError, MemoryError):
        return False
    put(attempt, name, changed)
    return True
