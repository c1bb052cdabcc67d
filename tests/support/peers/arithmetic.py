"""What comes out of a call, operation by operation in float32: ours, and each peer's.

    ours        f32(acc) · f32(all scales) + f32(bias / dst_scale + zp), as the plan has folded them
    ONNX        rne(f32(acc + bias) · f32(f32(src · wei) / dst)) + zp
    torch       (acc · f32(src · wei) + bias, + sum, relu) · f32(1 / dst) + zp: oneDNN with scales
                apart; (acc · src) · wei on kernels other than AMX's; a sum is one fused operation
    OpenVINO    FakeQuantize folded into scale and shift, see `openvino`
    real        no rounding before the last

A peer that computes something else than is stated here makes a test fail: each statement is
compared with what the peer returns, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.expr.steps import Sum
from pyonednn_q.primitive.dense_facts import ACC_MAP
from pyonednn_q.primitive.post_ops import BinaryPostOp, EltwisePostOp, SumPostOp
from pyonednn_q.requantize import requantize
from support.oracle_numbers import INTEGER_RANGES, numpy_dtype

if TYPE_CHECKING:
    from support.calls.call import Call

    Array = np.ndarray[Any, Any]

F32 = np.float32


@dataclass(frozen=True, eq=False)
class Arithmetic:
    """The numbers of a call, from which each statement starts.

    The chain of a call may hold a Sum, and a relu after it.
    """

    call: Call

    @cached_property
    def acc(self) -> Array:
        """The exact sums of products."""
        acc = self.call.accumulators()
        assert np.abs(acc).max() < 2**24  # exact in float32
        return acc

    @property
    def acc_without_point(self) -> Array:
        """The sums as if the zero point of src were 0."""
        assert self.call.src_q is not None
        plain = replace(self.call.src_q, zero_point=0)
        return self.call.but(src_q=plain).accumulators()

    @property
    def scales(self) -> tuple[float, Array, float]:
        """Of src, weights (aligned with the result) and dst, as float64."""
        assert self.call.src_q is not None
        assert self.call.wei_q is not None
        assert self.call.dst_q is not None
        wei = np.asarray(self.call.wei_q.scale, np.float64)
        return float(self.call.src_q.scale), self.aligned(wei), float(self.call.dst_q.scale)

    @property
    def point(self) -> int:
        """The zero point of dst."""
        assert self.call.dst_q is not None
        return int(self.call.dst_q.zero_point)

    @property
    def bias(self) -> Array:
        """The bias as it was given, aligned; zeros without one."""
        return np.zeros(1, F32) if self.call.bias is None else self.aligned(self.call.bias)

    @property
    def added(self) -> Sum | None:
        """The Sum in the chain, if there is one."""
        return next((step for step in self.call.post if isinstance(step, Sum)), None)

    @property
    def has_relu(self) -> bool:
        """Whether a relu follows."""
        return len(self.call.post) > (self.added is not None)

    def aligned(self, values: Array) -> Array:
        """Return a vector along the channels of the result."""
        dims = [1] * self.acc.ndim
        dims[-1 if self.call.kind == "matmul" else 1] = -1
        return values.reshape(dims) if values.ndim else values

    def stored(self, levels: Array) -> Array:
        """Return levels, rounded to nearest even, in the type of the result."""
        whole = np.clip(np.rint(levels), *INTEGER_RANGES[self.call.dtype])
        return np.asarray(whole.astype(numpy_dtype(self.call.dtype)))


def ours(numbers: Arithmetic) -> Array:
    """What our primitive computes: the plan's constants, each operation rounded to float32."""
    call = numbers.call
    plan = call.operator().plan(call.src.shape)
    assert plan.is_whole
    values = plan.values()
    # Where no attribute carries the zero point of src, the bias does, or a map added to each place.
    acc = numbers.acc if "src_zero_point" in values else numbers.acc_without_point
    added = numbers.aligned(plan.acc_scale.values()) * (numbers.acc - acc)
    for name, leaf in plan.operands:
        assert leaf == ACC_MAP
        values[name] = added.astype(F32)
    x = acc.astype(F32) * numbers.aligned(values.get("wei_scale", np.ones(1, F32)).ravel())
    x = x * values.get("src_scale", F32(1))
    bias = plan.bias_values()
    if bias is not None:
        x = x + numbers.aligned(bias.ravel().astype(F32))
    for index, post_op in enumerate(plan.post_ops):
        x = _after(x, post_op, call.residual, values.get(f"post_op_{index}"))
    x = x * (F32(1) / values.get("dst_scale", F32(1)))
    return numbers.stored(x + values.get("dst_zero_point", np.zeros(1)).astype(F32))


