"""Layers on oneDNN against the float64 formula."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from pyonednn_q import native
from pyonednn_q.bench.summary import sqnr_db
from pyonednn_q.compose.attr import Attr
from pyonednn_q.compose.post_ops import EltwisePostOp
from pyonednn_q.demo import experiment, fit, layers, quantise
from pyonednn_q.demo.network import Conv, Dense, MaxPool
from pyonednn_q.errors import SaturationError
from pyonednn_q.qparams import QParams
from support import oracle
from support.children import run_child
from support.isa import LIMIT_VARIABLE

IMAGES = 32

Array = npt.NDArray[Any]


def operands(layer: quantise.Int8Layer, src: Array) -> dict[str, Array]:
    arrays = {"src": src, "wei": layer.wei, "bias": layer.layer.bias, "wei_scale": layer.wei_scale}
    if layer.dst_q is not None:
        arrays["dst_scale"] = np.array([layer.dst_q.scale], np.float32)
    return arrays


def int8_sources(models: experiment.Models) -> list[Array]:
    """Return what each INT8 layer reads when the first held-out digits pass through."""
    pixels = models.data.test_images[:IMAGES]
    steps = layers.int8_steps(models.quantised, pixels.shape)
    return [call.src for call in run(steps, pixels)]


def run(steps: tuple[layers.Step, ...], images: Array) -> tuple[layers.Call, ...]:
    calls = layers.bind(steps, images)
    for call in calls:
        call()
    return calls


@pytest.mark.parametrize("index", [0, 1, 3, 4], ids=["conv1", "conv2", "dense1", "dense2"])
def test_fitted_int8_layer_is_the_formula(models: experiment.Models, index: int) -> None:
    src = int8_sources(models)[index]
    layer = models.quantised[index]
    assert isinstance(layer, quantise.Int8Layer)
    prepared = layers.int8_layer(layer, src.shape)
    expected = oracle.run(prepared.problem, prepared.attr, operands(layer, src))
    got = prepared(src)
    # The scales are arbitrary: where a tie lies within float32's rounding, two codes are right.
    # That is rare (2 of 131072 in conv2, none elsewhere), so the rest is equality.
    assert expected.accepts(got).all()
    if layer.dst_q is not None:
        lo, hi = expected.interval()
        assert (lo != hi).sum() <= 8


@pytest.mark.parametrize("relu", [True, False], ids=["u8", "f32"])
def test_dense_layer_with_exact_scales_equals_the_formula(relu: bool) -> None:
    rng = np.random.default_rng(1)
    src = rng.integers(0, 256, (19, 70), np.uint8)
    wei = rng.integers(-64, 65, (70, 21), np.int8)
    bias = rng.integers(-64, 65, 21).astype(np.float32)
    # Powers of two and small integers: every float32 step is exact, ties included.
    wei_q = QParams(2.0 ** -rng.integers(3, 6, 21), 0, "s8", axis=1)
    dst_q = QParams(8.0, 0, "u8") if relu else None
    dense = Dense("dense", np.zeros(wei.shape, np.float32), bias, relu=relu)
    layer = quantise.Int8Layer(dense, wei, QParams(0.25, 0, "u8"), wei_q, dst_q)
    got = layers.int8_layer(layer, src.shape)(src)
    acc = src.astype(np.float64) @ wei.astype(np.float64)
    real = 0.25 * np.asarray(wei_q.scale) * acc + bias
    if relu:
        np.testing.assert_array_equal(got, np.clip(np.rint(real / 8), 0, 255))
        assert {0, 255} <= set(got.ravel())
    else:
        np.testing.assert_array_equal(got, real)
    assert got.dtype == (np.uint8 if relu else np.float32)


def test_conv_layer_with_exact_scales_equals_the_formula() -> None:
    rng = np.random.default_rng(2)
    src = rng.integers(0, 256, (3, 5, 6, 7), np.uint8)
    wei = rng.integers(-64, 65, (9, 5, 3, 3), np.int8)
    bias = rng.integers(-64, 65, 9).astype(np.float32)
    wei_q = QParams(2.0 ** -rng.integers(3, 6, 9), 0, "s8", axis=0)
    conv = Conv("conv", np.zeros(wei.shape, np.float32), bias)
    layer = quantise.Int8Layer(conv, wei, QParams(0.25, 0, "u8"), wei_q, QParams(4.0, 0, "u8"))
    prepared = layers.int8_layer(layer, src.shape)
    expected = oracle.run(prepared.problem, prepared.attr, operands(layer, src))
    assert expected.is_exact
    np.testing.assert_array_equal(prepared(src), expected.dst)


def test_the_u8_store_is_the_relu(models: experiment.Models) -> None:
    sources = int8_sources(models)
    for index in (0, 1, 3):
        layer = models.quantised[index]
        assert isinstance(layer, quantise.Int8Layer)
        plain = layers.int8_layer(layer, sources[index].shape)
        attr = dataclasses.replace(plain.attr, post_ops=(EltwisePostOp("relu"),))
        assert layer.dst_q is not None
        values = {"wei_scale": layer.wei_scale, "dst_scale": layer.dst_q.scale}
        with_relu = native.prepare(
            plain.problem, attr, wei=layer.wei, bias=layer.layer.bias, values=values
        )
        np.testing.assert_array_equal(with_relu(sources[index]), plain(sources[index]))


def test_float_layers_are_the_formula(models: experiment.Models) -> None:
    images = fit.real_images(models.data.test_images[:IMAGES])
    steps = layers.float_steps(models.network, images.shape)
    for step, call, layer in zip(steps, run(steps, images), models.network, strict=True):
        arrays = {"src": call.src}
        if not isinstance(layer, MaxPool):
            arrays |= {"wei": layer.wei, "bias": layer.bias}
        expected = oracle.run(step.prepared.problem, step.prepared.attr, arrays)
        assert expected.accepts(call.dst).all(), step.name


def test_int8_pool_takes_the_largest_code(models: experiment.Models) -> None:
    pixels = models.data.test_images[:IMAGES]
    calls = run(layers.int8_steps(models.quantised, pixels.shape), pixels)
    blocks = calls[2].src.reshape(IMAGES, 64, 4, 2, 4, 2)
    np.testing.assert_array_equal(calls[2].dst, blocks.max(axis=(3, 5)))


@pytest.mark.parametrize("batch", [1, IMAGES])
def test_no_call_copies(models: experiment.Models, batch: int) -> None:
    pixels = models.data.test_images[:batch]
    both = (
        run(layers.float_steps(models.network, pixels.shape), fit.real_images(pixels)),
        run(layers.int8_steps(models.quantised, pixels.shape), pixels),
    )
    for calls in both:
        for before, after in itertools.pairwise(calls):
            assert np.shares_memory(before.dst, after.src)
        assert not any(any(call.prepared.copies.values()) for call in calls)


def test_8_bit_weights_are_refused_without_vnni(models: experiment.Models) -> None:
    images = fit.real_images(models.data.train_images)
    maxima = quantise.measure_ranges(models.network, images)
    layer = quantise.quantise(models.network, maxima, 127)[1]
    assert isinstance(layer, quantise.Int8Layer)
    with pytest.raises(SaturationError):
        run_child(layers.int8_layer, layer, (1, 16, 8, 8), environment={LIMIT_VARIABLE: "AVX2"})
    if native.runtime.isa().has_vnni():
        layers.int8_layer(layer, (1, 16, 8, 8))


def test_codes_and_real_values(findings: experiment.Findings) -> None:
    conv1 = findings.int8[0]
    assert conv1.encode(np.array([0.0, 0.5, 1.0])).tolist() == [0, 8, 16]
    assert conv1.dst_q is not None
    assert conv1.decode(np.array([255], np.uint8)) == conv1.dst_q.scale * 255
    logits = np.array([1.5], np.float32)
    assert findings.int8[-1].decode(logits) is logits
    assert findings.float32[0].encode(logits) is logits


def test_plain_float_layer_has_no_attributes(findings: experiment.Findings) -> None:
    assert findings.float32[-1].prepared.attr == Attr()
    assert sqnr_db(np.ones(3), np.ones(3)) == float("inf")
