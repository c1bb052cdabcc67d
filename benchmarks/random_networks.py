"""ResNet-50, MobileNet v2, EfficientNet-B0 and BERT base as ONNX models of full size.

Weights are random, sources too; what onnxruntime's static quantizer makes of them is one file each.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnxruntime import quantization

Array = np.ndarray[Any, Any]
SIDE, CLASSES = 224, 1000
TOKENS, WIDTH, HEADS, LAYERS = 128, 768, 12, 12


class Builder:
    """Nodes and weights of a float network; each call returns the name of a tensor."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)
        self.nodes: list[Any] = []
        self.weights: list[Any] = []

    def constant(self, values: Array) -> str:
        """Add weights."""
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def add(self, operator: str, *src: str, **attributes: object) -> str:
        """Add a node."""
        name = f"{operator.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, src, [name], name, **attributes))
        return name

    def conv(
        self, src: str, ic: int, oc: int, kernel: int, stride: int = 1, groups: int = 1
    ) -> str:
        """Add a convolution that keeps the size but for its stride."""
        fan_in = ic // groups * kernel * kernel
        wei = self.rng.normal(0, np.sqrt(2 / fan_in), (oc, ic // groups, kernel, kernel))
        bias = self.constant(self.rng.normal(0, 0.1, oc))
        sides = [kernel // 2] * 4
        return self.add(
            "Conv", src, self.constant(wei), bias, pads=sides, strides=[stride] * 2, group=groups
        )

    def clip(self, src: str) -> str:
        """Add min(max(x, 0), 6)."""
        return self.add("Clip", src, self.constant(np.array(0.0)), self.constant(np.array(6.0)))

    def silu(self, src: str) -> str:
        """Add x · sigmoid(x)."""
        return self.add("Mul", src, self.add("Sigmoid", src))

    def dense(self, src: str, ic: int, oc: int) -> str:
        """Add a product and a bias, of rows."""
        wei = self.constant(self.rng.normal(0, ic**-0.5, (ic, oc)))
        return self.add("Add", self.add("MatMul", src, wei), self.constant(np.zeros(oc)))

    def normal(self, src: str) -> str:
        """Add a layer normalization."""
        gain, shift = self.constant(np.ones(WIDTH)), self.constant(np.zeros(WIDTH))
        return self.add("LayerNormalization", src, gain, shift, axis=-1)

    def dims(self, *values: int) -> str:
        """Add what a Reshape takes."""
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(values), name))
        return name

    def head(self, src: str, ic: int) -> None:
        """Add the mean of all places, and classes."""
        flat = self.add("Flatten", self.add("GlobalAveragePool", src))
        wei = self.constant(self.rng.normal(0, ic**-0.5, (CLASSES, ic)))
        self.add("Gemm", flat, wei, self.constant(np.zeros(CLASSES)), transB=1)

    def model(self, src: tuple[int, ...], dst: tuple[int, ...]) -> onnx.ModelProto:
        """Return all of it, from dims to dims."""
        self.nodes[-1].output[0] = "y"
        x = helper.make_tensor_value_info("x", 1, src)
        y = helper.make_tensor_value_info("y", 1, dst)
        graph = helper.make_graph(self.nodes, "network", [x], [y], self.weights)
        # The opset whose Gelu is one node.
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)

    def of_images(self, batch: int) -> onnx.ModelProto:
        """Return a classifier of images."""
        return self.model(dims_of(batch), (batch, CLASSES))


def resnet50(batch: int) -> onnx.ModelProto:
    """He and others, 2015: bottlenecks of 3, 4, 6 and 3 blocks; the stride in the 3x3 layer."""
    net = Builder()
    x = net.add("Relu", net.conv("x", 3, 64, 7, 2))
    x = net.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    ic = 64
    for stage, (width, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            way = net.add("Relu", net.conv(x, ic, width, 1))
            way = net.add("Relu", net.conv(way, width, width, 3, stride))
            way = net.conv(way, width, 4 * width, 1)
            short = x if block else net.conv(x, ic, 4 * width, 1, stride)
            x = net.add("Relu", net.add("Add", way, short))
            ic = 4 * width
    net.head(x, ic)
    return net.of_images(batch)


def mobilenet_v2(batch: int) -> onnx.ModelProto:
    """Sandler and others, 2018: inverted residuals with linear bottlenecks."""
    net = Builder()
    x, ic = net.clip(net.conv("x", 3, 32, 3, 2)), 32
    rows = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1))
    for wider, oc, blocks, first in (*rows, (6, 160, 3, 2), (6, 320, 1, 1)):
        for block in range(blocks):
            stride = 1 if block else first
            wide = ic * wider
            way = x if wider == 1 else net.clip(net.conv(x, ic, wide, 1))
            way = net.clip(net.conv(way, wide, wide, 3, stride, groups=wide))
            way = net.conv(way, wide, oc, 1)
            x = net.add("Add", way, x) if stride == 1 and ic == oc else way
            ic = oc
    net.head(net.clip(net.conv(x, ic, 1280, 1)), 1280)
    return net.of_images(batch)


