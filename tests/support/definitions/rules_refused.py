"""Rules 1 to 11 of the specification where they must not apply, and why.

A key begins with the number of its rule.
"""

from __future__ import annotations

import numpy as np

from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.steps import Affine, Binary, Clip, Eltwise, PRelu, Round, Sum
from support.definitions.composing import (
    BLOCK,
    BLOCKED,
    HIGH,
    LOW,
    ONES,
    POSITIVE,
    SIGNED,
    SLOPE,
    along,
    bent,
    block,
    case,
    fq,
    levels_of,
)
from support.plans.chains import CHANNELS as C

DRIFTED, APART = (0.25 + unit * np.resize([1, 2, 3], C) for unit in (2.0**-16, 2.0**-12))
NOTHING = (Affine(), Binary("mul", ONES), Binary("add", 0 * ONES), Affine(ONES, 0 * ONES))

MUST_NOT = {
    "1, the clip would become per channel": case(
        Clip(-3, 6), Affine(SIGNED), Round(),
        left=["eltwise_clip:-3.0:6.0", "binary_mul", "eltwise_round"],
        meaning=lambda x, _: np.rint(along(SIGNED) * np.clip(x, -3, 6)),
        refused="the clip would become per channel",
    ),
    "2, unless asked for": case(
        fq(0, 256, ONES), Sum(), fq(0, 256, ONES),
        left=["eltwise_round", "eltwise_clip:0.0:255.0", "sum:1.0:0"],
        meaning=lambda x, before: np.rint(np.clip(x, 0, 255)) + before,
        dst="u8",
    ),
    "2, one level of the first is three of the second": case(
        fq(0, 256, ONES), Sum(), fq(0, 256, 0.25 * ONES),
        left=["eltwise_round", "eltwise_clip:0.0:255.0", "sum:1.0:0"],
        meaning=lambda x, before: 4 * (np.rint(np.clip(x, 0, 255)) + before),
        refused="the result could move by 3 levels",
        dst="u8", options={"policy": "fast"},
    ),
    "3, an odd output shift": case(
        BLOCK, fq(-127, 255, 0.5),
        left=[BLOCKED, "eltwise_linear:2.0:127.0", "eltwise_round", "eltwise_clip:0.0:254.0",
              "binary_add of one number"],
        meaning=lambda x, _: levels_of(block(x), -127, 255, 0.5),
        refused="shift is odd, -127: ties would go the other way",
    ),
    "3, an odd output shift before a store": case(
        BLOCK, fq(-127, 255, 0.5),
        left=[BLOCKED, "eltwise_linear:2.0:127.0", "eltwise_round", "eltwise_relu"],
        meaning=lambda x, _: levels_of(block(x), -127, 255, 0.5),
        refused="shift is odd, -127: ties would go the other way",
        dst="s8",
    ),
    "3, an odd shift right behind the round": case(
        BLOCK,
        Affine(2.0),
        Round(),
        Affine(1.0, -127.0),
        left=[BLOCKED, "eltwise_linear:2.0:0.0", "eltwise_round", "binary_add of one number"],
        meaning=lambda x, _: np.rint(2 * block(x)) - 127,
        refused="shift is odd, -127: ties would go the other way",
    ),
    "4, 255 levels in u8": case(
        fq(0, 255),
        left=["eltwise_clip:-inf:254.0"],
        meaning=lambda x, _: levels_of(x, 0, 255),
        dst="u8",
    ),
    "4, 16 levels in u8": case(
        fq(0, 16),
        left=["eltwise_clip:-inf:15.0"],
        meaning=lambda x, _: levels_of(x, 0, 16),
        dst="u8",
    ),
    "4, levels of s8 in u8": case(
        fq(-128, 256),
        left=["eltwise_clip:-inf:127.0"],
        meaning=lambda x, _: levels_of(x, -128, 256),
        dst="u8",
    ),
    "4, levels of u8 in s8": case(
        fq(0, 256), left=["eltwise_relu"], meaning=lambda x, _: levels_of(x, 0, 256), dst="s8"
    ),
    "4, a float dst": case(
        fq(0, 256),
        left=["eltwise_round", "eltwise_clip:0.0:255.0"],
        meaning=lambda x, _: levels_of(x, 0, 256),
    ),
    "4, an output linear is left": case(
        fq(0, 256, out=0.5),
        left=["eltwise_round", "eltwise_clip:-inf:255.0"],
        meaning=lambda x, _: 0.5 * levels_of(x, 0, 256),
        refused="scale is 0.5: only 1 and -1 pass a round",
        dst="u8",
    ),
    "5, unless asked for": case(
        BLOCK, FakeQuantize(-0.25, 254.75, 0, 255).chain(),
        left=[BLOCKED, "binary_add of one number"],
        meaning=lambda x, _: block(x) + 0.25,
        dst="u8",
    ),
    "5, a shift of more than 1e-5 of the range": case(
        BLOCK, FakeQuantize(-(2.0**-8), 255 - 2.0**-8, 0, 255).chain(),
        left=[BLOCKED, "binary_add of one number"],
        meaning=lambda x, _: block(x) + 2.0**-8,
        dst="u8", options={"policy": "fast"},
    ),
    "6, unless asked for": case(
        BLOCK, FakeQuantize(-DRIFTED, 255 - DRIFTED, 0, 255).chain(),
        left=[BLOCKED, "binary_add"],
        meaning=lambda x, _: block(x) + along(DRIFTED),
        dst="u8",
    ),
    "6, shifts more than 1e-4 apart": case(
        BLOCK, FakeQuantize(-APART, 255 - APART, 0, 255).chain(),
        left=[BLOCKED, "binary_add"],
        meaning=lambda x, _: block(x) + along(APART),
        refused="levels from their middle",
        dst="u8", options={"policy": "fast"},
    ),
    "7, behind what lets nothing pass": case(
        BLOCK, Affine(POSITIVE),
        left=[BLOCKED, "binary_mul"],
        meaning=lambda x, _: along(POSITIVE) * block(x),
        refused="hardswish passes neither a scale nor a shift",
    ),
    "7, negative behind a prelu of slope below 0": case(
        PRelu(-SLOPE), Affine(SIGNED),
        left=["prelu:2", "binary_mul"],
        meaning=lambda x, _: along(SIGNED) * bent(x, -SLOPE),
        refused="scale is negative in channel 1 and slope -0.5 is not above 0",
    ),
    "7, of both signs behind relu": case(
        Eltwise("relu"), Affine(SIGNED),
        left=["eltwise_relu", "binary_mul"],
        meaning=lambda x, _: along(SIGNED) * np.maximum(x, 0),
        refused="it would not save a constant",  # s*max(x, 0) has bounds per channel
    ),
    "7, per channel behind a sum": case(
        Sum(0.5), Affine(POSITIVE),
        left=["sum:0.5:0", "binary_mul"],
        meaning=lambda x, before: along(POSITIVE) * (x + 0.5 * before),
        refused="sum has one scale for all channels",
    ),
    "7, last in a float dst": case(
        BLOCK, Affine(2.0),
        left=[BLOCKED, "eltwise_linear:2.0:0.0"],
        meaning=lambda x, _: 2 * block(x),
    ),
    "7, last, per channel": case(
        BLOCK, Affine(POSITIVE),
        left=[BLOCKED, "binary_mul"],
        meaning=lambda x, _: along(POSITIVE) * block(x),
        refused="dst takes one for the tensor",
        dst="u8",
    ),
    "7, last, negative": case(
        BLOCK, Affine(-2.0),
        left=[BLOCKED, "eltwise_linear:-2.0:0.0"],
        meaning=lambda x, _: -2 * block(x),
        refused="scale -2 is not above 0",
        dst="s8",
    ),
    "8, times 1 and plus 0": case(
        *NOTHING, BLOCK, *NOTHING, left=[BLOCKED], meaning=lambda x, _: block(x)
    ),
    "9, the store takes scale and whole shift": case(
        BLOCK, Affine(2.0, 3.0), left=[BLOCKED], meaning=lambda x, _: 2 * block(x) + 3, dst="u8"
    ),
    "9, a scale per channel": case(
        BLOCK, Affine(POSITIVE, 3.0),
        left=[BLOCKED, "binary_mul", "binary_add of one number"],
        meaning=lambda x, _: along(POSITIVE) * block(x) + 3,
    ),
    "10, both sides open": case(BLOCK, Clip(), left=[BLOCKED], meaning=lambda x, _: block(x)),
    "10, the store closes both sides": case(
        BLOCK, Clip(-5, 300), left=[BLOCKED], meaning=lambda x, _: block(x), dst="u8"
    ),
    "10, the store closes one side": case(
        BLOCK, Clip(LOW, HIGH),
        left=[BLOCKED, "binary_min"],
        meaning=lambda x, _: np.clip(block(x), along(LOW), along(HIGH)),
        dst="u8",
    ),
}  # fmt: skip
