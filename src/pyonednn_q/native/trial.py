"""Trial: a new primitive run on seeded data, and compared with what was asked of it.

All places of dst are compared where that takes no more than `MOST_MACS` multiplications in float64;
of larger problems the corners, and places drawn evenly. The primitive itself always runs at full
size: a smaller problem could take another kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.acc.pairs import pair_overflow
from pyonednn_q.check.draw import Draw
from pyonednn_q.check.meaning import Meaning
from pyonednn_q.check.places import Geometry, Places
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, SelfCheckError
from pyonednn_q.expr.algs import ALGS
from pyonednn_q.expr.steps import Binary, BinaryAlg, Chain, Eltwise, Leaf, PRelu, Round, Step, Sum
from pyonednn_q.expr.vec import Vec
from pyonednn_q.native import runtime
from pyonednn_q.primitive.dense_facts import DENSE
from pyonednn_q.primitive.post_ops import (
    BinaryPostOp,
    EltwisePostOp,
    PostOp,
    PReluPostOp,
    SumPostOp,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyonednn_q.check.meaning import Band
    from pyonednn_q.native.prepared import Prepared
    from pyonednn_q.primitive.attr import Attr, Scale
    from pyonednn_q.primitive.dense_facts import DenseProblem
    from pyonednn_q.primitive.window import Window

_WANTED = "False: this has no model beside the kernels"


def compare(
    places: Places, band: Band, dst: Array, judged: Prepared, lost: Collection[int] = ()
) -> None:
    """Refuse a result that is not what was asked.

    Parameters
    ----------
    places, band
        Places, and the band of right values there.
    dst : ndarray
        The result that the primitive gave, in dst's dims.
    judged : Prepared
        The primitive that runs, for the text of the error.
    lost : collection of int
        Output channels that are not compared.

    Raises
    ------
    SelfCheckError
        Some place differs; the error names the first.
    """
    text = f"{judged.problem.text()} {judged.attr.text()}".rstrip()
    dims = places.geometry.dst
    if dst.shape != dims:
        text = f"dims {dst.shape} and not {dims}; {text}"
        values = np.full(band.low.shape, np.nan)
        wrong = np.ones(values.shape, bool)
    else:
        values = places.take(dst)
        wrong = band.wrong(values)
        wrong[:, list(lost)] = False
    if not wrong.any():
        return
    place, channel = (int(i) for i in np.argwhere(wrong)[0])
    raise SelfCheckError(
        text,
        judged.impl,
        places.at(place, channel),
        float(values[place, channel]),
        (float(band.low[place, channel]), float(band.high[place, channel])),
        int(wrong.sum()),
        wrong.size,
    )


def try_out(
    prepared: Prepared,
    wei: Any,  # noqa: ANN401 - an array of any type, if at all
    bias: Any,  # noqa: ANN401
    values: Mapping[str, object],
) -> None:
    """Run a new primitive once, and compare it with what was asked.

    Parameters
    ----------
    prepared : Prepared
        A convolution, deconvolution, inner product or matmul.
    wei, bias, values
        Arguments of `prepare`.

    Raises
    ------
    SelfCheckError
        The primitive computes something else.
    ArgumentError
        Something that has no model beside the kernels.
    """
    problem = prepared.problem
    if not isinstance(problem, DENSE):
        raise ArgumentError("self_check", f"True for a {problem.kind}", _WANTED)
    if prepared.kind == "none":
        return
    draw = Draw()
    inputs = _of_each_call(prepared)
    values = {**values, **inputs}
    operands = _operands(prepared, values, draw)
    inputs |= operands
    if wei is None:
        wei = inputs["wei"] = draw.operand(problem.wei.dims, problem.wei.dtype)
    meaning = _meaning(problem, prepared.attr, bias, values)
    geometry = geometry_of(problem)
    turns = Draw.turns(geometry.blocks[1])
    places, codes = Places.of(geometry, turns), wei.reshape(geometry.wei)
    if dtypes.is_integer(problem.wei.dtype):
        codes = codes.astype(np.int32)  # of four bits, too
    lost = lost_channels(prepared, wei)
    full = {name: np.broadcast_to(array, geometry.dst) for name, array in operands.items()}
    sums = [op for op in prepared.attr.post_ops if isinstance(op, SumPostOp)]
    dims, dtype, point = geometry.src, problem.src.dtype, int(meaning.src_zero_point.flat[0])
    for turn in range(turns):
        inputs["src"] = draw.source(dims, dtype, point, blocks=geometry.blocks, turn=turn)
        out, before = prepared.empty(), None
        if sums:
            out[...] = draw.source(geometry.dst, problem.dst.dtype, sums[0].zero_point, turn=turn)
            before = out.copy().view(dtypes.numpy_dtype(sums[0].dtype or problem.dst.dtype))
        band = meaning.band(places, inputs["src"], codes, before=before, operands=full)
        dst = prepared(*(inputs[name] for name in prepared.inputs), out=out)
        compare(places, band, dst, prepared, lost)


def lost_channels(prepared: Prepared, wei: Array) -> tuple[int, ...]:
    """Return the channels that a primitive was allowed to saturate in 16 bits.

    Parameters
    ----------
    prepared : Prepared
        The primitive, as `prepare` returned it.
    wei : ndarray
        Codes of the weights in the problem's dims.
    """
    if prepared.kind == "reference":
        return ()
    problem = prepared.problem
    codes = wei.reshape(problem.tensors["wei"].dims)
    return pair_overflow(problem, codes, runtime.isa(), impl=prepared.impl)


def geometry_of(problem: DenseProblem) -> Geometry:
    """Return dims and window of a problem, groups of weights behind each other."""
    src, wei, window = problem.src.dims, problem.wei.dims, problem.window
    if window is None:
        return Geometry(problem.kind, src, wei)
    return Geometry(
        problem.kind,
        src,
        (problem.oc, *wei[2 if problem.has_groups else 1 :]),
        window.stride,
        _cut_off(problem, window),
        window.dilation,
        problem.groups,
    )


def _cut_off(problem: DenseProblem, window: Window) -> tuple[tuple[int, int], ...]:
    """Return the padding by which src and dst are as long as they are.

    dst of a deconvolution may be longer than its padding says: then less is cut off, or none.
    """
    sides = zip(window.padding_lo, window.padding_hi, strict=True)
    if problem.kind != "deconvolution":
        return tuple(sides)
    lengths = window.spread(problem.src.dims[2:])
    longer = zip(sides, problem.dst.dims[2:], lengths, strict=True)
    return tuple((lo, hi - (length - least)) for (lo, hi), length, least in longer)


def _of_each_call(prepared: Prepared) -> dict[str, Any]:
    """Return scales and zero points that come with each call."""
    values: dict[str, Any] = {}
    for name in prepared.inputs:
        kind = name.rpartition("_")[2]
        if name.startswith("post_op") or kind not in {"scale", "point"}:
            continue
        if getattr(prepared.attr, name).mask:
            raise ArgumentError("self_check", f"True with {name}s of each call", _WANTED)
        values[name] = np.array([0.5], np.float32) if kind == "scale" else np.array([3], np.int32)
    return values


def _operands(prepared: Prepared, values: Mapping[str, object], draw: Draw) -> dict[str, Array]:
    """Return the operands of binary post-ops, in dims that broadcast to dst's."""
    operands = {}
    for index, op in enumerate(prepared.attr.post_ops):
        if isinstance(op, BinaryPostOp):
            name = f"post_op_{index}"
            value = values.get(name)
            array = draw.operand(op.src1.dims, op.src1.dtype) if value is None else value
            operands[name] = np.asarray(array).reshape(op.src1.dims)
    return operands


