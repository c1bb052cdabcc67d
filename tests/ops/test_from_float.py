"""Float layers: quantized by `from_float`, called on float values or on codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.steps import Affine, Chain, Eltwise, PRelu, Sum
from pyonednn_q.ops.conv import Conv
from pyonednn_q.ops.dense import InnerProduct, MatMul
from pyonednn_q.ops.functional import conv, matmul
from pyonednn_q.qparams import QParams
from support.calls.call import Call
from support.calls.float_layers import OPERATORS, SHAPES, C
from support.oracle_numbers import INTEGER_RANGES, numpy_dtype

F = np.float32
CHAIN = Chain(Affine(np.linspace(0.5, 2.0, C), 0.25), PRelu(np.resize([0.25, 0.5], C)))


def drawn(shape: str, seed: int = 0) -> tuple[Any, Any, Any, dict[str, Any]]:
    rng = np.random.default_rng(seed)
    src_dims, wei_dims, window = SHAPES[shape]
    src = rng.normal(size=src_dims).astype(F)
    wei, bias = rng.normal(size=wei_dims).astype(F), rng.normal(size=C).astype(F)
    return src, wei, bias, window


def codes_of(values: Any, q: QParams) -> Any:
    """The definition in float32: clamp(rne(x / scale) + zero_point)."""
    levels = np.rint(values / F(q.scale)) + F(q.zero_point)
    return np.clip(levels, *INTEGER_RANGES[q.dtype]).astype(numpy_dtype(q.dtype))


def weights_of(wei: Any, axis: int, levels: int) -> tuple[Any, QParams]:
    """Codes of each channel's largest magnitude, in float64."""
    rows = np.moveaxis(wei.astype(np.float64), axis, 0)
    top = levels // 2
    scale = np.abs(rows.reshape(len(rows), -1)).max(axis=1) / top
    codes = np.rint(rows / scale.reshape(-1, *(1,) * (rows.ndim - 1)))
    return np.moveaxis(codes, 0, axis).astype(np.int8), QParams(scale, 0, "s8", axis=axis)


def as_call(shape: str, src: Any, wei: Any, bias: Any, q: QParams, **more: Any) -> Call:
    """The same layer, in codes."""
    kind = shape.partition(" ")[0]
    codes, wei_q = weights_of(wei, -1 if kind == "matmul" else 0, 129)
    window = SHAPES[shape][2]
    return Call(kind, src, codes, bias, src_q=q, wei_q=wei_q, window=window, **more)


@pytest.mark.parametrize("dst", [None, QParams(0.05, 11, "u8"), QParams(0.1, -3, "s8")])
@pytest.mark.parametrize("point", [0, 117])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_float_layer_is_the_integer_one(shape: str, point: int, dst: QParams | None) -> None:
    src, wei, bias, window = drawn(shape)
    q = QParams(0.02, point, "u8")
    operator = OPERATORS[shape.partition(" ")[0]].from_float(
        wei, bias, src_q=q, dst_q=dst, wei_levels=129, post=CHAIN, **window
    )
    got = operator(src)
    call = as_call(shape, codes_of(src, q), wei, bias, q, dst_q=dst, post=CHAIN)
    call.meaning().check(got)
    np.testing.assert_array_equal(operator(call.src), got)  # codes are taken as they are


def test_it_comes_near_the_float_layer() -> None:
    """Half a level of the source and of the weights, and no more."""
    src, wei, bias, window = drawn("conv")
    quantized = Conv.from_float(wei, bias, src_q=(src.min(), src.max()), wei_levels=129, **window)
    difference = quantized(src) - Conv(wei, bias, **window)(src)
    src_step, wei_step = (src.max() - src.min()) / 255, np.abs(wei).max() / 64
    worst = 72 * (src_step / 2 * np.abs(wei).max() + wei_step / 2 * (np.abs(src).max() + src_step))
    assert 0 < np.abs(difference).max() < worst / 6


@pytest.mark.parametrize("dtype", ["u8", "s8"])
def test_ranges_become_qparams(dtype: str) -> None:
    _, wei, bias, window = drawn("conv")
    made = Conv.from_float(
        wei, bias, src_q=(-1.0, 1.55), src_dtype=dtype, dst_q=(0, 5.1), dst=dtype, **window
    ).settings
    least = INTEGER_RANGES[dtype][0]
    step = F(2.55) / F(255)
    assert made.src_q == QParams(float(step), 100 + least, dtype)
    assert made.dst_q == QParams(float(F(5.1) / F(255)), least, dtype)


