"""Calls whose exact values crowd around ties, so that every order of float32 operations shows."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyonednn_q.qparams import QParams
from support.calls.call import Call
from support.oracle_numbers import INTEGER_RANGES, numpy_dtype

OC = 16
_DIMS = {
    "conv": ((2, 8, 9, 8), (OC, 8, 3, 3)),
    "deconv": ((2, 8, 5, 6), (OC, 8, 3, 3)),
    "inner_product": ((64, 40), (OC, 40)),
    "matmul": ((64, 40), (40, OC)),
}
# Weights are even: without VNNI, kernels for s8 sources halve them.
# src_scale · wei_scale / dst_scale is within a rounding or two of a small odd number over this.
_PARTS = 32


def tied(
    kind: str,
    seed: int,
    src: str = "u8",
    wei: str = "s8",
    dst: str = "u8",
    bias: str | None = None,
    src_point: int | None = None,
) -> Call:
    """Draw a call with float32 scales; one value in some thirty lies next to a tie.

    Parameters
    ----------
    kind : str
        conv and deconv have a padding of 1.
    seed : int
        Each third one has one weight scale for all channels. Each fourth has powers of two for
        scales of src and dst: then ties are exact, as float32 is, and only rules differ.
    src, wei, dst : str
        u8 or s8. Zero points are drawn, those of weights are the middle of their range.
    bias : {"f32", "s32"}, optional
        Whole accumulator units; as real numbers, or as they are.
    src_point : int, optional
        The zero point of the source, if it is not to be drawn.
    """
    rng = np.random.default_rng([seed, len(kind), ord(src[0]), ord(wei[0])])
    src_dims, wei_dims = _DIMS[kind]
    src_scale = np.float32(rng.uniform(0.005, 0.05))
    dst_scale = np.float32(rng.uniform(0.05, 0.2))
    if seed % 4 == 0:
        src_scale, dst_scale = np.float32(2.0**-6), np.float32(2.0**-3)
    parts = rng.choice([1, 3, 5, 7], OC) if seed % 3 else np.full(OC, rng.choice([1, 3, 5, 7]))
    scale = (parts / _PARTS * float(dst_scale) / float(src_scale)).astype(np.float32)
    units = rng.integers(-2000, 2000, OC)
    middle = 128 if wei == "u8" else 0
    point = int(rng.integers(0, 100)) if src_point is None else src_point
    biases: dict[str | None, Any] = {
        None: None,
        "s32": units.astype(np.int32),
        "f32": (units * (scale.astype(np.float64) * float(src_scale))).astype(np.float32),
    }
    return Call(
        kind,
        rng.integers(*INTEGER_RANGES[src], src_dims, endpoint=True).astype(numpy_dtype(src)),
        (middle + 2 * rng.integers(-2, 3, wei_dims)).astype(numpy_dtype(wei)),
        biases[bias],
        src_q=QParams(float(src_scale), point, src),
        wei_q=QParams(scale.astype(np.float64), middle, wei, axis=-1 if kind == "matmul" else 0),
        dst_q=QParams(
            float(dst_scale),
            int(rng.integers(90, 140) if dst == "u8" else rng.integers(-20, 20)),
            dst,
        ),
        window={"padding": 1} if kind in {"conv", "deconv"} else {},
    )
