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
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

import pyonednn_q as pq
from pyonednn_q.bench.noise import BUSY, Load
from pyonednn_q.bench.summary import paired_ratio, sqnr_db, summarise
from pyonednn_q.native import runtime
from pyonednn_q.native.timing import Budget, interleaved, looped
from pyonednn_q.report.progress import counted
from pyonednn_q.report.table import Column, Table
from pyonednn_q.shown import install

__all__ = ["run"]

Array: TypeAlias = npt.NDArray[Any]
Layer: TypeAlias = pq.Conv | pq.InnerProduct
Layers: TypeAlias = dict[str, Layer]

PIXELS = pq.QParams(1 / 16, 0, "u8")  # pixels are whole numbers from 0 to 16: exact as codes
RELU = pq.Chain(pq.Eltwise("relu"))
_EPOCHS = 30


def run(options: argparse.Namespace) -> int:
    """Run ``python -m pyonednn_q demo``, and return 0; or 2 without scikit-learn."""
    before = Load.now()
    try:
        images, labels, is_held_out = load_digits()
    except ImportError as error:
        wanted = f"demo: the demo needs scikit-learn: {install('demo')}"
        print(f"{wanted} ({error})", file=sys.stderr)
        return 2
    version, isa = ".".join(map(str, runtime.version())), runtime.isa().text()
    threads = f"({runtime.threading_runtime()}), {isa}, {runtime.get_num_threads()} threads"
    print("Handwritten digits in FP32 and in INT8, both by oneDNN in this process:")
    print(f"oneDNN {version} {threads};")
    print(f"INT8 is u8 activations and s8 weights within {wei_levels() // 2}, by output channel")
    sys.stdout.flush()
    train, test = images[~is_held_out], images[is_held_out]
    float32 = fit(train, labels[~is_held_out], options.seed)
    int8 = quantized(float32, train)
    exact, codes = forward(float32.values(), real(test)), forward(int8.values(), test)
    print("", _accuracy_text(exact[-1], codes[-1], labels[is_held_out]), sep="\n")
    print("", _layers_text(float32, exact, int8, codes), sep="\n")
    for batch in options.batch:
        print(f"\nBatch {batch}: medians of {options.rounds} samples, FP32 and INT8 in turn")
        print(_times_text(float32, exact, int8, codes, batch, options.rounds), flush=True)
    elsewhere = sum(Load.now().since(before))
    if elsewhere > BUSY:
        print(f"\nBusy: {elsewhere:.0%} of the CPUs' time went to others; times include waiting")
    return 0


def load_digits() -> tuple[Array, Array, Array]:
    """Return scikit-learn's digits: images (N, 1, 8, 8) of u8, labels, and which are held out.

    That is every fourth: a rule leaves no seed to choose.
    """
    from sklearn.datasets import load_digits as load

    pixels, labels = load(return_X_y=True)
    images = pixels.reshape(-1, 1, 8, 8).astype(np.uint8)
    return images, labels, np.arange(len(images)) % 4 == 3


def real(pixels: Array) -> Array:
    """Return pixels as numbers from 0 to 1, exact in float32."""
    return PIXELS.dequantize(pixels).astype(np.float32)


def fit(images: Array, labels: Array, seed: int) -> Layers:
    """Return layers of floats, equal bit by bit for one seed on one machine.

    Parameters
    ----------
    images, labels : ndarray
        Data to fit on.
    seed : int
        Seed of the first weights of the dense layers, and of the order in which they see images.
    """
    from sklearn.neural_network import MLPClassifier
    from threadpoolctl import threadpool_limits

    layers: Layers = {}
    src = real(images)
    # BLAS adds in another order with other numbers of threads.
    with threadpool_limits(1):
        for name, channels in (("conv1", 16), ("conv2", 64)):
            layers[name] = pq.Conv(*_principal_filters(src, channels), padding=1, post=RELU)
            src = layers[name](src)
        spread = src.std()  # the optimiser likes numbers about 1; its weights take the factor back
        features = src.reshape(len(src), -1) / spread
        model = MLPClassifier((64,), alpha=1.0, batch_size=128, random_state=seed)
        for _ in counted(range(_EPOCHS), "epochs of the fit"):
            model.partial_fit(features, labels, classes=np.arange(10))
    hidden, last = (wei.T.astype(np.float32) for wei in model.coefs_)
    hidden_bias, last_bias = (bias.astype(np.float32) for bias in model.intercepts_)
    hidden = (hidden / spread).reshape(-1, *src.shape[1:])
    layers["dense1"] = pq.InnerProduct(hidden, hidden_bias, post=RELU)
    layers["dense2"] = pq.InnerProduct(last, last_bias)
    return layers


