"""Whole quantized networks side by side: ours, onnxruntime and OpenVINO, on the same ONNX model.

    pip install '.[peers]' onnxruntime openvino
    python benchmarks/onnx_networks.py [--networks resnet50 mobilenet_v2] [--batch 1 8]
    python benchmarks/onnx_networks.py --forms      # and the float models that they were made of
    python benchmarks/onnx_networks.py --memory     # what loading and running them takes, instead
    python benchmarks/onnx_networks.py --between    # what of ours is no convolution and no product

ResNet-50, MobileNet v2, EfficientNet-B0 and BERT base (128 tokens, behind its embeddings) of full
size with random weights, quantized by onnxruntime's own static quantizer (QDQ, u8 sources, s8
weights per channel) on two random sources. All runtimes take turns in
one process, on as many threads; medians of the calls, and the ratio to ours. OpenVINO is left out
where it is not installed.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnxruntime
from random_networks import NETWORKS, quantized, source

import pyonednn_q as pq
from pyonednn_q.native import Prepared, runtime
from pyonednn_q.native.timing import REST_S
from pyonednn_q.network import Network
from pyonednn_q.network.compiled import Compiled
from pyonednn_q.onnx.float_model import float_model
from pyonednn_q.primitive.dense_facts import DENSE
from pyonednn_q.primitive.tensor import TensorSpec

Array = np.ndarray[Any, Any]


def ours(path: Path, x: Array) -> Callable[[], Any]:
    """Return a call of our network."""
    return called(network_of(path), x)


def network_of(path: Path) -> Network:
    """Return our network of a quantized model."""
    return pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(path))).network()


def ours_in_floats(path: Path, x: Array) -> Callable[[], Any]:
    """Return the same of a float model."""
    return called(float_model(pq.onnx.load(path)).network(), x)


def ours_in_bf16(path: Path, x: Array) -> Callable[[], Any]:
    """Return that with layers of bf16 weights and sources; what lies between them is float32."""
    graph = pq.onnx.load(path)
    layers = [node.name for node in graph.nodes if node.row.layer]
    floats = dict.fromkeys(layers, "bf16")
    return called(pq.onnx.Model(pq.onnx.fuse(graph, floats=floats)).network(), x)


def called(network: Network, x: Array) -> Callable[[], Any]:
    """Return a call of a network that is compiled for its source."""
    compiled = compiled_for(network, x)
    return lambda: compiled(x)["y"]


def compiled_for(network: Network, x: Array) -> Compiled:
    """Return a network that is compiled for its source."""
    return network.compile({"x": TensorSpec.dense(x.shape, "f32")})


def by_onnxruntime(path: Path, x: Array) -> Callable[[], Any]:
    """Return a call of onnxruntime's session, on as many threads as ours."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = runtime.get_num_threads()
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"x": x})[0]


def by_openvino(path: Path, x: Array, **more: str) -> Callable[[], Any]:
    """Return a call of OpenVINO's request, on as many threads as ours."""
    import openvino

    settings = {"INFERENCE_NUM_THREADS": runtime.get_num_threads(), "PERFORMANCE_HINT": "LATENCY"}
    request = openvino.compile_model(path, "CPU", {**settings, **more}).create_infer_request()
    return lambda: next(iter(request.infer({"x": x}).values()))


Runner = Callable[[Path, Array], Callable[[], Any]]
RUNNERS: dict[str, Runner] = {
    "ours": ours,
    "onnxruntime": by_onnxruntime,
    "openvino": by_openvino,
}
OF_FLOATS: dict[str, Runner] = {
    "ours, FP32": ours_in_floats,
    "ours, layers in BF16": ours_in_bf16,
    "onnxruntime, FP32": by_onnxruntime,
    "openvino, FP32": partial(by_openvino, INFERENCE_PRECISION_HINT="f32"),
}


def installed(runners: dict[str, Runner]) -> dict[str, Runner]:
    """Return those whose runtime is installed."""
    has_openvino = find_spec("openvino") is not None
    return {name: each for name, each in runners.items() if has_openvino or "openvino" not in name}


def tell_memory(name: str, batch: int, folder: Path) -> None:
    """Print what each runtime takes to load a network and to run it, in a process of its own."""
    path = quantized(name, batch, folder)
    x = source(np.random.default_rng(2), name, batch)
    for which in installed(RUNNERS):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            held, peak = pool.submit(_taken, which, path, x).result()
        print(f"| {name} | {batch} | {which} | {held:.1f} | {peak:.1f} |", flush=True)


