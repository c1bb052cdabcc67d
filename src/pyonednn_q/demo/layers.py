"""The layers on oneDNN: each one as a problem, attributes and constants, made ready to run.

FP32 and INT8 layers differ in data types and attributes only. Activations stay channels-last from
layer to layer, so that no call copies its source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pyonednn_q import native
from pyonednn_q.compose.attr import Attr, Scale
from pyonednn_q.compose.post_ops import EltwisePostOp
from pyonednn_q.compose.problem import ConvProblem, MatMulProblem, PoolingProblem
from pyonednn_q.compose.tensor import TensorSpec
from pyonednn_q.demo.network import PADDING, Conv, Dense, MaxPool, Network, flatten
from pyonednn_q.demo.quantise import PIXELS, Int8Layer, Int8Network
from pyonednn_q.qparams import QParams, mask_from_axis

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A layer ready to run.

    Attributes
    ----------
    name : str
        The layer's name.
    prepared : native.Prepared
        What oneDNN runs.
    src_q, dst_q : QParams or None
        What source and result codes stand for; None where they are f32.
    """

    name: str
    prepared: native.Prepared
    src_q: QParams | None = None
    dst_q: QParams | None = None

    def view(self, src: Array) -> Array:
        """Return `src` in the rank this layer takes: dense layers take (N, K), without a copy."""
        return flatten(src) if self.prepared.problem.kind == "matmul" else src

    def encode(self, real: Array) -> Array:
        """Return real source values as this layer takes them."""
        return real if self.src_q is None else self.src_q.quantize(real)

    def decode(self, dst: Array) -> Array:
        """Return the real values of a result."""
        return dst if self.dst_q is None else self.dst_q.dequantize(dst)


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A step with its arrays, so that calling it allocates no result."""

    prepared: native.Prepared
    src: Array
    dst: Array

    def __call__(self) -> None:
        """Run the layer into `dst`."""
        self.prepared(self.src, out=self.dst)


def float_steps(network: Network, image_dims: tuple[int, ...]) -> tuple[Step, ...]:
    """Prepare every layer in FP32; relu is an eltwise post-op.

    Parameters
    ----------
    network : Network
        The fitted layers.
    image_dims : tuple of int
        (N, C, H, W) of the images of each call.

    Returns
    -------
    tuple of Step
    """
    steps = []
    dims = image_dims
    relu = Attr(post_ops=(EltwisePostOp("relu"),))
    for layer in network:
        if isinstance(layer, MaxPool):
            prepared = native.prepare(pooling(layer, dims, "f32"))
        else:
            attr = relu if isinstance(layer, Conv) or layer.relu else Attr()
            problem = dense_or_conv(layer, dims, src="f32", wei="f32", dst="f32")
            prepared = native.prepare(problem, attr, wei=layer.wei, bias=layer.bias)
        steps.append(Step(layer.name, prepared))
        dims = prepared.problem.tensors["dst"].dims
    return tuple(steps)


def int8_steps(network: Int8Network, image_dims: tuple[int, ...]) -> tuple[Step, ...]:
    """Prepare every layer in INT8: u8 activations, s8 weights, one folded scale per channel.

    Parameters
    ----------
    network : Int8Network
        The quantised layers.
    image_dims : tuple of int
        (N, C, H, W) of the images of each call.

    Returns
    -------
    tuple of Step
    """
    steps = []
    dims = image_dims
    src_q: QParams | None = PIXELS
    for layer in network:
        if isinstance(layer, MaxPool):
            prepared = native.prepare(pooling(layer, dims, "u8"))
            step = Step(layer.name, prepared, src_q, src_q)
        else:
            prepared = int8_layer(layer, dims)
            step = Step(layer.layer.name, prepared, layer.src_q, layer.dst_q)
        steps.append(step)
        dims, src_q = prepared.problem.tensors["dst"].dims, step.dst_q
    return tuple(steps)


def int8_layer(layer: Int8Layer, src_dims: tuple[int, ...]) -> native.Prepared:
    """Prepare one quantised layer.

    Parameters
    ----------
    layer : Int8Layer
        Integers and scales.
    src_dims : tuple of int
        (N, C, H, W) for a conv; a dense layer flattens it.

    Returns
    -------
    native.Prepared
        u8 in; u8 out with a dst scale, f32 out without.
    """
    dst = "f32" if layer.dst_q is None else "u8"
    problem = dense_or_conv(layer.layer, src_dims, src="u8", wei="s8", dst=dst)
    mask = mask_from_axis(problem.kind, layer.wei_q.axis, layer.wei.ndim)
    attr = Attr(wei_scale=Scale(mask))
    values: dict[str, object] = {"wei_scale": layer.wei_scale}
    if layer.dst_q is not None:
        attr = Attr(wei_scale=Scale(mask), dst_scale=Scale())
        values["dst_scale"] = layer.dst_q.scale
    return native.prepare(problem, attr, wei=layer.wei, bias=layer.layer.bias, values=values)


def dense_or_conv(
    layer: Conv | Dense, src_dims: tuple[int, ...], *, src: str, wei: str, dst: str
) -> ConvProblem | MatMulProblem:
    """Return the problem of a layer with weights, its bias in f32.

    Dense layers are matmuls: oneDNN's inner product takes fewer attributes.
    """
    if isinstance(layer, Conv):
        return ConvProblem.of(
            src_dims, layer.wei.shape, src=src, wei=wei, dst=dst, bias="f32", padding=PADDING
        )
    flat = (src_dims[0], int(np.prod(src_dims[1:])))
    return MatMulProblem.of(flat, layer.wei.shape, src=src, wei=wei, dst=dst, bias="f32")


def pooling(layer: MaxPool, src_dims: tuple[int, ...], dtype: str) -> PoolingProblem:
    """Return the problem of a max pool; it works on u8 codes as on floats."""
    count, channels, height, width = src_dims
    side = layer.kernel
    dst_dims = (count, channels, height // side, width // side)
    return PoolingProblem(
        src=TensorSpec.channels_last(src_dims, dtype),
        dst=TensorSpec.channels_last(dst_dims, dtype),
        alg="max",
        kernel=(side, side),
        strides=(side, side),
        dilation=(1, 1),
        padding_lo=(0, 0),
        padding_hi=(0, 0),
    )


def bind(steps: Sequence[Step], images: Array) -> tuple[Call, ...]:
    """Give every step its arrays, each one reading what the one before it writes.

    Parameters
    ----------
    steps : sequence of Step
        The network.
    images : (N, 1, H, W)
        In the dtype of the first step's source.

    Returns
    -------
    tuple of Call
        Run in order, they leave every layer's result in `dst`.
    """
    calls: list[Call] = []
    src = images
    for step in steps:
        call = Call(step.prepared, step.view(src), step.prepared.empty())
        calls.append(call)
        src = call.dst
    return tuple(calls)