def efficientnet_b0(batch: int) -> onnx.ModelProto:
    """Tan and Le, 2019: inverted residuals with squeeze and excite, and x · sigmoid(x)."""
    net = Builder()
    x, ic = net.silu(net.conv("x", 3, 32, 3, 2)), 32
    rows = ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3))
    for wider, oc, blocks, first, kernel in (
        *rows, (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3),
    ):  # fmt: skip
        for block in range(blocks):
            stride = 1 if block else first
            wide = ic * wider
            way = x if wider == 1 else net.silu(net.conv(x, ic, wide, 1))
            way = net.silu(net.conv(way, wide, wide, kernel, stride, groups=wide))
            gate = net.silu(net.conv(net.add("GlobalAveragePool", way), wide, ic // 4, 1))
            gate = net.add("Sigmoid", net.conv(gate, ic // 4, wide, 1))
            way = net.conv(net.add("Mul", way, gate), wide, oc, 1)
            x = net.add("Add", way, x) if stride == 1 and ic == oc else way
            ic = oc
    net.head(net.silu(net.conv(x, ic, 1280, 1)), 1280)
    return net.of_images(batch)


def bert_base(batch: int) -> onnx.ModelProto:
    """Devlin and others, 2018: twelve blocks of self-attention, from embeddings on."""
    net = Builder()
    size = WIDTH // HEADS
    heads = net.dims(batch, TOKENS, HEADS, size)
    rows = net.dims(batch, TOKENS, WIDTH)
    x = "x"
    for _ in range(LAYERS):
        q, k, v = (net.add("Reshape", net.dense(x, WIDTH, WIDTH), heads) for _ in range(3))
        q, v = (net.add("Transpose", each, perm=[0, 2, 1, 3]) for each in (q, v))
        scores = net.add("MatMul", q, net.add("Transpose", k, perm=[0, 2, 3, 1]))
        scores = net.add("Div", scores, net.constant(np.array(size**0.5)))
        mixed = net.add("MatMul", net.add("Softmax", scores, axis=-1), v)
        mixed = net.add("Reshape", net.add("Transpose", mixed, perm=[0, 2, 1, 3]), rows)
        x = net.normal(net.add("Add", net.dense(mixed, WIDTH, WIDTH), x))
        wide = net.add("Gelu", net.dense(x, WIDTH, 4 * WIDTH))
        x = net.normal(net.add("Add", net.dense(wide, 4 * WIDTH, WIDTH), x))
    dims = dims_of(batch, "bert_base")
    return net.model(dims, dims)


NETWORKS: dict[str, Callable[[int], onnx.ModelProto]] = {
    "resnet50": resnet50,
    "mobilenet_v2": mobilenet_v2,
    "efficientnet_b0": efficientnet_b0,
    "bert_base": bert_base,
}


def dims_of(batch: int, name: str = "") -> tuple[int, ...]:
    """Return the dims of a network's source."""
    return (batch, TOKENS, WIDTH) if name == "bert_base" else (batch, 3, SIDE, SIDE)


class Sources:
    """Two random batches."""

    def __init__(self, name: str, batch: int) -> None:
        rng = np.random.default_rng(1)
        self.rows = iter([{"x": source(rng, name, batch)} for _ in range(2)])

    def get_next(self) -> dict[str, Array] | None:
        """Return the next one, or None."""
        return next(self.rows, None)


def source(rng: np.random.Generator, name: str, batch: int) -> Array:
    """Return random values of mean 0 and deviation 1."""
    return rng.normal(0, 1, dims_of(batch, name)).astype(np.float32)


def quantized(name: str, batch: int, folder: Path) -> Path:
    """Return the file of a network as onnxruntime's quantizer writes it."""
    floats, codes = folder / f"{name}_{batch}.onnx", folder / f"{name}_{batch}_q.onnx"
    onnx.save(NETWORKS[name](batch), floats)
    quantization.quantize_static(
        floats,
        codes,
        Sources(name, batch),
        quant_format=quantization.QuantFormat.QDQ,
        per_channel=True,
        activation_type=quantization.QuantType.QUInt8,
        weight_type=quantization.QuantType.QInt8,
    )
    return codes
