"""Networks of full size from FP32 to INT8 by `onnx.calibrate`: what becomes INT8, SQNR, time.

    pip install '.[peers]'
    python benchmarks/calibrated_networks.py [--networks resnet50 mobilenet_v2] [--batch 1]

The networks of `random_networks.py`, calibrated on two random sources; SQNR of the
outputs for a third one. INT8 and FP32 form, both as one program of ours, take turns.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from statistics import median
from typing import Any, TypeAlias

import numpy as np
from random_networks import NETWORKS, source

import pyonednn_q as pq
from pyonednn_q.native import runtime

Array: TypeAlias = np.ndarray[Any, Any]


def report(name: str, batch: int, rounds: int) -> None:
    """Print the row of a network."""
    rng = np.random.default_rng(1)
    graph = pq.onnx.load(NETWORKS[name](batch))
    start = time.perf_counter()
    calibration = pq.onnx.calibrate(graph, [source(rng, name, batch) for _ in range(2)])
    took = time.perf_counter() - start
    models = {
        "INT8": calibration.model(),
        "FP32": calibration.with_floats(calibration.layers).model(),
    }
    programs = {form: model.network() for form, model in models.items()}
    x = source(rng, name, batch)
    results = {form: program(x)["y"] for form, program in programs.items()}
    sqnr = pq.quantize.quality(results["FP32"], results["INT8"]).sqnr
    times: dict[str, list[float]] = {form: [] for form in programs}
    for _ in range(rounds):
        for form, program in programs.items():
            start = time.perf_counter()
            program(x)
            times[form].append(1e3 * (time.perf_counter() - start))
    narrow, wide = (median(times[form]) for form in ("INT8", "FP32"))
    ways = Counter(node.how.split()[0] for node in models["INT8"].graph.nodes)
    layers = f"{ways['INT8']} of {len(calibration.layers)}"
    operations = f"{ways['codes']}, {ways['reference']} in floats"
    print(
        f"| {name} | {batch} | {layers} | {operations} | {took:.1f} | {sqnr:.1f} | {narrow:.2f} "
        f"| {wide:.2f} | {wide / narrow:.2f} |",
        flush=True,
    )


def main() -> None:
    """Run all networks."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--networks", nargs="*", default=list(NETWORKS), choices=list(NETWORKS))
    parser.add_argument("--batch", nargs="*", type=int, default=[1])
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    version = ".".join(map(str, runtime.version()))
    print(f"oneDNN {version}, {runtime.isa().text()}, {runtime.get_num_threads()} threads\n")
    print("| network | batch | INT8 layers | between | s | SQNR dB | INT8 ms | FP32 ms | ratio |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for name in options.networks:
        for batch in options.batch:
            report(name, batch, options.rounds)


if __name__ == "__main__":
    main()
