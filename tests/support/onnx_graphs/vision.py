"""Operators of pictures, boxes and attention, and of newer opsets, with all of their attributes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from support.onnx_graphs.draw import Dims, GraphDraw, NotHere
from support.onnx_graphs.kinds import Kind, axis_of


def _some(draw: GraphDraw, *lengths: int) -> tuple[int, ...]:
    """Return dims of so many, each from 1 to what is said."""
    return tuple(draw.whole(1, each) for each in lengths)


def _reals(draw: GraphDraw, lo: float, hi: float, dims: Any) -> str:
    values = draw.rng.uniform(lo, hi, dims).astype(np.float32)
    name = draw.name()
    draw.inputs[name] = values
    return name


def _grid_sample(draw: GraphDraw, operator: str) -> None:
    spatial = 3 if draw.opset >= 20 and draw.maybe(0.3) else 2
    dims = (*_some(draw, 2, 3), *_some(draw, *[7] * spatial))
    modes = (
        ("linear", "nearest", "cubic") if draw.opset >= 20 else ("bilinear", "nearest", "bicubic")
    )
    given: dict[str, Any] = {"align_corners": draw.whole(0, 1)} if draw.maybe(0.7) else {}
    given["mode"] = draw.one(*(modes if spatial == 2 else modes[:2]))
    given["padding_mode"] = draw.one("zeros", "border", "reflection", None)
    grid = _reals(draw, -1.4, 1.4, (dims[0], *_some(draw, *[5] * spatial), spatial))
    draw.add(operator, draw.source(dims), grid, **given)


def _suppression(draw: GraphDraw, operator: str) -> None:
    batch, classes, boxes = _some(draw, 2, 3, 12)
    middle = draw.rng.uniform(0, 1, (batch, boxes, 2))
    size = draw.rng.uniform(0.05, 0.5, (batch, boxes, 2))
    is_centred = draw.maybe()
    ends = (middle, size) if is_centred else (middle - size / 2, middle + size / 2)
    name = draw.name()
    draw.inputs[name] = np.concatenate(ends, axis=2).astype(np.float32)
    more = [draw.constant(np.array([draw.whole(0, 6)], np.int64))]
    if draw.maybe(0.8):
        more.append(draw.constant(np.array([draw.rng.uniform(0, 0.9)], np.float32)))
        if draw.maybe(0.7):
            more.append(draw.constant(np.array([draw.rng.uniform(0, 0.6)], np.float32)))
    scores = _reals(draw, 0, 1, (batch, classes, boxes))
    draw.add(operator, name, scores, *more, center_point_box=int(is_centred))


def _regions(draw: GraphDraw, operator: str) -> None:
    if draw.opset >= 22:
        raise NotHere("onnxruntime has none")
    dims = (*_some(draw, 2, 3), *_some(draw, 9, 9))
    count = draw.whole(1, 4)
    first = draw.rng.uniform(0, 8, (count, 2))
    rois = np.concatenate([first, first + draw.rng.uniform(0.5, 9, (count, 2))], axis=1)
    name = draw.name()
    draw.inputs[name] = rois.astype(np.float32)
    given: dict[str, Any] = {"mode": draw.one("avg", None)}
    given |= {"output_height": draw.whole(1, 4), "output_width": draw.whole(1, 4)}
    given |= {"sampling_ratio": draw.whole(0, 3), "spatial_scale": draw.one(1.0, 0.5, 0.25, None)}
    if draw.opset >= 16:
        given["coordinate_transformation_mode"] = draw.one("half_pixel", "output_half_pixel", None)
    index = draw.constant(draw.rng.integers(0, dims[0], count))
    draw.add(operator, draw.source(dims), name, index, **given)


def _columns(draw: GraphDraw, operator: str) -> None:
    count = draw.one(1, 2, 2, 3)
    block, strides = (_some(draw, *[3] * count) for _ in range(2))
    # Of 1 and 3 dims onnxruntime has no dilations: what it gives is not ONNX's definition.
    dilations = _some(draw, 2, 2) if count == 2 else (1,) * count
    image = tuple(k * d + draw.whole(0, 4) for k, d in zip(block, dilations, strict=True))
    pads = [draw.whole(0, 1) for _ in range(2 * count)] if draw.maybe() else [0] * 2 * count
    number = 1
    for at in range(count):
        room = image[at] + pads[at] + pads[at + count] - (block[at] - 1) * dilations[at] - 1
        number *= room // strides[at] + 1
    batch, channels = _some(draw, 2, 3)
    src = draw.source((batch, channels * int(np.prod(block)), number))
    given: dict[str, Any] = {"strides": strides, "pads": pads, "dilations": dilations}
    given = {name: each for name, each in given.items() if draw.maybe(0.99)}
    draw.add(operator, src, draw.whole_constant(*image), draw.whole_constant(*block), **given)


def _crop_or_pad(draw: GraphDraw, operator: str) -> None:
    name = draw.source(_some(draw, *[7] * draw.whole(1, 4)), draw.one(np.float32, np.int64))
    rank = len(draw.dims_of(name))
    axes = [int(each) for each in draw.rng.permutation(rank)[: draw.whole(1, rank)]]
    axes = [each - rank if draw.maybe(0.3) else each for each in axes]
    if draw.maybe(0.3):
        draw.add(operator, name, draw.whole_constant(*_some(draw, *[9] * rank)))
        return
    lengths = draw.whole_constant(*_some(draw, *[9] * len(axes)))
    draw.add(operator, name, lengths, axes=axes)


def _deformed(draw: GraphDraw, operator: str) -> None:
    if draw.opset < 19:
        raise NotHere("later")
    groups, offsets = draw.one(1, 1, 2), draw.one(1, 1, 2)
    channels = 2 * draw.whole(1, 2)
    batch, outputs = draw.whole(1, 2), groups * draw.whole(1, 2)
    kernel = _some(draw, 3, 3)
    strides, by = _some(draw, 2, 2), _some(draw, 2, 2)
    pads = [draw.whole(0, 1) for _ in range(4)]
    lengths = [k * d + draw.whole(0, 4) for k, d in zip(kernel, by, strict=True)]
    dst = [
        (n + pads[at] + pads[at + 2] - (kernel[at] - 1) * by[at] - 1) // strides[at] + 1
        for at, n in enumerate(lengths)
    ]
    taps = offsets * kernel[0] * kernel[1]
    inputs = [
        draw.source((batch, channels, *lengths)),
        draw.source((outputs, channels // groups, *kernel)),
        _reals(draw, -2, 2, (batch, 2 * taps, *dst)),
    ]
    has_mask = draw.maybe()
    if draw.maybe() or has_mask:
        inputs.append(draw.source((outputs,)) if draw.maybe(0.7) else "")
    if has_mask:
        inputs.append(_reals(draw, 0, 1, (batch, taps, *dst)))
    given: dict[str, Any] = {"strides": strides, "dilations": by, "pads": pads}
    draw.add(operator, *inputs, group=groups, offset_group=offsets, **given)


def _affine_grid(draw: GraphDraw, operator: str) -> None:
    spatial = draw.one(2, 3)
    batch, channels = _some(draw, 2, 3)
    sizes = draw.whole_constant(batch, channels, *(draw.whole(2, 6) for _ in range(spatial)))
    theta = draw.source((batch, spatial, spatial + 1))
    draw.add(operator, theta, sizes, align_corners=draw.one(0, 1, None))


def _determinant(draw: GraphDraw, operator: str) -> None:
    lead, rank = _some(draw, *[3] * draw.whole(0, 2)), draw.whole(1, 4)
    draw.add(operator, draw.source((*lead, rank, rank)))


def _unique(draw: GraphDraw, operator: str) -> None:
    dims = _some(draw, *[5] * draw.whole(1, 3))
    name = draw.name()
    values = draw.rng.integers(0, 3, dims)
    draw.inputs[name] = values.astype(draw.one(np.float32, np.int64))
    axis = axis_of(draw, len(dims)) if draw.maybe() else None
    draw.add(operator, name, outputs=draw.whole(1, 4), axis=axis, sorted=draw.one(0, 1, None))


def _window_of(draw: GraphDraw, operator: str) -> None:
    size = draw.constant(np.array(draw.whole(1, 20), draw.one(np.int64, np.int32)))
    draw.add(operator, size, periodic=draw.one(0, 1, None), output_datatype=draw.one(1, None))


def _rotary(draw: GraphDraw, operator: str) -> None:
    batch, heads, steps = _some(draw, 2, 3, 5)
    half = draw.whole(1, 4)
    part = draw.one(0, 0, draw.whole(1, half))
    dims: Dims = (batch, heads, steps, 2 * half)
    given: dict[str, Any] = {"interleaved": draw.whole(0, 1)}
    if part:
        given["rotary_embedding_dim"] = 2 * part
    if draw.maybe():
        dims = (batch, steps, heads * 2 * half)
        given["num_heads"] = heads
    width = part or half
    if draw.maybe():
        cache: Dims = (draw.whole(steps, 9), width)
        more = [draw.constant(draw.rng.integers(0, cache[0], (batch, steps)))]
    else:
        cache, more = (batch, steps, width), []
    angle = draw.rng.uniform(0, 6, cache)
    names = [draw.name(), draw.name()]
    for name, of in zip(names, (np.cos, np.sin), strict=True):
        draw.inputs[name] = of(angle).astype(np.float32)
    draw.add(operator, draw.source(dims), *names, *more, **given)


def _scatter_tensor(draw: GraphDraw, operator: str) -> None:
    batch, heads, steps, width = _some(draw, 2, 2, 6, 4)
    more = draw.whole(1, steps)
    is_ring = draw.maybe()
    begins = [draw.whole(0, steps - 1 if is_ring else steps - more) for _ in range(batch)]
    cache, update = ((batch, heads, each, width) for each in (steps, more))
    indices = [draw.whole_constant(*begins)] if draw.maybe(0.8) else []
    given = {"mode": "circular"} if is_ring else {"mode": draw.one("linear", None)}
    if draw.maybe():
        given["axis"] = draw.one(2, -2)
    draw.add(operator, draw.source(cache), draw.source(update), *indices, **given)


def _attention(draw: GraphDraw, operator: str) -> None:
    if draw.opset not in {23, 24}:
        raise NotHere("onnxruntime has none")
    batch, kv, width, rows, columns = _some(draw, 2, 2, 4, 4, 5)
    heads, value = kv * draw.whole(1, 2), draw.whole(1, 4)
    given: dict[str, Any] = {}
    dims: list[Dims]
    past = draw.whole(1, 3) if draw.maybe(0.3) else 0
    total = past + columns
    if draw.maybe(0.4) and not past:
        given |= {"q_num_heads": heads, "kv_num_heads": kv}
        dims = [(batch, n, h * w) for n, h, w in
                ((rows, heads, width), (columns, kv, width), (columns, kv, value))]  # fmt: skip
    else:
        dims = [
            (batch, heads, rows, width),
            (batch, kv, columns, width),
            (batch, kv, columns, value),
        ]
    inputs = [draw.source(each) for each in dims]
    if draw.maybe():
        shape = draw.one((rows, total), (1, heads, rows, total), (batch, 1, rows, total))
        mask = draw.array(shape) if draw.maybe() else draw.rng.random(shape) < 0.8
        if mask.dtype == bool:
            mask[..., 0] = True  # a row of nothing has no softmax
        inputs.append(draw.constant(mask))
    elif past:
        inputs.append("")
    if past:
        inputs += [draw.source((batch, kv, past, each)) for each in (width, value)]
    given |= {"is_causal": draw.one(0, 1, None)}
    given |= {"scale": 0.5} if draw.maybe(0.3) else {}
    given |= {"softcap": 2.0} if draw.maybe(0.3) else {}
    draw.add(operator, *inputs, outputs=3 if past else 1, **given)


def _loss(draw: GraphDraw, operator: str) -> None:
    batch, classes = draw.whole(1, 4), draw.whole(2, 5)
    rest = _some(draw, *[3] * draw.whole(0, 2))
    target = draw.rng.integers(0, classes, (batch, *rest))
    weight = [_reals(draw, 0.1, 1, (classes,))] if draw.maybe() else []
    given: dict[str, Any] = {"reduction": draw.one("none", "sum", "mean", None)}
    if draw.maybe(0.3) and classes > 1:
        given["ignore_index"] = int(target.reshape(-1)[0])
        if (target == given["ignore_index"]).all() and given["reduction"] in {"mean", None}:
            raise NotHere("a mean of nothing")
    outputs = 2 if operator.startswith("Softmax") and draw.maybe(0.3) else 1
    src = draw.source((batch, classes, *rest))
    draw.add(operator, src, draw.constant(target), *weight, outputs=outputs, **given)


def _products(draw: GraphDraw, operator: str) -> None:
    name = draw.tensor(1, 2, 3)
    axis = draw.constant(np.array(axis_of(draw, len(draw.dims_of(name))), np.int64))
    draw.add(operator, name, axis, exclusive=draw.whole(0, 1), reverse=draw.whole(0, 1))


def _bits(draw: GraphDraw, operator: str) -> None:
    dtype, to = draw.one((np.float32, 6), (np.int32, 1), (np.int64, 11), (np.uint8, 3))
    draw.add(operator, draw.tensor(dtype=dtype), to=to)


VISION: Mapping[str, Kind] = MappingProxyType(
    {
        "AffineGrid": _affine_grid,
        "Attention": _attention,
        "BitCast": _bits,
        **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow"), _window_of),
        "CenterCropPad": _crop_or_pad,
        "Col2Im": _columns,
        "CumProd": _products,
        "DeformConv": _deformed,
        "Det": _determinant,
        "GridSample": _grid_sample,
        **dict.fromkeys(("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"), _loss),
        "NonMaxSuppression": _suppression,
        "RoiAlign": _regions,
        "RotaryEmbedding": _rotary,
        "TensorScatter": _scatter_tensor,
        "Unique": _unique,
    }
)
