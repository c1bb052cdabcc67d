"""Tensors made worse: other types, dims, places in memory, and things that are no arrays."""

from __future__ import annotations

import array
import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from support import foreign
from support.calls.layouts import LAYOUTS
from support.hostile.worse import change_tensor, one_of, worse
from support.oracle_numbers import numpy_dtype

if TYPE_CHECKING:
    from support.hostile.attempt import Attempt
    from support.hostile.worse import Rng

    Array = np.ndarray[Any, Any]

_DTYPES: tuple[Any, ...] = (
    "u1", "i1", "i2", "u2", "i4", "i8", "u8", "f2", "f4", "f8", "c8", "g", "?", "O", "U3", "S2",
    "M8[s]", "m8[s]", ">i4", ">f4", ">i2", "V3", [("a", "u1"), ("b", "f4")],
)  # fmt: skip
_SMALL = ("bf16", "s4", "u4")


@worse
def another_dtype(attempt: Attempt, rng: Rng) -> bool:
    if rng.random() < 0.2:
        return change_tensor(attempt, rng, lambda x: x.astype(numpy_dtype(one_of(rng, _SMALL))))
    dtype = np.dtype(one_of(rng, _DTYPES))

    def change(x: Array) -> Array:
        if rng.random() < 0.5 and dtype.itemsize == x.itemsize and not dtype.hasobject:
            return np.ascontiguousarray(x).view(dtype)
        cast_: Array = x.astype(dtype)
        return cast_

    return change_tensor(attempt, rng, change)


@worse
def other_dims(attempt: Attempt, rng: Rng) -> bool:
    def change(x: Array) -> Array:
        # What an earlier change left of it may have no dimension.
        row = np.atleast_1d(x)
        axis = int(rng.integers(max(x.ndim, 1)))
        head: tuple[Any, ...] = (slice(None),) * axis
        nothing, less = (
            (*head, slice(0, 0)),
            (*head, slice(0, max(sum(x.shape[axis : axis + 1]) - 1, 1))),
        )
        changes: tuple[Callable[[], Any], ...] = (
            lambda: x[None],
            lambda: x[..., None],
            lambda: row[0] if len(row) and x.ndim else x.reshape(-1),
            lambda: x.reshape(-1),
            lambda: row[nothing],
            lambda: row[less],
            lambda: np.concatenate([row, row], axis=axis),
            lambda: x.T,
            lambda: x.reshape(x.shape + (1,) * int(rng.integers(1, 30 - x.ndim))),
        )
        changed: Array = one_of(rng, changes)()
        return changed

    return change_tensor(attempt, rng, change)


@worse
def another_layout(attempt: Attempt, rng: Rng) -> bool:
    return change_tensor(attempt, rng, one_of(rng, list(LAYOUTS.values())))


@worse
def repeated_by_stride_0(attempt: Attempt, rng: Rng) -> bool:
    def change(x: Array) -> Array:
        axis = int(rng.integers(x.ndim))
        first = x[(slice(None),) * axis + (slice(0, 1),)]
        if rng.random() < 0.5:
            return np.broadcast_to(first, x.shape)
        steps = list(first.strides)
        steps[axis] = 0
        return np.lib.stride_tricks.as_strided(first, x.shape, steps)

    return change_tensor(attempt, rng, change)


@worse
def elements_that_overlap(attempt: Attempt, rng: Rng) -> bool:
    def change(x: Array) -> Array:
        memory = np.ascontiguousarray(x).ravel()
        steps = [int(s) * x.itemsize for s in rng.integers(0, 2, x.ndim)]
        reach = 1 + sum(s // x.itemsize * (n - 1) for s, n in zip(steps, x.shape, strict=True))
        if reach > memory.size:
            return x
        return np.lib.stride_tricks.as_strided(memory, x.shape, steps)

    return change_tensor(attempt, rng, change)


@worse
def huge_dims_of_nothing(attempt: Attempt, rng: Rng) -> bool:
    """A few bytes that claim to be terabytes."""
    length = one_of(rng, (2**40, 2**45, 2**55))

    def change(x: Array) -> Array:
        axis = int(rng.integers(x.ndim))
        dims = tuple(length if i == axis else n for i, n in enumerate(x.shape))
        return np.broadcast_to(x[(slice(None),) * axis + (slice(0, 1),)], dims)

    return change_tensor(attempt, rng, change)


@worse
def no_array(attempt: Attempt, rng: Rng) -> bool:
    def change(x: Array) -> Any:
        things: tuple[Any, ...] = (
            None, 3, 2.5, "text", b"bytes", [1, 2], (), {}, {1}, object(), int, np.uint8(3),
            np.array(3.0), [[x]], range(4), io.BytesIO(b"abc"), Ellipsis, slice(3), lambda: x,
        )  # fmt: skip
        if rng.random() < 0.3:
            return x.tolist()
        return one_of(rng, things)

    return change_tensor(attempt, rng, change)


@worse
def array_of_another_class(attempt: Attempt, rng: Rng) -> bool:
    def change(x: Array) -> Any:
        match int(rng.integers(4)):
            case 0:
                return np.ma.masked_array(x, mask=rng.random(x.shape) < 0.3)
            case 1:
                return x.view(foreign.Own)
            case 2:
                return np.asmatrix(x)
            case _:
                return x.view(np.recarray)

    return change_tensor(attempt, rng, change)


@worse
def a_buffer(attempt: Attempt, rng: Rng) -> bool:
    def change(x: Array) -> Any:
        match int(rng.integers(5)):
            case 0:
                return memoryview(cast("Any", x))
            case 1:
                return bytearray(x.tobytes())
            case 2:
                return array.array(x.dtype.char, x.tobytes())
            case 3:
                return memoryview(x.tobytes()).cast(x.dtype.char, x.shape)
            case _:
                return memoryview(cast("Any", x)).toreadonly()

    return change_tensor(attempt, rng, change)


@worse
def a_tensor_of_somebody_else(attempt: Attempt, rng: Rng) -> bool:
    makers: tuple[Any, ...] = (
        foreign.Producer, foreign.OldProducer, foreign.OnDevice, foreign.Lying,
        foreign.WithoutDevice, lambda _: foreign.NotCallable(), lambda _: foreign.RaisingArray(),
    )  # fmt: skip
    errors = (BufferError("no"), RuntimeError("no"), KeyError("no"), MemoryError("no"), OSError())

    def change(x: Array) -> Any:
        if rng.random() < 0.25:
            return foreign.Raising(x, one_of(rng, errors))
        return one_of(rng, makers)(x)

    return change_tensor(attempt, rng, change)


@worse
def values_that_are_no_numbers(attempt: Attempt, rng: Rng) -> bool:
    def change(x: Array) -> Array:
        if x.dtype.kind not in "fV" or not x.size:
            raise TypeError
        copy: Array = x.copy()
        at = tuple(int(rng.integers(n)) for n in x.shape)
        with np.errstate(over="ignore"):
            copy[at] = one_of(rng, (np.nan, np.inf, -np.inf, 3e38, 1e-45))
        return copy

    return change_tensor(attempt, rng, change)


@worse
def extreme_values(attempt: Attempt, rng: Rng) -> bool:
    def change(x: Array) -> Array:
        if x.dtype.kind not in "iu":
            raise TypeError
        limits = np.iinfo(x.dtype)
        drawn: Array = rng.choice([limits.min, limits.max, 0], x.shape).astype(x.dtype)
        return drawn

    return change_tensor(attempt, rng, change)
