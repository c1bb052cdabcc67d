"""What an attempt with something float asks for, in codes; no check of the package is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.ranges import Dynamic
from support.calls.rows import Rows, with_own_range
from support.hostile.attempt import Made
from support.oracle_numbers import INTEGER_RANGES, numpy_dtype, short_name

if TYPE_CHECKING:
    from support.calls.call import Call

    Array = np.ndarray[Any, Any]

_F = np.float32
_FLT_MAX = float(np.finfo(_F).max)


class MustBeRefusedError(Exception):
    """An argument that the judge knows no meaning for."""


def require(condition: object, text: str) -> None:
    """Go on only if there is a meaning."""
    if not condition:
        raise MustBeRefusedError(text)


def of_floats(
    kind: str, settings: dict[str, Any], wei: Array, bias: Array | None
) -> tuple[Array, Array | None]:
    """Return codes and bias of a float layer; its settings become those of the codes."""
    require("wei_q" not in settings, "wei_q for float weights")
    require(settings.get("src_q") is not None, "no src_q for float weights")
    levels = settings.pop("wei_levels", 255)
    dtype: Any = short_name(settings.pop("src_dtype", "u8"))
    require(isinstance(levels, int) and levels % 2 == 1 and 3 <= levels <= 255, f"{levels} levels")
    floats = [np.dtype(np.float64), *map(numpy_dtype, ("f32", "bf16", "f16"))]
    require(wei.dtype in floats and wei.ndim >= 2 and wei.size, f"weights of {wei.dtype}")
    require(np.isfinite(wei).all(), "weights that are not finite")
    axis = -1 if kind == "matmul" else 0
    rows = np.moveaxis(wei.astype(np.float64), axis, 0)
    largest = np.abs(rows.reshape(len(rows), -1)).max(axis=1)
    ends = np.where(largest > 0, largest, 1.0)
    scale = ends / (levels // 2)
    # As FakeQuantize has it: levels are counted, and ties rounded, from the lowest one on. Products
    # first: with them ties of short floats are exact.
    steps = rows * (levels // 2) / ends.reshape(-1, *(1,) * (rows.ndim - 1))
    codes = np.rint(steps + levels // 2) - levels // 2
    named = {"scale": scale, "zero_point": 0, "dtype": "s8", "axis": 0}
    settings["wei_q"] = Made(QParams, (), {**named, "axis": axis})
    if bias is not None:
        require(bias.dtype in floats, f"a bias of {bias.dtype}")
        with np.errstate(over="ignore"):
            bias = bias.astype(_F)
    for name, store in (("src_q", dtype), ("dst_q", short_name(settings.get("dst") or "u8"))):
        if isinstance(settings.get(name), (tuple, list)):
            settings[name] = _of_range(name, settings[name], store)
            if name == "dst_q":
                settings["dst"] = store
    return np.moveaxis(codes, 0, axis).astype(np.int8), bias


def _of_range(name: str, ends: Any, dtype: Any) -> Made:
    require(len(ends) == 2 and dtype in {"u8", "s8"}, f"{name}={ends!r} of {dtype!r}")
    for end in ends:
        is_number = isinstance(end, (int, float, np.integer, np.floating))
        require(is_number and not isinstance(end, bool), f"{name}={ends!r}")
        require(abs(end) <= _FLT_MAX, f"{name}={ends!r}")
    require(ends[0] <= ends[1], f"{name}={ends!r}")
    lo, hi = _F(min(ends[0], 0.0)), _F(max(ends[1], 0.0))
    least, greatest = INTEGER_RANGES[dtype]
    with np.errstate(over="ignore"):
        scale = (hi - lo) / _F(255)
    require(np.isfinite(scale), f"{name}={ends!r}")
    scale = _F(1) if lo == hi == 0 else np.maximum(scale, np.finfo(_F).tiny)
    point = int(np.clip(np.rint(_F(least) - lo / scale), least, greatest))
    given = {"scale": float(scale), "zero_point": point, "dtype": dtype, "axis": None}
    return Made(QParams, (), given)


def own_range(settings: dict[str, Any]) -> Dynamic | None:
    """Take out how calls find the range of their source, if they do."""
    given = settings.get("src_q")
    if isinstance(given, Made) and given.of is Dynamic:
        dtype, extent = short_name(given.named["dtype"]), given.named["extent"]
        require(isinstance(dtype, str) and dtype in {"u8", "s8"}, f"a Dynamic of {dtype!r}")
        fits = isinstance(extent, str) and extent in {"per_tensor", "per_row"}
        require(fits, f"a Dynamic {extent!r}")
        given = given.make()
    if not isinstance(given, Dynamic):
        return None
    del settings["src_q"]
    return given


def in_codes_of_own_range(call: Call, dynamic: Dynamic) -> Call | Rows:
    """Return the call on codes of the source's own range, or of each row's."""
    src = call.src
    require(src.dtype == _F, f"a dynamic source of {src.dtype}")
    require(np.isfinite(src).all(), "a dynamic source that is not finite")
    if src.size and dynamic.dtype == "u8":
        with np.errstate(over="ignore"):
            span = np.maximum(src.max(), _F(0)) - np.minimum(src.min(), _F(0))
        require(np.isfinite(span) or dynamic.extent == "per_row", "a range beyond float32")
    require(call.wei_q is not None, "a dynamic source without wei_q")
    require(call.wei.size, "no weights")
    if dynamic.extent == "per_row":
        require(call.kind in {"inner_product", "matmul"}, "rows of a convolution")
        columns = Rows(call, dynamic.dtype).columns
        require(src.ndim >= 2, f"a source of {src.shape}")
        have = src.shape[-1] if call.kind == "matmul" else int(np.prod(src.shape[1:]))
        require(have == columns, f"rows of {have}")
        return Rows(call, dynamic.dtype)
    if not src.size:
        codes = src.astype(numpy_dtype(dynamic.dtype))
        return call.but(src=codes, src_q=QParams(1.0, 0, dynamic.dtype))
    return with_own_range(call, dynamic.dtype)
