"""Variants: what to ask for where a problem is not supported, nearest first.

A relaxation changes one thing. Each is tried by itself, in the order below, then together with each
that comes after it; what the library and the guard table would let run, is offered.

    layout          the same numbers in other places: channels last, packed weights
    kind            an inner product as the matmul of the same numbers
    floats          source and weights cast to f32, or to bf16: few CPUs have kernels for f16
    source sign     s8 codes as u8 codes with a zero point that is 128 higher, or back: exact
    split           fewer post-ops, the rest as primitives after it, which read f32
    bias            f32 in place of another type
    zero points     one for the tensor; or none: the bias or an operand can carry what it did
    granularity     one scale for the tensor, or one per output channel
    dst             another data type
"""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeAlias

from pyonednn_q import dtypes
from pyonednn_q.errors import Error, Variant
from pyonednn_q.primitive.attr import SCALED, SHIFTED, Attr, Scale, ZeroPoint
from pyonednn_q.primitive.dense import InnerProductProblem, MatMulProblem
from pyonednn_q.primitive.dense_facts import DENSE
from pyonednn_q.primitive.post_ops import SumPostOp
from pyonednn_q.primitive.tensor import TensorSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyonednn_q.primitive.dense_facts import DenseProblem
    from pyonednn_q.primitive.problem import Problem

    Change: TypeAlias = Callable[["Asked"], "Asked"]

MOST_PROBES = 60
MOST_SECONDS = 1.0
MOST_FOUND = 4
_SIGNS = {"s8": "u8", "u8": "s8"}
_STORED = ("f32", "s32", "u8", "s8", "bf16")

Asked: TypeAlias = "tuple[DenseProblem, Attr]"


def nearest(
    problem: Problem, attr: Attr, runs: Callable[[DenseProblem, Attr], str | None]
) -> tuple[Variant, ...]:
    """Return up to `MOST_FOUND` variants that run, nearest first.

    Stops after `MOST_PROBES` probes or `MOST_SECONDS` seconds.

    Parameters
    ----------
    problem : Problem
        Unsupported problem. Only convolutions and products have variants.
    attr : Attr
        Scales, zero points and post-ops of the problem.
    runs : callable
        Returns the name of the implementation that would run, or None.
    """
    if not isinstance(problem, DENSE):
        return ()
    end = time.monotonic() + MOST_SECONDS
    asked = (problem, attr)
    variants: list[Variant] = []
    used: list[frozenset[str]] = []
    changes = list(_relaxations(problem, attr))
    alone = [(change,) for change in changes]
    for probes, chosen in enumerate((*alone, *combinations(changes, 2))):
        if len(variants) == MOST_FOUND or probes >= MOST_PROBES or time.monotonic() > end:
            break
        names = frozenset(name for name, _ in chosen)
        if len(names) < len(chosen) or any(names >= less for less in used):
            continue  # part of it runs already
        try:
            changed = asked
            for _, change in chosen:
                changed = change(changed)
            impl = None if changed == asked else runs(*changed)
        except Error:  # changes that do not go together
            continue
        if impl is not None:
            used.append(names)
            texts = tuple(name for name, _ in chosen)
            variants.append(Variant(texts, changed[0].text(), changed[1].text(), impl))
    return tuple(variants)


def _relaxations(problem: DenseProblem, attr: Attr) -> Iterator[tuple[str, Change]]:
    yield from _layouts(problem)
    if isinstance(problem, InnerProductProblem):
        yield "a matmul of the same numbers, weights transposed", _as_matmul
    yield from _casts({problem.src.dtype, problem.wei.dtype})
    src_dtype = _SIGNS.get(problem.src.dtype)
    if src_dtype is not None and dtypes.is_integer(problem.wei.dtype):
        direction = "higher" if src_dtype == "u8" else "lower"
        yield f"{src_dtype} source with a zero point 128 {direction}", _with_sign(src_dtype)
    for count in range(len(attr.post_ops) - 1, -1, -1):
        rest = len(attr.post_ops) - count
        yield f"the last {rest} post-op(s) after it, dst f32", _split(count)
    if problem.bias is not None and problem.bias.dtype != "f32":
        yield "an f32 bias", _with_bias
    for name in SHIFTED:
        yield from _zero_points(name, attr)
    for name in SCALED:
        yield from _scales(name, problem, attr)
    for dtype in _STORED:
        if dtype != problem.dst.dtype:
            yield f"dst {dtype}", _stored_as(dtype)


