"""Dims of what moves, picks or repeats elements, and of what makes tensors of dims.

Pages of operators: https://onnx.ai/onnx/operators/onnx__Reshape.html, and so by name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from pyonednn_q.graph.dims_numbers import chosen, joined, kept, lengths_of, part_of
from pyonednn_q.graph.dims_rule import DimsRule, KnownSources, Length, Lengths, place, product
from pyonednn_q.graph.shape_rules import broadcast_lengths

_END = 1 << 31  # that many write where they mean: to the end


@partial(DimsRule, numbers=kept)
def reshape(node: KnownSources) -> list[Lengths | None]:
    """Given dims: 0 keeps the length (not with allowzero), -1 is computed (Reshape)."""
    told = node.lengths(1)
    try:
        src = node.dims(0)
    except LookupError:
        return [tuple("" if each in {0, -1} else each for each in told)]
    copies = not node.attributes.get("allowzero", 0)
    copied = {at for at, each in enumerate(told) if copies and each == 0}
    told = tuple(src[at] if at in copied else each for at, each in enumerate(told))
    if -1 not in told:
        return [told]
    at = told.index(-1)
    return [(*told[:at], _left(src, told, copied), *told[at + 1 :])]


def _left(src: Lengths, told: Sequence[Any], copied: set[int]) -> Length:
    """Return the length for which the elements stay as many."""
    before = [each for at, each in enumerate(src) if at not in copied]
    after = [each for at, each in enumerate(told) if at not in copied and each != -1]
    for symbol in [each for each in after if isinstance(each, str) and each]:
        if symbol in before:
            before.remove(symbol)
            after.remove(symbol)
    whole, part = product(before), product(after)
    if isinstance(part, str):
        return ""
    if isinstance(whole, str):
        return whole if part == 1 else ""
    length, rest = divmod(whole, part)
    if rest:
        raise ValueError(told)
    return length


@DimsRule
def flatten(node: KnownSources) -> list[Lengths | None]:
    """(product of the lengths before an axis, product of those from there on)."""
    dims, axis = node.dims(0), node.attributes.get("axis", 1)
    at = axis if axis == len(dims) else place(axis, len(dims))
    return [(product(dims[:at]), product(dims[at:]))]


@partial(DimsRule, numbers=kept)
def squeeze(node: KnownSources) -> list[Lengths | None]:
    """Dims without the given axes, or without all of length 1 (Squeeze)."""
    dims, axes = node.dims(0), node.told("axes", 1)
    if axes is None:
        if any(isinstance(each, str) for each in dims):
            raise LookupError(dims)
        return [tuple(each for each in dims if each != 1)]
    left_out = {place(axis, len(dims)) for axis in axes}
    if any(dims[at] != 1 and not isinstance(dims[at], str) for at in left_out):
        raise ValueError(axes)
    return [tuple(each for at, each in enumerate(dims) if at not in left_out)]


@partial(DimsRule, numbers=kept)
def unsqueeze(node: KnownSources) -> list[Lengths | None]:
    """Dims with 1 inserted at the given axes of the result (Unsqueeze)."""
    dims, axes = node.dims(0), node.told("axes", 1) or ()
    rank = len(dims) + len(axes)
    new = {place(axis, rank) for axis in axes}
    rest = iter(dims)
    return [tuple(1 if at in new else next(rest) for at in range(rank))]


@DimsRule
def transpose(node: KnownSources) -> list[Lengths | None]:
    """The lengths in the order of perm, or reversed."""
    dims = node.dims(0)
    perm = node.attributes.get("perm") or range(len(dims))[::-1]
    if sorted(perm) != [*range(len(dims))]:
        raise ValueError(perm)
    return [tuple(dims[at] for at in perm)]


@partial(DimsRule, numbers=joined)
def concat(node: KnownSources) -> list[Lengths | None]:
    """The sum of the lengths along an axis, of which the sources may differ."""
    sources = [node.dims(at) for at in range(len(node.tensors))]
    (rank,) = {len(each) for each in sources}
    axis = node.axis(rank)
    dims = [_same(lengths) for lengths in zip(*sources, strict=True)]
    along = [each[axis] for each in sources]
    numbers = [each for each in along if not isinstance(each, str)]
    opened = [each for each in along if isinstance(each, str)]
    total: Length = sum(numbers)
    if opened:
        total = opened[0] if len(opened) == 1 and total == 0 else ""
    dims[axis] = total
    return [tuple(dims)]


def _same(lengths: Sequence[Length]) -> Length:
    """Return the length of which all of some are: a number, a symbol, or not known."""
    numbers = [each for each in lengths if not isinstance(each, str)]
    return next((each for each in (*numbers, *lengths) if each != ""), "")


@DimsRule
def parts(node: KnownSources) -> list[Lengths | None]:
    """Given lengths along an axis, or equal ones; the last may be shorter (Split)."""
    dims = node.dims(0)
    axis = node.axis(len(dims))
    told = node.told("split", 1)
    length, number = dims[axis], node.attributes.get("num_outputs", 0)
    if told is None and isinstance(length, str):
        told = (length if node.outputs == 1 else "",) * node.outputs
    elif told is None and number:
        size = -(-int(length) // number)
        told = (*(size,) * (number - 1), int(length) - size * (number - 1))
    elif told is None:
        told = (int(length) // node.outputs,) * node.outputs
    return [(*dims[:axis], each, *dims[axis + 1 :]) for each in told]


@partial(DimsRule, numbers=part_of)
def part(node: KnownSources) -> list[Lengths | None]:
    """ceil((end - start) / step) along each given axis, with ends clamped to the length (Slice)."""
    dims = [*node.dims(0)]
    starts, ends = (_or_open(node, name, at) for name, at in (("starts", 1), ("ends", 2)))
    if starts is None and ends is None:
        return [("",) * len(dims)]
    count = len(starts or ends or ())
    axes = node.told("axes", 3) or range(count)
    steps = (_or_open(node, "steps", 4) or ("",) * count) if node.has(4) else (1,) * count
    rows = zip(starts or ("",) * count, ends or ("",) * count, axes, steps, strict=True)
    for start, end, axis, step in rows:
        at = place(axis, len(dims))
        dims[at] = _slice_length(dims[at], start, end, step)
    return [tuple(dims)]


def _or_open(node: KnownSources, name: str, at: int) -> Sequence[Any] | None:
    try:
        return node.told(name, at)
    except LookupError:
        return None


def _slice_length(length: Length, start: Any, end: Any, step: Any) -> Length:  # noqa: ANN401
    if any(isinstance(each, str) for each in (start, end, step)):
        return ""
    if not isinstance(length, str):
        if step < 0 and start < -length:  # the text begins at the first element, NumPy before it
            start = 0
        return len(range(length)[start:end:step])
    return length if start == 0 and end >= _END - 1 and step == 1 else ""


@partial(DimsRule, numbers=chosen)
def gather(node: KnownSources) -> list[Lengths | None]:
    """The dims of indices in the place of an axis (Gather)."""
    dims, indices = node.dims(0), node.dims(1)
    axis = node.axis(len(dims))
    return [(*dims[:axis], *indices, *dims[axis + 1 :])]


@DimsRule
def like_indices(node: KnownSources) -> list[Lengths | None]:
    """The dims of indices (GatherElements)."""
    return [node.dims(1)]


@DimsRule
def gather_slices(node: KnownSources) -> list[Lengths | None]:
    """Dims of indices except the last, k, then dims of data after batch_dims + k (GatherND)."""
    dims, (*outer, last) = node.dims(0), node.dims(1)
    behind = node.attributes.get("batch_dims", 0) + last
    if not 0 <= behind <= len(dims):
        raise ValueError(behind)
    return [(*outer, *dims[behind:])]


@DimsRule
def pad(node: KnownSources) -> list[Lengths | None]:
    """Length + lo + hi, for all dims or the given axes; a pad may be negative (Pad)."""
    dims = [*node.dims(0)]
    try:
        pads = node.told("pads", 1) or ()
        axes = node.numbers(3) if node.has(3) else range(len(dims))
    except LookupError:
        return [("",) * len(dims)]
    half = len(pads) // 2
    for axis, lo, hi in zip(axes, pads[:half], pads[half:], strict=True):
        at = place(axis, len(dims))
        length = dims[at]
        if isinstance(lo, str) or isinstance(hi, str):
            dims[at] = ""
        elif isinstance(length, str):
            dims[at] = length if lo + hi == 0 else ""
        else:
            dims[at] = length + lo + hi
    return [tuple(dims)]


@DimsRule
def expand(node: KnownSources) -> list[Lengths | None]:
    """The broadcast of the source's dims and the given dims (Expand)."""
    return [broadcast_lengths([node.dims(0), node.lengths(1)])]


