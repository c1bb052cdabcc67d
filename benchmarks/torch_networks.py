"""Networks of torchvision and timm as torch exports them: ours, onnxruntime and OpenVINO.

    pip install '.[peers]' torch torchvision timm onnxscript onnxruntime openvino
    python benchmarks/torch_networks.py timm:poolformer_s12 torchvision:densenet121
    python benchmarks/torch_networks.py                   # all of NETWORKS

Random weights, batch norms with statistics of noise, the default exporter with an open batch.
"error" is the largest difference of our float form from onnxruntime's by the largest value, cosine
that of INT8, calibrated on three samples of noise, with FP32 on another; milliseconds as
`packaged_times.py` takes them, batch 1. Nodes that run in Python are told in a line of their own.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from packaged_times import COLUMNS, Array, calls_of, timed

import pyonednn_q as pq
from pyonednn_q.models.timed_form import TimedForm
from pyonednn_q.native import runtime

NETWORKS = (
    "torchvision:resnet18", "torchvision:mobilenet_v3_small", "torchvision:efficientnet_b0",
    "torchvision:shufflenet_v2_x1_0", "torchvision:squeezenet1_1", "torchvision:densenet121",
    "torchvision:regnet_y_400mf", "torchvision:googlenet", "torchvision:convnext_tiny",
    "torchvision:swin_t", "timm:ghostnet_100", "timm:mobilevit_s", "timm:edgenext_xx_small",
    "timm:fastvit_t8", "timm:deit_tiny_patch16_224", "timm:efficientformer_l1", "timm:levit_128s",
    "timm:poolformer_s12", "timm:hrnet_w18_small", "timm:mobilenetv4_conv_small",
    "timm:pvt_v2_b0", "timm:coatnet_nano_rw_224",
)  # fmt: skip


def exported(name: str, folder: Path) -> tuple[Path, int]:
    """Export a network, and return its file and the height of its source."""
    import torch

    room, _, kind = name.partition(":")
    torch.manual_seed(0)
    if room == "timm":
        import timm

        network = timm.create_model(kind, pretrained=False)
        side = network.default_cfg["input_size"][-1]
    else:
        import torchvision

        network, side = getattr(torchvision.models, kind)(weights=None), 224
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = None  # the statistics of what it sees
    with torch.no_grad():
        network.train()(torch.randn(4, 3, side, side))
    path = folder / f"{kind}.onnx"
    example, dims = (torch.randn(2, 3, side, side),), ({0: "batch"},)
    torch.onnx.export(
        network.eval(), example, path, dynamo=True, dynamic_shapes=dims, external_data=False
    )
    return path, side


def row(name: str, options: argparse.Namespace) -> str:
    """Return the table's row of a network."""
    import onnxruntime

    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder, runtime.threads(options.threads):
        path, side = exported(name, Path(folder))
        graph = pq.onnx.load(path)
        (source,) = graph.inputs
        rng = np.random.default_rng(0)
        draws = rng.normal(0, 1, (4, 1, 3, side, side)).astype(np.float32)
        *known, other = ({source: draw} for draw in draws)
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        want = session.run(None, other)[0].ravel()
        (floats,) = pq.onnx.Model(graph).run(other).values()
        int8 = pq.calibrate(graph, known).model()
        (codes,) = int8.run(other).values()
        for kind, model in (("FP32", pq.onnx.Model(graph)), ("INT8", int8)):
            model.run(other)
            if names := TimedForm.of("", graph, model.bound(), other).pythonic:
                print(f"{name}: {kind} enters Python for {sorted(names)}", flush=True)
        error = np.abs(floats.ravel() - want).max() / np.abs(want).max()
        cells = timed(calls_of(path, (1, 3, side, side), options.threads), options)
    cosine = _cosine(codes.ravel(), want)
    return "| " + " | ".join([name, f"{error:.0e}", f"{cosine:.4f}", *cells]) + " |"


def _cosine(a: Array, b: Array) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def main() -> None:
    """Print a table, a row for each network."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--processor", action="store_true", help="processor's time")
    options = parser.parse_args()
    heads = ["network", "error", "cosine", *COLUMNS, "lead"]
    print("| " + " | ".join(heads) + " |")
    print("|---|" + "---:|" * (len(heads) - 1), flush=True)
    for name in options.networks:
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            try:
                print(pool.submit(row, name, options).result(), flush=True)
            except Exception as error:  # of torch's exporter, or a peer
                print(f"{name}: {str(error)[:200]}", flush=True)


if __name__ == "__main__":
    main()
