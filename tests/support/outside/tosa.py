"""Our answers to TOSA's integer operators, by the meaning that its specification gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import pyonednn_q as pq
from pyonednn_q import emulate as quantized
from pyonednn_q.native.passes import requantize
from pyonednn_q.requantize import requantizer
from pyonednn_q.requantize.value import Requantizer

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.outside.vectors import Case

Array = np.ndarray[Any, Any]
Tensors = dict[str, Array]
Attributes = dict[str, Any]

# RESCALE's rounding modes. INEXACT_ROUND leaves the integer open; the model multiplies in float32.
SINGLE, INEXACT, DOUBLE = 1, 2, 3
DIALECTS = {
    SINGLE: "tosa_single_round",
    INEXACT: "onnxruntime",
    DOUBLE: "tosa_double_round",
}


def answer(case: Case, form: str = "s32") -> tuple[Array, Array]:
    """Return what the product makes of a case's inputs, and what the model does.

    Sums are asked for in one of `FORMS`.
    """
    want = case.tensors["dst"]
    if case.op not in SUMS:
        return OPERATORS[case.op](case.tensors, case.attributes), want
    got = SUMS[case.op](case.tensors, case.attributes, FORMS[form])
    return got, _inside(want, case.attributes.get("out_pad", [0, 0, 0, 0]))


def left_out(case: Case) -> str | None:
    """Return why there is no answer of ours to a case."""
    if case.op == "ADD" or (case.op == "MUL" and case.tensors["a"].dtype != np.int8):
        return f"{case.op} of {case.tensors['a'].dtype}: oneDNN's binary goes through float32"
    return None


def rescaling(tensors: Tensors, attributes: Attributes) -> tuple[Array, Requantizer]:
    """Return accumulators, and the arithmetic of a RESCALE."""
    src, src_zero_point = (
        _signless(tensors[name], attributes["input_unsigned"]) for name in ("src", "src_zero_point")
    )
    dst, dst_zero_point = (
        _signless(tensors[name], attributes["output_unsigned"])
        for name in ("dst", "dst_zero_point")
    )
    multiplier, shift = (tensors[name].astype(np.int64) for name in ("multiplier", "shift"))
    if len(multiplier) == 1:
        multiplier, shift = multiplier[0], shift[0]
    kind = {"int8": "s8", "uint8": "u8"}.get(dst.dtype.name, "s32")
    range_of = np.iinfo(dst.dtype)
    options: dict[str, Any] = {
        "bias": np.broadcast_to(-int(src_zero_point[0]), np.shape(multiplier)),
        "lo": int(range_of.min),
        "hi": int(range_of.max),
        "axis": -1 if np.ndim(multiplier) else None,
    }
    zero_point, mode = int(dst_zero_point[0]), attributes["rounding_mode"]
    if mode != INEXACT and (multiplier < 2**30).any():  # scales make none below
        once: dict[str, Any] = {"kind": "shift", "shift": -shift, "rounding": "half_up"}
        twice: dict[str, Any] = {
            "kind": "two_step",
            "shift": 31 - shift,
            "rounding": "half_away_from_zero",
        }
        options |= {"zero_point": zero_point, "dtype": kind, "multiplier": multiplier}
        return src.astype(np.int32), Requantizer(**options, **(twice if mode == DOUBLE else once))
    made = requantizer(
        DIALECTS[mode],
        src_scale=1.0,
        wei_scale=np.ldexp(multiplier.astype(np.float64), -shift),
        dst_scale=1.0,
        dst_zero_point=zero_point,
        dst_dtype=kind,
        **options | {"axis": -1},
    )
    return src.astype(np.int32), made


def _signless(array: Array, unsigned: bool) -> Array:
    return array.view(f"u{array.dtype}") if unsigned else array


def _rescale(tensors: Tensors, attributes: Attributes) -> Array:
    acc, made = rescaling(tensors, attributes)
    return requantize(acc, made).astype(tensors["dst"].dtype)


def _of(zero_point: Array) -> pq.QParams:
    return pq.QParams(1.0, int(zero_point.ravel()[0]), "s8")


def _pairs(pad: list[int]) -> list[tuple[int, int]]:
    return list(zip(pad[::2], pad[1::2], strict=True))


def _first(array: Array) -> Array:
    """Channels first, a view."""
    return np.moveaxis(array, -1, 1)


def _convolved(
    operator: type[pq.Conv | pq.Deconv], wei: Array, tensors: Tensors, **options: Any
) -> Array:
    bias = np.broadcast_to(tensors["bias"], wei.shape[:1])
    call = operator(
        wei,
        np.ascontiguousarray(bias),
        src_q=_of(tensors["src_zero_point"]),
        wei_q=_of(tensors["wei_zero_point"]),
        **options,
    )
    return np.moveaxis(call(_first(tensors["src"])), 1, -1)


def _conv(tensors: Tensors, attributes: Attributes, form: Attributes) -> Array:
    wei = np.ascontiguousarray(_first(tensors["wei"]))
    return _convolved(pq.Conv, wei, tensors, **_window(attributes), **form)


def _depthwise(tensors: Tensors, attributes: Attributes, form: Attributes) -> Array:
    height, width, channels, times = tensors["wei"].shape
    wei = tensors["wei"].transpose(2, 3, 0, 1).reshape(channels * times, 1, height, width)
    wei = np.ascontiguousarray(wei)
    return _convolved(pq.Conv, wei, tensors, groups=channels, **_window(attributes), **form)


def _window(attributes: dict[str, Any]) -> dict[str, Any]:
    window = {name: attributes[name] for name in ("stride", "dilation")}
    return window | {"padding": _pairs(attributes["pad"])}


def _transpose_conv(tensors: Tensors, attributes: Attributes, form: Attributes) -> Array:
    padding = [(max(-lo, 0), max(-hi, 0)) for lo, hi in _pairs(attributes["out_pad"])]
    window = {"stride": attributes["stride"], "padding": padding}
    wei = np.ascontiguousarray(_first(tensors["wei"]))
    return _convolved(pq.Deconv, wei, tensors, **window, **form)


def _inside(dst: Array, out_pad: list[int]) -> Array:
    """Leave out what is put around a result: the bias alone, and no operator of ours does that."""
    sides = [(max(lo, 0), max(hi, 0)) for lo, hi in _pairs(out_pad)]
    places = zip(sides, dst.shape[1:3], strict=True)
    inside = (slice(None), *(slice(lo, size - hi) for (lo, hi), size in places))
    return dst[inside]


def _matmul(tensors: Tensors, attributes: Attributes, form: Attributes) -> Array:
    del attributes
    src_q, wei_q = (_of(tensors[f"{name}_zero_point"]) for name in ("src", "wei"))
    return pq.MatMul(tensors["wei"], src_q=src_q, wei_q=wei_q, **form)(tensors["src"])


def _average(tensors: Tensors, attributes: Attributes) -> Array:
    src_q, dst_q = (_of(tensors[f"{name}_zero_point"]) for name in ("src", "dst"))
    window = {"stride": attributes["stride"], "padding": _pairs(attributes["pad"])}
    src, kernel = _first(tensors["src"]), attributes["kernel"]
    codes = quantized.average_pool(src, kernel, src_q=src_q, dst_q=dst_q, dialect="tosa", **window)
    return np.moveaxis(codes, 1, -1)


def _largest(tensors: Tensors, attributes: Attributes) -> Array:
    window = {"stride": attributes["stride"], "padding": _pairs(attributes["pad"])}
    codes = quantized.max_pool(_first(tensors["src"]), attributes["kernel"], **window)
    return np.moveaxis(codes, 1, -1)


def _clamp(tensors: Tensors, attributes: Attributes) -> Array:
    src = np.atleast_1d(tensors["src"])
    lo, hi = (
        np.int8(np.uint8(attributes[name][0]).view(np.int8)) for name in ("min_val", "max_val")
    )
    kind = pq.primitive.TensorSpec.dense(src.shape, "s8")
    clip = pq.prepare(pq.primitive.EltwiseProblem(kind, kind, "clip", float(lo), float(hi)))
    dst: Array = clip(src).reshape(tensors["src"].shape)
    return dst


def _mul(tensors: Tensors, attributes: Attributes) -> Array:
    """Products of 8 bits, for which there is a reference loop."""
    del attributes
    pair = np.broadcast_arrays(tensors["a"], tensors["b"])
    a, b = (np.ascontiguousarray(np.atleast_1d(one)) for one in pair)
    codes, products = (pq.primitive.TensorSpec.dense(a.shape, dtype) for dtype in ("s8", "s32"))
    problem = pq.primitive.BinaryProblem(codes, codes, products, "mul")
    call = pq.prepare(problem, allow_reference=True)
    dst: Array = call(a, b).reshape(tensors["dst"].shape)
    return dst


# How exact integers are asked for.
FORMS: dict[str, Attributes] = {
    "s32": {"dst": "s32"},
    "requantize": {"dst_q": pq.QParams(1.0, 0, "s32"), "requantize": "exact"},
}
SUMS: dict[str, Callable[[Tensors, Attributes, Attributes], Array]] = {
    "CONV2D": _conv,
    "CONV3D": _conv,
    "DEPTHWISE_CONV2D": _depthwise,
    "TRANSPOSE_CONV2D": _transpose_conv,
    "MATMUL": _matmul,
}
OPERATORS: dict[str, Callable[[Tensors, Attributes], Array]] = {
    "RESCALE": _rescale,
    "AVG_POOL2D": _average,
    "MAX_POOL2D": _largest,
    "CLAMP": _clamp,
    "MUL": _mul,
}
