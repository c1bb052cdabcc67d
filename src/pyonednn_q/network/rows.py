"""Operations on rows: products of two tensors of codes, softmax, normalization."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.argument import flag, instance, real, whole
from pyonednn_q.dtypes import F32_WHOLE, Array
from pyonednn_q.errors import ArgumentError, DTypeError, Error, ShapeError
from pyonednn_q.native import prepare
from pyonednn_q.native.program import Pass
from pyonednn_q.native.sums import may_saturate
from pyonednn_q.network.floats import floats_of
from pyonednn_q.network.moves import known
from pyonednn_q.network.operations import Dequantize, Quantize
from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.dense import MatMulProblem
from pyonednn_q.primitive.post_ops import EltwisePostOp
from pyonednn_q.primitive.problem import SoftmaxProblem
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.qparams import QParams

if TYPE_CHECKING:
    from pyonednn_q.native import Prepared
    from pyonednn_q.network.lowering import Lowering

_HALF = 128  # of 256 codes


@dataclass(frozen=True, slots=True)
class CodeMatMul:
    """The matrix product of two tensors of codes, rounded as ONNX's QLinearMatMul rounds.

        dst = saturate(rne(f32(acc) · M) + dst_zero_point),  M = f32(f32(src · wei) / dst) of scales

    Parameters
    ----------
    src_q, wei_q, dst_q : QParams
        Scales and zero points per tensor, u8 or s8. Sums of up to 258 products of codes are exact
        in float32; longer rows are refused. On a CPU without VNNI, kernels may saturate; there the
        same whole numbers are multiplied in float32, which gives the same codes, slower.
    """

    src_q: QParams
    wei_q: QParams
    dst_q: QParams

    def __post_init__(self) -> None:
        for name in ("src_q", "wei_q", "dst_q"):
            q = getattr(self, name)
            instance(name, q, QParams)
            if q.channels is not None or q.dtype not in {"u8", "s8"}:
                raise ArgumentError(name, str(q), "of a tensor, of u8 or s8")

    def takes(self, src: tuple[int, ...], wei: tuple[int, ...]) -> bool:
        """Tell whether a kernel takes sources of these dims, exactly."""
        try:
            self._primitive(src, wei)
        except Error:
            return False
        return True

    def lower(self, at: Lowering, dst: str, src: tuple[str, ...]) -> None:
        """Add its primitive, after a pass that converts its second source to s8."""
        if len(src) != 2:
            raise ArgumentError("src", f"{len(src)} tensors", "2")
        first, second = (at.specs[name] for name in src)
        for spec, q in ((first, self.src_q), (second, self.wei_q)):
            if spec.dtype != q.dtype:
                raise DTypeError("src", spec.dtype, q.dtype)
        product = self._primitive(first.dims, second.dims)
        if product is None:
            self._in_floats(at, dst, src)
            return
        rows = at.in_layout(src[0], TensorSpec.dense(first.dims, first.dtype))
        columns = at.in_layout(src[1], TensorSpec.dense(second.dims, second.dtype))
        if second.dtype == "u8":
            turned = at.fresh(src[1])
            dense = TensorSpec.dense(second.dims, "s8")
            strides = known(at.specs[columns]), known(dense)
            table = np.arange(256).astype(np.uint8) ^ np.uint8(_HALF)
            at.add(Pass.look_up(table, second.dims, *strides), (columns,), turned, dense)
            columns = turned
        reads = []
        for name, of in ((rows, "src"), (columns, "wei")):
            seen = at.fresh(name)
            at.view(seen, name, product.layout(of))
            reads.append(seen)
        result = at.fresh(dst)
        at.add(product, tuple(reads), result, product.layout("dst"))
        dims = (*first.dims[:-1], second.dims[-1])
        at.view(dst, result, TensorSpec.dense(dims, self.dst_q.dtype))

    def _in_floats(self, at: Lowering, dst: str, src: tuple[str, ...]) -> None:
        """Add the product of the same whole numbers in float32, which holds all their sums."""
        reads, dims = [], []
        for name, q in zip(src, (self.src_q, self.wei_q), strict=True):
            whole_numbers = at.fresh(name)
            point = int(q.zero_point)
            Dequantize(QParams(1.0, point, q.dtype)).lower(at, whole_numbers, (name,))
            dims.append(at.specs[name].dims)
            reads.append(at.in_layout(whole_numbers, TensorSpec.dense(dims[-1], "f32")))
        (*stack, rows, _), (*_, columns) = dims
        of = [TensorSpec.dense((prod(stack), *each[-2:]), "f32") for each in dims]
        spec = TensorSpec.dense((prod(stack), rows, columns), "f32")
        attr = Attr(post_ops=(EltwisePostOp("linear", alpha=self._factor()),))
        product = prepare(MatMulProblem(of[0], of[1], spec, None), attr)
        seen = [at.fresh(name) for name in reads]
        for view, name, each in zip(seen, reads, of, strict=True):
            at.view(view, name, each)
        sums, result = at.fresh(dst), at.fresh(dst)
        at.add(product, tuple(seen), sums, spec)
        at.view(result, sums, TensorSpec.dense((*stack, rows, columns), "f32"))
        params = QParams(1.0, int(self.dst_q.zero_point), self.dst_q.dtype)
        Quantize(params).lower(at, dst, (result,))

    def _factor(self) -> float:
        product = np.float32(self.src_q.scale) * np.float32(self.wei_q.scale)
        return float(product / np.float32(self.dst_q.scale))

    def _primitive(self, src: tuple[int, ...], wei: tuple[int, ...]) -> Prepared | None:
        """Return its kernel; None: without VNNI none adds products of any codes exactly."""
        if len(src) < 2 or src[:-2] != wei[:-2] or src[-1] != wei[-2]:
            raise ShapeError("src", f"{src} and {wei}", "(..., M, K) and (..., K, N)")
        if src[-1] * 255**2 > F32_WHOLE:
            raise ShapeError("src", f"rows of {src[-1]}", f"at most {F32_WHOLE // 255**2}")
        stack = (prod(src[:-2]),)
        problem = MatMulProblem(
            TensorSpec.dense(stack + src[-2:], self.src_q.dtype),
            TensorSpec.dense(stack + wei[-2:], "s8"),
            TensorSpec.dense((*stack, src[-2], wei[-1]), self.dst_q.dtype),
            None,
        )
        moved = _HALF if self.wei_q.dtype == "u8" else 0
        points = {
            "src_zero_point": int(self.src_q.zero_point),
            "wei_zero_point": int(self.wei_q.zero_point) - moved,
            "dst_zero_point": int(self.dst_q.zero_point),
        }
        declared: Any = {name: ZeroPoint() for name, point in points.items() if point}
        attr = Attr(
            wei_scale=Scale(),
            post_ops=(EltwisePostOp("round"),),
            **declared,
        )
        values: dict[str, object] = {"wei_scale": np.float32(self._factor())}
        values |= {name: np.int32(point) for name, point in points.items() if point}
        prepared = prepare(problem, attr, values=values)
        return None if may_saturate(problem, prepared.impl) else prepared


@dataclass(frozen=True, slots=True)
class Softmax:
    """exp(x) / Σ exp(x) of float32 values along an axis.

    Parameters
    ----------
    axis : int
        Axis; counted from the end when negative.
    """

    axis: int = -1

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", whole("axis", self.axis))

    def lower(self, at: Lowering, dst: str, src: tuple[str, ...]) -> None:
        """Add its primitive."""
        (name,) = src
        spec = floats_of(at, name)
        dense = TensorSpec.dense(spec.dims, "f32")
        softmax = prepare(SoftmaxProblem(dense, dense, self.axis))
        at.add(softmax, (at.in_layout(name, dense),), dst, softmax.layout("dst"))


@dataclass(frozen=True, eq=False, slots=True)
class LayerNorm:
    """(x - mean) / sqrt(variance + epsilon) · gain + shift of float32 values over the last axes.

    If not centered, it is x / sqrt(mean of x² + epsilon) · gain + shift.

    Parameters
    ----------
    gain, shift : ndarray of float32
        Factors and summands; their dims are those over which mean and variance are taken.
    epsilon : float
        Added to the variance, not below 0.
    is_centered : bool
        Whether the mean is subtracted.
    """

    gain: Array
    shift: Array
    epsilon: float = 1e-5
    is_centered: bool = True

    def __post_init__(self) -> None:
        for name in ("gain", "shift"):
            array = getattr(self, name)
            instance(name, array, np.ndarray)
            if array.dtype != np.float32:
                raise DTypeError(name, str(array.dtype), "float32")
        if self.gain.shape != self.shift.shape or not self.gain.size:
            raise ShapeError("shift", str(self.shift.shape), f"{self.gain.shape}, as gain")
        epsilon = real("epsilon", self.epsilon)
        if epsilon < 0:
            raise ArgumentError("epsilon", str(epsilon), "0 or more")
        object.__setattr__(self, "epsilon", epsilon)
        flag("is_centered", self.is_centered)

    def lower(self, at: Lowering, dst: str, src: tuple[str, ...]) -> None:
        """Add our pass over memory."""
        (name,) = src
        spec = floats_of(at, name)
        if spec.dims[-self.gain.ndim :] != self.gain.shape:
            raise ShapeError("gain", str(self.gain.shape), f"the last dimensions of {spec.dims}")
        lies = TensorSpec.dense(spec.dims, "f32")
        rows = spec.size // self.gain.size
        if self._is_the_same_everywhere and _lies_row_by_row(spec, self.gain.ndim):
            lies = spec
        values = self.gain.ravel(), self.shift.ravel()
        normal = Pass.layer_norm(rows, self.epsilon, *values, is_centered=self.is_centered)
        at.add(normal, (at.in_layout(name, lies),), dst, lies)

    @property
    def _is_the_same_everywhere(self) -> bool:
        """Whether the order of a row's values does not matter."""
        return all(np.ptp(each) == 0 for each in (self.gain, self.shift))


def _lies_row_by_row(spec: TensorSpec, axes: int) -> bool:
    """Return whether each row (the last axes, in any order) is contiguous, one row after another.

    This is so for channels-last images if a row is the whole image.
    """
    assert spec.strides is not None
    size, outer = prod(spec.dims[-axes:]), spec.ndim - axes
    dense = TensorSpec.dense((*spec.dims[:outer], size), "f32").strides
    assert dense is not None
    pairs = zip(spec.dims[:outer], spec.strides, dense, strict=False)
    return not spec.has_gaps and all(dim == 1 or own == wanted for dim, own, wanted in pairs)
