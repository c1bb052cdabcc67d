"""Small networks trained on real data that ship inside packages, for benchmarks of accuracy.

    pip install scikit-learn scikit-image aeon pillow

    digits      scikit-learn: 8 x 8 images of handwritten digits, 10 classes
    textures    scikit-image: 12 x 12 patches of brick, grass and gravel; tested on other halves
    vowels      aeon: JapaneseVowels, 12 cepstral coefficients over 29 steps, 9 speakers

A convolutional network is trained on each in seconds.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]


class Data(NamedTuple):
    """Images (N, 1, H, W) and labels, to train on and held out."""

    train: Array
    train_labels: Array
    test: Array
    test_labels: Array


def digits() -> Data:
    """Load scikit-learn's digits; every fourth is held out."""
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    images = (pixels / 16.0).reshape(-1, 1, 8, 8).astype(np.float32)
    held = np.arange(len(images)) % 4 == 3
    return Data(images[~held], labels[~held], images[held], labels[held])


def textures() -> Data:
    """Cut patches of three photographs: upper halves to train on, lower ones held out."""
    from PIL import Image

    halves: list[list[Array]] = [[], []]
    for name in ("brick", "grass", "gravel"):
        picture = np.asarray(Image.open(folder("skimage") / "data" / f"{name}.png").convert("L"))
        for half, part in zip(halves, np.split(picture[:504, :504], 2), strict=True):
            patches = part.reshape(21, 12, 42, 12).swapaxes(1, 2).reshape(-1, 1, 12, 12)
            half.append((patches / 255.0).astype(np.float32))
    labels = np.repeat(np.arange(3), len(halves[0][0]))
    return Data(np.concatenate(halves[0]), labels, np.concatenate(halves[1]), labels)


def vowels() -> Data:
    """Read JapaneseVowels as the archive splits it, as images of coefficients over time."""
    parts = []
    for part in ("TRAIN", "TEST"):
        file = folder("aeon") / "datasets/data/JapaneseVowels" / f"JapaneseVowels_eq_{part}.ts"
        lines = file.read_text().lower().partition("@data")[2].split()
        rows = [line.split(":") for line in lines]
        values = [[row.split(",") for row in series[:-1]] for series in rows]
        labels = np.array([int(series[-1]) for series in rows]) - 1
        images = np.array(values, np.float32)[:, None, :, :28]
        parts += [images, labels]
    return Data(*parts)


