"""What quantizing costs in accuracy: FP32, INT8 by every estimator, and mixed under a time bound.

    pip install scikit-learn scikit-image aeon pillow
    python benchmarks/quantize_accuracy.py

On the networks and the data of `trained_network.py`. A data set whose package is missing is skipped
by name.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from trained_network import DATA_SETS, NAMES, Data, Parameters, gradients, pooled, trained

import pyonednn_q as pq
from pyonednn_q.bench.layer_times import layer_times
from pyonednn_q.native import runtime

Array: TypeAlias = np.ndarray[Any, Any]
RELU = pq.Chain(pq.Eltwise("relu"))
BF16 = np.dtype(ml_dtypes.bfloat16)
BATCH = 256  # images of a timed call


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
    states = pq.quantize.collect(
        lambda images: {name: run(float32, images)[name] for name in NAMES},
        batches,
        lambda: pq.quantize.estimator(kind),
    )
    return {name: state.range() for name, state in states.items()}


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


def in_bf16(operator: Callable[..., Array]) -> Callable[..., Array]:
    """Return an operator of bf16 weights as one between float layers: it converts its source."""
    codes = np.empty(0, BF16)

    def call(src: Array, out: Array | None = None) -> Array:
        nonlocal codes
        if codes.shape != src.shape:
            codes = np.empty(src.shape, BF16)
        np.copyto(codes, src, casting="same_kind")
        return operator(codes, out=out)

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
        # Into arrays that are there: what new memory costs changes from one minute to the next.
        calls[layer] = {
            bits: partial(of[layer], src, out=of[layer](src)) for bits, of in operators.items()
        }
        ones = {
            bits: run({**wide, layer: of[layer]}, data.train[:BATCH])["logits"]
            for bits, of in operators.items()
        }
        lost[layer] = {b: float(np.square(y - train["logits"]).sum()) for b, y in ones.items()}
    times = layer_times(calls, min_time=1.0)
    ends = [sum(f(row.values()) for row in times.values()) for f in (min, max)]
    bound = sum(ends) / 2
    plan = pq.quantize.assign_bits(lost, times, bound)
    chosen = {layer: operators[bits][layer] for layer, bits in plan.bits.items()}
    # As before, all widths in turn: what a call finds in the caches depends on what ran before it.
    again = layer_times(calls, min_time=1.0)
    total = sum(again[layer][bits] for layer, bits in plan.bits.items())
    # All calls that were not chosen: how much faster or slower the machine is by now.
    others = [(name, b) for name in NAMES for b in operators if b != plan.bits[name]]
    moved = sum(again[name][b] for name, b in others) / sum(times[name][b] for name, b in others)
    print("\n| layer | FP32 us | bf16 us | INT8 us | mixed |\n|---|---:|---:|---:|---|")
    for layer in NAMES:
        columns = " | ".join(f"{times[layer][bits]:.0f}" for bits in (32, 16, 8))
        print(f"| {layer} | {columns} | {plan.bits[layer]} |")
    print(
        f"\nMixed {share_right(chosen, data):.2f} %; bound {bound:.0f} us for {BATCH} images, "
        f"planned {plan.cost:.0f}, measured again {total:.0f} ({total / plan.cost - 1:+.1%} from "
        f"the plan, {total / bound - 1:+.1%} from the bound; {total / bound / moved - 1:+.1%} from "
        f"the bound on a machine whose other calls moved {moved - 1:+.1%})",
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
    plan = pq.quantize.assign_bits(lost, costs, pq.quantize.ratio_limit(flops, costs, 1.1))

    def right(bits: dict[str, int]) -> float:
        values = list(p)
        for at, name in enumerate(NAMES):
            codes = pq.quantize.integer_weights(p[2 * at], bits[name])
            values[2 * at] = codes.dequantize().astype(np.float32)
        return share_right(layers_of(Parameters(*values), {}, dict.fromkeys(NAMES, 32)), data)

    print("\n| layer | Tr(H)/n | lost at 4 bits | at 8 bits | bits |\n|---|---:|---:|---:|---|")
    for name, row in lost.items():
        trace = traces[name] / wei[name].size
        print(f"| {name} | {trace:.2e} | {row[4]:.2e} | {row[8]:.2e} | {plan.bits[name]} |")
    all8, all4 = (right(dict.fromkeys(NAMES, bits)) for bits in (8, 4))
    print(f"\nWeights of 8 bits {all8:.2f} %, 4 bits {all4:.2f} %, mixed {right(plan.bits):.2f} %")


def main() -> None:
    """Run the data sets whose packages are installed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("sets", nargs="*", default=list(DATA_SETS))
    options = parser.parse_args()
    version = ".".join(map(str, runtime.version()))
    print(f"oneDNN {version}, {runtime.isa().text()}, {runtime.get_num_threads()} threads")
    for name in options.sets:
        try:
            data = DATA_SETS[name]()
        except ModuleNotFoundError as error:
            print(f"\n{name}: skipped, {error}")
            continue
        report(name, data, options.epochs)


if __name__ == "__main__":
    main()
