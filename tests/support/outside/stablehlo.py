"""Our answers to StableHLO's quantized modules, by the meaning that its specification gives them.

A quantized operator is: dequantize, compute in reals, quantize. A product and the quantize that
follows it are one call of ours; the rest goes step by step.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import pyonednn_q as pq
from pyonednn_q import emulate as quantized
from pyonednn_q.requantize import quantize_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.outside.vectors import Case

Array = np.ndarray[Any, Any]
Step = dict[str, Any]

OURS = ("convolution", "dot_general", "add", "gather", "uniform_quantize")


class Value(NamedTuple):
    """A tensor of a module: codes with their type's parameters, or plain numbers."""

    array: Array
    kind: dict[str, Any]

    @property
    def q(self) -> pq.QParams:
        """Scale and zero point."""
        return _params(self.kind)

    @property
    def aligned(self) -> tuple[Array, Array]:
        """Scale and zero point, shaped to broadcast over the tensor."""
        return _aligned(self.kind, self.array.ndim)


def left_out(case: Case) -> str | None:
    """Return why there is no answer of ours to a case."""
    return None if case.op in OURS else f"{case.op}: no quantized operator of ours"


def answer(case: Case, requantize: str | None = None) -> tuple[Array, Array]:
    """Return what the product makes of a module, and what its author expects.

    Products end in oneDNN's own arithmetic, or in a dialect.
    """
    given = case.attributes
    values = {name: Value(array, {}) for name, array in case.tensors.items()}
    for step, then in _fused(given["steps"]):
        inputs = [values[name] for name in step["in"]]
        kind = then["to"]
        how = step | {"requantize": requantize}
        values[then["out"]] = Value(OPERATORS[step["op"]](inputs, how, kind), kind)
    return values[given["got"]].array, values[given["want"]].array


def _fused(steps: list[Step]) -> Iterator[tuple[Step, Step]]:
    """Give each step with the one whose result it makes: a product's sums are never stored."""
    left = list(steps)
    while left:
        step = left.pop(0)
        product = step["op"] in {"convolution", "dot_general"}
        if product:
            assert left[0]["op"] == "uniform_quantize"
            assert left[0]["in"] == [step["out"]]
        yield step, left.pop(0) if product else step


def _params(kind: dict[str, Any]) -> pq.QParams:
    (scale,), (zero_point,) = kind["scale"], kind["zero_point"]
    return pq.QParams(scale, zero_point, "s8")


def _aligned(kind: dict[str, Any], ndim: int) -> tuple[Array, Array]:
    shape = [1] * ndim
    if "axis" in kind:
        shape[kind["axis"]] = -1
    scale, zero_point = np.array(kind["scale"], np.float32), np.array(kind["zero_point"])
    if "axis" not in kind:
        return scale[0], zero_point[0]
    return scale.reshape(shape), zero_point.reshape(shape)


def _quantize(inputs: list[Value], step: Step, kind: dict[str, Any]) -> Array:
    (x,) = inputs
    if "scale" in x.kind and "axis" not in x.kind:
        return quantized.requantize(x.array, src_q=x.q, dst_q=_params(kind), dialect="stablehlo")
    real = _dequantize(inputs, step, kind) if "scale" in x.kind else x.array
    scale, zero_point = _aligned(kind, real.ndim)
    return quantize_rules.quantize(real, scale, zero_point, "s8", rule="stablehlo")


def _dequantize(inputs: list[Value], step: Step, kind: dict[str, Any]) -> Array:
    del step, kind
    return quantize_rules.dequantize(inputs[0].array, *inputs[0].aligned)


def _add(inputs: list[Value], step: Step, kind: dict[str, Any]) -> Array:
    del step
    a, b = inputs
    params = {"a_q": a.q, "b_q": b.q, "dst_q": _params(kind)}
    return quantized.add(a.array, b.array, **params, dialect="stablehlo")


