"""masked_scores: the scores of attention that a mask takes some out of, before a Softmax.

Masks put numbers so low into scores that their exponential is nothing: -inf, the least float, -100.
In codes of one range with them all scores would be one code; and where no sample of a calibration
was padded, codes of the mask would hold nothing but 0, and later masks would be lost.
"""

from __future__ import annotations

from pyonednn_q.dtypes import Array
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import GraphNode
from pyonednn_q.onnx.graph_view import GraphView

__all__ = ["masked_scores"]

_NOTHING = -16.0  # whose exponential is below float32's last place of 1
_FAR = 32  # nodes that make a mask


def masked_scores(view: GraphView) -> dict[int, tuple[str, ...]]:
    """Return the tensors of scores that each masked Softmax reads, by the identity of its node.

    Parameters
    ----------
    view : GraphView
        The view of a float graph, as `prepared` returns it.
    """
    softmaxes = (node for node in view.graph.nodes if node.row is kinds.SOFTMAX)
    known = ((id(node), _scores(view, node)) for node in softmaxes)
    return {node: scores for node, scores in known if scores is not None}


def _scores(view: GraphView, node: GraphNode) -> tuple[str, ...] | None:
    """Return the scores before a mask is added; None if a Softmax's source has no mask."""
    maker = view.producer.get(node.inputs[0])
    while maker is not None and maker.row.moves_values(maker.attributes):
        maker = view.producer.get(maker.inputs[0])
    if maker is None or not (maker.row is kinds.WHERE or maker.row.chain in {"add", "sub"}):
        return None
    operands = maker.inputs[1:] if maker.row is kinds.WHERE else maker.inputs
    scores = tuple(name for name in operands if not _is_mask(view, name))
    return scores if len(scores) < len(operands) else None


def _is_mask(view: GraphView, name: str) -> bool:
    """Tell whether a tensor has numbers that take others out, or is made of no floats at all."""
    if name in view.constants:
        return _is_low(view.constants[name])
    left, is_real = [name], False
    for _ in range(_FAR):
        if not left:
            return not is_real
        name = left.pop()
        maker = view.producer.get(name)
        if name in view.constants:
            if _is_low(view.constants[name]):
                return True
        elif maker is not None and _hands_on(maker):
            left += filter(None, maker.inputs)
        else:
            is_real |= view.dtype(name).startswith("float")
    return False


def _is_low(constant: Array) -> bool:
    return constant.dtype.kind == "f" and bool(constant.size) and constant.min() < _NOTHING


def _hands_on(node: GraphNode) -> bool:
    """Tell whether a node makes a mask of a mask."""
    moves = node.row.moves_values(node.attributes)
    return moves or node.row.is_arithmetic or node.row in {kinds.CAST, kinds.WHERE}
