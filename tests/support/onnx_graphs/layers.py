"""Layers, of floats and of codes, quantizers, and Microsoft's operators on codes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from support.onnx_graphs.draw import Dims, GraphDraw, NotHere
from support.onnx_graphs.kinds import Kind
from support.onnx_graphs.windows import image, window

CODES = (np.uint8, np.int8)
_OF_CODES = " of codes"


def scale(draw: GraphDraw, dims: Dims = ()) -> str:
    values = draw.rng.uniform(0.01, 0.06, dims)
    values = np.exp2(np.rint(np.log2(values))) if draw.maybe(0.3) else values
    return draw.constant(np.asarray(values, np.float32))


def point(draw: GraphDraw, dtype: Any, dims: Dims = ()) -> str:
    info = np.iinfo(dtype)
    middle = (info.min + info.max + 1) // 2
    lo, hi = draw.one((middle, middle), (info.min, info.min), (middle - 40, middle + 40))
    return draw.constant(np.asarray(draw.rng.integers(lo, hi + 1, dims)).astype(dtype))


def quantized(draw: GraphDraw, name: str = "") -> tuple[str, str, str]:
    """Add a QuantizeLinear of a tensor; return codes, scale and zero point."""
    q = (scale(draw), point(draw, draw.one(*CODES)))
    (codes,) = draw.add("QuantizeLinear", name or draw.tensor(), *q)
    return codes, *q


def real(draw: GraphDraw, name: str = "") -> str:
    """Return the real values of codes of a tensor."""
    (values,) = draw.add("DequantizeLinear", *quantized(draw, name))
    return str(values)


def weights(draw: GraphDraw, dims: Dims, axis: int, dtype: Any = None) -> tuple[str, str, str, Any]:
    """Return constant codes, their scales and zero points, and the axis of those."""
    dtype = dtype or draw.one(np.int8, np.int8, np.uint8)
    along = draw.opset >= 13 and draw.maybe()
    lengths = (dims[axis],) if along else ()
    codes = draw.constant(draw.rng.integers(-64, 65, dims).astype(np.int64).astype(np.int8))
    if dtype == np.uint8:
        codes = draw.constant((draw.rng.integers(0, 256, dims)).astype(np.uint8))
    points = point(draw, dtype, lengths) if draw.maybe(0.3) else None
    if points is None:
        points = draw.constant(np.zeros(lengths, dtype))
    return codes, scale(draw, lengths), points, axis if along else None


def real_weights(draw: GraphDraw, dims: Dims, axis: int) -> str:
    """Return weights behind DequantizeLinear, and sometimes behind what moves them."""
    turn = draw.rng.random()
    if turn < 0.15:
        perm = [int(each) for each in draw.rng.permutation(len(dims))]
        before = tuple(dims[perm.index(at)] for at in range(len(dims)))
        codes, *q, along = weights(draw, before, perm[axis])
        (name,) = draw.add("DequantizeLinear", codes, *q, axis=along)
        return str(draw.add("Transpose", name, perm=perm)[0])
    if turn < 0.25:
        codes, *q, along = weights(draw, (*dims, 1), axis)
        (name,) = draw.add("DequantizeLinear", codes, *q, axis=along)
        return str(draw.add("Reshape", name, draw.whole_constant(*dims))[0])
    codes, *q, along = weights(draw, dims, axis)
    (name,) = draw.add("DequantizeLinear", codes, *q, axis=along)
    return str(draw.add("Cast", name, to=1)[0]) if turn < 0.3 else str(name)


def _conv_dims(draw: GraphDraw, channels: int, kernel: list[int]) -> tuple[Dims, int]:
    groups = draw.one(*(each for each in range(1, channels + 1) if channels % each == 0), 1, 1)
    outputs = groups * draw.whole(1, 4)
    return (outputs, channels // groups, *kernel), groups


def _conv_window(draw: GraphDraw) -> dict[str, Any]:
    given = window(draw, draw.one(1, 2, 2, 2, 3))
    if draw.maybe(0.3) and given.get("auto_pad", "VALID") == "VALID":
        given["dilations"] = [draw.whole(1, 2) for _ in given["kernel_shape"]]
    return given


def _conv(draw: GraphDraw, operator: str) -> None:
    given = _conv_window(draw)
    is_codes = draw.maybe(0.6)
    name = image(draw, given)
    if not draw.dims_of(name)[1]:
        raise NotHere("no channels")
    dims, groups = _conv_dims(draw, draw.dims_of(name)[1], given["kernel_shape"])
    wei = real_weights(draw, dims, 0) if is_codes else draw.source(dims)
    src = real(draw, name) if is_codes else name
    more = [_bias(draw, dims[0], is_codes)] if draw.maybe() else []
    (name,) = draw.add(operator, src, wei, *more, group=groups, **given)
    follow(draw, name)


def _deconv(draw: GraphDraw, operator: str) -> None:
    given = window(draw, draw.one(1, 2, 2))
    if given.get("auto_pad", "VALID") != "VALID":
        given.pop("auto_pad")
    name = image(draw, given)
    channels = draw.dims_of(name)[1]
    if 0 in draw.dims_of(name):
        raise NotHere("no elements")
    dims, groups = _conv_dims(draw, channels, given["kernel_shape"])
    dims = (channels, dims[0] // groups, *dims[2:])
    is_codes = draw.maybe()
    wei = real_weights(draw, dims, 1) if is_codes else draw.source(dims)
    src = real(draw, name) if is_codes else name
    if "strides" in given and draw.maybe(0.3):
        given["output_padding"] = [draw.whole(0, each - 1) for each in given["strides"]]
    (name,) = draw.add(operator, src, wei, group=groups, **given)
    follow(draw, name)


def _dense(draw: GraphDraw, operator: str) -> None:
    src = real(draw, draw.tensor(*((2,) if operator == "Gemm" else (2, 3, 4))))
    inner, columns = draw.dims_of(src)[-1], draw.length()
    if operator == "MatMul":
        (name,) = draw.add(operator, src, real_weights(draw, (inner, columns), 1))
    else:
        turned = draw.whole(0, 1)
        dims = (columns, inner) if turned else (inner, columns)
        wei = real_weights(draw, dims, 0 if turned else 1)
        more = [_bias(draw, columns, True)] if draw.maybe() or draw.opset < 11 else []
        given = {"alpha": draw.one(0.5, 2.0, -1.0)} if draw.maybe(0.3) else {}
        (name,) = draw.add(operator, src, wei, *more, transB=turned, **given)
    follow(draw, name)


def _of_codes(draw: GraphDraw, _operator: str) -> None:
    """Add a product of codes that are computed."""
    first = real(draw, draw.tensor(2, 3, 4))
    dims = draw.dims_of(first)
    second = real(draw, draw.source((*dims[:-2], dims[-1], draw.whole(1, 5))))
    real(draw, draw.add("MatMul", first, second)[0])


def _bias(draw: GraphDraw, channels: int, is_codes: bool) -> str:
    """Return a bias: values, or codes of 32 bits behind DequantizeLinear."""
    if not is_codes or draw.maybe():
        return draw.source((channels,))
    codes = draw.constant(draw.rng.integers(-4000, 4000, channels).astype(np.int32))
    steps = draw.constant(np.array(draw.rng.uniform(1e-4, 1e-3), np.float32))
    return str(draw.add("DequantizeLinear", codes, steps)[0])


def follow(draw: GraphDraw, name: str) -> None:
    """Add what often follows a layer, and codes of it."""
    share = draw.rng.random()
    if share < 0.25:
        (name,) = draw.add(draw.one("Relu", "Sigmoid", "Tanh", "LeakyRelu"), name)
    elif share < 0.45:
        (name,) = draw.add(draw.one("Add", "Mul", "Sub"), name, draw.beside(name))
    elif share < 0.65:  # a residual of codes
        own = real(draw, name) if draw.maybe() else name
        kind = draw.one("Add", "Add", "Mul")
        (name,) = draw.add(kind, own, real(draw, draw.source(draw.dims_of(name))))
        if draw.maybe():
            (name,) = draw.add("Relu", name)
    if draw.maybe(0.6):
        real(draw, name)


def _between(draw: GraphDraw, kind: str) -> None:
    """Add an operator between codes."""
    operator = kind.removesuffix(_OF_CODES)
    src = real(draw, draw.tensor(*((4,) if "Pool" in operator else ())))
    given: dict[str, Any] = {}
    if operator in {"MaxPool", "AveragePool"}:
        given = window(draw, 2)
        if any(n < k for n, k in zip(draw.dims_of(src)[2:], given["kernel_shape"], strict=True)):
            src = real(draw, image(draw, given))
        if operator == "AveragePool" and draw.maybe():
            given["count_include_pad"] = 1
    elif operator in {"Softmax", "Concat"}:
        if not draw.dims_of(src):
            raise NotHere("no axis")
        given = {"axis": draw.whole(0, len(draw.dims_of(src)) - 1)}
    more = [real(draw, draw.beside(src))] if operator in {"Add", "Mul", "Sub"} else []
    if operator == "Concat":
        more = [
            real(draw, src) if draw.maybe(0.6) else draw.constant(draw.array(draw.dims_of(src)))
        ]
    real(draw, draw.add(operator, src, *more, **given)[0])


def _pair(draw: GraphDraw, _operator: str) -> None:
    real(draw)


def _typed(draw: GraphDraw, operator: str) -> None:
    """Add quantizers without zero point, with axes, with a type of their own, of 16 bits."""
    name = draw.tensor(1, 2, 3, 4)
    dims = draw.dims_of(name)
    if draw.opset >= 21 and draw.maybe():
        (codes,) = draw.add(operator, name, scale(draw), output_dtype=draw.one(2, 3))
        draw.add("DequantizeLinear", codes, scale(draw))
    elif draw.opset >= 13 and draw.maybe():
        axis = draw.whole(-len(dims), len(dims) - 1)
        q = [scale(draw, (dims[axis],)), point(draw, draw.one(*CODES), (dims[axis],))]
        (codes,) = draw.add(operator, name, *q, axis=axis)
        draw.add("DequantizeLinear", codes, *q, axis=axis)
    else:
        q = [scale(draw)]
        (codes,) = draw.add(operator, name, *q)
        draw.add("DequantizeLinear", codes, *q)


def _dynamic(draw: GraphDraw, operator: str) -> None:
    name = draw.tensor(2, 3)
    if 0 in draw.dims_of(name):
        raise NotHere("no range")
    codes, step, zero = draw.add(operator, name, outputs=3)
    inner, columns = draw.dims_of(name)[-1], draw.whole(1, 5)
    wei = draw.constant(draw.rng.integers(-64, 65, (inner, columns)).astype(np.int8))
    share = draw.rng.random()
    if share < 0.3:
        draw.add("DequantizeLinear", codes, step, zero)
        return
    more = [draw.constant(np.int8(0))] if draw.maybe() else []
    (total,) = draw.add("MatMulInteger", codes, wei, zero, *more)
    (total,) = draw.add("Cast", total, to=1)
    (factor,) = draw.add("Mul", step, draw.constant(np.float32(0.02)))
    draw.add("Mul", total, factor)


def _integer_conv(draw: GraphDraw, operator: str) -> None:
    given = _conv_window(draw)
    name = image(draw, given, np.uint8)
    if 0 in draw.dims_of(name):
        raise NotHere("no elements")
    dims, groups = _conv_dims(draw, draw.dims_of(name)[1], given["kernel_shape"])
    more = [draw.constant(np.uint8(draw.whole(0, 255)))] if draw.maybe() else []
    wei = draw.constant(draw.rng.integers(0, 256, dims).astype(np.uint8))
    draw.add(operator, name, wei, *more, group=groups, **given)


def _linear_conv(draw: GraphDraw, operator: str) -> None:
    given = _conv_window(draw)
    src = quantized(draw, image(draw, given))
    if 0 in draw.dims_of(src[0]):
        raise NotHere("no elements")
    dims, groups = _conv_dims(draw, draw.dims_of(src[0])[1], given["kernel_shape"])
    codes, step, zero, _ = weights(draw, dims, 0, np.int8)
    dst = (scale(draw), point(draw, draw.type(src[0])[0]))
    bias = [draw.constant(draw.rng.integers(-500, 500, dims[0]).astype(np.int32))]
    (name,) = draw.add(
        operator, *src, codes, step, zero, *dst, *(bias if draw.maybe() else []),
        group=groups, **given,
    )  # fmt: skip
    draw.add("DequantizeLinear", name, *dst)


def _linear_matmul(draw: GraphDraw, operator: str) -> None:
    src = quantized(draw, draw.tensor(2, 3))
    inner, columns = draw.dims_of(src[0])[-1], draw.whole(1, 5)
    codes = draw.constant(draw.rng.integers(-64, 65, (inner, columns)).astype(np.int8))
    wei = (codes, scale(draw), draw.constant(np.int8(0)))
    dst = (scale(draw), point(draw, draw.type(src[0])[0]))
    (name,) = draw.add(operator, *src, *wei, *dst)
    draw.add("DequantizeLinear", name, *dst)


def _microsoft(draw: GraphDraw, operator: str) -> None:
    """Add an operator of one source or two, from codes to codes."""
    is_pool = "Pool" in operator
    src = quantized(draw, draw.tensor(*((4,) if is_pool else (1, 2, 3, 4))))
    kind, dims = draw.type(src[0])
    dst = (scale(draw), point(draw, kind))
    given: dict[str, Any] = {}
    more: list[str] = []
    if operator in {"QLinearAdd", "QLinearMul"}:
        more = [draw.source(dims, kind), scale(draw), point(draw, kind)]
    elif operator == "QLinearSoftmax":
        # One over all axes from there on, by its own attribute.
        given = {"axis": draw.whole(0, len(dims) - 1), "opset": draw.one(11, 12, 13, draw.opset)}
    elif operator == "QLinearLeakyRelu":
        given = {"alpha": 0.25} if draw.maybe() else {}
    elif operator == "QLinearConcat":
        axis = draw.whole(0, len(dims) - 1)
        other = list(dims)
        other[axis] += 1
        more = [draw.source(tuple(other), kind), scale(draw), point(draw, kind)]
        (name,) = draw.add(operator, *dst, *src, *more, axis=axis, microsoft=True)
        other[axis] += dims[axis]
        draw.add("DequantizeLinear", draw.says(name, kind, tuple(other)), *dst)
        return
    elif is_pool:
        given = {"channels_last": 0}
        dims = (*dims[:2], 1, 1)
    if 0 in dims:
        raise NotHere("no elements")
    (name,) = draw.add(operator, *src, *more, *dst, microsoft=True, **given)
    draw.add("DequantizeLinear", draw.says(name, kind, dims), *dst)


def _their_quantizer(draw: GraphDraw, operator: str) -> None:
    name = draw.tensor(1, 2, 3, 4)
    dims, kind = draw.dims_of(name), draw.one(*CODES, np.uint16, np.int16)
    axis = draw.whole(0, len(dims) - 1) if draw.maybe(0.3) else None
    lengths = () if axis is None else (dims[axis],)
    q = [scale(draw, lengths), point(draw, kind, lengths)]
    q = q if draw.maybe(0.8) else q[:1]
    kind = kind if len(q) == 2 else np.uint8
    (codes,) = draw.add(operator, name, *q, axis=axis, microsoft=True)
    draw.says(codes, kind, dims)
    (values,) = draw.add("DequantizeLinear", codes, *q, axis=axis, microsoft=True)
    draw.says(values, np.float32, dims)


def _of_bits(draw: GraphDraw, operator: str) -> None:
    """Add MatMulNBits: weights of 4 bits in blocks."""
    inner, columns, block = draw.whole(1, 40), draw.whole(1, 6), draw.one(16, 32)
    bits = draw.one(4, 4, 8)
    blocks = -(-inner // block)
    packed = draw.rng.integers(0, 256, (columns, blocks, block * bits // 8)).astype(np.uint8)
    scales = draw.rng.uniform(0.01, 0.1, columns * blocks).astype(np.float32)
    bytes_of_points = columns * -(-blocks * bits // 8)
    zero = draw.rng.integers(0, 256, bytes_of_points).astype(np.uint8)
    more = [draw.constant(zero)] if draw.maybe() else []
    name = draw.source((draw.whole(1, 4), inner))
    inputs = (name, draw.constant(packed), draw.constant(scales), *more)
    given = {"K": inner, "N": columns, "bits": bits, "block_size": block}
    (result,) = draw.add(operator, *inputs, microsoft=True, **given)
    draw.says(result, np.float32, (draw.dims_of(name)[0], columns))


LAYERS: Mapping[str, Kind] = MappingProxyType(
    {
        "Conv": _conv,
        "ConvTranspose": _deconv,
        "Gemm": _dense,
        "MatMul": _dense,
        "MatMul of codes": _of_codes,
        "QuantizeLinear": _typed,
        "DynamicQuantizeLinear": _dynamic,
        "ConvInteger": _integer_conv,
        "QLinearConv": _linear_conv,
        "QLinearMatMul": _linear_matmul,
        **dict.fromkeys(
            (
                "QLinearAdd", "QLinearConcat", "QLinearGlobalAveragePool", "QLinearLeakyRelu",
                "QLinearMul", "QLinearSigmoid", "QLinearSoftmax",
            ),
            _microsoft,
        ),
        "microsoft.QuantizeLinear": lambda draw, _: _their_quantizer(draw, "QuantizeLinear"),
        "MatMulNBits": _of_bits,
        "codes": _pair,
        **{
            f"{operator}{_OF_CODES}": _between
            for operator in (
                "Add", "AveragePool", "Clip", "Concat", "GlobalAveragePool", "GlobalMaxPool",
                "LeakyRelu", "MaxPool", "Mul", "Relu", "Sigmoid", "Softmax", "Sub",
            )
        },
    }
)  # fmt: skip
