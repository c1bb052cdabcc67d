"""SrcZeroPoint: how a layer's source gets its zero point, which need not be a whole number.

    Σ (src_q − z) · wei_q = Σ src_q · wei_q − z · Σ wei_q        over the taps that meet the source

Where every tap meets it everywhere (no padding; a matrix product), the last sum is one number per
output channel. Elsewhere (padded places hold real 0; a deconvolution reaches some places with some
taps) it is a map.

=========  ======================================================================================
attribute  oneDNN subtracts it from the source, exactly; padded places count as real 0. Whole only.
bias       −z · Σ wei joins the bias, where every tap meets the source everywhere.
map        −z · Σ wei is added at every place, as a tensor of dst's size: right everywhere.
=========  ======================================================================================

All are the same in real arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import one_of
from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.fq_qparams import WHOLE_WITHIN
from pyonednn_q.expr.vec import Vec, number
from pyonednn_q.faults import guards
from pyonednn_q.qparams import along
from pyonednn_q.quantize.weight_rows import NOISE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyonednn_q.compose.plan import Plan
    from pyonednn_q.primitive.dense_facts import DenseProblem
    from pyonednn_q.primitive.isa import Facts

    Array = NDArray[Any]


Carrier: TypeAlias = Literal["nothing", "attribute", "bias", "map"]

CARRIERS = ("attribute", "bias", "map")

_ZERO = Vec(0.0)


@dataclass(frozen=True, slots=True)
class SrcZeroPoint:
    """A zero point, and what carries it.

    Attributes
    ----------
    value : float
        The code of real 0.
    by : {"nothing", "attribute", "bias", "map"}
        Carrier of the zero point.
    shift : Vec
        Part that the bias carries, in units of the accumulator.
    lost : float
        Part of the value that nothing carries: less than the tolerance, and 0 where the bias can
        take it.
    """

    value: float
    by: Carrier
    shift: Vec = _ZERO
    lost: float = 0.0

    @property
    def attribute(self) -> int | None:
        """The zero point of the primitive; ``None`` where it has none."""
        return round(self.value) if self.by == "attribute" else None

    @property
    def in_map(self) -> float:
        """Part of the zero point that the map carries."""
        return self.value if self.by == "map" else 0.0


def carry_zero_point(
    problem: DenseProblem,
    wei: NDArray[Any],
    value: float,
    *,
    by: Carrier | Literal["auto"] = "auto",
    tolerance: float = WHOLE_WITHIN,
) -> SrcZeroPoint:
    """Choose what carries a zero point.

    Parameters
    ----------
    problem : ConvProblem, DeconvProblem, InnerProductProblem or MatMulProblem
        Problem, with the integer type of the source.
    wei : ndarray
        Factors of the source: codes of weights, less their own zero point.
    value : float
        The code of real 0.
    by : {"auto", "attribute", "bias", "map"}
        Auto: the attribute for whole numbers, the bias where that is enough, else the map.
    tolerance : float
        Largest distance from a whole number at which a value is taken for that number. The
        difference joins the bias where that is possible, and is reported elsewhere.

    Raises
    ------
    ArgumentError
        An explicit choice that is not possible.
    """
    one_of("zero_point", by, ("auto", *CARRIERS))
    value = settled(value)
    rest = value - round(value)
    lo, hi = dtypes.qmin(problem.src.dtype), dtypes.qmax(problem.src.dtype)
    can_snap = abs(rest) <= tolerance and lo <= round(value) <= hi
    if can_snap and by in {"auto", "attribute"}:
        carrier: Carrier = "attribute" if round(value) else "nothing"
        if rest and problem.meets_everywhere():
            return SrcZeroPoint(value, carrier, _shift(problem, wei, rest))
        return SrcZeroPoint(value, carrier, lost=rest)
    if by == "attribute":
        wanted = f"a whole number from {lo} to {hi} for it; 'bias' or 'map' take any"
        raise ArgumentError("zero_point", f"'attribute' for {number(value)}", wanted)
    everywhere = problem.meets_everywhere()
    if by == "bias" and not everywhere:
        wanted = "'map': some taps miss the source at some places"
        raise ArgumentError("zero_point", "'bias'", wanted)
    if by == "map" or not everywhere:
        return SrcZeroPoint(value, "map")
    return SrcZeroPoint(value, "bias", _shift(problem, wei, value))


def settled(value: float) -> float:
    """Return a zero point, whole if only the float64 rounding of a range's ends says otherwise."""
    return float(round(value)) if abs(value - round(value)) <= NOISE else value


def _shift(problem: DenseProblem, wei: NDArray[Any], value: float) -> Vec:
    return Vec(-value * problem.channel_rows(wei.astype(np.float64)).sum(axis=1))


def unit_map(plan: Plan, problem: DenseProblem, wei: NDArray[Any]) -> NDArray[np.float64]:
    """Return the addend of a zero point of 1 at every place of dst, without sign: scale · Σ wei.

    Parameters
    ----------
    plan : Plan
        Plan of the primitive; its scale is that of the map.
    problem : ConvProblem, DeconvProblem, InnerProductProblem or MatMulProblem
        Problem that runs.
    wei : ndarray
        Factors of the source: codes of weights, less their own zero point.

    Returns
    -------
    ndarray
        Map with dst's dims; those along which it does not change may be 1.
    """
    scale = along(plan.acc_scale.values(), plan.facts.axis, plan.facts.ndims)
    return scale * problem.wei_sums(wei)


def wrong_with_zero_point(
    plan: Plan, problem: DenseProblem, process: Facts | None
) -> tuple[str, ...]:
    """Return the ids of the guards that match with the source's zero point, and not without."""
    whole = plan.problem(problem)
    rows = guards.matching(whole, plan.attr, process, "")
    if not rows:
        return ()
    without = guards.matching(whole, replace(plan.attr, src_zero_point=None), process, "")
    return tuple(guard.id for guard in rows if guard not in without)
