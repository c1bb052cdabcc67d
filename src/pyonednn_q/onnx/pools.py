"""MaxPool and AveragePool on codes, for which `onnx.reference` takes seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.emulate.pool_windows import Pooling
from pyonednn_q.emulate.pooling import max_pool
from pyonednn_q.onnx.linear import dequantize_linear, quantize_linear

if TYPE_CHECKING:
    from pyonednn_q.onnx.fused_node import CodeOperation
    from pyonednn_q.qparams import QParams


def pool(what: CodeOperation) -> Callable[[Array], Array] | None:
    """Return a function from codes to codes, of whole windows without dilation and wider than pads.

    A mean is that of ONNX's definition, in float32: of the real values that the codes stand for.
    Returns None for any other operation.

    Parameters
    ----------
    what : CodeOperation
        Operation with one source.
    """
    attributes = what.attributes
    is_plain = (
        attributes.get("auto_pad", "NOTSET") == "NOTSET"
        and not attributes.get("ceil_mode", 0)
        and set(attributes.get("dilations", ())) <= {1}
        and not what.post.steps
        and "kernel_shape" in attributes
    )
    if not is_plain or what.row.over != "windows":
        return None
    kernel = attributes["kernel_shape"]
    stride, pads = attributes.get("strides", 1), attributes.get("pads", 0)
    if pads and any(pad >= k for pad, k in zip(pads, (*kernel, *kernel), strict=True)):
        return None
    if what.row.pool == "max":
        if not what.moves_codes:
            return None
        return lambda src: max_pool(src, kernel, stride=stride, padding=pads, dialect="onednn")
    whole = bool(attributes.get("count_include_pad", 0))
    src_q, dst_q = onnx_numbers(what.srcs_q[0]), onnx_numbers(what.dst_q)

    def mean(src: Array) -> Array:
        windows = Pooling(src.shape, kernel, stride, pads)
        sums = windows.sums(dequantize_linear(src, *src_q))
        count = np.float32(windows.size) if whole else windows.counts(src.shape).astype(np.float32)
        return quantize_linear(np.asarray(sums / count, np.float32), *dst_q)

    return mean


def onnx_numbers(q: QParams | None) -> tuple[Array, Array]:
    """Return scale and zero point as ONNX has them."""
    assert q is not None
    point = np.asarray(q.zero_point).astype(np.uint8 if q.dtype == "u8" else np.int8)
    return np.asarray(q.scale, np.float32), point
