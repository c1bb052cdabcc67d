"""The oracle: what a problem with attributes means, in float64, from the formula alone.

    acc[oc]  = sum of (src_q - src_zp) * (wei_q - wei_zp)
    x0       = src_scale * wei_scale[oc] * acc + bias[oc]
    x(k+1)   = step_k(x(k))
    dst_q    = saturate(rne(x(n) / dst_scale + dst_zp))

It shares no code with the package: problems and attributes are only read. Every result comes
with a per-element bound on what float32 arithmetic in any documented order may change, so one
comparison serves all data: equality where the bound is zero (clean fills), and elsewhere the
stored values of the two ends of the interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from support import oracle_plain
from support.oracle_accumulate import accumulate
from support.oracle_numbers import as_float64, convert, convert_ends, distance_to_tie, spread
from support.oracle_post_ops import apply_chain
from support.oracle_tracked import Tracked, add, divide_or_reciprocal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from pyonednn_q.primitive.attr import Attr
    from pyonednn_q.primitive.problem import Problem
    from support.oracle_tracked import F64, Bools

    Arrays = Mapping[str, NDArray[Any]]

DENSE_KINDS = frozenset({"convolution", "deconvolution", "inner_product", "matmul"})
_PLAIN: dict[str, Any] = {
    "reorder": oracle_plain.reorder,
    "eltwise": oracle_plain.eltwise,
    "binary": oracle_plain.binary,
    "sum": oracle_plain.sum_of,
    "softmax": oracle_plain.softmax,
    "pooling": oracle_plain.pooling,
    "prelu": oracle_plain.prelu,
    "resampling": oracle_plain.resampling,
}
# Float64 itself rounds; this relative margin on a bound covers that many times over.
_MARGIN = 1 + 2.0**-20


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What a primitive must produce.

    real: the value before the final conversion, with dst scale and zero point applied.
    error: bound on a kernel's distance from ``real``; 0 where float32 has no choice.
    dst: the converted array. distance_to_tie: from ``real`` to the tie that decides ``dst``.
    """

    real: F64
    error: F64
    dst: NDArray[Any]
    distance_to_tie: F64
    dtype: str
    exact_s32: bool

    @property
    def is_exact(self) -> bool:
        """Tell whether every float32 intermediate is representable: then only ``dst`` is right."""
        return not np.any(self.error)

    def interval(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the smallest and largest dst that a correct kernel may store."""
        room = self.error * _MARGIN
        lo, hi = self.real - room, self.real + room
        return convert_ends(lo, hi, self.dtype, exact_s32=self.exact_s32)

    def accepts(self, got: NDArray[Any]) -> Bools:
        """Tell per element whether ``got`` is what a correct kernel may store."""
        if got.shape != self.dst.shape or got.dtype != self.dst.dtype:
            msg = f"got {got.dtype} {got.shape}; expected {self.dst.dtype} {self.dst.shape}"
            raise AssertionError(msg)
        if not np.all(np.isfinite(self.error)):
            msg = "the oracle knows no error bound here; choose another fill"
            raise AssertionError(msg)
        if np.any(np.isnan(self.real)):
            msg = "the real result has NaN, whose stored value kernels do not agree on"
            raise AssertionError(msg)
        lo, hi = (end.astype(np.float64) for end in self.interval())
        value = got.astype(np.float64)
        return np.asarray((lo <= value) & (value <= hi))


def run(problem: Problem, attr: Attr, arrays: Arrays) -> Result:
    """Compute a problem; arrays hold its tensors, the attribute values and the old dst."""
    plain: Any = problem
    exact_s32 = _is_bare_s32(plain, attr)
    if plain.kind in DENSE_KINDS:
        x = accumulate(plain, attr, arrays, bare=exact_s32)
        if plain.bias is not None:
            x = add(x, Tracked.exact(_bias(plain, arrays)))
    else:
        x = _PLAIN[plain.kind](plain, attr, arrays)
    x = _at_least_rank(x, plain.dst.dims)
    x = apply_chain(x, attr.post_ops, plain.dst, arrays)
    return _finish(x, plain.dst, attr, arrays, exact_s32=exact_s32)


def _is_bare_s32(problem: Any, attr: Attr) -> bool:
    """Tell whether the s32 accumulator is stored as it is, without passing through float32."""
    if problem.kind not in DENSE_KINDS or problem.dst.dtype != "s32":
        return False
    values = ("src_scale", "wei_scale", "dst_scale", "src_zero_point", "wei_zero_point")
    asked = any(getattr(attr, name) is not None for name in (*values, "dst_zero_point"))
    return problem.bias is None and not asked and not attr.post_ops


def _bias(problem: Any, arrays: Arrays) -> F64:
    bias: F64 = as_float64(arrays["bias"], problem.bias.dtype).reshape(problem.bias.dims)
    if problem.kind == "matmul":
        return bias
    dims: tuple[int, ...] = (1, -1, *(1,) * (len(problem.dst.dims) - 2))
    return bias.reshape(dims)


def _at_least_rank(x: Tracked, dims: tuple[int, ...]) -> Tracked:
    return Tracked(np.broadcast_to(x.value, dims), np.broadcast_to(x.error, dims))


def _finish(
    x: Tracked,
    dst: Any,
    attr: Attr,
    arrays: Arrays,
    *,
    exact_s32: bool,
) -> Result:
    if attr.dst_scale is not None:
        values = as_float64(arrays["dst_scale"], attr.dst_scale.dtype)
        scale = spread(values, attr.dst_scale.mask, attr.dst_scale.groups, dst.dims)
        x = divide_or_reciprocal(x, scale)
    if attr.dst_zero_point is not None:
        values = as_float64(arrays["dst_zero_point"], attr.dst_zero_point.dtype)
        shift = spread(values, attr.dst_zero_point.mask, attr.dst_zero_point.groups, dst.dims)
        x = add(x, Tracked.exact(shift))
    stored = convert(x.value, dst.dtype, exact_s32=exact_s32)
    tie = distance_to_tie(x.value, dst.dtype)
    return Result(x.value, x.error, stored, tie, dst.dtype, exact_s32)
