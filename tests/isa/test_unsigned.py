"""Signed sources where the kernels for them do not sum exactly: as unsigned ones, and said so.

Weights are odd, so that halving them loses something, and small enough for pairs of products to
stay within 16 bits, so that u8 sources are exact. With VNNI nothing is changed.
"""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import SaturationError
from pyonednn_q.expr.steps import Chain, Eltwise, Sum
from pyonednn_q.inspection.inspector import inspect
from pyonednn_q.native import runtime
from pyonednn_q.ops.conv import Conv
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.ranges import Dynamic
from support.calls.call import Call
from support.frames import frames

RNG = np.random.default_rng(13)
WEI_Q = QParams(0.25, 0, "s8")
SAID = "s8 source as u8"
SHAPES: dict[str, tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "conv": ("conv", (2, 16, 9, 8), (32, 16, 3, 3), {"padding": 1}),
    "conv without padding": ("conv", (2, 16, 9, 8), (32, 16, 3, 3), {}),
    "conv 1x1": ("conv", (1, 32, 6, 6), (16, 32, 1, 1), {}),
    "conv of groups": ("conv", (1, 32, 6, 6), (32, 16, 3, 3), {"groups": 2, "padding": 1}),
    "depthwise": ("conv", (1, 32, 6, 6), (32, 1, 3, 3), {"groups": 32, "padding": 1}),
    "conv in one dimension": ("conv", (2, 16, 20), (16, 16, 3), {"padding": 1, "stride": 2}),
    "deconv": ("deconv", (1, 16, 5, 5), (16, 16, 4, 4), {"stride": 2, "padding": 1}),
    "inner product": ("inner_product", (5, 24), (16, 24), {}),
    "matmul": ("matmul", (7, 24), (24, 16), {}),
}


