"""Primitives without weights in the oracle: loops, hand-computed numbers, identities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.post_ops import EltwisePostOp, SumPostOp
from pyonednn_q.primitive.problem import (
    BinaryProblem,
    EltwiseProblem,
    PoolingProblem,
    ReorderProblem,
    SoftmaxProblem,
    SumProblem,
)
from pyonednn_q.primitive.tensor import TensorSpec
from support import oracle

f32 = np.float32


def dense(dims: tuple[int, ...], dtype: str) -> TensorSpec:
    return TensorSpec.dense(dims, dtype)


def test_reorder_quantizes_half_to_even() -> None:
    problem = ReorderProblem(dense((6,), "f32"), dense((6,), "s8"))
    attr = Attr(dst_scale=Scale(), dst_zero_point=ZeroPoint())
    arrays: dict[str, Any] = {
        "src": np.array([0.25, 0.75, 1.25, -0.25, 100.0, -100.0], f32),
        "dst_scale": np.array([0.5], f32),
        "dst_zero_point": np.array([2], np.int32),
    }
    # src / 0.5 + 2 = 2.5, 3.5, 4.5, 1.5, 202, -198
    assert oracle.run(problem, attr, arrays).dst.tolist() == [2, 4, 4, 2, 127, -128]


def test_reorder_dequantizes() -> None:
    problem = ReorderProblem(dense((3,), "u8"), dense((3,), "f32"))
    attr = Attr(src_scale=Scale(), src_zero_point=ZeroPoint())
    arrays: dict[str, Any] = {
        "src": np.array([0, 128, 255], np.uint8),
        "src_scale": np.array([0.25], f32),
        "src_zero_point": np.array([128], np.int32),
    }
    assert oracle.run(problem, attr, arrays).dst.tolist() == [-32.0, 0.0, 31.75]


def test_reorder_scales_per_channel_and_sums() -> None:
    problem = ReorderProblem(dense((2, 2), "f32"), dense((2, 2), "s8"))
    attr = Attr(dst_scale=Scale(mask=1), post_ops=(SumPostOp(2.0),))
    arrays: dict[str, Any] = {
        "src": np.array([[1, 2], [3, 4]], f32),
        "dst_scale": np.array([1.0, 0.5], f32),
        "dst": np.array([[1, 1], [2, 3]], np.int8),
    }
    # (src + 2 * old) / scale
    assert oracle.run(problem, attr, arrays).dst.tolist() == [[3, 4], [14, 20]]


def test_eltwise_primitive() -> None:
    problem = EltwiseProblem(dense((4,), "s8"), dense((4,), "s8"), "linear", 0.5, 1.0)
    arrays = {"src": np.array([1, 2, 3, -128], np.int8)}
    # 1.5, 2, 2.5, -63
    assert oracle.run(problem, Attr(), arrays).dst.tolist() == [2, 2, 2, -63]


def test_binary_primitive_broadcasts_and_scales_both_sides() -> None:
    problem = BinaryProblem(dense((2, 2), "u8"), dense((1, 2), "s8"), dense((2, 2), "s8"), "sub")
    attr = Attr(src_scale=Scale(), src1_scale=Scale(), post_ops=(EltwisePostOp("relu"),))
    arrays: dict[str, Any] = {
        "src": np.array([[10, 20], [30, 255]], np.uint8),
        "src1": np.array([[4, -8]], np.int8),
        "src_scale": np.array([0.5], f32),
        "src1_scale": np.array([2.0], f32),
    }
    # 5 - 8, 10 + 16, 15 - 8, 127.5 + 16
    assert oracle.run(problem, attr, arrays).dst.tolist() == [[0, 26], [7, 127]]


def test_sum_primitive() -> None:
    specs = (dense((3,), "u8"), dense((3,), "s8"))
    problem = SumProblem(specs, (0.5, -2.0), dense((3,), "f32"))
    arrays: dict[str, Any] = {
        "src_0": np.array([1, 2, 255], np.uint8),
        "src_1": np.array([1, -1, 3], np.int8),
    }
    assert oracle.run(problem, Attr(), arrays).dst.tolist() == [-1.5, 3.0, 121.5]


def softmax(values: Any, axis: int, *, log: bool = False) -> oracle.Result:
    src = np.array(values, f32)
    problem = SoftmaxProblem(dense(src.shape, "f32"), dense(src.shape, "f32"), axis, log=log)
    return oracle.run(problem, Attr(), {"src": src})


def test_softmax_by_hand() -> None:
    result = softmax([[0.0, math.log(3)], [1.0, 1.0]], 1)
    np.testing.assert_allclose(result.real, [[0.25, 0.75], [0.5, 0.5]], rtol=0, atol=1e-7)
    assert (result.error < 2e-6).all()  # two exponentials, SSE41 counted


def test_softmax_identities() -> None:
    values = np.random.default_rng(0).normal(size=(3, 5, 4)).astype(f32)
    for axis in range(3):
        plain, shifted = softmax(values, axis).real, softmax(values + f32(2), axis).real
        assert np.abs(plain.sum(axis=axis) - 1).max() < 1e-15
        assert np.abs(plain - shifted).max() < 1e-6  # values + 2 is rounded to float32
        assert np.abs(np.log(plain) - softmax(values, axis, log=True).real).max() < 1e-14


def test_softmax_scales_apply_to_the_result() -> None:
    problem = SoftmaxProblem(dense((1, 2), "u8"), dense((1, 2), "u8"), 1)
    attr = Attr(src_scale=Scale(), dst_scale=Scale())
    arrays: dict[str, Any] = {
        "src": np.array([[7, 7]], np.uint8),
        "src_scale": np.array([0.5], f32),
        "dst_scale": np.array([1 / 256], f32),
    }
    assert oracle.run(problem, attr, arrays).dst.tolist() == [[64, 64]]


def pool_by_loops(src: Any, problem: PoolingProblem) -> Any:
    dst = np.zeros(problem.dst.dims)
    for index in np.ndindex(*dst.shape):
        seen, taps = [], 0
        for k in np.ndindex(*problem.kernel):
            taps += 1
            at = [
                o * s - lo + p * d
                for o, s, lo, p, d in zip(
                    index[2:],
                    problem.stride,
                    problem.padding_lo,
                    k,
                    problem.dilation,
                    strict=True,
                )
            ]
            if all(0 <= i < size for i, size in zip(at, src.shape[2:], strict=True)):
                where = (*index[:2], *at)
                seen.append(float(src[where]))
        if problem.alg == "max":
            dst[index] = max(seen)
        else:
            count = taps if problem.alg == "avg_include_padding" else len(seen)
            dst[index] = sum(seen) / count
    return dst


@pytest.mark.parametrize("alg", ["max", "avg_include_padding", "avg_exclude_padding"])
@pytest.mark.parametrize(
    ("size", "kernel", "stride", "dilation", "lo", "hi"),
    [
        ((6, 5), (2, 2), (2, 2), (1, 1), (0, 0), (0, 0)),
        ((6, 5), (3, 3), (1, 2), (1, 1), (1, 1), (1, 1)),
        ((7, 6), (3, 2), (2, 1), (1, 1), (2, 0), (0, 1)),
        ((8, 8), (3, 3), (1, 1), (2, 2), (1, 1), (2, 2)),
        ((9,), (4,), (3,), (1,), (1,), (3,)),
        ((4, 4, 4), (2, 2, 2), (2, 2, 2), (1, 1, 1), (0, 1, 0), (0, 1, 0)),
    ],
)
@pytest.mark.parametrize("dtype", ["u8", "s8", "f32"])
def test_pooling_equals_loops(
    *,
    alg: str,
    size: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
    lo: tuple[int, ...],
    hi: tuple[int, ...],
    dtype: str,
) -> None:
    out = tuple(
        (i + a + b - (k - 1) * d - 1) // s + 1
        for i, a, b, k, d, s in zip(size, lo, hi, kernel, dilation, stride, strict=True)
    )
    src_spec, dst_spec = dense((2, 3, *size), dtype), dense((2, 3, *out), "f32")
    problem = PoolingProblem(src_spec, dst_spec, alg, kernel, stride, dilation, lo, hi)
    limits = {"u8": (0, 256, np.uint8), "s8": (-128, 128, np.int8), "f32": (-50, 50, f32)}
    low, high, numpy_type = limits[dtype]
    rng = np.random.default_rng(0)
    src = rng.integers(low, high, size=src_spec.dims).astype(numpy_type)
    result = oracle.run(problem, Attr(), {"src": src})
    np.testing.assert_array_equal(result.real, pool_by_loops(src, problem))


def test_maximum_ignores_padding_even_below_zero() -> None:
    problem = PoolingProblem(
        dense((1, 1, 1, 2), "s8"),
        dense((1, 1, 1, 1), "s8"),
        "max",
        (3, 3),
        (1, 1),
        (1, 1),
        (1, 0),
        (1, 1),
    )
    result = oracle.run(problem, Attr(), {"src": np.array([[[[-9, -7]]]], np.int8)})
    assert result.dst.item() == -7
