"""Attributes: structure, names of run-time values, and what the library would misread."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.post_ops import (
    MAX_POST_OPS,
    BinaryPostOp,
    DepthwisePostOp,
    EltwisePostOp,
    PostOp,
    PReluPostOp,
    SumPostOp,
)
from pyonednn_q.primitive.problem import BinaryProblem, ConvProblem, MatMulProblem
from pyonednn_q.primitive.tensor import TensorSpec

CONV = ConvProblem.of((2, 16, 8, 8), (32, 16, 3, 3), padding=1)
MATMUL = MatMulProblem.of((8, 64), (64, 32))
PER_CHANNEL = BinaryPostOp("add", TensorSpec.dense((1, 32, 1, 1), "f32"))

UNTYPED: Any = Attr  # what a caller without a type checker may pass

FULL: Attr = UNTYPED(
    src_scale=Scale(),
    wei_scale=Scale(1, "f16", (32, 1)),
    dst_scale=Scale(),
    src_zero_point=ZeroPoint(),
    wei_zero_point=ZeroPoint(0, "s8"),
    dst_zero_point=ZeroPoint(),
    post_ops=[SumPostOp(0.5, 3), EltwisePostOp("relu")],
    fpmath="bf16",
    fpmath_apply_to_int=True,
    accumulation="relaxed",
    deterministic=True,
)


def test_boundary_is_plain_tuples_in_a_fixed_order() -> None:
    assert FULL.boundary() == {
        "scales": (("src", 0, "f32", ()), ("wei", 1, "f16", (32, 1)), ("dst", 0, "f32", ())),
        "zero_points": (("src", 0, "s32", ()), ("wei", 0, "s8", ()), ("dst", 0, "s32", ())),
        "post_ops": (("sum", 0.5, 3, "undef"), ("eltwise", "relu", 0.0, 0.0)),
        "fpmath": ("bf16", True),
        "accumulation": "relaxed",
        "deterministic": True,
    }
    assert Attr().boundary() == {
        "scales": (),
        "zero_points": (),
        "post_ops": (),
        "fpmath": ("strict", False),
        "accumulation": "strict",
        "deterministic": False,
    }


def test_text_follows_the_order_of_computation() -> None:
    assert FULL.text() == (
        "src_scale:0 src_zero_point:0 wei_scale:1:f16:32x1 wei_zero_point:0:s8 "
        "sum:0.5:3 eltwise_relu dst_scale:0 dst_zero_point:0 "
        "fpmath:bf16:int accumulation:relaxed deterministic"
    )
    assert Attr().text() == ""
    assert Attr(fpmath="tf32").text() == "fpmath:tf32"
    assert Attr(fpmath_apply_to_int=True).text() == "fpmath:strict:int"


def test_equal_attributes_are_one_value() -> None:
    copy = pickle.loads(pickle.dumps(FULL))
    assert copy == FULL
    assert hash(copy) == hash(FULL)
    assert Attr(src_scale=Scale()) != Attr()


def test_runtime_names_are_scales_zero_points_operands() -> None:
    attr = Attr(
        wei_scale=Scale(1),
        dst_scale=Scale(),
        src_zero_point=ZeroPoint(),
        post_ops=(
            EltwisePostOp("relu"),
            PER_CHANNEL,
            SumPostOp(),
            PReluPostOp(2),
            DepthwisePostOp("s8", "f32", "u8", 3, 1, 1),
        ),
    )
    assert attr.runtime_names(CONV) == (
        "wei_scale",
        "dst_scale",
        "src_zero_point",
        "post_op_1",
        "post_op_3",
        "post_op_4_wei",
        "post_op_4_bias",
    )
    assert Attr().runtime_names(CONV) == ()


def test_src1_scales_belong_to_binary() -> None:
    spec = TensorSpec.dense((2, 3), "s8")
    attr = Attr(src1_scale=Scale())
    assert attr.runtime_names(BinaryProblem(spec, spec, spec, "add")) == ("src1_scale",)
    with pytest.raises(ArgumentError, match=r"^src1_scale: .*a convolution has no src1"):
        attr.check(CONV)


def test_a_mask_has_a_bit_for_each_dimension() -> None:
    assert Scale(2**12 - 1).mask == ZeroPoint(2**12 - 1).mask == 4095


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: UNTYPED(src_scale=ZeroPoint()), "src_scale"),
        (lambda: UNTYPED(src_zero_point=0), "src_zero_point"),
        (lambda: Attr(dst_zero_point=ZeroPoint(0, "u8")), "dst_zero_point"),
        (lambda: UNTYPED(post_ops=("relu",)), "post_ops[0]"),
        (lambda: Attr(post_ops=(SumPostOp(),) * 33), "post_ops"),
        (lambda: Attr(fpmath="fast"), "fpmath"),
        (lambda: Attr(accumulation="s16"), "accumulation"),
        (lambda: Scale(-1), "mask"),
        (lambda: Scale(2**12), "mask"),
        (lambda: Scale(0, "s32"), "dtype of a scale"),
        (lambda: ZeroPoint(0, "f32"), "dtype of a zero point"),
        (lambda: Scale(2, "f32", (0, 1)), "groups"),
    ],
)
def test_bad_values_are_refused_by_name(make: Any, argument: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        make()
    assert caught.value.argument == argument


def test_the_longest_chain_is_the_library_s() -> None:
    assert len(Attr(post_ops=(SumPostOp(),) * MAX_POST_OPS).post_ops) == 32


@pytest.mark.parametrize(
    ("attr", "argument"),
    [
        (Attr(wei_scale=Scale(16)), "wei_scale"),
        (Attr(wei_scale=Scale(3, "f32", (5, 1))), "wei_scale"),
        (Attr(wei_scale=Scale(3, "f32", (1, 1, 1, 1, 1))), "wei_scale"),
        (Attr(src_zero_point=ZeroPoint(16)), "src_zero_point"),
    ],
)
def test_masks_and_groups_must_fit_the_tensor(attr: Attr, argument: str) -> None:
    for problem in (CONV, MATMUL):
        with pytest.raises(ShapeError) as caught:
            attr.check(problem)
        assert caught.value.argument == argument


def test_groups_count_from_the_last_dimension() -> None:
    Attr(wei_scale=Scale(3, "f32", (16, 1))).check(MATMUL)
    Attr(wei_scale=Scale(3, "f32", (16,))).check(MATMUL)
    with pytest.raises(ShapeError, match=r"divisors of \(64, 32\)"):
        Attr(wei_scale=Scale(3, "f32", (1, 64))).check(MATMUL)


@pytest.mark.parametrize(
    ("post_op", "error"),
    [
        (BinaryPostOp("add", TensorSpec.dense((1, 7, 1, 1), "f32")), ShapeError),
        (BinaryPostOp("add", TensorSpec.dense((32,), "f32")), ShapeError),
        (BinaryPostOp("add", TensorSpec.dense((4, 1, 1, 1), "f32")), ShapeError),
        (PReluPostOp(16), ShapeError),
        (SumPostOp(dtype="f32"), DTypeError),
    ],
)
def test_what_the_library_accepts_and_misreads_is_refused(
    post_op: PostOp, error: type[ArgumentError]
) -> None:
    attr = Attr(post_ops=(EltwisePostOp("relu"), post_op))
    with pytest.raises(error) as caught:
        attr.check(CONV)
    assert caught.value.argument == "post_ops[1]"


def test_what_broadcasts_passes() -> None:
    dims = [(1, 1, 1, 1), (1, 32, 1, 1), (2, 32, 8, 8), (2, 1, 1, 8)]
    operands = [BinaryPostOp("mul", TensorSpec.dense(each, "f32")) for each in dims]
    Attr(post_ops=(*operands, PReluPostOp(15), SumPostOp(dtype="s8"))).check(CONV)