def _layouts(problem: DenseProblem) -> Iterator[tuple[str, Change]]:
    if problem.wei.strides is not None:
        yield "packed weights", lambda a: (replace(a[0], wei=_any(a[0].wei)), a[1])
    if problem.src.ndim > 2 and problem.row_axis is None:
        yield "channels-last src and dst", _channels_last
    if problem.row_axis is not None:
        yield (
            "row-major src and dst",
            lambda a: (
                replace(a[0], src=_dense(a[0].src), dst=_dense(a[0].dst)),
                a[1],
            ),
        )


def _channels_last(asked: Asked) -> Asked:
    problem, attr = asked
    tensors: dict[str, Any] = {"src": _last(problem.src)}
    if problem.dst.ndim > 2:
        tensors["dst"] = _last(problem.dst)
    return replace(problem, **tensors), attr


def _as_matmul(asked: Asked) -> Asked:
    problem, attr = asked
    rows, inner = problem.src.dims[0], problem.wei.size // problem.wei.dims[0]
    product = MatMulProblem.of(
        (rows, inner),
        (inner, problem.wei.dims[0]),
        src=problem.src.dtype,
        wei=problem.wei.dtype,
        dst=problem.dst.dtype,
        bias=None if problem.bias is None else problem.bias.dtype,
    )
    scale = attr.wei_scale
    if scale is not None and scale.mask:
        attr = replace(attr, wei_scale=replace(scale, mask=2))
    return product, attr


def _casts(present: set[str]) -> Iterator[tuple[str, Change]]:
    if present <= {"f16", "bf16"}:
        for dtype in ("f32", "bf16"):
            if present != {dtype}:
                yield f"source and weights cast to {dtype}", _cast(dtype)


def _cast(dtype: str) -> Change:
    def change(asked: Asked) -> Asked:
        problem, attr = asked
        src, wei = (replace(spec, dtype=dtype) for spec in (problem.src, problem.wei))
        return replace(problem, src=src, wei=wei), attr

    return change


def _with_sign(dtype: str) -> Change:
    def change(asked: Asked) -> Asked:
        problem, attr = asked
        point = attr.src_zero_point or ZeroPoint()
        src = replace(problem.src, dtype=dtype)
        return replace(problem, src=src), replace(attr, src_zero_point=point)

    return change


def _split(count: int) -> Change:
    def change(asked: Asked) -> Asked:
        problem, attr = asked
        post_ops = attr.post_ops[:count]
        if any(isinstance(op, SumPostOp) for op in post_ops):
            # dst would have to hold f32 for the sum: another problem.
            post_ops = tuple(
                replace(op, dtype=None) if isinstance(op, SumPostOp) else op for op in post_ops
            )
        dst = replace(problem.dst, dtype="f32")
        less = replace(attr, post_ops=post_ops, dst_scale=None, dst_zero_point=None)
        return replace(problem, dst=dst), less

    return change


def _with_bias(asked: Asked) -> Asked:
    problem, attr = asked
    assert problem.bias is not None
    return replace(problem, bias=replace(problem.bias, dtype="f32")), attr


def _with(field: str, value: object) -> Change:
    changes: dict[str, Any] = {field: value}
    return lambda asked: (asked[0], replace(asked[1], **changes))


def _zero_points(name: str, attr: Attr) -> Iterator[tuple[str, Change]]:
    point = attr.zero_point(name)
    if point is None:
        return
    if point != ZeroPoint():
        yield f"one {name} zero point in s32", _with(f"{name}_zero_point", ZeroPoint())
    yield f"no {name} zero point", _with(f"{name}_zero_point", None)


def _scales(name: str, problem: DenseProblem, attr: Attr) -> Iterator[tuple[str, Change]]:
    scale = attr.scale(name)
    if scale is None:
        return
    if name == "wei":
        by_channel = Scale(problem.wei_mask)
        if scale != by_channel and scale.mask:
            yield "one wei scale per output channel", _with("wei_scale", by_channel)
    if scale != Scale():
        yield f"one {name} scale in f32", _with(f"{name}_scale", Scale())


def _stored_as(dtype: str) -> Change:
    def change(asked: Asked) -> Asked:
        problem, attr = asked
        if not dtypes.is_integer(dtype):  # a float takes no zero point
            attr = replace(attr, dst_zero_point=None)
        return replace(problem, dst=replace(problem.dst, dtype=dtype)), attr

    return change


def _any(spec: TensorSpec) -> TensorSpec:
    return TensorSpec(spec.dims, spec.dtype)


def _dense(spec: TensorSpec) -> TensorSpec:
    return TensorSpec.dense(spec.dims, spec.dtype)


def _last(spec: TensorSpec) -> TensorSpec:
    return TensorSpec.channels_last(spec.dims, spec.dtype)
