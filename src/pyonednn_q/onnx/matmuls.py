"""MatMul, Gemm, MatMulInteger and QLinearMatMul."""

from __future__ import annotations

import functools
from typing import Any, Literal, NamedTuple

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import broadcast, real, whole
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ShapeError, UnsupportedError
from pyonednn_q.expr.steps import Affine, Binary, Chain, Leaf
from pyonednn_q.graph import kinds
from pyonednn_q.onnx import tensors
from pyonednn_q.onnx.exact_sums import Options, codes_of, qparams, rounded, saturated, sums
from pyonednn_q.onnx.stack import MatrixStack
from pyonednn_q.onnx.tensors import Constant
from pyonednn_q.onnx.trace import record
from pyonednn_q.ops.dense import MatMul
from pyonednn_q.ops.functional import kept

Extent = Literal["per_channel", "full"]
Tensor = Any  # NumPy array, CPU tensor with __dlpack__, or buffer


def matmul(A: Tensor, B: Tensor) -> Array:
    """Return ONNX's MatMul, which is NumPy's: Y = A · B.

    Parameters
    ----------
    A : (..., M, K) or (K,) tensor of float32, float16 or bfloat16
        The left matrix, or a stack of them.
    B : (..., K, N) or (K,) tensor
        Second factor, with the data type of A. Leading dimensions broadcast against each other.

    Returns
    -------
    (..., M, N) ndarray
        Product, with the data type of A, without M or N where A or B is a vector. Sums are
        float32's.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument.
    UnsupportedError
        No kernel of oneDNN takes it, with the reasons.

    Examples
    --------
    >>> A = np.arange(6, dtype=np.float32).reshape(2, 1, 3)
    >>> matmul(A, np.ones((3, 2), np.float32)).tolist()
    [[[3.0, 3.0]], [[12.0, 12.0]]]
    """
    a = tensors.floats("A", A)
    b = tensors.floats("B", B, a)
    stack = MatrixStack.of(a, b)
    if stack.is_empty:
        return stack.zeros(kinds.MATMUL.name, a.dtype)
    dst = _of_floats(kinds.MATMUL.name, *stack.matrices(a, b))
    return dst.reshape(stack.dst)


