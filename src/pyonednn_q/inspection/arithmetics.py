"""The arithmetics that have a name: each makes codes of the same exact sums.

a dialect       of `requantize`: what another runtime does
its variants    oneDNN's forms with the zero point added behind the rounding, or the bias to the
                sums; two of TFLite's rules, where a kernel leaves channels over
quantized_as_*  the value as a float32, made a code as `requantize.quantizers` says: what a graph
                of float operators between DequantizeLinear and QuantizeLinear gives
rounded_*       the value in float64, rounded once
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.native.passes import requantize
from pyonednn_q.requantize import DIALECTS, requantizer
from pyonednn_q.requantize.method import FRAMEWORKS, VECTOR, which_method
from pyonednn_q.requantize.quantizers import RULES, quantize
from pyonednn_q.requantize.rounding import round_real

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyonednn_q.inspection.outputs import Outputs
    from pyonednn_q.ops.operator import Operator

Array = np.ndarray[Any, Any]

_TAIL = ("tflite_2up", "tflite_2step")
_BEHIND = ("half_to_even", "half_away_from_zero", "half_up", "half_down", "towards_zero", "down")
_BEFORE = ("half_to_even", "half_away_from_zero", "towards_zero")
_I32 = np.iinfo(np.int32)


class NamedArithmetic(NamedTuple):
    """A name, what it does in words, and a function from outputs to codes.

    The function returns None where the arithmetic is not defined for the scales, bias or chain.
    """

    name: str
    words: str
    codes: Callable[[Outputs], Array | None]


@functools.cache
def named_arithmetics() -> tuple[NamedArithmetic, ...]:
    """Return all of them: other runtimes' first."""
    return (*_dialects(), *_variants(), *_quantizers(), *_roundings())


def _dialects() -> Iterator[NamedArithmetic]:
    for name, rule in DIALECTS.items():
        yield NamedArithmetic(name, rule.summary, functools.partial(_as_dialect, name))


def _variants() -> Iterator[NamedArithmetic]:
    first, last = _TAIL
    words = f"{first} in whole vectors of {VECTOR} channels, {last} in those left over"
    yield NamedArithmetic(f"{first}, then {last}", words, _with_tail)
    for name, rule in DIALECTS.items():
        if name.startswith("onednn"):
            behind = f"{name}, zero point behind the rounding"
            yield NamedArithmetic(behind, rule.summary, functools.partial(_point_behind, name))
            inside = f"{name}, bias in the sums"
            yield NamedArithmetic(inside, rule.summary, functools.partial(_bias_inside, name))


def _quantizers() -> Iterator[NamedArithmetic]:
    for rule in RULES:
        words = f"the value as a float32, made a code as {rule} does: a graph of float operators"
        yield NamedArithmetic(f"quantized_as_{rule}", words, functools.partial(_quantized, rule))


def _roundings() -> Iterator[NamedArithmetic]:
    for rounding in _BEHIND:
        how = rounding.replace("_", " ")
        words = f"the value in float64, {how}, then the zero point"
        yield NamedArithmetic(f"rounded_{rounding}", words, functools.partial(_rounded, rounding))
    for rounding in _BEFORE:
        how = rounding.replace("_", " ")
        words = f"the value and the zero point in float64, {how}"
        codes = functools.partial(_rounded_with_point, rounding)
        yield NamedArithmetic(f"rounded_{rounding}, zero point before it", words, codes)


def _as_dialect(name: str, outputs: Outputs) -> Array | None:
    return _requantized(name, outputs, outputs.zero_point, outputs.dtype, outputs.clamps())


def _requantized(
    name: str, outputs: Outputs, zero_point: int, dtype: str, clamps: tuple[int, int] | None
) -> Array | None:
    if clamps is None:
        return None
    bias: Any = outputs.bias
    if bias is not None and not outputs.is_counted and not name.startswith("onednn"):
        counts = outputs.counts
        assert counts is not None
        if (np.abs(counts) > _I32.max).any():
            return None
        bias = counts.astype(np.int32)
    lo, hi = clamps
    try:
        rule = requantizer(
            name,
            src_scale=outputs.src_scale,
            wei_scale=outputs.wei_scale,
            dst_scale=outputs.dst_scale,
            dst_zero_point=zero_point,
            dst_dtype=dtype,
            bias=bias,
            lo=lo,
            hi=None if dtype == "s32" and hi == _I32.max else hi,
            axis=outputs.axis,
        )
        return requantize(outputs.acc.astype(np.int32), rule).astype(np.int64)
    except ShapeError:
        raise
    except ArgumentError:  # scales or sums that the arithmetic is not defined for
        return None


