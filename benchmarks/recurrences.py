"""LSTM and GRU as networks of ours beside onnxruntime: a call of one node.

Of float32, and of 8-bit weights as `calibrate` makes them. onnxruntime has LSTMs of those, too; of
a GRU it runs the function in the file, of floats. Called in turn on the same arrays, in the same
process, on as many threads each, after a pause. Prints Markdown: medians in microseconds of a call,
the ratio of paired samples with its interval at 95 %, and how far ours is from onnxruntime's result
of float32. Needs onnx and onnxruntime. Run ``python benchmarks/recurrences.py``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import onnxruntime
from onnx import helper, numpy_helper

import pyonednn_q as pq
from pyonednn_q.bench.summary import paired_ratio
from pyonednn_q.native.timing import REST_S
from pyonednn_q.primitive.tensor import TensorSpec

Array = np.ndarray[Any, Any]
Run = Callable[[], list[Array]]
RNG = np.random.default_rng(0)
GATES = {"LSTM": 4, "GRU": 3}
NAMES = ("x", "w", "r", "b")  # inputs, in ONNX's order
NARROW = 64  # below, `calibrate` leaves LSTMs in floats: of 32, 20 us were INT8, 14 float32


class Case(NamedTuple):
    """Sizes of a recurrence: of its sequence, its source's rows, and its states."""

    steps: int
    batch: int
    inputs: int
    hidden: int
    direction: str = "forward"

    def __str__(self) -> str:
        ways = "both ways" if self.direction == "bidirectional" else self.direction
        return f"{self.steps} steps of {self.batch}x{self.inputs}, {self.hidden} wide, {ways}"


CASES = (
    Case(40, 1, 32, 32),
    Case(40, 1, 64, 64),
    Case(80, 1, 128, 128),
    Case(20, 1, 512, 512, "bidirectional"),  # of ddddocr's recognizer
    Case(25, 8, 256, 256, "bidirectional"),
)


def runs_of(operator: str, case: Case, threads: int) -> list[tuple[str, Run, Run]]:
    """Return calls of ours and of onnxruntime, of the same model and source: floats, and INT8."""
    steps, batch, inputs, hidden, direction = case
    ways, gates = 1 + (direction == "bidirectional"), GATES[operator] * hidden
    dims = {"w": (ways, gates, inputs), "r": (ways, gates, hidden), "b": (ways, 2 * gates)}
    held = {
        name: RNG.uniform(-1, 1, each).astype(np.float32) / np.float32(hidden**0.5)
        for name, each in dims.items()
    }
    x = RNG.normal(0, 1, (steps, batch, inputs)).astype(np.float32)
    node = helper.make_node(operator, NAMES, ["y"], direction=direction, hidden_size=hidden)
    ends = [("x", x.shape), ("y", (steps, ways, batch, hidden))]
    starts, results = ([helper.make_tensor_value_info(name, 1, each)] for name, each in ends)
    constants = [numpy_helper.from_array(each, name) for name, each in held.items()]
    graph = helper.make_graph([node], "one", starts, results, constants)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    plain = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(proto)))
    runs = [("float32", *pair_of(plain, proto.SerializeToString(), x, threads))]
    if hidden >= NARROW:
        calibrated = pq.calibrate(pq.onnx.load(proto), [x])
        with TemporaryDirectory() as folder:
            calibrated.save(Path(folder) / "int8.onnx")
            data = (Path(folder) / "int8.onnx").read_bytes()
        runs.append(("INT8", *pair_of(calibrated.model(), data, x, threads)))
    return runs


def pair_of(model: pq.onnx.Model, data: bytes, x: Array, threads: int) -> tuple[Run, Run]:
    """Return a call of our model, and one of onnxruntime's."""
    program = model.network().compile({"x": TensorSpec.dense(x.shape, "f32")})
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    peer = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return lambda: [program(x)["y"]], lambda: list(peer.run(None, {"x": x}))


def measured(runs: Sequence[Run], rounds: int, calls: int) -> list[list[float]]:
    """Return microseconds of a call, of each run in each round."""
    times: list[list[float]] = [[] for _ in runs]
    for at in range(rounds + 3):
        for run, each in zip(runs, times, strict=True):
            time.sleep(REST_S)
            run()  # wakes its own threads
            start = time.perf_counter()
            for _ in range(calls):
                run()
            if at >= 3:  # first ones make primitives
                each.append(1e6 * (time.perf_counter() - start) / calls)
    return times


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=41, help="(default: 41)")
    parser.add_argument("--calls", type=int, default=5, help="of a round (default: 5)")
    parser.add_argument("--threads", type=int, default=2, help="(default: 2)")
    options = parser.parse_args()
    print("| us a call | of | ours | onnxruntime | ours / onnxruntime | interval | differs by |")
    print("|---|---|---:|---:|---:|---:|---:|")
    with pq.threads(options.threads):
        for case in CASES:
            for operator in GATES:
                runs = runs_of(operator, case, options.threads)
                ((_, _, floats), *_) = runs
                (want,) = floats()
                for precision, *pair in runs:
                    (ours,) = pair[0]()
                    times = measured(pair, options.rounds, options.calls)
                    ratio = paired_ratio(*times)
                    cells = [f"{operator}, {case}", precision]
                    cells += [f"{median(each):.0f}" for each in times]
                    cells += [f"{ratio.value:.2f}", f"{ratio.lo:.2f} to {ratio.hi:.2f}"]
                    cells.append(f"{np.abs(ours - want).max():.1e}")
                    print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
