"""Random 8-bit problems whose sums saturate: any kind, shape and layout that a kernel may take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.errors import ShapeError
from pyonednn_q.primitive.attr import Attr, ZeroPoint
from pyonednn_q.primitive.problem import (
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
)
from support import pair_machine

if TYPE_CHECKING:
    from collections.abc import Iterator

KINDS = ("convolution", "deconvolution", "inner_product", "matmul")
SPACES: tuple[tuple[int, ...], ...] = ((), (2,), (2, 3), (1, 1), (3, 3), (2, 2, 2))

# Whose sums are of 386 to 390 products: an odd half of them lies beyond a block.
WINDOWS: tuple[dict[str, Any], ...] = (
    {"channels": 386, "kernel": (1, 1)},
    {"channels": 386, "kernel": (1, 1), "stride": 2},
    {"channels": 386, "kernel": (1, 1), "padding": 1},
    {"channels": 386, "kernel": (1, 1), "stride": (1, 9), "padding": (2, 0)},
    {"channels": 130, "kernel": (3, 1)},
    {"channels": 193, "kernel": (1, 2), "padding": 1, "stride": 2},
)


@dataclass(frozen=True)
class SumCase:
    """A bare problem with an s32 destination, its arrays, and the source's zero point."""

    problem: Any
    src: Any
    wei: Any
    zero_point: int

    @property
    def attr(self) -> Attr:
        return Attr(src_zero_point=ZeroPoint()) if self.zero_point else Attr()

    @property
    def values(self) -> dict[str, Any]:
        if not self.zero_point:
            return {}
        return {"src_zero_point": np.array([self.zero_point], np.int32)}


def stream(kind: str, src: str, count: int, seed: int) -> Iterator[SumCase]:
    """Yield cases of independent seeds."""
    for number in range(count):
        yield _case(kind, src, np.random.default_rng([seed, number]))


def one_column(window: dict[str, Any], groups: int) -> SumCase:
    """Return a u8 convolution of one output channel a group, with large values."""
    rng = np.random.default_rng(3)
    shape = dict(window)
    channels, kernel = shape.pop("channels"), shape.pop("kernel")
    lead = (groups, 1, channels) if groups > 1 else (1, channels)
    dims, wei_dims = (2, groups * channels, 7, 7), (*lead, *kernel)
    problem = ConvProblem.of(dims, wei_dims, src="u8", dst="s32", **shape)
    src = rng.integers(128, 256, dims).astype(np.uint8)
    return SumCase(problem, src, pair_machine.full_range(rng, wei_dims, "s8"), 0)


def _case(kind: str, src: str, rng: np.random.Generator) -> SumCase:
    while True:
        try:
            problem = _problem(kind, src, rng)
            break
        except ShapeError:
            continue
    lo, hi = (0, 255) if src == "u8" else (-128, 127)
    zero_point = 0
    if kind != "inner_product" and rng.random() < 0.25:
        zero_point = int(rng.integers(lo, hi, endpoint=True))
    if rng.random() < 0.3:
        # Sources at one end and large weights of mixed signs: as many saturated pairs as there are.
        values = np.full(problem.src.dims, hi).astype(np.uint8 if src == "u8" else np.int8)
        wei = rng.choice([127, 126, 101, 65, 64, -64, -65, -127, -128], problem.wei.dims)
        return SumCase(problem, values, wei.astype(np.int8), zero_point)
    values = pair_machine.full_range(rng, problem.src.dims, src)
    return SumCase(
        problem, values, pair_machine.full_range(rng, problem.wei.dims, "s8"), zero_point
    )


def _pick(rng: np.random.Generator, *choices: int) -> int:
    return int(rng.choice(np.array(choices)))


def _problem(kind: str, src: str, rng: np.random.Generator) -> Any:
    layout: Any = "dense" if rng.random() < 0.25 else "channels_last"
    if kind == "matmul":
        batch = ((), (), (2,), (2, 2))[_pick(rng, 0, 1, 2, 3)]
        m, n = _pick(rng, 1, 2, 7, 16, 33), _pick(rng, 1, 3, 8, 16, 17, 48)
        k = _pick(rng, 1, 2, 3, 5, 8, 17, 33, 64, 100, 257, 262, 386, 511, 1025)
        return MatMulProblem.of((*batch, m, k), (*batch, k, n), src=src, dst="s32")
    if kind == "inner_product":
        space = SPACES[int(rng.integers(len(SPACES)))]
        ic = _pick(rng, 1, 2, 3, 4, 5, 8, 16, 17, 64, 129, 193)
        dims, oc = (_pick(rng, 1, 2, 5), ic, *space), _pick(rng, 1, 3, 8, 16, 33)
        return InnerProductProblem.of(dims, oc, src=src, dst="s32", layout=layout)
    rank, groups = _pick(rng, 1, 2, 2, 2, 3), _pick(rng, 1, 1, 1, 2, 4)
    ic, oc = _pick(rng, 1, 1, 2, 3, 4, 5, 8, 16, 17, 386), _pick(rng, 1, 2, 3, 8, 16, 17)
    if rng.random() < 0.15:
        groups, ic, oc = _pick(rng, 3, 8, 16), 1, 1
    # Sums stay below 2^24, where those that go through float32 are exact.
    kernel = [_pick(rng, 1, 2, 3, 3, 5) if ic < 386 else 1 for _ in range(rank)]
    dilation = [_pick(rng, 1, 1, 1, 2) for _ in range(rank)]
    size = [(k - 1) * d + 1 + _pick(rng, 0, 1, 3, 6) for k, d in zip(kernel, dilation, strict=True)]
    lead = (groups, oc, ic) if groups > 1 or rng.random() < 0.2 else (oc, ic)
    of = ConvProblem if kind == "convolution" else DeconvProblem
    return of.of(
        (_pick(rng, 1, 2), groups * ic, *size),
        (*lead, *kernel),
        src=src,
        dst="s32",
        stride=[_pick(rng, 1, 1, 2, 3) for _ in range(rank)],
        dilation=dilation,
        padding=[(_pick(rng, 0, 0, 1, 2), _pick(rng, 0, 0, 1, 2)) for _ in range(rank)],
        layout=layout,
    )
