"""From measured ranges to INT8: scales, integer weights and the folded weight scale.

Activations are u8 with one scale per tensor, weights s8 with one scale per output channel, bias
f32 in real units, no zero points. With `acc[oc] = sum(src_q * wei_q)` a layer computes

    x     = wei_scale[oc] * acc[oc] + bias[oc]    wei_scale folded: source scale times weight scale
    dst_q = saturate(rne(x / dst_scale))          u8; the last layer stores x itself, f32 logits

Folded in float64 and rounded to f32 once, the scale gives the same bits on every kernel. Relu needs
no post-op: the u8 store cuts at 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pyonednn_q.demo.digits import PIXEL_MAX
from pyonednn_q.demo.network import F32, Conv, Dense, MaxPool, Network, forward
from pyonednn_q.qparams import QParams

U8_MAX = 255
# Pixels are whole numbers from 0 to 16 already: the network's input is exact in u8.
PIXELS = QParams(1 / PIXEL_MAX, 0, "u8")


@dataclass(frozen=True, slots=True, eq=False)
class Int8Layer:
    """One layer's integers and what they stand for.

    Attributes
    ----------
    layer : Conv or Dense
        The float layer that this one replaces; its bias is used as it is.
    wei : int8
        Same shape as the float weights.
    src_q, wei_q : QParams
        Of source and weights, the latter per output channel.
    dst_q : QParams or None
        None when the result stays f32.
    """

    layer: Conv | Dense
    wei: npt.NDArray[np.int8]
    src_q: QParams
    wei_q: QParams
    dst_q: QParams | None

    @property
    def wei_scale(self) -> F32:
        """Source scale times weight scale: what oneDNN gets, one per output channel."""
        return np.multiply(self.src_q.scale, self.wei_q.scale, dtype=np.float64).astype(np.float32)


Int8Network: TypeAlias = tuple[Int8Layer | MaxPool, ...]


def wei_qmax(*, has_vnni: bool) -> int:
    """Return the largest weight magnitude that a CPU multiplies without saturation.

    Without VNNI two u8 x s8 products are added in s16: 255 * (64 + 64) fits, 255 * (65 + 64) not.
    """
    return 127 if has_vnni else 64


def measure_ranges(network: Network, images: F32) -> tuple[float, ...]:
    """Return the largest value that each layer gives on `images`.

    Parameters
    ----------
    network : Network
        The float layers.
    images : (N, 1, H, W) float32
        Training images: held-out ones must not choose a scale.

    Returns
    -------
    tuple of float
        One maximum per layer.
    """
    maxima = []
    src = images
    for layer in network:
        src = forward(layer, src)
        maxima.append(float(src.max()))
    return tuple(maxima)


def wei_qparams(layer: Conv | Dense, qmax: int) -> QParams:
    """Return symmetric scales, one per output channel, that map the largest weight to `qmax`.

    Parameters
    ----------
    layer : Conv or Dense
        Float weights.
    qmax : int
        The largest magnitude that an integer weight may have.

    Returns
    -------
    QParams
        Along axis 0 of conv weights, axis 1 of (K, N).
    """
    axis = 0 if isinstance(layer, Conv) else 1
    others = tuple(i for i in range(layer.wei.ndim) if i != axis)
    largest = np.abs(layer.wei.astype(np.float64)).max(axis=others)
    # A channel of zeros has no scale of its own; any positive one keeps it zero.
    return QParams(np.where(largest > 0, largest / qmax, 1.0), 0, "s8", axis)


def quantise(network: Network, maxima: tuple[float, ...], qmax: int) -> Int8Network:
    """Give every layer its integers.

    Parameters
    ----------
    network : Network
        The float layers.
    maxima : tuple of float
        From `measure_ranges`.
    qmax : int
        From `wei_qmax`.

    Returns
    -------
    Int8Network
        As many layers; pools are passed through, because the largest value has the largest code.
    """
    layers: list[Int8Layer | MaxPool] = []
    src_q = PIXELS
    for layer, largest in zip(network, maxima, strict=True):
        if isinstance(layer, MaxPool):
            layers.append(layer)
            continue
        wei_q = wei_qparams(layer, qmax)
        wei = wei_q.quantize(layer.wei)
        if isinstance(layer, Dense) and not layer.relu:
            layers.append(Int8Layer(layer, wei, src_q, wei_q, None))
            continue
        # oneDNN takes f32 scales: rounded here, the next layer folds the very same number.
        dst_q = QParams(float(np.float32(largest / U8_MAX)), 0, "u8")
        layers.append(Int8Layer(layer, wei, src_q, wei_q, dst_q))
        src_q = dst_q
    return tuple(layers)
