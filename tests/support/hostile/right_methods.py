"""Right calls of the methods and operators of public values, found by looking."""

from __future__ import annotations

import copy
import functools
import inspect
import operator
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from support.hostile.right_calls import RightCall, public_names, right_calls

NOT_ASKED = {"time_calls", "time_copies", "pack_again", "reorders"}  # they take their time
_MADE_BY = (
    *("QParams", "Dynamic", "Vec", "Affine", "Binary", "Clip", "Leaf", "Sum", "FakeQuantize"),
    *("TensorSpec", "Attr", "ConvProblem.of", "DeconvProblem.of", "InnerProductProblem.of"),
    *("MatMulProblem.of", "EltwiseProblem", "BinaryPostOp", "PrimitiveFacts.of", "compose_chain"),
    *("compose_layer", "prepare", "prepare_plan", "prepare_layer", "inspect", "model_of", "Conv"),
    "explain_difference",
    *("Deconv", "InnerProduct", "MatMul", "Conv.from_float", "saturation", "counts", "witness"),
    *("repair", "requantizer", "difference_report", "kernel_model", "plan_model", "explain.read"),
    *("explain.Report.of", "suite.find", "Shape.parse", "Run.from_json", "Chain", "dialect"),
    *("operator_cache_info", "buffer_statistics", "shape_statistics", "weight_codes"),
    *("qparams_from_fq", "codes", "calibrate", "onnx.calibrate", "Network", "Network.compile"),
    *("Node", "Pool", "Concat"),
)
# By the method that a class needs for them.
_OPERATORS: dict[str, tuple[Callable[..., Any], int]] = {
    "__repr__": (repr, 1),
    "__str__": (str, 1),
    "__hash__": (hash, 1),
    "__reduce__": (lambda value: pickle.loads(pickle.dumps(value)), 1),
    "__init__": (copy.copy, 1),
    "__new__": (copy.deepcopy, 1),
    "__len__": (len, 1),
    "__iter__": (tuple, 1),
    "__neg__": (operator.neg, 1),
    "__abs__": (abs, 1),
    "__eq__": (operator.eq, 2),
    "__getitem__": (operator.getitem, 2),
    "__add__": (operator.add, 2),
    "__sub__": (operator.sub, 2),
    "__mul__": (operator.mul, 2),
    "__truediv__": (operator.truediv, 2),
}
PYTHONS_OWN = tuple(f" {name}" for name in _OPERATORS)


def made() -> Iterator[Any]:
    """Give one value of each kind."""
    by_name = {call.name: call for call in right_calls()}
    for name in _MADE_BY:
        if name not in by_name:  # it needs the package onnx
            continue
        call = by_name[name]
        yield call.function(*call.given, **call.named)


@functools.cache
def right_methods() -> tuple[RightCall, ...]:
    """Return calls of all public methods, properties and operators of public values."""
    usual: dict[str, Any] = {
        "src": np.zeros((1, 3, 6, 6), np.uint8), "dst": np.zeros((1, 4, 6, 6), np.uint8),
        "q": np.zeros((3, 2), np.uint8), "dims": (1, 3, 6, 6), "channels": 2, "other": 1.0,
        "tolerance": 1e-4, "tensor": "src", "row": None, "trace": True, "times": 2,
        "metric": lambda _: 1.0, "least": 0.5, "dtype": "f32",
    }  # fmt: skip
    for call in right_calls():
        for name, value in call.named.items():
            usual.setdefault(name, value)
    calls = []
    for value in made():
        kind = type(value)
        calls += [
            RightCall(f"{kind.__name__} {name}", function, (value,) * count, {})
            for name, (function, count) in _OPERATORS.items()
            if getattr(kind, name, None) is not None
        ]
        for name in dir(value):
            if name.startswith("_") or name in NOT_ASKED:
                continue
            if not inspect.isroutine(inspect.getattr_static(value, name)):
                look = operator.attrgetter(name)
                calls.append(RightCall(f"{kind.__name__} {name}", look, (value,), {}))
                continue
            method = getattr(value, name)
            named = {name: usual[name] for name in _parameters(method) if name in usual}
            calls.append(RightCall(f"{kind.__name__}.{name}", method, (), named))
        if callable(value):
            calls.append(RightCall(f"{kind.__name__}()", value, (usual["src"],), {"out": None}))
    return tuple(calls)


def _parameters(method: Callable[..., Any]) -> list[str]:
    try:
        return [name for name in inspect.signature(method).parameters if name != "self"]
    except (ValueError, TypeError):
        return []


def everything() -> tuple[RightCall, ...]:
    """Return all right calls; each name of the package is among them."""
    return (*right_calls(), *right_methods())


def reached() -> set[str]:
    """Return the public names that are called."""
    return {call.name for call in right_calls()} & public_names()
