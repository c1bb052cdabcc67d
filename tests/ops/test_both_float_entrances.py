"""Whatever FakeQuantize of a source `compose_layer` takes, `from_float` takes, to equal results."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.acc.pairs import SAFE
from pyonednn_q.errors import ArgumentError, SaturationError, ShapeError
from pyonednn_q.native import runtime
from pyonednn_q.primitive import ConvProblem, DeconvProblem, InnerProductProblem, MatMulProblem
from support.oracle_convolution import convolve, deconvolve

Array = np.ndarray[Any, Any]
F = np.float32
FQ = pq.FakeQuantize

SOURCES = {
    "255 levels around 0": FQ(-1, 1, -1, 1, 255),
    "255 levels from 0": FQ(0, 2, 0, 2, 255),
    "16 levels": FQ(0, 1.5, 0, 1.5, 16),
    "a fraction": FQ(-1.0, 1.5503, -1.0, 1.5503),
    "the wide half range": FQ(-1.28504, 1.26496, -1.28504, 1.26496),  # 0 at 128.504
    "the narrow half range": FQ(-0.64, 0.63, -0.64, 0.63, 128),
    "another range out": FQ(-1, 1, -2, 2, 255),
    "no 0": FQ(0.25, 2, 0.25, 2),
    "QParams": FQ(-1, 1.55, -1, 1.55),
}
KINDS: dict[str, tuple[Any, Any, Any, Any, dict[str, Any]]] = {
    "conv": (pq.Conv, ConvProblem, (2, 8, 7, 6), (16, 8, 3, 3), {}),
    "conv padded": (pq.Conv, ConvProblem, (2, 8, 7, 6), (16, 8, 3, 3), {"padding": (0, 1, 1, 0)}),
    "conv of groups": (pq.Conv, ConvProblem, (1, 32, 6, 6), (32, 16, 3, 3), {"groups": 2}),
    "deconv": (pq.Deconv, DeconvProblem, (1, 16, 5, 4), (16, 16, 2, 2), {"stride": 2}),
    "inner product": (pq.InnerProduct, InnerProductProblem, (5, 24), (16, 24), {}),
    "matmul": (pq.MatMul, MatMulProblem, (5, 24), (24, 16), {}),
}


def problem_of(kind: str, dtype: str) -> Any:
    _, problem, src, wei, window = KINDS[kind]
    sizes = wei[0] if problem is InnerProductProblem else wei
    return problem.of(src, sizes, src=dtype, dst="f32", **window)


def drawn(kind: str) -> tuple[Array, Array, Array]:
    operator, _, src, wei, _ = KINDS[kind]
    rng = np.random.default_rng(6)
    channels = wei[-1] if operator is pq.MatMul else wei[0]
    made = (rng.uniform(-1.5, 2, src), rng.normal(0, 1, wei), rng.normal(0, 1, channels))
    return made[0].astype(F), made[1].astype(F), made[2].astype(F)


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("kind", KINDS)
def test_both_entrances_compute_the_same(kind: str, name: str) -> None:
    src, wei, bias = drawn(kind)
    operator, fq, window = KINDS[kind][0], SOURCES[name], KINDS[kind][-1]
    layer = pq.compose_layer(problem_of(kind, "u8"), wei, bias, src_fq=fq, wei_levels=129)
    wanted = pq.prepare_layer(layer)(src)
    made = operator.from_float(wei, bias, src_q=fq, wei_levels=129, self_check=True, **window)
    np.testing.assert_array_equal(made(src), wanted)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(made))(src), wanted)


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("kind", KINDS)
def test_signed_codes_mean_the_same(kind: str, name: str) -> None:
    """Codes that are 128 (or half the levels) less stand for the same values."""
    src, wei, bias = drawn(kind)
    operator, fq, window = KINDS[kind][0], SOURCES[name], KINDS[kind][-1]
    made = operator.from_float(
        wei, bias, src_q=fq, src_dtype="s8", wei_levels=129, self_check=True, **window
    )
    assert made(src).dtype == F


@pytest.mark.parametrize("dtype", ["u8", "s8"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fq", [
    FQ(-127 / 64, 127 / 64, -127 / 64, 127 / 64, 255),
    FQ(-128.5 / 64, 126.5 / 64, -128.5 / 64, 126.5 / 64),
    FQ(-128.5 / 64, 126.5 / 64, -128.5 / 32, 126.5 / 32),
    FQ(1 / 64, 1, 1 / 64, 1, 64),
])  # fmt: skip
def test_results_are_those_of_the_definition(fq: FQ, kind: str, dtype: str) -> None:
    """Steps of powers of two: everything is exact in float32, and no value is next to a tie."""
    operator, _, dims, wei_dims, window = KINDS[kind]
    rng, step = np.random.default_rng(2), 1 / 64
    levels = rng.integers(0, fq.levels, dims) + rng.uniform(-0.25, 0.25, dims)
    src = (levels * step + fq.input_low.least).astype(F)
    wei = rng.integers(-64, 65, wei_dims) / 64
    made = operator.from_float(
        wei.astype(F), src_q=fq, src_dtype=dtype, wei_fq=FQ(-1, 1, -1, 1, 129), **window
    )
    real, problem = fq(src), problem_of(kind, "u8")
    if kind == "matmul":
        wanted = real @ wei
    elif kind == "inner product":
        wanted = real @ wei.T
    else:
        slide = deconvolve if kind == "deconv" else convolve
        wanted = slide(real, wei.reshape(problem.wei.dims), problem)
    np.testing.assert_array_equal(made(src), wanted.astype(F))
    if len(dims) == 4:
        last = np.ascontiguousarray(src.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
        np.testing.assert_array_equal(made(last), wanted.astype(F))


WEIGHTS = {
    "asymmetric": FQ(-1.25, 0.75, -1.25, 0.75, 17),
    "halfway": FQ(-128.5 / 64, 126.5 / 64, -128.5 / 64, 126.5 / 64),
    "another range out": FQ(-1, 1, -1, 3, 129),
}


@pytest.mark.parametrize("name", [*WEIGHTS, "by channel"])
@pytest.mark.parametrize("kind", KINDS)
def test_both_take_asymmetric_weights_and_compute_the_definition(kind: str, name: str) -> None:
    """Steps of powers of two: sums are exact, and the entrances agree bit by bit."""
    operator, _, dims, wei_dims, window = KINDS[kind]
    rng, low = (
        np.random.default_rng(3),
        -(np.arange(wei_dims[-1 if kind == "matmul" else 0]) % 17) / 8,
    )
    fq = WEIGHTS[name] if name in WEIGHTS else FQ(low, low + 2.0, low, low + 2.0, 17)
    src = rng.integers(-40, 41, dims) / 32
    wei = rng.uniform(-0.9, 0.7, wei_dims).astype(F)
    src_fq = FQ(-2, 127 / 64, -2, 127 / 64)
    layer = pq.compose_layer(problem_of(kind, "u8"), wei, src_fq=src_fq, wei_fq=fq)
    made = operator.from_float(wei, src_q=src_fq, wei_fq=fq, self_check=True, **window)
    real, problem = fq(wei, axis=-1 if kind == "matmul" else 0), problem_of(kind, "u8")
    if kind == "matmul":
        wanted = src @ real
    elif kind == "inner product":
        wanted = src @ real.T
    else:
        slide = deconvolve if kind == "deconv" else convolve
        wanted = slide(src, real.reshape(problem.wei.dims), problem)

    def composed(values: Array) -> Array:
        return pq.prepare_layer(layer)(values)

    for codes, call in ((made.weights.values, made), (layer.wei, composed)):
        if np.abs(codes).max() > SAFE and not runtime.isa().has_vnni():
            with pytest.raises(SaturationError, match="keep weights in"):
                call(src.astype(F))
        else:
            np.testing.assert_array_equal(call(src.astype(F)), wanted.astype(F))


@pytest.mark.parametrize("kind", KINDS)
def test_both_take_the_wide_half_range(kind: str) -> None:
    """Its zero is 64/127 above a code: of codes twice as fine 1/127 is lost, and reported."""
    src, wei, bias = drawn(kind)
    operator, _, _, _, window = KINDS[kind]
    axis = -1 if kind == "matmul" else 0
    top = np.abs(np.moveaxis(wei, axis, 0).reshape(wei.shape[axis], -1)).max(axis=1)
    fq = pq.quantize.fq_from_range(-top, top, half_range=True)
    src_fq = FQ(-1.28, 1.27, -1.28, 1.27)
    layer = pq.compose_layer(problem_of(kind, "u8"), wei, bias, src_fq=src_fq, wei_fq=fq)
    made = operator.from_float(wei, bias, src_q=src_fq, wei_fq=fq, saturation="allow", **window)
    np.testing.assert_array_equal(made(src), pq.prepare_layer(layer, saturation="allow")(src))
    codes, real = layer.wei.astype(np.float64), fq(wei, axis=axis)
    scale = fq.scale_out.spread(len(top)) / 2
    codes = codes.T if kind == "inner product" else codes.reshape(wei.shape)  # it runs as a matmul
    rows = np.moveaxis(codes, axis, 0).reshape(len(top), -1)
    wanted = np.moveaxis(real, axis, 0).reshape(len(top), -1)
    assert (np.abs(rows * scale[:, None] - wanted) <= scale[:, None] * (1 / 127 + 1e-4)).all()
    assert layer.off_by.greatest > 0.0
    assert any("zero points rounded" in note for note in layer.notes)


def test_asymmetric_weights_of_a_configuration_run() -> None:
    """As exported they have 0 between two levels; as trained they have half as many, and it."""
    section = {"algorithm": "quantization", "weights": {"mode": "asymmetric"}}
    (layer,) = pq.quantize.read_config(section).layers(["conv"]).values()
    assert layer.weights is not None
    src, wei, bias = drawn("conv")
    state = layer.weights.estimator(axis=0)
    state.update(wei)
    with pytest.raises(ArgumentError, match=r"^wei_fq: got a range whose 0 is at code -?\d+\.\d+"):
        pq.Conv.from_float(wei, bias, src_q=(-1.5, 2.0), wei_fq=layer.weights.fake_quantize(state))
    fq = layer.weights.fake_quantize(state, exported=False)
    assert fq.levels == 128
    made = pq.Conv.from_float(wei, bias, src_q=(-1.5, 2.0), wei_fq=fq)
    composed = pq.compose_layer(
        problem_of("conv", "u8"), wei, bias, src_fq=FQ(-1, 1.55, -1, 1.55), wei_fq=fq
    )
    assert np.ptp(composed.wei.reshape(len(wei), -1), axis=1).max() <= 127
    exact = pq.Conv(fq(wei, axis=0).astype(F), bias)(src)
    assert np.abs(made(src) - exact).max() < 72 * np.abs(wei).max() * (2.0 + 1.5) / 255


def test_codes_are_taken_beside_floats() -> None:
    fq = FQ(-1, 1, -1, 1, 255)
    wei = np.full((4, 2), 0.5, F)
    made = pq.MatMul.from_float(wei, src_q=fq, wei_levels=129)
    codes = np.array([[0, 127, 254, 127]], np.uint8)
    np.testing.assert_array_equal(made(codes), made(np.array([[-1, 0, 1, 0]], F)))
    assert not made(np.empty((0, 4), F)).size
    with pytest.raises(ArgumentError, match=r"^src: got NaN"):
        made(np.array([[np.nan, 0, 0, 0]], F))


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "ranges of channels": (
        {"src_q": FQ([-1.0, -2.0], [1.0, 2.0], [-1.0, -2.0], [1.0, 2.0], 255)},
        "src_q",
    ),
    "too many levels": ({"src_q": FQ(-1, 1, -1, 1, 257)}, "src_q"),
    "a reversed range": ({"src_q": FQ(-1, 1, 1, -1, 255)}, "src_q"),
    "a threshold": ({"src_q": FQ(1, 1, 0, 1, 2)}, "src_q"),
    "every bit": ({"src_q": SOURCES["a fraction"], "policy": "bitwise"}, "src_q"),
    "rounding first": ({"src_q": SOURCES["a fraction"], "exact_rounding": True}, "src_q"),
    "a dialect": (
        {"src_q": SOURCES["a fraction"], "requantize": "tflite_2step", "dst_q": (0, 1)},
        "src_q",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_is_refused_by_name(what: str) -> None:
    options, name = WRONG[what]
    with pytest.raises(ArgumentError, match=rf"^{name}: got "):
        pq.Conv.from_float(np.ones((2, 2, 1, 1), F), **options)


def test_an_attribute_cannot_hold_a_fraction() -> None:
    made = pq.Conv.from_float(
        np.ones((2, 2, 1, 1), F), src_q=SOURCES["a fraction"], zero_point="attribute"
    )
    with pytest.raises(ArgumentError, match=r"^zero_point: got 'attribute' for .*'map' take any"):
        made(np.ones((1, 2, 3, 3), F))


def test_differences_are_explained_for_qparams_alone() -> None:
    made = pq.MatMul.from_float(
        np.ones((2, 2), F), src_q=SOURCES["a fraction"], dst_q=(0, 1), wei_levels=129
    )
    with pytest.raises(ArgumentError, match=r"^operator: got one with levels that are no QParams"):
        pq.explain_difference(made, np.ones((1, 2), np.uint8), np.ones((1, 2), np.uint8))
    with pytest.raises(ShapeError):
        made(np.ones((1, 3), F))
