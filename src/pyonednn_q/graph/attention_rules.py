"""Dims of what attentions make, and of the caches of keys and values behind them."""

from __future__ import annotations

from pyonednn_q.graph.dims_rule import DimsRule, KnownSources, Length, Lengths

__all__ = ["of_groups", "of_heads", "of_one"]

_PAST, _TOTAL = 3, 6  # inputs
_PAST_OF_HEADS, _PAST_OF_ONE = 6, 4


@DimsRule
def of_groups(node: KnownSources) -> list[Lengths | None]:
    """(batch, tokens, heads · depth), and caches of all tokens, or as long as they were.

    (GroupQueryAttention; CachedAttention, which has the first alone)
    """
    batch, tokens, hidden = node.dims(0)
    heads, groups = (int(node.attributes[name]) for name in ("num_heads", "kv_num_heads"))
    if not node.has(1) and not isinstance(hidden, str):  # keys and values beside the queries
        hidden = hidden // (heads + 2 * groups) * heads
    depth = "" if isinstance(hidden, str) else hidden // heads
    held = _tokens_held(node) if node.outputs > 1 else ""
    cache = (batch, groups, held, depth)
    return [(batch, tokens, hidden), cache, cache]


def _tokens_held(node: KnownSources) -> Length:
    """Return how many tokens a cache has room for behind the node, if that is known."""
    before = node.dims(_PAST)[2] if node.has(_PAST) else 0
    if node.attributes.get("sliding_window_cache", 0):
        return before
    try:
        (total,) = node.numbers(_TOTAL)
    except LookupError:
        return ""
    is_known = not isinstance(before, str) and not isinstance(total, str)
    return max(before, int(total)) if is_known else ""


@DimsRule
def of_heads(node: KnownSources) -> list[Lengths | None]:
    """(batch, tokens, heads · width), and keys and values of all tokens.

    (MultiHeadAttention of onnxruntime)
    """
    batch, tokens, hidden = node.dims(0)
    heads, keys, values = int(node.attributes["num_heads"]), node.dims(1), node.dims(2)
    depth = _parted(hidden, heads)
    width = values[3] if len(values) == 4 else _parted(values[2], heads)
    total = _sum(keys[-2], node.dims(_PAST_OF_HEADS)[2] if node.has(_PAST_OF_HEADS) else 0)
    held = [(batch, heads, total, each) for each in (depth, width)]
    return [(batch, tokens, "" if isinstance(width, str) else heads * width), *held]


@DimsRule
def of_one(node: KnownSources) -> list[Lengths | None]:
    """(batch, tokens, values' part of the weights), and both of all tokens in one tensor.

    (Attention of onnxruntime)
    """
    batch, tokens, _ = node.dims(0)
    heads, three = int(node.attributes["num_heads"]), node.dims(1)[1]
    sizes = node.attributes.get("qkv_hidden_sizes") or [_parted(three, 3)] * 3
    total = _sum(tokens, node.dims(_PAST_OF_ONE)[3] if node.has(_PAST_OF_ONE) else 0)
    return [(batch, tokens, sizes[2]), (2, batch, heads, total, _parted(sizes[1], heads))]


def _parted(length: Length, parts: int) -> Length:
    return "" if isinstance(length, str) else length // parts


def _sum(one: Length, other: Length) -> Length:
    if other == 0:
        return one
    return "" if isinstance(one, str) or isinstance(other, str) else one + other