@pytest.mark.parametrize("dtype", ["u8", "s8"])
def test_a_fake_quantize_of_the_result(dtype: str) -> None:
    """A range for every channel goes into weights and bias: codes are stored, or their values."""
    src, wei, bias, window = drawn("conv")
    high = np.linspace(2.0, 9.0, C)
    fq = FakeQuantize(-high, high, -high, high, 255)
    given: dict[str, Any] = {"src_q": (-3, 3), "wei_levels": 129, "post": CHAIN, **window}
    values = Conv.from_float(wei, bias, dst_q=fq, dst="f32", **given)(src)
    layer = Conv.from_float(wei, bias, dst_q=fq, dst=dtype, **given)
    codes = layer(src)
    assert codes.dtype == numpy_dtype(dtype)
    assert not layer.plan(src.shape).leftovers
    offset = 127 if dtype == "u8" else 0
    step = (high / 127).reshape(1, -1, 1, 1)
    real = Conv.from_float(wei, bias, **given)(src).astype(np.float64)
    levels = np.clip(real / step, -127, 127)
    for got in (codes.astype(float) - offset, np.rint(values / step)):
        assert np.abs(got - levels).max() <= 0.5 + 1e-3
        clear = np.abs(levels - np.floor(levels) - 0.5) > 1e-3
        np.testing.assert_array_equal(got[clear], np.rint(levels)[clear])


def test_a_fake_quantize_of_the_source_and_of_the_weights() -> None:
    src, wei, bias, window = drawn("conv")
    fq = FakeQuantize(-1.0, 1.55, -1.0, 1.55)
    layer = Conv.from_float(
        wei, bias, src_q=fq, wei_fq=FakeQuantize(-4.0, 4.0, -4.0, 4.0, 129), **window
    )
    assert isinstance(layer.settings.src_q, QParams)
    assert layer.settings.src_q.zero_point == 100
    assert np.abs(layer.weights.scale.values() - 1 / 16).max() < 1e-12
    q = QParams(float(layer.settings.src_q.scale), 100, "u8")
    codes = np.clip(np.rint(wei.astype(np.float64) * 16), -64, 64).astype(np.int8)
    call = Call("conv", codes_of(src, q), codes, bias, src_q=q, wei_q=QParams(0.0625, 0, "s8"))
    call.but(window=window).meaning().check(layer(src))


def test_a_residual_and_an_output() -> None:
    src, wei, bias, window = drawn("conv")
    q, dst_q = QParams(0.02, 128, "u8"), QParams(0.1, 20, "u8")
    residual = np.random.default_rng(2).integers(0, 256, (2, C, 6, 5)).astype(np.uint8)
    post = Chain(Sum(0.1, 20), Eltwise("relu"))
    layer = Conv.from_float(wei, bias, src_q=q, dst_q=dst_q, wei_levels=129, post=post, **window)
    call = as_call("conv", codes_of(src, q), wei, bias, q, dst_q=dst_q, post=post)
    wanted = call.but(residual=residual.copy()).meaning()
    wanted.check(layer(src, residual=residual))
    assert layer(src, out=residual) is residual
    wanted.check(residual)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, "bf16"])
def test_weights_of_other_float_types(dtype: Any) -> None:
    _, wei, bias, _ = drawn("matmul")
    given = wei.astype(numpy_dtype(dtype) if dtype == "bf16" else dtype)
    made = MatMul.from_float(given, bias.astype(np.float64), src_q=(0, 1))
    wei_q = weights_of(given, -1, 255)[1]
    np.testing.assert_array_equal(made.weights.scale.values(), wei_q.scale)
    levels = given.astype(np.float64) / wei_q.scale  # of a bf16, some are ties
    assert np.abs(levels - made.weights.values).max() <= 0.5 + 1e-9


def test_functional_calls_take_float_sources() -> None:
    src, wei, bias, window = drawn("conv")
    q = QParams(0.02, 117, "u8")
    call = as_call("conv", codes_of(src, q), wei, bias, q)
    got = conv(src, call.wei, bias, src_q=q, wei_q=call.wei_q, **window)
    call.meaning().check(got)


