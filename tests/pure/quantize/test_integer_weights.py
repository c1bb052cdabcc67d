"""Integer weights, corrections and diagnostics, by their definitions on data drawn here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize import (
    bias_codes,
    channel_moments,
    corrected_bias,
    equalized,
    folded_batch_norm,
    integer_weights,
    max_abs_range,
    pack4,
    quality,
    quality_table,
    searched_rounding,
    smoothed,
    unpack4,
    weight_codes,
)

RNG = np.random.default_rng(23)
WEI = RNG.laplace(size=(8, 6, 3, 3)) * np.logspace(-2, 1, 8)[:, None, None, None]
WEI[5] = 0.0


@pytest.mark.parametrize("bits", [2, 3, 4, 8])
@pytest.mark.parametrize("narrow", [False, True])
def test_codes_are_nearest_in_every_channel(bits: int, narrow: bool) -> None:
    found = integer_weights(WEI, bits, narrow=narrow)
    qmax = 2 ** (bits - 1) - 1
    for channel, row in enumerate(WEI):
        top = np.abs(row).max()
        scale = top / qmax if top else 1.0
        codes = np.clip(np.rint(row / scale), -qmax - (not narrow), qmax)
        np.testing.assert_array_equal(found.codes[channel], codes)
        assert found.scale[channel] == scale
    assert (np.abs(found.dequantize() - WEI) <= found.scale[:, None, None, None] * 0.5000001).all()
    assert found.qparams == QParams(found.scale, 0, "s8", axis=0)


def test_channels_are_those_of_a_fake_quantize() -> None:
    rows = WEI.reshape(8, -1)[[0, 1, 2, 3, 4, 6, 7]]
    fq = max_abs_range(rows.astype(np.float32))
    found = integer_weights(rows.astype(np.float32))
    np.testing.assert_array_equal(found.codes, weight_codes(rows.astype(np.float32), fq).codes)


def test_scales_of_tensors_and_of_groups() -> None:
    whole = integer_weights(WEI, granularity="per_tensor")
    assert whole.scale == np.abs(WEI).max() / 127
    assert whole.qparams.axis is None
    groups = integer_weights(WEI, 4, granularity="per_group", group=9)
    assert groups.scale.shape == (8, 6)
    tops = np.abs(WEI).max(axis=(2, 3))
    np.testing.assert_array_equal(groups.scale, np.where(tops > 0, tops / 7, 1.0))
    error = np.abs(groups.dequantize() - WEI)
    assert (error <= groups.scale[:, :, None, None] * 0.5000001).all()
    fewer = integer_weights(WEI, 4)
    assert np.square(error).sum() < np.square(fewer.dequantize() - WEI).sum()
    with pytest.raises(ArgumentError, match=r"^qparams: got scales of groups"):
        _ = groups.qparams
    with pytest.raises(ShapeError, match=r"^group: got 7; wanted a divisor of 54"):
        integer_weights(WEI, granularity="per_group", group=7)


def test_the_channel_axis_of_a_matmul_is_the_last() -> None:
    first = integer_weights(WEI.reshape(8, -1))
    last = integer_weights(WEI.reshape(8, -1).T, axis=-1)
    np.testing.assert_array_equal(last.codes, first.codes.T)
    np.testing.assert_array_equal(last.scale, first.scale)
    np.testing.assert_array_equal(last.dequantize(), first.dequantize().T)


def test_half_range_uses_half_of_the_codes() -> None:
    found = integer_weights(WEI, half_range=True, narrow=False)
    assert found.codes.min() >= -64
    assert found.codes.max() == 63
    assert np.abs(integer_weights(WEI, half_range=True).codes).max() == 63


def test_rules_of_tpu_mlir() -> None:
    found = integer_weights([[1e-9, 0.0], [2.5, 127.0]], rounding="away", least_scale=1e-5)
    assert found.scale.tolist() == [1e-5, 1.0]
    assert found.codes.tolist() == [[0, 0], [3, 127]]
    assert integer_weights([[2.5, 127.0]]).codes.tolist() == [[2, 127]]
    wei = integer_weights(RNG.normal(size=(4, 10)))
    src_q, bias = QParams(0.02, 30, "u8"), RNG.normal(size=4)
    exact = bias / (0.02 * wei.scale) - 30 * wei.codes.sum(axis=1, dtype=int)
    away = np.sign(exact) * np.floor(np.abs(exact) + 0.5)
    np.testing.assert_array_equal(bias_codes(wei, bias, src_q, compensate=True), away)
    np.testing.assert_array_equal(bias_codes(wei, bias, src_q), np.rint(bias / (0.02 * wei.scale)))


def test_the_least_squared_error_beats_the_largest_magnitude_at_few_bits() -> None:
    wei = RNG.laplace(size=(4, 4000))
    lost = [
        np.square(integer_weights(wei, 4, method=m).dequantize() - wei).sum()
        for m in ("mse", "max")
    ]
    assert lost[0] < 0.5 * lost[1]


@settings(max_examples=100, deadline=None)
@given(codes=st.lists(st.integers(-8, 7), max_size=33), unsigned=st.booleans())
def test_packing_four_bits_is_undone(codes: list[int], unsigned: bool) -> None:
    values = np.array(codes, np.int8) + 8 * unsigned
    packed = pack4(values)
    assert packed.nbytes == (len(codes) + 1) // 2
    np.testing.assert_array_equal(unpack4(packed, (len(codes),), signed=not unsigned), values)


def test_packing_puts_the_first_code_low() -> None:
    assert pack4([1, 2]).tolist() == [0x21]
    ml_dtypes = pytest.importorskip("ml_dtypes")
    onnx = pytest.importorskip("onnx")
    codes = RNG.integers(-8, 8, 20)
    values = codes.astype(ml_dtypes.int4)
    tensor = onnx.numpy_helper.from_array(values)
    assert bytes(tensor.raw_data) == pack4(codes).tobytes()


SRC = np.maximum(RNG.normal(size=(500, 54)) * np.logspace(-1, 1, 54), 0.0)


def test_a_corrected_bias_keeps_the_mean() -> None:
    wei, bias = RNG.normal(size=(8, 54)), RNG.normal(size=8)
    coarse = integer_weights(wei, 3).dequantize()
    after = corrected_bias(wei, bias, coarse, SRC.mean(axis=0))
    wanted = (SRC @ wei.T + bias).mean(axis=0)
    np.testing.assert_allclose((SRC @ coarse.T + after).mean(axis=0), wanted, atol=1e-9)
    assert np.abs((SRC @ coarse.T + bias).mean(axis=0) - wanted).max() > 0.1


def test_a_corrected_bias_of_a_convolution_takes_means_of_channels() -> None:
    coarse = integer_weights(WEI, 3).dequantize()
    mean = RNG.normal(size=(6, 1, 1))
    wanted = 1.0 + ((WEI - coarse) * mean).sum(axis=(1, 2, 3))
    np.testing.assert_allclose(corrected_bias(WEI, np.ones(8), coarse, mean), wanted, rtol=1e-12)


def test_equalized_layers_compute_the_same_and_have_like_ranges() -> None:
    first, bias = RNG.normal(size=(16, 54)) * np.logspace(-2, 2, 16)[:, None], RNG.normal(size=16)
    first[3] = 0.0
    second = RNG.normal(size=(5, 16))
    left, shift, right = equalized(first, bias, second)
    before = np.maximum(SRC @ first.T + bias, 0.0) @ second.T
    after = np.maximum(SRC @ left.T + shift, 0.0) @ right.T
    np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-9)
    tops, reads = np.abs(left).max(axis=1), np.abs(right).max(axis=0)
    alive = np.arange(16) != 3
    np.testing.assert_allclose(tops[alive], reads[alive], rtol=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_smoothing_moves_ranges_from_source_to_weights(alpha: float) -> None:
    wei = RNG.normal(size=(8, 54))
    divisor, smooth = smoothed(np.abs(SRC).max(axis=0), wei, alpha)
    np.testing.assert_allclose((SRC / divisor) @ smooth.T, SRC @ wei.T, rtol=1e-9, atol=1e-9)
    if alpha == 1.0:
        np.testing.assert_allclose(np.abs(SRC / divisor).max(axis=0), 1.0, rtol=1e-12)
    if alpha == 0.0:
        np.testing.assert_allclose(np.abs(smooth).max(axis=0), 1.0, rtol=1e-12)


@pytest.mark.parametrize("bits", [3, 4, 8])
def test_searched_rounding_never_loses_more(bits: int) -> None:
    wei = RNG.normal(size=(8, 54))
    nearest = integer_weights(wei, bits)
    qmax = 2 ** (bits - 1) - 1
    codes = searched_rounding(SRC, wei, nearest.scale, qmin=-qmax, qmax=qmax)
    ratio = wei / nearest.scale[:, None]
    assert (
        (codes == np.floor(ratio)) | (codes == np.ceil(ratio)) | (codes == np.rint(ratio))
    ).all()

    def lost(values: Any) -> Any:
        return np.square(SRC @ (values * nearest.scale[:, None] - wei).T).sum(axis=0)

    assert (lost(codes) <= lost(nearest.codes) * (1 + 1e-9)).all()
    assert lost(codes).sum() < lost(nearest.codes).sum()


def test_searched_rounding_leaves_no_flip_that_would_help() -> None:
    wei, src = RNG.normal(size=(3, 6)), RNG.normal(size=(40, 6))
    codes = searched_rounding(src, wei, 0.5, sweeps=50).astype(float)

    def lost(row: int, values: Any) -> float:
        return float(np.square(src @ (values * 0.5 - wei[row])).sum())

    for row in range(3):
        for at in range(6):
            flipped = codes[row].copy()
            ratio = wei[row, at] / 0.5
            flipped[at] = np.floor(ratio) if codes[row, at] == np.ceil(ratio) else np.ceil(ratio)
            assert lost(row, flipped) >= lost(row, codes[row]) - 1e-12


def test_last_bits_of_scales_do_not_decide_over_searched_codes() -> None:
    wei = RNG.normal(size=(8, 54))
    scale = integer_weights(wei, 4).scale
    codes = searched_rounding(SRC, wei, scale, qmin=-7, qmax=7)
    for bit in (-(2.0**-52), 2.0**-52):
        near = searched_rounding(SRC, wei, scale * (1 + bit), qmin=-7, qmax=7)
        np.testing.assert_array_equal(near, codes)


def test_a_folded_batch_norm_computes_both() -> None:
    wei, bias = RNG.normal(size=(8, 54)), RNG.normal(size=8)
    mean, variance = RNG.normal(size=8), RNG.uniform(0.1, 2, 8)
    gamma, beta = RNG.normal(size=8), RNG.normal(size=8)
    folded, shift = folded_batch_norm(wei, bias, mean, variance, gamma, beta)
    wanted = (SRC @ wei.T + bias - mean) / np.sqrt(variance + 1e-5) * gamma + beta
    np.testing.assert_allclose(SRC @ folded.T + shift, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("parts", [1, 3, 7])
def test_statistics_of_sample_batches_normalise_them(parts: int) -> None:
    wei, bias = RNG.normal(size=(8, 54)), RNG.normal(size=8)
    results = SRC @ wei.T + bias
    mean, variance = channel_moments(np.array_split(results, parts))
    np.testing.assert_allclose(mean, results.mean(axis=0), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(variance, results.var(axis=0), rtol=1e-12)
    folded, shift = folded_batch_norm(wei, bias, mean, variance, np.ones(8), np.zeros(8), 0.0)
    after = SRC @ folded.T + shift
    np.testing.assert_allclose(after.mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(after.var(axis=0), 1.0, rtol=1e-9)


def test_moments_of_channels_far_from_zero_and_of_images() -> None:
    images = RNG.normal(size=(9, 4, 5, 6)) + 1e8  # E[x^2] - E[x]^2 would lose all of it
    mean, variance = channel_moments(iter(np.array_split(images, 4)))
    exact = (images - 1e8).transpose(1, 0, 2, 3).reshape(4, -1)
    np.testing.assert_allclose(mean - 1e8, exact.mean(axis=1), atol=1e-7)
    np.testing.assert_allclose(variance, exact.var(axis=1), rtol=1e-7)
    near = images - 1e8
    first = channel_moments((near[:3], near[3:6], near[6:]), samples=4)
    np.testing.assert_allclose(first, channel_moments([near[:6]]), rtol=1e-9)
    last = channel_moments([np.moveaxis(near, 1, -1)], -1)
    np.testing.assert_allclose(last, channel_moments([near]), rtol=1e-12)


def test_moments_that_are_none() -> None:
    cases: list[tuple[Any, str]] = [
        ([], "^batches: got none"),
        (7, "^batches: got 7, which raises TypeError; wanted an iterable"),
        ([[[np.inf]]], "^batches: got values that are not finite"),
        ([[1.0]], r"^batches: got shape \(1,\)"),
        ([np.ones((2, 3)), np.ones((2, 4))], "^batches: got 4 channels; wanted 3, as before"),
    ]
    for batches, refused in cases:
        with pytest.raises(ArgumentError, match=refused):
            channel_moments(batches)


def test_quality_by_its_formulas() -> None:
    x = RNG.normal(size=(100, 3))
    q = QParams([0.01, 0.02, 0.04], 0, "s8", axis=1)
    y = q.dequantize(q.quantize(x))
    found = quality(x, q=q)
    assert found == quality(x, y, q=q)
    assert found.sqnr == pytest.approx(10 * np.log10((x**2).sum() / ((x - y) ** 2).sum()))
    assert found.cosine == pytest.approx((x * y).sum() / np.sqrt((x**2).sum() * (y**2).sum()))
    cut = (np.abs(x / [0.01, 0.02, 0.04]) > 127.5) & (x > 0) | (x / [0.01, 0.02, 0.04] < -128.5)
    assert found.clipped == cut.mean() > 0.0
    assert found.spread == 4.0
    assert quality(x, x).sqnr == np.inf
    assert "inf" in quality_table({"same": quality(x, x), "codes": found})


@pytest.mark.parametrize("axis", [0, 2, -3])
def test_quality_wants_the_channels_that_were_quantized(axis: int) -> None:
    x = np.ones((4, 2), np.float32)
    with pytest.raises(ShapeError, match=rf"^q: got 3 channels along axis {axis}; wanted as many"):
        quality(x, x, q=QParams([0.1, 0.2, 0.3], 0, "s8", axis=axis))


def test_what_does_not_fit_is_refused_by_name() -> None:
    with pytest.raises(ArgumentError, match=r"^wei: got values that are not finite"):
        integer_weights([[np.nan]])
    with pytest.raises(ShapeError, match=r"^axis: got 3"):
        integer_weights(np.ones((2, 2)), axis=3)
    with pytest.raises(ArgumentError, match=r"^codes: got -1 to 15"):
        pack4([-1, 15])
    with pytest.raises(ShapeError, match=r"^shape: "):
        unpack4(np.zeros(2, np.uint8), (7,))
    with pytest.raises(ShapeError, match=r"^src_max: "):
        smoothed([1.0], np.ones((2, 3)))
    with pytest.raises(ShapeError, match=r"^second: "):
        equalized(np.ones((2, 3)), [1.0, 1.0], np.ones((4, 3)))
    with pytest.raises(ArgumentError, match=r"^y: got None"):
        quality([1.0])


@pytest.mark.parametrize(("dtype", "signed"), [("s4", True), ("u4", False)])
def test_packed_codes_stand_for_the_values_that_were_quantized(dtype: str, signed: bool) -> None:
    pytest.importorskip("ml_dtypes")
    params = QParams(0.25, 2, dtype)
    codes = params.quantize(RNG.normal(size=(5, 7)))
    unpacked = unpack4(pack4(codes), codes.shape, signed=signed)
    np.testing.assert_array_equal(params.dequantize(unpacked), params.dequantize(codes))


def test_floats_are_not_packed() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    with pytest.raises(DTypeError, match=r"^codes: got bfloat16; wanted integers"):
        pack4(np.ones(3, ml_dtypes.bfloat16))