def _after(x: Array, post_op: object, residual: Array | None, operand: Array | None) -> Array:
    if isinstance(post_op, SumPostOp):
        assert residual is not None
        points = residual.astype(F32) - F32(post_op.zero_point)
        return _fma(points, F32(post_op.scale), x)
    if isinstance(post_op, BinaryPostOp):
        assert operand is not None
        return {"mul": x * operand, "add": x + operand}[post_op.alg]
    assert isinstance(post_op, EltwisePostOp)
    alpha, beta = F32(post_op.alpha), F32(post_op.beta)
    if post_op.alg == "relu":
        return np.where(x > 0, x, alpha * x)
    made: dict[str, Callable[[], Array]] = {
        "round": lambda: np.rint(x),
        "clip": lambda: np.clip(x, alpha, beta),
        "clip_v2": lambda: np.clip(x, alpha, beta),
        "linear": lambda: _fma(x, alpha, beta),
    }
    return made[post_op.alg]()


def real(numbers: Arithmetic) -> Array:
    """No rounding but the last, after the zero point."""
    return numbers.stored(_levels(numbers) + numbers.point)


def real_point_last(numbers: Arithmetic) -> Array:
    """No rounding but the last, before the zero point."""
    return numbers.stored(np.rint(_levels(numbers)) + numbers.point)


def _levels(numbers: Arithmetic) -> Array:
    """Return levels above the zero point, in numbers long enough to meet ties where they are."""
    src, wei, dst = (np.asarray(scale, np.longdouble) for scale in numbers.scales)
    in_acc = numbers.bias.dtype.kind == "i"
    x = (numbers.acc + (numbers.bias if in_acc else 0)) * (src * wei)
    x = x + (0 if in_acc else numbers.bias)
    if numbers.added is not None:
        assert numbers.call.residual is not None
        points = numbers.call.residual - np.longdouble(numbers.added.zero_point)
        x = x + np.longdouble(numbers.added.scale) * points
    return (np.maximum(x, 0) if numbers.has_relu else x) / dst


def onnx(numbers: Arithmetic) -> Array:
    """Return the dialect `onnxruntime`: QLinearConv and QLinearMatMul."""
    call = numbers.call
    assert not len(call.post)
    assert call.wei_q is not None
    src, _, dst = numbers.scales
    return requantize(
        numbers.acc.astype(np.int32),
        "onnxruntime",
        src_scale=src,
        wei_scale=np.asarray(call.wei_q.scale),
        dst_scale=dst,
        dst_zero_point=numbers.point,
        dst_dtype=call.dtype,
        bias=call.bias,
        axis=-1 if call.kind == "matmul" else 1,
    )


def combined(numbers: Arithmetic) -> Array:
    """OneDNN with scales apart, on AMX: their product first."""
    src, wei, _ = numbers.scales
    return _apart(numbers, numbers.acc.astype(F32) * (F32(src) * wei.astype(F32)))


def separate(numbers: Arithmetic) -> Array:
    """OneDNN with scales apart, on most kernels: one after the other."""
    src, wei, _ = numbers.scales
    return _apart(numbers, numbers.acc.astype(F32) * F32(src) * wei.astype(F32))


def _apart(numbers: Arithmetic, x: Array) -> Array:
    x = x + numbers.bias.astype(F32)
    if numbers.added is not None:
        assert numbers.call.residual is not None
        point = F32(numbers.added.zero_point)
        x = _fma(numbers.call.residual.astype(F32) - point, F32(numbers.added.scale), x)
    x = np.maximum(x, F32(0)) if numbers.has_relu else x
    return numbers.stored(x * (F32(1) / F32(numbers.scales[2])) + F32(numbers.point))


def openvino(numbers: Arithmetic) -> Array:
    """OpenVINO's int8 convolution and deconvolution before a FakeQuantize to codes.

    With a bias: (acc · f32(src · wei) + bias) · s + t in one fused operation, s = 255 / (hi − lo),
    t = −lo · 255 / (hi − lo). Without: lo and hi are divided by the scales first, and acc · s + t
    takes the t of the first channel for all; s is fused with t if it is one for all channels.
    """
    src, wei, dst = numbers.scales
    least, greatest = INTEGER_RANGES[numbers.call.dtype]
    steps = F32(greatest - least)
    lo, hi = (F32((end - numbers.point) * dst) for end in (least, greatest))
    product = F32(src) * wei.astype(F32)
    x = numbers.acc.astype(F32)
    if numbers.call.bias is not None:
        x = x * product + numbers.bias.astype(F32)
        x = np.maximum(x, F32(0)) if numbers.has_relu else x
        x = _fma(x, steps / (hi - lo), -lo * steps / (hi - lo) + F32(least))
    else:
        lows, highs = lo / product, hi / product
        scale = steps / (highs - lows)
        shift = -lows * steps / (highs - lows) + F32(least)
        x = np.maximum(x, F32(0)) if numbers.has_relu else x
        is_one = (scale == scale.flat[0]).all()
        x = _fma(x, scale, shift) if is_one else x * scale + shift.flat[0]
    return numbers.stored(x)


def _fma(x: Array, scale: Any, shift: Any) -> Array:
    """Round once. float64 holds the product of two float32 values, and nearly always the sum."""
    exact = x.astype(np.float64) * np.asarray(scale, np.float64) + np.asarray(shift, np.float64)
    return exact.astype(F32)
