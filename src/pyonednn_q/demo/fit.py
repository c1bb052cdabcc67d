"""Fitting the network: filters by principal components, the dense layers by gradient descent.

Everything is seeded and runs on one BLAS thread, so two fits on one machine are equal bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pyonednn_q.demo import extra
from pyonednn_q.demo.digits import PIXEL_MAX, Digits
from pyonednn_q.demo.network import (
    F32,
    KERNEL,
    Conv,
    Dense,
    MaxPool,
    Network,
    flatten,
    forward,
    patches,
)

CONV1_CHANNELS = 16
CONV2_CHANNELS = 64
HIDDEN = 64
EPOCHS = 30
LAYERS = 5
STEPS = 2 + EPOCHS
SEED = 0


def real_images(pixels: npt.NDArray[np.uint8]) -> F32:
    """Scale pixel values to [0, 1]; sixteenths are exact in float32."""
    images: F32 = pixels.astype(np.float32) / np.float32(PIXEL_MAX)
    return images


def fit_conv(name: str, src: F32, channels: int) -> Conv:
    """Learn filters from the principal components of the 3 x 3 patches of `src`.

    Each component gives two channels, one per sign: relu then keeps what lies on either side of
    the mean. Dividing by the fourth root of the variance evens the channels out half-way.

    Parameters
    ----------
    name : str
        Name of the new layer.
    src : (N, C, H, W) float32
        What the layer will see.
    channels : int
        An even number of output channels.

    Returns
    -------
    Conv
        Weights of shape (channels, C, 3, 3) and a bias that subtracts the mean patch.
    """
    rows = patches(src).astype(np.float64)
    mean = rows.mean(axis=0)
    centred = rows - mean
    variance, components = np.linalg.eigh(centred.T @ centred / len(rows))
    largest = slice(None, -channels // 2 - 1, -1)
    half = components.T[largest] / variance[largest, np.newaxis] ** 0.25
    # The sign of an eigenvector is arbitrary: make its largest entry positive.
    peaks = half[np.arange(len(half)), np.abs(half).argmax(axis=1)]
    half = half * np.sign(peaks)[:, np.newaxis]
    flat = np.concatenate([half, -half])
    wei = flat.reshape(channels, src.shape[1], KERNEL, KERNEL)
    return Conv(name, wei.astype(np.float32), (-flat @ mean).astype(np.float32))


def fit_dense(
    src: F32, labels: npt.NDArray[np.int64], tick: Callable[[], None]
) -> tuple[Dense, Dense]:
    """Fit a hidden relu layer and the logits with scikit-learn's MLPClassifier.

    Parameters
    ----------
    src : (N, K) float32
        Flattened features.
    labels : (N,) int64
        The right answers.
    tick : callable
        Called after each epoch.

    Returns
    -------
    tuple of Dense
        The hidden layer and the logits.
    """
    neural = extra.load("sklearn.neural_network")
    # Unit spread suits the optimiser; the factor goes into the weights afterwards.
    spread = src.std()
    model = neural.MLPClassifier((HIDDEN,), alpha=1.0, batch_size=128, random_state=SEED)
    for _ in range(EPOCHS):
        model.partial_fit(src / spread, labels, classes=np.arange(10))
        tick()
    (wei1, wei2), (bias1, bias2) = model.coefs_, model.intercepts_
    return (
        Dense("dense1", (wei1 / spread).astype(np.float32), bias1.astype(np.float32), relu=True),
        Dense("dense2", wei2.astype(np.float32), bias2.astype(np.float32), relu=False),
    )


def fit(digits: Digits, tick: Callable[[], None] = lambda: None) -> Network:
    """Fit conv1, conv2, a max pool and two dense layers on the training images.

    Parameters
    ----------
    digits : Digits
        Only its training part is read.
    tick : callable, optional
        Called `STEPS` times, for a progress bar.

    Returns
    -------
    Network
        conv1 1->16, conv2 16->64, pool 2 x 2, dense1 1024->64, dense2 64->10.
    """
    threads = extra.load("threadpoolctl")
    # The order of BLAS's sums depends on its threads; one thread keeps the fit reproducible.
    with threads.threadpool_limits(1):
        src = real_images(digits.train_images)
        conv1 = fit_conv("conv1", src, CONV1_CHANNELS)
        tick()
        src = forward(conv1, src)
        conv2 = fit_conv("conv2", src, CONV2_CHANNELS)
        tick()
        pool = MaxPool("pool")
        features = flatten(forward(pool, forward(conv2, src))).astype(np.float32, copy=False)
        return (conv1, conv2, pool, *fit_dense(features, digits.train_labels, tick))
