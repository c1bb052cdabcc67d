"""What `pyonednn_q.calibrate` costs in accuracy, and what its loop turns back for half a point.

    pip install 'pyonednn_q[onnx]' scikit-learn scikit-image aeon pillow
    python benchmarks/calibrated_accuracy.py

The networks of `trained_network.py` as ONNX models, as they are and with the channels of one tensor
from 2^-6 to 2^6 times as large, which one scale does not suit. A data set whose package is missing
is skipped by name.
"""

from __future__ import annotations

import argparse
from typing import Any, TypeAlias

import numpy as np
from trained_network import DATA_SETS, Data, Parameters, trained

import pyonednn_q as pq
from pyonednn_q.native import runtime

Array: TypeAlias = np.ndarray[Any, Any]
GROUP = 54  # images of a call
BOUND = 0.5  # points below FP32


def float_model(p: Parameters, dims: tuple[int, ...]) -> Any:  # noqa: ANN401 - a ModelProto
    """Return the network as an ONNX model in FP32, for images of such dims."""
    from onnx import helper, numpy_helper

    node = helper.make_node
    window = {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes = [
        node("Conv", ["x", "wei1", "bias1"], ["conv1"], "conv1", pads=[1] * 4),
        node("Relu", ["conv1"], ["relu1"], "relu1"),
        node("MaxPool", ["relu1"], ["pool1"], "pool1", **window),
        node("Conv", ["pool1", "wei2", "bias2"], ["conv2"], "conv2", pads=[1] * 4),
        node("Relu", ["conv2"], ["relu2"], "relu2"),
        node("MaxPool", ["relu2"], ["pool2"], "pool2", **window),
        node("Flatten", ["pool2"], ["flat"], "flat"),
        node("Gemm", ["flat", "wei3", "bias3"], ["logits"], "dense", transB=1),
    ]
    src = helper.make_tensor_value_info("x", 1, dims)
    dst = helper.make_tensor_value_info("logits", 1, [dims[0], len(p.bias3)])
    values = [numpy_helper.from_array(value, name) for name, value in p._asdict().items()]
    graph = helper.make_graph(nodes, "network", [src], [dst], values)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def calibrated(p: Parameters, data: Data, **options: Any) -> pq.onnx.Calibration:  # noqa: ANN401
    """Return the calibration of that model on training images, of defaults unless said."""
    images = data.train[: len(data.train) // GROUP * GROUP]
    graph = pq.onnx.load(float_model(p, (GROUP, *images.shape[1:])))
    return pq.calibrate(graph, np.split(images, len(images) // GROUP), **options)


def right_by(model: pq.onnx.Model, data: Data) -> float:
    """Return the percentage of held-out images that a model classifies rightly, as a network."""
    program, count = model.network(), len(data.test)
    padded = np.pad(data.test, ((0, -count % GROUP), (0, 0), (0, 0), (0, 0)))
    logits = [program(images)["logits"] for images in np.split(padded, len(padded) // GROUP)]
    return float((np.concatenate(logits)[:count].argmax(1) == data.test_labels).mean() * 100)


def spread(p: Parameters) -> Parameters:
    """Return the same function with channels of conv1 from 2^-6 to 2^6 times as large.

    Powers of two, taken back in conv2: every float result keeps its bits.
    """
    factors = np.exp2(np.linspace(-6, 6, len(p.bias1)).round()).astype(np.float32)
    return p._replace(
        wei1=p.wei1 * factors[:, None, None, None],
        bias1=p.bias1 * factors,
        wei2=p.wei2 / factors[:, None, None],
    )


def report(name: str, data: Data, epochs: int) -> None:
    """Print the rows of a data set."""
    p = trained(data, epochs)
    for channels, own in (("as trained", p), ("2^-6 to 2^6", spread(p))):
        calibration = calibrated(own, data)
        right = right_by(calibration.with_floats(calibration.layers).model(), data)
        got = right_by(calibration.model(), data)
        for dtype in ("f32", "bf16"):
            bound = right - BOUND
            tuned = calibration.within(lambda model: right_by(model, data), bound, dtype=dtype)
            reached = right_by(tuned.model(), data)
            turned = ", ".join(f"{layer}: {kind}" for layer, kind in tuned.floats.items()) or "none"
            print(
                f"| {name} | {channels} | {right:.2f} | {got:.2f} | {got - right:+.2f} "
                f"| {bound:.2f} | {reached:.2f} | {turned} |",
                flush=True,
            )
            if not tuned.floats:
                break


def main() -> None:
    """Run the data sets whose packages are installed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("sets", nargs="*", default=list(DATA_SETS))
    options = parser.parse_args()
    version = ".".join(map(str, runtime.version()))
    print(f"oneDNN {version}, {runtime.isa().text()}, {runtime.get_num_threads()} threads\n")
    print("| | channels of conv1 | FP32 % | INT8 % | to FP32 | bound | reached | in floats |")
    print("|---|---|---:|---:|---:|---:|---:|---|")
    for name in options.sets:
        try:
            data = DATA_SETS[name]()
        except ModuleNotFoundError as error:
            print(f"| {name} | skipped, {error} |")
            continue
        report(name, data, options.epochs)


if __name__ == "__main__":
    main()
