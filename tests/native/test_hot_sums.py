"""Sums without a frame of Python: what they read is in `out`, or in a residual that stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q import Conv, MatMul, QParams, matmul
from pyonednn_q.compose.composer import compose
from pyonednn_q.errors import AliasError, ArgumentError, DTypeError
from pyonednn_q.expr.steps import Binary, Chain, Eltwise, Leaf, Sum
from pyonednn_q.native import prepare, runtime
from pyonednn_q.ops.planned import prepare_plan
from pyonednn_q.primitive.attr import Attr
from pyonednn_q.primitive.dense import MatMulProblem
from pyonednn_q.primitive.dense_facts import PrimitiveFacts
from pyonednn_q.primitive.post_ops import SumPostOp
from pyonednn_q.primitive.tensor import TensorSpec
from support.frames import frames

Array = Any

Q: dict[str, Any] = {"src_q": QParams(0.5, 0, "u8"), "wei_q": QParams(0.25, 0, "s8")}
TO_U8: dict[str, Any] = {**Q, "dst_q": QParams(8.0, 0, "u8")}
POST = Chain(Sum(1.0), Eltwise("relu"))
WEI = np.arange(-64, 64, dtype=np.int8).reshape(8, 16)
SRC = np.arange(16, dtype=np.uint8).reshape(2, 8)
RESIDUAL = np.random.default_rng(2).integers(0, 99, (2, 16)).astype(np.uint8)


def elsewhere(array: Array) -> Array:
    """Return the same values in memory that no primitive takes as it is."""
    wide = np.zeros((*array.shape, 2), array.dtype)
    wide[..., 0] = array
    return wide[..., 0]


@pytest.fixture
def summed() -> MatMul:
    """Return an operator that has run, and knows how arrays lie."""
    made = MatMul(WEI, **TO_U8, post=POST)
    made(SRC, residual=RESIDUAL)
    return made


@pytest.mark.parametrize("layout", ["preserve", "dense"])
@pytest.mark.parametrize("kind", [Conv, MatMul])
def test_a_sum_enters_no_python(kind: Any, layout: str) -> None:
    """What it reads is in `out` or in the residual; nothing else is read in its place."""
    wei: Array = WEI
    src: Array = SRC
    if kind is Conv:
        wei, src = wei.T[..., None, None].copy(), np.stack([src] * 6, -1).reshape(2, 8, 2, 3)
    if layout == "preserve":
        src = np.moveaxis(np.moveaxis(src, 1, -1).copy(), -1, 1)
    summed = kind(wei, **TO_U8, post=POST, layout=layout)
    planned = summed.prepare(src.shape)
    values = np.random.default_rng(1).integers(0, 99, planned.dst.dims).astype(np.uint8)
    wanted = planned(src, residual=elsewhere(values)).copy()
    assert not np.array_equal(wanted, kind(wei, **TO_U8, post=Chain(Eltwise("relu")))(src))
    out = values.copy() if layout == "dense" else planned.empty()
    before = values.copy() if layout == "dense" else planned.empty()
    out[...] = before[...] = values
    before.flags.writeable = False
    summed(src, out=out)  # the first finds out how arrays lie
    for call in (summed, planned.row_major() if layout == "dense" else planned):
        out[...] = values
        assert frames(lambda: call(src, out=out)) == []  # noqa: B023 - called at once
        assert np.array_equal(out, wanted)
        assert frames(lambda: call(src, residual=before)) == []  # noqa: B023
        assert np.array_equal(call(src, residual=before), wanted)
        out[...] = 0
        assert frames(lambda: call(src, residual=before, out=out)) == []  # noqa: B023
        assert np.array_equal(out, wanted)
        out[...] = values
        assert call(src, residual=out, out=out) is out
        assert np.array_equal(out, wanted)
        assert np.array_equal(before, values)
        with pytest.raises(ArgumentError, match="out"):
            call(src)
    into = elsewhere(values)
    assert summed(src, out=into) is into
    assert np.array_equal(into, wanted)


def test_functional_calls_take_residuals_there() -> None:
    def call() -> Array:
        return matmul(SRC, WEI, residual=RESIDUAL, **TO_U8, post=POST)

    wanted = matmul(SRC, WEI, residual=elsewhere(RESIDUAL), **TO_U8, post=POST).copy()
    for _ in range(3):
        assert np.array_equal(call(), wanted)


def test_a_large_residual_is_copied_whole() -> None:
    """Several threads copy it."""
    rng = np.random.default_rng(3)
    src = rng.integers(0, 9, (1031, 64)).astype(np.uint8)
    wei = rng.integers(-4, 5, (64, 1033)).astype(np.int8)
    residual = rng.integers(0, 99, (1031, 1033)).astype(np.uint8)
    summed = MatMul(wei, **TO_U8, post=POST)
    wanted = summed(src, residual=elsewhere(residual)).copy()
    summed(src, residual=residual)
    assert frames(lambda: summed(src, residual=residual)) == []
    assert np.array_equal(summed(src, residual=residual), wanted)


def test_a_residual_of_the_wrong_type_is_refused(summed: MatMul) -> None:
    with pytest.raises(DTypeError, match="residual"):
        summed(SRC, residual=RESIDUAL.astype(np.int32))


def test_a_residual_may_be_any_tensor(summed: MatMul) -> None:
    wanted = summed(SRC, residual=elsewhere(RESIDUAL))
    assert np.array_equal(summed(SRC, residual=memoryview(RESIDUAL.data)), wanted)
    assert np.array_equal(summed(SRC, residual=RESIDUAL.view(np.matrix)), wanted)


def test_a_residual_that_overlaps_out_is_refused(summed: MatMul) -> None:
    memory = np.zeros((3, 16), np.uint8)
    with pytest.raises(AliasError, match="residual"):
        summed(SRC, residual=memory[:2], out=memory[1:])
    assert not memory.any()


def test_a_residual_for_no_sum_is_refused() -> None:
    plain = MatMul(WEI, **TO_U8)
    out = plain(SRC)
    for named in ({}, {"out": out}):
        with pytest.raises(ArgumentError, match="residual"):
            plain(SRC, residual=RESIDUAL, **named)


def test_a_primitive_takes_no_residual() -> None:
    """Nor is it taken for another array of the call."""
    problem = MatMulProblem.of(SRC.shape, WEI.shape, dst="u8")
    call = prepare(problem, Attr(post_ops=(SumPostOp(),)), wei=WEI)
    out = call.empty()
    out[...] = 1
    call(SRC, out=out)
    for named in ({"residual": RESIDUAL}, {"residual": RESIDUAL, "out": out}):
        with pytest.raises(TypeError, match="residual"):
            call(SRC, **named)
        with pytest.raises(TypeError, match="residual"):
            call(**named)


def test_rows_between_those_of_out_stay_as_they_are() -> None:
    """A primitive may store every other row; the copy of a residual does not go beyond them."""
    apart = TensorSpec((2, 16), "u8", (32, 1))
    problem = MatMulProblem.of(SRC.shape, WEI.shape, dst="u8")
    plan = compose(POST, PrimitiveFacts.of(problem, src_scale=0.5, process=runtime.facts()))
    planned = prepare_plan(plan, problem, wei=WEI, arrays={"dst": apart})
    wanted = prepare_plan(plan, problem, wei=WEI)(SRC, residual=RESIDUAL)
    memory, between = np.full((4, 16), 7, np.uint8), np.full((4, 16), 9, np.uint8)
    out, residual = memory[::2], between[::2]
    residual[...] = RESIDUAL
    assert planned(SRC, residual=residual, out=out) is out
    assert np.array_equal(out, wanted)
    assert (memory[1::2] == 7).all()


def test_a_sum_of_nothing_needs_what_python_says() -> None:
    """Whatever becomes of the step, a call without its array is refused."""
    wei = np.ones((4, 8), np.int8)
    src = SRC[:, :4].copy()
    q: dict[str, Any] = {"src_q": QParams(1.0, 0, "u8"), "wei_q": QParams(1.0, 0, "s8")}
    nothing = MatMul(wei, **q, post=Chain(Sum(0.0)))
    planned = nothing.prepare(src.shape)
    with pytest.raises(ArgumentError, match="out"):
        planned(src)
    out = np.full((2, 8), 7, np.float32)
    assert np.array_equal(planned(src, out=out), MatMul(wei, **q)(src))


def test_an_operand_that_is_out_is_not_overwritten_by_a_residual() -> None:
    """A sum's residual is copied to `out` before the operand there is read."""
    rng = np.random.default_rng(3)
    wei = rng.integers(-9, 10, (4, 3, 1, 1)).astype(np.int8)
    src = rng.integers(0, 9, (1, 3, 2, 5)).astype(np.uint8)
    post = Chain(Binary("mul", Leaf("r")), Sum())
    one = QParams(1.0, 0, "u8"), QParams(1.0, 0, "s8")
    op = Conv(wei, src_q=one[0], wei_q=one[1], post=post)
    r, before = (
        rng.integers(-9, 10, (1, 2, 5, 4)).astype(np.float32).transpose(0, 3, 1, 2)
        for _ in range(2)
    )
    acc = np.einsum("nchw,oc->nohw", src.astype(np.float32), wei[:, :, 0, 0].astype(np.float32))
    want = acc * r + before
    np.testing.assert_array_equal(op(src, r=r, residual=before), want)
    for _ in range(2):  # once through Python, and once without
        with pytest.raises(AliasError, match=r"^r: got memory that overlaps dst"):
            op(src, r=r, residual=before, out=r)
    # In place without a residual beside it: `out` is the operand, and what the sum reads.
    want = acc * r + r
    np.testing.assert_array_equal(op(src, r=r, out=r), want)
