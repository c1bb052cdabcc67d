"""Convolution and deconvolution."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.argument import integers, items, whole
from pyonednn_q.errors import ShapeError
from pyonednn_q.ops.arrays import as_array
from pyonednn_q.ops.operator import Operator
from pyonednn_q.ops.settings import Settings
from pyonednn_q.primitive.problem import ConvProblem, DeconvProblem
from pyonednn_q.primitive.window import padding_sides, per_dim

if TYPE_CHECKING:
    from pyonednn_q.expr.chain import Chain
    from pyonednn_q.primitive.window import Padding, PerDim
    from pyonednn_q.qparams import QParams
    from pyonednn_q.quantize.ranges import Dynamic

__all__ = ["Conv", "Deconv"]

Array = np.ndarray[Any, Any]
Dims = tuple[int, ...]


class _Windowed(Operator):
    """What convolution and deconvolution share: weights (OC, IC / groups, spatial), a window."""

    _problem_of: type[ConvProblem | DeconvProblem]

    def __init__(
        self,
        /,
        wei: object,
        bias: object = None,
        *,
        src_q: QParams | Dynamic | None = None,
        wei_q: QParams | None = None,
        dst_q: QParams | None = None,
        dst: str | None = None,
        stride: PerDim = 1,
        padding: Padding = 0,
        dilation: PerDim = 1,
        groups: int = 1,
        post: Chain | None = None,
        **options: Any,  # noqa: ANN401 - the other fields of Settings
    ) -> None:
        self.groups = whole("groups", groups, lo=1)
        self.window = {
            "stride": _kept("stride", stride),
            "padding": _kept("padding", padding),
            "dilation": _kept("dilation", dilation),
        }
        given = as_array("wei", wei)
        self._check_wei_dims(given)
        spatial = given.ndim - 2
        for name in ("stride", "dilation"):
            per_dim(name, self.window[name], spatial)
        padding_sides(self.window["padding"], spatial)
        super().__init__(given, bias, wei_q, Settings.of(src_q, dst_q, dst, post, options))

    def bare(self, wei: Array, groups: int, dtype: str) -> Operator:
        """Return the same operator for plain products of codes with s8 weights."""
        return type(self)(wei, **self.window, groups=groups, **self.settings.bare(dtype))

    def _check_wei_dims(self, wei: Array) -> None:
        if not 3 <= wei.ndim <= 5:
            wanted = "(OC, IC / groups, 1 to 3 spatial dimensions)"
            raise ShapeError("wei", str(wei.shape), wanted)
        if wei.shape[0] % self.groups:
            wanted = f"a multiple of {self.groups} groups"
            raise ShapeError("wei", f"{wei.shape[0]} output channels", wanted)

    def _problem(self, src_dims: Dims, src_dtype: str) -> ConvProblem | DeconvProblem:
        dims = self.weights.values.shape
        if len(src_dims) != len(dims):
            raise ShapeError("src", str(src_dims), f"{len(dims)} dimensions, as wei has")
        if self.groups > 1:
            dims = (self.groups, dims[0] // self.groups, *dims[1:])
        return self._problem_of.of(
            src_dims,
            dims,
            src=src_dtype,
            wei=self.weights.dtype,
            dst=self.settings.dst,
            bias=None if self.bias is None else "f32",
            strides=self.window["stride"],
            padding=self.window["padding"],
            dilation=self.window["dilation"],
        )


def _kept(name: str, value: Any) -> Any:  # noqa: ANN401 - one number, a row, or a table
    """Return a part of a window as its caller wrote it, of numbers and tuples of them."""
    if not isinstance(value, Iterable):
        return value
    rows = items(name, value, object)
    return tuple(integers(name, row) if isinstance(row, Iterable) else row for row in rows)


class Conv(_Windowed):
    """A convolution made ready: dst = store(post(src_scale · wei_scale · acc + bias)).

    Parameters
    ----------
    wei : (OC, IC / groups, spatial) array
        s8 or u8 codes with `wei_q`; f32, bf16 or f16 without.
    bias : (OC,) array, optional
        f32: real values, as oneDNN v3 adds them. s32: units of the accumulator, worth
        src_scale · wei_scale each, as ONNX and TFLite have them.
    src_q, wei_q : QParams, optional
        Of integer tensors; both or neither. `wei_q` per tensor, or along axis 0. With `src_q`, f32
        sources are taken, too, and quantized so; with a `Dynamic` in its place, by a range that
        each call finds.
    dst_q : QParams, optional
        Of an integer result, per tensor.
    dst : str, optional
        Data type of a result without `dst_q`; f32 by default.
    stride, dilation : int or sequence of int
        A dilation of 1 is dense.
    padding : int or sequence
        For all sides, for each dimension, or (lo, hi) for each; or the low sides of all dimensions
        and then the high ones, as ONNX's pads. Padded places hold real 0.
    groups : int
        Of channels.
    post : Chain, optional
        What follows: FakeQuantize, activations, Sum, operands.
    policy, exact_rounding, layout, strict, allow_reference, saturation, zero_point, requantize
        As in `Settings`; so are `self_check` and `tune`.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument, what came and what would do.
    """

    kind = "convolution"
    _problem_of = ConvProblem


class Deconv(_Windowed):
    """A deconvolution made ready; parameters as of `Conv`.

    Weights are (OC, IC / groups, spatial), as oneDNN has them; other frameworks swap the first two.
    """

    kind = "deconvolution"
    _problem_of = DeconvProblem
