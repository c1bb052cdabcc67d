"""Random calls that make sense: every kind, data type, granularity and layout."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.expr.steps import Binary, Chain, Eltwise, Leaf, Sum
from pyonednn_q.qparams import QParams
from support.calls.call import KINDS, Call
from support.calls.layouts import relaid
from support.oracle_numbers import INTEGER_RANGES, numpy_dtype
from support.plans.random_chains import dirty_chain, random_chain

if TYPE_CHECKING:
    from pyonednn_q.expr.steps import Step

    Rng = np.random.Generator
    Array = np.ndarray[Any, Any]

_LEAF_TYPES = ("f32", "f32", "u8", "s8", "s32")
_LEAF_ALGS = ("add", "sub", "mul", "max", "min", "ge", "lt")
_FLOATS = ("f32", "f32", "bf16", "f16")
_LAYOUTS = ("preserve", "preserve", "channels_last", "dense")


def random_call(rng: Rng, kind: str | None = None) -> Call:
    """Draw a call whose every argument is right; the library may still lack a kernel for it."""
    kind = kind or str(rng.choice(KINDS))
    src_dims, wei_dims, window = _dims(kind, rng)
    drawn = (
        _floats(rng, src_dims, wei_dims)
        if rng.random() < 0.12
        else _codes(rng, src_dims, wei_dims, -1 if kind == "matmul" else 0)
    )
    call = Call(kind, window=window, options={"layout": _one(rng, _LAYOUTS)}, **drawn)
    call = _with_store(rng, _with_chain(rng, call))
    call = call.but(src=relaid(rng, call.src), wei=relaid(rng, call.wei))
    if rng.random() < 0.2:
        call = call.but(options={**call.options, "policy": "bitwise"})
    elif not call.exact_rounding:
        call = call.but(in_parts=True)  # whatever carries the zero point
    return _with_operands(rng, call)


def narrowed(call: Call) -> Call:
    """Return the call with a quarter of each weight, and even: exact on a CPU without VNNI, too."""
    assert call.wei_q is not None
    points = np.asarray(call.wei_q.zero_point)
    aligned = [1] * call.wei.ndim
    aligned[-1 if call.kind == "matmul" else 0] = -1
    points = points.reshape(aligned) if points.ndim else points
    distance = call.wei.astype(np.int64) - points
    return call.but(wei=(points + 2 * np.trunc(distance / 8)).astype(call.wei.dtype))


def channels_of(call: Call) -> int:
    """Return the number of output channels."""
    return int(call.wei.shape[-1 if call.kind == "matmul" else 0])


def dst_dims(call: Call) -> tuple[int, ...]:
    """Return the dims of the result."""
    src, wei = (array.astype(np.float32) for array in (call.src, call.wei))
    dims: tuple[int, ...] = Call(call.kind, src, wei, window=call.window).meaning().dst.shape
    return dims


def random_values(rng: Rng, dims: tuple[int, ...], dtype: str, size: int = 50) -> Array:
    """Draw values of a type, whole numbers around 0 or above it."""
    least, greatest = INTEGER_RANGES.get(dtype, (-size, size))
    values = rng.integers(max(least, -size), min(greatest, size), dims, endpoint=True)
    return np.asarray(values).astype(numpy_dtype(dtype))


def _one(rng: Rng, choices: tuple[Any, ...]) -> Any:
    return choices[int(rng.integers(len(choices)))]


def _dims(kind: str, rng: Rng) -> tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]:
    batch = int(_one(rng, (1, 1, 2, 3)))
    if kind == "matmul":
        m, k, n = (int(rng.integers(1, hi)) for hi in (20, 70, 40))
        lead = tuple(int(b) for b in rng.integers(1, 4, size=int(_one(rng, (0, 0, 1, 2)))))
        shared = rng.random() < 0.5
        return (*lead, m, k), ((k, n) if shared else (*lead, k, n)), {}
    rank = (
        int(_one(rng, (0, 0, 1, 2))) if kind == "inner_product" else int(_one(rng, (1, 2, 2, 2, 3)))
    )
    ic, oc = int(_one(rng, (1, 3, 8, 16, 20))), int(_one(rng, (1, 5, 16, 24, 32)))
    if kind == "inner_product":
        space = tuple(int(n) for n in rng.integers(1, 5, size=rank))
        return (batch, ic, *space), (oc, ic, *space), {}
    groups = int(_one(rng, (1, 1, 1, 1, 2, 8)))
    if groups > 1:
        ic, oc = groups * int(_one(rng, (1, 1, 8))), groups * int(_one(rng, (1, 1, 8)))
    kernel = tuple(int(k) for k in rng.integers(1, 4, size=rank))
    window: dict[str, Any] = {}
    if rng.random() < 0.4:
        window["stride"] = _one(rng, (1, 2, tuple(int(s) for s in rng.integers(1, 4, size=rank))))
    if rng.random() < 0.2:
        window["dilation"] = _one(rng, (1, 2))
    if rng.random() < 0.5:
        lo = tuple(int(rng.integers(0, k)) for k in kernel)
        window["padding"] = tuple(
            (a, int(rng.integers(0, k))) for a, k in zip(lo, kernel, strict=True)
        )
    if groups > 1:
        window["groups"] = groups
    reach = [(k - 1) * int(window.get("dilation", 1)) + 1 for k in kernel]
    space = tuple(r + int(rng.integers(0 if rank < 3 else 1, 7 if rank < 3 else 3)) for r in reach)
    if kind == "deconv":
        window.pop("padding", None)
    return (batch, ic, *space), (oc, ic // groups, *kernel), window


def _codes(
    rng: Rng, src_dims: tuple[int, ...], wei_dims: tuple[int, ...], axis: int
) -> dict[str, Any]:
    src_dtype, wei_dtype = _one(rng, ("u8", "u8", "s8")), _one(rng, ("s8", "s8", "s8", "u8"))
    src = rng.integers(*INTEGER_RANGES[src_dtype], src_dims, endpoint=True)
    width = _one(rng, (3, 64, 127))
    middle = 128 if wei_dtype == "u8" else 0
    wei = middle + rng.integers(-width, width, wei_dims, endpoint=True)
    channels = wei_dims[axis]
    points = _wei_points(rng, middle, width, channels)
    per_channel = points.ndim > 0 or rng.random() < 0.7
    spread = rng.uniform(0.5, 1.5, channels) if per_channel else rng.uniform(0.5, 1.5)
    scale = 30.0 / (70.0 * width * np.sqrt(wei.size / channels))
    axis = (axis % len(wei_dims)) if rng.random() < 0.5 else axis
    src_point = 0 if rng.random() < 0.5 else int(rng.integers(*INTEGER_RANGES[src_dtype]))
    src_scale = float(rng.uniform(0.001, 3.0))
    return {
        "src": src.astype(numpy_dtype(src_dtype)),
        "wei": wei.astype(numpy_dtype(wei_dtype)),
        "src_q": QParams(src_scale, src_point, src_dtype),
        "wei_q": QParams(
            scale / src_scale * spread, points, wei_dtype, axis=axis if per_channel else None
        ),
        "bias": _bias(rng, channels),
    }


def _wei_points(rng: Rng, middle: int, width: int, channels: int) -> Array:
    """Draw zero points: none, for all channels alike, or for each, with room for them or not."""
    room = max(127 - width, 0) if rng.random() < 0.5 else 127
    style = rng.random()
    if style < 0.6:
        return np.asarray(middle)
    if style < 0.8:
        return np.asarray(middle + int(rng.integers(-20, 21)))
    return middle + rng.integers(-room, room, channels, endpoint=True)


def _bias(rng: Rng, channels: int) -> Array | None:
    style = rng.random()
    if style < 0.4:
        return None
    if style < 0.75:
        return rng.normal(0.0, 5.0, channels).astype(np.float32)
    return rng.integers(-5000, 5000, channels).astype(np.int32)


def _floats(rng: Rng, src_dims: tuple[int, ...], wei_dims: tuple[int, ...]) -> dict[str, Any]:
    dtype = numpy_dtype(_one(rng, _FLOATS))
    bias = None
    if rng.random() < 0.5:
        bias = rng.normal(size=wei_dims[0]).astype(np.float32)
    return {
        "src": rng.normal(size=src_dims).astype(dtype),
        "wei": rng.normal(size=wei_dims).astype(dtype),
        "bias": bias,
    }


def _with_chain(rng: Rng, call: Call) -> Call:
    if call.kind == "matmul" and call.src_q is None and call.bias is not None:
        call = call.but(bias=rng.normal(size=call.wei.shape[-1]).astype(np.float32))
    style, channels = rng.random(), channels_of(call)
    if style < 0.35:
        return call
    steps: list[Step | Chain] = [
        random_chain(rng, channels) if style < 0.75 else dirty_chain(rng, channels)
    ]
    if rng.random() < 0.3:
        leaf = Leaf("r", _one(rng, _LEAF_TYPES), _one(rng, ("full", "per_channel", "per_tensor")))
        steps.insert(int(rng.integers(2)), Binary(_one(rng, _LEAF_ALGS), leaf))
    if rng.random() < 0.15:
        steps.append(Eltwise(_one(rng, ("tanh", "logistic", "elu")), 0.0))
    return call.but(post=Chain(*steps))


def _with_store(rng: Rng, call: Call) -> Call:
    if rng.random() < 0.6:
        dtype = _one(rng, ("u8", "u8", "s8"))
        point = 0 if rng.random() < 0.3 else int(rng.integers(*INTEGER_RANGES[dtype]))
        call = call.but(dst_q=QParams(float(rng.uniform(0.2, 2.0)), point, dtype))
        may_round = call.src_q is not None and not len(call.post)
        in_acc = call.bias is None or call.bias.dtype.kind == "i"
        return call.but(exact_rounding=bool(may_round and in_acc and rng.random() < 0.5))
    return call.but(dst=_one(rng, ("f32", "f32", "s32", "u8", "s8", "bf16", "f16")))


def _with_operands(rng: Rng, call: Call) -> Call:
    steps = list(call.post)
    leaves = [s.operand for s in steps if isinstance(s, Binary) and isinstance(s.operand, Leaf)]
    if not leaves and not any(isinstance(step, Sum) for step in steps):
        return call
    dims = dst_dims(call)
    if any(isinstance(step, Sum) for step in steps):
        call = call.but(residual=relaid(rng, random_values(rng, dims, call.dtype)))
    shapes = {"full": dims, "per_channel": (channels_of(call),), "per_tensor": (1,)}
    given = {leaf.name: random_values(rng, shapes[leaf.extent], leaf.dtype, 9) for leaf in leaves}
    return replace(call, operands={name: relaid(rng, array) for name, array in given.items()})
