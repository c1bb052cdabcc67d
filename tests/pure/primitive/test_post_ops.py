"""Post-ops: what they hand to the extension and what they refuse."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError, DTypeError
from pyonednn_q.primitive.post_ops import (
    BINARY_ALGS,
    ELTWISE_ALGS,
    BinaryPostOp,
    DepthwisePostOp,
    EltwisePostOp,
    PostOp,
    PReluPostOp,
    SumPostOp,
)
from pyonednn_q.primitive.tensor import TensorSpec

PER_CHANNEL = TensorSpec.dense((1, 64, 1, 1), "f32")

EXAMPLES: list[tuple[PostOp, tuple[Any, ...], str]] = [
    (SumPostOp(), ("sum", 1.0, 0, "undef"), "sum:1.0:0"),
    (SumPostOp(0.5, -3, "s8"), ("sum", 0.5, -3, "s8"), "sum:0.5:-3:s8"),
    (EltwisePostOp("relu"), ("eltwise", "relu", 0.0, 0.0), "eltwise_relu"),
    (EltwisePostOp("clip", 0, 6), ("eltwise", "clip", 0.0, 6.0), "eltwise_clip:0.0:6.0"),
    (
        BinaryPostOp("mul", PER_CHANNEL),
        ("binary", "mul", ((1, 64, 1, 1), "f32", (64, 1, 1, 1))),
        "binary_mul:f32:1x64x1x1",
    ),
    (PReluPostOp(2), ("prelu", 2), "prelu:2"),
    (
        DepthwisePostOp("s8", None, "u8", 3, 1, 1),
        ("depthwise", "s8", "undef", "u8", 3, 1, 1),
        "depthwise:k3s1p1:s8:undef:u8",
    ),
    (
        DepthwisePostOp("s8", None, "u8", 1, 1, 0),
        ("depthwise", "s8", "undef", "u8", 1, 1, 0),
        "depthwise:k1s1p0:s8:undef:u8",
    ),
    (
        DepthwisePostOp("s8", "f32", "u8", 3, 2, 1),
        ("depthwise", "s8", "f32", "u8", 3, 2, 1),
        "depthwise:k3s2p1:s8:f32:u8",
    ),
]


@pytest.mark.parametrize(("post_op", "boundary", "text"), EXAMPLES)
def test_boundary_text_and_value(post_op: PostOp, boundary: tuple[Any, ...], text: str) -> None:
    assert post_op.boundary() == boundary
    assert post_op.text() == text
    copy = pickle.loads(pickle.dumps(post_op))
    assert copy == post_op
    assert hash(copy) == hash(post_op)


def test_numbers_of_numpy_become_plain_ones() -> None:
    post_op = SumPostOp(np.float32(0.5), np.int64(3))
    assert [type(value) for value in post_op.boundary()] == [str, float, int, str]


@pytest.mark.parametrize("alg", ELTWISE_ALGS)
def test_every_eltwise_is_made(alg: str) -> None:
    assert EltwisePostOp(alg, 1.0, 2.0).boundary() == ("eltwise", alg, 1.0, 2.0)


@pytest.mark.parametrize("alg", BINARY_ALGS)
def test_every_binary_is_made(alg: str) -> None:
    assert BinaryPostOp(alg, PER_CHANNEL).boundary()[:2] == ("binary", alg)


def test_select_cannot_be_asked_for() -> None:
    with pytest.raises(ArgumentError, match=r"^alg: got 'select'"):
        BinaryPostOp("select", PER_CHANNEL)


def test_clip_bounds_are_ordered_and_may_be_infinite() -> None:
    assert EltwisePostOp("clip_v2", 0.0, np.inf).beta == np.inf
    assert EltwisePostOp("clip", 3.0, 3.0).alpha == 3.0
    with pytest.raises(ArgumentError, match=r"^alpha: got 2.0; wanted at most beta = 1.0"):
        EltwisePostOp("clip", 2.0, 1.0)
    assert EltwisePostOp("linear", 2.0, 1.0).alpha == 2.0


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: SumPostOp(float("nan")), "scale"),
        (lambda: SumPostOp(1.0, 2**31), "zero_point"),
        (lambda: SumPostOp(1.0, 0.0), "zero_point"),  # type: ignore[arg-type]
        (lambda: SumPostOp(dtype="f64"), "dtype"),
        (lambda: EltwisePostOp("Relu"), "alg"),
        (lambda: EltwisePostOp("linear", float("inf")), "alpha"),
        (lambda: EltwisePostOp("clip", 0.0, float("nan")), "beta"),
        (lambda: EltwisePostOp("linear", 1e39), "alpha"),
        (lambda: EltwisePostOp("soft_relu"), "alpha"),
        (lambda: BinaryPostOp("add", (1, 64)), "src1"),  # type: ignore[arg-type]
        (lambda: PReluPostOp(-1), "mask"),
        (lambda: PReluPostOp(2**12), "mask"),
        (lambda: DepthwisePostOp("s8", None, "u8", 0, 1, 1), "kernel"),
        (lambda: DepthwisePostOp("s8", None, "u8", 3, 0, 1), "stride"),
        (lambda: DepthwisePostOp("s8", None, "u8", 3, 1, -1), "padding"),
        (lambda: DepthwisePostOp("s8", "f64", "u8", 3, 1, 1), "bias_dtype"),
    ],
)
def test_bad_values_are_refused_by_name(make: Any, argument: str) -> None:
    with pytest.raises((ArgumentError, DTypeError)) as caught:
        make()
    assert caught.value.argument == argument


def test_parameters_are_never_minus_0() -> None:
    """The library's cache gives the primitive of 0 to whoever asks for -0 later."""
    post_op = EltwisePostOp("linear", -0.0, -0.0)
    assert (math.copysign(1, post_op.alpha), math.copysign(1, post_op.beta)) == (1, 1)
    assert EltwisePostOp("clip", -math.inf, -0.0).boundary() == ("eltwise", "clip", -math.inf, 0.0)
