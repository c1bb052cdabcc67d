"""What quantizing costs in accuracy: FP32, INT8 by every estimator, and mixed under a time bound.

    pip install scikit-learn scikit-image aeon pillow
    python benchmarks/quantize_accuracy.py

Real data that ship inside those packages, a convolutional network trained here in seconds:

    digits      scikit-learn: 8 x 8 images of handwritten digits, 10 classes
    textures    scikit-image: 12 x 12 patches of brick, grass and gravel; tested on other halves
    vowels      aeon: JapaneseVowels, 12 cepstral coefficients over 29 steps, 9 speakers

A data set whose package is missing is skipped by name.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import ml_dtypes
import numpy as np

import pyonednn_q as pq
from pyonednn_q.bench.layer_times import layer_times
from pyonednn_q.native import runtime

Array: TypeAlias = np.ndarray[Any, Any]
RELU = pq.Chain(pq.Eltwise("relu"))
BF16 = np.dtype(ml_dtypes.bfloat16)
BATCH = 256  # images of a timed call


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
    found = [grad.T @ flat, grad.sum(axis=0)]
    back = unpooled((grad @ p.wei3).reshape(pool2.shape), conv2, pool2) * (conv2 > 0.0)
    back = back.transpose(0, 2, 3, 1)
    rows = back.reshape(-1, back.shape[-1])
    wei2 = (rows.T @ patches2.reshape(len(rows), -1)).reshape(p.wei2.shape)
    found = [wei2, rows.sum(axis=0), *found]
    columns = (back @ p.wei2.reshape(len(p.wei2), -1)).reshape(*back.shape[:3], -1, 3, 3)
    n, h, w = back.shape[:3]
    padded = np.zeros((n, pool1.shape[1], h + 2, w + 2), np.float32)
    for i in range(3):
        for j in range(3):
            padded[:, :, i : i + h, j : j + w] += columns[..., i, j].transpose(0, 3, 1, 2)
    back = unpooled(padded[:, :, 1:-1, 1:-1], conv1, pool1) * (conv1 > 0.0)
    rows = back.transpose(0, 2, 3, 1).reshape(-1, back.shape[1])
    wei1 = (rows.T @ patches1.reshape(len(rows), -1)).reshape(p.wei1.shape)
    return [wei1, rows.sum(axis=0), *found]


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


def layers_of(p: Parameters, ranges: dict[str, Any], bits: dict[str, int]) -> dict[str, Any]:
    """Return an operator for each layer, in FP32, bf16 or INT8 inside; float in and out."""
    levels = 255 if runtime.isa().has_vnni() else 129
    options: dict[str, dict[str, Any]] = {
        "conv1": {"padding": 1, "post": RELU},
        "conv2": {"padding": 1, "post": RELU},
    }
    operators: dict[str, Any] = {}
    for at, name in enumerate(NAMES):
        kind: Any = pq.InnerProduct if name == "dense" else pq.Conv
        wei, bias = p[2 * at], p[2 * at + 1]
        if bits[name] == 32:
            operators[name] = kind(wei, bias, **options.get(name, {}))
        elif bits[name] == 16:
            operators[name] = in_bf16(kind(wei.astype(BF16), bias, **options.get(name, {})))
        else:
            lo, hi = (float(end) for end in ranges[name])
            operators[name] = kind.from_float(
                wei, bias, src_q=(lo, hi), wei_levels=levels, **options.get(name, {})
            )
    return operators


def run(layers: dict[str, Any], images: Array) -> dict[str, Array]:
    """Return what each layer reads, and the logits."""
    second = pooled(layers["conv1"](images))
    third = pooled(layers["conv2"](second)).reshape(len(images), -1)
    return {"conv1": images, "conv2": second, "dense": third, "logits": layers["dense"](third)}


def share_right(layers: dict[str, Any], data: Data) -> float:
    """Return the percentage of held-out images that are classified rightly."""
    return float((run(layers, data.test)["logits"].argmax(1) == data.test_labels).mean() * 100)


def ranges_by(kind: str, float32: dict[str, Any], data: Data) -> dict[str, Any]:
    """Return the range of each layer's source, on training images."""
    batches = np.array_split(data.train[:1024], 16)
    found = pq.quantize.collect(
        lambda images: {name: run(float32, images)[name] for name in NAMES},
        batches,
        lambda: pq.quantize.estimator(kind),
    )
    return {name: state.range() for name, state in found.items()}


def report(name: str, data: Data, epochs: int) -> None:
    """Print a data set's tables."""
    start = time.perf_counter()
    p = trained(data, epochs)
    took = time.perf_counter() - start
    wide = layers_of(p, {}, dict.fromkeys(NAMES, 32))
    exact, right = run(wide, data.test), share_right(wide, data)
    counts = f"{len(data.train)} to train on, {len(data.test)} held out"
    print(f"\n{name}: {counts}, trained in {took:.0f} s; FP32 {right:.2f} %\n")
    print("| ranges by | INT8 % | to FP32 | logits SQNR dB |\n|---|---:|---:|---:|")
    for kind in pq.quantize.ESTIMATORS:
        narrow = layers_of(p, ranges_by(kind, wide, data), dict.fromkeys(NAMES, 8))
        got = share_right(narrow, data)
        sqnr = pq.quantize.quality(exact["logits"], run(narrow, data.test)["logits"]).sqnr
        print(f"| `{kind}` | {got:.2f} | {got - right:+.2f} | {sqnr:.1f} |")
    mixed(p, data, wide, exact)
    by_hessian(p, data)


