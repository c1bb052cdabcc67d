"""Weights that a kernel without VNNI may not sum exactly: found before it runs, and refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyonednn_q.compose.implementation import classify
from pyonednn_q.compose.saturation import pair_overflow, safe_by_range
from pyonednn_q.errors import SaturationError
from pyonednn_q.native import runtime

if TYPE_CHECKING:
    import numpy as np

    from pyonednn_q.compose.attr import Attr
    from pyonednn_q.compose.problem import Problem

_ADVICE = "keep weights in [-64, 64] (even ones for s8 sources), or pass saturation='allow'"


def may_saturate(problem: Problem, impl: str) -> bool:
    """Tell whether there are weights that this implementation does not sum exactly here."""
    if "wei" not in problem.tensors or classify(impl) == "reference":
        return False
    types = {problem.tensors[name].dtype for name in ("src", "wei")}
    return types <= {"u8", "s8"} and not runtime.isa().has_vnni(impl)


def inexact_weights(
    problem: Problem, attr: Attr, impl: str, wei: np.ndarray[Any, Any]
) -> SaturationError | None:
    """Return the error to raise for weights that are not exact for every source, if any is.

    Raises
    ------
    DTypeError, ShapeError
        The weights are not the problem's.
    """
    if not may_saturate(problem, impl):
        return None
    if problem.tensors["src"].dtype == "u8" and safe_by_range(wei):
        return None
    isa, zero_point = runtime.isa(), None if attr.src_zero_point else False
    channels = pair_overflow(wei, problem, isa, impl=impl, src_zero_point=zero_point)
    if not channels:
        return None
    shown = ", ".join(map(str, channels[:8])) + (", ..." if len(channels) > 8 else "")
    detail = (
        f"{len(channels)} output channel(s) ({shown}) hold weights that {impl} on {isa.text()} "
        "does not sum exactly: without VNNI, pairs of products exceed 16 bits, or odd weights lose "
        "a bit"
    )
    text = f"{problem.text()} {attr.text()}".rstrip()
    return SaturationError(
        "refused", "checking the weights", text, f"{detail}; {_ADVICE}", channels=channels
    )
