"""Ways to quantize a decoder's weights, beside NNCF's `compress_weights`: errors, and perplexity.

The decoder of `small_decoder.py`, its products of 4 bits in groups, embeddings and the last product
left in floats. All get the same samples, and all models run in float32 from the weights as they are
stored, so that weights alone are compared: onnxruntime at accuracy level 0, OpenVINO without codes
of sources. A last row is ours with codes of sources, too. Prints Markdown: Σ (y − y_real)² over
Σ y_real², the cosine and the perplexity (of a byte) on text that nobody trained or calibrated on.
Needs onnx and onnxruntime; what is not installed (nncf with openvino) is left out by name.

    python benchmarks/small_decoder.py decoder.npz    # torch
    python benchmarks/autoround_weights.py decoder.npz autoround.npz --groups 64    # auto-round
    python benchmarks/weight_methods.py decoder.npz --groups 64 --also autoround.npz
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnxruntime
from small_decoder import proto, windows

import pyonednn_q as pq

Array = np.ndarray[Any, Any]
Run = Callable[[Array], Array]
METHODS = ("rtn", "search", "awq", "gptq", "awq+gptq")
FLOATS = ("head",)


class Row(NamedTuple):
    """A way, what runs, how long it took to make, and mean bits of codes."""

    name: str
    run: Run
    seconds: float
    bits: float


class Score(NamedTuple):
    """What a way loses."""

    error: float
    cosine: float
    perplexity: float


def session(model: onnx.ModelProto | str) -> Run:
    """Return f(x) of onnxruntime in floats."""
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "0")
    content = model if isinstance(model, str) else model.SerializeToString()
    ready = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return lambda x: ready.run(None, {"x": x})[0]


def ours(model: onnx.ModelProto, samples: list[Array], **options: Any) -> Iterator[Row]:  # noqa: ANN401 - those of grouped_weights
    """Give a way of ours, its weights in onnxruntime, and with our codes of sources."""
    start = time.perf_counter()
    small = pq.onnx.grouped_weights(model, samples, floats=FLOATS, accuracy_level=0, **options)
    seconds = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "small.onnx")
        small.save(file)
        name = f"ours, {options['method']}"
        if isinstance(options["bits"], tuple):
            name += f", {options['bits'][0]} and {options['bits'][1]} bits"
        yield Row(name, session(file), seconds, small.mean_bits)
        if options["method"] == METHODS[-1]:
            with_codes = small.model(blocks="s8")
            yield Row(f"{name}, s8 sources", lambda x: with_codes.run({"x": x})["y"],
                      seconds, small.mean_bits)  # fmt: skip


def theirs(
    model: onnx.ModelProto, samples: list[Array], groups: int, symmetric: bool
) -> Iterator[Row]:
    """Give NNCF's ways, run by OpenVINO in float32."""
    import nncf
    import openvino

    logging.getLogger("nncf").setLevel(logging.ERROR)
    mode = nncf.CompressWeightsMode.INT4_SYM if symmetric else nncf.CompressWeightsMode.INT4_ASYM
    ways: dict[str, dict[str, bool]] = {
        "": {},
        "scale_estimation": {"scale_estimation": True},
        "awq": {"awq": True},
        "awq, scale_estimation": {"awq": True, "scale_estimation": True},
        "gptq": {"gptq": True},
        "awq, gptq, scale_estimation": {"awq": True, "gptq": True, "scale_estimation": True},
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.onnx"
        onnx.save(turned(model), file)
        for name, options in ways.items():
            dataset = nncf.Dataset([{"x": each} for each in samples]) if options else None
            start = time.perf_counter()
            try:
                small = nncf.compress_weights(
                    openvino.convert_model(file),
                    mode=mode,
                    group_size=groups,
                    ratio=1.0,
                    backup_mode=nncf.BackupMode.NONE,
                    ignored_scope=nncf.IgnoredScope(names=list(FLOATS), validate=False),
                    dataset=dataset,
                    subset_size=len(samples),
                    **options,
                )
            except Exception as error:
                sys.stderr.write(f"nncf {name}: {type(error).__name__}: {str(error)[:200]}\n")
                continue
            seconds = time.perf_counter() - start
            yield Row(f"nncf{', ' if name else ''}{name}", compiled(small), seconds, 4.0)


def turned(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the same with weights (N, K) behind a Transpose, as exported models have them."""
    other = onnx.ModelProto()
    other.CopyFrom(model)
    held = {each.name: each for each in other.graph.initializer}
    nodes = []
    for node in other.graph.node:
        if node.op_type == "MatMul" and node.input[1] in held:
            array = held[node.input[1]]
            array.CopyFrom(
                onnx.numpy_helper.from_array(
                    np.ascontiguousarray(onnx.numpy_helper.to_array(array).T), array.name
                )
            )
            name = f"{array.name}:turned"
            nodes.append(onnx.helper.make_node("Transpose", [array.name], [name], perm=[1, 0]))
            node.input[1] = name
        nodes.append(node)
    del other.graph.node[:]
    other.graph.node.extend(nodes)
    return other


def compiled(model: Any) -> Run:  # noqa: ANN401 - a model of a package that may not be there
    """Return f(x) of OpenVINO in floats."""
    import openvino

    told = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
    ready = openvino.Core().compile_model(model, "CPU", told)
    return lambda x: np.asarray(ready({"x": x})[0])


def score(run: Run, real: list[Array], batches: list[Array]) -> Score:
    """Return what is lost on windows of bytes."""
    lost = squares = both = own = nats = 0.0
    count = 0
    for want, batch in zip(real, batches, strict=True):
        y = run(batch[:, :-1]).astype(np.float64)
        lost += float(np.square(y - want).sum())
        squares += float(np.square(want).sum())
        own += float(np.square(y).sum())
        both += float((y * want).sum())
        top = y.max(axis=-1, keepdims=True)
        shares = y - top - np.log(np.exp(y - top).sum(axis=-1, keepdims=True))
        nats -= float(np.take_along_axis(shares, batch[:, 1:, None], axis=-1).sum())
        count += batch[:, 1:].size
    return Score(lost / squares, both / np.sqrt(own * squares), float(np.exp(nats / count)))


def rows(options: argparse.Namespace, model: onnx.ModelProto) -> Iterator[Row]:
    """Give all ways, floats first."""
    yield Row("floats", session(model), 0.0, 32.0)
    samples = [windows(held_out=False, count=4, seed=1_000_000 + at)[:, :-1] for at in range(8)]
    usual = {"groups": options.groups, "symmetric": not options.zero_points}
    for method in METHODS:
        yield from ours(model, samples, method=method, bits=4, **usual)
    yield from ours(model, samples, method="gptq", bits=(4, 8), mean_bits=5.0, **usual)
    for file in options.also:
        known = dict(np.load(file))
        seconds = float(known.pop("seconds", 0.0))
        yield Row(file.stem, session(proto(known)), seconds, 4.0)
    try:
        yield from theirs(model, samples, options.groups, not options.zero_points)
    except ImportError as error:
        sys.stderr.write(f"left out: {error}\n")


def main() -> None:
    """Print a row for each way."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path, help="what small_decoder.py wrote")
    parser.add_argument("--groups", type=int, default=64)
    parser.add_argument("--zero-points", action="store_true")
    parser.add_argument("--also", type=Path, nargs="*", default=[], help="of other weights: .npz")
    parser.add_argument("--windows", type=int, default=64, help="of 128 bytes, held out")
    options = parser.parse_args()
    model = proto(dict(np.load(options.file)))
    some = windows(held_out=True, count=options.windows)
    batches = [some[at : at + 4] for at in range(0, len(some), 4)]
    kind = "with zero points" if options.zero_points else "symmetric"
    print(f"Groups of {options.groups}, {kind}; {some[:, 1:].size} bytes held out\n")
    print("| way | bits | output error | cosine | perplexity | s |")
    print("|---|---:|---:|---:|---:|---:|")
    real: list[Array] = []
    for row in rows(options, model):
        if not real:
            real = [row.run(batch[:, :-1]).astype(np.float64) for batch in batches]
        lost = score(row.run, real, batches)
        cells = [f"{row.bits:.2f}", f"{lost.error:.2e}", f"{lost.cosine:.6f}"]
        cells += [f"{lost.perplexity:.4f}", f"{row.seconds:.1f}"]
        print(f"| {row.name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
