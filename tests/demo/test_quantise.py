"""From ranges to integers: limits, rounding, the folded scale."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pyonednn_q.demo import experiment, fit, quantise
from pyonednn_q.demo.network import Conv, Dense, MaxPool


def int8_layers(models: experiment.Models, qmax: int) -> list[quantise.Int8Layer]:
    maxima = quantise.measure_ranges(models.network, fit.real_images(models.data.train_images))
    layers = quantise.quantise(models.network, maxima, qmax)
    return [layer for layer in layers if isinstance(layer, quantise.Int8Layer)]


def test_without_vnni_no_pair_of_products_exceeds_16_bits() -> None:
    largest = 255 * 2 * quantise.wei_qmax(has_vnni=False)
    assert largest <= np.iinfo(np.int16).max
    assert 255 * 2 * (quantise.wei_qmax(has_vnni=False) + 1) > np.iinfo(np.int16).max
    assert quantise.wei_qmax(has_vnni=True) == np.iinfo(np.int8).max


@pytest.mark.parametrize("qmax", [64, 127])
def test_every_channel_uses_its_whole_range(models: experiment.Models, qmax: int) -> None:
    for layer in int8_layers(models, qmax):
        axis = layer.wei_q.axis
        others = tuple(i for i in range(layer.wei.ndim) if i != axis)
        np.testing.assert_array_equal(np.abs(layer.wei.astype(int)).max(axis=others), qmax)


def test_weights_are_the_nearest_integers(models: experiment.Models) -> None:
    for layer in int8_layers(models, 64):
        error = np.abs(layer.wei_q.dequantize(layer.wei) - layer.layer.wei)
        shape = [1] * layer.wei.ndim
        shape[layer.wei_q.axis or 0] = -1
        half_step = np.reshape(layer.wei_q.scale, shape) / 2
        # Dequantising rounds once more, in the last of 53 bits.
        assert (error <= half_step * (1 + 2.0**-50)).all()


def test_folded_scale_is_rounded_once(models: experiment.Models) -> None:
    # 127: with 64, a power of two, the weight scales happen to be exact in float32.
    for layer in int8_layers(models, 127):
        for folded, scale in zip(layer.wei_scale, np.ravel(layer.wei_q.scale), strict=True):
            assert folded == np.float32(float(layer.src_q.scale) * float(scale))
        assert layer.wei_scale.dtype == np.float32


def test_each_layer_reads_what_the_one_before_it_writes(models: experiment.Models) -> None:
    layers = int8_layers(models, 64)
    assert layers[0].src_q == quantise.PIXELS
    for before, after in itertools.pairwise(layers):
        assert before.dst_q == after.src_q
        assert before.dst_q is not None
        assert before.dst_q.scale == np.float32(before.dst_q.scale)
    assert layers[-1].dst_q is None


def test_pixels_are_exact_in_u8(models: experiment.Models) -> None:
    pixels = models.data.train_images
    np.testing.assert_array_equal(quantise.PIXELS.quantize(fit.real_images(pixels)), pixels)


def test_the_largest_training_activation_gets_code_255(models: experiment.Models) -> None:
    images = fit.real_images(models.data.train_images)
    maxima = quantise.measure_ranges(models.network, images)
    for layer, largest in zip(models.quantised, maxima, strict=True):
        if isinstance(layer, quantise.Int8Layer) and layer.dst_q is not None:
            assert layer.dst_q.quantize(largest) == 255


def test_a_channel_of_zeros_stays_zero() -> None:
    wei = np.zeros((3, 2), np.float32)
    wei[:, 1] = (1, -2, 0.5)
    dense = Dense("dense", wei, np.zeros(2, np.float32), relu=False)
    wei_q = quantise.wei_qparams(dense, 64)
    np.testing.assert_array_equal(wei_q.quantize(wei), [[0, 32], [0, -64], [0, 16]])


def test_scales_run_along_the_output_channels() -> None:
    wei = np.array([1.0, 2.0], np.float32).reshape(2, 1, 1, 1) * np.ones((2, 3, 3, 3), np.float32)
    conv = Conv("conv", wei, np.zeros(2, np.float32))
    wei_q = quantise.wei_qparams(conv, 64)
    np.testing.assert_array_equal(np.asarray(wei_q.scale), [1 / 64, 2 / 64])
    assert wei_q.axis == 0


def test_pools_pass_through() -> None:
    pool = MaxPool("pool")
    assert quantise.quantise((pool,), (1.0,), 64) == (pool,)
