"""Operations on codes as tables: all values of a function of one code or two, by its definition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.graph import kinds
from pyonednn_q.network import Lookup
from pyonednn_q.onnx.fused_node import CodeOperation, FusedNode
from pyonednn_q.onnx.linear import dequantize_linear, quantize_linear
from pyonednn_q.onnx.pools import onnx_numbers

if TYPE_CHECKING:
    from pyonednn_q.qparams import QParams

Run = Callable[[dict[str, Array]], tuple[Array, ...]]


def table_of(node: FusedNode, call: Run, constants: Mapping[str, Array]) -> Lookup | None:
    """Return the result of an operation for all codes, or for all pairs of codes.

    Parameters
    ----------
    node : FusedNode
        A CodeOperation.
    call : callable
        Function that runs it on values by name; the table holds its results.
    constants : mapping of str to ndarray
        Constants of the graph.

    Returns
    -------
    Lookup or None
        Table; None where an element of the result depends on more than one of each source, or on
        its place.
    """
    what = node.runs
    assert isinstance(what, CodeOperation)
    names = tuple(dict.fromkeys(node.srcs))
    if not 1 <= len(names) <= 2 or not _is_of_bytes(what):
        return None
    read = {name for part in node.parts for name in part.inputs if name in constants}
    if any(not part.row.elementwise for part in node.parts):
        return None
    if any(constants[name].size != 1 for name in read):
        return None
    params = dict(zip(node.srcs, what.srcs_q, strict=True))
    axes = np.eye(len(names), dtype=int) * 255 + 1  # (256, 1) and (1, 256)
    all_codes = {n: codes(params[n]).reshape(axes[at]) for at, n in enumerate(names)}
    (table,) = call({**constants, **all_codes})
    adds = None
    if what.row is kinds.ADD and len(names) == 2 and what.dst_q is not None:
        first, second = (q for q in params.values() if q is not None)
        adds = (first, second, what.dst_q)
    return Lookup(table.reshape((256,) * len(names)), adds)


def requantized(src_q: QParams, dst_q: QParams) -> Lookup:
    """Return codes that mean the same numbers, as far as codes can."""
    real = dequantize_linear(codes(src_q), *onnx_numbers(src_q))
    return Lookup(quantize_linear(real, *onnx_numbers(dst_q)))


def composed(table: Lookup, *before: Lookup | None) -> Lookup:
    """Return a table of one source for a table whose sources are looked up in that same one.

    Parameters
    ----------
    table : Lookup
        Table of one source or two.
    *before : Lookup or None
        Table from the one source to each of the sources; None: that source itself.
    """
    own = np.arange(256)
    index = [own if each is None else each.table.view(np.uint8) for each in before]
    return Lookup(table.table[tuple(index)])


def codes(q: QParams | None) -> Array:
    """Return all codes in the order of their bytes."""
    assert q is not None
    every = np.arange(256).astype(np.uint8)
    return every if q.dtype == "u8" else every.view(np.int8)


def _is_of_bytes(what: CodeOperation) -> bool:
    return all(q is not None and q.dtype in {"u8", "s8"} for q in (*what.srcs_q, what.dst_q))
