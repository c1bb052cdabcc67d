"""Operators that move or pick elements, and windows over images, with all of their attributes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from support.onnx_graphs.draw import Dims, GraphDraw, NotHere
from support.onnx_graphs.kinds import Kind, axes_of, axis_of

FORMS = (np.float32, np.float32, np.float32, np.int64, np.int32, np.uint8)


def _reshape(draw: GraphDraw, operator: str) -> None:
    name = draw.tensor(dtype=draw.one(*FORMS))
    dims = draw.dims_of(name)
    left, lengths = int(np.prod(dims)), []
    for each in (2, 3, 4, 5, 7):
        if left and left % each == 0 and draw.maybe():
            lengths.append(each)
            left //= each
    lengths.insert(draw.whole(0, len(lengths)), left)
    if draw.maybe(0.4) and left:
        lengths[lengths.index(left)] = -1
    if draw.maybe(0.3) and dims and lengths[0] == dims[0] and dims[0]:
        lengths[0] = 0
    given = {"allowzero": 1} if draw.opset >= 14 and 0 in dims else {}
    draw.add(operator, name, draw.whole_constant(*lengths), **given)


def _flatten(draw: GraphDraw, operator: str) -> None:
    name = draw.tensor(1, 2, 3, 4)
    rank = len(draw.dims_of(name))
    axis = draw.whole(-rank if draw.opset >= 11 else 0, rank)
    draw.add(operator, name, **({"axis": axis} if draw.maybe(0.8) else {}))


def _squeeze(draw: GraphDraw, operator: str) -> None:
    name = draw.tensor(dtype=draw.one(*FORMS))
    dims = draw.dims_of(name)
    ones = [axis for axis, each in enumerate(dims) if each == 1]
    axes = [axis for axis in ones if draw.maybe(0.6)]
    axes = [a - len(dims) if draw.opset >= 11 and draw.maybe(0.3) else a for a in axes]
    if not axes:
        draw.add(operator, name)
    elif draw.opset < 13:
        draw.add(operator, name, axes=axes)
    else:
        draw.add(operator, name, draw.whole_constant(*axes))


def _unsqueeze(draw: GraphDraw, operator: str) -> None:
    name = draw.tensor(0, 1, 2, 3, dtype=draw.one(*FORMS))
    more = draw.whole(1, 2)
    axes = axes_of(draw, len(draw.dims_of(name)) + more)[:more]
    if not axes:
        raise NotHere("no axes")
    axes = [axis + 0 for axis in axes]
    rank = len(draw.dims_of(name)) + len(axes)
    axes = sorted({axis % rank for axis in axes})
    rank = len(draw.dims_of(name)) + len(axes)
    axes = [a - rank if draw.opset >= 11 and draw.maybe(0.4) else a for a in axes]
    if draw.opset < 13:
        draw.add(operator, name, axes=axes)
    else:
        draw.add(operator, name, draw.whole_constant(*axes))


def _transpose(draw: GraphDraw, operator: str) -> None:
    name = draw.tensor(dtype=draw.one(*FORMS))
    perm = [int(each) for each in draw.rng.permutation(len(draw.dims_of(name)))]
    draw.add(operator, name, **({"perm": perm} if draw.maybe(0.8) else {}))


def _concat(draw: GraphDraw, operator: str) -> None:
    name = draw.tensor(1, 2, 3, 4, dtype=draw.one(*FORMS))
    kind, dims = draw.type(name)
    axis = axis_of(draw, len(dims))
    more = []
    for _ in range(draw.whole(0, 2)):
        other = list(dims)
        other[axis] = draw.length()
        more.append(name if draw.maybe(0.2) else draw.source(tuple(other), kind))
    draw.add(operator, name, *more, axis=axis)


def _split(draw: GraphDraw, operator: str) -> None:
    name = draw.tensor(1, 2, 3, 4, dtype=draw.one(*FORMS))
    dims = draw.dims_of(name)
    axis = axis_of(draw, len(dims))
    length = dims[axis]
    if length < 2:
        raise NotHere("too short")
    at = draw.whole(1, length - 1)
    if draw.maybe(0.7):
        parts = [at, length - at]
        if draw.opset < 13:
            draw.add(operator, name, outputs=2, axis=axis, split=parts)
        else:
            draw.add(operator, name, draw.whole_constant(*parts), outputs=2, axis=axis)
        return
    count = draw.whole(2, min(length, 3))
    if draw.opset < 18 and length % count:
        raise NotHere("parts of one length")
    given = {} if draw.opset < 18 else {"num_outputs": count}
    draw.add(operator, name, outputs=count, axis=axis, **given)


def _slice(draw: GraphDraw, operator: str) -> None:
    name = draw.tensor(1, 2, 3, 4, dtype=draw.one(*FORMS))
    dims = draw.dims_of(name)
    axes = axes_of(draw, len(dims), 1)
    starts, ends, steps = [], [], []
    for axis in axes:
        length = dims[axis]
        step = draw.one(1, 1, 2, 3, -1, -2)
        both = sorted(draw.whole(-length - 1, length + 1) for _ in range(2))
        both = both if step > 0 else both[::-1]
        starts.append(both[0])
        ends.append(draw.one(both[1], both[1], 2**31 - 1 if step > 0 else -(2**31)))
        steps.append(step)
    given = [starts, ends]
    if draw.maybe(0.8) or [axis % len(dims) for axis in axes] != [*range(len(axes))]:
        given.append(axes)
        if draw.maybe(0.7):
            given.append(steps)
    if len(given) < 4 and any(step < 0 for step in steps):
        raise NotHere("steps are needed")
    draw.add(operator, name, *(draw.whole_constant(*each) for each in given))


def _gather(draw: GraphDraw, operator: str) -> None:
    name = draw.tensor(1, 2, 3, 4, dtype=draw.one(*FORMS))
    dims = draw.dims_of(name)
    axis = axis_of(draw, len(dims))
    length = dims[axis]
    lo = -length if draw.opset >= 11 else 0
    shape = draw.one((), (1,), (3,), (2, 2))
    if not length:
        raise NotHere("nothing to gather")
    index = draw.rng.integers(lo, length, shape).astype(draw.one(np.int64, np.int32))
    draw.add(operator, name, draw.constant(index), axis=axis)


def _gather_elements(draw: GraphDraw, operator: str) -> None:
    name = draw.tensor(1, 2, 3, dtype=draw.one(*FORMS))
    dims = draw.dims_of(name)
    axis = axis_of(draw, len(dims))
    if not dims[axis]:
        raise NotHere("nothing to gather")
    shape = list(dims)
    shape[axis] = draw.whole(1, 4)
    index = draw.rng.integers(-dims[axis], dims[axis], shape)
    draw.add(operator, name, draw.constant(index), axis=axis)


def _scatter_elements(draw: GraphDraw, operator: str) -> None:
    name = draw.tensor(1, 2, 3)
    dims = draw.dims_of(name)
    axis = axis_of(draw, len(dims))
    if not dims[axis]:
        raise NotHere("nowhere to scatter")
    shape = list(dims)
    shape[axis] = draw.whole(1, dims[axis])
    places = np.argsort(draw.rng.random(dims), axis=axis)
    index = np.take(places, range(shape[axis]), axis=axis)
    draw.add(operator, name, draw.constant(index), draw.source(tuple(shape)), axis=axis)


def _gather_nd(draw: GraphDraw, operator: str) -> None:
    name = draw.tensor(1, 2, 3)
    dims = draw.dims_of(name)
    depth = draw.whole(1, len(dims))
    if 0 in dims[:depth]:
        raise NotHere("nothing to gather")
    index = np.stack([draw.rng.integers(-n, n, (2, 3)) for n in dims[:depth]], -1)
    draw.add(operator, name, draw.constant(index.astype(np.int64)))


def _scatter_nd(draw: GraphDraw, operator: str) -> None:
    name = draw.tensor(1, 2, 3)
    dims = draw.dims_of(name)
    depth = draw.whole(1, len(dims))
    places = int(np.prod(dims[:depth]))
    if not places:
        raise NotHere("nowhere to scatter")
    flat = draw.rng.permutation(places)[: draw.whole(1, min(places, 4))]
    index = np.stack(np.unravel_index(flat, dims[:depth]), -1).astype(np.int64)
    draw.add(operator, name, draw.constant(index), draw.source((len(flat), *dims[depth:])))


def _compress(draw: GraphDraw, operator: str) -> None:
    name = draw.tensor(1, 2, 3)
    axis = axis_of(draw, len(draw.dims_of(name)))
    condition = draw.constant(draw.rng.random(draw.dims_of(name)[axis]) < 0.5)
    draw.add(operator, name, condition, axis=axis)


def _eye(draw: GraphDraw, operator: str) -> None:
    draw.add(operator, draw.tensor(2), k=draw.whole(-2, 2))


def _expand(draw: GraphDraw, operator: str) -> None:
    name = draw.tensor(dtype=draw.one(*FORMS))
    dims = draw.dims_of(name)
    wanted = [draw.one(each, 1) if each != 1 else draw.one(1, 2, 3) for each in dims]
    wanted = [draw.whole(1, 2)] * draw.whole(0, 1) + wanted
    draw.add(operator, name, draw.whole_constant(*wanted))


def _tile(draw: GraphDraw, operator: str) -> None:
    name = draw.tensor(0, 1, 2, 3, dtype=draw.one(np.float32, np.int64))
    repeats = [draw.whole(1, 3) for _ in draw.dims_of(name)]
    draw.add(operator, name, draw.whole_constant(*repeats))


def _pad(draw: GraphDraw, operator: str) -> None:
    name = draw.tensor(1, 2, 3, 4)
    dims = draw.dims_of(name)
    mode = draw.one("constant", "constant", "edge", "reflect")
    most = [2 if mode != "reflect" else max(0, min(2, each - 1)) for each in dims]
    pads = [draw.whole(0, m) if draw.maybe(0.6) else 0 for m in (*most, *most)]
    if mode == "constant" and draw.maybe(0.3):
        pads = [-1 if draw.maybe(0.3) and n > 2 else p for p, n in zip(pads, dims * 2, strict=True)]
    if mode == "edge" and 0 in dims:
        raise NotHere("no edge")
    if draw.opset < 11:
        value = {"value": 0.5} if draw.maybe() else {}
        draw.add(operator, name, mode=mode, pads=pads, **value)
        return
    more = [draw.constant(np.float32(draw.one(0, 0.5)))] if draw.maybe() else []
    if draw.opset >= 18 and draw.maybe(0.3):
        rank, axes = len(dims), axes_of(draw, len(dims), 1)
        pads = [pads[axis % rank + end] for end in (0, rank) for axis in axes]
        more = [*(more or [""]), draw.whole_constant(*axes)]
    draw.add(operator, name, draw.whole_constant(*pads), *more, mode=mode)


def _depth(draw: GraphDraw, operator: str) -> None:
    size = draw.whole(1, 3)
    n, c, h, w = draw.whole(1, 2), draw.whole(1, 3), draw.whole(1, 3), draw.whole(1, 3)
    if operator == "DepthToSpace":
        mode = {"mode": draw.one("DCR", "CRD")} if draw.opset >= 11 else {}
        draw.add(operator, draw.source((n, c * size**2, h, w)), blocksize=size, **mode)
    else:
        draw.add(operator, draw.source((n, c, h * size, w * size)), blocksize=size)


def _trilu(draw: GraphDraw, operator: str) -> None:
    more = [draw.constant(np.array(draw.whole(-3, 3), np.int64))] if draw.maybe() else []
    draw.add(operator, draw.tensor(2, 3), *more, upper=draw.whole(0, 1))


def _one_hot(draw: GraphDraw, operator: str) -> None:
    index = draw.constant(draw.rng.integers(-4, 4, draw.dims(0, 1, 2)).astype(np.int64))
    axis = {"axis": draw.one(-1, 0)} if draw.maybe() else {}
    values = draw.constant(np.array([0.5, 2], np.float32))
    draw.add(operator, index, draw.constant(np.array([4], np.int64)), values, **axis)


def _shape(draw: GraphDraw, operator: str) -> None:
    given: dict[str, int] = {}
    if operator == "Shape" and draw.opset >= 15:
        given = {"start": draw.whole(-3, 2)} if draw.maybe() else {}
        given |= {"end": draw.whole(-2, 4)} if draw.maybe() else {}
    draw.add(operator, draw.tensor(), **given)


def _filled(draw: GraphDraw, operator: str) -> None:
    lengths = draw.whole_constant(*draw.dims(0, 1, 2))
    draw.add(operator, lengths)


def _range(draw: GraphDraw, operator: str) -> None:
    ends = [draw.constant(np.int64(each)) for each in (draw.whole(-2, 2), draw.whole(3, 9))]
    draw.add(operator, *ends, draw.constant(np.int64(draw.whole(1, 3))))


def _reverse(draw: GraphDraw, operator: str) -> None:
    name = draw.tensor(2, 3)
    dims = draw.dims_of(name)
    time = draw.whole(0, 1)
    if 0 in dims:
        raise NotHere("nothing to reverse")
    lengths = draw.rng.integers(1, dims[time] + 1, dims[1 - time])
    draw.add(operator, name, draw.constant(lengths), time_axis=time, batch_axis=1 - time)


def _resize(draw: GraphDraw, operator: str) -> None:
    name = draw.tensor(3, 4)
    dims = draw.dims_of(name)
    if 0 in dims:
        raise NotHere("nothing to resize")
    mode = draw.one("nearest", "nearest", "linear", "cubic" if len(dims) == 4 else "linear")
    factors = (1, 2, 2, 3, 0.5) if draw.maybe() else (0.6, 1.3, 1.75, 2.5)
    by = [1.0, 1.0, *(float(draw.one(*factors)) for _ in dims[2:])]
    if any(int(n * s) < 1 for n, s in zip(dims, by, strict=True)):
        raise NotHere("nothing left")
    given: dict[str, Any] = {"mode": mode}
    if operator == "Upsample" or draw.opset < 11:
        if mode == "cubic" or (operator == "Upsample") != (draw.opset < 10):
            raise NotHere("no such mode")
        if draw.opset < 9:
            draw.add(operator, name, scales=by, **given)
            return
        draw.add(operator, name, draw.constant(np.array(by, np.float32)), **given)
        return
    where = draw.one(
        "half_pixel",
        "asymmetric",
        "align_corners",
        "pytorch_half_pixel",
        "half_pixel_symmetric" if draw.opset >= 19 else None,
        None,
    )
    given["coordinate_transformation_mode"] = where
    if mode == "nearest":
        how = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", None)
        given["nearest_mode"] = draw.one(*how)
    if mode == "cubic" and draw.maybe():
        given |= {"cubic_coeff_a": -0.5, "exclude_outside": draw.whole(0, 1)}
    if mode != "nearest" and draw.opset >= 18 and draw.maybe(0.2):
        given["antialias"] = 1
    if draw.maybe(0.7):
        draw.add(operator, name, "", draw.constant(np.array(by, np.float32)), **given)
    else:
        sizes = [int(n * s) for n, s in zip(dims, by, strict=True)]
        draw.add(operator, name, "", "", draw.whole_constant(*sizes), **given)


def window(draw: GraphDraw, spatial: int) -> dict[str, Any]:
    """Return attributes of windows that slide over so many dims."""
    kernel = [draw.whole(1, 4) for _ in range(spatial)]
    given: dict[str, Any] = {"kernel_shape": kernel}
    if draw.maybe(0.6):
        given["strides"] = [draw.whole(1, 3) for _ in range(spatial)]
    share = draw.rng.random()
    if share < 0.5:
        given["pads"] = [draw.whole(0, each - 1) if draw.maybe(0.7) else 0 for each in kernel * 2]
    elif share < 0.75:
        given["auto_pad"] = draw.one("SAME_UPPER", "SAME_LOWER", "VALID")
    return given


def image(draw: GraphDraw, given: Mapping[str, Any], dtype: Any = np.float32) -> str:
    """Return a tensor that windows fit into."""
    spatial = len(given["kernel_shape"])
    name = draw.tensor(spatial + 2, dtype=dtype)
    by = given.get("dilations", [1] * spatial)
    reach = [(k - 1) * d + 1 for k, d in zip(given["kernel_shape"], by, strict=True)]
    if any(n < k for n, k in zip(draw.dims_of(name)[2:], reach, strict=True)):
        lead = (draw.whole(1, 2), draw.one(1, 2, 3, 4, 8, 16))
        lengths = (k + draw.whole(0, 6) for k in reach)
        return draw.source((*lead, *lengths), dtype)
    return name


def _pool(draw: GraphDraw, operator: str) -> None:
    given = window(draw, draw.one(1, 2, 2, 3))
    spatial = len(given["kernel_shape"])
    if draw.opset >= 10 and draw.maybe(0.3) and "auto_pad" not in given:
        given["ceil_mode"] = 1
    outputs = 1
    dtype: Any = np.float32
    if operator == "MaxPool":
        if draw.opset >= 10 and draw.maybe(0.3) and given.get("auto_pad", "VALID") == "VALID":
            given["dilations"] = [draw.whole(1, 2) for _ in range(spatial)]
        outputs = 2 if draw.maybe(0.2) else 1
        given |= {"storage_order": 1} if outputs == 2 and draw.maybe() else {}
        dtype = np.uint8 if draw.opset >= 12 and draw.maybe(0.2) else np.float32
    elif operator == "AveragePool":
        given |= {"count_include_pad": draw.whole(0, 1)} if draw.maybe() else {}
        if draw.opset >= 19 and draw.maybe(0.3) and given.get("auto_pad", "VALID") == "VALID":
            given["dilations"] = [draw.whole(1, 2) for _ in range(spatial)]
    else:
        given |= {"p": draw.whole(1, 3)}
        given.pop("ceil_mode", None)
    src = image(draw, given, dtype)
    if given.get("ceil_mode") and draw.opset < 22 and _begins_outside(draw.dims_of(src)[2:], given):
        raise NotHere("opsets disagree")
    draw.add(operator, src, outputs=outputs, **given)


def _begins_outside(lengths: Dims, given: Mapping[str, Any]) -> bool:
    """Tell whether the last window of a dim begins behind the source."""
    count = len(lengths)
    pads = given.get("pads", [0] * 2 * count)
    by, steps = (given.get(name, [1] * count) for name in ("dilations", "strides"))
    rows = zip(lengths, given["kernel_shape"], pads, pads[count:], by, steps, strict=False)
    return any(
        -(-(n + lo + hi - (k - 1) * d - 1) // s) * s >= n + lo for n, k, lo, hi, d, s in rows
    )


def _global_pool(draw: GraphDraw, operator: str) -> None:
    given = {"p": draw.whole(1, 3)} if operator == "GlobalLpPool" else {}
    draw.add(operator, draw.tensor(3, 4, 4, 5), **given)


MOVES: Mapping[str, Kind] = MappingProxyType(
    {
        "Reshape": _reshape,
        "Flatten": _flatten,
        "Squeeze": _squeeze,
        "Unsqueeze": _unsqueeze,
        "Transpose": _transpose,
        "Concat": _concat,
        "Split": _split,
        "Slice": _slice,
        "Gather": _gather,
        "GatherElements": _gather_elements,
        "GatherND": _gather_nd,
        "ScatterElements": _scatter_elements,
        "ScatterND": _scatter_nd,
        "Compress": _compress,
        "EyeLike": _eye,
        "NonZero": lambda draw, operator: draw.add(operator, draw.tensor(1, 2, 3)),
        "Expand": _expand,
        "Tile": _tile,
        "Pad": _pad,
        **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), _depth),
        "Trilu": _trilu,
        "OneHot": _one_hot,
        **dict.fromkeys(("Shape", "Size"), _shape),
        "ConstantOfShape": _filled,
        "Range": _range,
        "ReverseSequence": _reverse,
        **dict.fromkeys(("Resize", "Upsample"), _resize),
        **dict.fromkeys(("AveragePool", "LpPool", "MaxPool"), _pool),
        **dict.fromkeys(("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"), _global_pool),
    }
)
