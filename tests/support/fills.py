"""Two ways to fill a problem with numbers.

Clean: small integers, power-of-two scales, even zero points, so that every float32 step of any
kernel is exact and only one answer is right. Dirty: arbitrary scales and odd zero points,
aimed at the ties of the final rounding; the oracle's error bound says what may differ.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from support import oracle
from support.fill_tensors import (
    DENSE_KINDS,
    SIZES,
    even_integers,
    old_dst,
    operand,
    power_of_two_near,
    powers_of_two,
    tensors,
)
from support.oracle_eltwise import TRANSCENDENTAL
from support.oracle_numbers import INTEGER_RANGES, kept_dims, numpy_dtype

if TYPE_CHECKING:
    from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
    from pyonednn_q.primitive.problem import Problem
    from support.fill_tensors import Array, Arrays, Size
    from support.oracle_tracked import F64

# Where the bulk of the results should land, in dst units, so that both ends get saturated too.
_SPREAD = {"u8": 80.0, "s8": 48.0, "s32": 3000.0, "f32": 16.0, "bf16": 4.0, "f16": 4.0}
_TRANSCENDENTAL_LIMIT = 8.0  # kernels were measured in [-12, 12]; a chain may add to this


class NotCleanError(Exception):
    """No clean fill is known: some float32 step would round."""


def clean(problem: Problem, attr: Attr, rng: np.random.Generator) -> Arrays:
    """Fill so that every float32 step is exact; shrink the integers until it is.

    A chain that ends in a transcendental algorithm is accepted when everything before that step
    is exact: its own measured error is then the whole bound.
    """
    for size in _sizes(problem, attr):
        arrays = _fill(problem, attr, size, rng)
        result = oracle.run(problem, attr, arrays)
        if result.is_exact or _only_kernel_error(problem, attr, arrays, result):
            return arrays
    msg = f"{problem.text()} | {attr.text()}"
    raise NotCleanError(msg)


def _sizes(problem: Problem, attr: Attr) -> tuple[Size, ...]:
    """Widest numbers first; narrowest only where no scale brings the sum into the dst range."""
    unscaled = not _has_input_scale(attr) and attr.dst_scale is None
    narrow = unscaled and problem.tensors["dst"].dtype in {"u8", "s8"}
    return SIZES[-1:] if narrow and problem.kind in DENSE_KINDS else SIZES


def _only_kernel_error(problem: Problem, attr: Attr, arrays: Arrays, result: oracle.Result) -> bool:
    if not ends_transcendental(problem, attr) or not np.all(np.isfinite(result.error)):
        return False
    if not attr.post_ops:
        return True
    before = replace(attr, post_ops=attr.post_ops[:-1], dst_scale=None, dst_zero_point=None)
    return oracle.run(problem, before, arrays).is_exact


def ends_transcendental(problem: Problem, attr: Attr) -> bool:
    """Tell whether the last float32 step is one that kernels approximate."""
    inexact = TRANSCENDENTAL | {"sqrt", "pow"}
    if attr.post_ops:
        last: Any = attr.post_ops[-1]
        return last.boundary()[0] == "eltwise" and last.alg in inexact
    return problem.kind == "softmax" or getattr(problem, "alg", "") in inexact


def _fill(problem: Problem, attr: Attr, size: Size, rng: np.random.Generator) -> Arrays:
    arrays = tensors(problem, size, rng)
    arrays.update(_input_zero_points(problem, attr, size, rng))
    target = _target(problem, attr)
    width = _width(problem, attr, arrays)
    arrays.update(_scales(problem, attr, arrays, target / width if width else 1.0, rng))
    typical = target if _has_input_scale(attr) else width
    step = power_of_two_near(typical / 16) if typical else 1.0
    arrays.update(_bias(problem, step, size, rng))
    arrays.update(_post_op_values(problem, attr, size, step, rng))
    arrays.update(_dst_values(problem, attr, arrays, rng))
    return arrays


def _has_input_scale(attr: Attr) -> bool:
    return attr.src_scale is not None or attr.wei_scale is not None


def _is_transcendental(attr: Attr) -> bool:
    boundaries = [op.boundary() for op in attr.post_ops]
    return any(kind == "eltwise" and rest[0] in TRANSCENDENTAL for kind, *rest in boundaries)


def _target(problem: Problem, attr: Attr) -> float:
    """Return the typical size of the value that enters the post-op chain."""
    if _is_transcendental(attr):
        return _TRANSCENDENTAL_LIMIT / 4
    return 8.0 if attr.dst_scale is not None else _SPREAD[problem.tensors["dst"].dtype]


def _width(problem: Problem, attr: Attr, arrays: Arrays) -> float:
    """Return the size of the unscaled accumulator; its largest value before a bounded domain."""
    if problem.kind not in DENSE_KINDS:
        return float(np.std(arrays["src"].astype(np.float64))) if "src" in arrays else 1.0
    bare = replace(
        attr, src_scale=None, wei_scale=None, dst_scale=None, dst_zero_point=None, post_ops=()
    )
    acc = oracle.run(_without_bias(problem), bare, arrays).real
    if not acc.size:
        return 1.0
    if _is_transcendental(attr):
        return float(np.abs(acc).max()) / 2
    return float(np.sqrt(np.mean(acc * acc)))


def _without_bias(problem: Any) -> Any:
    return replace(problem, bias=None) if problem.bias is not None else problem


def _input_zero_points(
    problem: Problem, attr: Attr, size: Size, rng: np.random.Generator
) -> Arrays:
    """Even zero points inside the range of the data that they shift."""
    arrays: Arrays = {}
    for name, limit in (("src", size.src), ("wei", size.wei)):
        zero_point: ZeroPoint | None = getattr(attr, f"{name}_zero_point")
        if zero_point is None:
            continue
        spec = problem.tensors[name]
        dims = _count(zero_point.mask, zero_point.groups, spec.dims)
        values = even_integers(rng, dims, spec.dtype, max(limit, 4))
        values = values.astype(numpy_dtype(zero_point.dtype))
        arrays[f"{name}_zero_point"] = np.where(values == 0, 2, values).astype(values.dtype)
    return arrays


def _count(mask: int, groups: tuple[int, ...], dims: tuple[int, ...]) -> tuple[int, ...]:
    """Run-time values are passed flat when they run along one axis (or two channel axes)."""
    kept = kept_dims(mask, groups, dims)
    return kept if groups else (int(np.prod(kept)),)


def _scales(
    problem: Problem, attr: Attr, arrays: Arrays, total: float, rng: np.random.Generator
) -> Arrays:
    """Power-of-two input scales whose product is near ``total``, with jitter per channel."""
    del arrays
    filled: Arrays = {}
    left = power_of_two_near(total)
    for name in ("wei", "src1", "src"):
        scale: Scale | None = getattr(attr, f"{name}_scale")
        if scale is None:
            continue
        dims = _count(scale.mask, scale.groups, problem.tensors[name].dims)
        last = name == "src" or attr.src_scale is None
        share = left if last else left * 2.0 ** int(rng.integers(-1, 2))
        jitter = (
            powers_of_two(rng, dims, -1, 1) if int(np.prod(dims)) > 1 else np.ones(dims, np.float32)
        )
        filled[f"{name}_scale"] = (jitter * share).astype(numpy_dtype(scale.dtype))
        left /= share
    return filled


def _bias(problem: Problem, step: float, size: Size, rng: np.random.Generator) -> Arrays:
    spec = problem.tensors.get("bias")
    if spec is None:
        return {}
    whole = rng.integers(-size.operand, size.operand + 1, size=spec.dims)
    if spec.dtype not in INTEGER_RANGES:
        return {"bias": (whole * step).astype(numpy_dtype(spec.dtype))}
    lo, hi = INTEGER_RANGES[spec.dtype]
    return {"bias": np.clip(whole, lo, hi).astype(numpy_dtype(spec.dtype))}


def _post_op_values(
    problem: Problem, attr: Attr, size: Size, step: float, rng: np.random.Generator
) -> Arrays:
    arrays: Arrays = {}
    for index, post_op in enumerate(attr.post_ops):
        values = operand(post_op, problem.tensors["dst"], size, step, rng)
        if values is not None:
            arrays[f"post_op_{index}"] = values
    if any(op.boundary()[0] == "sum" for op in attr.post_ops):
        arrays["dst"] = old_dst(problem, attr.post_ops, rng)
    return arrays


def _chain_end(problem: Problem, attr: Attr, arrays: Arrays) -> F64:
    """Return the value after the last post-op, before dst scale and zero point."""
    before = replace(attr, dst_scale=None, dst_zero_point=None)
    return oracle.run(problem, before, arrays).real


def _dst_values(problem: Problem, attr: Attr, arrays: Arrays, rng: np.random.Generator) -> Arrays:
    """Power-of-two scale and even zero point that lay the results over the dst range."""
    filled: Arrays = {}
    spec = problem.tensors["dst"]
    if attr.dst_scale is None and attr.dst_zero_point is None:
        return filled
    end = _chain_end(problem, attr, arrays)
    end = end[np.isfinite(end)]
    mean = float(np.mean(end)) if end.size else 0.0
    size = float(np.sqrt(np.mean((end - mean) ** 2))) if end.size else 1.0
    if attr.dst_zero_point is None or abs(mean) > 2 * size:
        size = float(np.hypot(size, mean))  # no zero point can centre these results
    scale = 1.0
    if attr.dst_scale is not None:
        dims = _count(attr.dst_scale.mask, attr.dst_scale.groups, spec.dims)
        scale = power_of_two_near(size / _SPREAD[spec.dtype])
        jitter = powers_of_two(rng, dims, -1, 0 if int(np.prod(dims)) == 1 else 1)
        filled["dst_scale"] = (jitter * scale).astype(numpy_dtype(attr.dst_scale.dtype))
    if attr.dst_zero_point is not None:
        dims = _count(attr.dst_zero_point.mask, attr.dst_zero_point.groups, spec.dims)
        lo, hi = INTEGER_RANGES.get(spec.dtype, (-128, 127))
        lo, hi = max(lo, -1000), min(hi, 1000)
        middle = (lo + hi) / 2 - mean / scale + rng.uniform(-30, 30, size=dims)
        even = 2 * np.rint(np.clip(middle, lo + 2, hi - 2) / 2)
        values = np.where(even == 0, 2, even)
        filled["dst_zero_point"] = values.astype(numpy_dtype(attr.dst_zero_point.dtype))
    return filled


def dirty(problem: Problem, attr: Attr, rng: np.random.Generator) -> Arrays:
    """Fill with arbitrary scales and odd zero points, with results on or next to ties."""
    for size in SIZES:
        arrays = _roughen(problem, attr, _fill(problem, attr, size, rng), rng)
        if np.all(np.isfinite(oracle.run(problem, attr, arrays).error)):
            return arrays
    msg = f"no error bound is known: {problem.text()} | {attr.text()}"
    raise NotCleanError(msg)


def _roughen(problem: Problem, attr: Attr, arrays: Arrays, rng: np.random.Generator) -> Arrays:
    for name in ("src_zero_point", "dst_zero_point"):
        if name in arrays:
            arrays[name] = arrays[name] | np.asarray(1, dtype=arrays[name].dtype)
    for name in ("src_scale", "wei_scale", "src1_scale"):
        if name in arrays:
            values = arrays[name].astype(np.float64)
            noise = rng.uniform(0.6, 1.2, size=values.shape)
            arrays[name] = (values * noise).astype(arrays[name].dtype)
    if "bias" in arrays and arrays["bias"].dtype.kind == "f":
        shift = rng.uniform(-0.5, 0.5, size=arrays["bias"].shape) * np.abs(arrays["bias"]).max()
        arrays["bias"] = (arrays["bias"] + shift).astype(arrays["bias"].dtype)
    if attr.dst_scale is not None:
        arrays["dst_scale"] = _tie_scale(problem, attr, arrays, rng)
    return arrays


def _tie_scale(problem: Problem, attr: Attr, arrays: Arrays, rng: np.random.Generator) -> Array:
    """Dst scale that puts one randomly chosen result (per value of the scale) onto a tie."""
    end = _chain_end(problem, attr, arrays).ravel()
    start = arrays["dst_scale"].astype(np.float64)
    scales = np.array(start)
    for index in np.ndindex(start.shape):
        x = abs(float(rng.choice(end))) if end.size else 0.0
        if not np.isfinite(x) or x == 0.0:
            continue
        level = np.floor(x / start[index]) + 0.5
        scales[index] = x / level
    return scales.astype(arrays["dst_scale"].dtype)