@DimsRule
def repeated(node: KnownSources) -> list[Lengths | None]:
    """Length · repeats (Tile)."""
    pairs = zip(node.dims(0), node.lengths(1), strict=True)
    return [tuple("" if isinstance(by, str) else product((n, by)) for n, by in pairs)]


@DimsRule
def resized(node: KnownSources) -> list[Lengths | None]:
    """floor(length · scale), or the given sizes, for all dims or given axes (Resize).

    Not known: where float32 and real numbers round to other lengths; with a region of interest.
    With keep_aspect_ratio_policy: round(length · s), s the least or greatest size / length.
    """
    told = node.attributes
    dims = [*node.dims(0)]
    axes = [place(axis, len(dims)) for axis in told.get("axes") or range(len(dims))]
    if node.has(3):
        sizes: Sequence[Any] = node.lengths(3)
        policy = told.get("keep_aspect_ratio_policy") or "stretch"
        if policy != "stretch":
            ratios = [size / dims[axis] for size, axis in zip(sizes, axes, strict=True)]
            ratio = min(ratios) if policy == "not_larger" else max(ratios)
            sizes = [math.floor(ratio * dims[axis] + 0.5) for axis in axes]
    else:
        scales = node.numbers(1 if len(node.tensors) == 2 else 2)
        is_cut = told.get("coordinate_transformation_mode") == "tf_crop_and_resize"
        lengths = [dims[axis] for axis in axes]
        sizes = ["" if is_cut else _scaled(*each) for each in zip(lengths, scales, strict=True)]
    for axis, size in zip(axes, sizes, strict=True):
        dims[axis] = size
    return [tuple(dims)]