def odd(dims: tuple[int, ...], most: int = 31) -> Any:
    return (RNG.integers(-(most // 2), most // 2 + 1, dims) * 2 + 1).astype(np.int8)


def codes(dims: tuple[int, ...]) -> Any:
    found = RNG.integers(-128, 128, dims).astype(np.int8)
    found.flat[:2] = -128, 127
    return found


@pytest.mark.parametrize("point", [0, -7])
@pytest.mark.parametrize("shape", SHAPES)
def test_signed_sources_are_exact(shape: str, point: int) -> None:
    kind, src, wei, window = SHAPES[shape]
    if kind in {"conv", "deconv"} or not point:
        bias = RNG.integers(-50, 50, wei[1] if kind == "matmul" else wei[0]).astype(np.float32)
    else:
        bias = None
    call = Call(kind, codes(src), odd(wei), bias, QParams(0.5, point, "s8"), WEI_Q, window=window)
    operator = call.operator()
    for _ in range(2):
        call.meaning().check_equal(call.run(operator))
    notes = operator.prepare(src).notes
    if runtime.isa().has_vnni():
        assert not any(SAID in note for note in notes)


def test_a_convolution_of_odd_weights_is_run_as_unsigned_without_vnni() -> None:
    kind, src, wei, window = SHAPES["conv"]
    call = Call(kind, codes(src), odd(wei), None, QParams(0.5, 0, "s8"), WEI_Q, window=window)
    operator = call.operator()
    planned, seen = operator.prepare(src), inspect(operator, src)
    changed = not runtime.isa().has_vnni()
    for said in (planned.notes, seen.notes, (planned.describe(),), (str(seen),)):
        assert any(SAID in note for note in said) == changed
    assert planned.primitive.problem.tensors["src"].dtype == ("u8" if changed else "s8")
    assert operator.wei_bytes > 0
    again = pickle.loads(pickle.dumps(operator))
    call.meaning().check_equal(again(call.src))
    # Channels last, which is read where it lies, and an output in place.
    last = np.ascontiguousarray(call.src.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    call.meaning().check_equal(operator(last))
    out = np.empty((2, 32, 9, 8), np.float32)
    assert operator(call.src, out=out) is out
    call.meaning().check_equal(out)


@pytest.mark.parametrize("carrier", ["attribute", "bias", "map"])
def test_how_to_carry_a_zero_point_is_not_asked_where_there_is_none(carrier: str) -> None:
    """A map of 128 times the weights would cost the bits that sums beside it have."""
    scales = RNG.uniform(1e-3, 5e-3, 16)
    call = Call(
        "conv",
        codes((1, 1, 4, 3)),
        odd((16, 1, 1, 1), 127),
        RNG.normal(0, 5, 16).astype(np.float32),
        QParams(1.19, 0, "s8"),
        QParams(scales, np.zeros(16, int), "s8", 0),
        options={"zero_point": carrier},
    )
    operator = call.operator()
    assert not call.meaning().wrong(call.run(operator))
    planned = operator.prepare(call.src.shape)
    assert not any("by map" in note for note in planned.notes)


def test_chains_and_residuals_follow() -> None:
    kind, src, wei, window = SHAPES["conv"]
    residual = RNG.integers(0, 99, (2, 32, 9, 8)).astype(np.uint8)
    call = Call(
        kind,
        codes(src),
        odd(wei),
        None,
        QParams(2.0**-4, 3, "s8"),
        WEI_Q,
        QParams(1.0, 5, "u8"),
        post=Chain(Sum(0.5, 5), Eltwise("relu")),
        window=window,
        residual=residual,
    )
    call.meaning().check_equal(call.run())


def test_float_sources_follow() -> None:
    kind, src, wei, window = SHAPES["conv"]
    call = Call(kind, codes(src), odd(wei), None, QParams(0.5, -7, "s8"), WEI_Q, window=window)
    values = ((call.src.astype(np.float32) + 7) * 0.5).astype(np.float32)
    call.meaning().check_equal(call.operator()(values))
    # By each call's range: its largest magnitude is code 127.
    whole = np.maximum(codes(src), -127)
    dynamic = Conv(call.wei, src_q=Dynamic("s8"), wei_q=WEI_Q, **window)
    want = replace(call, src=whole, src_q=QParams(1.0, 0, "s8"))
    want.meaning().check_equal(dynamic(whole.astype(np.float32)))


def test_what_saturates_as_unsigned_is_refused_and_both_are_named() -> None:
    wei = np.full((32, 16, 3, 3), 127, np.int8)
    operator = Conv(wei, src_q=QParams(0.5, 0, "s8"), wei_q=WEI_Q, padding=1)
    if runtime.isa().has_vnni():
        assert operator.prepare((2, 16, 9, 8)).primitive.problem.tensors["src"].dtype == "s8"
        return
    with pytest.raises(SaturationError, match="as u8, 128 more: 32 output channel") as caught:
        operator.prepare((2, 16, 9, 8))
    assert caught.value.channels == tuple(range(32))
    allowed = Conv(wei, src_q=QParams(0.5, 0, "s8"), wei_q=WEI_Q, padding=1, saturation="allow")
    assert allowed.prepare((2, 16, 9, 8)).primitive.problem.tensors["src"].dtype == "s8"


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_next_call_runs_no_python(shape: str, last: bool) -> None:
    """The pass that makes u8 codes is in the call, wherever codes lie and out comes from."""
    kind, src_dims, wei_dims, window = SHAPES[shape]
    src = codes(src_dims)
    if last and src.ndim > 2:
        src = np.moveaxis(np.ascontiguousarray(np.moveaxis(src, 1, -1)), -1, 1)
    src_q = QParams(0.5, -7, "s8")
    call = Call(kind, src, odd(wei_dims), None, src_q, WEI_Q, window=window)
    operator = call.operator()
    dst = operator(src)
    out = np.empty_like(dst)
    assert frames(lambda: operator(src)) == []
    assert frames(lambda: operator(src, out=out)) == []
    for values in (src, ~src, np.zeros_like(src), np.full_like(src, -128)):
        call.but(src=values).meaning().check_equal(operator(values))
        assert operator(values, out=out) is out
        call.but(src=values).meaning().check_equal(out)
    # What does not fit as it is goes through Python: other strides, other shapes, floats.
    spread = np.repeat(src, 2, axis=-1)[..., ::2]
    np.testing.assert_array_equal(operator(spread), dst)
    one = call.but(src=np.ascontiguousarray(src[:1]))
    one.meaning().check_equal(one.run(operator))
    real = ((src.astype(np.float32) + 7) / 2).astype(np.float32)
    np.testing.assert_array_equal(operator(real), dst)
    np.testing.assert_array_equal(operator(src), dst)


def test_the_next_call_reads_a_residual_without_python() -> None:
    kind, src_dims, wei_dims, window = SHAPES["conv"]
    src, residual = codes(src_dims), RNG.integers(0, 99, (2, 32, 9, 8)).astype(np.uint8)
    call = Call(kind, src, odd(wei_dims), None, QParams(0.5, -7, "s8"), WEI_Q, window=window)
    call = call.but(dst_q=QParams(256.0, 3, "u8"), post=Chain(Sum(0.5), Eltwise("relu")))
    call = call.but(residual=residual)
    operator = call.operator()
    dst = call.run(operator)
    call.meaning().check(dst)
    before = residual.copy()
    assert frames(lambda: operator(src, residual=residual)) == []
    np.testing.assert_array_equal(operator(src, residual=residual), dst)
    np.testing.assert_array_equal(residual, before)
    in_place = residual.copy()
    np.testing.assert_array_equal(operator(src, out=in_place), dst)