def _with_tail(outputs: Outputs) -> Array | None:
    channels = outputs.acc.shape[outputs.axis]
    if channels % VECTOR == 0 or channels < VECTOR:
        return None
    first, last = (_as_dialect(name, outputs) for name in _TAIL)
    if first is None or last is None:
        return None
    is_left = outputs.along(np.arange(channels) >= channels // VECTOR * VECTOR)
    return np.where(is_left, last, first)


def _point_behind(name: str, outputs: Outputs) -> Array | None:
    clamps = outputs.clamps()
    if clamps is None or not outputs.zero_point or outputs.dtype == "s32":
        return None
    codes = _requantized(name, outputs, 0, "s32", (_I32.min, _I32.max))
    return None if codes is None else np.asarray(np.clip(codes + outputs.zero_point, *clamps))


def _bias_inside(name: str, outputs: Outputs) -> Array | None:
    counts = outputs.counts
    if counts is None:
        return None
    total = outputs.acc + outputs.along(counts)
    if (np.abs(total) > _I32.max).any():
        return None
    inside = outputs.without_bias(total.astype(np.int64))
    return _as_dialect(name, inside)


def _quantized(rule: str, outputs: Outputs) -> Array | None:
    with np.errstate(over="ignore"):
        real = outputs.real().astype(np.float32)
    if np.isnan(real).any() or outputs.dtype == "s32":
        return None
    try:
        codes = quantize(real, outputs.dst_scale, outputs.zero_point, outputs.dtype, rule=rule)
    except ArgumentError:  # a scale that float32 does not hold
        return None
    return np.clip(codes.astype(np.int64), *outputs.ends)


def _rounded(rounding: str, outputs: Outputs) -> Array | None:
    real = outputs.real() / outputs.dst_scale
    if np.isnan(real).any():
        return None
    codes = np.clip(round_real(real, rounding) + outputs.zero_point, *outputs.ends)
    return np.asarray(codes.astype(np.int64))


def _rounded_with_point(rounding: str, outputs: Outputs) -> Array | None:
    values = outputs.values()
    if np.isnan(values).any() or not outputs.zero_point:
        return None
    return np.clip(round_real(values, rounding), *outputs.ends).astype(np.int64)


def frameworks_of(operator: Operator) -> dict[str, tuple[str, ...]]:
    """Return which frameworks' rule for such an operator each arithmetic is.

    Parameters
    ----------
    operator : Operator
        Its kind, groups, kernel, and types decide.

    Returns
    -------
    dict of str to tuple of str
        Frameworks of `requantize.method` by the name of an arithmetic.
    """
    names = {"convolution": "conv", "deconvolution": "deconv"}
    wei, settings = operator.weights.values, operator.settings
    is_window = operator.kind in names
    users: dict[str, tuple[str, ...]] = {}
    if is_window and operator.weights.parts is not None:  # which groups were asked is not kept
        return users
    for framework in FRAMEWORKS:
        try:
            method = which_method(
                framework,
                names.get(operator.kind, "inner_product"),
                "s8" if settings.src_q is None else settings.src_q.dtype,
                "per_tensor" if operator.weights.scale.is_per_tensor else "per_channel",
                depthwise=is_window and operator.groups > 1 and wei.shape[1] == 1,
                pointwise=is_window and max(wei.shape[2:]) == 1,
            )
        except ArgumentError:  # has no such operator
            continue
        if not method.measured:
            continue
        is_split = method.tail is not None and wei.shape[operator.axis] % VECTOR
        name = f"{method.dialect}, then {method.tail}" if is_split else method.dialect
        users[name] = (*users.get(name, ()), framework)
    return users