def test_the_layout_of_a_float_source_is_kept() -> None:
    src, wei, bias, window = drawn("conv")
    layer = Conv.from_float(wei, bias, src_q=(-3, 3), wei_levels=129, **window)
    last = np.ascontiguousarray(src.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    dense, channels_last = layer(src), layer(last)
    np.testing.assert_array_equal(dense, channels_last)
    assert dense.flags.c_contiguous
    assert channels_last.transpose(0, 2, 3, 1).flags.c_contiguous


@pytest.mark.parametrize("kind", ["min_max", "mse"])
def test_what_estimators_return_goes_in_as_it_is(kind: str) -> None:
    x = np.random.default_rng(3).normal(0, 1, (64, 8)).astype(np.float32)
    state = pq.quantize.estimator(kind)
    state.update(x)
    lo, hi = state.range()
    wei = np.eye(8, dtype=np.float32)
    own, plain = (
        InnerProduct.from_float(wei, src_q=ends, dst_q=ends)
        for ends in (state.range(), (float(lo), float(hi)))
    )
    assert own.settings.src_q == plain.settings.src_q
    assert own.settings.dst_q == plain.settings.dst_q


@pytest.mark.parametrize("dims", [(0, 8, 6, 5), (1, 8, 6, 5)])
def test_empty_sources(dims: tuple[int, ...]) -> None:
    _, wei, bias, window = drawn("conv")
    layer = Conv.from_float(wei, bias, src_q=(0, 1), wei_levels=129, **window)
    assert layer(np.zeros(dims, F)).shape[0] == dims[0]


WRONG: dict[str, tuple[type[Exception], str, dict[str, Any]]] = {
    "no source": (ArgumentError, "src_q", {"src_q": None}),
    "half a range": (ArgumentError, "src_q", {"src_q": (0.0,)}),
    "a range that is none": (ArgumentError, "src_q", {"src_q": (1.0, 0.0)}),
    "a source of no codes": (DTypeError, "src_dtype", {"src_dtype": "s32"}),
    "levels of the source": (
        ArgumentError,
        "src_q",
        {"src_q": FakeQuantize(0.0, 1.0, 0.0, 1.0, 1000)},
    ),
    "a range of dst that is none": (ArgumentError, "dst_q", {"dst_q": (0.0, float("nan"))}),
    "a range for floats": (DTypeError, "dst", {"dst_q": (0.0, 1.0), "dst": "f32"}),
    "levels of dst": (
        ArgumentError,
        "dst_q",
        {"dst_q": FakeQuantize(0.0, 1.0, 0.0, 1.0, 1000), "dst": "u8"},
    ),
    "ranges of weights": (
        ShapeError,
        "wei_fq",
        {"wei_fq": FakeQuantize([-1.0, -2.0], [1.0, 2.0], [-1.0, -2.0], [1.0, 2.0], 255)},
    ),
    "weights without 0": (ArgumentError, "wei_fq", {"wei_fq": FakeQuantize(1, 2, 1, 2, 255)}),
    "levels of weights": (ArgumentError, "^wei_levels: ", {"wei_levels": 16}),
    "codes of weights": (DTypeError, "wei", {"wei": np.ones((C, 8, 3, 3), np.int8)}),
    "no weights": (ShapeError, "wei", {"wei": np.float32(3.0)}),
    "weights that are no numbers": (
        ArgumentError,
        "wei",
        {"wei": np.full((C, 8, 3, 3), np.nan, F)},
    ),
    "a bias of codes": (DTypeError, "bias", {"bias": np.arange(C, dtype=np.int32)}),
    "a bias that is too large": (ArgumentError, "bias", {"bias": np.full(C, 1e300)}),
    "no chain": (ArgumentError, "post", {"post": "relu", "dst_q": (0, 1)}),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_arguments_are_refused_by_name(what: str) -> None:
    error, name, change = WRONG[what]
    given: dict[str, Any] = {"wei": drawn("conv")[1], "src_q": (0.0, 1.0), **change}
    with pytest.raises(error, match=name):
        Conv.from_float(given.pop("wei"), **given)


def test_float_sources_that_have_no_codes() -> None:
    layer = MatMul.from_float(drawn("matmul")[1], src_q=(0.0, 1.0), wei_levels=129)
    src = np.ones((7, 24), F)
    src[3, 3] = np.nan
    with pytest.raises(ArgumentError, match="src: got NaN"):
        layer(src)
    with pytest.raises(DTypeError, match="src: got f16; wanted u8, as src_q says, or f32"):
        layer(src.astype(np.float16))
    q = QParams(1e-300, 0, "u8")
    codes = np.ones((24, C), np.int8)
    with pytest.raises(ArgumentError, match="src_q: got a scale of 1e-300"):
        matmul(np.ones((7, 24), F), codes, src_q=q, wei_q=QParams(1e299, 0, "s8"))
