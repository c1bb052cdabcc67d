"""TPU-MLIR's convolutions and inner products, symmetric, with zero points, per channel.

Accepted: codes equal those of the compiler's own form: products of whole codes, padding that holds
the zero point, and a bias that has −zero_point · Σ weights in it.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from pyonednn_q.ops.conv import Conv
from pyonednn_q.ops.dense import InnerProduct
from pyonednn_q.qparams import QParams
from support.definitions import requantization

pytestmark = pytest.mark.executed


def finished(acc: np.ndarray, src_q: QParams, wei_scale: list[float], dst_q: QParams) -> list[int]:
    """Multiplier and shift of each channel, half up, then the zero point, in whole numbers."""
    rule = requantization.tpu_mlir(2**31 - 1)
    scales = [Fraction(scale) for scale in (float(src_q.scale), float(dst_q.scale))]
    made = []
    for (_, channel, *_), value in np.ndenumerate(acc):
        wei = Fraction(wei_scale[channel])
        made.append(rule(int(value), scales[0], wei, scales[1], int(dst_q.zero_point), (-128, 127)))
    return made


@pytest.mark.parametrize(("src_point", "dst_point"), [(0, 0), (-17, 23)])
@pytest.mark.parametrize("per_channel", [False, True])
def test_conv(per_channel: bool, src_point: int, dst_point: int) -> None:
    rng = np.random.default_rng([src_point + 20, per_channel])
    src = rng.integers(-128, 128, (2, 6, 5, 5)).astype(np.int8)
    wei = rng.integers(-63, 64, (4, 6, 3, 3)).astype(np.int8)
    real_bias = rng.normal(0, 40, 4)
    scales = [0.013, 0.031, 0.007, 0.022] if per_channel else [0.013] * 4
    src_q, dst_q = QParams(0.03, src_point, "s8"), QParams(0.7, dst_point, "s8")
    wei_q = QParams(scales, 0, "s8", axis=0) if per_channel else QParams(0.013, 0, "s8")
    bias = np.rint(real_bias / (np.array(scales) * 0.03)).astype(np.int32)
    conv = Conv(
        wei,
        bias,
        src_q=src_q,
        wei_q=wei_q,
        dst_q=dst_q,
        padding=1,
        requantize="tpu_mlir",
    )
    # As compiled: the border holds the zero point, and the bias makes up for it everywhere.
    padded = np.pad(src.astype(int), [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=src_point)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    compiled = bias - src_point * wei.astype(int).sum(axis=(1, 2, 3))
    acc = np.einsum("nihwkl,oikl->nohw", windows, wei.astype(int)) + compiled.reshape(1, -1, 1, 1)
    assert conv(src).ravel().tolist() == finished(acc, src_q, scales, dst_q)


def test_inner_product() -> None:
    rng = np.random.default_rng(8)
    src = rng.integers(-128, 128, (6, 40)).astype(np.int8)
    wei = rng.integers(-63, 64, (4, 40)).astype(np.int8)
    src_q, wei_q = QParams(0.03, 11, "s8"), QParams(0.02, 0, "s8")
    dst_q = QParams(0.9, -5, "s8")
    call = InnerProduct(wei, src_q=src_q, wei_q=wei_q, dst_q=dst_q, requantize="tpu_mlir")
    acc = (src.astype(int) - 11) @ wei.astype(int).T
    assert call(src).ravel().tolist() == finished(acc, src_q, [0.02] * 4, dst_q)
