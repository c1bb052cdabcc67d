"""Handwritten digits in FP32 and in INT8: an example, to be read from top to bottom.

``python -m pyonednn_q demo`` fits a small network by scikit-learn (the optional extra ``demo``),
quantizes it by the ranges that its layers have on the training images, and runs both:

    conv1    1 -> 16, 3 x 3      its filters are principal components of image patches
    conv2    16 -> 64, 3 x 3     of patches of what conv1 makes
    dense1   64 x 8 x 8 -> 64    by MLPClassifier, as is
    dense2   64 -> 10            the logits
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

import pyonednn_q as pq
from pyonednn_q.bench.noise import BUSY, Load
from pyonednn_q.bench.summary import paired_ratio, sqnr_db, summarise
from pyonednn_q.native import runtime
from pyonednn_q.native.timing import Budget, interleaved, looped
from pyonednn_q.report.table import Column, Table
from pyonednn_q.shown import install

__all__ = ["run"]

Array: TypeAlias = npt.NDArray[Any]
Operators: TypeAlias = Sequence[pq.Conv | pq.InnerProduct]

PIXELS = pq.QParams(1 / 16, 0, "u8")  # pixels are whole numbers from 0 to 16: exact as codes
RELU = pq.Chain(pq.Eltwise("relu"))
_EPOCHS = 30


class Digits(NamedTuple):
    """Images (N, 1, 8, 8) of u8 pixels and the digits they show: to fit on, and held out."""

    train_images: Array
    train_labels: Array
    test_images: Array
    test_labels: Array


class Fitted(NamedTuple):
    """A float layer: the operator that runs it, its weights, and what else that is made of."""

    name: str
    operator: type[pq.Conv | pq.InnerProduct]
    wei: Array
    bias: Array
    options: dict[str, Any]


class Execution(NamedTuple):
    """Operators, and the tensors between them: images first, logits last."""

    operators: Operators
    tensors: list[Array]


def run(options: argparse.Namespace) -> int:
    """Run ``python -m pyonednn_q demo``, and return 0; or 2 without scikit-learn."""
    before = Load.now()
    try:
        digits = load_digits()
    except ImportError as error:
        wanted = f"demo: the demo needs scikit-learn: {install('demo')}"
        print(f"{wanted} ({error})", file=sys.stderr)
        return 2
    print(_platform_text(), flush=True)
    layers = fit(digits, options.seed)
    float32 = forward(float32_operators(layers), real(digits.test_images))
    int8 = forward(int8_operators(layers, digits.train_images), digits.test_images)
    print("", _accuracy_text(float32, int8, digits.test_labels), sep="\n")
    print("", _layers_text(layers, float32, int8), sep="\n")
    for batch in options.batch:
        print(f"\nBatch {batch}: medians of {options.rounds} samples, FP32 and INT8 in turn")
        print(_times_text(layers, float32, int8, batch, options.rounds), flush=True)
    elsewhere = sum(Load.now().since(before))
    if elsewhere > BUSY:
        print(f"\nBusy: {elsewhere:.0%} of the CPUs' time went to others; times include waiting")
    return 0


def load_digits() -> Digits:
    """Load scikit-learn's digits and hold out every fourth: a rule leaves no seed to choose."""
    from sklearn.datasets import load_digits as load

    pixels, labels = load(return_X_y=True)
    images = pixels.reshape(-1, 1, 8, 8).astype(np.uint8)
    held_out = np.arange(len(images)) % 4 == 3
    return Digits(images[~held_out], labels[~held_out], images[held_out], labels[held_out])


def real(pixels: Array) -> Array:
    """Return pixels as numbers from 0 to 1, exact in float32."""
    return PIXELS.dequantize(pixels).astype(np.float32)


