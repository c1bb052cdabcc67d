"""How a plan is run: by oneDNN's formula in float64, and on a primitive."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from pyonednn_q.expr.vec import Vec
from pyonednn_q.primitive.attr import Attr, ZeroPoint
from support import oracle

if TYPE_CHECKING:
    from pyonednn_q.compose.plan import Plan
    from support.plans.runs import Layer

    Array = np.ndarray[Any, Any]


class Run(Protocol):
    """Compute what a plan stores."""

    def __call__(self, layer: Layer, plan: Plan, bias: Any = None) -> Any:
        """Return dst; `bias` is one whose values come after composing."""


def by_formula(layer: Layer, plan: Plan, bias: Any = None) -> Any:
    """Read the plan's attributes as the formula of the primitives; needs no extension."""
    return result(layer, plan, bias).dst


def result(layer: Layer, plan: Plan, bias: Any = None) -> oracle.Result:
    """Return the same with the bound on what float32 may change."""
    arrays = {"src": layer.src, "wei": plan.wei(layer.wei), "dst": layer.before, **plan.values()}
    values = plan.bias_values(bias)
    if values is not None:
        arrays["bias"] = values
    return oracle.run(plan.problem(layer.problem), plan.attr, arrays)


def on_primitive(layer: Layer, plan: Plan, bias: Any = None) -> Any:
    """Run on the library that is loaded, on generated code."""
    late = layer if bias is None else replace(layer, later=Vec(bias))
    got, prepared = late.run(plan)
    assert prepared.kind != "reference", prepared.impl
    return got


def sums(layer: Layer, src_zero_point: int = 0) -> Any:
    """Return the accumulator in float64, where it is exact."""
    bare = replace(layer.problem, bias=None, dst=replace(layer.problem.dst, dtype="f32"))
    arrays = {"src": layer.src, "wei": layer.wei}
    if not src_zero_point:
        return oracle.run(bare, Attr(), arrays).real
    arrays["src_zero_point"] = np.array([src_zero_point], np.int32)
    return oracle.run(bare, Attr(src_zero_point=ZeroPoint()), arrays).real
