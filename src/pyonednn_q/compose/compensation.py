"""Compensation: what stands in for a zero point of the source that the attribute gets wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.faults import guards
from pyonednn_q.primitive.taps import wei_sums

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyonednn_q.compose.plan import Plan
    from pyonednn_q.primitive.dense_facts import DenseProblem
    from pyonednn_q.primitive.facts import Facts

__all__ = ["unit_map", "wrong_with_zero_point"]


def unit_map(plan: Plan, problem: DenseProblem, wei: NDArray[Any]) -> NDArray[np.float64]:
    """Return what a zero point of 1 adds at every place of dst, but for its sign: scale · Σ wei.

    Parameters
    ----------
    plan : Plan
        Of the primitive; its scale is that of the map.
    problem : ConvProblem, DeconvProblem, InnerProductProblem or MatMulProblem
        What runs.
    wei : ndarray
        What the source is multiplied with: codes of weights, less their own zero point.

    Returns
    -------
    ndarray
        Of dst's dims; those along which it does not change may be 1.
    """
    aligned = [1] * plan.facts.ndims
    aligned[plan.facts.axis] = -1
    return plan.acc_scale.values().reshape(aligned) * wei_sums(problem, wei)


def wrong_with_zero_point(
    plan: Plan, problem: DenseProblem, process: Facts | None
) -> tuple[str, ...]:
    """Return the ids of the guards that match with the source's zero point, and not without."""
    whole, without = plan.problem(problem), replace(plan.attr, src_zero_point=None)
    fine = {guard.id for guard in guards.matching(whole, without, process, "")}
    rows = guards.matching(whole, plan.attr, process, "")
    return tuple(guard.id for guard in rows if guard.id not in fine)