def fit(digits: Digits, seed: int) -> list[Fitted]:
    """Fit conv1, conv2, dense1 and dense2 on the training images.

    Parameters
    ----------
    digits : Digits
        What is held out is not read.
    seed : int
        Seed of the first weights of the dense layers, and of the order in which they see images.

    Returns
    -------
    list of Fitted
        Equal bit by bit for one seed on one machine.
    """
    from sklearn.neural_network import MLPClassifier
    from threadpoolctl import threadpool_limits

    layers: list[Fitted] = []
    src = real(digits.train_images)
    # BLAS adds in another order with other numbers of threads.
    with threadpool_limits(1):
        for name, channels in (("conv1", 16), ("conv2", 64)):
            wei, bias = _principal_filters(src, channels)
            layers.append(Fitted(name, pq.Conv, wei, bias, {"padding": 1, "post": RELU}))
            src = forward(float32_operators(layers[-1:]), src).tensors[-1]
        spread = src.std()  # the optimiser likes numbers about 1; its weights take the factor back
        features = src.reshape(len(src), -1) / spread
        model = MLPClassifier((64,), alpha=1.0, batch_size=128, random_state=seed)
        for _ in range(_EPOCHS):
            model.partial_fit(features, digits.train_labels, classes=np.arange(10))
    hidden, last = (wei.T.astype(np.float32) for wei in model.coefs_)
    hidden_bias, last_bias = (bias.astype(np.float32) for bias in model.intercepts_)
    hidden = (hidden / spread).reshape(-1, *src.shape[1:])
    layers.append(Fitted("dense1", pq.InnerProduct, hidden, hidden_bias, {"post": RELU}))
    layers.append(Fitted("dense2", pq.InnerProduct, last, last_bias, {}))
    return layers


