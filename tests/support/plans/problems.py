"""One small problem of every kind of primitive, and the facts of its layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.primitive.dense_facts import PrimitiveFacts
from pyonednn_q.primitive.problem import (
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
)
from support.plans import chains

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.plans.runs import Layer

C = chains.CHANNELS
WEI_SCALE = np.resize([0.5, 0.25, 1.0], C)
BIAS = np.arange(C) - 6.5

_CONV, _DECONV, _MATMUL = ConvProblem.of, DeconvProblem.of, MatMulProblem.of

PROBLEMS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "convolution": lambda t: _CONV((2, 8, 6, 5), (C, 8, 3, 3), padding=1, **t),
    "1x1": lambda t: _CONV((2, 16, 5, 5), (C, 16, 1, 1), **t),
    "unpadded": lambda t: _CONV((2, 8, 6, 7), (C, 8, 3, 2), stride=(2, 1), **t),
    "dilated": lambda t: _CONV((1, 8, 7, 7), (C, 8, 3, 3), dilation=2, padding=2, **t),
    "1d": lambda t: _CONV((2, 8, 9), (C, 8, 3), padding=1, **t),
    "3d": lambda t: _CONV((1, 8, 4, 5, 4), (C, 8, 2, 3, 2), padding=1, **t),
    "grouped": lambda t: _CONV((2, 16, 6, 5), (2, C // 2, 8, 3, 3), padding=1, **t),
    "depthwise": lambda t: _CONV((2, C, 6, 5), (C, 1, 1, 3, 3), padding=1, **t),
    "deconvolution": lambda t: _DECONV((2, 8, 5, 4), (C, 8, 2, 2), stride=2, **t),
    "deconvolution_s1": lambda t: _DECONV((2, 8, 5, 4), (C, 8, 3, 3), padding=1, **t),
    "deconvolution_s3": lambda t: _DECONV((1, 8, 4, 4), (C, 8, 3, 3), stride=3, padding=1, **t),
    "inner_product": lambda t: InnerProductProblem.of((5, 24), C, **t),
    "matmul": lambda t: _MATMUL((7, 24), (24, C), **t),
    "batched": lambda t: _MATMUL((3, 5, 24), (3, 24, C), **t),
    "shared": lambda t: _MATMUL((3, 7, 24), (1, 24, C), **t),
}
KINDS = tuple(PROBLEMS)
# One of each sort: for what is tried with much else on each.
USUAL_KINDS = (
    "convolution", "1x1", "grouped", "depthwise", "deconvolution", "inner_product", "matmul"
)  # fmt: skip


def problem(
    kind: str, dst: str, src: str = "u8", wei: str = "s8", *, bias: str | None = "f32"
) -> Any:
    return PROBLEMS[kind]({"src": src, "wei": wei, "dst": dst, "bias": bias})


def facts_of(layer: Layer, **more: Any) -> PrimitiveFacts:
    from pyonednn_q.native import runtime

    given: dict[str, Any] = {"src_scale": 0.5, "wei_scale": WEI_SCALE, "bias": BIAS} | more
    given = {"process": runtime.facts()} | given
    return PrimitiveFacts.of(layer.problem, wei=layer.wei, **given)
