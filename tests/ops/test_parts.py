"""Asymmetric weights: exact whatever their zero points, on every kind of operator."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ShapeError
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.steps import Chain, Eltwise, Sum
from pyonednn_q.ops.conv import Conv
from pyonednn_q.ops.dense import MatMul
from pyonednn_q.ops.settings import Settings
from pyonednn_q.ops.weights import Parts, Weights, merged, split
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.ranges import Dynamic
from support.calls.call import Call
from support.oracle_numbers import INTEGER_RANGES, numpy_dtype

F = np.float32
C = 16
SHAPES: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "conv": ((2, 8, 6, 5), (C, 8, 3, 3), {"padding": 1}),
    "conv 1x1": ((2, 20, 4, 5), (C, 20, 1, 1), {}),
    "conv 3-D": ((1, 8, 4, 5, 3), (C, 8, 2, 3, 2), {"padding": 1}),
    "conv groups": ((2, 32, 6, 5), (C, 16, 3, 3), {"groups": 2, "stride": 2}),
    "conv depthwise": ((2, C, 6, 5), (C, 1, 3, 3), {"groups": C, "padding": 1}),
    "deconv": ((2, 8, 5, 4), (C, 8, 2, 2), {"stride": 2}),
    "inner_product": ((5, 24), (C, 24), {}),
    "inner_product 2-D": ((3, 4, 2, 3), (C, 4, 2, 3), {}),
    "matmul": ((7, 24), (24, C), {}),
    "matmul batched": ((3, 5, 24), (3, 24, C), {}),
}
SCALE = np.resize([0.25, 0.5, 1.0], C)
# Ends of both types, for which no part of nine bits is missing.
POINTS = {"u8": np.resize([0, 255, 128, 77], C), "s8": np.resize([-128, 127, 0, -51], C)}


def drawn(shape: str, wei: str, points: Any, src: str = "u8", **more: Any) -> Call:
    rng = np.random.default_rng(5)
    src_dims, wei_dims, window = SHAPES[shape]
    axis = -1 if shape[0] == "m" else 0
    codes = rng.integers(*INTEGER_RANGES[wei], wei_dims, endpoint=True)
    codes.reshape(-1)[:2] = INTEGER_RANGES[wei]
    params = (
        QParams(SCALE, points, wei, axis=axis) if np.ndim(points) else QParams(0.5, points, wei)
    )
    given: dict[str, Any] = {
        "src": rng.integers(0 if src == "u8" else -3, 4, src_dims).astype(numpy_dtype(src)),
        "wei": codes.astype(numpy_dtype(wei)),
        "bias": np.arange(C).astype(F),
        "src_q": QParams(0.5, 2, src),
        "wei_q": params,
        "dst": "f32",
        "window": window,
        **more,
    }
    return Call(shape.partition(" ")[0], **given)


@pytest.mark.parametrize("wei", ["u8", "s8"])
@pytest.mark.parametrize("point", ["each", "least", "one"])
@pytest.mark.parametrize("shape", SHAPES)
def test_asymmetric_weights_are_exact(shape: str, point: str, wei: str) -> None:
    """Any zero point, for the tensor or each channel, beside one of the source and padding."""
    points = {"each": POINTS[wei], "least": INTEGER_RANGES[wei][0], "one": 100}[point]
    call = drawn(shape, wei, points)
    operator = call.operator()
    for _ in range(2):
        call.meaning().check_equal(call.run(operator))
    if operator.weights.parts is not None:
        assert "parts" in " ".join(operator.prepare(call.src.shape).notes)


@pytest.mark.parametrize("shape", SHAPES)
def test_chains_and_stores_mean_what_they_meant(shape: str) -> None:
    dst_q = QParams(16.0, 20, "u8")
    call = drawn(shape, "s8", POINTS["s8"], dst=None, dst_q=dst_q)
    call.meaning().check_equal(call.run())
    before = np.full(call.meaning().dst.shape, 9, np.uint8)
    post = Chain(Sum(16.0, 20), Eltwise("relu"))
    call = call.but(residual=before, post=post)
    call.meaning().check_equal(call.run())


def test_onnx_rounding_of_asymmetric_weights() -> None:
    for shape in ("conv", "matmul"):
        units = np.arange(C, dtype=np.int32)
        dst_q = QParams(7.3, 31, "u8")
        call = drawn(shape, "u8", 3, bias=units, dst=None, dst_q=dst_q, exact_rounding=True)
        call.meaning().check_equal(call.run())


@pytest.mark.parametrize("extent", ["per_tensor", "per_row"])
@pytest.mark.parametrize("shape", ["conv", "deconv", "inner_product 2-D", "matmul"])
def test_float_sources_of_asymmetric_weights(shape: str, extent: Any) -> None:
    if extent == "per_row" and shape in {"conv", "deconv"}:
        return  # they have no rows
    call = drawn(shape, "s8", POINTS["s8"])
    src = call.src.astype(F) * F(85.0)  # 0 to 255: the codes, and the scale 1
    src.reshape(src.shape[0], -1)[:, 0] = 255.0
    if shape == "matmul":
        src[..., 0] = 255.0
    constants = call.but(src=src.astype(np.uint8), src_q=QParams(1.0, 0, "u8"))
    constants.meaning().check_equal(constants.run())
    got = call.but(src=src, src_q=Dynamic("u8", extent)).run()
    constants.meaning().check_equal(got)
    static = call.but(src=src, src_q=QParams(1.0, 0, "u8"))
    constants.meaning().check_equal(static.run())


def test_layouts_and_copies() -> None:
    call = drawn("conv", "s8", POINTS["s8"])
    operator = pickle.loads(pickle.dumps(call.operator()))
    last = np.ascontiguousarray(call.src.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    for src in (call.src, last, np.repeat(call.src, 2, axis=3)[..., ::2]):
        call.meaning().check_equal(operator(src))
    assert operator(last).transpose(0, 2, 3, 1).flags.c_contiguous
    assert operator(call.src).flags.c_contiguous
    assert operator(call.src[:0]).shape == (0, C, 6, 5)


def test_a_source_has_the_channels_of_the_weights() -> None:
    operator = drawn("conv", "s8", POINTS["s8"]).operator()
    for channels in (7, 9, operator.weights.parts.widened):
        with pytest.raises(ShapeError, match=r"src: .*8 input channels"):
            operator(np.zeros((2, channels, 6, 5), np.uint8))
    for dims in ((8,), (), (2, 8), (2, 8, 6), (2, 8, 6, 5, 1)):
        with pytest.raises(ShapeError, match="src"):
            operator(np.zeros(dims, np.uint8))


def test_columns_that_lean_to_one_side_share_a_zero_point() -> None:
    """One zero point for all: the attribute of a matmul takes it, and nothing is repeated."""
    codes = np.random.default_rng(0).integers(-88, 128, (24, C)).astype(np.int8)
    wei_q = QParams(SCALE, np.resize([-100, -60, -90], C), "s8", axis=1)
    call = drawn("matmul", "s8", 0).but(wei=codes, wei_q=wei_q)
    operator = call.operator()
    call.meaning().check_equal(call.run(operator))
    if operator.weights.parts is None:
        assert operator.plan((7, 24)).attr.wei_zero_point is not None
    else:  # the CPU cannot multiply such weights exactly
        assert Settings(QParams(1.0, 0, "u8"), None, "f32").wei_limits() == (-64, 64)


def test_asymmetric_ranges_of_float_weights() -> None:
    rng = np.random.default_rng(3)
    wei, src = rng.uniform(-0.2, 1.0, (C, 8, 3, 3)).astype(F), rng.random((2, 8, 6, 5)).astype(F)
    step = 1.2 / 255
    fq = FakeQuantize(-42 * step, 213 * step, -42 * step, 213 * step)
    layer = Conv.from_float(wei, src_q=(0.0, 1.0), wei_fq=fq)
    assert layer.weights.parts is not None
    difference = np.abs(layer(src) - Conv(wei)(src)).max()
    assert 0 < difference < 72 * (step / 2 + 1 / 510)


@pytest.mark.parametrize("limits", [(-128, 127), (-64, 64)])
def test_parts_add_up(limits: tuple[int, int]) -> None:
    rng = np.random.default_rng(2)
    wei = rng.integers(-255, 256, (5, 9, 2)).astype(np.int16)
    wei[:, :2] = 3  # needs no second part
    wide, repeated = split(wei, 1, limits)
    assert limits[0] <= wide.min() <= wide.max() <= limits[1]
    parts = Parts(1, 1, 9, repeated)
    assert parts.widened == wide.shape[1]
    src = rng.integers(0, 256, (4, 9, 2)).astype(np.uint8)
    fed = parts.of(src)
    assert fed.shape == parts.dims(src.shape)
    wanted = np.einsum("nis,ois->no", src.astype(int), wei.astype(int))
    np.testing.assert_array_equal(np.einsum("nis,ois->no", fed.astype(int), wide), wanted)
    assert all(start >= 2 for start, _ in repeated)


@pytest.mark.parametrize(
    ("groups", "channels", "count"), [(16, 1, 8), (4, 2, 4), (6, 1, 3), (17, 1, 1), (2, 16, 2)]
)
def test_merged_groups_mean_the_same(groups: int, channels: int, count: int) -> None:
    wei = np.random.default_rng(1).integers(-9, 9, (groups * 3, channels, 2)).astype(np.int16)
    wide, fewer = merged(wei, groups, count), groups // count
    assert wide.shape == (groups * 3, count * channels, 2)
    src = np.random.default_rng(2).integers(0, 9, (5, groups * channels, 2))

    def product(weights: Any, count: int) -> Any:
        own = weights.reshape(count, -1, *weights.shape[1:])
        return np.einsum("ngis,gois->ngo", src.reshape(5, count, -1, 2), own).reshape(5, -1)

    np.testing.assert_array_equal(product(wide, fewer), product(wei, groups))


@pytest.mark.parametrize(
    ("groups", "channels", "left", "each"),
    [(16, 1, 2, 8), (4, 2, 1, 8), (6, 1, 1, 6), (17, 1, 17, 1), (2, 16, 2, 16)],
)
def test_groups_of_a_few_channels_are_merged(
    groups: int, channels: int, left: int, each: int
) -> None:
    wei = np.full((groups * 3, channels, 2), -128, np.int8)
    weights = Weights.of(wei, QParams(1.0, 90, "s8"), 0, is_int8=True, groups=groups)
    assert weights.parts is not None
    assert (weights.parts.groups, weights.parts.channels) == (left, each)


def test_weights_that_fit_are_not_repeated() -> None:
    codes = np.zeros((24, C), np.int8)
    assert (
        MatMul(codes, src_q=QParams(1.0, 0, "u8"), wei_q=QParams(1.0, 5, "s8")).weights.parts
        is None
    )