def _principal_filters(src: Array, channels: int) -> tuple[Array, Array]:
    """Return weights and bias of a 3 x 3 convolution: principal components of patches of src.

    Each component gives two channels, one for each sign: relu keeps what lies on either side of
    the mean, which the bias subtracts. The fourth root of the variance evens the channels out
    half-way.
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


def quantized(float32: Layers, images: Array) -> Layers:
    """Return layers with u8 codes between them and s8 weights; the last gives f32 logits.

    Parameters
    ----------
    float32 : dict
        The float network.
    images : (N, 1, 8, 8) uint8
        Images for the ranges: training images, as held-out ones must not choose a scale.
    """
    layers: Layers = {}
    src_q = PIXELS
    results = forward(float32.values(), real(images))[1:]
    for (name, layer), dst in zip(float32.items(), results, strict=True):
        dst_q = pq.quantize.qparams_from_range(0.0, float(dst.max()), "u8")
        layers[name] = type(layer).from_float(
            layer.weights.values,
            layer.bias,
            src_q=src_q,
            dst_q=None if name == "dense2" else dst_q,
            wei_levels=wei_levels(),
            post=layer.settings.post,
            **layer.window,
        )
        src_q = dst_q
    return layers


def wei_levels() -> int:
    """Return the number of levels that weights may have here.

    Without VNNI two products of u8 and s8 are added in 16 bits: 255 * (64 + 64) fits, 255 * (65 +
    64) does not.
    """
    return 255 if runtime.isa().has_vnni() else 129


def forward(layers: Iterable[Layer], images: Array) -> list[Array]:
    """Run one layer after the other; return the images and what each layer makes."""
    tensors = [images]
    for layer in layers:
        tensors.append(layer(tensors[-1]))
    return tensors


def _accuracy_text(exact: Array, codes: Array, labels: Array) -> str:
    """Say how many digits each gets right, and how often they agree."""
    float32, int8 = exact.argmax(axis=1), codes.argmax(axis=1)
    counts = {
        "FP32 right": (float32 == labels).sum(),
        "INT8 right": (int8 == labels).sum(),
        "same answer": (float32 == int8).sum(),
    }
    rows = [[name, f"{n} of {len(labels)}", f"{n / len(labels):.2%}"] for name, n in counts.items()]
    return _table(["held-out digits", "count", "share"], rows, left=1)


def _layers_text(
    float32: Layers, exact: Sequence[Array], int8: Layers, codes: Sequence[Array]
) -> str:
    """Say which kernel runs each layer, and how close INT8 results are to those of FP32."""
    rows = []
    for at, name in enumerate(counted(float32, "inspecting layers")):
        dst_q, dst = int8[name].settings.dst_q, codes[at + 1]
        reals = dst if dst_q is None else dst_q.dequantize(dst)
        sqnr = f"{sqnr_db(exact[at + 1], reals):.1f}"
        for kind, layers, src, noise in (("FP32", float32, exact, ""), ("INT8", int8, codes, sqnr)):
            inspection = pq.inspect(layers[name], src[at].shape)
            attributes = inspection.attributes or "none"
            rows.append([f"{name} {kind}", inspection.implementation, attributes, noise])
    return _table(["layer", "kernel", "attributes (scale:mask)", "SQNR in dB"], rows, left=3)


def _times_text(
    float32: Layers,
    exact: Sequence[Array],
    int8: Layers,
    codes: Sequence[Array],
    batch: int,
    rounds: int,
) -> str:
    """Time the network and each of its layers on the first images, FP32 and INT8 in turn."""
    parts = {"network": slice(None)}
    parts |= {name: slice(at, at + 1) for at, name in enumerate(float32)}
    rows = []
    for name, part in counted(parts.items(), "timing"):
        loops = [
            looped(partial(forward, [*layers.values()][part], src[part.start or 0][:batch]))
            for layers, src in ((float32, exact), (int8, codes))
        ]
        above, below = (each.samples_us for each in interleaved(loops, Budget(rounds=rounds)))
        middle = [f"{s.median:.1f} ± {s.spread / 2:.0%}" for s in map(summarise, (above, below))]
        ratio = paired_ratio(above, below)
        rows.append([name, *middle, str(ratio), f"{ratio.lo:.2f} to {ratio.hi:.2f}"])
    header = ["", "FP32 in us", "INT8 in us", "FP32 / INT8", "95 % interval"]
    return _table(header, rows, left=1)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> str:
    columns = [Column(name, right=index >= left) for index, name in enumerate(header)]
    return Table(columns, rows).text()
