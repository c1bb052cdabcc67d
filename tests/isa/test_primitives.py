"""What INT8 primitives do with padding, orders of post-ops, reorders and refusals.

`test_parity.py` compares them at large; here is what a matrix of clean fills cannot show. Scales,
bias and exact rounding have modules of their own in `tests/others/definitions`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from pyonednn_q import native
from pyonednn_q.errors import UnsupportedError
from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.isa import classify
from pyonednn_q.primitive.post_ops import DepthwisePostOp, EltwisePostOp, SumPostOp
from pyonednn_q.primitive.problem import (
    ConvProblem,
    ReorderProblem,
)
from pyonednn_q.primitive.tensor import TensorSpec
from support import parity

if TYPE_CHECKING:
    from pyonednn_q.primitive.window import Padding


@pytest.mark.parametrize("src", ["u8", "s8"])
@pytest.mark.parametrize("padding", [0, 1, ((2, 0), (0, 1))])
def test_padding_holds_the_zero_point(src: str, padding: Padding) -> None:
    """A source that is its zero point everywhere is zero everywhere, borders included."""
    problem = ConvProblem.of((1, 16, 6, 6), (16, 16, 3, 3), padding=padding, src=src, dst="s32")
    wei = (2 * np.random.default_rng(0).integers(-9, 9, (16, 16, 3, 3))).astype(np.int8)
    attr = Attr(src_zero_point=ZeroPoint())
    for zero_point in (-7, 0, 7, 100):
        if src == "u8" and zero_point < 0:
            continue
        call = native.prepare(problem, attr, wei=wei, values={"src_zero_point": zero_point})
        dtype = np.uint8 if src == "u8" else np.int8
        assert not call(np.full((1, 16, 6, 6), zero_point, dtype)).any()


def test_post_ops_run_in_the_order_of_the_list() -> None:
    problem = ConvProblem.of((1, 16, 4, 4), (16, 16, 1, 1), dst="f32")
    wei = np.full((16, 16, 1, 1), -2, np.int8)
    src = np.ones((1, 16, 4, 4), np.uint8)
    relu, shift = EltwisePostOp("relu"), EltwisePostOp("linear", 1.0, 40.0)
    assert (native.prepare(problem, Attr(post_ops=(relu, shift)), wei=wei)(src) == 40).all()
    assert (native.prepare(problem, Attr(post_ops=(shift, relu)), wei=wei)(src) == 8).all()
    out = np.full((1, 16, 4, 4), 100, np.float32)
    late = native.prepare(problem, Attr(post_ops=(relu, SumPostOp(0.5))), wei=wei)
    assert (late(src, out=out) == 50).all()


def test_a_depthwise_convolution_behind_a_pointwise_one() -> None:
    """Where the library takes it (nothing else that we bind does), in f32."""
    problem = ConvProblem.of((1, 16, 8, 8), (16, 16, 1, 1), src="f32", wei="f32", dst="f32")
    attr = Attr(post_ops=(DepthwisePostOp("f32", None, "f32", 3, 1, 1),))
    rng = np.random.default_rng(1)
    src = rng.integers(-4, 5, (1, 16, 8, 8)).astype(np.float32)
    wei = rng.integers(-4, 5, (16, 16, 1, 1)).astype(np.float32)
    dw_wei = rng.integers(-4, 5, (16, 1, 1, 3, 3)).astype(np.float32)
    try:
        call = native.prepare(
            problem, attr, wei=wei, values={"post_op_0_wei": dw_wei}, allow_reference=True
        )
    except UnsupportedError as error:
        pytest.skip(f"this library does not fuse it here: {error.reasons[:1]}")
    middle = native.prepare(problem, wei=wei)(src)
    then = ConvProblem.of(
        (1, 16, 8, 8), (16, 1, 1, 3, 3), src="f32", wei="f32", dst="f32", padding=1
    )
    np.testing.assert_array_equal(call(src), native.prepare(then, wei=dw_wei)(middle))


@pytest.mark.parametrize("dst", ["u8", "s8"])
def test_a_reorder_rounds_ties_to_even_per_dimension(dst: str) -> None:
    spec = TensorSpec.channels_last((1, 8, 4, 4), "f32")
    values = (np.arange(128, dtype=np.float32).reshape(1, 8, 4, 4) - 40) / 2
    scale = np.float32(2.0) ** (np.arange(8, dtype=np.float32) % 3 - 1)
    problem = ReorderProblem(spec, TensorSpec.channels_last((1, 8, 4, 4), dst))
    call = native.prepare(problem, Attr(dst_scale=Scale(2)), values={"dst_scale": scale})
    lo, hi = (0, 255) if dst == "u8" else (-128, 127)
    expected = np.clip(np.rint(values / scale.reshape(1, 8, 1, 1)), lo, hi)
    np.testing.assert_array_equal(call(values), expected)


def test_a_refusal_names_the_pair_and_a_success_its_kernel() -> None:
    problem = ConvProblem.of((1, 16, 4, 4), (16, 16, 1, 1))
    with pytest.raises(UnsupportedError, match="wei_zero_point:0") as caught:
        native.prepare(
            problem,
            Attr(wei_zero_point=ZeroPoint()),
            wei=np.ones((16, 16, 1, 1), np.int8),
            values={"wei_zero_point": 1},
        )
    assert caught.value.reasons
    offers = native.implementations(problem)
    call = native.prepare(problem, wei=np.ones((16, 16, 1, 1), np.int8))
    assert call.impl == offers[0].impl
    assert offers[-1].kind == "reference"
    assert [classify(offer.impl, problem.kind) for offer in offers] == [
        offer.kind for offer in offers
    ]


def test_every_kind_of_the_matrix_lists_more_than_one_implementation() -> None:
    for kind in parity.KINDS:
        problem = parity.problem(kind, next(iter(parity.SHAPES[kind])), "u8", "u8", None)
        assert len(native.implementations(problem)) > 1
