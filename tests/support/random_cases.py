"""Seeded random problems in the style of a composer, with clean fills.

Attributes are what a composer emits: per-channel weight scales, common zero points, residuals,
affine and FakeQuantize chains, an activation. Every case can be rebuilt from its seed alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.post_ops import (
    BinaryPostOp,
    EltwisePostOp,
    PReluPostOp,
    SumPostOp,
)
from support import fills, parity, parity_post_ops
from support.cases import Case

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyonednn_q.primitive.post_ops import PostOp

_KINDS = ("convolution", "deconvolution", "matmul", "inner_product")
_SHARES = (0.5, 0.15, 0.25, 0.1)
_DST = ("u8", "s8", "s32", "f32")
_DST_SHARES = (0.4, 0.25, 0.1, 0.25)
_LAST = ("tanh", "elu", "logistic", "swish", "gelu_tanh", "gelu_erf", "mish", "soft_relu", "exp")


def random_case(rng: np.random.Generator, *, kind: str | None = None) -> Case:
    """Draw one problem with attributes and a clean fill; its name rebuilds it."""
    return from_seed(int(rng.integers(2**63)), kind=kind)


def from_seed(seed: int, *, kind: str | None = None) -> Case:
    """Build the case of a seed.

    When the numbers cannot stay exact through the whole chain, the chain is cut from its end:
    every case is one that only a single answer (or a measured kernel error) fits.
    """
    rng = np.random.default_rng(seed)
    of = _problem(kind or str(rng.choice(_KINDS, p=_SHARES)), rng)
    attr = _attr(of, rng)
    chain = _chain(of, rng)
    name = f"random_cases.from_seed({seed}{'' if kind is None else f', kind={kind!r}'})"
    for length in range(len(chain), -1, -1):
        tried = replace(attr, post_ops=chain[:length])
        try:
            return Case(name, of, tried, fills.clean(of, tried, rng))
        except fills.NotCleanError:
            continue
    msg = f"even without a chain nothing is exact: {name}"
    raise fills.NotCleanError(msg)


def stream(seed: int, count: int, *, kind: str | None = None) -> Iterator[Case]:
    """Yield ``count`` cases of independent seeds."""
    for own in np.random.default_rng(seed).integers(2**63, size=count):
        yield from_seed(int(own), kind=kind)


def _one_of(rng: np.random.Generator, *choices: int) -> int:
    return int(rng.choice(np.array(choices)))


def _problem(kind: str, rng: np.random.Generator) -> parity.DenseProblem:
    dtypes: dict[str, Any] = {
        "src": str(rng.choice(parity.SRC_DTYPES)),
        "dst": str(rng.choice(_DST, p=_DST_SHARES)),
        "bias": "f32" if rng.random() < 0.6 else None,
    }
    args: tuple[Any, ...]
    if kind == "matmul":
        args = _matmul_dims(rng)
    elif kind == "inner_product":
        space = tuple(int(n) for n in rng.integers(1, 5, size=_one_of(rng, 0, 0, 2, 2, 1, 3)))
        src = (int(rng.integers(1, 9)), _one_of(rng, 1, 3, 8, 16, 24), *space)
        args = (src, int(rng.integers(1, 50)))
    else:
        src, wei, shape = _conv_dims(kind, rng)
        args, dtypes = (src, wei), {**dtypes, **shape}
    made: parity.DenseProblem = parity.PROBLEMS[kind].of(*args, **dtypes)
    return made


def _matmul_dims(rng: np.random.Generator) -> tuple[tuple[int, ...], tuple[int, ...]]:
    m, k, n = (int(rng.integers(1, high)) for high in (40, 65, 49))
    batch = tuple(int(b) for b in rng.integers(1, 4, size=_one_of(rng, 0, 0, 1, 1, 2)))
    other = tuple(1 if len(batch) == 1 and rng.random() < 0.3 else b for b in batch)
    return (*batch, m, k), (*other, k, n)


def _conv_dims(
    kind: str, rng: np.random.Generator
) -> tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]:
    rank = _one_of(rng, 1, 2, 2, 2, 2, 3)
    kernel = tuple(_one_of(rng, 1, 2, 3, 3, 3, 5 if rank < 3 else 2) for _ in range(rank))
    strides = tuple(_one_of(rng, 1, 1, 1, 2) for _ in range(rank))
    dilation = tuple(_one_of(rng, 1, 1, 1, 1, 2) if k > 1 else 1 for k in kernel)
    padding = tuple(
        (int(rng.integers(0, k)), int(rng.integers(0, k)))
        if kind == "convolution"
        else (k // 2,) * 2
        for k in kernel
    )
    reach = tuple((k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True))
    space = tuple(r + int(rng.integers(1, 9 if rank < 3 else 4)) for r in reach)
    groups, ic, oc = _channels(rng)
    head = (groups, oc // groups, ic // groups) if groups > 1 else (oc, ic)
    shape = {"stride": strides, "dilation": dilation, "padding": padding}
    return (int(rng.integers(1, 4)), ic, *space), (*head, *kernel), shape


def _channels(rng: np.random.Generator) -> tuple[int, int, int]:
    """Draw groups, input and output channels: plain, depthwise or grouped by 16."""
    style = rng.random()
    if style < 0.15:
        groups = _one_of(rng, 8, 16, 24, 33)
        return groups, groups, groups
    if style < 0.3:
        groups = 2
        return groups, groups * 16, groups * _one_of(rng, 8, 16)
    return 1, _one_of(rng, 1, 3, 8, 16, 16, 19, 32), _one_of(rng, 1, 5, 8, 16, 16, 32, 37)


def _attr(of: parity.DenseProblem, rng: np.random.Generator) -> Attr:
    points: dict[str, Any] = {
        f"{name}_zero_point": ZeroPoint()
        for name, share in (("src", 0.4), ("wei", 0.15), ("dst", 0.4))
        if name in _takes_zero_point(of.kind) and rng.random() < share
    }
    mask = parity.channel_mask(of) if rng.random() < 0.7 else 0
    return Attr(
        src_scale=Scale() if rng.random() < 0.4 else None,
        wei_scale=Scale(mask=mask) if rng.random() < 0.95 else None,
        dst_scale=Scale() if rng.random() < 0.7 else None,
        **points,
    )


def _takes_zero_point(kind: str) -> set[str]:
    return {name for points in parity.ZERO_POINTS[kind] for name in points}


def _chain(of: parity.DenseProblem, rng: np.random.Generator) -> tuple[PostOp, ...]:
    """Zero to three building blocks, then perhaps a transcendental activation at the end."""
    blocks = [_block(of, rng) for _ in range(_one_of(rng, 0, 1, 1, 2, 2, 3))]
    chain = [step for block in blocks for step in block]
    if rng.random() < 0.15 and of.dst.dtype == "f32":
        alg = str(rng.choice(_LAST))
        chain.append(EltwisePostOp(alg, *parity_post_ops.ELTWISE[alg]))
    sums = [i for i, step in enumerate(chain) if isinstance(step, SumPostOp)]
    # A second sum with other parameters leaves the fast kernels; one is what a composer emits.
    return tuple(step for i, step in enumerate(chain) if i not in sums[1:])


def _block(of: parity.DenseProblem, rng: np.random.Generator) -> tuple[PostOp, ...]:
    per_channel = parity_post_ops.src1_spec(of, "per_channel", "f32")
    mul, add = BinaryPostOp("mul", per_channel), BinaryPostOp("add", per_channel)
    rnd, relu = EltwisePostOp("round"), EltwisePostOp("relu", float(rng.choice([0.0, 0.0, 0.25])))
    clip = EltwisePostOp("clip", float(rng.integers(-20, 1)), float(rng.integers(4, 40)))
    slope, shift = 2.0 ** int(rng.integers(-1, 2)), float(rng.integers(-8, 9)) / 2
    full = str(rng.choice(["f32", "u8", "s8"]))
    broadcast = str(rng.choice(["scalar", "per_channel", "full"]))
    alg = str(rng.choice(parity_post_ops.BINARY))
    signed = of.dst.dtype != "f32" and rng.random() < 0.5
    blocks: tuple[tuple[PostOp, ...], ...] = (
        (relu,),
        (clip,),
        (EltwisePostOp("linear", slope, shift),),
        (EltwisePostOp("linear", slope, shift), rnd, clip, EltwisePostOp("linear", 0.5, shift)),
        (mul, add),
        (mul, add, rnd, clip),
        (SumPostOp(slope, 2 if signed else 0),),
        (SumPostOp(1.0), relu),
        (BinaryPostOp("add", parity_post_ops.src1_spec(of, "full", full)),),
        (BinaryPostOp(alg, parity_post_ops.src1_spec(of, broadcast, "f32")),),
        (PReluPostOp(parity_post_ops.prelu_mask(of, "per_channel")),),
        (EltwisePostOp("hardswish", 0.25, 0.5),),
        (EltwisePostOp("abs"),),
    )
    return blocks[int(rng.integers(len(blocks)))]
