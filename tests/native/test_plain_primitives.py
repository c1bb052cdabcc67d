"""Eltwise, binary, sum, softmax, pooling, reorder and wider data types, against the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q import native
from pyonednn_q.errors import KnownWrongError, LayoutError, OneDNNError, UnsupportedError
from pyonednn_q.native import child, runtime
from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.post_ops import EltwisePostOp, SumPostOp
from pyonednn_q.primitive.problem import (
    BinaryProblem,
    ConvProblem,
    EltwiseProblem,
    MatMulProblem,
    PoolingProblem,
    Problem,
    ReorderProblem,
    SoftmaxProblem,
    SumProblem,
)
from pyonednn_q.primitive.tensor import TensorSpec
from support import isa, oracle
from support.parity_post_ops import ELTWISE

DIMS = (2, 16, 5, 4)


def last(dtype: str, dims: tuple[int, ...] = DIMS) -> TensorSpec:
    return TensorSpec.channels_last(dims, dtype)


def check(problem: Problem, attr: Attr | None = None, **arrays: Any) -> native.Prepared:
    """Run a problem and compare with the oracle; arrays hold tensors and values."""
    attr = attr or Attr()
    names = attr.runtime_names(problem)
    values = {name: arrays[name] for name in names}
    wei, bias = arrays.get("wei"), arrays.get("bias")
    call = native.prepare(problem, attr, wei=wei, bias=bias, values=values, allow_reference=True)
    old = arrays.get("dst")
    out = None if old is None else np.array(old)
    got = call(*[arrays[name] for name in call.inputs], out=out)
    expected = oracle.run(problem, attr, arrays)
    assert expected.accepts(got).all(), call.describe()
    return call


def integers(
    lo: int, hi: int, dims: tuple[int, ...] = DIMS, dtype: str = "u1", seed: int = 0
) -> Any:
    return np.random.default_rng(seed).integers(lo, hi, dims).astype(dtype)


@pytest.mark.parametrize("alg", ELTWISE)
def test_eltwise(alg: str) -> None:
    alpha, beta = ELTWISE[alg]
    src = integers(-64, 65, dtype="f4") / np.float32(16)
    if alg in {"sqrt", "log", "pow"}:
        src = np.abs(src) + np.float32(0.25)
    check(EltwiseProblem(last("f32"), last("f32"), alg, alpha, beta), src=src)


@pytest.mark.parametrize("dtype", ["u8", "s8"])
def test_eltwise_on_integers(dtype: str) -> None:
    src = integers(0, 100, dtype={"u8": "u1", "s8": "i1"}[dtype])
    check(EltwiseProblem(last(dtype), last(dtype), "relu", 0.0, 0.0), src=src)


@pytest.mark.parametrize(
    "alg", ["add", "mul", "max", "min", "div", "sub", "ge", "gt", "le", "lt", "eq", "ne"]
)
@pytest.mark.parametrize("src1_dims", [DIMS, (1, 16, 1, 1), (1, 1, 1, 1)])
def test_binary(alg: str, src1_dims: tuple[int, ...]) -> None:
    problem = BinaryProblem(last("f32"), last("f32", src1_dims), last("f32"), alg)
    src1 = integers(1, 9, src1_dims, "f4", seed=1)
    check(problem, src=integers(-9, 9, dtype="f4"), src1=src1)


def test_binary_of_quantized_tensors_with_scales() -> None:
    problem = BinaryProblem(last("u8"), last("s8"), last("u8"), "add")
    attr = Attr(src_scale=Scale(), src1_scale=Scale(), post_ops=(EltwisePostOp("relu"),))
    values = {"src_scale": np.array([0.5], np.float32), "src1_scale": np.array([2.0], np.float32)}
    check(problem, attr, src=integers(0, 100), src1=integers(-9, 9, dtype="i1"), **values)


def test_sum() -> None:
    problem = SumProblem((last("f32"), last("f32")), (0.5, 2.0), last("f32"))
    check(problem, src_0=integers(-9, 9, dtype="f4"), src_1=integers(-9, 9, dtype="f4", seed=1))


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("axis", [1, 3])
def test_softmax(axis: int, log: bool) -> None:
    problem = SoftmaxProblem(last("f32"), last("f32"), axis, log)
    check(problem, src=integers(-8, 9, dtype="f4"))


@pytest.mark.parametrize("alg", ["max", "avg_include_padding", "avg_exclude_padding"])
@pytest.mark.parametrize("dtype", ["u8", "s8", "f32"])
def test_pooling(alg: str, dtype: str) -> None:
    dst = last(dtype, (2, 16, 3, 3))
    problem = PoolingProblem(
        last(dtype, (2, 16, 5, 6)), dst, alg, (3, 3), (2, 2), (1, 1), (1, 0), (1, 1)
    )
    kind = {"u8": "u1", "s8": "i1", "f32": "f4"}[dtype]
    check(problem, src=integers(0, 50, (2, 16, 5, 6), kind))


@pytest.mark.parametrize("dst", ["u8", "s8", "s32"])
def test_a_reorder_quantizes_ties_to_even(dst: str) -> None:
    halves = np.linspace(-20, 19.5, 80).astype(np.float32).reshape(1, 16, 5, 1)
    dims = (1, 16, 5, 1)
    attr = Attr(dst_scale=Scale())
    check(
        ReorderProblem(last("f32", dims), last(dst, dims)),
        attr,
        src=halves,
        dst_scale=np.array([1.0], np.float32),
    )


@pytest.mark.parametrize("src", ["u8", "s8", "s32"])
def test_a_reorder_dequantizes_per_channel(src: str) -> None:
    values = integers(0, 100, dtype={"u8": "u1", "s8": "i1", "s32": "i4"}[src])
    attr = Attr(src_scale=Scale(2), src_zero_point=ZeroPoint())
    scale = np.float32(2.0) ** (np.arange(16, dtype=np.float32) % 4)
    check(
        ReorderProblem(last(src), last("f32")),
        attr,
        src=values,
        src_scale=scale,
        src_zero_point=np.array([3], np.int32),
    )


def test_a_reorder_quantizes_per_channel() -> None:
    attr = Attr(dst_scale=Scale(2), dst_zero_point=ZeroPoint())
    scale = np.float32(2.0) ** (np.arange(16, dtype=np.float32) % 4)
    check(
        ReorderProblem(last("f32"), last("u8")),
        attr,
        src=integers(-40, 90, dtype="f4"),
        dst_scale=scale,
        dst_zero_point=np.array([4], np.int32),
    )


@pytest.mark.parametrize("kind", ["conv", "matmul"])
def test_f32(kind: str) -> None:
    if kind == "conv":
        problem: Problem = ConvProblem.of(
            (1, 8, 6, 6), (16, 8, 3, 3), src="f32", wei="f32", dst="f32", bias="f32", padding=1
        )
    else:
        problem = MatMulProblem.of((7, 24), (24, 16), src="f32", wei="f32", dst="f32")
    arrays = {
        name: integers(-8, 9, spec.dims, "f4", seed)
        for seed, (name, spec) in enumerate(problem.tensors.items())
        if name != "dst"
    }
    check(problem, Attr(post_ops=(EltwisePostOp("relu"),)), **arrays)


@pytest.mark.parametrize("kind", ["conv", "matmul"])
@pytest.mark.parametrize(("dtype", "level"), [("bf16", "AVX512_CORE"), ("f16", "AVX512_CORE_FP16")])
def test_half_precision(kind: str, dtype: str, level: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    isa.skip_without(runtime.isa(), level)
    numpy_dtype = {"bf16": ml_dtypes.bfloat16, "f16": np.float16}[dtype]
    if kind == "conv":
        problem: Problem = ConvProblem.of(
            (1, 16, 6, 6), (16, 16, 3, 3), src=dtype, wei=dtype, dst="f32", padding=1
        )
    else:
        problem = MatMulProblem.of((7, 32), (32, 16), src=dtype, wei=dtype, dst="f32")
    arrays = {
        name: integers(-8, 9, spec.dims, "f4").astype(numpy_dtype)
        for name, spec in problem.tensors.items()
        if name != "dst"
    }
    check(problem, **arrays)


def test_bf16_arrays_cross_the_boundary() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    src = integers(-8, 9, dtype="f4").astype(ml_dtypes.bfloat16)
    check(ReorderProblem(last("bf16"), last("f32")), src=src)


@pytest.mark.parametrize("wei", ["s4", "u4"])
def test_four_bit_weights_of_a_matmul(wei: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = integers(0, 8, (32, 24), "i1")
    numpy_dtype = {"s4": ml_dtypes.int4, "u4": ml_dtypes.uint4}[wei]
    problem = MatMulProblem.of((5, 32), (32, 24), src="f32", wei=wei, dst="f32")
    attr = Attr(wei_scale=Scale(2), fpmath="any", fpmath_apply_to_int=True)
    scale = np.float32(2.0) ** (np.arange(24, dtype=np.float32) % 4)
    src = integers(-8, 9, (5, 32), "f4")
    check(problem, attr, src=src, wei=values.astype(numpy_dtype), wei_scale=scale)


@pytest.mark.parametrize("wei", ["s4", "u4"])
@pytest.mark.parametrize("is_borrowed", [False, True])
def test_four_bit_zero_points_of_groups(wei: str, is_borrowed: bool) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    if runtime.version() < (3, 8, 0):
        pytest.skip("oneDNN 3.7 takes no zero points of 4 bits")
    four_bits = {"s4": ml_dtypes.int4, "u4": ml_dtypes.uint4}[wei]
    problem = MatMulProblem.of((5, 64), (64, 24), wei=wei, dst="f32")
    groups = Scale(3, groups=(32, 1)), ZeroPoint(3, wei, groups=(32, 1))
    attr = Attr(src_scale=Scale(), wei_scale=groups[0], wei_zero_point=groups[1])
    codes, points = integers(0, 8, (64, 24), "i1"), integers(0, 8, (2, 24), "i1")
    src = integers(0, 20, (5, 64), "u1")
    given = points.astype(four_bits) if is_borrowed else points
    values = {"src_scale": np.ones(1), "wei_scale": np.ones(48), "wei_zero_point": given}
    call = native.prepare(
        problem, attr, wei=codes.astype(four_bits), values=values, allow_reference=True
    )
    real = codes.astype(np.int64) - points.repeat(32, axis=0)
    assert (call(src) == src.astype(np.int64) @ real).all()
    assert "wei_zero_point" not in call.held()


def test_rows_of_four_bits_begin_at_bytes() -> None:
    if runtime.version() < (3, 8, 0):
        pytest.skip("oneDNN 3.7 takes rows that begin amid a byte")
    ml_dtypes = pytest.importorskip("ml_dtypes")
    attr, values = Attr(src_scale=Scale()), {"src_scale": 1.0}
    wei = integers(0, 8, (32, 9), "i1").astype(ml_dtypes.int4)
    even = MatMulProblem.of((4, 32), (32, 8), wei="s4", dst="f32")
    try:
        native.prepare(even, attr, wei=wei[:, :8], values=values)
    except UnsupportedError:
        pytest.skip(f"no kernel takes u8 and s4 on {runtime.isa().text()}")
    problem = MatMulProblem.of((4, 32), (32, 9), wei="s4", dst="f32")
    with pytest.raises(LayoutError, match=r"^strides: got \(9, 1\) of 4-bit values \(32, 9\)"):
        native.prepare(problem, attr, wei=wei, values=values)


def test_the_library_holds_the_attributes_we_set() -> None:
    ops = (EltwisePostOp("linear", 2.0, -1.0), SumPostOp(0.5, 3), EltwisePostOp("clip", 0.0, 6.0))
    attr = Attr(wei_scale=Scale(1), post_ops=ops, deterministic=True)
    problem = ConvProblem.of((1, 16, 4, 4), (16, 16, 1, 1))
    call = native.prepare(
        problem, attr, wei=np.ones((16, 16, 1, 1), np.int8), values={"wei_scale": np.ones(16)}
    )
    assert call._selection is not None
    held = call._selection.candidate.attr_readback()
    assert held["post_ops"] == tuple(op.boundary() for op in ops)
    assert held["deterministic"] is True
    assert held["scratchpad"] == "user"
    assert held["fpmath"] == ("strict", False)


def test_a_prepared_primitive_says_what_it_is() -> None:
    problem = ConvProblem.of((1, 16, 4, 4), (16, 16, 3, 3), padding=1)
    call = native.prepare(problem, wei=np.ones((16, 16, 3, 3), np.int8))
    assert call.kind in {"jit", "gemm"}
    assert call.wei_bytes >= 16 * 16 * 9
    text = call.describe()
    assert call.impl in text
    assert "packed" in text
    assert "src" in call.layouts


def test_a_refusal_carries_the_reasons_of_the_library() -> None:
    problem = MatMulProblem.of((4, 8), (8, 8), dst="u8")
    attr = Attr(src_zero_point=ZeroPoint(2))
    with pytest.raises(UnsupportedError) as caught:
        native.prepare(
            problem,
            attr,
            wei=np.ones((8, 8), np.int8),
            values={"src_zero_point": np.array([1] * 8, np.int32)},
        )
    assert caught.value.problem.startswith("matmul src:u8:4x8")
    assert ("gemm:jit", "unsupported attribute") in caught.value.reasons, caught.value


def test_types_without_any_implementation_say_so() -> None:
    problem = ConvProblem.of((1, 8, 4, 4), (8, 8, 1, 1), wei="u8")
    with pytest.raises(UnsupportedError) as caught:
        native.prepare(problem, wei=np.ones((8, 8, 1, 1), np.uint8))
    assert caught.value.reasons == child.NOTHING_LISTED


def test_a_wrong_accumulation_mode_is_refused_with_status_and_call() -> None:
    problem = ConvProblem.of((1, 8, 4, 4), (8, 8, 1, 1))
    with pytest.raises(OneDNNError) as caught:
        native.prepare(problem, Attr(accumulation="f16"), wei=np.ones((8, 8, 1, 1), np.int8))
    assert caught.value.call
    assert caught.value.status in {"unimplemented", "invalid_arguments", "refused"}


def test_a_known_wrong_reorder_is_refused() -> None:
    if runtime.version() < (3, 8, 0):
        pytest.skip("oneDNN 3.7 refuses it itself")
    attr = Attr(dst_scale=Scale(), dst_zero_point=ZeroPoint(2))
    values = {"dst_scale": 1.0, "dst_zero_point": np.arange(16, dtype=np.int32)}
    with pytest.raises(KnownWrongError, match="one zero point for the tensor"):
        native.prepare(ReorderProblem(last("f32"), last("u8")), attr, values=values)


@pytest.mark.parametrize("which", ["src", "wei", "both"])
def test_a_matmul_of_transposed_operands(which: str) -> None:
    """Transposed views go in without a copy where the problem says so."""
    src_spec = TensorSpec((5, 32), "u8", (1, 5) if which != "wei" else (32, 1))
    wei_spec = TensorSpec((32, 24), "s8", (1, 32) if which != "src" else (24, 1))
    problem = MatMulProblem(src_spec, wei_spec, TensorSpec.dense((5, 24), "s32"), None)
    src = integers(0, 50, (5, 32))
    wei = integers(-9, 10, (32, 24), "i1")
    laid_out = np.asfortranarray(src) if which != "wei" else src
    call = check(problem, src=laid_out, wei=wei)
    assert call.copies["src"] == 0