def gemm(
    A: Tensor,
    B: Tensor,
    C: Tensor = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Array:
    """Return ONNX's Gemm: Y = alpha · A' · B' + beta · C.

    Parameters
    ----------
    A : (M, K) tensor of float32, float16 or bfloat16
        (K, M) with `transA`.
    B : (K, N) tensor
        Second factor, with the data type of A; (N, K) with `transB`.
    C : tensor, optional
        Summand, with that data type; it broadcasts to (M, N).
    alpha, beta : float
        Factors; with beta = 0, C is not read.
    transA, transB : int
        Whether A or B is transposed: not 0.

    Returns
    -------
    (M, N) ndarray
        Result, with the data type of A. Sums are float32's.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError, UnsupportedError
        Errors of `matmul`.

    Examples
    --------
    >>> A, B = np.float32([[1, 2]]), np.float32([[3, 4]])
    >>> gemm(A, B, np.float32([0.5]), alpha=2.0, transB=1)
    array([[22.5]], dtype=float32)
    """
    a = tensors.floats("A", A)
    b = tensors.floats("B", B, a)
    turn_a, turn_b = whole("transA", transA), whole("transB", transB)
    for name, array in (("A", a), ("B", b)):
        if array.ndim != 2:
            raise ShapeError(name, str(array.shape), "two dimensions")
    a, b = (array.T if turned else array for array, turned in ((a, turn_a), (b, turn_b)))
    stack = MatrixStack.of(a, b)
    factors = real("alpha", alpha), real("beta", beta)
    c = None if C is None or factors[1] == 0 else tensors.floats("C", C, a)
    if c is not None:
        broadcast("C", c, stack.dst)
    if stack.is_empty or factors[0] == 0:
        dst = stack.zeros(kinds.GEMM.name, a.dtype)
        return dst if c is None else dst + c * a.dtype.type(factors[1])
    extent: Extent | None = None
    if c is not None:
        rows = c.shape[0] if c.ndim == 2 else 1
        extent = "per_channel" if rows == 1 else "full"
        dims = stack.dst if extent == "full" else stack.dst[1:]
        c = broadcast("C", c if extent == "full" else c.reshape(-1), dims)
        c = np.multiply(c, np.float32(factors[1]), dtype=np.float32)
    chain = _chain(factors[0], extent)
    return _of_floats(kinds.GEMM.name, a, b, chain, {} if c is None else {"C": c})


def matmul_integer(
    A: Tensor, B: Tensor, a_zero_point: Tensor = None, b_zero_point: Tensor = None
) -> Array:
    """Return ONNX's MatMulInteger: Y = (A − a_zero_point) · (B − b_zero_point).

    Parameters
    ----------
    A : (..., M, K) or (K,) tensor of uint8 or int8
        Codes.
    B : (..., K, N) or (K,) tensor of uint8 or int8
        Codes. Leading dimensions broadcast against each other.
    a_zero_point : scalar, (M,) or (..., M, 1) tensor, optional
        Zero point of A, with its data type, for the tensor or each row; 0 by default.
    b_zero_point : scalar, (N,) or (..., 1, N) tensor, optional
        Zero point of B, with its data type, for the tensor or each column; 0 by default.

    Returns
    -------
    (..., M, N) ndarray of int32
        Exact; sums beyond 32 bits saturate.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError, UnsupportedError
        Errors of `matmul`.

    Examples
    --------
    >>> A, B = np.uint8([[1, 2], [3, 4]]), np.int8([[1], [2]])
    >>> matmul_integer(A, B, np.uint8([1, 3]))
    array([[2],
           [2]], dtype=int32)
    """
    a, b = tensors.codes("A", A), tensors.codes("B", B)
    stack = MatrixStack.of(a, b)
    points = _points(
        stack,
        ("A", "B"),
        a.dtype,
        b.dtype,
        tensors.content_or_none("a_zero_point", a_zero_point),
        tensors.content_or_none("b_zero_point", b_zero_point),
    )
    if stack.is_empty:
        return stack.zeros(kinds.MATMUL_INTEGER.name, np.dtype(np.int32))
    return _sums(kinds.MATMUL_INTEGER.name, ("A", "B"), stack, a, b, *points).reshape(stack.dst)


def qlinear_matmul(
    a: Tensor,
    a_scale: Tensor,
    a_zero_point: Tensor,
    b: Tensor,
    b_scale: Tensor,
    b_zero_point: Tensor,
    y_scale: Tensor,
    y_zero_point: Tensor,
) -> Array:
    """Return ONNX's QLinearMatMul: y = saturate(rne(f32(acc) · M) + y_zero_point).

    acc is what `matmul_integer` returns; M = f32(f32(a_scale · b_scale) / y_scale), as ONNX Runtime
    has it. Scales of float16 and bfloat16 become float32 first.

    Parameters
    ----------
    a, b
        A and B of `matmul_integer`.
    a_scale : scalar, (M,) or (..., M, 1) tensor of float32, float16 or bfloat16
        Real value of one step, above 0, for the tensor or each row.
    a_zero_point, b_zero_point
        Zero points, as in `matmul_integer`.
    b_scale : scalar, (N,) or (..., 1, N) tensor
        Real value of one step, for the tensor or each column.
    y_scale : scalar, (..., M, 1) or (..., 1, N) tensor
        Real value of one step of the result.
    y_zero_point : tensor of uint8 or int8
        Zero point, shaped like y_scale. Its data type is that of the result; None: a's, and 0.

    Returns
    -------
    (..., M, N) ndarray
        Codes of the data type of y_zero_point.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError, UnsupportedError
        Errors of `matmul`.

    Examples
    --------
    >>> a, one, zero = np.uint8([[1, 2], [3, 4]]), np.float32(0.5), np.uint8(0)
    >>> qlinear_matmul(a, one, zero, a, one, zero, one, np.int8(-1))
    array([[ 3,  4],
           [ 7, 10]], dtype=int8)
    """
    left, right = tensors.codes("a", a), tensors.codes("b", b)
    stack = MatrixStack.of(left, right, ("a", "b"))
    quantization = _quantization(
        stack,
        left.dtype,
        right.dtype,
        tensors.content("a_scale", a_scale),
        tensors.content_or_none("a_zero_point", a_zero_point),
        tensors.content("b_scale", b_scale),
        tensors.content_or_none("b_zero_point", b_zero_point),
        tensors.content("y_scale", y_scale),
        tensors.content_or_none("y_zero_point", y_zero_point),
    )
    points, factor, y_point, dtype, options = quantization
    if stack.is_empty:
        zeros = stack.zeros(kinds.QLINEAR_MATMUL.name, np.dtype(np.int32))
        return codes_of(zeros.reshape(stack.whole), factor, y_point, dtype).reshape(stack.dst)
    if options is not None:
        name, matrices = kinds.QLINEAR_MATMUL.name, stack.matrices(left, right)
        with tensors.named("a", "b", "b"):
            return rounded(name, MatMul, options, *matrices).reshape(stack.dst)
    acc = _sums(kinds.QLINEAR_MATMUL.name, ("a", "b"), stack, left, right, *points).reshape(
        stack.whole
    )
    return codes_of(acc, factor, y_point, dtype).reshape(stack.dst)


class _Quantization(NamedTuple):
    """Zero points of both operands, M, zero point and data type of the result.

    options: those of a `MatMul`, where each is one for the tensor or for each column of one matrix.
    """

    points: tuple[Array, Array]
    multiplier: Array
    dst_point: Array
    dst: str
    options: Options | None


@tensors.by_content
def _quantization(
    stack: MatrixStack,
    a: np.dtype[Any],
    b: np.dtype[Any],
    a_scale: Constant,
    a_point: Constant | None,
    b_scale: Constant,
    b_point: Constant | None,
    y_scale: Constant,
    y_point: Constant | None,
) -> _Quantization:
    points = _points(stack, ("a", "b"), a, b, a_point, b_point)
    dst_points, dtype = tensors.dst_point(y_point, a)
    dst_point = stack.placed("y_zero_point", dst_points)
    scales = (
        stack.rows("a_scale", tensors.scale("a_scale", a_scale.array)),
        stack.columns("b_scale", tensors.scale("b_scale", b_scale.array)),
        stack.placed("y_scale", tensors.scale("y_scale", y_scale.array)),
    )
    factor = tensors.multiplier(*scales)
    is_plain = points[0].size == scales[0].size == dst_point.size == 1
    if not (is_plain and all(map(stack.is_by_column, (points[1], *scales[1:])))):
        return _Quantization(points, factor, dst_point, dtype, None)
    one, by_column, last = (tuple(scale.reshape(-1).tolist()) for scale in scales)
    columns = tuple(points[1].reshape(-1).tolist())
    options = _options(a, b, int(points[0].item()), columns, one, by_column)
    options = {**options, "dst_q": qparams(last, (int(dst_point.item()),), dtype, -1)}
    return _Quantization(points, factor, dst_point, dtype, options)


@tensors.by_content
def _points(
    stack: MatrixStack,
    names: tuple[str, str],
    a: np.dtype[Any],
    b: np.dtype[Any],
    a_point: Constant | None,
    b_point: Constant | None,
) -> tuple[Array, Array]:
    rows = tensors.zero_point("a_zero_point", a_point, a, names[0])
    columns = tensors.zero_point("b_zero_point", b_point, b, names[1])
    return stack.rows("a_zero_point", rows), stack.columns("b_zero_point", columns)


def _sums(
    operator: str,
    names: tuple[str, str],
    stack: MatrixStack,
    a: Array,
    b: Array,
    a_point: Array,
    b_point: Array,
) -> Array:
    """Return exact sums: zero points that differ by row, or between matrices, follow products.

    Σ (a − z) · (b − w) = Σ a · b − z · Σ b − w · Σ a + K · z · w
    """
    matrices = stack.matrices(a, b)
    if a_point.size == 1 and stack.is_by_column(b_point):
        with tensors.named(*names, names[1]):
            columns = tuple(b_point.reshape(-1).tolist())
            options = _options(a.dtype, b.dtype, int(a_point.item()), columns)
            return sums(operator, MatMul, options, *matrices)
    with tensors.named(*names, names[1]):
        options = _options(a.dtype, b.dtype, 0, (0,))
        acc = sums(operator, MatMul, options, *matrices).reshape(stack.whole)
    a = a.reshape(*stack.lead_a, stack.m, stack.k)
    b = b.reshape(*stack.lead_b, stack.k, stack.n)
    z, w = a_point.astype(np.int64), b_point.astype(np.int64)
    by_column = z * b.sum(axis=-2, dtype=np.int64)[..., None, :]
    by_row = w * a.sum(axis=-1, dtype=np.int64)[..., None]
    return saturated(acc.astype(np.int64) - by_column - by_row + stack.k * z * w)


@functools.lru_cache(maxsize=1024)
def _options(
    a: np.dtype[Any],
    b: np.dtype[Any],
    a_point: int,
    b_points: tuple[int, ...],
    a_scale: tuple[float, ...] = (1.0,),
    b_scale: tuple[float, ...] = (1.0,),
) -> Options:
    return {
        "src_q": qparams(a_scale, (a_point,), dtypes.from_numpy(a)),
        "wei_q": qparams(b_scale, b_points, dtypes.from_numpy(b), -1),
    }


@functools.lru_cache(maxsize=256)
def _chain(alpha: float, extent: Extent | None) -> Chain | None:
    steps: list[Any] = [] if alpha == 1 else [Affine(alpha, 0.0)]
    if extent is not None:
        steps.append(Binary("add", Leaf("C", "f32", extent)))
    return Chain(*steps) if steps else None


def _of_floats(
    operator: str,
    src: Array,
    wei: Array,
    post: Chain | None = None,
    operands: dict[str, Array] | None = None,
) -> Array:
    """Return a float product by kernels of its data type, or of float32 if there are none."""
    operands = operands or {}
    with tensors.named("A", "B", "C"):
        matmul = kept(MatMul, wei, None, dst=dtypes.from_numpy(src.dtype), post=post)
        try:
            dst = matmul(src, **operands)
        except UnsupportedError:
            if src.dtype == np.float32:
                raise
        else:
            record(operator, ((matmul, src.shape),))
            return dst
        matmul = kept(MatMul, wei.astype(np.float32), None, dst="f32", post=post)
        dst = matmul(src.astype(np.float32), **operands).astype(src.dtype)
    record(operator, ((matmul, src.shape),), f"computed in float32: no kernel of {src.dtype}")
    return dst
