"""Reasons why a recurrence of codes differs: a state beside a tie, rows of one range.

States become codes in each step, and where one lies beside a tie, runtimes that differ in the last
place of float32 go on from other codes. So each is judged step by step from its own states, whose
codes are known: float32 is near to float64 there (`onnx.lstm_of_codes`, `onnx.gru_of_codes`). Of a
GRU other runtimes have the function that our files hold, which rounds neither source nor states.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.graph import kinds
from pyonednn_q.native import runtime
from pyonednn_q.onnx.gru_of_codes import gru_of_codes
from pyonednn_q.onnx.lstm_of_codes import lstm_of_codes

if TYPE_CHECKING:
    from pyonednn_q.graph.graph import GraphNode
    from pyonednn_q.onnx.lstm_of_codes import RecurrenceValues

__all__ = ["recurrence_told"]

_NAME = "u8 states, step by step"
_IN_FLOATS = "u8 states, of theirs floats"


def recurrence_told(
    node: GraphNode, both: tuple[Array, Array], values: Mapping[str, Array], words: str
) -> tuple[str, str, int]:
    """Return the name of an arithmetic, its words, and how many values it does not give.

    Parameters
    ----------
    node : GraphNode
        One of `kinds.DYNAMIC_RECURRENT`.
    both : tuple of ndarray
        Our results of all steps, and theirs.
    values : mapping of str to ndarray
        Sources of the node.
    words : str
        Distance of both results, in words.
    """
    ours, theirs = both
    told = f"{words}; each step is as near to float64's, from its own states, as kernels are"
    is_gru = node.row is kinds.DYNAMIC_GRU

    def known(results: Array, rows: int, *, rounds_source: bool) -> RecurrenceValues:
        if is_gru:
            return gru_of_codes(node, values, results, rounds_source=rounds_source)
        return lstm_of_codes(node, values, results, rows=rows, rounds_source=rounds_source)

    lost = _beyond(ours, known(ours, 1, rounds_source=True))
    if lost and not runtime.isa().has_vnni():  # products of the source may be of floats then
        lost = min(lost, _beyond(ours, known(ours, 1, rounds_source=False)))
    if is_gru:
        of_floats = gru_of_codes(node, values, theirs, rounds_source=False, rounds_states=False)
        lost += _beyond(theirs, of_floats)
    else:
        tried = [
            (_beyond(theirs, known(theirs, rows, rounds_source=True)), rows)
            for rows in range(1, ours.shape[2] + 1)
        ]
        least, rows = min(tried, key=lambda each: each[0])
        lost += least
        told += f"; {rows} rows of theirs share a range" if rows > 1 else ""
    if lost:
        return "", f"{words}; {lost} beyond what a step of float32 gives", lost
    return _IN_FLOATS if is_gru else _NAME, told, 0


def _beyond(results: Array, known: RecurrenceValues) -> int:
    """Return how many results no float32 makes of the states before them."""
    near = np.abs(results.astype(np.float64) - known.results) <= known.apart
    return int(np.count_nonzero(~near))
