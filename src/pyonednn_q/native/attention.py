"""attention_pass: the pass of C++ that appends to a cache of keys and values, and attends to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.native import runtime
from pyonednn_q.native.program import Pass

if TYPE_CHECKING:
    from collections.abc import Sequence

_NONE = np.zeros((0, 0), np.float32)


def attention_pass(
    rows: Sequence[int],
    cache: Sequence[int],
    strides: Sequence[Sequence[int]],
    *,
    scale: float,
    are_codes: bool,
    is_packed: bool,
    window: int = 0,
    softcap: float = 0.0,
    sinks: Sequence[float] = (),
    angles: Any = None,  # noqa: ANN401 - see below
) -> Pass:
    """Return attention of new tokens on a cache that it appends them to.

    Parameters
    ----------
    rows : sequence of int
        Batch, tokens, heads, groups, depth and width.
    cache : sequence of int
        Capacity, layers, and which layer it is.
    strides : sequence of sequence of int
        Strides in elements, from one sequence, token and head to the next: of queries, keys,
        values, dst.
    scale : float
        Factor of scores.
    are_codes, is_packed : bool
        Whether the cache holds codes; whether queries, keys and values are one tensor.
    window, softcap : int and float
        Number of tokens that a query sees, and limit of scores; 0: all, and none.
    sinks : sequence of float
        A score of each head that takes its share and has no value; or none.
    angles : optional
        Angles by which pairs are turned, with `cos`, `sin` (places, half) of float32 and
        `is_paired`.
    """
    held = (_NONE, _NONE, False)
    if angles is not None:
        cos, sin = (np.ascontiguousarray(each, np.float32) for each in (angles.cos, angles.sin))
        held = (cos, sin, angles.is_paired)
    steps = [list(each) for each in strides]
    told = steps, scale, window, softcap, sinks
    core = runtime.core.attention_pass(rows, cache, are_codes, is_packed, *told, *held)
    tokens, heads, kind = rows[1], rows[2], "s8" if are_codes else "f32"
    return Pass(core, f"attention of {tokens} tokens and {heads} heads, on a cache of {kind}")


def attention_bytes(
    layers: int, heads: int, depth: int, width: int, capacity: int, are_codes: bool
) -> int:
    """Return the bytes of a cache: of all layers, and heads of all sequences."""
    return runtime.core.attention_bytes(layers, heads, depth, width, capacity, are_codes)