def folder(package: str) -> Path:
    """Return where a package lies, without importing it."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        message = f"No module named {package!r}"
        raise ModuleNotFoundError(message)
    return Path(spec.submodule_search_locations[0])


class Parameters(NamedTuple):
    """Weights and biases of two convolutions and a dense layer."""

    wei1: Array
    bias1: Array
    wei2: Array
    bias2: Array
    wei3: Array
    bias3: Array


NAMES = ("conv1", "conv2", "dense")


def patches_of(src: Array) -> Array:
    """Return (N, H, W, C * 9) patches of 3 x 3 around every place."""
    padded = np.pad(src, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    n, c, h, w = src.shape
    return np.asarray(windows.transpose(0, 2, 3, 1, 4, 5).reshape(n, h, w, c * 9))


def pooled(src: Array) -> Array:
    """Return maxima of 2 x 2, without a last odd row or column."""
    n, c, h, w = src.shape
    even = src[:, :, : h // 2 * 2, : w // 2 * 2]
    return np.asarray(even.reshape(n, c, h // 2, 2, w // 2, 2).max(axis=(3, 5)))


def unpooled(grad: Array, src: Array, result: Array) -> Array:
    """Return the gradient of `pooled`: to every value that is its window's maximum."""
    n, c, h, w = src.shape
    out = np.zeros_like(src)
    even = src[:, :, : h // 2 * 2, : w // 2 * 2].reshape(n, c, h // 2, 2, w // 2, 2)
    spread = (even == result[:, :, :, None, :, None]) * grad[:, :, :, None, :, None]
    out[:, :, : h // 2 * 2, : w // 2 * 2] = spread.reshape(n, c, h // 2 * 2, w // 2 * 2)
    return out


def gradients(p: Parameters, images: Array, labels: Array) -> list[Array]:
    """Return the gradients of the mean cross-entropy in all parameters."""
    patches1 = patches_of(images)
    conv1 = np.maximum(patches1 @ p.wei1.reshape(len(p.wei1), -1).T + p.bias1, 0.0)
    conv1 = conv1.transpose(0, 3, 1, 2)
    pool1 = pooled(conv1)
    patches2 = patches_of(pool1)
    conv2 = np.maximum(patches2 @ p.wei2.reshape(len(p.wei2), -1).T + p.bias2, 0.0)
    conv2 = conv2.transpose(0, 3, 1, 2)
    pool2 = pooled(conv2)
    flat = pool2.reshape(len(pool2), -1)
    logits = flat @ p.wei3.T + p.bias3
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    grad = odds / odds.sum(axis=1, keepdims=True)
    grad[np.arange(len(labels)), labels] -= 1.0
    grad /= len(labels)
    grads = [grad.T @ flat, grad.sum(axis=0)]
    back = unpooled((grad @ p.wei3).reshape(pool2.shape), conv2, pool2) * (conv2 > 0.0)
    back = back.transpose(0, 2, 3, 1)
    rows = back.reshape(-1, back.shape[-1])
    wei2 = (rows.T @ patches2.reshape(len(rows), -1)).reshape(p.wei2.shape)
    grads = [wei2, rows.sum(axis=0), *grads]
    columns = (back @ p.wei2.reshape(len(p.wei2), -1)).reshape(*back.shape[:3], -1, 3, 3)
    n, h, w = back.shape[:3]
    padded = np.zeros((n, pool1.shape[1], h + 2, w + 2), np.float32)
    for i in range(3):
        for j in range(3):
            padded[:, :, i : i + h, j : j + w] += columns[..., i, j].transpose(0, 3, 1, 2)
    back = unpooled(padded[:, :, 1:-1, 1:-1], conv1, pool1) * (conv1 > 0.0)
    rows = back.transpose(0, 2, 3, 1).reshape(-1, back.shape[1])
    wei1 = (rows.T @ patches1.reshape(len(rows), -1)).reshape(p.wei1.shape)
    return [wei1, rows.sum(axis=0), *grads]


def trained(data: Data, epochs: int, seed: int = 0) -> Parameters:
    """Return the network after so many epochs of Adam."""
    rng = np.random.default_rng(seed)
    h, w = data.train.shape[2:]
    classes, flat = int(data.train_labels.max()) + 1, 32 * (h // 4) * (w // 4)
    shapes = [(16, 1, 3, 3), (16,), (32, 16, 3, 3), (32,), (classes, flat), (classes,)]
    values: list[Array] = [
        rng.normal(0, np.sqrt(2 / max(np.prod(s[1:]), 1)) * (len(s) > 1), s).astype(np.float32)
        for s in shapes
    ]
    mean: list[Array] = [np.zeros_like(v) for v in values]
    square: list[Array] = [np.zeros_like(v) for v in values]
    step = 0
    for epoch in range(epochs):
        rate = 2e-3 * (1 - epoch / epochs) + 1e-4
        for at in np.array_split(rng.permutation(len(data.train)), len(data.train) // 64):
            step += 1
            grads = gradients(Parameters(*values), data.train[at], data.train_labels[at])
            for i, grad in enumerate(grads):
                mean[i] = 0.9 * mean[i] + 0.1 * grad
                square[i] = 0.999 * square[i] + 0.001 * grad * grad
                up = mean[i] / (1 - 0.9**step)
                values[i] = values[i] - rate * up / (np.sqrt(square[i] / (1 - 0.999**step)) + 1e-8)
                values[i] = values[i].astype(np.float32)
    return Parameters(*values)


DATA_SETS = {"digits": digits, "textures": textures, "vowels": vowels}
