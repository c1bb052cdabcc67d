"""A residual block in INT8: two convolutions, the second adds the block's input before its relu.

The sum post-op reads what dst holds: a copy of the input, stored with its own scale and zero point.
Run it: ``python examples/residual_block.py``.
"""

from __future__ import annotations

import sys

import numpy as np

import pyonednn_q as pq

CHANNELS, SIZE = 64, 28
SRC_SCALE, MID_SCALE, DST_SCALE = 0.02, 0.03, 0.04


def prepare(
    rng: np.random.Generator, src_scale: float, post_op: pq.primitive.SumPostOp | None
) -> pq.native.Prepared:
    """Return a 3x3 convolution with scales per output channel and a relu, after a sum if given."""
    problem = pq.primitive.ConvProblem.of(
        (1, CHANNELS, SIZE, SIZE), (CHANNELS, CHANNELS, 3, 3), padding=1, bias="f32"
    )
    relu = pq.primitive.EltwisePostOp("relu")
    attr = pq.primitive.Attr(
        wei_scale=pq.primitive.Scale(mask=1),
        dst_scale=pq.primitive.Scale(),
        post_ops=(relu,) if post_op is None else (post_op, relu),
    )
    # Seven bits, so that no pair of products overflows on a CPU without VNNI.
    wei = rng.integers(-64, 65, (CHANNELS, CHANNELS, 3, 3)).astype(np.int8)
    wei_scale = rng.uniform(5e-4, 1e-3, CHANNELS)
    dst_scale = MID_SCALE if post_op is None else DST_SCALE
    return pq.prepare(
        problem,
        attr,
        wei=wei,
        bias=rng.normal(size=CHANNELS).astype(np.float32),
        values={"wei_scale": src_scale * wei_scale, "dst_scale": dst_scale},
    )


def main() -> int:
    """Run the block on random data and print what ran."""
    rng = np.random.default_rng(0)
    first = prepare(rng, SRC_SCALE, None)
    second = prepare(rng, MID_SCALE, pq.primitive.SumPostOp(scale=SRC_SCALE))

    src = first.empty("src")
    src[...] = rng.integers(0, 256, src.shape)
    out = src.copy(order="K")  # the residual; overwritten with the result
    second(first(src), out=out)

    for call in (first, second):
        sys.stdout.write(call.describe() + "\n")
    sys.stdout.write(f"dst: mean {out.mean():.2f}, {np.mean(out == 255):.1%} saturated\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