def _meaning(
    problem: DenseProblem,
    attr: Attr,
    bias: Any,  # noqa: ANN401
    values: Mapping[str, Any],
) -> Meaning:
    axis = problem.channel_axis
    for name in POINTS:
        point = getattr(attr, name)
        if point is not None and point.mask:
            raise ArgumentError("self_check", f"True with {name} of mask {point.mask}", _WANTED)
    if attr.fpmath != "strict":
        raise ArgumentError("self_check", f"True with fpmath {attr.fpmath}", _WANTED)
    dst_scale = attr.dst_scale
    if dst_scale is not None and dst_scale.mask not in {0, 1 << axis}:
        raise ArgumentError("self_check", f"True with dst_scale of mask {dst_scale.mask}", _WANTED)
    steps = [
        step_of(op, f"post_op_{index}", values, axis) for index, op in enumerate(attr.post_ops)
    ]
    points = {name: np.asarray(values.get(name, 0)).reshape(-1)[:1] for name in POINTS}
    wei_scale = _spread(attr.wei_scale, values.get("wei_scale"), problem.wei.dims)
    if wei_scale.size > 1:
        wei_scale = np.broadcast_to(wei_scale, problem.wei.dims).reshape(geometry_of(problem).wei)
    return Meaning(
        Chain(*steps),
        problem.dst.dtype,
        src_scale=_spread(attr.src_scale, values.get("src_scale"), problem.src.dims),
        wei_scale=wei_scale,
        dst_scale=np.ones(1) if dst_scale is None else rounded(dst_scale, values["dst_scale"]),
        src_zero_point=points["src_zero_point"],
        wei_zero_point=points["wei_zero_point"],
        dst_zero_point=int(points["dst_zero_point"][0]),
        bias=None if bias is None else np.asarray(bias).reshape(-1).astype(np.float64),
        in_float32=True,
    )


POINTS = ("src_zero_point", "wei_zero_point", "dst_zero_point")


def rounded(scale: Scale, values: object) -> Array:
    """Return scales as their type holds them."""
    return np.asarray(values).reshape(-1).astype(dtypes.numpy_dtype(scale.dtype)).astype(np.float64)


def _spread(scale: Scale | None, values: object, dims: tuple[int, ...]) -> Array:
    """Return scales so that they broadcast to a tensor, those of groups repeated."""
    if scale is None:
        return np.ones(1)
    groups = (1,) * (len(dims) - len(scale.groups)) + scale.groups
    chosen = [bool(scale.mask >> axis & 1) for axis in range(len(dims))]
    shape = [d // g if on else 1 for d, g, on in zip(dims, groups, chosen, strict=True)]
    spread: Array = rounded(scale, values).reshape(shape)
    for axis, group in enumerate(groups):
        spread = np.repeat(spread, group if chosen[axis] else 1, axis=axis)
    return spread


def step_of(op: PostOp, name: str, values: Mapping[str, object], axis: int) -> Step:
    """Return the step that a post-op computes."""
    if isinstance(op, SumPostOp):
        return Sum(op.scale, op.zero_point, op.dtype)
    if isinstance(op, BinaryPostOp):
        return Binary(cast("BinaryAlg", op.alg), Leaf(name, op.src1.dtype))
    if isinstance(op, EltwisePostOp):
        parameters = (op.alpha, op.beta)[: ALGS[op.alg].parameters]
        return Round() if op.alg == "round" else Eltwise(op.alg, *parameters)
    if isinstance(op, PReluPostOp) and op.mask in {0, 1 << axis} and name in values:
        slopes = np.asarray(values[name], np.float64).reshape(-1)
        return PRelu(Vec(slopes) if op.mask else Vec(float(slopes[0])))
    raise ArgumentError("self_check", f"True with {op.text()}", _WANTED)
