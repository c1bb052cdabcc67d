"""Suppositions: what somebody else may have computed otherwise, before any rounding.

Each is the same outputs with one thing changed: how sums are made, what padding holds, the bias,
the zero points, a clamp.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.expr.chain import Chain
from pyonednn_q.expr.steps import Eltwise
from pyonednn_q.inspection.outputs import sums_of
from pyonednn_q.primitive.isa import InstructionSet
from pyonednn_q.primitive.problem import ConvProblem
from pyonednn_q.saturation.emulation import checked, sums
from pyonednn_q.saturation.pairing import EXACT, Pairing, Summation, summations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyonednn_q.inspection.outputs import Outputs
    from pyonednn_q.ops.operator import Operator

Array = np.ndarray[Any, Any]

_LEVELS = ("AVX2", "AVX512_CORE")  # CPUs without VNNI


class Supposition(NamedTuple):
    """What is supposed, in words, and the outputs that follow from it."""

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
        As of `suppositions`.
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
