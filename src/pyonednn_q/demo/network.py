"""A small network as values, and what it computes in float.

The layers are conv, max pool and dense. The float pass here serves the fit and the measured ranges;
the demo's FP32 results come from oneDNN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

F32: TypeAlias = npt.NDArray[np.float32]

KERNEL = 3
PADDING = 1


@dataclass(frozen=True, slots=True, eq=False)
class Conv:
    """A 3 x 3 convolution with padding 1 and stride 1, then relu.

    Attributes
    ----------
    name : str
        What the report calls the layer.
    wei : (OC, IC, 3, 3) float32
    bias : (OC,) float32
    """

    name: str
    wei: F32
    bias: F32


@dataclass(frozen=True, slots=True, eq=False)
class MaxPool:
    """The largest value of each 2 x 2 window; the order of values is all it needs."""

    name: str
    kernel: int = 2


@dataclass(frozen=True, slots=True, eq=False)
class Dense:
    """A dense layer, with or without relu.

    Attributes
    ----------
    name : str
        What the report calls the layer.
    wei : (K, N) float32
        Rows run over (H, W, C): a channels-last image flattens to them without a copy.
    bias : (N,) float32
    relu : bool
        False on the last layer, whose results are the logits.
    """

    name: str
    wei: F32
    bias: F32
    relu: bool


Layer: TypeAlias = Conv | MaxPool | Dense
Network: TypeAlias = tuple[Layer, ...]


def flatten(images: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Turn (N, C, H, W) into (N, H*W*C); zero-copy when the memory is channels-last."""
    return images.transpose(0, 2, 3, 1).reshape(len(images), -1) if images.ndim == 4 else images


def patches(images: F32) -> F32:
    """Return every padded 3 x 3 patch as a row.

    Parameters
    ----------
    images : (N, C, H, W) float32

    Returns
    -------
    (N*H*W, C*9) float32
        Columns in the order of convolution weights: channel, row, column.
    """
    edge = (PADDING, PADDING)
    padded = np.pad(images, ((0, 0), (0, 0), edge, edge))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (KERNEL, KERNEL), axis=(2, 3))
    rows = windows.transpose(0, 2, 3, 1, 4, 5)
    flat: F32 = rows.reshape(-1, images.shape[1] * KERNEL * KERNEL)
    return flat


def forward(layer: Layer, src: F32) -> F32:
    """Run one layer in float32 with NumPy.

    Parameters
    ----------
    layer : Layer
        What to compute.
    src : (N, C, H, W) or (N, K) float32

    Returns
    -------
    float32
        (N, OC, H, W) for a conv, (N, C, H/2, W/2) for a pool, (N, OC) for a dense layer.
    """
    dst: F32
    if isinstance(layer, MaxPool):
        count, channels, height, width = src.shape
        side = layer.kernel
        blocks = src.reshape(count, channels, height // side, side, width // side, side)
        dst = blocks.max(axis=(3, 5))
    elif isinstance(layer, Conv):
        count, _, height, width = src.shape
        flat = patches(src) @ layer.wei.reshape(len(layer.wei), -1).T + layer.bias
        flat = np.maximum(flat, np.float32(0))
        dst = flat.reshape(count, height, width, -1).transpose(0, 3, 1, 2)
    else:
        dst = flatten(src).astype(np.float32, copy=False) @ layer.wei + layer.bias
        dst = np.maximum(dst, np.float32(0)) if layer.relu else dst
    return dst
