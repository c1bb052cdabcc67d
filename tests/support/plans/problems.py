"""One small problem of every kind of primitive, and the facts of its layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.compose.primitive import PrimitiveFacts
from pyonednn_q.compose.problem import (
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
)
from support.plans import chains

if TYPE_CHECKING:
    from support.plans.runs import Layer

C = chains.CHANNELS
WEI_SCALE = np.resize([0.5, 0.25, 1.0], C)
BIAS = np.arange(C) - 6.5
KINDS = (
    "convolution", "1x1", "grouped", "depthwise", "deconvolution", "inner_product", "matmul"
)  # fmt: skip


def problem(kind: str, dst: str, src: str = "u8", *, bias: str | None = "f32") -> Any:
    types: dict[str, Any] = {"src": src, "dst": dst, "bias": bias}
    match kind:
        case "convolution":
            return ConvProblem.of((2, 8, 6, 5), (C, 8, 3, 3), padding=1, **types)
        case "1x1":
            return ConvProblem.of((2, 16, 5, 5), (C, 16, 1, 1), **types)
        case "grouped":
            return ConvProblem.of((2, 16, 6, 5), (2, C // 2, 8, 3, 3), padding=1, **types)
        case "depthwise":
            return ConvProblem.of((2, C, 6, 5), (C, 1, 1, 3, 3), padding=1, **types)
        case "deconvolution":
            return DeconvProblem.of((2, 8, 5, 4), (C, 8, 2, 2), strides=2, **types)
        case "inner_product":
            return InnerProductProblem.of((5, 24), C, **types)
        case "matmul":
            return MatMulProblem.of((7, 24), (24, C), **types)
        case "batched":
            return MatMulProblem.of((3, 5, 24), (3, 24, C), **types)
    raise AssertionError(kind)


def facts_of(layer: Layer, **more: Any) -> PrimitiveFacts:
    from pyonednn_q.native import runtime

    given: dict[str, Any] = {"src_scale": 0.5, "wei_scale": WEI_SCALE, "bias": BIAS} | more
    given = {"process": runtime.facts()} | given
    return PrimitiveFacts.of(layer.problem, wei=layer.wei, **given)