def _principal_filters(src: Array, channels: int) -> tuple[Array, Array]:
    """Make a 3 x 3 convolution of the principal components of the patches that it will see.

    Each component gives two channels, one for each sign: relu keeps what lies on either side of
    the mean. The fourth root of the variance evens the channels out half-way.

    Parameters
    ----------
    src : (N, C, H, W) float32
        Source of the layer.
    channels : int
        An even number.

    Returns
    -------
    wei : (channels, C, 3, 3) float32
    bias : (channels,) float32
        Subtracts the mean patch.
    """
    from sklearn.decomposition import PCA

    padded = np.pad(src.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    patches = windows.transpose(0, 2, 3, 1, 4, 5).reshape(-1, src.shape[1] * 9)
    pca = PCA(channels // 2, svd_solver="full").fit(patches)
    half = pca.components_ / pca.explained_variance_[:, np.newaxis] ** 0.25
    filters = np.concatenate([half, -half])
    wei = filters.reshape(channels, src.shape[1], 3, 3).astype(np.float32)
    return wei, (-filters @ pca.mean_).astype(np.float32)


def float32_operators(layers: Sequence[Fitted]) -> Operators:
    """Return operators that take floats and give floats."""
    return [layer.operator(layer.wei, layer.bias, **layer.options) for layer in layers]


def int8_operators(layers: Sequence[Fitted], images: Array) -> Operators:
    """Return operators with u8 codes between them and s8 weights; the last gives f32 logits.

    Parameters
    ----------
    layers : sequence of Fitted
        The float network.
    images : (N, 1, 8, 8) uint8
        On which ranges are measured: training images, as held-out ones must not choose a scale.
    """
    operators, src_q = [], PIXELS
    results = forward(float32_operators(layers), real(images)).tensors[1:]
    for layer, result in zip(layers, results, strict=True):
        dst_q = pq.quantize.qparams_from_range(0.0, float(result.max()), "u8")
        quantized = layer.operator.from_float(
            layer.wei,
            layer.bias,
            src_q=src_q,
            dst_q=None if layer is layers[-1] else dst_q,
            wei_levels=wei_levels(),
            **layer.options,
        )
        operators.append(quantized)
        src_q = dst_q
    return operators


def wei_levels() -> int:
    """Return how many values weights may have here.

    Without VNNI two products of u8 and s8 are added in 16 bits: 255 * (64 + 64) fits, 255 * (65 +
    64) does not.
    """
    return 255 if runtime.isa().has_vnni() else 129


def forward(operators: Operators, images: Array) -> Execution:
    """Run one layer after the other."""
    tensors = [images]
    for operator in operators:
        tensors.append(operator(tensors[-1]))
    return Execution(operators, tensors)


def _platform_text() -> str:
    """Say what the numbers depend on."""
    version, isa = ".".join(map(str, runtime.version())), runtime.isa().text()
    threads = runtime.get_num_threads()
    return (
        "Handwritten digits in FP32 and in INT8, both by oneDNN in this process:\n"
        f"oneDNN {version} ({runtime.threading_runtime()}), {isa}, {threads} threads;\n"
        f"INT8 is u8 activations and s8 weights within {wei_levels() // 2}, by output channel"
    )


def _accuracy_text(float32: Execution, int8: Execution, labels: Array) -> str:
    """Say how many digits each gets right, and how often they agree."""
    exact, codes = (each.tensors[-1].argmax(axis=1) for each in (float32, int8))
    counts = {
        "FP32 right": (exact == labels).sum(),
        "INT8 right": (codes == labels).sum(),
        "same answer": (exact == codes).sum(),
    }
    rows = [[name, f"{n} of {len(labels)}", f"{n / len(labels):.2%}"] for name, n in counts.items()]
    return _table(["held-out digits", "count", "share"], rows, left=1)


def _layers_text(layers: Sequence[Fitted], float32: Execution, int8: Execution) -> str:
    """Say which kernel runs each layer, and how close INT8 results are to those of FP32."""
    rows = []
    for index, layer in enumerate(layers):
        dst_q, codes = int8.operators[index].settings.dst_q, int8.tensors[index + 1]
        reals = codes if dst_q is None else dst_q.dequantize(codes)
        sqnr = f"{sqnr_db(float32.tensors[index + 1], reals):.1f}"
        for name, (operators, tensors), noise in (("FP32", float32, ""), ("INT8", int8, sqnr)):
            inspection = pq.inspect(operators[index], tensors[index].shape)
            attributes = inspection.attributes or "none"
            rows.append([f"{layer.name} {name}", inspection.implementation, attributes, noise])
    return _table(["layer", "kernel", "attributes (scale:mask)", "SQNR in dB"], rows, left=3)


def _times_text(
    layers: Sequence[Fitted], float32: Execution, int8: Execution, batch: int, rounds: int
) -> str:
    """Time the network and each of its layers, FP32 and INT8 in turn.

    Parameters
    ----------
    layers : sequence of Fitted
        For their names.
    float32, int8 : Execution
        What is timed, on the tensors that are there.
    batch : int
        Images a call, the first of those.
    rounds : int
        Samples of each.
    """
    parts = {"network": slice(None)}
    parts |= {layer.name: slice(index, index + 1) for index, layer in enumerate(layers)}
    loops = [
        looped(partial(forward, operators[part], tensors[part.start or 0][:batch]))
        for part in parts.values()
        for operators, tensors in (float32, int8)
    ]
    timed = [each.samples_us for each in interleaved(loops, Budget(rounds=rounds))]
    rows = []
    for name, above, below in zip(parts, timed[::2], timed[1::2], strict=True):
        middle = [f"{s.median:.1f} ± {s.spread / 2:.0%}" for s in map(summarise, (above, below))]
        ratio = paired_ratio(above, below)
        rows.append([name, *middle, str(ratio), f"{ratio.lo:.2f} to {ratio.hi:.2f}"])
    header = ["", "FP32 in us", "INT8 in us", "FP32 / INT8", "95 % interval"]
    return _table(header, rows, left=1)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> str:
    columns = [Column(name, right=index >= left) for index, name in enumerate(header)]
    return Table(columns, rows).text()
