"""Parts of an operator that is made from a float layer: codes, QParams, and a chain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import instance, items
from pyonednn_q.compose.layer_composer import dst_codes, src_codes
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.fq_qparams import qparams_from_fq
from pyonednn_q.expr.steps import Chain
from pyonednn_q.ops.arrays import as_array
from pyonednn_q.ops.staged import SourceLevels
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.group_codes import group_codes
from pyonednn_q.quantize.ranges import Dynamic, qparams_from_range
from pyonednn_q.quantize.weight_rows import whole_weight_codes
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyonednn_q.dtypes import DType

_LEVELS = 256
_WEI_LEVELS = 255  # of options that say nothing
_PAIR = 2
_IN_GROUPS = {"bits": 8, "symmetric": True, "method": "rtn", "samples": None}  # usual values


def quantized_layer(
    wei: object, bias: object, axis: int, options: Mapping[str, Any], dst_axis: int
) -> tuple[Array, Array | None, dict[str, Any]]:
    """Quantize what `from_float` is called with.

    Parameters
    ----------
    wei, bias : tensor
        Floats; the bias may be None.
    axis : int
        Axis of the output channels in `wei`.
    options : mapping
        Options of `FloatOptions`, all of them, and others.
    dst_axis : int
        Axis of the channels in the result.

    Returns
    -------
    (ndarray of int8, ndarray of float32 or None, dict)
        Codes of the weights, real values of the bias, and options of the operator.
    """
    layer = dict(options)
    wei_fq, wei_levels = layer.pop("wei_fq"), layer.pop("wei_levels")
    in_groups: dict[str, Any] = {name: layer.pop(name) for name in _IN_GROUPS if name in layer}
    if in_groups and (size := layer.pop("groups")) is not None:
        _refuse_levels(wei_fq, wei_levels)
        if in_groups["samples"] is not None:
            in_groups["samples"] = as_array("samples", in_groups["samples"])
        codes, wei_q = group_codes(_float_weights(wei), size, axis=axis, **in_groups)
    else:
        _refuse_few(in_groups)
        codes, wei_q = _quantized_weights(wei, axis, wei_fq, wei_levels)
    if isinstance(layer["dst_q"], FakeQuantize):
        layer["dst_q"].check_axis("dst_q", dst_axis)
    names = ("dst_q", "dst", "post")
    stored = _quantized_store(*(layer[name] for name in names))
    src_q = _source_params(layer["src_q"], layer.pop("src_dtype"))
    layer |= {"src_q": src_q, "wei_q": wei_q, **dict(zip(names, stored, strict=True))}
    return codes, _float_bias(bias), layer


def _quantized_weights(
    wei: object, axis: int, wei_fq: FakeQuantize | None, levels: int
) -> tuple[Array, QParams]:
    """Return s8 codes of float weights, and what they are worth.

    Parameters
    ----------
    wei : tensor
        f32, bf16, f16 or float64; in the operator's dims.
    axis : int
        Axis of the output channels.
    wei_fq : FakeQuantize or None
        FakeQuantize of the tensor or of each output channel. None: each channel's largest
        magnitude.
    levels : int
        Number of levels of that default.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        An argument that does not fit, named in the text.
    """
    wei_array = _float_weights(wei)
    if wei_array.ndim < _PAIR or not wei_array.size:
        raise ShapeError("wei", str(wei_array.shape), "output channels, and weights for each")
    values = np.moveaxis(wei_array.astype(np.float64), axis, 0)
    rows = values.reshape(len(values), -1)
    if wei_fq is not None:
        instance("wei_fq", wei_fq, FakeQuantize)
        wei_fq.check_axis("wei_fq", axis % wei_array.ndim - wei_array.ndim)
    quantized = whole_weight_codes(rows, wei_fq, levels)
    points = quantized.zero_point
    codes = np.moveaxis(quantized.codes.reshape(values.shape), 0, axis)
    if wei_fq is not None and wei_fq.channels is None:
        return codes, QParams(quantized.scale.least, int(points.least), "s8")
    scales, whole = quantized.scale.spread(len(rows)), points.spread(len(rows)).astype(np.int64)
    return codes, QParams(scales, whole, "s8", axis=axis)


def _float_weights(wei: object) -> Array:
    wei_array = as_array("wei", wei)
    if wei_array.dtype != np.float64:
        wanted = "real values: array.astype('float32'); codes go to the operator itself, with wei_q"
        name = dtypes.from_numpy(wei_array.dtype, "wei", wanted)
        if not dtypes.is_float(name):
            raise DTypeError("wei", name, wanted)
    return wei_array


def _refuse_levels(wei_fq: object, wei_levels: object) -> None:
    """Refuse what says how weights without groups are quantized."""
    if wei_fq is not None:
        raise ArgumentError("wei_fq", shown(wei_fq), "None with groups; or codes, with wei_q")
    if wei_levels != _WEI_LEVELS:
        raise ArgumentError("wei_levels", shown(wei_levels), "bits, with groups")


def _refuse_few(in_groups: Mapping[str, Any]) -> None:
    """Refuse options of groups where there are none."""
    for name, usual in _IN_GROUPS.items():
        value = in_groups.get(name, usual)
        if value is not usual and (isinstance(value, np.ndarray) or value != usual):
            wanted = f"groups, the size of a group, with {name}={shown(value)}"
            raise ArgumentError("groups", "None", wanted)


def _float_bias(bias: object) -> Array | None:
    """Return a bias in real units as f32.

    Raises
    ------
    DTypeError
        Integers, which say nothing without the scales that are only made here.
    """
    if bias is None:
        return None
    real = as_array("bias", bias)
    wanted = "real values: array.astype('float32')"
    if real.dtype != np.float64 and not dtypes.is_float(
        dtypes.from_numpy(real.dtype, "bias", wanted)
    ):
        raise DTypeError("bias", str(real.dtype), wanted)
    with np.errstate(over="ignore"):
        return real.astype(np.float32)


def _source_params(src_q: object, dtype: DType) -> QParams | SourceLevels | Dynamic:
    """Return how a source is quantized, from QParams, a range, a FakeQuantize, or every call's own.

    Parameters
    ----------
    src_q : QParams, Dynamic, FakeQuantize or (lo, hi)
        A FakeQuantize for the tensor; 256 levels with a whole zero point are QParams.
    dtype : {"u8", "s8"}
        Data type of the codes, where `src_q` does not say it.

    Raises
    ------
    ArgumentError, DTypeError
        Naming ``src_q``.
    """
    if isinstance(src_q, (QParams, Dynamic)):
        return src_q
    if isinstance(src_q, FakeQuantize):
        dtype = dtypes.checked(dtype, "src_dtype", ("u8", "s8"))
        levels = SourceLevels.of(src_codes(src_q, dtype, "src_q"), dtype)
        same = src_q.input_low == src_q.output_low and src_q.input_high == src_q.output_high
        has_zero = dtypes.qmin(dtype) <= round(levels.zero_point) <= dtypes.qmax(dtype)
        codes = qparams_from_fq(src_q, dtype) if same and has_zero else None
        return codes.qparams if src_q.levels == _LEVELS and codes and codes.is_exact() else levels
    return _from_range("src_q", src_q, dtype)


def _quantized_store(
    dst_q: object, dtype: DType | None, post: Chain | None
) -> tuple[QParams | None, DType | None, Chain | None]:
    """Return ``dst_q``, ``dst`` and ``post`` of an operator, from how its result is quantized.

    Parameters
    ----------
    dst_q : QParams, FakeQuantize, (lo, hi) or None
        A FakeQuantize may have any levels and a range for every channel: it joins the chain, whose
        result is then stored as codes, or as the values of those if `dtype` is floating.
    dtype : str or None
        Data type of the result; u8 for a range or a FakeQuantize unless said.
    post : Chain or None
        Steps before the ones that are added.
    """
    if dst_q is None or isinstance(dst_q, QParams):
        return dst_q, dtype, post
    if post is not None:
        instance("post", post, Chain)
    stored = "u8" if dtype is None else dtypes.checked(dtype, "dst")
    if isinstance(dst_q, FakeQuantize):
        dtypes.checked(stored, "dst", ("u8", "s8", "f32", "bf16", "f16"))
        cut = dst_codes(dst_q, stored, "dst_q")
        last = dst_q.chain() if cut is None else Chain(*cut.quantize)
        return None, stored, (post or Chain()) + last
    return _from_range("dst_q", dst_q, stored), stored, post


def _from_range(name: str, values: object, dtype: DType) -> QParams:
    ends = items(name, values, object) if isinstance(values, (tuple, list)) else ()
    if len(ends) != _PAIR:
        wanted = "QParams, a FakeQuantize or a range (lo, hi)"
        raise ArgumentError(name, shown(values), wanted)
    # What estimators return: arrays without dimensions.
    lo, hi = (
        each.item() if isinstance(each, np.ndarray) and each.ndim == 0 else each for each in ends
    )
    try:
        return qparams_from_range(lo, hi, dtype)
    except DTypeError as error:
        argument = "src_dtype" if name == "src_q" else "dst"
        raise DTypeError(argument, error.got, error.wanted) from None
    except ArgumentError as error:
        raise ArgumentError(name, f"{error.argument} {error.got}", error.wanted) from None
