"""`out` may be an operand, or what a sum reads: kernels that sum in dst must not read it then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q import Binary, Chain, Leaf, Sum
from pyonednn_q.native import prepare
from pyonednn_q.primitive.attr import Attr
from pyonednn_q.primitive.post_ops import BinaryPostOp
from pyonednn_q.primitive.problem import MatMulProblem
from pyonednn_q.primitive.tensor import TensorSpec

INT8: dict[str, Any] = {
    "src_q": pq.QParams(1.0, 0, "u8"),
    "wei_q": pq.QParams(1.0, 0, "s8"),
}
# Long enough for kernels to add up in several steps, and wide enough for several blocks.
LAYERS: dict[str, tuple[type[Any], tuple[int, ...], tuple[int, ...], dict[str, Any], int]] = {
    "matmul": (pq.MatMul, (600, 130), (30, 600), {}, 600),
    "matmul of batches": (pq.MatMul, (2, 600, 130), (2, 30, 600), {}, 600),
    "inner product": (pq.InnerProduct, (130, 600), (30, 600), {}, 600),
    "pooled to one place": (pq.InnerProduct, (2, 8, 1, 1), (1, 8, 1, 1), {}, 8),
    "conv": (pq.Conv, (48, 64, 3, 3), (1, 64, 9, 9), {}, 576),
    "conv 1x1": (pq.Conv, (48, 640, 1, 1), (1, 640, 9, 9), {}, 640),
    "conv of groups": (pq.Conv, (48, 16, 3, 3), (1, 32, 9, 9), {"groups": 2}, 144),
    "deconv": (pq.Deconv, (48, 640, 1, 1), (1, 640, 9, 9), {}, 640),
}
TYPES = ["f32", "u8 to f32", "u8 to s32", "u8 to u8"]


def layer(name: str, types: str, post: Chain, **options: Any) -> tuple[Any, Any, str, int]:
    """Return an operator of weights of 1, a source of 1, dst's type, and the sum of products."""
    cls, wei_dims, src_dims, window, total = LAYERS[name]
    if types == "f32":
        wei, src = np.ones(wei_dims, np.float32), np.ones(src_dims, np.float32)
        return cls(wei, post=post, **window, **options), src, "f32", total
    dst = types.rsplit(maxsplit=1)[-1]
    scale = {"dst_q": pq.QParams(8.0, 0, "u8")} if dst == "u8" else {"dst": dst}
    wei, src = np.ones(wei_dims, np.int8), np.ones(src_dims, np.uint8)
    return cls(wei, post=post, **INT8, **scale, **window, **options), src, dst, total


def expected(total: int, dst: str, added: int) -> float:
    return round((total + added) / 8.0) if dst == "u8" else float(total + added)


@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize("name", LAYERS)
def test_out_may_be_an_operand(name: str, types: str) -> None:
    leaf = Leaf("a", types.rsplit(maxsplit=1)[-1])
    operator, src, dst, total = layer(name, types, Chain(Binary("add", leaf)))
    array = np.array(operator(src, a=_like(operator, src, dst)))
    for _ in range(3):  # the first call, and those that go without Python
        array[...] = 5
        assert operator(src, out=array, a=array) is array
        np.testing.assert_array_equal(array, expected(total, dst, 5))


def _like(operator: Any, src: Any, dst: str) -> Any:
    dims = operator.prepare(src.shape).form.asked.dst.dims
    return np.zeros(dims, {"f32": np.float32, "s32": np.int32, "u8": np.uint8}[dst])


@pytest.mark.parametrize("tune", [False, True])
@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize("name", LAYERS)
def test_out_may_be_what_a_sum_reads(name: str, types: str, tune: bool) -> None:
    """Tuned, the sum may be a binary add of the same array."""
    operator, src, dst, total = layer(name, types, Chain(Sum(1.0)), tune=tune)
    array = np.array(operator(src, residual=_like(operator, src, dst)))
    for _ in range(3):
        array[...] = 5
        operator(src, out=array, residual=array)
        np.testing.assert_array_equal(array, expected(total, dst, 5))
        array[...] = 5
        operator(src, out=array)
        np.testing.assert_array_equal(array, expected(total, dst, 5))


@pytest.mark.parametrize("dtype", ["f32", "u8"])
def test_a_primitive_may_write_to_its_operand(dtype: str) -> None:
    types = {"src": dtype, "wei": "f32" if dtype == "f32" else "s8", "dst": "f32"}
    problem = MatMulProblem.of((30, 600), (600, 130), **types)
    operand = BinaryPostOp("add", TensorSpec.dense((30, 130), "f32"))
    wei = np.ones((600, 130), np.float32 if dtype == "f32" else np.int8)
    multiply = prepare(problem, Attr(post_ops=(operand,)), wei=wei)
    src = np.ones((30, 600), np.float32 if dtype == "f32" else np.uint8)
    array = np.empty((30, 130), np.float32)
    for _ in range(2):
        array[...] = 5
        multiply(src, array, out=array)
        np.testing.assert_array_equal(array, 605)