@DimsRule
def upsampled(node: KnownSources) -> list[Lengths | None]:
    """floor(length · scale) (Upsample)."""
    scales = node.told("scales", 1) or ()
    return [tuple(_scaled(*each) for each in zip(node.dims(0), scales, strict=True))]


def _scaled(length: Length, scale: float) -> Length:
    if isinstance(length, str):
        return length if scale == 1 else ""
    exact = math.floor(length * scale)
    return exact if exact == math.floor(np.float32(length) * np.float32(scale)) else ""


@DimsRule
def depth_to_space(node: KnownSources) -> list[Lengths | None]:
    """(N, C / b², H · b, W · b)."""
    batch, channels, *sides = node.dims(0)
    by = node.attributes["blocksize"]
    depth: Length = "" if isinstance(channels, str) else channels // by**2
    return [(batch, depth, *(product((each, by)) for each in sides))]


@DimsRule
def space_to_depth(node: KnownSources) -> list[Lengths | None]:
    """(N, C · b², H / b, W / b)."""
    batch, channels, *sides = node.dims(0)
    by = node.attributes["blocksize"]
    less = ("" if isinstance(each, str) else each // by for each in sides)
    return [(batch, product((channels, by**2)), *less)]


@partial(DimsRule, dtypes=(("int64",),), numbers=lengths_of)
def shape(node: KnownSources) -> list[Lengths | None]:
    """(number of dims from start to end,) (Shape)."""
    try:
        return [(len(lengths_of(node)),)]
    except LookupError:
        return [("",)]


@DimsRule
def as_told(node: KnownSources) -> list[Lengths | None]:
    """Dims as the source says them (ConstantOfShape, HannWindow)."""
    return [node.lengths(0)]


@DimsRule
def numbers_between(node: KnownSources) -> list[Lengths | None]:
    """(max(ceil((limit - start) / delta), 0),) (Range).

    Not known where float32 and real numbers round to other lengths.
    """
    try:
        start, limit, delta = (node.numbers(at)[0] for at in range(3))
    except LookupError:
        return [("",)]
    if any(isinstance(each, str) for each in (start, limit, delta)):
        return [("",)]
    if isinstance(start, int):
        return [(max(-((start - limit) // delta), 0),)]
    exact = math.ceil((limit - start) / delta)
    rounded = math.ceil(np.float32(np.float32(limit) - np.float32(start)) / np.float32(delta))
    return [(max(exact, 0) if exact == rounded else "",)]


@DimsRule
def one_hot(node: KnownSources) -> list[Lengths | None]:
    """Dims of indices with the depth inserted at an axis, by default the last (OneHot)."""
    dims = node.dims(0)
    axis = node.axis(len(dims) + 1, -1)
    try:
        (depth,) = node.numbers(1)
    except LookupError:
        depth = ""
    return [(*dims[:axis], depth if isinstance(depth, str) else int(depth), *dims[axis:])]


@DimsRule
def largest(node: KnownSources) -> list[Lengths | None]:
    """k along an axis, of values and of their places (TopK)."""
    dims = [*node.dims(0)]
    try:
        (number,) = (node.attributes["k"],) if "k" in node.attributes else node.numbers(1)
    except LookupError:
        number = ""
    dims[node.axis(len(dims), -1)] = number
    return [tuple(dims)] * 2


@DimsRule
def places_of_nonzero(node: KnownSources) -> list[Lengths | None]:
    """(number of dims, as many as there are) (NonZero)."""
    return [(len(node.dims(0)), "")]


@DimsRule
def boxes(_node: KnownSources) -> list[Lengths | None]:
    """(as many as there are, 3) (NonMaxSuppression)."""
    return [("", 3)]


@DimsRule
def some_along_axis(node: KnownSources) -> list[Lengths | None]:
    """Return an unknown number of elements along an axis, or of all in order (Compress, Unique)."""
    if "axis" not in node.attributes:
        return [("",)] * node.outputs
    dims = [*node.dims(0)]
    dims[node.axis(len(dims))] = ""
    return [tuple(dims), *[("",)] * (node.outputs - 1)]


@DimsRule
def folded_blocks(node: KnownSources) -> list[Lengths | None]:
    """(N, C / elements of a block, image) of (N, C, blocks) (Col2Im)."""
    batch, channels, _ = node.dims(0)
    image, elements = node.lengths(1), product(node.numbers(2))
    if isinstance(channels, str) or isinstance(elements, str):
        return [(batch, "", *image)]
    return [(batch, channels // elements, *image)]


@DimsRule
def cropped(node: KnownSources) -> list[Lengths | None]:
    """Given lengths, for all dims or given axes (CenterCropPad)."""
    dims = [*node.dims(0)]
    lengths = node.lengths(1)
    axes = node.attributes.get("axes") or range(len(dims))
    for axis, length in zip(axes, lengths, strict=True):
        dims[place(axis, len(dims))] = length
    return [tuple(dims)]


@DimsRule
def grid(node: KnownSources) -> list[Lengths | None]:
    """(N, spatial, number of spatial dims) of theta and a size (N, C, spatial) (AffineGrid)."""
    batch, _, *spatial = node.lengths(1)
    return [(batch, *spatial, len(spatial))]
