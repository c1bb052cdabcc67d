"""Calls made worse: where the result goes, what overlaps, what is missing or too much."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np

from support.calls.layouts import LAYOUTS
from support.hostile.worse import one_of, put, tensors, worse
from support.oracle_numbers import numpy_dtype

if TYPE_CHECKING:
    from support.hostile.attempt import Attempt
    from support.hostile.worse import Rng

    Array = np.ndarray[Any, Any]


def _dims(attempt: Attempt, rng: Rng) -> tuple[int, ...]:
    """Return the dims of the result as they would be; any, where the attempt has none."""
    dims: tuple[int, ...] = attempt.dst_dims
    if rng.random() < 0.1 and dims:
        dims = one_of(
            rng, (dims[:-1], (*dims, 1), dims[::-1], (0,) * len(dims), (dims[0] + 1, *dims[1:]))
        )
    return dims


@worse
def with_out(attempt: Attempt, rng: Rng) -> None:
    dtype = attempt.dst_dtype
    if rng.random() < 0.1:
        dtype = one_of(rng, ("u8", "s8", "f32", "s32", "f16"))
    out = np.zeros(_dims(attempt, rng), numpy_dtype(dtype))
    residual = attempt.call.get("residual")
    if isinstance(residual, np.ndarray) and residual.shape == out.shape and rng.random() < 0.6:
        with contextlib.suppress(ValueError, TypeError):  # texts and records are no numbers
            out[...] = residual.astype(out.dtype)
        del attempt.call["residual"]
    if rng.random() < 0.5 and out.ndim > 1:
        out = one_of(rng, list(LAYOUTS.values()))(out)
    attempt.call["out"] = out


@worse
def out_that_overlaps(attempt: Attempt, rng: Rng) -> bool:
    found = [
        x for name, x in tensors(attempt).items() if name != "out" and isinstance(x, np.ndarray)
    ]
    if not found:
        return False
    other = one_of(rng, found)
    dims, dtype = _dims(attempt, rng), numpy_dtype(attempt.dst_dtype)
    if rng.random() < 0.3:
        attempt.call["out"] = other
        return True
    need = int(np.prod(dims)) * dtype.itemsize
    memory = np.zeros(need + other.nbytes + 64, np.uint8)
    start = int(rng.integers(0, need + 1)) // dtype.itemsize * dtype.itemsize
    lying = memory[start : start + other.nbytes]
    if lying.size < other.nbytes or other.dtype.hasobject or not other.nbytes:
        return False
    moved = lying.view(other.dtype).reshape(other.shape)
    moved[...] = other
    name = next(n for n, x in tensors(attempt).items() if x is other)
    put(attempt, name, moved)
    attempt.call["out"] = memory[:need].view(dtype).reshape(dims)
    return True


@worse
def out_in_itself(attempt: Attempt, rng: Rng) -> None:
    """Elements of out share memory: what is written last stays."""
    dims, dtype = _dims(attempt, rng), numpy_dtype(attempt.dst_dtype)
    memory = np.zeros(int(np.prod(dims)) + 8, dtype)
    steps = [int(one_of(rng, (0, 1, 1, 3))) * dtype.itemsize for _ in dims]
    reach = 1 + sum(s // dtype.itemsize * (n - 1) for s, n in zip(steps, dims, strict=True))
    if reach > memory.size:
        memory = np.zeros(reach, dtype)
    attempt.call["out"] = np.lib.stride_tricks.as_strided(memory, dims, steps)


@worse
def residual_too_much(attempt: Attempt, rng: Rng) -> None:
    dtype = one_of(rng, ("u8", "s8", "f32", "s32", attempt.dst_dtype))
    attempt.call["residual"] = np.ones(_dims(attempt, rng), numpy_dtype(dtype))


@worse
def something_missing(attempt: Attempt, rng: Rng) -> bool:
    names = [*attempt.call, *attempt.settings]
    if not names:
        return False
    name = one_of(rng, names)
    operands = attempt.call.get("operands")
    if name == "operands" and isinstance(operands, dict) and len(operands) > 1:
        operands.pop(one_of(rng, list(operands)))
    else:
        attempt.call.pop(name, None)
        attempt.settings.pop(name, None)
    return True


@worse
def operands_too_many(attempt: Attempt, rng: Rng) -> None:
    operands = attempt.call.setdefault("operands", {})
    if isinstance(operands, dict):
        operands[one_of(rng, ("s", "bias", "wei", "dst", "scale", "src_q", "_"))] = np.ones(
            3, np.float32
        )


@worse
def operands_that_are_no_mapping(attempt: Attempt, rng: Rng) -> bool:
    if not attempt.functional:
        return False
    attempt.call["operands"] = one_of(
        rng, (3, "r", ["r"], [("r", 1)], {3: 4}, {"": 1}, object(), ())
    )
    return True


@worse
def a_wrong_signature(attempt: Attempt, rng: Rng) -> None:
    """Too many positional arguments: Python's own TypeError."""
    attempt.positional = (None,) * int(rng.integers(1, 4))


@worse
def a_shape_prepared_first(attempt: Attempt, rng: Rng) -> bool:
    if attempt.functional or not isinstance(attempt.src, np.ndarray):
        return False
    dims: list[Any] = list(attempt.src.shape)
    if dims and rng.random() < 0.8:
        at = int(rng.integers(len(dims)))
        dims[at] = one_of(
            rng, (0, 1, -1, 3, 2**31, 2**62, 2**70, 1.0, 1.5, None, "1", True, np.int64(4))
        )
    shapes: tuple[Any, ...] = (
        tuple(dims),
        dims,
        tuple(dims)[:-1],
        3,
        None,
        "dims",
        (),
        np.array([1, 2]),
    )
    shape = tuple(dims) if rng.random() < 0.6 else one_of(rng, shapes)
    dtypes = (None, "u8", "s8", "f32", "bf16", "f16", "s4", "what", 3, np.uint8)
    attempt.prepare_first = (shape,) if rng.random() < 0.5 else (shape, one_of(rng, dtypes))
    return True


@worse
def bias_of_another_kind(attempt: Attempt, rng: Rng) -> None:
    channels = int(rng.integers(0, 40))
    if isinstance(attempt.wei, np.ndarray) and attempt.wei.ndim and rng.random() < 0.8:
        channels = attempt.wei.shape[-1 if attempt.kind == "matmul" else 0]
    things: tuple[Any, ...] = (
        np.full(channels, 2**31 - 1, np.int32),
        np.full(channels, -(2**31), np.int32),
        np.full(channels, 3e38, np.float32),
        np.full(channels, 1e-42, np.float32),
        np.full(channels, np.nan, np.float32),
        np.ones(channels, np.float64),
        np.ones((channels, 1), np.float32),
        np.ones((1, channels), np.float32),
        np.ones(channels, np.int8),
        np.float32(1.0),
        np.ones(0, np.float32),
        [1.0] * channels,
    )
    attempt.bias = one_of(rng, things)


@worse
def a_bias_seen_backwards(attempt: Attempt, rng: Rng) -> bool:
    if not isinstance(attempt.bias, np.ndarray) or attempt.bias.ndim != 1:
        return False
    wide = np.repeat(attempt.bias, 2)
    attempt.bias = one_of(rng, (wide[::2], wide[::-2], attempt.bias[::-1]))
    return True
