"""GroupQueryAttention by its definition: causal attention of grouped queries, caches in and out.

With P tokens before and S new ones, at places P to P + S - 1, and keys turned by their places:

    scores = scale · Q @ Kᵀ, softcap · tanh(scores / softcap) where there is a softcap
    Y = Softmax(scores of t <= p, and t > p - window) @ V

Source: onnxruntime, docs/ContribOperators.md. Sequences of one length: where `seqlens_k` says that
some are shorter, it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pyonednn_q.errors import UnsupportedError
from pyonednn_q.graph.graph import GraphNode
from pyonednn_q.predict.attention_rows import RotaryAngles
from pyonednn_q.shown import shown

__all__ = ["group_attention"]

Array = np.ndarray[Any, Any]
Values = dict[str, Array]

_INPUTS = 9  # those that are understood
_KNOWN = {
    *("num_heads", "kv_num_heads", "scale", "do_rotary", "rotary_interleaved"),
    *("softcap", "local_window_size"),
}
_PLAIN: Mapping[str, int] = {"smooth_softmax": 0, "qk_output": 0}


def group_attention(node: GraphNode) -> Callable[[Values], tuple[Array, ...]]:
    """Return a call of one node: from values by name to Y, and keys and values of all tokens.

    Parameters
    ----------
    node : GraphNode
        A GroupQueryAttention of float32.

    Raises
    ------
    UnsupportedError
        What it has beyond the definition above: at once, or, of lengths of sequences, in the call.
    """
    told = dict(node.attributes)
    plain = {name: told.pop(name) for name in _PLAIN if name in told}
    beyond = [name for name, value in plain.items() if value != _PLAIN[name]]
    beyond += [name for name in told if name not in _KNOWN]
    beyond += [name for name in (*node.inputs[_INPUTS:], *node.outputs[3:]) if name]
    if beyond:
        raise _refused(node, f"it has {', '.join(map(shown, beyond))}, which is not known here")

    def run(values: Values) -> tuple[Array, ...]:
        inputs = [values[name] if name else None for name in node.inputs]
        results = _attended(node, inputs + [None] * (_INPUTS - len(inputs)))
        pairs = zip(node.outputs, results, strict=False)
        return tuple(each if name else np.empty(0) for name, each in pairs)

    return run


def _refused(node: GraphNode, why: str) -> UnsupportedError:
    return UnsupportedError("refused", "the definition", f"{node.kind} {shown(node.name)}", why)


def _attended(node: GraphNode, inputs: list[Array | None]) -> tuple[Array, Array, Array]:
    told = node.attributes
    heads, groups = int(told["num_heads"]), int(told["kv_num_heads"])
    src, key, value, past_k, past_v, lengths, total, cos, sin = inputs
    assert src is not None
    if key is None or value is None:
        size = src.shape[2] // (heads + 2 * groups)
        src, key, value = np.split(src, [heads * size, (heads + groups) * size], 2)
    q, k, v = (_in_heads(each, n) for each, n in ((src, heads), (key, groups), (value, groups)))
    tokens, everything = q.shape[2], int(np.asarray(total).reshape(()))
    past = everything - tokens
    if lengths is None or (np.asarray(lengths) != everything - 1).any():
        raise _refused(node, f"sequences of {lengths}, and one, where {everything} are the longest")
    if told.get("do_rotary", 0):
        assert cos is not None
        assert sin is not None
        angles = RotaryAngles(cos, sin, bool(told.get("rotary_interleaved", 0)))
        q, k = angles.turned(q, past), angles.turned(k, past)
    k, v = (_behind(of, each, past) for of, each in ((past_k, k), (past_v, v)))
    shares = _shares(node, q, np.repeat(k[:, :, :everything], heads // groups, 1), past)
    y = shares @ np.repeat(v[:, :, :everything], heads // groups, 1)
    return np.ascontiguousarray(y.swapaxes(1, 2)).reshape(src.shape), k, v


def _in_heads(x: Array, heads: int) -> Array:
    apart: Array = x.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)
    return apart


def _behind(past: Array | None, new: Array, count: int) -> Array:
    """Return keys or values of all tokens: in a copy of the cache, where that is longer."""
    if past is None:
        return np.array(new)
    longest = max(past.shape[2], count + new.shape[2])
    every: Array = np.zeros((*new.shape[:2], longest, new.shape[3]), new.dtype)
    every[:, :, : past.shape[2]] = past
    every[:, :, count : count + new.shape[2]] = new
    return every


def _shares(node: GraphNode, q: Array, k: Array, past: int) -> Array:
    told = node.attributes
    scale = np.float32(told.get("scale", 0) or 1 / np.sqrt(q.shape[3]))
    scores = q @ k.swapaxes(2, 3) * scale
    softcap = np.float32(told.get("softcap", 0))
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    places, seen = np.arange(q.shape[2])[:, None] + past, np.arange(k.shape[2])
    window = int(told.get("local_window_size", -1))
    hidden = (seen > places) | ((seen <= places - window) & (window > 0))
    scores = np.where(hidden, np.float32(-np.inf), scores)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    result: Array = shares / shares.sum(-1, keepdims=True)
    return result
