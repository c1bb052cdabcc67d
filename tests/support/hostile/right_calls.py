"""Right calls of everything public, by name: what a hostile one starts from."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import pyonednn_q as pq
from support.hostile import right_functions, right_network, right_onnx, right_ranges, right_values
from support.hostile.right_values import CHAIN

# Bases and enumerations of Python's own, and errors that nobody else raises.
NOT_CALLED = {
    # Raised by nobody but us, or for what a call cannot bring about.
    *("Error", "ForkedError", "LibraryError", "SelfCheckError", "Variant"),
    # Names of choices, and tables.
    *("ARITHMETIC", "DIALECTS", "ESTIMATORS", "PASSES", "runtime"),
    "from_torch",  # takes what only torch makes
    # Results, which nobody makes by hand; their methods are called.
    *(
        "BufferStatistics",
        "Compiled",
        "DifferenceReport",
        "Dialect",
        "Estimator",
        "BitAssignment",
        "Calibration",
        "BitSearch",
        "IntegerWeights",
        "LayerSettings",
        "Placement",
        "PrecisionSettings",
        "QuantizationConfig",
        "SearchTrial",
        "TensorSettings",
        "Quality",
        "Explanation",
        "GroupDifference",
        "GroupedKernel",
        "Interval",
        "KernelModel",
        "Packed",
        "Call",
        "trace",
    ),
    *("GraphOperator", "PlanModel", "Range", "Repair", "Verdict", "WeightCodes", "implementations"),
}

ROOMS = (
    right_values.value_calls,
    right_values.problem_calls,
    right_values.composed_calls,
    right_functions.algebra_calls,
    right_functions.predicted_calls,
    right_functions.readers_calls,
    right_functions.quantized_calls,
    right_onnx.onnx_calls,
    right_network.network_calls,
    right_onnx.onnx_models,
    right_ranges.range_calls,
    right_ranges.weight_calls,
    right_ranges.group_calls,
    right_ranges.width_calls,
    right_ranges.placed_calls,
    right_functions.process_calls,
)


@dataclass(frozen=True)
class RightCall:
    """A call that is right.

    name: of what is called; of a method, of its class as well.
    """

    name: str
    function: Callable[..., Any]
    given: tuple[Any, ...]
    named: dict[str, Any]


@functools.cache
def right_calls() -> tuple[RightCall, ...]:
    """Return all of them; constructors and functions."""
    calls = [
        RightCall(name, function, (), named)
        for room in ROOMS
        for name, (function, named) in room().items()
    ]
    steps = tuple(CHAIN)
    calls.append(RightCall("Chain", pq.Chain, steps, {}))
    errors = {kind.__name__ for kind in _subclasses(pq.Error)} - NOT_CALLED
    errors &= set(pq.errors.__all__)
    given = ("refused", "select", "conv")
    calls += [RightCall(name, getattr(pq.errors, name), given, {}) for name in sorted(errors)]
    return tuple(calls)


def public_names() -> set[str]:
    """Return the names of the package and of the faces of its rooms."""
    rooms = set(pq._ROOMS)
    names = (set(pq.__all__) - rooms - {*pq._WITH_FRAMEWORK, "__version__"}).union(
        *(getattr(pq, room).__all__ for room in rooms)
    )
    return names if find_spec("onnx") else names - set(right_onnx.OF_MODELS)


def _subclasses(kind: type) -> set[type]:
    found: set[type] = set(kind.__subclasses__())
    return found.union(*map(_subclasses, found))
