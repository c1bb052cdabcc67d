"""Operators that move or pick elements, with all of their attributes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from support.onnx_graphs.draw import GraphDraw, NotHere
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
    }
)
