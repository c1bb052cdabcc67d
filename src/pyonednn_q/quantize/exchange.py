"""QParams as ONNX's QuantizeLinear and torch have them, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import instance, numbers, whole
from pyonednn_q.errors import ArgumentError
from pyonednn_q.qparams import QParams
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["from_onnx", "from_torch", "to_onnx", "to_torch"]

_TORCH = {"qint8": "s8", "quint8": "u8", "qint32": "s32"}


def to_onnx(qparams: QParams) -> dict[str, Any]:
    """Return the constants of QuantizeLinear and DequantizeLinear.

    Parameters
    ----------
    qparams : QParams
        Scale and zero point; the scale is rounded to float32.

    Returns
    -------
    dict
        "y_scale": float32, "y_zero_point": of the codes' type, both () or (C,); "axis": int, of
        channels and groups only; "block_size": int, of groups only. As inputs and attributes of the
        nodes.

    Raises
    ------
    ArgumentError
        A scale that becomes 0 or infinite in float32.

    Examples
    --------
    >>> to_onnx(QParams(0.5, 3, "u8"))
    {'y_scale': array(0.5, dtype=float32), 'y_zero_point': array(3, dtype=uint8)}
    """
    instance("qparams", qparams, QParams)
    with np.errstate(over="ignore"):
        scale = np.asarray(qparams.scale).astype(np.float32)
    if not (np.isfinite(scale) & (scale > 0.0)).all():
        raise ArgumentError("qparams", f"a scale of {qparams.scale}", "scales that float32 holds")
    point = np.asarray(qparams.zero_point).astype(dtypes.numpy_dtype(qparams.dtype))
    constants: dict[str, Any] = {"y_scale": scale, "y_zero_point": point}
    if qparams.block:
        constants["block_size"] = qparams.block[0]
    return constants if qparams.axis is None else {**constants, "axis": qparams.axis}


def from_onnx(
    y_scale: ArrayLike,
    y_zero_point: ArrayLike | None = None,
    axis: int = 1,
    *,
    block_size: int = 0,
) -> QParams:
    """Return the QParams of QuantizeLinear's or DequantizeLinear's constants.

    Parameters
    ----------
    y_scale : () or (C,) array_like of float
    y_zero_point : array of the codes' type, optional
        Zero point; its dtype is that of the codes. Default: u8 codes and zero point 0, as in ONNX.
    axis : int
        Axis of the channels, or of the blocks; ignored per tensor.
    block_size : int
        Number of neighbours along the axis that share a scale; 0: all of a channel.

    Raises
    ------
    ArgumentError, ShapeError, DTypeError
        Naming the argument.

    Examples
    --------
    >>> from_onnx(np.float32(0.5), np.int8(3))
    QParams(scale=0.5, zero_point=3, dtype='s8', axis=None)
    """
    scale = numbers("y_scale", y_scale)
    point = np.uint8(0) if y_zero_point is None else numbers("y_zero_point", y_zero_point, "iuV")
    dtype = dtypes.from_numpy(point.dtype, "y_zero_point")
    size = whole("block_size", block_size, lo=0)
    return QParams(
        scale, point, dtype, axis=axis if scale.ndim else None, block=(size,) if size else ()
    )


def to_torch(qparams: QParams) -> dict[str, Any]:
    """Return the arguments of torch's quantize_per_tensor or quantize_per_channel.

    Parameters
    ----------
    qparams : QParams
        Scale, zero point and type, per tensor or per channel.

    Returns
    -------
    dict
        Per tensor "scale": float, "zero_point": int; per channel "scales" and "zero_points", lists,
        and "axis"; "dtype": the name of torch's type, for ``getattr(torch, name)``.

    Raises
    ------
    ArgumentError
        A type that torch does not quantize to.

    Examples
    --------
    >>> to_torch(QParams([0.5, 1.0], 0, "s8", axis=0))["dtype"]
    'qint8'
    """
    instance("qparams", qparams, QParams)
    names = [name for name, ours in _TORCH.items() if ours == qparams.dtype]
    if not names:
        raise ArgumentError("qparams", qparams.dtype, f"one of {', '.join(_TORCH.values())}")
    if qparams.block:
        raise ArgumentError("qparams", f"groups of {qparams.block[0]}", "scales of channels")
    if qparams.axis is None:
        return {"scale": qparams.scale, "zero_point": qparams.zero_point, "dtype": names[0]}
    scales, points = np.asarray(qparams.scale), np.asarray(qparams.zero_point)
    channels = {"scales": scales.tolist(), "zero_points": points.tolist(), "axis": qparams.axis}
    return {**channels, "dtype": names[0]}


def from_torch(tensor: Any) -> QParams:  # noqa: ANN401 - torch is optional
    """Return the QParams of a quantized tensor of torch.

    Parameters
    ----------
    tensor : torch.Tensor
        Tensor that is quantized per tensor or per channel.

    Raises
    ------
    ArgumentError
        Anything else.
    """
    try:
        dtype = _TORCH[str(tensor.dtype).removeprefix("torch.")]
        if "channel" in str(tensor.qscheme()):
            scale = np.asarray(tensor.q_per_channel_scales(), np.float64)
            point = np.asarray(tensor.q_per_channel_zero_points()).astype(np.int64)
            return QParams(scale, point, dtype, axis=int(tensor.q_per_channel_axis()))
        return QParams(float(tensor.q_scale()), int(tensor.q_zero_point()), dtype)
    except ArgumentError:
        raise
    except Exception:
        raise ArgumentError("tensor", shown(tensor), "a quantized tensor of torch") from None
