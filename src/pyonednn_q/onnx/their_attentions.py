"""MultiHeadAttention and Attention of onnxruntime as ONNX's Attention, behind their products.

    Attention(x, weights, bias)      q, k, v = the parts of x @ weights + bias
    MultiHeadAttention(q, k, v)      and a bias of each

Their masks become what is added to scores: 0, or `mask_filter_value` where a key is padding, and a
bias of scores. Source: onnxruntime, docs/ContribOperators.md.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.graph import kinds
from pyonednn_q.graph.defined_kinds import RANGE
from pyonednn_q.graph.dims_rule import Lengths
from pyonednn_q.graph.graph import GraphNode
from pyonednn_q.graph.kind import Kind
from pyonednn_q.onnx.graph_edit import GraphEdit

__all__ = ["attention_of_heads", "attention_of_one"]

_LOW = -10000.0  # of padding, where nothing is told
_BOOL, _INT64 = 9, 7  # TensorProto's numbers
_HEADS_INPUTS, _ONE_INPUTS = 8, 6  # those that are understood
_TOLD = {"num_heads", "scale", "unidirectional", "mask_filter_value"}
_PLAIN = {"do_rotary": 0, "past_present_share_buffer": 0, "rotary_embedding_dim": 0}


def attention_of_heads(node: GraphNode, edit: GraphEdit) -> bool:
    """Write a MultiHeadAttention as an Attention of ONNX; tell whether it is one that can be.

    Parameters
    ----------
    node : GraphNode
        Node as read from a file.
    edit : GraphEdit
        The graph in the making.
    """
    new = _Attention(node, edit)
    q, k, v = (node.input(at) for at in range(3))
    dims = [new.of(each) for each in (q, k, v)]
    ranks = [len(each) for each in dims]
    bias = edit.graph.constants.get(node.input(3))
    if ranks not in ([3, 3, 3], [3, 4, 4]) or not new.is_understood(_HEADS_INPUTS, outputs=3):
        return False
    if node.input(3):
        widths = [each[-1] for each in dims]
        if bias is None or 4 in ranks or not all(isinstance(each, int) for each in widths):
            return False
        ends = np.cumsum([int(each) for each in widths])
        parts = np.split(bias, ends[:2])
        q, k, v = (
            new.add(kinds.ADD, *pair)
            for pair in zip((q, k, v), map(new.constant, parts), strict=True)
        )
    past = node.input(6), node.input(7)
    mask = new.mask(node.input(4), node.input(5), node.input(1), past[0])
    if mask is None:
        return False
    new.attention([q, k, v, mask, *past], list(node.outputs), is_crossed=4 in ranks)
    return True


def attention_of_one(node: GraphNode, edit: GraphEdit) -> bool:
    """Write an Attention of onnxruntime as one of ONNX; tell whether it is one that can be.

    Parameters
    ----------
    node : GraphNode
        Node as read from a file.
    edit : GraphEdit
        The graph in the making.
    """
    new = _Attention(node, edit)
    x, weights, bias, padding, past, more = (node.input(at) for at in range(_ONE_INPUTS))
    wei = edit.graph.constants.get(weights)
    is_known = wei is not None and wei.ndim == 2 and len(new.of(x)) == 3
    if not is_known or not new.is_understood(_ONE_INPUTS, outputs=2):
        return False
    assert wei is not None
    sizes = node.attributes.get("qkv_hidden_sizes") or [wei.shape[1] // 3] * 3
    product = new.add(kinds.MATMUL, x, weights)
    product = new.add(kinds.ADD, product, bias) if bias else product
    begin, parts = 0, []
    for size in sizes:
        numbers = (new.constant(np.array([each])) for each in (begin, begin + size, 2))
        parts.append(new.add(kinds.SLICE, product, *numbers))
        begin += size
    before, after = ["", ""], ["", ""]
    present = node.outputs[1] if len(node.outputs) > 1 else ""
    if past:
        places = (new.constant(np.array(at)) for at in range(2))
        before = [new.add(kinds.GATHER, past, place, axis=0) for place in places]
    if present:
        after = [edit.free(f"{present}:{name}") for name in ("key", "value")]
    mask = new.mask(padding, more, x, before[0])
    if mask is None:
        return False
    new.attention([*parts, mask, *before], [node.outputs[0], *after], is_crossed=False)
    if present:
        first = new.constant(np.array([0]))
        halves = [new.add(kinds.UNSQUEEZE, each, first) for each in after]
        new.add(kinds.CONCAT, *halves, axis=0, dst=present)
    return True


class _Attention:
    """The parts of one node, in the making."""

    def __init__(self, node: GraphNode, edit: GraphEdit) -> None:
        self._node, self._edit = node, edit

    def of(self, name: str) -> Lengths:
        """Return dims; none where they are not known."""
        known = self._edit.graph.tensors.get(name)
        return () if known is None else known.lengths or known.dims or ()

    def add(self, kind: Kind, *reads: str, dst: str = "", **told: object) -> str:
        return self._edit.part(self._node, kind, *reads, dst=dst, **told)

    def constant(self, value: Array) -> str:
        return self._edit.constant(f"{self._node.outputs[0]}:constant", value)

    def is_understood(self, inputs: int, outputs: int) -> bool:
        node = self._node
        rest = {n: v for n, v in node.attributes.items() if n not in {*_TOLD, "qkv_hidden_sizes"}}
        beyond = any(node.inputs[inputs:]) or any(node.outputs[outputs:])
        source = self._edit.graph.tensors.get(node.inputs[0])
        is_float = source is not None and source.dtype == "float32"
        return is_float and not beyond and all(_PLAIN.get(n, "") == v for n, v in rest.items())

    def mask(self, padding: str, bias: str, keys: str, past: str) -> str | None:
        """Return the addend of scores, "" for none; None where it is not known."""
        if not padding:
            return bias
        dims = self.of(padding)
        if len(dims) == 1 and dims[0] == self.of(keys)[0]:
            is_key = self._up_to(padding, keys, past)
        elif len(dims) in {2, 3}:
            is_key = self.add(kinds.CAST, padding, to=_BOOL)
        else:
            return None
        axes = [1] if len(dims) == 3 else [1, 2]
        is_key = self.add(kinds.UNSQUEEZE, is_key, self.constant(np.array(axes)))
        low = float(self._node.attributes.get("mask_filter_value", _LOW))
        values = (self.constant(np.asarray(each, np.float32)) for each in (0.0, low))
        mask = self.add(kinds.WHERE, is_key, *values)
        return self.add(kinds.ADD, mask, bias) if bias else mask

    def _up_to(self, lengths: str, keys: str, past: str) -> str:
        """Return which keys (batch, all) come before as many as a sequence has."""
        at = len(self.of(keys)) - 2
        total = self.add(kinds.SHAPE, keys, start=at, end=at + 1)
        if past:
            total = self.add(kinds.ADD, total, self.add(kinds.SHAPE, past, start=2, end=3))
        total = self.add(kinds.SQUEEZE, total, self.constant(np.array([0])))
        first, step = (self.constant(np.array(each)) for each in (0, 1))
        places = self.add(RANGE, first, total, step)
        count = self.add(kinds.CAST, lengths, to=_INT64)
        count = self.add(kinds.UNSQUEEZE, count, self.constant(np.array([1])))
        return self.add(kinds.LESS, places, count)

    def attention(self, reads: list[str], dsts: list[str], *, is_crossed: bool) -> None:
        """Add the Attention; crossed: keys and values have heads already."""
        node, heads = self._node, int(self._node.attributes["num_heads"])
        told: dict[str, Any] = {"is_causal": int(node.attributes.get("unidirectional", 0))}
        if scale := node.attributes.get("scale", 0.0):
            told["scale"] = float(scale)
        y = dsts[0]
        if is_crossed:
            apart = self.constant(np.array([0, 0, heads, -1]))
            q = self.add(kinds.RESHAPE, reads[0], apart)
            reads[0] = self.add(kinds.TRANSPOSE, q, perm=(0, 2, 1, 3))
            dsts[0] = self._edit.free(f"{y}:heads")
        else:
            told |= {"q_num_heads": heads, "kv_num_heads": heads}
        while not reads[-1]:
            reads.pop()
        whole = replace(
            node,
            operator=kinds.ATTENTION.name,
            domain="",
            inputs=tuple(reads),
            outputs=tuple(dsts),
            attributes=told,
        )
        self._edit.nodes.append(whole)
        if is_crossed:
            together = self.add(kinds.TRANSPOSE, dsts[0], perm=(0, 2, 1, 3))
            self.add(kinds.RESHAPE, together, self.constant(np.array([0, 0, -1])), dst=y)
