"""The arithmetics that have a name, and what somebody else may have computed otherwise before.

a dialect       of `requantize`: what another runtime does
its variants    oneDNN's forms with the zero point added behind the rounding, or the bias to the
                sums; two of TFLite's rules, where a kernel leaves channels over
quantized_as_*  the value as a float32, made a code as `requantize.quantize_rules` says: what
                a graph of float operators between DequantizeLinear and QuantizeLinear gives
rounded_*       the value in float64, rounded once

A supposition is the same outputs with one thing changed: how sums are made, what padding holds, the
bias, the zero points, a clamp.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.acc.emulation import checked, sums
from pyonednn_q.acc.pairing import EXACT, Pairing, Summation, summations
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.expr.steps import Chain, Eltwise
from pyonednn_q.inspection.outputs import sums_of
from pyonednn_q.native.passes import requantize
from pyonednn_q.primitive.isa import InstructionSet
from pyonednn_q.primitive.problem import ConvProblem
from pyonednn_q.requantize import DIALECTS, requantizer
from pyonednn_q.requantize.method import FRAMEWORKS, VECTOR, which_method
from pyonednn_q.requantize.quantize_rules import RULES, quantize
from pyonednn_q.requantize.rounding import round_real

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyonednn_q.inspection.outputs import Outputs
    from pyonednn_q.ops.operator import Operator

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
        Operator, whose kind, groups, kernel and types decide.

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


_LEVELS = ("AVX2", "AVX512_CORE")  # CPUs without VNNI


class Supposition(NamedTuple):
    """A supposition, in words, and the outputs that follow from it."""

    text: str
    outputs: Outputs


def suppositions(
    operator: Operator, codes: Array, src_point: int, outputs: Outputs, theirs: Array
) -> Iterator[Supposition]:
    """Give what may be otherwise, as far as it would change a sum or a code.

    Parameters
    ----------
    operator : Operator
        The operator whose weights and window are used.
    codes : ndarray
        Codes of the source, u8 or s8.
    src_point : int
        Zero point of the source.
    outputs : Outputs
        Sums and parameters of the operator, as it is.
    theirs : ndarray
        Somebody else's codes: they tell which other zero point of dst to try.
    """
    yield from _other_dst(outputs, theirs)
    for text, acc in (
        *without_vnni(operator, codes, src_point, outputs.acc.shape),
        *_other_sums(operator, codes, src_point),
    ):
        if (acc != outputs.acc).any():
            yield Supposition(text, replace(outputs, acc=acc))
    yield from _other_bias(outputs)
    if len(outputs.chain):
        yield Supposition("nothing follows the sums", replace(outputs, chain=Chain()))
    elif theirs.size and theirs.min() == outputs.zero_point:
        relu = Chain(Eltwise("relu"))
        yield Supposition("a ReLU follows the sums", replace(outputs, chain=relu))
    if theirs.size and outputs.dtype == "s8" and theirs.min() == -127:
        yield Supposition("codes end at -127", replace(outputs, least=-127))


def without_vnni(
    operator: Operator, codes: Array, src_point: int, dims: tuple[int, ...]
) -> Iterator[tuple[str, Array]]:
    """Give the sums of kernels that add pairs of products in 16 bits, each with its name.

    Parameters
    ----------
    operator, codes, src_point
        Arguments of `suppositions`.
    dims : tuple of int
        Dims of dst.
    """
    if operator.weights.parts is not None or not operator.weights.zero_point.is_all(0.0):
        return
    problem = operator._problem(codes.shape, "s8" if codes.dtype == np.int8 else "u8")  # noqa: SLF001
    src = np.ascontiguousarray(codes).reshape(problem.src.dims)
    wei = operator._wei_of(problem)  # noqa: SLF001 - an operator's weights in the problem's dims
    dense, wei = checked(problem, wei, src)
    ways: dict[Summation, None] = {}
    for level in _LEVELS:
        isa = InstructionSet.of(level)
        ways |= dict.fromkeys(summations(dense, isa, None, src_zero_point=src_point != 0))
    if isinstance(dense, ConvProblem):
        shifted = "src" if codes.dtype == np.int8 else None
        ways[Summation(Pairing.TAPS, shifted=shifted)] = None  # products of patches, elsewhere, too
    for way in ways:
        if way != EXACT:
            text = f"pairs of products saturate in 16 bits, without VNNI ({way.text()})"
            yield text, sums(dense, src, wei, way, src_point).reshape(dims)


def _other_sums(operator: Operator, codes: Array, src_point: int) -> Iterator[tuple[str, Array]]:
    if not src_point:
        return
    if operator.kind == "convolution":
        text = f"padding holds code 0, not the zero point {src_point}"
        yield text, sums_of(operator, codes, src_point, padded=-src_point)
    text = f"the source's zero point is 0, not {src_point}"
    yield text, sums_of(operator, codes, 0)


def _other_bias(outputs: Outputs) -> Iterator[Supposition]:
    if outputs.bias is None or not outputs.bias.any():
        return
    yield Supposition("no bias", outputs.without_bias(outputs.acc))
    counts = outputs.counts
    if outputs.is_counted or counts is None:
        return
    yield Supposition("the bias is rounded to units of the sums", outputs.with_counts(counts))
    scale = outputs.src_scale * outputs.wei_scale
    down = np.trunc(outputs.bias.astype(np.float64) / scale)
    if (down != counts).any():
        text = "the bias is cut off, not rounded, to units of the sums"
        yield Supposition(text, outputs.with_counts(down))


def _other_dst(outputs: Outputs, theirs: Array) -> Iterator[Supposition]:
    """Suppose another zero point of dst: what most of theirs are away from the real value."""
    values = outputs.values()
    inside = ~outputs.saturated(np.clip(np.rint(values), *outputs.ends)) & np.isfinite(values)
    if not inside.any():
        return
    offsets, counts = np.unique(np.rint(theirs - values)[inside], return_counts=True)
    offset = int(offsets[int(counts.argmax())])
    if not offset:
        return
    point = outputs.zero_point + offset
    other_dtype = {"u8": "s8", "s8": "u8"}.get(outputs.dtype)
    # Of the other 8-bit type only where they say so.
    fits = dtypes.qmin(outputs.dtype) <= theirs.min() and theirs.max() <= dtypes.qmax(outputs.dtype)
    may_be_other = other_dtype is not None and (not fits or abs(offset) == 128)
    for dtype in filter(None, (other_dtype if may_be_other else None, outputs.dtype)):
        lo, hi = dtypes.qmin(dtype), dtypes.qmax(dtype)
        if lo <= point <= hi and theirs.min() >= lo and theirs.max() <= hi:
            text = f"dst has zero point {point}, not {outputs.zero_point}"
            if dtype == other_dtype and abs(offset) == 128:
                text = f"codes are {dtype}, not {outputs.dtype}: shifted by {offset}, {text}"
            elif dtype == other_dtype:
                text = f"codes are {dtype}, not {outputs.dtype}; {text}"
            yield Supposition(text, replace(outputs, zero_point=point, dtype=dtype))
