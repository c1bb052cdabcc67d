"""The data and the fit: the same every time, nothing held out is looked at."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from pyonednn_q.demo import digits, experiment, extra, fit, network, quantise
from pyonednn_q.errors import Error


def numbers(layers: network.Network) -> list[bytes]:
    return [
        array.tobytes()
        for layer in layers
        if not isinstance(layer, network.MaxPool)
        for array in (layer.wei, layer.bias)
    ]


def test_every_fourth_digit_is_held_out(models: experiment.Models) -> None:
    data = models.data
    assert data.train_images.shape == (1348, 1, 8, 8)
    assert data.test_images.shape == (449, 1, 8, 8)
    assert set(data.test_labels) == set(range(10))
    assert data.train_images.dtype == np.uint8
    assert data.train_images.max() == digits.PIXEL_MAX


def test_two_fits_are_equal_bit_for_bit(models: experiment.Models) -> None:
    assert numbers(fit.fit(models.data)) == numbers(models.network)


def test_held_out_digits_change_neither_weights_nor_ranges(models: experiment.Models) -> None:
    data = models.data
    blank = digits.Digits(
        data.train_images,
        data.train_labels,
        np.zeros_like(data.test_images),
        np.zeros_like(data.test_labels),
    )
    again = fit.fit(blank)
    maxima = quantise.measure_ranges(again, fit.real_images(blank.train_images))
    quantised = quantise.quantise(again, maxima, models.wei_qmax)
    assert numbers(again) == numbers(models.network)
    assert scales(quantised) == scales(models.quantised)


def scales(layers: quantise.Int8Network) -> list[object]:
    return [layer.dst_q for layer in layers if isinstance(layer, quantise.Int8Layer)]


def test_the_fit_ticks_as_often_as_announced(models: experiment.Models) -> None:
    ticks: list[None] = []
    fit.fit(models.data, lambda: ticks.append(None))
    assert len(ticks) == fit.STEPS
    assert len(models.network) == fit.LAYERS


def test_filters_are_orthogonal_pairs_of_both_signs(models: experiment.Models) -> None:
    conv = fit.fit_conv("conv", fit.real_images(models.data.train_images), 16)
    half = conv.wei[:8].reshape(8, 9).astype(np.float64)
    np.testing.assert_array_equal(conv.wei[8:], -conv.wei[:8])
    np.testing.assert_array_equal(conv.bias[8:], -conv.bias[:8])
    gram = half @ half.T
    off_diagonal = gram - np.diag(np.diag(gram))
    # Stored in float32: entries below 2 with 9 terms each leave errors far below 1e-5.
    assert np.abs(off_diagonal).max() < 1e-5


def test_float_pass_computes_a_convolution() -> None:
    src = np.arange(2 * 3 * 4 * 4, dtype=np.float32).reshape(2, 3, 4, 4) % 7 - 3
    wei = np.arange(5 * 3 * 9, dtype=np.float32).reshape(5, 3, 3, 3) % 5 - 2
    bias = np.arange(5, dtype=np.float32)
    got = network.forward(network.Conv("conv", wei, bias), src)
    padded = np.pad(src, ((0, 0), (0, 0), (1, 1), (1, 1)))
    for n, oc, h, w in np.ndindex(2, 5, 4, 4):
        window = padded[n, :, h : h + 3, w : w + 3]
        assert got[n, oc, h, w] == max((window * wei[oc]).sum() + bias[oc], 0)


def test_flattening_channels_last_memory_copies_nothing() -> None:
    physical = np.arange(2 * 4 * 4 * 3).reshape(2, 4, 4, 3)
    images = physical.transpose(0, 3, 1, 2)
    assert np.shares_memory(network.flatten(images), physical)
    np.testing.assert_array_equal(network.flatten(images), physical.reshape(2, -1))


def test_without_scikit_learn_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(
        extra.MissingExtraError, match=r"pip install 'pyonednn_q\[demo\]'"
    ) as caught:
        digits.load()
    assert isinstance(caught.value, Error)
