"""Problems of every shape that kernels have code of their own for, with what is done to their sums.

They are what makes the regions of kernel models: `predict.region` says which facts of a shape
count, and here each of them is drawn often, in every class.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.errors import ShapeError
from pyonednn_q.predict.region import class_of, traits
from pyonednn_q.primitive.problem import (
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
)
from pyonednn_q.primitive.tensor import TensorSpec
from support.kernel_cases import Source
from support.kernel_variants import BOUNDED, FLOATING, INTEGER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.kernel_cases import KernelCase

Rng = np.random.Generator

VARIANTS = FLOATING + FLOATING + INTEGER + BOUNDED  # a float result shows every bit
# Blocks of 16, even and not, and what is in none.
OUTPUTS = (
    1,
    2,
    3,
    4,
    7,
    8,
    12,
    16,
    17,
    20,
    24,
    31,
    32,
    33,
    40,
    48,
    49,
    52,
    56,
    64,
    65,
    80,
    96,
    112,
)
INPUTS = (2, 3, 4, 5, 7, 8, 12, 16, 17, 20, 32, 33, 48, 64)
CHANNELS = ("one group", "one group", "one channel", "depthwise", "groups of one channel", "groups")
BATCHES: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((), ()), ((), ()), ((), ()), ((2,), (2,)), ((3,), (3,)), ((1,), (1,)), ((3,), (1,)),
    ((1,), (3,)), ((2, 3), (2, 3)), ((2, 2), (2, 2)), ((1, 1), (1, 1)), ((2, 3), (1, 1)),
    ((1, 1), (2, 3)), ((2, 3), (2, 1)), ((2, 1, 2), (2, 1, 2)), ((1, 1, 1), (1, 1, 1)),
)  # fmt: skip


def stream(
    kind: str, src: str, seed: int, each: int = 1, drawn: int = 4000
) -> Iterator[tuple[str, KernelCase]]:
    """Give cases of independent seeds, each with its name.

    Parameters
    ----------
    kind, src : str
        Of problem, and data type of its source.
    seed : int
        Of all.
    each : int
        Of what is drawn, that is given which has a trait that fewer than so many had before it, of
        those in its class.
    drawn : int
        How many problems are drawn in all.
    """
    numbers = {"convolution": 1, "deconvolution": 2, "inner_product": 3, "matmul": 4}
    had: Counter[tuple[str, str]] = Counter()
    for number in range(drawn):
        rng = np.random.default_rng([seed, numbers[kind], src == "s8", number])
        problem = _drawn(kind, rng)
        has = [(class_of(problem), trait) for trait in traits(problem)]
        if min(had[one] for one in has) >= each:
            continue
        had.update(has)
        matching = [one for one in VARIANTS if kind == "matmul" or not one.has_rows]
        variant = matching[int(rng.integers(len(matching)))]
        weight = 127 if rng.random() < 0.25 and not variant.ties else 62
        source = Source(_make, (problem,), {}, src, number, ties=variant.ties, weight=weight)
        yield f"{seed}: {number}, {variant.name}", source.case(variant)


def _make(drawn: Any, *, src: str, dst: str, bias: str | None = None) -> Any:
    """Return a drawn problem with other data types."""
    specs = {name: replace(getattr(drawn, name), dtype=of) for name, of in _types(src, dst)}
    return replace(drawn, **specs, bias=None if bias is None else _bias(drawn, bias))


def _types(src: str, dst: str) -> tuple[tuple[str, str], ...]:
    return ("src", src), ("dst", dst)


def _bias(drawn: Any, dtype: str) -> TensorSpec:
    if isinstance(drawn, MatMulProblem):
        return TensorSpec.dense((1,) * (drawn.dst.ndim - 1) + drawn.dst.dims[-1:], dtype)
    return TensorSpec.dense((drawn.oc,), dtype)


def _drawn(kind: str, rng: Rng) -> Any:
    draw = {"matmul": _matmul, "inner_product": _inner_product}.get(kind)
    while True:
        try:
            return draw(rng) if draw else _windowed(kind, rng)
        except ShapeError:  # a window that fits nowhere
            continue


def _pick(rng: Rng, *choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


def _matmul(rng: Rng) -> Any:
    one, other = _pick(rng, *BATCHES)
    m, n = _pick(rng, 1, 2, 5, 15, 16, 17, 40), _pick(rng, *OUTPUTS)
    k = _pick(rng, 1, 2, 3, 4, 7, 8, 15, 16, 20, 33, 64, 65, 100, 128)
    problem = MatMulProblem.of((*one, m, k), (*other, k, n), dst="s32")
    of = rng.random()
    if of < 0.2:
        problem = replace(problem, wei=TensorSpec.dense(problem.wei.dims, "s8"))
    elif of < 0.35:
        problem = replace(problem, wei=_transposed(problem.wei))
    of = rng.random()
    if of < 0.08:
        problem = replace(problem, src=_transposed(problem.src))
    elif of < 0.2:
        problem = replace(problem, src=_gapped(problem.src))
    elif of < 0.3:
        problem = replace(problem, dst=_gapped(problem.dst))
    elif of < 0.4:
        free = {name: TensorSpec(getattr(problem, name).dims, "u8") for name in ("src", "dst")}
        problem = replace(problem, **free)
    return problem


def _transposed(spec: TensorSpec) -> TensorSpec:
    *batch, rows, columns = spec.dims
    steps = TensorSpec.dense((*batch, columns, rows), spec.dtype).strides
    assert steps is not None
    return TensorSpec(spec.dims, spec.dtype, (*steps[:-2], steps[-1], steps[-2]))


def _gapped(spec: TensorSpec) -> TensorSpec:
    *batch, rows, columns = spec.dims
    return replace(spec, strides=TensorSpec.dense((*batch, rows, columns + 3), "u8").strides)


def _inner_product(rng: Rng) -> Any:
    space = _pick(rng, (), (), (1,), (3,), (2, 3), (1, 1), (3, 3), (2, 2, 2))
    ic, rows = _pick(rng, 1, *INPUTS, 100, 256), _pick(rng, 1, 2, 5, 15, 16, 17, 40)
    layout: Any = "dense" if rng.random() < 0.25 else "channels_last"
    problem = InnerProductProblem.of(
        (rows, ic, *space), _pick(rng, *OUTPUTS), dst="s32", layout=layout
    )
    return _left_open(problem) if rng.random() < 0.15 else problem


def _left_open(problem: Any) -> Any:
    free = {name: TensorSpec(getattr(problem, name).dims, "u8") for name in ("src", "dst")}
    return replace(problem, **free)


def _windowed(kind: str, rng: Rng) -> Any:
    rank, channels = _pick(rng, 1, 2, 2, 2, 3), _pick(rng, *CHANNELS)
    groups, ic, oc = 1, _pick(rng, *INPUTS), _pick(rng, *OUTPUTS)
    if channels == "one channel":
        ic = 1
    elif channels == "depthwise":
        groups, ic, oc = _pick(rng, *OUTPUTS[1:]), 1, 1
    elif channels == "groups of one channel":
        groups, ic, oc = _pick(rng, 2, 3, 4), 1, _pick(rng, *OUTPUTS[1:])
    elif channels == "groups":
        groups = _pick(rng, 2, 2, 3, 4)
    kernel = _kernel(rng, rank, small=ic > 32)
    dilation = [1 if rng.random() < 0.75 else 2] * rank
    if rng.random() < 0.1:
        dilation = [_pick(rng, 1, 2, 3) for _ in range(rank)]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    strides = [_pick(rng, 1, 1, 1, 2, 2, 3)] * rank
    if rng.random() < 0.15:
        strides = [_pick(rng, 1, 2, 3) for _ in range(rank)]
    lead = (groups, oc, ic) if groups > 1 or rng.random() < 0.08 else (oc, ic)
    problem = (ConvProblem if kind == "convolution" else DeconvProblem).of(
        (_pick(rng, 1, 1, 2, 3), groups * ic, *(_length(rng, far) for far in reach)),
        (*lead, *kernel),
        dst="s32",
        stride=strides,
        dilation=dilation,
        padding=_padding(rng, reach),
        layout="dense" if rng.random() < 0.15 else "channels_last",
    )
    if kind == "deconvolution" and max(strides) > 1 and rng.random() < 0.2:
        problem = _longer(problem, rng)
    of = rng.random()
    if of < 0.1:
        return _left_open(problem)
    if of < 0.18:  # channels of a wider image
        return replace(problem, src=_among(problem.src))
    return replace(problem, dst=_among(problem.dst)) if of < 0.26 else problem


def _kernel(rng: Rng, rank: int, *, small: bool) -> list[int]:
    of = rng.random()
    sizes = (2, 3, 3) if small or rank == 3 else (2, 3, 3, 3, 4, 5, 7)
    if of < 0.25:
        return [1] * rank
    if of < 0.4:
        return [_pick(rng, 1, *sizes) for _ in range(rank)]
    if of < 0.46 and not small:
        return [_pick(rng, *sizes) for _ in range(rank - 1)] + [_pick(rng, 8, 9, 11)]
    return [_pick(rng, *sizes)] * rank if of < 0.8 else [_pick(rng, *sizes) for _ in range(rank)]


def _length(rng: Rng, reach: int) -> int:
    of = rng.random()
    if of < 0.12:
        return 1
    if of < 0.25 and reach > 2:
        return int(rng.integers(2, reach))
    return reach + int(_pick(rng, 0, 1, 2, 3, 5, 9))


def _padding(rng: Rng, reach: list[int]) -> list[tuple[int, int]]:
    of = rng.random()
    if of < 0.4:
        return [(0, 0)] * len(reach)
    if of < 0.75:  # as usual, so that a stride of 1 keeps the length
        return [((far - 1) // 2, (far - 1) // 2) for far in reach]
    if of < 0.85:
        return [(int(rng.integers(far + 1)), int(rng.integers(far + 1))) for far in reach]
    return [(int(rng.integers(far)), int(rng.integers(far))) for far in reach]


def _longer(problem: Any, rng: Rng) -> Any:
    *lead, last = problem.dst.dims
    longer = (*lead, last + int(rng.integers(1, max(problem.stride[-1], 2))))
    return replace(problem, dst=TensorSpec.channels_last(longer, "s32"))


def _among(spec: TensorSpec) -> TensorSpec:
    count, channels, *space = spec.dims
    wide = TensorSpec.channels_last((count, channels + 5, *space), "u8")
    return replace(spec, strides=wide.strides)
