"""The hunt beside layers: copies, element by element, windows, other sizes, in any layout.

Axes in any order, gaps between and within rows, operands that are broadcast. What is right comes
from the formulas below alone. All values are small integers and all factors powers of two, so that
float32 holds every number on the way; a mean that has no such value is drawn again. Bytes that
belong to no element must stay as they were.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from hunt_layouts import (
    as_real,
    broadcast,
    dst_type,
    laid,
    random_dims,
    random_spec,
    random_type,
    values_of,
)
from hunt_oracle import (
    RANGES,
    Array,
    InexactError,
    all_of_two,
    amid_other_bytes,
    before_no_memory,
)
from hunt_run import Answer, difference, other, reason
from hunt_sample import Rng, one
from pyonednn_q import native
from pyonednn_q.dtypes import numpy_dtype
from pyonednn_q.errors import Error
from pyonednn_q.faults.guards import Guard
from pyonednn_q.native import runtime
from pyonednn_q.primitive import (
    Attr,
    BinaryPostOp,
    BinaryProblem,
    EltwisePostOp,
    EltwiseProblem,
    PoolingProblem,
    PReluProblem,
    ReorderProblem,
    ResamplingProblem,
    Scale,
    SumPostOp,
    SumProblem,
    TensorSpec,
    ZeroPoint,
)
from pyonednn_q.primitive.problem import Problem

_MOST = 80_000  # elements of a result
_BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "ge": np.greater_equal,
    "gt": np.greater,
    "le": np.less_equal,
    "lt": np.less,
    "eq": np.equal,
    "ne": np.not_equal,
}
_PADDING = 0x55  # of `amid_other_bytes`


@dataclass
class _Asked:
    """A problem while it is drawn: its attributes, arrays, and the exact result so far."""

    rng: Rng
    problem: Problem
    arrays: dict[str, Array]
    x: Array
    attrs: dict[str, Any] = field(default_factory=dict)
    post_ops: list[Any] = field(default_factory=list)

    @property
    def dst(self) -> TensorSpec:
        """What the result is stored as."""
        return self.problem.tensors["dst"]

    def right(self) -> Array:
        """Return the result as stored; raise InexactError where float32 does not hold it."""
        if not np.array_equal(self.x.astype(np.float32), self.x):
            raise InexactError
        if self.dst.dtype in RANGES:
            lo, hi = RANGES[self.dst.dtype]
            return np.clip(np.rint(self.x), lo, hi).astype(numpy_dtype(self.dst.dtype))
        return self.x.astype(np.float32).astype(numpy_dtype(self.dst.dtype))


def hunted_plain(seed: int, index: int, ignored: Guard | None = None) -> Answer:
    """Draw the problem of that place, ask for its result, and compare, as `hunted` does."""
    rng = np.random.default_rng([seed, index, 1])
    kinds = [kind for kind in DRAW if ignored is None or kind in ignored.kinds]
    while True:
        try:
            asked = DRAW[str(one(rng, kinds))](rng)
            right = asked.right()
            break
        except InexactError:
            pass
    problem = asked.problem
    attr = Attr(**asked.attrs, post_ops=tuple(asked.post_ops))
    text = f"{problem.text()} {attr.text()}".rstrip()
    try:
        dst, impl = _run(asked, attr)
        if ignored and not ignored.matches(problem, attr, runtime.facts(), impl):
            return Answer(problem.kind, text, refused="not of that row")
    except Error as error:
        return Answer(problem.kind, text, refused=reason(error))
    except Exception as error:  # a bare one is a finding
        return Answer(problem.kind, text, wrong=f"{type(error).__name__}: {error}"[:300])
    wrong = "bytes beside the result are written" if dst is None else difference(dst, right)
    return Answer(problem.kind, text, impl, wrong=wrong)


def _run(asked: _Asked, attr: Attr) -> tuple[Array | None, str]:
    """Return the result, None if more than that was written; and the implementation."""
    rng, arrays, problem = asked.rng, asked.arrays, asked.problem
    options: dict[str, Any] = {"allow_reference": rng.random() < 0.6, "self_check": False}
    if rng.random() < 0.25:
        options["implementation"] = other(rng, problem, attr)
    values = {name: arrays[name] for name in attr.names}
    call = native.prepare(problem, attr, wei=arrays.get("wei"), values=values, **options)
    out = amid_other_bytes(laid(arrays.get("dst", np.full(asked.dst.dims, 37)), asked.dst))
    call(*(before_no_memory(arrays[name]) for name in call.inputs), out=out)
    result = out.copy()
    out[...] = np.frombuffer(bytes([_PADDING] * out.itemsize), out.dtype)[0]
    everything: Any = out.base
    return (result if (everything == _PADDING).all() else None), call.impl


# --- attributes -----------------------------------------------------------------------------------


def _scale(asked: _Asked, name: str) -> float:
    """Add a scale of one value; return it."""
    scale = 2.0 ** int(asked.rng.integers(-2, 3))
    asked.attrs[f"{name}_scale"] = Scale()
    asked.arrays[f"{name}_scale"] = np.array([scale], np.float32)
    return scale


def _chain(asked: _Asked) -> _Asked:
    """Add post-ops to most problems."""
    rng, dims = asked.rng, asked.dst.dims
    algs: tuple[str, ...] = ("relu", "linear", "clip", "sum", "add", "mul", "max")
    if asked.problem.kind == "eltwise":
        algs = algs[4:]  # the others are not offered
    for _ in range(int(one(rng, (0, 0, 1, 1, 2)))):
        alg, x = str(one(rng, algs)), asked.x
        if alg == "sum":
            if "dst" in asked.arrays:
                continue
            before = values_of(rng, asked.dst, 20)
            asked.arrays["dst"] = before
            alpha = float(one(rng, (1.0, 1.0, 0.5, 2.0)))
            asked.post_ops.append(SumPostOp(alpha))
            asked.x = x + alpha * as_real(before)
        elif alg in _BINARY:
            spec = random_spec(rng, broadcast(rng, dims), str(one(rng, ("f32", "f32", "s8", "u8"))))
            operand = values_of(rng, spec, 4)
            asked.post_ops.append(BinaryPostOp(alg, spec))
            asked.arrays[f"post_op_{len(asked.post_ops) - 1}"] = operand
            asked.x = _BINARY[alg](x, as_real(operand))
        else:
            alpha, beta, asked.x = _eltwise(rng, alg, x)
            asked.post_ops.append(EltwisePostOp(alg, alpha, beta))
    return asked


def _eltwise(rng: Rng, alg: str, x: Array) -> tuple[float, float, Array]:
    if alg == "relu":
        alpha = float(one(rng, (0.0, 0.5, 0.25)))
        return alpha, 0.0, np.where(x > 0, x, alpha * x)
    if alg == "linear":
        alpha, beta = float(one(rng, (0.5, 1, 2, -1))), float(one(rng, (0, 3, -7)))
        return alpha, beta, alpha * x + beta
    if alg == "clip":
        alpha, beta = float(one(rng, (-64, -6, 0))), float(one(rng, (6, 90)))
        return alpha, beta, np.clip(x, alpha, beta)
    return 0.0, 0.0, np.abs(x) if alg == "abs" else x * x


# --- kinds ----------------------------------------------------------------------------------------


def _reorder(rng: Rng) -> _Asked:
    dims = random_dims(rng, 1, 5)
    src = random_spec(rng, dims, random_type(rng))
    dst = random_spec(rng, dims, dst_type(rng, src.dtype), src)
    array = values_of(rng, src)
    asked = _Asked(rng, ReorderProblem(src, dst), {"src": array}, as_real(array))
    if rng.random() < 0.3 and src.dtype in ("u8", "s8"):
        point = int(rng.integers(-5, 90))
        asked.attrs["src_zero_point"] = ZeroPoint()
        asked.arrays["src_zero_point"] = np.array([point], np.int32)
        asked.x = asked.x - point
    if rng.random() < 0.4:
        asked.x = asked.x * _scale(asked, "src")
    if rng.random() < 0.3:
        asked.x = asked.x / _scale(asked, "dst")
    if rng.random() < 0.3 and dst.dtype in ("u8", "s8"):
        point = int(rng.integers(-5, 90))
        asked.attrs["dst_zero_point"] = ZeroPoint()
        asked.arrays["dst_zero_point"] = np.array([point], np.int32)
        asked.x = asked.x + point
    return asked


def _binary(rng: Rng) -> _Asked:
    dims = random_dims(rng, 1, 5)
    src = random_spec(rng, dims, random_type(rng))
    src1 = random_spec(rng, broadcast(rng, dims), dst_type(rng, src.dtype), src)
    dst = random_spec(rng, dims, dst_type(rng, src.dtype), src)
    alg = str(one(rng, tuple(_BINARY)))
    arrays = {"src": values_of(rng, src, 60), "src1": values_of(rng, src1, 20)}
    asked = _Asked(rng, BinaryProblem(src, src1, dst, alg), arrays, np.zeros(()))
    scaled = [
        as_real(arrays[name]) * (_scale(asked, name) if rng.random() < 0.2 else 1.0)
        for name in ("src", "src1")
    ]
    asked.x = _BINARY[alg](*scaled).astype(np.float64)
    return _chain(asked)


def _element_wise(rng: Rng) -> _Asked:
    dims = random_dims(rng, 1, 5)
    src = random_spec(rng, dims, random_type(rng))
    # Hardly anything else is offered than what is stored as it came.
    dst = random_spec(rng, dims, dst_type(rng, src.dtype, 0.1), src)
    array = values_of(rng, src)
    algs = ("relu", "relu", "linear", "clip")
    alg = str(one(rng, algs if src.dtype in RANGES else (*algs, "abs", "square")))
    alpha, beta, x = _eltwise(rng, alg, as_real(array))
    return _chain(_Asked(rng, EltwiseProblem(src, dst, alg, alpha, beta), {"src": array}, x))


def _sum(rng: Rng) -> _Asked:
    dims = random_dims(rng, 1, 5)
    dst = random_spec(rng, dims, random_type(rng))
    count = int(rng.integers(1, 5))
    srcs = tuple(random_spec(rng, dims, dst_type(rng, dst.dtype), dst) for _ in range(count))
    scales = tuple(float(one(rng, (1, 1, 0.5, 2, -1))) for _ in srcs)
    arrays = {f"src_{at}": values_of(rng, src, 30) for at, src in enumerate(srcs)}
    terms = zip(scales, arrays.values(), strict=True)
    x = np.sum([scale * as_real(array) for scale, array in terms], axis=0)
    return _Asked(rng, SumProblem(srcs, scales, dst), arrays, x)


def _prelu(rng: Rng) -> _Asked:
    dims = random_dims(rng, 2, 5)
    src = random_spec(rng, dims, random_type(rng))
    dst = random_spec(rng, dims, dst_type(rng, src.dtype), src)
    wei = random_spec(rng, broadcast(rng, dims), dst_type(rng, src.dtype, 0.2))
    arrays = {"src": values_of(rng, src), "wei": values_of(rng, wei, 4)}
    x, slope = as_real(arrays["src"]), as_real(arrays["wei"])
    return _Asked(rng, PReluProblem(src, wei, dst), arrays, np.where(x > 0, x, slope * x))


def _pooling(rng: Rng) -> _Asked:
    dims = random_dims(rng, 3, 5)
    spatial = len(dims) - 2
    kernel = tuple(int(rng.integers(1, min(length, 4) + 1)) for length in dims[2:])
    stride = tuple(int(one(rng, (1, 1, 2, 3))) for _ in range(spatial))
    gaps = tuple(int(one(rng, (1, 1, 1, 2))) for _ in range(spatial))
    lo, hi = (tuple(int(rng.integers(0, taps)) for taps in kernel) for _ in range(2))
    lengths = []
    for at in range(spatial):
        room = dims[2 + at] + lo[at] + hi[at] - (kernel[at] - 1) * gaps[at] - 1
        if room < 0:
            raise InexactError
        lengths.append(room // stride[at] + 1)
    src = random_spec(rng, dims, random_type(rng))
    dst = random_spec(rng, (*dims[:2], *lengths), dst_type(rng, src.dtype), src)
    alg = str(one(rng, ("max", "avg_include_padding", "avg_exclude_padding")))
    problem = PoolingProblem(src, dst, alg, kernel, stride, gaps, lo, hi)
    array = values_of(rng, src)
    x, count = _pooled(as_real(array), problem)
    if alg != "max":
        is_exact = (count & (count - 1) == 0).all()
        ties = 2 * x % (2 * count) == count
        if dst.dtype in RANGES and not is_exact and not ties.any():
            # Rounded here: however the mean is rounded to float32, it lies on the same side.
            return _Asked(rng, problem, {"src": array}, np.rint(x / count))
        x = x / count
    return _chain(_Asked(rng, problem, {"src": array}, x))


def _pooled(src: Array, problem: PoolingProblem) -> tuple[Array, Any]:
    """Return the largest value, or the sum, of each window; and how many values a mean is of."""
    sides = list(zip(problem.padding_lo, problem.padding_hi, strict=True))
    outside = -np.inf if problem.alg == "max" else 0.0
    padded = np.pad(src, [(0, 0), (0, 0), *sides], constant_values=outside)
    inside = np.pad(np.ones(src.shape, int), [(0, 0), (0, 0), *sides])
    seen, counts = [], []
    for tap in product(*map(range, problem.kernel)):
        window = all_of_two(
            slice(at * gap, at * gap + (length - 1) * step + 1, step)
            for at, gap, length, step in zip(
                tap, problem.dilation, problem.dst.dims[2:], problem.stride, strict=True
            )
        )
        seen.append(padded[window])
        counts.append(inside[window])
    count = np.sum(counts, axis=0)
    if not count.all():
        raise InexactError
    if problem.alg == "max":
        return np.max(seen, axis=0), count
    if problem.alg == "avg_include_padding":
        count = np.full_like(count, len(seen))
    return np.sum(seen, axis=0), count


def _resampling(rng: Rng) -> _Asked:
    dims = random_dims(rng, 3, 5)
    alg = str(one(rng, ("nearest", "linear")))
    src = random_spec(rng, dims, random_type(rng))
    array = values_of(rng, src)
    x, lengths = as_real(array), []
    for axis, length in enumerate(dims[2:], 2):
        others = [length, 2 * length, 4 * length]
        others += [length // by for by in (2, 4) if not length % by]
        if alg == "nearest":
            others += [3 * length, length + 1, length + 2, max(1, length - 1), 7]
        lengths.append(int(one(rng, others)))
        x = _resampled(x, axis, lengths[-1], alg)
    if math.prod(x.shape) > _MOST:
        raise InexactError
    dst = random_spec(rng, (*dims[:2], *lengths), dst_type(rng, src.dtype), src)
    return _chain(_Asked(rng, ResamplingProblem(src, dst, alg), {"src": array}, x))


def _resampled(x: Array, axis: int, length: int, alg: str) -> Array:
    """Read an axis at the centres of other pixels, (o + 1/2) · I / O − 1/2; beyond it, its end."""
    before = x.shape[axis]
    at = (np.arange(length) + 0.5) * before / length - 0.5
    if alg == "nearest":
        if ((2 * np.arange(length) + 1) * before % (2 * length) == 0).any():
            raise InexactError  # amid two pixels: neither is nearer
        nearest: Array = np.take(x, np.clip(np.rint(at).astype(int), 0, before - 1), axis)
        return nearest
    left = np.floor(at).astype(int)
    share = (at - left).reshape([-1 if a == axis else 1 for a in range(x.ndim)])
    ends = (np.take(x, np.clip(left + step, 0, before - 1), axis) for step in (0, 1))
    lower, upper = ends
    between: Array = lower * (1 - share) + upper * share
    return between


# What draws a problem of each kind.
DRAW = {
    "reorder": _reorder,
    "binary": _binary,
    "eltwise": _element_wise,
    "sum": _sum,
    "prelu": _prelu,
    "pooling": _pooling,
    "resampling": _resampling,
}