def _taken(which: str, path: Path, x: Array) -> tuple[float, float]:
    """Return the MiB that a runtime holds after three calls, and at most on the way."""
    if which == "openvino":
        import openvino  # noqa: F401 - code is not counted
    runtime.version()
    before = _resident("VmRSS")
    call = RUNNERS[which](path, x)
    for _ in range(3):
        call()
    return _resident("VmRSS") - before, _resident("VmHWM") - before


def _resident(name: str) -> float:
    """Return a line of /proc/self/status in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = [each for each in lines if each.startswith(name)]
    return int(line.split()[1]) / 2**10


def tell_between(name: str, batch: int, folder: Path, rounds: int) -> None:
    """Print the time of ours, and what of it is no convolution and no product.

    Other steps are pools, copies, quantizers and tables; outside steps is the rest of a call:
    arrays are checked, results allocated, steps timed. All of one and the same call.
    """
    path = quantized(name, batch, folder)
    x = source(np.random.default_rng(2), name, batch)
    compiled = compiled_for(network_of(path), x)
    runs = [step.runs for step in compiled.steps]
    is_dense = [isinstance(each, Prepared) and isinstance(each.problem, DENSE) for each in runs]
    samples = []
    for _ in range(rounds):
        time.sleep(REST_S)
        compiled(x)
        start = time.perf_counter()
        steps = compiled.step_seconds(x)
        whole = time.perf_counter() - start
        others = sum(took for took, dense in zip(steps, is_dense, strict=True) if not dense)
        samples.append((whole, others, whole - sum(steps)))
    whole, others, outside = (median(each) for each in zip(*samples, strict=True))
    share = median((other + rest) / call for call, other, rest in samples)
    row = (name, batch, f"{whole * 1e3:.2f}", f"{others * 1e3:.3f}", f"{outside * 1e3:.3f}")
    print("| " + " | ".join(map(str, (*row, f"{100 * share:.1f}"))) + " |", flush=True)


def measured(calls: list[Callable[[], Any]], rounds: int) -> list[list[float]]:
    """Return seconds of each call, which take turns."""
    samples: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for times, call in zip(samples, calls, strict=True):
            time.sleep(REST_S)
            call()  # the caches are its own again
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
    return samples


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS), choices=NETWORKS)
    parser.add_argument("--batch", nargs="+", type=int, default=[1, 8])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--forms", action="store_true", help="float forms, too")
    parser.add_argument("--memory", action="store_true", help="memory instead of times")
    parser.add_argument("--between", action="store_true", help="what is no layer, of ours alone")
    options = parser.parse_args()
    version = ".".join(map(str, runtime.version()))
    threads = runtime.get_num_threads()
    print(f"oneDNN {version} ({runtime.threading_runtime()}), {runtime.isa()}, {threads} threads\n")
    if options.memory:
        print("| network | batch | runtime | held MiB | at most MiB |\n|---|---:|---|---:|---:|")
    elif options.between:
        print("| network | batch | ms | other steps ms | outside steps ms | both, % |")
        print("|---|---:|---:|---:|---:|---:|")
    else:
        print("| network | batch | runtime | median ms | least ms | times ours |")
        print("|---|---:|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.networks:
            for batch in options.batch:
                if options.memory:
                    tell_memory(name, batch, Path(folder))
                elif options.between:
                    tell_between(name, batch, Path(folder), options.rounds)
                else:
                    tell_times(name, batch, Path(folder), options.rounds, forms=options.forms)


def tell_times(name: str, batch: int, folder: Path, rounds: int, *, forms: bool) -> None:
    """Print the times of a network on each runtime."""
    path = quantized(name, batch, folder)
    x = source(np.random.default_rng(2), name, batch)
    calls = {each: make(path, x) for each, make in installed(RUNNERS).items()}
    if forms:
        floats = folder / f"{name}_{batch}.onnx"
        calls |= {each: make(floats, x) for each, make in installed(OF_FLOATS).items()}
    rows = measured(list(calls.values()), rounds)
    best = median(rows[0])
    for runner, times in zip(calls, rows, strict=True):
        row = (name, batch, runner, f"{median(times) * 1e3:.2f}")
        last = (f"{min(times) * 1e3:.2f}", f"{median(times) / best:.2f}")
        print("| " + " | ".join(map(str, (*row, *last))) + " |", flush=True)


if __name__ == "__main__":
    main()
