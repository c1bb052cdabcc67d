"""The steps of a chain as a description names them.

======================================  ==================================================
step                                    keys
======================================  ==================================================
``fake_quantize``                       input_low, input_high (or symmetric: the upper end),
                                        output_low, output_high, levels
``affine``                              scale, shift
``multiply, divide, add, subtract``     value
``maximum, minimum``                    value
``clip``                                lo, hi
``round``
``relu``                                alpha, the slope below 0
``prelu``                               slope
``sum``                                 scale, zero_point, dtype
``binary``                              alg; value, or leaf with dtype and extent
``eltwise``                             alg, alpha, beta
an eltwise algorithm: ``gelu_erf``      alpha, beta
======================================  ==================================================
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from math import inf
from operator import or_
from typing import Any, ClassVar, Literal, cast

from msgspec import defstruct

from pyonednn_q.errors import ArgumentError
from pyonednn_q.explain.reader import Const, DescriptionTable, Whole, at, constant
from pyonednn_q.expr.algs import ALGS
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.steps import (
    Affine,
    Binary,
    BinaryAlg,
    Clip,
    Eltwise,
    Extent,
    Leaf,
    PRelu,
    Round,
    Step,
    Sum,
)
from pyonednn_q.expr.vec import Vec

__all__ = ["STEPS", "AnyStep", "FakeQuantizeTable", "StepTable"]

_KEYS = {"operand": "value", "name": "leaf"}  # by the argument that they become


class StepTable(DescriptionTable):
    """A step of a chain, or the FakeQuantize of dst: its fields are arguments of `make`."""

    make: ClassVar[Callable[..., Any]]

    def made(self, path: str, channels: int) -> Any:  # noqa: ANN401 - a step, a chain, FakeQuantize
        """Return what the table describes; lists of constants have one for each channel."""
        keys = self.__struct_fields__
        values = [constant(getattr(self, key), f"{path}.{key}", channels) for key in keys]
        with at(path, _KEYS):
            return type(self).make(*values)


def _fake_quantize(
    input_low: Vec | float | None,
    input_high: Vec | float | None,
    symmetric: Vec | float | None,
    output_low: Vec | float | None,
    output_high: Vec | float | None,
    levels: int,
) -> FakeQuantize:
    """Return the FakeQuantize; without an output range, that of the input."""
    ends = {"input_low": input_low, "input_high": input_high}
    if symmetric is None:
        low, high = (_needed(key, end) for key, end in ends.items())
    else:
        for key, end in ends.items():
            if end is not None:
                raise ArgumentError(key, "a value", "nothing beside symmetric, which says both")
        with at("", dict.fromkeys(("high", *ends), "symmetric")):
            fq = FakeQuantize.symmetric(symmetric, levels)
        low, high = fq.input_low, fq.input_high
    first, last = (
        low if output_low is None else output_low,
        high if output_high is None else output_high,
    )
    return FakeQuantize(low, high, first, last, levels)


class FakeQuantizeTable(StepTable):
    """A FakeQuantize: by both ends of its input, or by the upper one of a symmetric range."""

    input_low: Const | None = None
    input_high: Const | None = None
    symmetric: Const | None = None
    output_low: Const | None = None
    output_high: Const | None = None
    levels: Whole = 256

    make = staticmethod(_fake_quantize)


class _QuantizeStep(FakeQuantizeTable, tag="fake_quantize", tag_field="step"):
    def made(self, path: str, channels: int) -> Any:  # noqa: ANN401 - as in the base
        """Return the steps of the FakeQuantize."""
        fq = super().made(path, channels)
        with at(path):
            return fq.chain()


def _binary(
    alg: BinaryAlg,
    value: Vec | float | None,
    leaf: str | None,
    dtype: str | None,
    extent: Extent | None,
) -> Step:
    if leaf is not None and value is None:
        return Binary(alg, Leaf(leaf, dtype or "f32", extent or "full"))
    for key, said in (("leaf", leaf), ("dtype", dtype), ("extent", extent)):
        if said is not None:
            raise ArgumentError(key, "a text", "nothing beside value, or a leaf without one")
    return Binary(alg, _needed("value", value))


def _eltwise(alg: str, alpha: float | None, beta: float | None) -> Step:
    # What an algorithm reads must be said; only the slope of a relu is 0 when nothing is.
    count = 0 if alg == "relu" else ALGS[alg].parameters
    for key, value in (("alpha", alpha), ("beta", beta))[:count]:
        _needed(key, value)
    return Eltwise(alg, alpha or 0.0, beta or 0.0)


def _needed(key: str, value: Vec | float | None) -> Vec | float:
    if value is None:
        raise ArgumentError(key, "nothing", "a number")
    return value


def _declared(make: Callable[..., Any], *keys: Any, **options: Any) -> type[StepTable]:  # noqa: ANN401
    """Return a table; its keys, each with a type and perhaps a default, are arguments of `make`."""
    config = {"bases": (StepTable,), "namespace": {"make": make}, "kw_only": True, **options}
    return cast("type[StepTable]", defstruct("Step", keys, **config))


_VALUES: dict[str, BinaryAlg] = {
    "multiply": "mul",
    "divide": "div",
    "add": "add",
    "subtract": "sub",
    "maximum": "max",
    "minimum": "min",
}
_PARAMETERS = ("alpha", "beta")

_ROWS: dict[str, tuple[Any, ...]] = {
    "affine": (Affine, ("scale", Const, 1.0), ("shift", Const, 0.0)),
    **{name: (partial(Binary, alg), ("value", Const)) for name, alg in _VALUES.items()},
    "clip": (Clip, ("lo", Const, -inf), ("hi", Const, inf)),
    "round": (Round,),
    "relu": (partial(Eltwise, "relu"), ("alpha", float, 0.0)),
    "prelu": (PRelu, ("slope", Const)),
    "sum": (Sum, ("scale", float, 1.0), ("zero_point", Whole, 0), ("dtype", str | None, None)),
    "binary": (
        _binary,
        ("alg", BinaryAlg),
        ("value", Const | None, None),
        *(("leaf", str | None, None), ("dtype", str | None, None)),
        ("extent", Extent | None, None),
    ),
    "eltwise": (
        _eltwise,
        ("alg", Literal[tuple(ALGS)]),
        *((key, float | None, None) for key in _PARAMETERS),
    ),
    **{
        name: (partial(Eltwise, name), *((key, float) for key in _PARAMETERS[: alg.parameters]))
        for name, alg in ALGS.items()
        if name not in {"relu", "clip", "round"}
    },
}
STEPS = {
    "fake_quantize": _QuantizeStep,
    **{name: _declared(*row, tag=name, tag_field="step") for name, row in _ROWS.items()},
}
AnyStep: Any = reduce(or_, STEPS.values())
