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
from functools import partial
from math import inf
from typing import get_args

from pyonednn_q.errors import ArgumentError
from pyonednn_q.explain.reader import DescriptionTable, at
from pyonednn_q.expr.algs import ALGS
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.steps import (
    Affine,
    Binary,
    BinaryAlg,
    Chain,
    Clip,
    Eltwise,
    Extent,
    Leaf,
    PRelu,
    Round,
    Step,
    Sum,
)

__all__ = ["KINDS", "fake_quantize", "read_step"]

_LEVELS = 256


def read_step(value: object, path: str, channels: int) -> Step | Chain:
    """Return the step that an item of the chain describes.

    Parameters
    ----------
    value : object
        A table with the key ``step``, or the name alone where nothing else is to say.
    path : str
        Path of the item, for example ``chain[2]``.
    channels : int
        Number of output channels, which lists of constants must have.

    Raises
    ------
    ArgumentError
        Naming the key by its path.
    """
    table = DescriptionTable({"step": value} if isinstance(value, str) else value, path)
    make = KINDS[table.choice("step", KINDS)]
    step = make(table, channels)
    table.end()
    return step


def fake_quantize(table: DescriptionTable, channels: int) -> FakeQuantize:
    """Return the FakeQuantize of a table; without an output range, that of the input."""
    levels = table.whole("levels", _LEVELS)
    if table.get("symmetric") is None:
        low, high = table.vec("input_low", channels), table.vec("input_high", channels)
    else:
        for key in ("input_low", "input_high"):
            if table.get(key) is not None:
                wanted = "nothing beside symmetric, which says both ends"
                raise ArgumentError(table.path(key), "a value", wanted)
        high = table.vec("symmetric", channels)
        with at(table.here, dict.fromkeys(("high", "input_low", "input_high"), "symmetric")):
            symmetric = FakeQuantize.symmetric(high, levels)
        low, high = symmetric.input_low, symmetric.input_high
    first, last = (
        end if table.get(key) is None else table.vec(key, channels)
        for key, end in (("output_low", low), ("output_high", high))
    )
    with at(table.here):
        return FakeQuantize(low, high, first, last, levels)


def _affine(table: DescriptionTable, channels: int) -> Step:
    scale, shift = table.vec("scale", channels, 1.0), table.vec("shift", channels, 0.0)
    with at(table.here):
        return Affine(scale, shift)


def _with_value(alg: BinaryAlg, table: DescriptionTable, channels: int) -> Step:
    value = table.vec("value", channels)
    with at(table.here, {"operand": "value"}):
        return Binary(alg, value)


def _clip(table: DescriptionTable, channels: int) -> Step:
    lo, hi = table.vec("lo", channels, -inf), table.vec("hi", channels, inf)
    with at(table.here):
        return Clip(lo, hi)


def _round(_: DescriptionTable, __: int) -> Step:
    return Round()


def _prelu(table: DescriptionTable, channels: int) -> Step:
    slope = table.vec("slope", channels)
    with at(table.here):
        return PRelu(slope)


def _sum(table: DescriptionTable, _: int) -> Step:
    dtype = None if table.get("dtype") is None else table.text("dtype")
    scale, zero_point = table.number("scale", 1.0), table.whole("zero_point", 0)
    with at(table.here):
        return Sum(scale, zero_point, dtype)


def _binary(table: DescriptionTable, channels: int) -> Step:
    alg: BinaryAlg = table.choice("alg", get_args(BinaryAlg))
    if table.get("leaf") is None:
        return _with_value(alg, table, channels)
    extent: Extent = table.choice("extent", get_args(Extent), "full")
    leaf, dtype = table.text("leaf"), table.text("dtype", "f32")
    with at(table.here, {"name": "leaf"}):
        return Binary(alg, Leaf(leaf, dtype, extent))


def _eltwise(table: DescriptionTable, _: int) -> Step:
    return _alg(table.choice("alg", ALGS), table, 0)


def _alg(alg: str, table: DescriptionTable, _: int) -> Step:
    # What an algorithm reads must be said; only the slope of a relu is 0 when nothing is.
    default = 0.0 if alg == "relu" else None
    count = ALGS[alg].parameters
    values = [table.number(key, default) for key in ("alpha", "beta")[:count]]
    with at(table.here):
        return Eltwise(alg, *values)


def _fake_quantize(table: DescriptionTable, channels: int) -> Chain:
    fq = fake_quantize(table, channels)
    with at(table.here):
        return fq.chain()


_VALUES: dict[str, BinaryAlg] = {
    "multiply": "mul",
    "divide": "div",
    "add": "add",
    "subtract": "sub",
    "maximum": "max",
    "minimum": "min",
}

KINDS: dict[str, Callable[[DescriptionTable, int], Step | Chain]] = {
    "fake_quantize": _fake_quantize,
    "affine": _affine,
    **{name: partial(_with_value, alg) for name, alg in _VALUES.items()},
    "clip": _clip,
    "round": _round,
    "relu": partial(_alg, "relu"),
    "prelu": _prelu,
    "sum": _sum,
    "binary": _binary,
    "eltwise": _eltwise,
    **{alg: partial(_alg, alg) for alg in ALGS if alg not in {"relu", "clip", "round"}},
}
