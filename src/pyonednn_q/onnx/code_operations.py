"""Conversion of operations on codes to operations of a network, one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyonednn_q.dtypes import Array
from pyonednn_q.errors import UnsupportedError
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Dims, Graph, GraphNode
from pyonednn_q.graph.kind import Kind
from pyonednn_q.network import (
    CodeMatMul,
    Concat,
    Dequantize,
    Pool,
    Quantize,
    Repeat,
    Reshape,
    Slice,
    Softmax,
    Transpose,
)
from pyonednn_q.onnx.code_tables import requantized
from pyonednn_q.onnx.fused_node import CodeOperation, FusedNode
from pyonednn_q.onnx.reference_windows import PoolWindows

if TYPE_CHECKING:
    from pyonednn_q.qparams import QParams


def operations_of(what: CodeOperation, node: FusedNode, graph: Graph) -> tuple[Any, ...]:
    """Return operations of a network that do the same, one after the other; empty: none do."""
    if what.post.steps:
        return ()
    if what.row is kinds.QUANTIZE:
        is_float = graph.tensors[node.srcs[0]].dtype == "float32"
        dst_q = _plain(what.dst_q)
        return (Quantize(dst_q),) if is_float and dst_q is not None else ()
    if what.row is kinds.DEQUANTIZE:
        is_float = graph.tensors[node.output].dtype == "float32"
        src_q = _plain(what.srcs_q[0])
        return (Dequantize(src_q),) if is_float and src_q is not None else ()
    if what.row is kinds.MATMUL:
        return _product(what, node, graph)
    if what.row is kinds.SOFTMAX:
        return _softmax(what, graph)
    if what.row.pool == "mean":
        return _mean(what, node, graph)
    return _moved(what, node, graph) if what.row.moves_values(what.attributes) else ()


def _moved(what: CodeOperation, node: FusedNode, graph: Graph) -> tuple[Any, ...]:
    """Return what moves codes, and gives them their new meaning where that changes."""
    dst_q = _plain(what.dst_q)
    srcs_q = [_plain(each) for each in what.srcs_q]
    if dst_q is None:
        return ()
    tables = [None if q is None or q == dst_q else requantized(q, dst_q) for q in srcs_q]
    if None in srcs_q:
        return ()
    if what.row is kinds.CONCAT:
        return (Concat(int(what.attributes["axis"]), tuple(tables)),)
    moves = _moves(what, node, graph)
    return moves if not moves or tables[0] is None else (*moves, tables[0])


def parts_of(attributes: Mapping[str, Any], outputs: Sequence[str], graph: Graph) -> list[Slice]:
    """Return the parts of a Split."""
    axis = int(attributes.get("axis", 0))
    parts, start = [], 0
    for name in outputs:
        length = dims_of(name, graph)[axis]
        parts.append(Slice(axis, start, length))
        start += length
    return parts


def _product(what: CodeOperation, node: FusedNode, graph: Graph) -> tuple[Any, ...]:
    params = [_plain(q) for q in (*what.srcs_q, what.dst_q)]
    if len(params) != 3 or len(node.srcs) != 2:
        return ()
    src_q, wei_q, dst_q = params
    if src_q is None or wei_q is None or dst_q is None:
        return ()
    product = CodeMatMul(src_q, wei_q, dst_q)
    dims = [dims_of(name, graph) for name in node.srcs]
    return (product,) if product.takes(dims[0], dims[1]) else ()


def _softmax(what: CodeOperation, graph: Graph) -> tuple[Any, ...]:
    src_q, dst_q = _plain(what.srcs_q[0]), _plain(what.dst_q)
    if src_q is None or dst_q is None or graph.opsets.get("", 0) < what.row.axis_since:
        return ()
    known = Softmax(int(what.attributes.get("axis", -1)))
    return Dequantize(src_q), known, Quantize(dst_q)


def transposed(attributes: Mapping[str, Any], output: str, graph: Graph) -> Transpose:
    """Return the view that a Transpose is."""
    reverse = range(len(dims_of(output, graph)))[::-1]
    return Transpose(tuple(attributes.get("perm", reverse)))


def reshaped(row: Kind, constants: Mapping[int, Array], output: str, graph: Graph) -> Reshape:
    """Return what a node is that keeps the elements in order.

    One of its numbers may be -1: where they are constants, it has them, and so is right for other
    lengths of the source, too.
    """
    told = constants.get(1)
    if row is kinds.RESHAPE and told is not None and told.size and 0 not in told:
        return Reshape(tuple(int(each) for each in told.ravel()))
    return Reshape(dims_of(output, graph))


def _moves(what: CodeOperation, node: FusedNode, graph: Graph) -> tuple[Any, ...]:
    """Return what moves codes of one tensor, whatever they mean."""
    if what.row.reshapes:
        return (reshaped(what.row, what.constants, node.output, graph),)
    if what.row is kinds.TRANSPOSE:
        return (transposed(what.attributes, node.output, graph),)
    if what.row is kinds.RESIZE:
        return _repeat(what, dims_of(node.srcs[0], graph), dims_of(node.output, graph))
    if what.row is kinds.SLICE:
        return slices_of(what.constants, dims_of(node.srcs[0], graph))
    if what.row is kinds.GLOBAL_MAX_POOL:
        return (Pool("max"),)
    return _windows(what, node, graph)


def _repeat(what: CodeOperation, src: Dims, dst: Dims) -> tuple[Any, ...]:
    """Return a Resize by whole factors whose nearest element is the one that is enlarged."""
    known = {"mode", "coordinate_transformation_mode", "nearest_mode", "cubic_coeff_a"}
    attributes = what.attributes
    mode = attributes.get("coordinate_transformation_mode", "half_pixel")
    nearest = attributes.get("nearest_mode", "round_prefer_floor")
    is_own = (mode == "asymmetric" and nearest == "floor") or (
        mode in {"half_pixel", "half_pixel_symmetric"} and nearest.startswith("round_")
    )
    if set(attributes) - known - {"exclude_outside", "extrapolation_value"} or not is_own:
        return ()
    if len(src) != len(dst) or any(after % before for before, after in zip(src, dst, strict=True)):
        return ()
    times = tuple(after // before for before, after in zip(src, dst, strict=True))
    scales = what.constants.get(2)
    if scales is not None and scales.size and scales.tolist() != list(times):
        return ()
    return (Repeat(times),)


def slices_of(constants: Mapping[int, Array], src: Dims) -> tuple[Slice, ...]:
    """Return a Slice of constant bounds, by the places of its inputs; empty where it is none."""
    if not {1, 2} <= set(constants):
        return ()
    starts, ends = (constants[at].ravel().tolist() for at in (1, 2))
    axes = constants[3].ravel().tolist() if 3 in constants else range(len(starts))
    steps = constants[4].ravel().tolist() if 4 in constants else [1] * len(starts)
    slices = []
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if step < 1:
            return ()
        indices = range(src[axis])[start:end:step]
        if not indices:
            return ()
        slices.append(Slice(axis, indices.start, len(indices), step))
    return tuple(slices)


def _plain(q: QParams | None) -> QParams | None:
    """Return what is of a whole tensor of 8 bits."""
    is_plain = q is not None and q.channels is None and q.dtype in {"u8", "s8"}
    return q if is_plain else None


def _mean(what: CodeOperation, node: FusedNode, graph: Graph) -> tuple[Any, ...]:
    """Return a mean of codes: their sum is exact, where ONNX adds real values."""
    src_q, dst_q = _plain(what.srcs_q[0]), _plain(what.dst_q)
    if src_q is None or dst_q is None:
        return ()
    if what.row.over == "places":
        pool: Pool | None = Pool("avg_include_padding")
    elif what.row.over == "windows":
        (pool,) = _windows(what, node, graph) or (None,)
    else:
        over = is_over_places(what.attributes, what.constants, dims_of(node.srcs[0], graph))
        pool = Pool("avg_include_padding") if over else None
    if pool is None:
        return ()
    if src_q != dst_q or pool.counts_pads:
        pool = replace(pool, src_q=src_q, dst_q=dst_q)
    keeps = what.row.over != "axes" or what.attributes.get("keepdims", 1)
    return (pool,) if keeps else (pool, Reshape(dims_of(node.output, graph)))


def is_over_places(attributes: Mapping[str, Any], constants: Mapping[int, Any], src: Dims) -> bool:
    """Tell whether a mean is one over all dimensions but of batch and channels."""
    axes = constants[1].ravel() if 1 in constants else attributes.get("axes", ())
    return len(src) > 2 and sorted(axis % len(src) for axis in axes) == [*range(2, len(src))]


def _windows(what: CodeOperation, node: FusedNode, graph: Graph) -> tuple[Pool, ...]:
    src = dims_of(node.srcs[0], graph)
    is_known = what.row.over == "windows" and len(src) > 2
    pool = window_pool(what, src, graph.opsets.get("", 0)) if is_known else None
    return () if pool is None else (pool,)


def window_pool(what: CodeOperation | GraphNode, src: Dims, opset: int) -> Pool | None:
    """Return a pool of windows as oneDNN has it; None where it has none of them.

    Parameters
    ----------
    what : CodeOperation or GraphNode
        A maximum or a mean of windows.
    src : tuple of int
        Dims of its source.
    opset : int
        Opset version of ONNX's operators.
    """
    known = {"kernel_shape", "strides", "pads", "dilations", "storage_order", "count_include_pad"}
    attributes = what.attributes
    if set(attributes) - known - {"auto_pad", "ceil_mode"} or "kernel_shape" not in attributes:
        return None
    try:
        windows = PoolWindows.of(src[2:], attributes, opset)
    except RuntimeError:  # where runtimes disagree
        return None
    counts_pads = bool(attributes.get("count_include_pad", 0)) and what.row.pool == "mean"
    sides = []
    for k, s, d, lo, hi, length, count in zip(*windows, strict=True):
        more = (count - 1) * s + (k - 1) * d + 1 - lo - length  # which windows reach beyond it
        if counts_pads and more > hi:  # what lies beyond pads is in no mean
            return None
        sides.append((lo, max(more, hi)))
    alg = "avg_include_padding" if counts_pads else "avg_exclude_padding"
    return Pool(
        "max" if what.row.pool == "max" else alg,
        windows.kernel,
        stride=windows.stride,
        padding=tuple(sides),
        dilation=windows.dilation,
    )


def constants_of(what: GraphNode, graph: Graph) -> dict[int, Array]:
    """Return the constants that a node reads, by the places of its inputs."""
    held = graph.constants
    return {at: held[name] for at, name in enumerate(what.inputs) if name in held}


def dims_of(name: str, graph: Graph) -> Dims:
    """Return the dims of a tensor; UnsupportedError where they are not known."""
    info = graph.tensors.get(name)
    if info is None or info.dims is None:
        raise UnsupportedError("refused", "making a network", name, "its dims are not known")
    return info.dims
