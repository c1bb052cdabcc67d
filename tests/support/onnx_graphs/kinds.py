"""Operators of ONNX with everything that their attributes may be, a function for each kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from support.onnx_graphs.draw import GraphDraw, NotHere

Kind = Callable[[GraphDraw, str], Any]


def _unary(draw: GraphDraw, operator: str) -> None:
    draw.add(operator, draw.tensor())


def _of_attributes(**names: tuple[float, float]) -> Kind:
    def kind(draw: GraphDraw, operator: str) -> None:
        given = {
            name: float(np.float32(draw.rng.uniform(lo, hi)))
            for name, (lo, hi) in names.items()
            if draw.maybe(0.7)
        }
        draw.add(operator, draw.tensor(), **given)

    return kind


def _binary(draw: GraphDraw, operator: str) -> None:
    dtype = draw.one(*[np.float32] * 8, np.int64, np.int32)
    first = draw.tensor(dtype=dtype)
    if operator in {"Div", "Mod"} and dtype is not np.float32:
        values = draw.array(draw.dims_of(first), dtype)
        second = draw.constant(np.where(values == 0, 3, values).astype(dtype))
    else:
        second = draw.beside(first)
    names = (first, second) if draw.maybe(0.7) or "Mod" in operator else (second, first)
    given = {"fmod": 1} if operator == "Mod" and (dtype is np.float32 or draw.maybe()) else {}
    draw.add(operator, *names, **given)


def _power(draw: GraphDraw, operator: str) -> None:
    first = draw.tensor()
    by = draw.constant(np.float32(draw.one(0, 0.5, 1, 2, 2, 3, -1, -2)))
    draw.add(operator, first, by if draw.maybe(0.7) else draw.beside(first))


def _several(draw: GraphDraw, operator: str) -> None:
    first = draw.tensor()
    draw.add(operator, first, *(draw.beside(first) for _ in range(draw.whole(0, 2))))


def _prelu(draw: GraphDraw, operator: str) -> None:
    first = draw.tensor()
    dims = draw.dims_of(first)
    cut = draw.whole(0, len(dims))
    slope = tuple(1 if draw.maybe(0.3) else each for each in dims[cut:])
    draw.add(operator, first, draw.constant(draw.array(slope)))


def _compared(draw: GraphDraw, operator: str) -> None:
    dtype = draw.one(*[np.float32] * 4, np.int64, np.int32)
    first = draw.tensor(dtype=dtype)
    draw.add(operator, first, draw.beside(first))


def _logical(draw: GraphDraw, operator: str) -> None:
    first = draw.tensor(dtype=bool)
    draw.add(operator, first, *([] if operator == "Not" else [draw.beside(first)]))


def _bitwise(draw: GraphDraw, operator: str) -> None:
    first = draw.tensor(dtype=draw.one(np.int32, np.uint8, np.int64))
    draw.add(operator, first, *([] if operator == "BitwiseNot" else [draw.beside(first)]))


def _shift(draw: GraphDraw, operator: str) -> None:
    first = draw.tensor(dtype=np.uint8)
    by = draw.constant(draw.rng.integers(0, 8, draw.dims_of(first)).astype(np.uint8))
    draw.add(operator, first, by, direction=draw.one("LEFT", "RIGHT"))


def _recurrent(draw: GraphDraw, operator: str) -> None:
    name = draw.tensor(3)
    if 0 in draw.dims_of(name):
        raise NotHere("no elements")
    inner, hidden = draw.dims_of(name)[2], draw.whole(1, 4)
    gates = {"GRU": 3, "LSTM": 4, "RNN": 1}[operator]
    direction = draw.one("forward", "reverse", "bidirectional")
    both = 2 if direction == "bidirectional" else 1
    wei = draw.source((both, gates * hidden, inner))
    again = draw.source((both, gates * hidden, hidden))
    bias = [draw.source((both, 2 * gates * hidden))] if draw.maybe() else []
    given = {"linear_before_reset": 1} if operator == "GRU" and draw.maybe() else {}
    draw.add(
        operator, name, wei, again, *bias, outputs=2, hidden_size=hidden, direction=direction,
        **given,
    )  # fmt: skip


def _where(draw: GraphDraw, operator: str) -> None:
    first = draw.tensor(dtype=draw.one(np.float32, np.float32, np.int64))
    draw.add(operator, draw.beside(first, bool), first, draw.beside(first))


def _clip(draw: GraphDraw, operator: str) -> None:
    lo, hi = sorted(np.float32(draw.rng.normal(0, 1, 2)))
    has_lo, has_hi = draw.maybe(0.8), draw.maybe(0.8)
    if draw.opset < 11:
        given = {"min": float(lo)} if has_lo else {}
        draw.add(operator, draw.tensor(), **given, **({"max": float(hi)} if has_hi else {}))
        return
    ends = [draw.constant(lo) if has_lo else "", draw.constant(hi) if has_hi else ""]
    while ends and not ends[-1]:
        ends.pop()
    draw.add(operator, draw.tensor(), *ends)


def axes_of(draw: GraphDraw, rank: int, least: int = 0) -> list[int]:
    """Return some axes, in any order, some counted from the end."""
    count = draw.whole(min(least, rank), rank)
    axes = [int(each) for each in draw.rng.permutation(rank)[:count]]
    return [axis - rank if draw.opset >= 11 and draw.maybe(0.4) else axis for axis in axes]


def axis_of(draw: GraphDraw, rank: int) -> int:
    """Return an axis, maybe counted from the end."""
    if not rank:
        raise NotHere("no axis")
    lo = -rank if draw.opset >= 11 else 0
    return draw.whole(lo, rank - 1)


def _reduced(draw: GraphDraw, operator: str) -> None:
    # Integers beyond their type are saturated there, and wrap here.
    wholes = (
        ()
        if operator in {"ReduceLogSum", "ReduceLogSumExp", "ReduceProd"}
        else (np.int32, np.int64)
    )
    name = draw.tensor(dtype=draw.one(*[np.float32] * 5, *wholes))
    axes = axes_of(draw, len(draw.dims_of(name)), 1)
    given: dict[str, Any] = {"keepdims": draw.whole(0, 1)} if draw.maybe(0.7) else {}
    if draw.opset < (13 if operator == "ReduceSum" else 18):
        if axes and draw.maybe(0.8):
            given["axes"] = axes
        draw.add(operator, name, **given)
        return
    if draw.maybe(0.2):
        given["noop_with_empty_axes"] = draw.whole(0, 1)
    share = draw.rng.random()
    more = [] if share < 0.2 else [draw.whole_constant(*(axes if share < 0.9 else []))]
    draw.add(operator, name, *more, **given)


def _arg(draw: GraphDraw, operator: str) -> None:
    name = draw.tensor(1, 2, 3, 4)
    given = {"axis": axis_of(draw, len(draw.dims_of(name)))} if draw.maybe(0.8) else {}
    given |= {"keepdims": draw.whole(0, 1)} if draw.maybe() else {}
    given |= {"select_last_index": 1} if draw.opset >= 12 and draw.maybe(0.3) else {}
    draw.add(operator, name, **given)


def _along(draw: GraphDraw, operator: str) -> None:
    name = draw.tensor(1, 2, 3, 4)
    given = {"axis": axis_of(draw, len(draw.dims_of(name)))} if draw.maybe(0.8) else {}
    draw.add(operator, name, **given)


def _cumulated(draw: GraphDraw, operator: str) -> None:
    name = draw.tensor(1, 2, 3, 4)
    axis = draw.constant(np.array(axis_of(draw, len(draw.dims_of(name))), np.int64))
    draw.add(operator, name, axis, exclusive=draw.whole(0, 1), reverse=draw.whole(0, 1))


def _top(draw: GraphDraw, operator: str) -> None:
    name = draw.tensor(1, 2, 3, 4)
    dims = draw.dims_of(name)
    axis = axis_of(draw, len(dims))
    k = draw.whole(0, dims[axis])
    given = {} if draw.opset < 11 else {"largest": draw.whole(0, 1), "sorted": 1}
    draw.add(operator, name, draw.whole_constant(k), outputs=2, axis=axis, **given)


def _cast(draw: GraphDraw, operator: str) -> None:
    to = draw.one(1, 6, 7, 9, 10, 11, 2, 3)
    name = draw.tensor(dtype=draw.one(np.float32, np.float32, np.int64, bool, np.int32))
    if to in {2, 3}:  # floats beyond a type are whatever the hardware makes of them
        name = draw.tensor(dtype=bool)
    draw.add(operator, name, to=to)


def _cast_like(draw: GraphDraw, operator: str) -> None:
    like = draw.constant(np.zeros(1, draw.one(np.float32, np.int64, np.int32)))
    draw.add(operator, draw.tensor(dtype=draw.one(np.float32, np.int64)), like)


def _layer_norm(draw: GraphDraw, operator: str) -> None:
    name = draw.tensor(1, 2, 3, 4)
    dims = draw.dims_of(name)
    axis = axis_of(draw, len(dims))
    rest = dims[axis:]
    shift = [] if operator == "RMSNormalization" or draw.maybe(0.3) else [draw.source(rest)]
    given = {"epsilon": float(np.float32(draw.rng.uniform(1e-5, 0.1)))} if draw.maybe() else {}
    draw.add(operator, name, draw.source(rest), *shift, axis=axis, **given)


def _instance_norm(draw: GraphDraw, operator: str) -> None:
    name = draw.tensor(3, 4, 5)
    if 0 in draw.dims_of(name):
        raise NotHere("no elements")
    dims = (draw.dims_of(name)[1],)
    draw.add(operator, name, draw.source(dims), draw.source(dims), epsilon=draw.one(1e-5, 0.25))


def _group_norm(draw: GraphDraw, operator: str) -> None:
    name = draw.tensor(3, 4, 5)
    channels = draw.dims_of(name)[1]
    groups = draw.one(*(each for each in range(1, channels + 1) if channels % each == 0), 1)
    dims = (groups,) if draw.opset < 21 else (channels,)
    given = {"epsilon": 0.25} if draw.maybe() else {}
    draw.add(operator, name, draw.source(dims), draw.source(dims), num_groups=groups, **given)


def _batch_norm(draw: GraphDraw, operator: str) -> None:
    name = draw.tensor(2, 3, 4)
    dims = (draw.dims_of(name)[1],)
    var = draw.constant(draw.rng.uniform(0.2, 3, dims).astype(np.float32))
    given = {"epsilon": 0.1} if draw.maybe() else {}
    draw.add(operator, name, *(draw.source(dims) for _ in range(3)), var, **given)


def _lrn(draw: GraphDraw, operator: str) -> None:
    size = draw.one(1, 3, 5)
    given = {"alpha": 0.3, "beta": 1.5, "bias": 2.0} if draw.maybe() else {}
    draw.add(operator, draw.tensor(4), size=size, **given)


def _lp_norm(draw: GraphDraw, operator: str) -> None:
    name = draw.tensor(1, 2, 3, 4)
    draw.add(operator, name, axis=axis_of(draw, len(draw.dims_of(name))), p=draw.whole(1, 2))


def _mean_variance(draw: GraphDraw, operator: str) -> None:
    draw.add(operator, draw.tensor(4), **({"axes": [0, 2, 3]} if draw.maybe() else {}))


def _product(draw: GraphDraw, operator: str) -> None:
    name = draw.tensor(1, 2, 3, 4)
    dims = draw.dims_of(name)
    lead = dims[:-2][draw.whole(0, max(len(dims) - 2, 0)) :]
    dims = draw.one((dims[-1],), (dims[-1], draw.length()), (*lead, dims[-1], draw.length()))
    draw.add(operator, name, draw.source(dims))


def _gemm(draw: GraphDraw, operator: str) -> None:
    name = draw.tensor(2)
    turn_a, turn_b = draw.whole(0, 1), draw.whole(0, 1)
    dims = draw.dims_of(name)
    rows, inner = dims[::-1] if turn_a else dims
    columns = draw.length()
    wei = draw.source((columns, inner) if turn_b else (inner, columns))
    bias = draw.one((), (columns,), (1, columns), (rows, 1), (rows, columns), None)
    more = [] if bias is None else [draw.source(bias)]
    given = {"alpha": 0.5} if draw.maybe(0.3) else {}
    given |= {"beta": 2.0} if draw.maybe(0.3) else {}
    if draw.opset < 11 and bias is None:
        raise NotHere("a bias is needed")
    draw.add(operator, name, wei, *more, transA=turn_a, transB=turn_b, **given)


def _einsum(draw: GraphDraw, operator: str) -> None:
    name = draw.tensor(2)
    rows, inner = draw.dims_of(name)
    if draw.maybe():
        draw.add(operator, name, equation=draw.one("ij->ji", "ij->i", "ij->", "ij->j"))
        return
    equation = draw.one("ij,jk->ik", "ij,jk->ki", "ij,jk->k")
    draw.add(operator, name, draw.source((inner, draw.length())), equation=equation)
    del rows


COMPUTED: Mapping[str, Kind] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh",
                "Erf", "Exp", "Floor", "HardSwish", "Identity", "IsInf", "IsNaN", "Log", "Mish",
                "Neg", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Sin", "Sinh",
                "Softplus", "Softsign", "Sqrt", "Tan", "Tanh",
            ),
            _unary,
        ),
        "Celu": _of_attributes(alpha=(0.5, 2)),
        "Elu": _of_attributes(alpha=(0.5, 2)),
        "HardSigmoid": _of_attributes(alpha=(0.1, 0.5), beta=(0.2, 0.8)),
        "LeakyRelu": _of_attributes(alpha=(-0.5, 1.5)),
        "Selu": _of_attributes(alpha=(1, 2), gamma=(0.5, 2)),
        "Shrink": _of_attributes(bias=(-0.5, 0.5), lambd=(0, 1)),
        "ThresholdedRelu": _of_attributes(alpha=(-1, 1)),
        "Gelu": lambda draw, operator: draw.add(
            operator, draw.tensor(), approximate=draw.one("none", "tanh")
        ),
        **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Mod"), _binary),
        "Pow": _power,
        **dict.fromkeys(("Max", "Mean", "Min", "Sum"), _several),
        "PRelu": _prelu,
        **dict.fromkeys(
            ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"), _compared
        ),
        "Dropout": _unary,
        **dict.fromkeys(("And", "Not", "Or", "Xor"), _logical),
        **dict.fromkeys(("BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor"), _bitwise),
        "BitShift": _shift,
        **dict.fromkeys(("GRU", "LSTM", "RNN"), _recurrent),
        "Where": _where,
        "Clip": _clip,
        **dict.fromkeys(
            (
                "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax",
                "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
            ),
            _reduced,
        ),
        **dict.fromkeys(("ArgMax", "ArgMin"), _arg),
        **dict.fromkeys(("Hardmax", "LogSoftmax", "Softmax"), _along),
        "CumSum": _cumulated,
        "TopK": _top,
        "Cast": _cast,
        "CastLike": _cast_like,
        **dict.fromkeys(("LayerNormalization", "RMSNormalization"), _layer_norm),
        "InstanceNormalization": _instance_norm,
        "GroupNormalization": _group_norm,
        "BatchNormalization": _batch_norm,
        "LRN": _lrn,
        "LpNormalization": _lp_norm,
        "MeanVarianceNormalization": _mean_variance,
        "MatMul": _product,
        "Gemm": _gemm,
        "Einsum": _einsum,
    }
)  # fmt: skip
