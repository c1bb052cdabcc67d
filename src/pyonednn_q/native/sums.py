"""Sums: what an implementation may lose of sums of codes, and how whole numbers are stored.

Weights whose sums are wrong are refused: without VNNI, pairs of products may leave 16 bits; and of
very many products, a sum may leave 32 bits on every CPU. Those stored by way of float32 are told.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.acc.pairs import pair_overflow, safe_by_range
from pyonednn_q.acc.split import CODES, stores_sums
from pyonednn_q.compose.lower import through_float32
from pyonednn_q.errors import SaturationError
from pyonednn_q.expr.interval import Interval
from pyonednn_q.expr.vec import Vec
from pyonednn_q.native import runtime
from pyonednn_q.primitive.dense_facts import DENSE, acc_interval
from pyonednn_q.primitive.isa import classify
from pyonednn_q.requantize.value import I32_HI

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyonednn_q.primitive.attr import Attr
    from pyonednn_q.primitive.problem import Problem

NOT_EXACT = "does not sum exactly"  # so notes say it
_ADVICE = "keep weights in [-64, 64] (even ones for s8 sources), or pass saturation='allow'"
_SMALLER = "take smaller weights, or parts of the input channels, or pass saturation='allow'"
_MANY = I32_HI // (CODES * 128) + 1  # products of codes, whose sum may leave 32 bits


def may_saturate(problem: Problem, impl: str) -> bool:
    """Tell whether there are weights that this implementation does not sum exactly here."""
    if "wei" not in problem.tensors:
        return False
    types = {problem.tensors["src"].dtype, problem.tensors["wei"].dtype}
    if not types <= {"u8", "s8"}:
        return False
    is_exact = classify(impl) == "reference" or runtime.isa().has_vnni(impl)
    # Sums of codes that leave 32 bits wrap everywhere.
    if prod(problem.tensors["wei"].dims) >= _MANY and isinstance(problem, DENSE):
        return not is_exact or problem.terms >= _MANY
    return not is_exact


def _wrapping(
    problem: Problem, attr: Attr, wei: np.ndarray[Any, Any], wei_point: object
) -> tuple[int, ...]:
    """Return the channels whose sums of codes leave 32 bits for some source.

    Kernels sum codes from 0 to 255 and take zero points off afterwards, an s8 source's 128 among
    them. What is left is no larger: pos*(255 - z) + neg*z <= 255*max(pos, neg).
    """
    if not isinstance(problem, DENSE) or problem.terms < _MANY:
        return ()
    points = {0.0}
    if attr.wei_zero_point is not None:
        # One that comes with each call lies between these, and so do its sums.
        known = () if wei_point is None else np.ravel(np.asarray(wei_point, np.float64)).tolist()
        points |= {min(known, default=-128.0), max(known, default=127.0)}
    wraps = np.zeros(problem.oc, bool)
    for point in points:
        acc = acc_interval(problem, wei, wei_zero_point=point, src_range=(0, CODES))
        wraps |= (acc.hi.values() > I32_HI) | (acc.lo.values() < -I32_HI - 1)
    return tuple(np.flatnonzero(wraps).tolist())


def inexact_weights(
    problem: Problem,
    attr: Attr,
    impl: str,
    wei: np.ndarray[Any, Any],
    wei_point: object = None,
) -> SaturationError | None:
    """Return the error to raise for weights that are not exact for every source, if any is.

    Their zero point is known unless it comes with each call.

    Raises
    ------
    DTypeError, ShapeError
        The weights are not the problem's.
    """
    if not may_saturate(problem, impl):
        return None
    isa, advice = runtime.isa(), _SMALLER
    channels = _wrapping(problem, attr, wei, wei_point)
    why = "sums of codes exceed 32 bits, where kernels wrap"
    if not channels:
        is_exact = classify(impl) == "reference" or isa.has_vnni(impl)
        if is_exact or (problem.tensors["src"].dtype == "u8" and safe_by_range(wei)):
            return None
        zero_point = None if attr.src_zero_point else False
        channels = pair_overflow(problem, wei, isa, impl=impl, src_zero_point=zero_point)
        why = "without VNNI, pairs of products exceed 16 bits, or odd weights lose a bit"
        advice = _ADVICE
    if not channels:
        return None
    listed = ", ".join(map(str, channels[:8])) + (", ..." if len(channels) > 8 else "")
    detail = (
        f"{len(channels)} output channel(s) ({listed}) hold weights that {impl} on {isa.text()} "
        f"{NOT_EXACT}: {why}"
    )
    text = f"{problem.text()} {attr.text()}".rstrip()
    return SaturationError(
        "refused", "checking the weights", text, f"{detail}; {advice}", channels=channels
    )


def float32_notes(
    problem: Problem,
    attr: Attr,
    impl: str,
    wei: np.ndarray[Any, Any] | None,
    added: Mapping[str, object],
) -> tuple[str, ...]:
    """Return notes on the error of whole numbers in s32 that pass through float32.

    Not said of real numbers, which scales and post-ops make of them.

    Parameters
    ----------
    problem, attr, impl
        The problem, its attributes, and the implementation's name.
    wei : ndarray or None
        Codes of the weights; ``None`` where they come with each call.
    added : mapping
        Values of the bias and of zero points; ``None`` for those of each call.
    """
    if not isinstance(problem, DENSE) or problem.dst.dtype != "s32" or attr.post_ops:
        return ()
    if any(attr.scale(name) is not None for name in ("src", "wei", "dst")):
        return ()
    types = {problem.src.dtype, problem.wei.dtype}
    if not types <= {"u8", "s8"}:
        return ()
    if problem.bias is None and not attr.names and stores_sums(problem, impl, runtime.version()):
        return ()
    most = float(CODES * _load(problem, attr, wei))
    for name in ("bias", "dst_zero_point"):
        if name in added:
            value = added[name]
            most += np.inf if value is None else float(np.abs(np.asarray(value, "f8")).max())
    return through_float32(Interval(Vec(-most), Vec(most)))


def _load(problem: Problem, attr: Attr, wei: np.ndarray[Any, Any] | None) -> float:
    """Return the largest sum of magnitudes of weights that one output takes, or a bound of it."""
    assert isinstance(problem, DENSE)
    if wei is not None and attr.wei_zero_point is None:
        acc = acc_interval(problem, wei)
        return (acc.hi - acc.lo).greatest / CODES
    return CODES * problem.terms
