"""Networks of full size from FP32 to INT8 by `pyonednn_q.calibrate`: what becomes INT8, SQNR, time.

    pip install '.[peers]'
    python benchmarks/calibrated_networks.py [--networks resnet50 mobilenet_v2] [--batch 1]

The networks of `random_networks.py`, calibrated on random sources, which takes so many times as
long as that many calls of the FP32 form; SQNR of the outputs for another one. INT8 and FP32 form,
both as one program of ours, take turns.
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


def report(name: str, batch: int, rounds: int, samples: int) -> None:
    """Print the row of a network."""
    rng = np.random.default_rng(1)
    graph = pq.onnx.load(NETWORKS[name](batch))
    batches = [source(rng, name, batch) for _ in range(samples)]
    start = time.perf_counter()
    calibration = pq.calibrate(graph, batches)
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
    ways = Counter(node.how.split()[0] for node in models["INT8"].nodes)
    layers = f"{ways['INT8']} of {len(calibration.layers)}"
    operations = f"{ways['codes']}, {ways['floats'] + ways['reference']} in floats"
    calls = 1e3 * took / (samples * wide)
    cells = [name, batch, layers, operations, f"{took:.1f}", f"{calls:.1f}", f"{sqnr:.1f}"]
    cells += [f"{each:.2f}" for each in (narrow, wide, wide / narrow)]
    print("|", *(f"{cell} |" for cell in cells), flush=True)


def main() -> None:
    """Run all networks."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--networks", nargs="*", default=list(NETWORKS), choices=list(NETWORKS))
    parser.add_argument("--batch", nargs="*", type=int, default=[1])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--samples", type=int, default=32)
    options = parser.parse_args()
    version = ".".join(map(str, runtime.version()))
    print(f"oneDNN {version}, {runtime.isa().text()}, {runtime.get_num_threads()} threads\n")
    heads = ("network", "batch", "INT8 layers", "between", "s", "of FP32 calls", "SQNR dB")
    print("|", *(f"{head} |" for head in (*heads, "INT8 ms", "FP32 ms", "ratio")))
    print(f"|---|---:|{'---:|' * 8}")
    for name in options.networks:
        for batch in options.batch:
            report(name, batch, options.rounds, options.samples)


if __name__ == "__main__":
    main()
