"""Rules 1 to 11 of the specification where they apply: what is left of a chain.

A key begins with the number of its rule.
"""

from __future__ import annotations

import numpy as np

from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.steps import Affine, Binary, Clip, Eltwise, PRelu, Sum
from support.definitions.composing import (
    BIAS,
    BLOCK,
    BLOCKED,
    HIGH,
    LOW,
    ONES,
    POSITIVE,
    SHIFT,
    SIGNED,
    SLOPE,
    along,
    bent,
    block,
    case,
    fq,
    levels_of,
)

APPLIED = {
    "1, crops per channel become one clip": case(
        fq(0, 256),
        left=["eltwise_round", "eltwise_clip:0.0:255.0"],
        meaning=lambda x, _: levels_of(x, 0, 256),
    ),
    "1, bounds that a factor reverses are swapped": case(
        Affine(SIGNED), fq(0, 256),
        left=["eltwise_round", "eltwise_clip:0.0:255.0"],
        meaning=lambda x, _: levels_of(along(SIGNED) * x, 0, 256),
    ),
    "2, no rounding before a residual": case(
        fq(0, 256, ONES), Sum(), fq(0, 256, ONES),
        left=["eltwise_clip:0.0:255.0", "sum:1.0:0"],
        meaning=lambda x, before: np.clip(x, 0, 255) + before,
        dst="u8", options={"policy": "fast"},
    ),
    "3, an even output shift is inside the round": case(
        BLOCK, fq(-128, 256, 0.5),
        left=[BLOCKED, "eltwise_linear:2.0:0.0", "eltwise_round", "eltwise_clip:-128.0:127.0"],
        meaning=lambda x, _: levels_of(block(x), -128, 256, 0.5),
    ),
    "3, and then the store takes it": case(
        BLOCK, fq(-128, 256, 0.5),
        left=[BLOCKED],
        meaning=lambda x, _: levels_of(block(x), -128, 256, 0.5),
        dst="s8",
    ),
    "4, u8 rounds and clips": case(
        fq(0, 256), left=[], meaning=lambda x, _: levels_of(x, 0, 256), dst="u8"
    ),
    "4, s8 rounds and clips": case(
        fq(-128, 256), left=[], meaning=lambda x, _: levels_of(x, -128, 256), dst="s8"
    ),
    "5, a negligible shift is dropped": case(
        BLOCK, FakeQuantize(-0.001, 254.999, 0, 255).chain(),
        left=[BLOCKED],
        meaning=lambda x, _: block(x),
        dst="u8", options={"policy": "fast"},
    ),
    "6, shifts that drifted apart are one again": case(
        BLOCK, FakeQuantize(-1 - 1e-5 * POSITIVE, 254 - 1e-5 * POSITIVE, 0, 255).chain(),
        left=[BLOCKED],
        meaning=lambda x, _: block(x) + 1,
        dst="u8", options={"policy": "fast"},
    ),
    "7, first: weight scale": case(
        Affine(SIGNED), left=[], meaning=lambda x, _: along(SIGNED) * x
    ),
    "7, behind relu: weight scale": case(
        Eltwise("relu", 0.25), Affine(POSITIVE),
        left=["prelu:0"],
        meaning=lambda x, _: along(POSITIVE) * bent(x, [0.25]),
    ),
    "7, behind prelu: weight scale": case(
        PRelu(SLOPE), Affine(POSITIVE),
        left=["prelu:2"],
        meaning=lambda x, _: along(POSITIVE) * bent(x, SLOPE),
    ),
    "7, negative behind leaky relu: weight scale, the slope inverted": case(
        Eltwise("relu", 0.25), Affine(-2.0),
        left=["prelu:0"],
        meaning=lambda x, _: -2 * bent(x, [0.25]),
    ),
    "7, negative behind relu: weight scale, max becomes min": case(
        Eltwise("relu"), Affine(-0.5),
        left=["eltwise_clip:-inf:0.0"],
        meaning=lambda x, _: -0.5 * np.maximum(x, 0),
    ),
    "7, behind a sum: weight scale and sum's": case(
        Sum(0.5), Affine(2.0),
        left=["sum:1.0:0"],
        meaning=lambda x, before: 2 * (x + 0.5 * before),
        dst="u8",
    ),
    "7, last: dst scale": case(
        BLOCK, Affine(2.0), left=[BLOCKED], meaning=lambda x, _: 2 * block(x), dst="u8"
    ),
    "8, an addition per tensor is one post-op": case(
        BLOCK, Binary("add", 3.0),
        left=[BLOCKED, "binary_add of one number"],
        meaning=lambda x, _: block(x) + 3,
    ),
    "8, an addition per channel is binary": case(
        BLOCK, Binary("add", SHIFT),
        left=[BLOCKED, "binary_add"],
        meaning=lambda x, _: block(x) + along(SHIFT),
    ),
    "9, scale and shift are one linear": case(
        BLOCK, Affine(2.0), Affine(1.0, 3.0),
        left=[BLOCKED, "eltwise_linear:2.0:3.0"],
        meaning=lambda x, _: 2 * block(x) + 3,
    ),
    "10, per tensor: clip": case(
        BLOCK, Clip(-3, 6),
        left=[BLOCKED, "eltwise_clip:-3.0:6.0"],
        meaning=lambda x, _: np.clip(block(x), -3, 6),
    ),
    "10, mixed: max and an open clip": case(
        BLOCK, Clip(LOW, 6),
        left=[BLOCKED, "binary_max", "eltwise_clip:-inf:6.0"],
        meaning=lambda x, _: np.clip(block(x), along(LOW), 6),
    ),
    "10, mixed: an open clip and min": case(
        BLOCK, Clip(-3, HIGH),
        left=[BLOCKED, "eltwise_clip:-3.0:inf", "binary_min"],
        meaning=lambda x, _: np.clip(block(x), -3, along(HIGH)),
    ),
    "10, per channel: max, then min": case(
        BLOCK, Clip(LOW, HIGH),
        left=[BLOCKED, "binary_max", "binary_min"],
        meaning=lambda x, _: np.clip(block(x), along(LOW), along(HIGH)),
    ),
    "11, a bias is multiplied together with the weights": case(
        Affine(SIGNED, 1.5),
        left=[],
        meaning=lambda x, _: along(SIGNED) * x + 1.5,
        options={"bias": BIAS},
    ),
}  # fmt: skip
