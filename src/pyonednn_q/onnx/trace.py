"""Record of each call of an operator: kernels of oneDNN, and work beside them."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyonednn_q.ops.operator import Operator


class Call(NamedTuple):
    """Kernels of one call.

    Parameters
    ----------
    operator : str
        ONNX's name of the operator.
    kernels : tuple of str
        oneDNN's names of the implementations that computed products; empty if there were none.
    notes : tuple of str
        Conversions before and after the kernels, and replacements of them.
    """

    operator: str
    kernels: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        ran = " and ".join(self.kernels) if self.kernels else "no oneDNN kernel"
        return "; ".join((f"{self.operator}: {ran}", *self.notes))


_CALLS: ContextVar[list[Call] | None] = ContextVar("calls", default=None)


@contextmanager
def trace() -> Iterator[list[Call]]:
    """Collect what runs for the calls of this thread, in order.

    Returns
    -------
    context manager
        Context manager that gives a list of `Call`, one a call; it grows while calls are made.

    Examples
    --------
    >>> import numpy as np
    >>> import pyonednn_q as pq
    >>> with pq.onnx.trace() as calls:
    ...     y = pq.onnx.quantize_linear(np.float32([1.0, 2.5]), np.float32(1.0), np.int8(3))
    >>> y, calls[0].operator, len(calls)
    (array([4, 5], dtype=int8), 'QuantizeLinear', 1)
    """
    calls: list[Call] = []
    token = _CALLS.set(calls)
    try:
        yield calls
    finally:
        _CALLS.reset(token)


def record(
    operator: str, runs: tuple[tuple[Operator, tuple[int, ...]], ...] = (), *notes: str
) -> None:
    """Add a call to the trace, if one is on.

    Parameters
    ----------
    operator : str
        ONNX's name of the operator.
    runs : tuple of (Operator, tuple of int)
        Operators that computed products, with the dims of their sources.
    *notes : str
        Further notes; empty ones are left out.
    """
    calls = _CALLS.get()
    if calls is None:
        return
    kernels: list[str] = []
    said: list[str] = []
    for each, dims in runs:
        for one in each.products(dims):
            planned = one.prepare(dims, None if one.settings.is_int8 else one.weights.dtype)
            kernels.append(planned.primitive.impl)
            said += [note for note in planned.notes if note not in said]
            if one.settings.dst == "s32":  # else it makes the codes by itself
                said += [note for note in each.notes if note not in said]
    calls.append(Call(operator, tuple(kernels), (*said, *filter(None, notes))))
