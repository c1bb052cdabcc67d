"""Passes of C++ over whole arrays: casts, quantizing, requantizing.

cast: oneDNN has plain loops for it where the CPU has no instruction (bf16 below AVX-512, f16 below
AVX512_CORE_FP16), a hundred times slower; and where it has one, subnormal bf16 becomes 0.

quantize:

    code = clamp(rne(x / scale) + zero_point)

in float32, one operation after the other, as ONNX's QuantizeLinear has it. One pass over memory.

requantize: what each kind computes is said in `requantize.value` and stated in NumPy in
`requantize.statement`; tests hold the two equal.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import instance
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import AliasError, ArgumentError, DTypeError, LayoutError, ShapeError
from pyonednn_q.native import runtime
from pyonednn_q.native.arrays import aligned, checked, inverse, lie_alike, memory_order
from pyonednn_q.requantize.value import Requantizer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyonednn_q._core import Requantizer as Loops
    from pyonednn_q.primitive.problem import ReorderProblem
    from pyonednn_q.primitive.tensor import TensorSpec


def is_cast(problem: ReorderProblem) -> bool:
    """Tell whether a reorder is one between f32 and a 16-bit type, in the same layout."""
    types = {problem.src.dtype, problem.dst.dtype}
    same = problem.src.strides == problem.dst.strides
    return same and types in ({"f32", "bf16"}, {"f32", "f16"})


class Cast:
    """f32 to bf16 or f16, to nearest with ties to even; or back, exactly.

    What is too large becomes infinite, and NaN stays NaN. One pass over memory on one thread.

    Parameters
    ----------
    src, dst : TensorSpec
        Dims, data type and strides of both: row-major, of the same dims, one of f32, the other of
        bf16 or f16.
    """

    impl = "cast"
    inputs = ("src",)

    def __init__(self, src: TensorSpec, dst: TensorSpec) -> None:
        self._specs = {"src": src, "dst": dst}

    def layout(self, name: str) -> TensorSpec:
        """Return the layout of a tensor by name."""
        return self._specs[name]

    def __call__(self, src: Array, *, out: Array | None = None) -> Array:
        """Cast.

        Parameters
        ----------
        src : ndarray
            Values in the dims and the data type of the source, of any strides.
        out : ndarray, optional
            Written in place and returned.

        Raises
        ------
        ArgumentError, DTypeError, ShapeError
            Naming the argument.
        """
        src = np.require(checked("src", src, self._specs["src"]), requirements=["C", "A"])
        spec = self._specs["dst"]
        dst = out
        if dst is None or not dst.flags.carray:
            dst = aligned(spec.dims, dtypes.numpy_dtype(spec.dtype))
        if out is not None:
            checked("out", out, spec)
        if spec.dtype == "f32":
            runtime.core.widen(self._specs["src"].dtype, src.view(np.uint16), dst)
        else:
            runtime.core.narrow(spec.dtype, src, dst.view(np.uint16))
        if out is None or out is dst:
            return dst
        np.copyto(out, dst)
        return out


def as_rows(values: Array, rows: int = 1) -> Array:
    """Return float32 values so that they lie in memory without gaps; row by row, if there are many.

    Raises
    ------
    DTypeError
        Values of another type.
    """
    if values.dtype != np.float32:
        raise DTypeError("src", str(values.dtype), "float32 values")
    if rows == 1 and memory_order(values) is not None and values.flags.aligned:
        return values
    return np.require(values, requirements=["C", "A"])


def ranges(values: Array, rows: int = 1) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the least and the greatest value of each row; 0 is among them.

    Parameters
    ----------
    values : ndarray
        float32 values from `as_rows`, of any shape.
    rows : int
        Number of rows of equal length in row-major order, each with a range of its own; at least 1.

    Raises
    ------
    ArgumentError
        A value is not finite.
    """
    lo, hi = np.empty(rows, np.float32), np.empty(rows, np.float32)
    order = memory_order(values)
    runtime.core.ranges(values if order is None else values.transpose(order), lo, hi)
    if np.isnan(lo).any():
        raise ArgumentError("src", "values that are not finite", "finite numbers")
    return lo, hi


