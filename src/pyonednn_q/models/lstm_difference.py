"""Why an LSTM of codes differs from another runtime's: a state beside a tie, or rows of one range.

States become codes in each step, and where one lies beside a tie, runtimes that differ in the last
place of float32 go on from other codes. So each is judged step by step from its own states, whose
codes are known: float32 is near to float64 there (`onnx.lstm_of_codes`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.native import runtime
from pyonednn_q.onnx.lstm_of_codes import lstm_of_codes

if TYPE_CHECKING:
    from pyonednn_q.graph.graph import GraphNode

__all__ = ["lstm_told"]

Array = np.ndarray[Any, Any]
_NAME = "u8 states, step by step"


def lstm_told(
    node: GraphNode, both: tuple[Array, Array], values: Mapping[str, Array], words: str
) -> tuple[str, str, int]:
    """Return the name of an arithmetic, its words, and how many values it does not give.

    Parameters
    ----------
    node : GraphNode
        The DynamicQuantizeLSTM.
    both : tuple of ndarray
        Our results of all steps, and theirs.
    values : mapping of str to ndarray
        What it reads.
    words : str
        How far they are apart.
    """
    ours, theirs = both
    lost = _beyond(node, ours, values, 1)
    if lost and not runtime.isa().has_vnni():  # products of the source may be of floats then
        lost = min(lost, _beyond(node, ours, values, 1, rounds_source=False))
    batch = ours.shape[2]
    tried = ((_beyond(node, theirs, values, rows), rows) for rows in range(1, batch + 1))
    least, rows = min(tried, key=lambda each: each[0])
    lost += least
    told = f"{words}; each step is as near to float64's, from its own states, as kernels are"
    if rows > 1:
        told += f"; {rows} rows of theirs share a range"
    if lost:
        return "", f"{words}; {lost} beyond what a step of float32 gives", lost
    return _NAME, told, 0


def _beyond(
    node: GraphNode,
    results: Array,
    values: Mapping[str, Array],
    rows: int,
    *,
    rounds_source: bool = True,
) -> int:
    """Return how many results no float32 makes of the states before them."""
    known = lstm_of_codes(node, values, results, rows=rows, rounds_source=rounds_source)
    near = np.abs(results.astype(np.float64) - known.results) <= known.apart
    return int(np.count_nonzero(~near))
