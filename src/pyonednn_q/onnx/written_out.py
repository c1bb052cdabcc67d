"""Attention and RotaryEmbedding as the nodes that the standard defines them by.

So they run as any others, in a program, on codes where these are, and at lengths that stay open: no
constant here depends on one. Attention of Q (B, H, S, D), K (B, G, T, D), V (B, G, T, E):

    scores = scale · Q @ Kᵀ + mask,  Y = Softmax(scores) @ V,   heads H / G by H / G of one of K
    mask: 0 and -inf of a mask of bools; 0 where t <= s + P, of causal ones behind P past places,
          and of windows where s + P - left <= t <= s + P + right

Where there is a softcap, scores are softcap · tanh(scores / softcap) before their mask.

A row that a mask takes out altogether is 0. What the definition has beyond that stays a node.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from pyonednn_q.graph import kinds
from pyonednn_q.graph.dims_rule import Lengths
from pyonednn_q.graph.graph import Graph, GraphNode
from pyonednn_q.graph.kind import Kind
from pyonednn_q.onnx.element_types import FLOAT32
from pyonednn_q.onnx.graph_edit import GraphEdit
from pyonednn_q.onnx.shape_inference import known_lengths

__all__ = ["with_parts_written_out"]

_UNDERSTOOD = {
    *("is_causal", "kv_num_heads", "q_num_heads", "scale", "softmax_precision", "softcap"),
    *("left_window_size", "right_window_size"),
}
_PLAIN = {"qk_matmul_output_mode": 0}  # values that change nothing
_LAST = np.iinfo(np.int64).max


def with_parts_written_out(graph: Graph) -> Graph:
    """Write float32 Attention and RotaryEmbedding as the nodes of their definitions.

    Parameters
    ----------
    graph : Graph
        Graph as read; lengths may be open.
    """
    new = {kinds.ATTENTION, kinds.ROTARY}
    if not any(node.row in new for node in graph.nodes):
        return graph
    edit, dims = GraphEdit(graph), known_lengths(graph)
    for node in graph.nodes:
        source = graph.tensors.get(node.input(0))
        is_float = source is not None and source.dtype == "float32"
        parts = _PartsOfNode(edit, node, dims)
        wrote = (
            is_float
            and node.row in new
            and (parts.attention() if node.row is kinds.ATTENTION else parts.rotary())
        )
        if not wrote:
            edit.nodes.append(node)
    return edit.result()


class _PartsOfNode:
    """The parts of one node, in the making."""

    def __init__(self, edit: GraphEdit, node: GraphNode, dims: Mapping[str, Lengths]) -> None:
        self._edit, self._node, self._dims = edit, node, dims

    def _of(self, name: str) -> Lengths:
        return self._dims.get(name, ())

    def _add(self, kind: Kind, *reads: str, dst: str = "", **attributes: object) -> str:
        return self._edit.part(self._node, kind, *reads, dst=dst, **attributes)

    def _numbers(self, *values: int) -> str:
        return self._edit.constant(f"{self._node.outputs[0]}:dims", np.array(values, np.int64))

    def _float(self, value: float) -> str:
        return self._edit.constant(f"{self._node.outputs[0]}:float", np.asarray(value, np.float32))

    # RotaryEmbedding.

    def rotary(self) -> bool:
        """Write one out, of cosines and sines c and s: (c · x1 - s · x2, s · x1 + c · x2)."""
        node, told = self._node, self._node.attributes
        x, dims = node.inputs[0], self._of(node.inputs[0])
        heads = int(told.get("num_heads", 0))
        length = dims[-1] if dims else ""
        if len(dims) == 3 and heads and isinstance(length, int):
            length = length // heads
        turned = int(told.get("rotary_embedding_dim", 0)) or length
        if not isinstance(turned, int) or not (len(dims) == 4 or (len(dims) == 3 and heads)):
            return False
        if len(dims) == 3:
            x = self._add(kinds.RESHAPE, x, self._numbers(0, 0, heads, -1))
        parts = self._turned(x, turned, self._numbers(1 if len(dims) == 4 else 2))
        if length != turned:
            parts.append(self._slice(x, turned, _LAST, 1))
        together = self._add(
            kinds.CONCAT, *parts, axis=-1, dst=node.outputs[0] if len(dims) == 4 else ""
        )
        if len(dims) == 3:
            self._add(kinds.RESHAPE, together, self._numbers(0, 0, -1), dst=node.outputs[0])
        return True

    def _turned(self, x: str, turned: int, axis: str) -> list[str]:
        """Return the parts of `x` up to a length of its last dim, which join along it."""
        cos, sin, places = (self._node.input(at) for at in (1, 2, 3))
        if places:
            cos, sin = (self._add(kinds.GATHER, each, places, axis=0) for each in (cos, sin))
        cos, sin = (self._add(kinds.UNSQUEEZE, each, axis) for each in (cos, sin))
        is_paired = bool(self._node.attributes.get("interleaved", 0))
        half = turned // 2
        ends = [(0, turned, 2), (1, turned, 2)] if is_paired else [(0, half, 1), (half, turned, 1)]
        one, two = (self._slice(x, *each) for each in ends)
        halves = []
        for first, second, kind in ((cos, sin, kinds.SUB), (sin, cos, kinds.ADD)):
            products = [self._add(kinds.MUL, *of) for of in ((first, one), (second, two))]
            halves.append(self._add(kind, *products))
        if not is_paired:
            return halves
        last = self._numbers(-1)
        pairs = [self._add(kinds.UNSQUEEZE, each, last) for each in halves]
        joined = self._add(kinds.CONCAT, *pairs, axis=-1)
        return [self._add(kinds.RESHAPE, joined, self._numbers(0, 0, 0, turned))]

    def _slice(self, x: str, start: int, end: int, step: int) -> str:
        numbers = [self._numbers(each) for each in (start, end, -1, step)]
        return self._add(kinds.SLICE, x, *numbers)

    # Attention.

    def attention(self) -> bool:
        """Write one out; tell whether it is one that can be."""
        node = self._node
        heads = self._heads()
        mask = node.input(3)
        if heads is None or not self._is_understood() or not self._fits(mask, *heads):
            return False
        queries, groups, depth, width = heads
        q, k, v = (self._in_heads(at, n) for at, n in enumerate((queries, groups, groups)))
        past = node.input(4)
        k, v = (self._behind_past(at, each) for at, each in ((1, k), (2, v)))
        bias = self._bias(mask, q, k, past, is_grouped=queries != groups)
        turned = self._add(kinds.TRANSPOSE, k, perm=(0, 1, 3, 2))
        if queries != groups:
            shape = self._numbers(0, groups, queries // groups, -1, depth)
            q = self._add(kinds.RESHAPE, q, shape)
            turned, v = (self._add(kinds.UNSQUEEZE, each, self._numbers(2)) for each in (turned, v))
        scores = self._add(kinds.MATMUL, q, turned)
        scale = node.attributes.get("scale", 1 / math.sqrt(depth))
        scores = self._add(kinds.MUL, scores, self._float(scale))
        if cap := node.attributes.get("softcap", 0):
            part = self._add(kinds.DIV, scores, self._float(cap))
            scores = self._add(kinds.MUL, self._add(kinds.TANH, part), self._float(cap))
        for each in bias:
            scores = self._add(kinds.ADD, scores, each)
        shares = self._add(kinds.SOFTMAX, scores, axis=-1)
        if mask or node.attributes.get("left_window_size", -1) >= 0:  # of nothing but -inf
            nothing = self._add(kinds.IS_NAN, shares)
            shares = self._add(kinds.WHERE, nothing, self._float(0.0), shares)
        is_last = queries == groups and len(self._of(node.inputs[0])) == 4
        y = self._add(kinds.MATMUL, shares, v, dst=node.outputs[0] if is_last else "")
        self._out_of_heads(y, queries, width, is_grouped=queries != groups)
        return True

    def _is_understood(self) -> bool:
        node = self._node
        rest = {n: v for n, v in node.attributes.items() if n not in _UNDERSTOOD}
        is_plain = all(_PLAIN.get(name, "") == value for name, value in rest.items())
        precision = node.attributes.get("softmax_precision", FLOAT32)
        beyond = node.input(6) or any(node.outputs[3:])  # lengths of caches, scores as a result
        both = bool(node.input(4)) == bool(node.input(5))
        return is_plain and not beyond and both and precision in {0, FLOAT32}

    def _heads(self) -> tuple[int, int, int, int] | None:
        """Return heads of queries and of keys, and lengths of a head of keys and of values."""
        q, k, v = (self._of(self._node.input(at)) for at in range(3))
        if len(q) == 4 and len(k) == len(v) == 4:
            known = (q[1], k[1], q[3], v[3])
        else:
            told = self._node.attributes
            queries, groups = (int(told.get(f"{n}_num_heads", 0)) for n in ("q", "kv"))
            if not (queries and groups) or not len(q) == len(k) == len(v) == 3:
                return None
            hidden = [n for n in (q[2], v[2]) if isinstance(n, int)]
            if len(hidden) < 2:
                return None
            known = (queries, groups, hidden[0] // queries, hidden[1] // groups)
        numbers = tuple(each for each in known if isinstance(each, int) and each > 0)
        if len(numbers) < len(known) or numbers[0] % numbers[1]:
            return None
        return numbers[0], numbers[1], numbers[2], numbers[3]

    def _fits(self, mask: str, queries: int, groups: int, *_: int) -> bool:
        """Tell whether a mask is one of bools or float32, as long as the keys are."""
        if not mask:
            return True
        dims, source = self._of(mask), self._edit.graph.tensors.get(mask)
        if source is None or source.dtype not in {"bool", "float32"} or not 1 < len(dims) < 5:
            return False
        is_one = queries == groups or len(dims) == 2 or dims[-3] == 1
        keys, k = dims[-1], self._of(self._node.input(1))
        total = k[-2] if len(k) == 4 else k[1]
        if self._node.input(4):
            before = self._of(self._node.input(4))
            both = before[2] if len(before) == 4 else ""
            is_known = isinstance(total, int) and isinstance(both, int)
            total = int(total) + int(both) if is_known else ""
        is_shorter = isinstance(keys, int) and isinstance(total, int) and keys < total
        return is_one and not is_shorter and not (keys == 1 and total != 1)

    def _in_heads(self, at: int, heads: int) -> str:
        """Return a source with a dim of heads in front of places."""
        name = self._node.input(at)
        if len(self._of(name)) == 4:
            return name
        apart = self._add(kinds.RESHAPE, name, self._numbers(0, 0, heads, -1))
        return self._add(kinds.TRANSPOSE, apart, perm=(0, 2, 1, 3))

    def _behind_past(self, at: int, name: str) -> str:
        """Return keys or values appended to the past ones, as results if requested."""
        node, past = self._node, self._node.input(at + 3)
        present = node.outputs[at] if len(node.outputs) > at else ""
        if past:
            return self._add(kinds.CONCAT, past, name, axis=2, dst=present)
        return self._add(kinds.IDENTITY, name, dst=present) if present else name

    def _bias(self, mask: str, q: str, k: str, past: str, *, is_grouped: bool) -> list[str]:
        """Return the addend of the scores."""
        bias = []
        told = self._node.attributes
        left, right = (int(told.get(f"{side}_window_size", -1)) for side in ("left", "right"))
        right = 0 if told.get("is_causal", 0) else right
        hidden = {1: right + 1} if right >= 0 else {}  # from which diagonal on, upwards or not
        hidden |= {0: -left - 1} if left >= 0 else {}
        low = self._float(-np.inf) if mask or hidden else ""
        if mask:
            if is_grouped and len(self._of(mask)) == 4:
                mask = self._add(kinds.UNSQUEEZE, mask, self._numbers(2))
            is_bool = self._edit.graph.tensors[self._node.input(3)].dtype == "bool"
            bias.append(self._add(kinds.WHERE, mask, self._float(0.0), low) if is_bool else mask)
        if hidden:
            sides = [self._add(kinds.SHAPE, each, start=2, end=3) for each in (q, k)]
            square = self._add(kinds.CONCAT, *sides, axis=0)
            places = self._add(kinds.EXPAND, low, square)
        for upper, diagonal in hidden.items():
            first = self._numbers(diagonal)
            if past:
                before = self._add(kinds.SHAPE, past, start=2, end=3)
                first = self._add(kinds.ADD, first, before)
            first = self._add(kinds.SQUEEZE, first, self._numbers(0))
            bias.append(self._add(kinds.TRILU, places, first, upper=upper))
        return bias

    def _out_of_heads(self, y: str, heads: int, width: int, *, is_grouped: bool) -> None:
        dst = self._node.outputs[0]
        is_flat = len(self._of(self._node.input(0))) == 3
        if is_grouped:
            together = self._numbers(0, heads, -1, width)
            y = self._add(kinds.RESHAPE, y, together, dst="" if is_flat else dst)
        if is_flat:
            y = self._add(kinds.TRANSPOSE, y, perm=(0, 2, 1, 3))
            self._add(kinds.RESHAPE, y, self._numbers(0, 0, -1), dst=dst)