def quantize(
    values: Array,
    scales: NDArray[np.float32],
    zero_points: NDArray[np.int32],
    dtype: str,
    *,
    out: Array | None = None,
) -> Array:
    """Return codes, which lie in memory as the values do.

    Parameters
    ----------
    values : ndarray
        float32 values from `as_rows`, of any shape; infinities saturate.
    scales, zero_points : (rows,) ndarray
        float32 scales, normal numbers above 0; and int32 zero points in the range of `dtype`.
    dtype : str
        Data type of the codes: "u8" or "s8".
    out : ndarray, optional
        Array of that type, laid out as the values are, which is written and returned.

    Raises
    ------
    ArgumentError
        A value is NaN.
    """
    order = memory_order(values) or tuple(range(values.ndim))
    lying = values.transpose(order)
    stored = dtypes.numpy_dtype(dtype)
    target = None if out is None or memory_order(out) != order else out.transpose(order)
    codes = aligned(lying.shape, stored) if target is None else target
    if not runtime.core.quantize(lying, scales, zero_points, codes):
        raise ArgumentError("src", "NaN", "numbers")
    result: Array = codes.transpose(inverse(order))
    if out is None:
        return result
    if target is None:
        np.copyto(out, result)
    return out


def requantize(acc: Array, requantizer: Requantizer, *, out: Array | None = None) -> Array:
    """Return integers of the requantizer's dtype for accumulators, in the same layout.

    Parameters
    ----------
    acc : ndarray of int32
        The s32 sums, in any order of dimensions in memory without gaps; another layout is copied
        first.
    requantizer : Requantizer
        The arithmetic and its constants.
    out : ndarray, optional
        Array of the requantizer's dtype, of the shape and layout of `acc`, written in place and
        returned.

    Raises
    ------
    ArgumentError
        An accumulator leaves 32 bits on the way, where the original overflows; `out` holds nothing
        of use then.
    DTypeError, ShapeError, LayoutError, AliasError
        Naming the argument.
    """
    if not isinstance(acc, np.ndarray):
        raise ArgumentError("acc", type(acc).__name__, "a NumPy array")
    if acc.dtype != np.int32:
        raise DTypeError("acc", str(acc.dtype), "int32")
    instance("requantizer", requantizer, Requantizer)
    requantizer.check(acc.shape)
    order = memory_order(acc)
    if order is None:
        acc = np.ascontiguousarray(acc)
        order = tuple(range(acc.ndim))
    dtype = dtypes.numpy_dtype(requantizer.dtype)
    dst = np.empty_like(acc, dtype) if out is None else _checked_out(out, acc, dtype)
    if acc.size:
        physical = [acc.shape[dimension] for dimension in order]
        outer, inner = _around(requantizer, physical, order)
        _prepared(requantizer).run(acc.transpose(order), dst.transpose(order), outer, inner)
    return dst


@functools.lru_cache(maxsize=256)
def _prepared(requantizer: Requantizer) -> Loops:
    """Return the loops and tables of a requantizer; a layer's is made once."""
    multiplier, bias = requantizer.multiplier, requantizer.bias
    none = np.zeros(requantizer.channels, np.int32)
    real = requantizer.kind.startswith("onednn")
    whole = multiplier.dtype.kind == "i"
    factor = multiplier.astype(np.float64)
    if requantizer.kind == "exact":
        factor = np.ldexp(factor / requantizer.last, requantizer.shift)
    return runtime.core.Requantizer(
        kind=requantizer.kind,
        rounding=requantizer.rounding,
        dtype=requantizer.dtype,
        lo=requantizer.lo,
        hi=requantizer.hi,
        multiplier=multiplier if whole else none,
        factor=factor,
        shift=requantizer.shift,
        then=requantizer.then,
        last=requantizer.last,
        bias=none if real or bias is None else bias,
        real_bias=bias if real and bias is not None else none,
        zero_point=requantizer.zero_point,
    )


def _around(
    requantizer: Requantizer, physical: list[int], order: tuple[int, ...]
) -> tuple[int, int]:
    """Return the number of values before and after the channels in memory."""
    if requantizer.axis is None:
        return 1, int(np.prod(physical))
    at = order.index(requantizer.axis % len(order))
    return int(np.prod(physical[:at])), int(np.prod(physical[at + 1 :]))


def _checked_out(out: object, acc: Array, dtype: np.dtype[Any]) -> Array:
    if not isinstance(out, np.ndarray):
        raise ArgumentError("out", type(out).__name__, "a NumPy array")
    if out.dtype != dtype:
        raise DTypeError("out", str(out.dtype), str(dtype))
    if out.shape != acc.shape:
        raise ShapeError("out", str(out.shape), str(acc.shape))
    if not out.flags.writeable:
        raise ArgumentError("out", "a read-only array", "a writeable one")
    if not lie_alike(out, acc):
        wanted = tuple(stride // acc.itemsize * out.itemsize for stride in acc.strides)
        raise LayoutError("out", f"strides {out.strides}", f"strides {wanted}, as in acc")
    if np.may_share_memory(acc, out):
        raise AliasError(argument="out", got="memory of acc", wanted="memory of its own")
    return out
