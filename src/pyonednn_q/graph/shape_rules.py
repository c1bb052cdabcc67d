"""Dims of what computes: elementwise, windows, products, reductions, recurrences.

Pages of operators: https://onnx.ai/onnx/operators/onnx__Add.html, and so by name.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import partial

from pyonednn_q.graph.dims_numbers import arithmetic, count, kept, quotient
from pyonednn_q.graph.dims_rule import DimsRule, KnownSources, Length, Lengths, place, product


@DimsRule
def same(node: KnownSources) -> list[Lengths | None]:
    """All results have the dims of the first source (Relu, Softmax, Clip, CumSum, Dropout)."""
    return [node.dims(0)] * node.outputs


@partial(DimsRule, dtypes=(("int64",),), numbers=count)
def scalar(_node: KnownSources) -> list[Lengths | None]:
    """The result is one number (Size)."""
    return [()]


@partial(DimsRule, dtypes=(("uint8",), ("float32",), ("uint8",)))
def codes_and_range(node: KnownSources) -> list[Lengths | None]:
    """Codes of the dims of x, their scale and zero point (DynamicQuantizeLinear)."""
    return [node.dims(0), (), ()]


@DimsRule
def broadcast(node: KnownSources) -> list[Lengths | None]:
    """Dims are aligned at their end; of each the length that is not 1 (Add, Equal, Where, Max).

    https://onnx.ai/onnx/repo-docs/Broadcasting.html
    """
    return [broadcast_lengths([node.dims(at) for at in range(len(node.tensors))])]


def broadcast_lengths(dims: Sequence[Lengths]) -> Lengths:
    """Return to which dims some are broadcast.

    Raises
    ------
    ValueError
        The dims do not fit.
    """
    first = dims[0]
    if all(each == first for each in dims):
        return first
    rank = max(map(len, dims))
    return tuple(_wider({each[at] for each in dims if len(each) >= -at}) for at in range(-rank, 0))


def _wider(lengths: set[Length]) -> Length:
    """Return what lengths are broadcast to: what is not 1; of a number and a symbol the number."""
    numbers = {each for each in lengths if not isinstance(each, str) and each != 1}
    if len(numbers) > 1:
        raise ValueError(lengths)
    if numbers:
        return numbers.pop()
    opened = lengths - {1}
    if not opened:
        return 1
    return opened.pop() if len(opened) == 1 else ""


# Windows.


@DimsRule
def convolution(node: KnownSources) -> list[Lengths | None]:
    """(N, M, windows) of x (N, C, spatial) and weights (M, C / group, kernel).

    Windows along a dimension, with reach r = (kernel - 1) · dilation + 1:
    floor((length + lo + hi - r) / stride) + 1; auto_pad SAME: ceil(length / stride).
    """
    batch, _, *spatial = node.dims(0)
    filters, _, *kernel = node.dims(1)
    return [(batch, filters, *_windows(node, spatial, kernel))]


@DimsRule
def pool(node: KnownSources) -> list[Lengths | None]:
    """(N, C, windows), of values and of their places (MaxPool, AveragePool, LpPool).

    As for a convolution; ceil_mode: ceil for floor, without a window that would begin behind the
    source and its pads at the end. Where the text disagrees (before opset 22 it leaves no window
    out, and for VALID it has floor), this is what ONNX's inference has; such a pool refuses to run.
    """
    dims = node.dims(0)
    if node.attributes.get("channels_last", 0):
        batch, *spatial, channels = dims
        return [(batch, *_windows(node, spatial, ()), channels)] * node.outputs
    batch, channels, *spatial = dims
    return [(batch, channels, *_windows(node, spatial, ()))] * node.outputs


@DimsRule
def pool_over_places(node: KnownSources) -> list[Lengths | None]:
    """(N, C, 1, ...): one value of each channel (GlobalAveragePool, GlobalMaxPool)."""
    dims = node.dims(0)
    if node.attributes.get("channels_last", 0):
        return [(dims[0], *(1,) * (len(dims) - 2), dims[-1])]
    return [(*dims[:2], *(1,) * (len(dims) - 2))]


def _windows(
    node: KnownSources, spatial: Sequence[Length], kernel: Sequence[Length]
) -> list[Length]:
    number = len(spatial)
    told = node.attributes
    kernel = told.get("kernel_shape") or kernel
    strides = told.get("strides") or (1,) * number
    dilations = told.get("dilations") or (1,) * number
    pads = told.get("pads") or (0,) * 2 * number
    auto = told.get("auto_pad") or "NOTSET"
    if auto != "NOTSET":
        pads = (0,) * 2 * number
    if not len(kernel) == len(strides) == len(dilations) == len(pads) / 2 == number:
        raise ValueError(kernel)
    rows = zip(spatial, kernel, strides, dilations, pads[:number], pads[number:], strict=True)
    if auto.startswith("SAME"):
        return [
            n if step == 1 else "" if isinstance(n, str) else -(-n // step)
            for n, _, step, *_ in rows
        ]
    ceils = bool(told.get("ceil_mode", 0))
    return [_window_count(*row, ceils=ceils) for row in rows]


def _window_count(
    length: Length,
    kernel: Length,
    stride: int,
    dilation: int,
    lo: int,
    hi: int,
    *,
    ceils: bool,
) -> Length:
    if isinstance(kernel, str):
        return ""
    more = lo + hi - (kernel - 1) * dilation - 1
    if isinstance(length, str):
        return length if stride == 1 and more == -1 else ""
    room = length + more
    count = room // stride + 1
    wide = -(-room // stride) + 1
    if ceils and wide > count:
        count = wide - ((wide - 1) * stride >= length + lo)
    if count < 1:
        raise ValueError(length)
    return count


@DimsRule
def transposed_convolution(node: KnownSources) -> list[Lengths | None]:
    """(N, M, spatial) of x (N, C, spatial) and weights (C, M / group, kernel) (ConvTranspose).

    (length - 1) · stride + output_padding + r - lo - hi; SAME: length · stride; output_shape says
    it.
    """
    batch, _, *spatial = node.dims(0)
    _, per_group, *kernel = node.dims(1)
    told = node.attributes
    channels = _times(per_group, told.get("group", 1))
    number = len(spatial)
    if told.get("output_shape"):
        return [(batch, channels, *told["output_shape"][-number:])]
    kernel = told.get("kernel_shape") or kernel
    strides = told.get("strides") or (1,) * number
    if str(told.get("auto_pad") or "").startswith("SAME"):
        return [(batch, channels, *map(_times, spatial, strides))]
    dilations = told.get("dilations") or (1,) * number
    pads = told.get("pads") or (0,) * 2 * number
    extra = told.get("output_padding") or (0,) * number
    rows = zip(
        spatial, kernel, strides, dilations, extra, pads[:number], pads[number:], strict=True
    )
    lengths: list[Length] = []
    for n, k, step, dilation, more, lo, hi in rows:
        if isinstance(k, str):
            lengths.append("")
            continue
        rest = (k - 1) * dilation + 1 + more - lo - hi - step
        reached = _times(n, step)
        is_open = isinstance(reached, str)
        lengths.append((reached if rest == 0 else "") if is_open else reached + rest)
    return [(batch, channels, *lengths)]


def _times(length: Length, factor: int) -> Length:
    """Return a multiple of a length."""
    return product((length, factor))


@DimsRule
def regions(node: KnownSources) -> list[Lengths | None]:
    """(number of rois, C, output_height, output_width) (RoiAlign)."""
    told = node.attributes
    sides = told.get("output_height", 1), told.get("output_width", 1)
    return [(node.dims(1)[0], node.dims(0)[1], *sides)]


@DimsRule
def sampled(node: KnownSources) -> list[Lengths | None]:
    """(N, C, spatial of the grid) of x (N, C, spatial) and a grid (N, spatial, 2 or 3)."""
    return [(*node.dims(0)[:2], *node.dims(1)[1:-1])]


# Products.


@DimsRule
def matrix_product(node: KnownSources) -> list[Lengths | None]:
    """(..., M, N) of (..., M, K) and (..., K, N), as NumPy's matmul: leading dims are broadcast.

    A vector lacks its own dim in the result.
    """
    a, b = node.dims(0), node.dims(1)
    lead = broadcast_lengths([a[:-2], b[:-2]])
    _wider({a[-1], b[-2] if len(b) > 1 else b[-1]})
    return [(*lead, *a[-2:-1], *(b[-1:] if len(b) > 1 else ()))]


@DimsRule
def matrix(node: KnownSources) -> list[Lengths | None]:
    """(M, N) of A (M, K), or (K, M) with transA, and B (K, N), or (N, K) with transB (Gemm)."""
    (rows, inner), (other, columns) = node.dims(0), node.dims(1)
    if node.attributes.get("transA", 0):
        rows, inner = inner, rows
    if node.attributes.get("transB", 0):
        other, columns = columns, other
    _wider({inner, other})
    return [(rows, columns)]


@DimsRule
def block_product(node: KnownSources) -> list[Lengths | None]:
    """(..., N) of (..., K), where an attribute says N (MatMulNBits)."""
    return [(*node.dims(0)[:-1], node.attributes["N"])]


@DimsRule
def einstein_sum(node: KnownSources) -> list[Lengths | None]:
    """Lengths of the equation's letters after ->; without ->, of the letters that occur once.

    https://onnx.ai/onnx/operators/onnx__Einsum.html; an ellipsis is not looked at.
    """
    equation = str(node.attributes["equation"]).replace(" ", "")
    terms, arrow, result = equation.partition("->")
    names = terms.split(",")
    if "." in equation or len(names) != len(node.tensors):
        raise LookupError(equation)
    lengths: dict[str, set[Length]] = {}
    for at, letters in enumerate(names):
        for letter, length in zip(letters, node.dims(at), strict=True):
            lengths.setdefault(letter, set()).add(length)
    if not arrow:
        result = "".join(sorted(each for each in lengths if terms.count(each) == 1))
    return [tuple(_wider(lengths[letter]) for letter in result)]


# Reductions and norms.


@DimsRule
def reduction(node: KnownSources) -> list[Lengths | None]:
    """1 along axes (none: all of them; noop_with_empty_axes: nothing); left out by keepdims 0."""
    dims, keeps = node.dims(0), node.attributes.get("keepdims", 1)
    try:
        axes = node.told("axes", 1)
    except LookupError:
        if not keeps:
            raise
        return [("",) * len(dims)]
    if not axes:
        if node.attributes.get("noop_with_empty_axes", 0):
            return [dims]
        axes = tuple(range(len(dims)))
    return [_without(dims, axes, keeps=keeps)]


@DimsRule
def place_along_axis(node: KnownSources) -> list[Lengths | None]:
    """1 along an axis, or without it by keepdims 0 (ArgMax, ArgMin)."""
    axis = (node.attributes.get("axis", 0),)
    return [_without(node.dims(0), axis, keeps=node.attributes.get("keepdims", 1))]


def _without(dims: Lengths, axes: Sequence[int], *, keeps: int) -> Lengths:
    reduced = {place(axis, len(dims)) for axis in axes}
    return tuple(
        1 if at in reduced else length
        for at, length in enumerate(dims)
        if keeps or at not in reduced
    )


@DimsRule
def norm_over_batches(node: KnownSources) -> list[Lengths | None]:
    """The dims of x; of running statistics those of mean and variance (BatchNormalization)."""
    dims = node.dims(0)
    statistics = dims[1:2] or (1,)
    return [dims, *[statistics] * (node.outputs - 1)]


@DimsRule
def norm_from_axis(node: KnownSources) -> list[Lengths | None]:
    """The dims of x; of mean and deviation 1 from an axis on (LayerNormalization)."""
    dims = node.dims(0)
    axis = node.axis(len(dims), -1)
    statistics = (*dims[:axis], *(1,) * (len(dims) - axis))
    return [dims, *[statistics] * (node.outputs - 1)]


@DimsRule
def sum_and_norm(node: KnownSources) -> list[Lengths | None]:
    """The dims of x; of mean and deviation 1 last; of the sum those of x.

    (SkipLayerNormalization, SkipSimplifiedLayerNormalization)
    """
    dims = node.dims(0)
    statistics = (*dims[:-1], 1)
    return [dims, statistics, statistics, dims]


@DimsRule
def loss(node: KnownSources) -> list[Lengths | None]:
    """One number, or the labels' dims by reduction none; then the scores' dims.

    (NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss)
    """
    is_whole = node.attributes.get("reduction", "mean") != "none"
    return [() if is_whole else node.dims(1), node.tensors[0].dims if node.tensors[0] else None]


@DimsRule
def recurrence(node: KnownSources) -> list[Lengths | None]:
    """Y (T, D, N, H), then states (D, N, H), of x (T, N, features) (LSTM, GRU, RNN).

    D: 2 of bidirectional, else 1. H: hidden_size. layout 1: N stands in front.
    """
    length, batch, _ = node.dims(0)
    told = node.attributes
    ways = 2 if told.get("direction") == "bidirectional" else 1
    hidden: Length = told.get("hidden_size", "")
    if told.get("layout", 0):
        length, batch = batch, length
        return [(batch, length, ways, hidden), *[(batch, ways, hidden)] * (node.outputs - 1)]
    return [(length, ways, batch, hidden), *[(ways, batch, hidden)] * (node.outputs - 1)]


@DimsRule
def stack_of_determinants(node: KnownSources) -> list[Lengths | None]:
    """(...) of (..., M, M) (Det)."""
    return [node.dims(0)[:-2]]


unchanged = same.counting(kept)
converted = unchanged.making("@to")
told = same.making("bool")
compared = broadcast.making("bool")
added = broadcast.counting(arithmetic(operator.add, 0))
subtracted = broadcast.counting(arithmetic(operator.sub, 0))
multiplied = broadcast.counting(arithmetic(operator.mul, 1))
divided = broadcast.counting(arithmetic(quotient, 1))
