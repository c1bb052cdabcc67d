"""GroupQueryAttention by its definition: causal attention of grouped queries, caches in and out.

In a sequence with P tokens before and S new ones, at places P to P + S - 1, whose queries and keys
are turned by their places:

    scores = scale · Q @ Kᵀ, softcap · tanh(scores / softcap) where there is a softcap, + bias
    Y = Softmax(scores of t <= p, and t > p - window) @ V

A head's sink, or 0 of a smooth softmax, is a score more, without a value. A cache of a window of
C rows holds the last L of T tokens: T where T <= C, else T - G · ceil((T - C) / G) with
G = C - window + 1. Source: onnxruntime, docs/ContribOperators.md.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.errors import UnsupportedError
from pyonednn_q.graph.graph import GraphNode
from pyonednn_q.predict.attention_rows import RotaryAngles
from pyonednn_q.shown import shown

__all__ = ["KNOWN", "WITHOUT_EFFECT", "group_attention"]

Values = dict[str, Array]

_INPUTS = 12  # those that are understood
KNOWN = {
    *("num_heads", "kv_num_heads", "scale", "do_rotary", "rotary_interleaved", "softcap"),
    *("local_window_size", "sliding_window_cache", "smooth_softmax"),
}
WITHOUT_EFFECT = {"qk_output": 0, "causal": 1}


def group_attention(node: GraphNode) -> Callable[[Values], tuple[Array, ...]]:
    """Return a call of one node: from values by name to Y, and keys and values of all tokens.

    Parameters
    ----------
    node : GraphNode
        A GroupQueryAttention of float32.

    Raises
    ------
    UnsupportedError
        Features beyond the definition above: at once, or, for positions of tokens, in the call.
    """
    told = dict(node.attributes)
    beyond = [n for n in told if n not in KNOWN and WITHOUT_EFFECT.get(n, "") != told[n]]
    beyond += [name for name in (*node.inputs[_INPUTS:], *node.outputs[3:]) if name]
    if beyond:
        raise _refused(node, f"it has {', '.join(map(shown, beyond))}, which is not known here")

    def run(values: Values) -> tuple[Array, ...]:
        inputs = [values[name] if name else None for name in node.inputs[:_INPUTS]]
        results = _attended(node, inputs + [None] * (_INPUTS - len(inputs)))
        pairs = zip(node.outputs, results, strict=False)
        return tuple(each if name else np.empty(0) for name, each in pairs)

    return run


def _refused(node: GraphNode, why: str) -> UnsupportedError:
    return UnsupportedError("refused", "the definition", f"{node.kind} {shown(node.name)}", why)


def _attended(node: GraphNode, inputs: list[Array | None]) -> tuple[Array, Array, Array]:
    told = node.attributes
    heads, groups = int(told["num_heads"]), int(told["kv_num_heads"])
    src, key, value, past_k, past_v, lengths, total, cos, sin, places, bias, sinks = inputs
    assert src is not None
    if key is None or value is None:
        size = src.shape[2] // (heads + 2 * groups)
        src, key, value = np.split(src, [heads * size, (heads + groups) * size], 2)
    q, k, v = (_in_heads(each, n) for each, n in ((src, heads), (key, groups), (value, groups)))
    tokens, longest = q.shape[2], int(np.asarray(total).reshape(()))
    # Shorter ones of a prompt stand in front, and what is behind them is no result.
    least = tokens if tokens < longest else 1
    if lengths is None or not ((lengths >= least - 1) & (lengths < longest)).all():
        raise _refused(node, f"sequences of {lengths}, and one, where {longest} are the longest")
    ends = np.asarray(lengths).reshape(-1) + 1 if tokens < longest else np.full(len(q), tokens)
    rows = max(longest, past_k.shape[2] if past_k is not None else 0)
    if told.get("sliding_window_cache", 0) and past_k is not None:
        rows = past_k.shape[2]
    y, present_k, present_v = (
        np.zeros((*of.shape[:2], count, of.shape[3]), of.dtype)
        for of, count in ((q, tokens), (k, rows), (v, rows))
    )
    for at, end in enumerate(map(int, ends)):
        past = end - tokens
        own = q[at], k[at]
        if told.get("do_rotary", 0):
            assert cos is not None
            assert sin is not None
            if places is not None and (places[at] != np.arange(past, end)).any():
                raise _refused(node, f"tokens at places {shown(places[at])} behind {past} others")
            angles = RotaryAngles(cos, sin, bool(told.get("rotary_interleaved", 0)))
            own = angles.turned(q[at], past), angles.turned(k[at], past)
        held = _held(node, past, rows)
        keys, values = (
            new if of is None else np.concatenate([of[at, :, :held], new], 1)
            for of, new in ((past_k, own[1]), (past_v, v[at]))
        )
        first = past - held
        scores = _scores(node, own[0], np.repeat(keys, heads // groups, 0), past, first)
        if bias is not None:
            scores = scores + bias[min(at, len(bias) - 1)][..., first:end]
        shares = _shares(node, scores, sinks)
        y[at] = shares @ np.repeat(values, heads // groups, 0)
        kept = _held(node, end, rows)
        present_k[at, :, :kept], present_v[at, :, :kept] = keys[:, -kept:], values[:, -kept:]
    return np.ascontiguousarray(y.swapaxes(1, 2)).reshape(src.shape), present_k, present_v


def _in_heads(x: Array, heads: int) -> Array:
    apart: Array = x.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)
    return apart


def _held(node: GraphNode, tokens: int, rows: int) -> int:
    """Return how many of so many tokens a cache holds, the last ones."""
    if not node.attributes.get("sliding_window_cache", 0) or tokens <= rows:
        return tokens
    gone = rows - int(node.attributes["local_window_size"]) + 1
    return tokens - gone * -(-(tokens - rows) // gone)


def _scores(node: GraphNode, q: Array, k: Array, past: int, first: int) -> Array:
    """Return scores (heads, queries, keys): queries behind `past` tokens, keys from `first` on."""
    told = node.attributes
    scale = np.float32(told.get("scale", 0) or 1 / np.sqrt(q.shape[2]))
    scores = q @ k.swapaxes(1, 2) * scale
    softcap = np.float32(told.get("softcap", 0))
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    places, seen = np.arange(q.shape[1])[:, None] + past, np.arange(k.shape[1]) + first
    window = int(told.get("local_window_size", -1))
    hidden = (seen > places) | ((seen <= places - window) & (window > 0))
    result: Array = np.where(hidden, np.float32(-np.inf), scores)
    return result


def _shares(node: GraphNode, scores: Array, sinks: Array | None) -> Array:
    if sinks is None and node.attributes.get("smooth_softmax", 0):
        sinks = np.zeros(len(scores), scores.dtype)
    top, rest = scores.max(-1, keepdims=True), np.zeros(1, scores.dtype)
    if sinks is not None:
        top = np.maximum(top, sinks[:, None, None])
        rest = np.exp(sinks[:, None, None] - top)
    shares = np.exp(scores - top)
    result: Array = shares / (shares.sum(-1, keepdims=True) + rest)
    return result
