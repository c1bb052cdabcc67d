"""A small runner: one ONNX node, by its operator, as one call of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pyonednn_q.ops.functional import conv, matmul
from pyonednn_q.qparams import QParams
from support.oracle_numbers import numpy_dtype

Array = np.ndarray[Any, Any]
Inputs = list[Array | None]
Attributes = Mapping[str, Any]


def run_node(op_type: str, inputs: Inputs, attributes: Attributes) -> Array:
    """Compute a node."""
    return _NODES[op_type](inputs, attributes)


def _name(dtype: np.dtype[Any]) -> str:
    return next(name for name in ("u8", "s8", "s32", "s4", "u4") if numpy_dtype(name) == dtype)


def _params(scale: Any, point: Array | None, dtype: np.dtype[Any], axis: int | None) -> QParams:
    """Return parameters: one for the tensor, or one for each index along an axis."""
    scales = np.asarray(scale, np.float64)
    points = np.zeros((), np.int64) if point is None else np.asarray(point).astype(np.int64)
    if scales.size == 1 and points.size == 1:
        return QParams(float(scales.reshape(())), int(points.reshape(())), _name(dtype))
    return QParams(
        scales.reshape(-1) if scales.size > 1 else float(scales.reshape(())),
        points.reshape(-1) if points.size > 1 else int(points.reshape(())),
        _name(dtype),
        axis=axis,
    )


def _window(attributes: Attributes) -> dict[str, Any]:
    assert attributes.get("auto_pad", b"NOTSET") in (b"NOTSET", "NOTSET")
    found: dict[str, Any] = {"groups": int(attributes.get("group", 1))}
    if "strides" in attributes:
        found["stride"] = tuple(attributes["strides"])
    if "dilations" in attributes:
        found["dilation"] = tuple(attributes["dilations"])
    if "pads" in attributes:
        pads = list(attributes["pads"])
        half = len(pads) // 2
        found["padding"] = tuple(zip(pads[:half], pads[half:], strict=True))
    return found


def _qlinear_conv(inputs: Inputs, attributes: Attributes) -> Array:
    src, src_scale, src_point, wei, wei_scale, wei_point, dst_scale, dst_point, *rest = inputs
    assert src is not None
    assert wei is not None
    assert dst_point is not None
    return conv(
        src,
        wei,
        rest[0] if rest else None,
        src_q=_params(src_scale, src_point, src.dtype, None),
        wei_q=_params(wei_scale, wei_point, wei.dtype, 0),
        dst_q=_params(dst_scale, dst_point, dst_point.dtype, None),
        exact_rounding=True,
        **_window(attributes),
    )


def _qlinear_matmul(inputs: Inputs, _: Attributes) -> Array:
    src, src_scale, src_point, wei, wei_scale, wei_point, dst_scale, dst_point = inputs
    assert src is not None
    assert wei is not None
    assert dst_point is not None
    return matmul(
        src,
        wei,
        src_q=_params(src_scale, src_point, src.dtype, None),
        wei_q=_params(wei_scale, wei_point, wei.dtype, -1),
        dst_q=_params(dst_scale, dst_point, dst_point.dtype, None),
        exact_rounding=True,
    )


def _integers(inputs: Inputs, axis: int) -> tuple[Array, Array, dict[str, Any]]:
    src, wei, src_point, wei_point = [*inputs, None, None][:4]
    assert src is not None
    assert wei is not None
    q = {
        "src_q": _params(1.0, src_point, src.dtype, None),
        "wei_q": _params(1.0, wei_point, wei.dtype, axis),
        "dst": "s32",
    }
    return src, wei, q


def _conv_integer(inputs: Inputs, attributes: Attributes) -> Array:
    src, wei, q = _integers(inputs, 0)
    return conv(src, wei, **q, **_window(attributes))


def _matmul_integer(inputs: Inputs, _: Attributes) -> Array:
    src, wei, q = _integers(inputs, -1)
    return matmul(src, wei, **q)


def _quantize(inputs: Inputs, attributes: Attributes) -> Array:
    x, scale, point = [*inputs, None][:3]
    assert x is not None
    dtype = np.dtype(np.uint8) if point is None else point.dtype
    return _params(scale, point, dtype, int(attributes.get("axis", 1))).quantize(x)


def _dequantize(inputs: Inputs, attributes: Attributes) -> Array:
    q, scale, point = [*inputs, None][:3]
    assert q is not None
    params = _params(scale, point, q.dtype, int(attributes.get("axis", 1)))
    return params.dequantize(q).astype(np.float32)


_NODES: dict[str, Callable[[Inputs, Attributes], Array]] = {
    "QLinearConv": _qlinear_conv,
    "QLinearMatMul": _qlinear_matmul,
    "ConvInteger": _conv_integer,
    "MatMulInteger": _matmul_integer,
    "QuantizeLinear": _quantize,
    "DequantizeLinear": _dequantize,
}