def _convolution(inputs: list[Value], step: Step, kind: dict[str, Any]) -> Array:
    (src, wei), dims = inputs, step["dims"]
    spatial = [str(i) for i in range(src.array.ndim - 2)]
    x = src.array.transpose([dims[0].index(name) for name in ("b", "f", *spatial)])
    w = wei.array.transpose([dims[1].index(name) for name in ("o", "i", *spatial)])
    one, none = [1] * len(spatial), [[0, 0]] * len(spatial)
    pad, strides = step["pad"] or none, step["stride"] or one
    assert not any(step["reverse"] or [])
    groups, batches = step["feature_group_count"], step["batch_group_count"]
    if batches > 1:  # groups of the batch meet groups of the output channels
        x = np.concatenate(np.split(x, batches), axis=1)
        groups = batches
    options: dict[str, Any] = {
        "dilation": step["rhs_dilate"] or one,
        "groups": groups,
        "requantize": step["requantize"],
        "src_q": src.q,
        "wei_q": wei.q,
        "dst_q": _params(kind),
    }
    spread = step["lhs_dilate"] or one
    reach = [(n - 1) * d for n, d in zip(w.shape[2:], options["dilation"], strict=True)]
    padding = [(n - lo, n - hi) for n, (lo, hi) in zip(reach, pad, strict=True)]
    if max(spread) == 1:
        call: pq.Conv | pq.Deconv = pq.Conv(w.copy(), stride=strides, padding=pad, **options)
    elif max(strides) == 1 and min(map(min, padding)) >= 0:
        flipped = np.flip(w, tuple(range(2, w.ndim))).copy()
        call = pq.Deconv(flipped, stride=spread, padding=padding, **options)
    else:
        x = _spread(x, spread, int(src.q.zero_point))
        call = pq.Conv(w.copy(), stride=strides, padding=pad, **options)
    dst: Array = call(x).transpose([("b", "f", *spatial).index(name) for name in dims[2]])
    return dst


def _spread(x: Array, steps: list[int], zero_point: int) -> Array:
    """Put real zeros between neighbours."""
    wide = [(n - 1) * step + 1 for n, step in zip(x.shape[2:], steps, strict=True)]
    dilated = np.full((*x.shape[:2], *wide), zero_point, x.dtype)
    places = (slice(None), slice(None), *(slice(None, None, step) for step in steps))
    dilated[places] = x
    return dilated


def _dot_general(inputs: list[Value], step: Step, kind: dict[str, Any]) -> Array:
    src, wei = inputs
    batch, inner = step.get("batching_dims", [[], []]), step["contracting_dims"]
    x = _matrices(src.array, batch[0], inner[0])
    w = np.ascontiguousarray(_matrices(wei.array, batch[1], inner[1]).swapaxes(1, 2))
    params: dict[str, Any] = {"src_q": src.q, "wei_q": wei.q, "dst_q": _params(kind)}
    call = pq.MatMul(w, **params, requantize=step["requantize"])
    dst: Array = call(x).reshape(kind["shape"])
    return dst


def _matrices(array: Array, batch: list[int], inner: list[int]) -> Array:
    """Return (batch, rows, inner), whichever order the dimensions came in."""
    rows = [n for n in range(array.ndim) if n not in {*batch, *inner}]
    sizes = [prod(array.shape[n] for n in group) for group in (batch, rows, inner)]
    return np.ascontiguousarray(array.transpose([*batch, *rows, *inner])).reshape(sizes)


def _gather(inputs: list[Value], step: Step, kind: dict[str, Any]) -> Array:
    """Slices of codes, one for each index: no arithmetic."""
    del kind
    operand, starts = (value.array for value in inputs)
    offset, collapsed = step["offset_dims"] or [], step["collapsed_slice_dims"] or []
    assert not step["operand_batching_dims"]
    last = step["index_vector_dim"]
    vectors = starts[..., np.newaxis] if last == starts.ndim else np.moveaxis(starts, last, -1)
    sizes = step["slice_sizes"]
    slices = []
    for vector in vectors.reshape(-1, vectors.shape[-1]):
        first = np.zeros(operand.ndim, int)
        first[step["start_index_map"]] = vector
        first = np.clip(first, 0, np.subtract(operand.shape, sizes))
        one = operand[tuple(slice(lo, lo + n) for lo, n in zip(first, sizes, strict=True))]
        slices.append(one.squeeze(tuple(collapsed)))
    stacked = np.stack(slices).reshape(*vectors.shape[:-1], *slices[0].shape)
    # The dimensions of slices go where the result has them.
    places = range(vectors.ndim - 1, stacked.ndim)
    return np.moveaxis(stacked, places, offset)


def _reshape(inputs: list[Value], step: Step, kind: dict[str, Any]) -> Array:
    del step
    dst: Array = inputs[0].array.reshape(kind["shape"])
    return dst


def _transpose(inputs: list[Value], step: Step, kind: dict[str, Any]) -> Array:
    del kind
    dst: Array = inputs[0].array.transpose(step["dims"])
    return dst


def _concatenate(inputs: list[Value], step: Step, kind: dict[str, Any]) -> Array:
    del kind
    return np.concatenate([value.array for value in inputs], step["dim"])


OPERATORS: dict[str, Callable[[list[Value], Step, dict[str, Any]], Array]] = {
    "uniform_quantize": _quantize,
    "uniform_dequantize": _dequantize,
    "bitcast_convert": _reshape,
    "convolution": _convolution,
    "dot_general": _dot_general,
    "add": _add,
    "gather": _gather,
    "reshape": _reshape,
    "transpose": _transpose,
    "concatenate": _concatenate,
}
