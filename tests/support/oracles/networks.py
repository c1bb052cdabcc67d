"""Small networks with random weights as ONNX models, and as onnxruntime's quantizer has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnxruntime import quantization

from pyonednn_q.graph.kinds import kind_of

Array = np.ndarray[Any, Any]

OPSET = 20
SOURCE = (2, 3, 16, 16)


class Network:
    """A float network while it is built: each call adds a node and returns its output's name."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any) -> str:
        name = f"constant{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def weights(self, *dims: int, fan_in: int) -> str:
        # Channels of different spread: scales per channel differ.
        spread = self.rng.uniform(0.5, 2.0, (dims[0],) + (1,) * (len(dims) - 1))
        values = self.rng.normal(0, 1, dims) * spread * np.sqrt(2 / fan_in)
        return self.constant(values.astype(np.float32))

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        name = f"{operator.lower()}{len(self.nodes)}"
        node = helper.make_node(operator, inputs, [f"{name}_out"], name, **attributes)
        self.nodes.append(node)
        return f"{name}_out"

    def conv(self, x: str, ic: int, oc: int, k: int = 3, group: int = 1, **attributes: Any) -> str:
        wei = self.weights(oc, ic // group, k, k, fan_in=ic // group * k * k)
        bias = self.constant(self.rng.normal(0, 0.2, oc).astype(np.float32))
        pads = [k // 2] * 4
        return self.add("Conv", x, wei, bias, pads=pads, group=group, **attributes)

    def gemm(self, x: str, ic: int, oc: int) -> str:
        bias = self.constant(self.rng.normal(0, 0.2, oc).astype(np.float32))
        return self.add("Gemm", x, self.weights(oc, ic, fan_in=ic), bias, transB=1)

    def model(self, dst: str, dims: tuple[int, ...], src: tuple[int, ...] = SOURCE) -> Any:
        self.nodes[-1].output[0] = dst
        inputs = [helper.make_tensor_value_info("x", 1, src)]
        outputs = [helper.make_tensor_value_info(dst, 1, dims)]
        graph = helper.make_graph(self.nodes, "network", inputs, outputs, self.constants)
        opset = max(OPSET, *(kind_of(node.op_type).since for node in self.nodes))
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9 + (opset > OPSET)
        )


def resnet() -> Any:
    """Residual blocks, one with a convolution on the shorter way, a head."""
    net = Network(1)
    x = net.add("Relu", net.conv("x", 3, 16, strides=[1, 1]))
    x = net.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for ic, oc, stride in ((16, 16, 1), (16, 32, 2)):
        way = net.add("Relu", net.conv(x, ic, oc, strides=[stride] * 2))
        way = net.conv(way, oc, oc)
        short = x if ic == oc else net.conv(x, ic, oc, 1, strides=[stride] * 2)
        x = net.add("Relu", net.add("Add", way, short))
    x = net.add("Flatten", net.add("GlobalAveragePool", x))
    net.gemm(x, 32, 10)
    return net.model("y", (2, 10))


def mobilenet() -> Any:
    """Inverted residuals: depthwise convolutions, Clip to [0, 6], additions without activation."""
    net = Network(2)

    def clipped(x: str) -> str:
        return net.add("Clip", x, net.constant(np.float32(0)), net.constant(np.float32(6)))

    x = clipped(net.conv("x", 3, 16, strides=[2, 2]))
    for ic, oc, stride in ((16, 24, 2), (24, 24, 1)):
        wide = clipped(net.conv(x, ic, 4 * ic, 1))
        wide = clipped(net.conv(wide, 4 * ic, 4 * ic, 3, 4 * ic, strides=[stride] * 2))
        narrow = net.conv(wide, 4 * ic, oc, 1)
        x = net.add("Add", narrow, x) if ic == oc else narrow
    x = net.add("Flatten", net.add("GlobalAveragePool", clipped(net.conv(x, 24, 48, 1))))
    net.gemm(x, 48, 10)
    return net.model("y", (2, 10))


def unet() -> Any:
    """Down and up again: a transposed convolution, Concat, Resize, a sigmoid at the end."""
    net = Network(3)
    top = net.add("Relu", net.conv("x", 3, 16))
    low = net.add("MaxPool", top, kernel_shape=[2, 2], strides=[2, 2])
    low = net.add("LeakyRelu", net.conv(low, 16, 32), alpha=0.1)
    lowest = net.add("AveragePool", low, kernel_shape=[2, 2], strides=[2, 2])
    sizes = net.constant(np.array([1, 1, 2, 2], np.float32))
    up = net.add("Resize", net.conv(lowest, 32, 32), "", sizes, mode="nearest",
                 coordinate_transformation_mode="asymmetric", nearest_mode="floor")  # fmt: skip
    low = net.add("Concat", up, low, axis=1)
    wei = net.weights(64, 16, 2, 2, fan_in=64)
    bias = net.constant(net.rng.normal(0, 0.2, 16).astype(np.float32))
    up = net.add("Relu", net.add("ConvTranspose", low, wei, bias, strides=[2, 2]))
    both = net.add("Concat", up, top, axis=1)
    net.add("Sigmoid", net.conv(both, 32, 4, 1))
    return net.model("y", (2, 4, 16, 16))


def perceptron() -> Any:
    """Gemm and MatMul, with the bias apart, and Softmax."""
    net = Network(4)
    x = net.add("Flatten", "x")
    x = net.add("Relu", net.gemm(x, 768, 64))
    x = net.add("LeakyRelu", net.gemm(x, 64, 48), alpha=0.2)
    x = net.add("MatMul", x, net.weights(48, 32, fan_in=48))
    x = net.add("Relu", net.add("Add", x, net.constant(net.rng.normal(0, 0.2, 32).astype("f4"))))
    net.add("Softmax", net.gemm(x, 32, 10), axis=-1)
    return net.model("y", (2, 10))


def gated() -> Any:
    """Squeeze and excite, and activations of mobile networks."""
    net = Network(5)
    x = net.add("HardSwish", net.conv("x", 3, 16, strides=[2, 2]))
    x = net.conv(x, 16, 32, 1)
    x = net.add("Mul", x, net.add("Sigmoid", x))
    mean = net.add("GlobalAveragePool", x)
    gate = net.add("Relu", net.conv(mean, 32, 8, 1))
    gate = net.add("HardSigmoid", net.conv(gate, 8, 32, 1))
    x = net.conv(net.add("Mul", x, gate), 32, 16, 1)
    x = net.add("Gelu", net.conv(x, 16, 16))
    x = net.add("Tanh", net.conv(x, 16, 16))
    net.gemm(net.add("Flatten", net.add("GlobalAveragePool", x)), 16, 10)
    return net.model("y", (2, 10))


def transformer() -> Any:
    """A block of self-attention over 16 tokens of 48 numbers, two heads."""
    net = Network(6)
    x = net.add("Reshape", "x", net.constant(np.array([2, 16, 48])))

    def dense(x: str, ic: int, oc: int) -> str:
        x = net.add("MatMul", x, net.weights(ic, oc, fan_in=ic))
        return net.add("Add", x, net.constant(net.rng.normal(0, 0.2, oc).astype(np.float32)))

    def normal(x: str) -> str:
        gain = net.constant(net.rng.uniform(0.5, 1.5, 48).astype(np.float32))
        shift = net.constant(net.rng.normal(0, 0.2, 48).astype(np.float32))
        return net.add("LayerNormalization", x, gain, shift, axis=-1)

    heads = net.constant(np.array([2, 16, 2, 24]))
    q, k, v = (net.add("Reshape", dense(x, 48, 48), heads) for _ in range(3))
    q, v = (net.add("Transpose", each, perm=[0, 2, 1, 3]) for each in (q, v))
    scores = net.add("MatMul", q, net.add("Transpose", k, perm=[0, 2, 3, 1]))
    scores = net.add("Div", scores, net.constant(np.float32(np.sqrt(24))))
    mixed = net.add("MatMul", net.add("Softmax", scores, axis=-1), v)
    mixed = net.add("Transpose", mixed, perm=[0, 2, 1, 3])
    mixed = net.add("Reshape", mixed, net.constant(np.array([2, 16, 48])))
    x = normal(net.add("Add", dense(mixed, 48, 48), x))
    wide = net.add("Gelu", dense(x, 48, 96))
    x = normal(net.add("Add", dense(wide, 96, 48), x))
    net.add("Tanh", x)
    return net.model("y", (2, 16, 48))


def detector() -> Any:
    """A head over two resolutions: x · sigmoid(x), Split, Concat, Resize, strides."""
    net = Network(7)

    def silu(x: str) -> str:
        return net.add("Mul", x, net.add("Sigmoid", x))

    high = silu(net.conv("x", 3, 16, strides=[2, 2]))
    net.nodes.append(
        helper.make_node("Split", [high], ["left", "right"], "split", axis=1, num_outputs=2)
    )
    way = silu(net.conv("right", 8, 8))
    high = silu(
        net.conv(net.add("Concat", "left", net.add("Add", way, "right"), axis=1), 16, 16, 1)
    )
    low = silu(net.conv(high, 16, 32, strides=[2, 2]))
    pooled = net.add("MaxPool", low, kernel_shape=[3, 3], strides=[1, 1], pads=[1] * 4)
    low = silu(net.conv(net.add("Concat", low, pooled, axis=1), 64, 32, 1))
    sizes = net.constant(np.array([1, 1, 2, 2], np.float32))
    up = net.add("Resize", low, "", sizes, mode="nearest",
                 coordinate_transformation_mode="asymmetric", nearest_mode="floor")  # fmt: skip
    high = silu(net.conv(net.add("Concat", up, high, axis=1), 48, 16, 1))
    flat = net.constant(np.array([2, 9, -1]))
    outputs = [net.add("Reshape", net.conv(high, 16, 9, 1), flat)]
    outputs.append(net.add("Reshape", net.conv(low, 32, 9, 1), flat))
    net.add("Sigmoid", net.add("Concat", *outputs, axis=2))
    return net.model("y", (2, 9, 80))


NETWORKS: Mapping[str, Callable[[], Any]] = MappingProxyType(
    {
        each.__name__: each
        for each in (resnet, mobilenet, unet, perceptron, gated, transformer, detector)
    }
)


class _Feeds:
    def __init__(self, dims: tuple[int, ...]) -> None:
        rng = np.random.default_rng(99)
        self._feeds: Iterator[Any] = iter(
            [{"x": rng.normal(0, 1, dims).astype(np.float32)} for _ in range(8)]
        )

    def get_next(self) -> Any:
        return next(self._feeds, None)


def dynamic(network: str, folder: Path, *, per_channel: bool, bits: int = 7) -> Path:
    """Return the path of a network as onnxruntime's dynamic quantizer writes it."""
    before, path = folder / "float.onnx", folder / "dynamic.onnx"
    onnx.save(NETWORKS[network](), before)
    quantization.quantize_dynamic(
        str(before), str(path), per_channel=per_channel, reduce_range=bits < 8
    )
    return path


def quantized(
    network: str, folder: Path, form: str, dtype: str, *, per_channel: bool, bits: int = 7
) -> Path:
    """Return the path of a network as onnxruntime's static quantizer writes it.

    form: "QDQ" or "QOperator". dtype: of activations, "u8" or "s8".
    """
    before, path = folder / "float.onnx", folder / "quantized.onnx"
    onnx.save(NETWORKS[network](), before)
    types = {"u8": quantization.QuantType.QUInt8, "s8": quantization.QuantType.QInt8}
    quantization.quantize_static(
        str(before),
        str(path),
        _Feeds(SOURCE),
        quant_format=quantization.QuantFormat[form],
        per_channel=per_channel,
        activation_type=types[dtype],
        weight_type=quantization.QuantType.QInt8,
        # Weights of 7 bits: no CPU's pairs of products leave 16 bits.
        reduce_range=bits < 8,
    )
    return path
