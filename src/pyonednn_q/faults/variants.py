"""Variants: what to ask for where a problem is not supported, nearest first.

`ADVISED` are rows of the table of equivalent askings (`pyonednn_q.ops.ways` has the others, which
an operator asks for by itself). A row gives what it would change of a problem and its attributes,
one thing at a time. Each change is tried by itself, in the order of the rows, then together with
each that comes after it; what the library and the guard table would let run, is offered.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pyonednn_q import dtypes
from pyonednn_q.errors import ArgumentError, Error, UnsupportedError, Variant
from pyonednn_q.primitive.attr import SCALED, SHIFTED, Attr, Scale, ZeroPoint
from pyonednn_q.primitive.dense import InnerProductProblem, MatMulProblem
from pyonednn_q.primitive.dense_facts import DENSE
from pyonednn_q.primitive.post_ops import SumPostOp
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.rewrite.rule import BITWISE, Exactness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyonednn_q.primitive.dense_facts import DenseProblem
    from pyonednn_q.primitive.problem import Problem

    # Text of a change, and the fields that it sets: of tensors by name, and of "attr"; a change of
    # kind has a "problem" of its own.
    Changes: TypeAlias = Iterator[tuple[str, dict[str, Any]]]

MOST_PROBES = 60
MOST_SECONDS = 1.0
MOST_FOUND = 4
_SIGNS = {"s8": "u8", "u8": "s8"}
_STORED = ("f32", "s32", "u8", "s8", "bf16")

Level: TypeAlias = Literal["sign", "form", "carrier", "store", "layout", "type"]
Moment: TypeAlias = Literal["first", "refused", "slow", "timed", "advised"]


@dataclass(frozen=True, slots=True)
class WayRow:
    """A row of the table: another way to ask for the same, or for what is nearest to it.

    Attributes
    ----------
    level, moment : str
        Part of the request that the row changes, and moment at which it is tried: see
        `pyonednn_q.ops.ways`.
    asks : callable
        f(what was asked, what came of it), which gives what to ask in its place where the row
        holds; its name is that of the row.
    exactness : Exactness or None
        Promise of the row, which the policy of an operator has to permit. None: other numbers,
        unless the caller's values are such that they stay the same.
    passes : tuple of exception classes
        Refusals after which the next is tried; others are raised.
    wanting : callable
        f(what was asked so, ready), which returns None where that is taken, else a note, or "", on
        what runs in its place.
    refusal : callable
        f(first refusal, that of this row), which returns what is raised where no row holds.
    """

    level: Level
    moment: Moment
    asks: Callable[[Any, Any], Iterator[Any]]
    exactness: Exactness | None = BITWISE
    passes: tuple[type[Error], ...] = (UnsupportedError, ArgumentError)
    wanting: Callable[[Any, Any], str | None] = lambda *_: None
    refusal: Callable[[Any, Any], UnsupportedError] = lambda first, _: first

    @property
    def name(self) -> str:
        """Name of the row, in words."""
        return self.asks.__name__.replace("_", " ")


# --- f(problem, attributes), which gives changes of them where a row holds -----------------------


def packed_weights(problem: DenseProblem, _: Attr) -> Changes:
    """Ask for weights in the layout that the library wants."""
    if problem.wei.strides is not None:
        yield "packed weights", {"wei": {"strides": None}}


def usual_layout(problem: DenseProblem, _: Attr) -> Changes:
    """Ask for source and result channels-last; for those of a matmul, row-major."""
    text, make = "row-major", TensorSpec.dense
    tensors = [("src", problem.src), ("dst", problem.dst)]
    if problem.row_axis is None:
        text, make = "channels-last", TensorSpec.channels_last
        tensors = [(name, spec) for name, spec in tensors if spec.ndim > 2]
    if tensors:
        laid = {name: {"strides": make(s.dims, s.dtype).strides} for name, s in tensors}
        yield f"{text} src and dst", laid


def inner_product_as_matmul(problem: DenseProblem, attr: Attr) -> Changes:
    """Ask for the matmul of the same numbers, with weights transposed."""
    if isinstance(problem, InnerProductProblem):
        rows, inner, oc = problem.product
        matmul = MatMulProblem.of((rows, inner), (inner, oc), **problem.types)
        scale = attr.wei_scale
        by_column = replace(scale, mask=2) if scale is not None and scale.mask else scale
        text = "a matmul of the same numbers, weights transposed"
        yield text, {"problem": matmul, "attr": {"wei_scale": by_column}}


def wider_floats(problem: DenseProblem, _: Attr) -> Changes:
    """Ask for source and weights cast to f32, or to bf16: few CPUs have kernels for f16."""
    present = {problem.src.dtype, problem.wei.dtype}
    for dtype in ("f32", "bf16"):
        if present <= {"f16", "bf16"} and present != {dtype}:
            cast = {"dtype": dtype}
            yield f"source and weights cast to {dtype}", {"src": cast, "wei": cast}


def other_sign(problem: DenseProblem, attr: Attr) -> Changes:
    """Ask for s8 codes as u8 codes with a zero point 128 higher, or back."""
    dtype = _SIGNS.get(problem.src.dtype)
    if dtype is not None and dtypes.is_integer(problem.wei.dtype):
        point = attr.src_zero_point or ZeroPoint()
        text = f"{dtype} source with a zero point 128 {'higher' if dtype == 'u8' else 'lower'}"
        yield text, {"src": {"dtype": dtype}, "attr": {"src_zero_point": point}}


def fewer_post_ops(_: DenseProblem, attr: Attr) -> Changes:
    """Ask for f32, and for the last post-ops as primitives after it, which read f32."""
    # For a sum, dst would have to hold f32: another problem.
    steps = [replace(o, dtype=None) if isinstance(o, SumPostOp) else o for o in attr.post_ops]
    for count in range(len(steps) - 1, -1, -1):
        less = {"post_ops": tuple(steps[:count]), "dst_scale": None, "dst_zero_point": None}
        text = f"the last {len(steps) - count} post-op(s) after it, dst f32"
        yield text, {"dst": {"dtype": "f32"}, "attr": less}


def float_bias(problem: DenseProblem, _: Attr) -> Changes:
    """Ask for the bias in f32."""
    if problem.bias is not None and problem.bias.dtype != "f32":
        yield "an f32 bias", {"bias": {"dtype": "f32"}}


def fewer_zero_points(_: DenseProblem, attr: Attr) -> Changes:
    """Ask for one zero point, or none: the bias or an operand can carry what it did."""
    for name in SHIFTED:
        point, field = attr.zero_point(name), f"{name}_zero_point"
        if point not in {None, ZeroPoint()}:
            yield f"one {name} zero point in s32", {"attr": {field: ZeroPoint()}}
        if point is not None:
            yield f"no {name} zero point", {"attr": {field: None}}


def fewer_scales(problem: DenseProblem, attr: Attr) -> Changes:
    """Ask for one scale for each output channel, or for the tensor."""
    by_channel = Scale(problem.wei_mask)
    for name in SCALED:
        scale, field = attr.scale(name), f"{name}_scale"
        if name == "wei" and scale is not None and scale.mask and scale != by_channel:
            yield "one wei scale per output channel", {"attr": {field: by_channel}}
        if scale not in {None, Scale()}:
            yield f"one {name} scale in f32", {"attr": {field: Scale()}}


def other_result(problem: DenseProblem, _: Attr) -> Changes:
    """Ask for another type of the result."""
    for dtype in _STORED:
        if dtype != problem.dst.dtype:
            # A float takes no zero point.
            attr = {} if dtypes.is_integer(dtype) else {"dst_zero_point": None}
            yield f"dst {dtype}", {"dst": {"dtype": dtype}, "attr": attr}


ADVISED = (
    WayRow("layout", "advised", packed_weights),
    WayRow("layout", "advised", usual_layout),
    WayRow("form", "advised", inner_product_as_matmul),
    WayRow("type", "advised", wider_floats, None),
    WayRow("sign", "advised", other_sign),
    WayRow("store", "advised", fewer_post_ops),
    WayRow("type", "advised", float_bias, None),
    WayRow("carrier", "advised", fewer_zero_points, None),
    WayRow("type", "advised", fewer_scales, None),
    WayRow("store", "advised", other_result, None),
)


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
    variants: list[Variant] = []
    used: list[frozenset[str]] = []
    changes = [change for row in ADVISED for change in row.asks(problem, attr)]
    alone = [(change,) for change in changes]
    for probes, chosen in enumerate((*alone, *combinations(changes, 2))):
        if len(variants) == MOST_FOUND or probes >= MOST_PROBES or time.monotonic() > end:
            break
        names = frozenset(name for name, _ in chosen)
        if len(names) < len(chosen) or any(names >= less for less in used):
            continue  # part of it runs already
        try:
            changed = problem, attr
            for _, fields in chosen:
                changed = _changed(*changed, **fields)
            impl = None if changed == (problem, attr) else runs(*changed)
        except Error:  # changes that do not go together
            continue
        if impl is not None:
            used.append(names)
            texts = tuple(name for name, _ in chosen)
            variants.append(Variant(texts, changed[0].text(), changed[1].text(), impl))
    return tuple(variants)


def _changed(
    old: DenseProblem,
    old_attr: Attr,
    *,
    problem: DenseProblem | None = None,
    attr: Mapping[str, Any] = MappingProxyType({}),
    **tensors: Mapping[str, Any],
) -> tuple[DenseProblem, Attr]:
    """Return a problem and attributes with fields changed, of tensors by their names."""
    base = problem or old
    specs: dict[str, Any] = {
        name: replace(base.tensors[name], **fields) for name, fields in tensors.items()
    }
    return replace(base, **specs), replace(old_attr, **attr)