def in_bf16(operator: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return an operator of bf16 weights as one between float layers: it converts its source."""

    def call(src: Array) -> Array:
        return operator(src.astype(BF16))

    return call


def mixed(p: Parameters, data: Data, wide: dict[str, Any], exact: dict[str, Array]) -> None:
    """Assign FP32, bf16 and INT8 under a bound of time half-way between fastest and slowest."""
    ranges = ranges_by("min_max", wide, data)
    operators = {bits: layers_of(p, ranges, dict.fromkeys(NAMES, bits)) for bits in (32, 16, 8)}
    calls: dict[str, dict[int, Any]] = {}
    lost: dict[str, dict[int, float]] = {}
    train = run(wide, data.train[:BATCH])
    for layer in NAMES:
        src = np.resize(exact[layer], (BATCH, *exact[layer].shape[1:]))
        calls[layer] = {bits: lambda op=of[layer], x=src: op(x) for bits, of in operators.items()}
        ones = {
            bits: run({**wide, layer: of[layer]}, data.train[:BATCH])["logits"]
            for bits, of in operators.items()
        }
        lost[layer] = {b: float(np.square(y - train["logits"]).sum()) for b, y in ones.items()}
    times = layer_times(calls, min_time=1.0)
    ends = [sum(f(row.values()) for row in times.values()) for f in (min, max)]
    bound = sum(ends) / 2
    found = pq.quantize.assign_bits(lost, times, bound)
    chosen = {layer: operators[bits][layer] for layer, bits in found.bits.items()}
    # As before, all widths in turn: what a call finds in the caches depends on what ran before it.
    again = layer_times(calls, min_time=1.0)
    total = sum(again[layer][bits] for layer, bits in found.bits.items())
    print("\n| layer | FP32 us | bf16 us | INT8 us | mixed |\n|---|---:|---:|---:|---|")
    for layer in NAMES:
        columns = " | ".join(f"{times[layer][bits]:.0f}" for bits in (32, 16, 8))
        print(f"| {layer} | {columns} | {found.bits[layer]} |")
    print(
        f"\nMixed {share_right(chosen, data):.2f} %; bound {bound:.0f} us for {BATCH} images, "
        f"planned {found.cost:.0f}, measured again {total:.0f} ({total / found.cost - 1:+.1%} from "
        f"the plan, {total / bound - 1:+.1%} from the bound)",
        flush=True,
    )


def by_hessian(p: Parameters, data: Data) -> None:
    """Assign 4 and 8 bits to weights by Tr(H) and bit complexity, sources at 8 bits or the same."""
    images, labels = data.train[:512], data.train_labels[:512]
    wei = {name: p[2 * at] for at, name in enumerate(NAMES)}

    def product(at: int, v: Array) -> Array:
        """Return the Hessian times a direction, from two gradients."""
        step = np.float32(1e-2 * np.linalg.norm(p[at]) / np.linalg.norm(v))
        sides = []
        for sign in (1, -1):
            values = list(p)
            values[at] = (p[at] + sign * step * v).astype(np.float32)
            sides.append(gradients(Parameters(*values), images, labels)[at])
        return np.asarray((sides[0] - sides[1]) / (2 * step), np.float64)

    traces = {
        name: pq.quantize.hutchinson_trace(
            partial(product, 2 * at), wei[name].shape, probes=40, tolerance=1e-2
        )
        for at, name in enumerate(NAMES)
    }
    lost = {
        n: {b: pq.quantize.sensitivity(w, b, traces[n]) for b in (4, 8)} for n, w in wei.items()
    }
    spatial = {"conv1": data.train[0, 0].size, "conv2": data.train[0, 0].size // 4, "dense": 1}
    flops = {name: float(w.size * spatial[name]) for name, w in wei.items()}
    costs = pq.quantize.bit_complexities(flops, {name: {4: 4, 8: 8} for name in NAMES})
    found = pq.quantize.assign_bits(lost, costs, pq.quantize.ratio_limit(flops, costs, 1.1))

    def right(bits: dict[str, int]) -> float:
        values = list(p)
        for at, name in enumerate(NAMES):
            codes = pq.quantize.integer_weights(p[2 * at], bits[name])
            values[2 * at] = codes.dequantize().astype(np.float32)
        return share_right(layers_of(Parameters(*values), {}, dict.fromkeys(NAMES, 32)), data)

    print("\n| layer | Tr(H)/n | lost at 4 bits | at 8 bits | bits |\n|---|---:|---:|---:|---|")
    for name, row in lost.items():
        trace = traces[name] / wei[name].size
        print(f"| {name} | {trace:.2e} | {row[4]:.2e} | {row[8]:.2e} | {found.bits[name]} |")
    all8, all4 = (right(dict.fromkeys(NAMES, bits)) for bits in (8, 4))
    print(f"\nWeights of 8 bits {all8:.2f} %, 4 bits {all4:.2f} %, mixed {right(found.bits):.2f} %")


def main() -> None:
    """Run the data sets whose packages are installed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("sets", nargs="*", default=["digits", "textures", "vowels"])
    options = parser.parse_args()
    version = ".".join(map(str, runtime.version()))
    print(f"oneDNN {version}, {runtime.isa().text()}, {runtime.get_num_threads()} threads")
    for name in options.sets:
        load = {"digits": digits, "textures": textures, "vowels": vowels}[name]
        try:
            data = load()
        except ModuleNotFoundError as error:
            print(f"\n{name}: skipped, {error}")
            continue
        report(name, data, options.epochs)


if __name__ == "__main__":
    main()
