"""attention_rows: what the kernel of attention on a cache computes, bit for bit, in NumPy.

Each operation on floats is rounded to float32. Of a query at place p, over p − window < t <= p:

    x[t]  = scale · Σ_d q[d] · k[t, d]                                   f32: in the order of d
    x[t]  = f32(acc[t]) · k_scale[t] · (q_scale · scale)                 s8: acc = Σ q · k, exact
    x[t]  = cap · tanh(x[t] / cap)                                       where scores have a cap
    e[t]  = exp(x[t] − max x),  sum = of 16 lanes each, and then those in order
    y     = (Σ_t e[t] · v[t]) · (1 / sum)                                f32: in the order of t
    w[t]  = e[t] · v_scale[t],  c[t] = rne(w[t] · (65535 / max w))       s8
    y     = (f32(Σ (c >> 8) · v) · 256 + f32(Σ (c & 255) · v)) · (max w / 65535 / sum)

A row of s8 codes is rne(x / scale) with scale = max|x| / 127, or 1 of zeros; keys and queries are
turned by the angles of their places before. A head's sink is a score without a value: max and sum
have it, too. exp is a polynomial of degree 7 behind 2^n, of no less than -87, and tanh is made of
it. Shares have 16 bits, as two bytes, so that a token of little share is not lost beside one of
much. Sums of whole numbers are those of 32 bits: up to 65 000 tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.argument import one_of
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ShapeError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CACHES", "RotaryAngles", "attention_rows"]

Floats = "NDArray[np.float32]"

CACHES = ("s8", "f32")
_LANES = 16
_ROUNDER = np.float32(12582912)
_PER_LOG2, _LOG2_HIGH, _LOG2_LOW = (
    np.float32(each) for each in (1.44269504, 0.693145752, 1.42860677e-6)
)
_LOWEST, _FAR = np.float32(-87), np.float32(10)  # of exp; where tanh is 1
_TERMS = (1 / 720, 1 / 120, 1 / 24, 1 / 6, 0.5)


@dataclass(frozen=True, eq=False, slots=True)
class RotaryAngles:
    """Angles that pairs of keys and queries are turned by, at each place.

    Parameters
    ----------
    cos, sin : (places, half) ndarray of float32
        Cosines and sines, of each place and pair.
    is_paired : bool
        Whether pairs are neighbours; else one of each is of the first `half`, one of the second.
    """

    cos: Array
    sin: Array
    is_paired: bool = False

    def __post_init__(self) -> None:
        if self.cos.ndim != 2 or self.cos.shape != self.sin.shape:
            got = f"{self.cos.shape} and {self.sin.shape}"
            raise ShapeError("cos", got, "(places, half), as sin has")

    def turned(self, x: Array, first: int) -> Array:
        """Return rows (..., tokens, elements), the first at a place, turned."""
        tokens, half = x.shape[-2], self.cos.shape[1]
        cos, sin = (each[first : first + tokens] for each in (self.cos, self.sin))
        y: Array = x.copy()
        ends = (slice(0, half), slice(half, 2 * half))
        if self.is_paired:
            ends = (slice(0, 2 * half, 2), slice(1, 2 * half, 2))
        one, two = (x[..., end] for end in ends)
        y[..., ends[0]] = one * cos - two * sin
        y[..., ends[1]] = one * sin + two * cos
        return y


def attention_rows(
    q: Array,
    k: Array,
    v: Array,
    *,
    scale: float,
    dtype: str = "s8",
    angles: RotaryAngles | None = None,
    window: int = 0,
    softcap: float = 0.0,
    sinks: Array | None = None,
) -> NDArray[np.float32]:
    """Return the attention of the last tokens on all tokens up to each.

    Parameters
    ----------
    q : (batch, heads, tokens, depth) ndarray of float32
        Queries of the last tokens.
    k, v : (batch, groups, all tokens, depth or width) ndarray of float32
        Keys and values of all tokens so far; heads / groups heads of queries share one of these.
    scale : float
        Factor of scores.
    dtype : {"s8", "f32"}
        Data type of the cache.
    angles : RotaryAngles, optional
        Angles of a rotary embedding of queries and keys.
    window : int
        Number of tokens that a query sees, itself the last of them; 0: all.
    softcap : float
        Bound of the scores; 0: none.
    sinks : (heads,) ndarray of float32, optional
        Score of each head that takes its share of the softmax, and has no value.

    Returns
    -------
    (batch, heads, tokens, width) ndarray of float32

    Raises
    ------
    ArgumentError, ShapeError
        Naming the argument.
    """
    one_of("dtype", dtype, CACHES)
    if not q.ndim == k.ndim == v.ndim == 4 or k.shape[:3] != v.shape[:3]:
        raise ShapeError("k", f"{k.shape} and {v.shape}", "(batch, groups, tokens, elements)")
    share, past = q.shape[1] // k.shape[1], k.shape[2] - q.shape[2]
    if angles is not None:
        q, k = angles.turned(q, past), angles.turned(k, 0)
    of_head = _head_of_codes if dtype == "s8" else _head_of_floats
    y = np.empty((*q.shape[:3], v.shape[3]), np.float32)
    with np.errstate(under="ignore"):
        for batch, head in np.ndindex(q.shape[:2]):
            own = k[batch, head // share], v[batch, head // share]
            sink = None if sinks is None else sinks[head]
            how = _Scores(np.float32(scale), window, np.float32(softcap), sink)
            y[batch, head] = of_head(q[batch, head], *own, how, past)
    return y


@dataclass(frozen=True, slots=True)
class _Scores:
    """Arithmetic of the scores of a head."""

    scale: np.float32
    window: int
    softcap: np.float32
    sink: np.float32 | None

    def seen(self, place: int) -> slice:
        first = max(0, place + 1 - self.window) if self.window else 0
        return slice(first, place + 1)

    def powers(self, x: Array) -> tuple[Array, np.float32]:
        """Return e^(x - max x) of a row, and their sum."""
        if self.softcap:
            x = self.softcap * _tangent(x / self.softcap)
        top = x.max() if self.sink is None else max(x.max(), self.sink)
        e, total = _powers(x, top)
        return e, total if self.sink is None else total + _power(self.sink - top)


def _powers(x: Array, top: np.float32) -> tuple[Array, np.float32]:
    """Return e^(x - top) of a row, and their sum."""
    e = _power(x - top)
    lanes = np.zeros(_LANES, np.float32)
    for first in range(0, len(e), _LANES):
        part = e[first : first + _LANES]
        lanes[: len(part)] += part
    total = np.float32(0)
    for each in lanes:
        total += each
    return e, total


def _power(x: Array) -> Array:
    two_to_n, rest = _power_parts(x)
    return np.asarray(two_to_n + two_to_n * rest)


def _tangent(x: Array) -> Array:
    two_to_n, rest = _power_parts(2 * np.clip(x, -_FAR, _FAR))
    less_one = two_to_n * rest + (two_to_n - 1)
    return np.asarray(less_one / (less_one + 2))


def _power_parts(x: Array) -> tuple[Array, Array]:
    """Return 2^n, and what 1 is less than e^x / 2^n."""
    x = np.where(x < _LOWEST, _LOWEST, x)
    n = (x * _PER_LOG2 + _ROUNDER) - _ROUNDER
    r = (x - n * _LOG2_HIGH) - n * _LOG2_LOW
    total = np.full_like(r, 1 / 5040)
    for term in _TERMS:
        total = total * r + np.float32(term)
    rest = total * r * r + r
    return np.ldexp(np.float32(1), n.astype(np.int32)).astype(np.float32), rest


def _head_of_floats(q: Array, k: Array, v: Array, how: _Scores, past: int) -> Array:
    y = np.zeros((len(q), v.shape[1]), np.float32)
    for row, query in enumerate(q):
        seen = how.seen(past + row)
        x = np.zeros(seen.stop - seen.start, np.float32)
        for at, element in enumerate(query):
            x += element * k[seen, at]
        e, total = how.powers(x * how.scale)
        for share, value in zip(e, v[seen], strict=True):
            y[row] += share * value
        y[row] *= np.float32(1) / total
    return y


def _coded(rows: Array) -> tuple[Array, Array]:
    """Return codes of rows, and what each row's are worth."""
    most = np.abs(rows).max(1)
    scale = np.maximum(most / np.float32(127), np.finfo(np.float32).tiny)
    scale[most == 0] = 1
    return np.rint(rows / scale[:, None]).astype(np.int64), scale


def _head_of_codes(q: Array, k: Array, v: Array, how: _Scores, past: int) -> Array:
    (q_codes, q_scale), (k_codes, k_scale), (v_codes, v_scale) = map(_coded, (q, k, v))
    acc = (q_codes @ k_codes.T).astype(np.float32)
    y = np.zeros((len(q), v.shape[1]), np.float32)
    highest = np.float32(65535)
    for row in range(len(q)):
        seen = how.seen(past + row)
        e, total = how.powers(acc[row, seen] * k_scale[seen] * (q_scale[row] * how.scale))
        w = e * v_scale[seen]
        most = w.max()
        codes = np.rint(np.minimum(w * (highest / most), highest)).astype(np.int64)
        high, low = (part @ v_codes[seen] for part in (codes >> 8, codes & 255))
        both = high.astype(np.float32) * np.float32(256) + low.astype(np.float32)
        y[row] = both * (most / highest / total)
    return y
