"""FakeQuantize and QParams of ranges as the training tool, torch and ONNX Runtime compute them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.expr.fq_orders import fake_quantize
from pyonednn_q.quantize import fq_from_range, level_range, qparams_by, tune_range

RNG = np.random.default_rng(17)
F = np.float32
CASES = 200
LOW = (-np.abs(RNG.normal(size=(CASES, 4))) * 10.0 ** RNG.integers(-4, 4, (CASES, 1))).astype(F)
HIGH = (np.abs(RNG.normal(size=(CASES, 4))) * 10.0 ** RNG.integers(-4, 4, (CASES, 1))).astype(F)
HIGH[::7, 0] = LOW[::7, 0] = 0.0  # a channel of nothing but zeros


@pytest.mark.filterwarnings("ignore")  # torch leaves files open when it loads what it compiled
@pytest.mark.parametrize("levels", [256, 255, 16, 4])
@pytest.mark.parametrize("compiled", [False, True])
def test_values_are_quantized_in_the_tools_order(levels: int, compiled: bool) -> None:
    reference = pytest.importorskip(
        "nncf.torch.quantization.reference", reason="NNCF with torch is not installed"
    )
    torch = pytest.importorskip("torch")
    # In float32 high - low and low + (high - low) are exact.
    low = np.array([[-1.3125], [-(2.0**-10)], [0.0], [-7.0]], F)
    width = np.array([[2.125], [1.0], [6.0], [0.5]], F) - low
    ties = low + width * ((RNG.integers(0, levels, (4, 4000)) + F(0.5)) / F(levels - 1)).astype(F)
    x = np.where(RNG.random(ties.shape) < 0.5, ties, RNG.normal(0, 3, ties.shape)).astype(F)
    ours = fake_quantize(x, low, low + width, low, low + width, levels=levels, order="nncf")
    if compiled:
        functions = pytest.importorskip("nncf.torch.quantization.extensions")
        try:
            forward = functions.QuantizedFunctionsCPU.get("Quantize_forward")
            theirs = forward(*map(torch.from_numpy, (x, low, width)), levels).numpy()
        except Exception as error:  # a compiler is needed
            pytest.skip(f"NNCF's kernels do not compile here: {type(error).__name__}")
    else:
        by_numpy = reference.ReferenceQuantize(reference.ReferenceBackendType.NUMPY)
        theirs = by_numpy.forward(x.copy(), low, width, levels)
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("bits", range(2, 9))
def test_levels_are_those_of_the_tool(bits: int, narrow: bool) -> None:
    quantizers = pytest.importorskip("nncf.common.quantization.quantizers")
    for signed in (False, True):
        wanted = quantizers.calculate_symmetric_level_ranges(bits, signed, narrow)
        assert level_range(bits, signed=signed, narrow=narrow) == wanted
    wanted = quantizers.calculate_asymmetric_level_ranges(bits, narrow)
    assert level_range(bits, narrow=narrow, symmetric=False) == wanted


def tools_parameters(lo: Any, hi: Any, bits: int, half: bool, **config: Any) -> Any:
    fake = pytest.importorskip("nncf.quantization.fake_quantize")
    structs = pytest.importorskip("nncf.common.quantization.structs")
    statistics = pytest.importorskip("nncf.common.tensor_statistics.statistics")
    tensor = pytest.importorskip("nncf.tensor").Tensor
    found = statistics.MinMaxTensorStatistic(min_values=tensor(lo), max_values=tensor(hi))
    settings = structs.QuantizerConfig(num_bits=bits, per_channel=True, **config)
    return fake.calculate_quantizer_parameters(
        found, settings, structs.QuantizerGroup.WEIGHTS, half
    )


def assert_same(fq: Any, wanted: Any) -> None:
    for end in ("input_low", "input_high"):
        values = getattr(fq, end).spread(4).astype(F)
        np.testing.assert_array_equal(values, getattr(wanted, end).data)
    assert fq.levels == wanted.levels


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("signed", [None, True])
def test_symmetric_ranges(bits: int, half: bool, narrow: bool, signed: bool | None) -> None:
    for row in range(CASES):
        lo = LOW[row] if row % 3 else np.zeros(4, F)
        hi = np.maximum(-lo, HIGH[row])
        options = {"signedness_to_force": signed, "narrow_range": narrow}
        wanted = tools_parameters(lo, hi, bits, half, **options)
        fq = fq_from_range(lo, hi, bits, signed=signed, narrow=narrow, half_range=half)
        assert_same(fq, wanted)


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_asymmetric_ranges(bits: int) -> None:
    structs = pytest.importorskip("nncf.common.quantization.structs")
    for row in range(CASES):
        lo, hi = LOW[row], HIGH[row]
        if row % 4 == 0:
            lo, hi = np.abs(lo), np.abs(lo) + hi
        mode = structs.QuantizationScheme.ASYMMETRIC
        assert_same(
            fq_from_range(lo, hi, bits, symmetric=False),
            tools_parameters(lo, hi, bits, half=False, mode=mode),
        )


@pytest.mark.parametrize("unify", [False, True])
def test_tuned_ranges(unify: bool) -> None:
    fake = pytest.importorskip("nncf.quantization.fake_quantize")
    tensor = pytest.importorskip("nncf.tensor").Tensor
    for row in range(CASES):
        lo, hi = LOW[row] - F(1e-3), HIGH[row] + F(1e-3)
        wanted = fake.tune_range(tensor(lo), tensor(hi), 8, unify_zp=unify)
        got = tune_range(lo, hi, 8, unify=unify)
        np.testing.assert_array_equal(got[0], wanted[0].data)
        np.testing.assert_array_equal(got[1], wanted[1].data)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("dtype", ["u8", "s8"])
def test_qparams_of_onnxruntime(symmetric: bool, dtype: str) -> None:
    utils = pytest.importorskip("onnxruntime.quantization.quant_utils")
    kind = np.uint8 if dtype == "u8" else np.int8
    qmin, qmax = (0, 255) if dtype == "u8" else (-127 if symmetric else -128, 127)
    for lo, hi in zip(LOW.ravel(), HIGH.ravel(), strict=True):
        ends = np.array(qmin, kind), np.array(qmax, kind)
        point, scale = utils.compute_scale_zp(
            np.array(lo, F), np.array(hi, F), *ends, symmetric=symmetric
        )
        found = qparams_by("onnxruntime", lo, hi, dtype, symmetric=symmetric)
        assert (found.scale, found.zero_point) == (float(scale), int(point))


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("dtype", ["u8", "s8"])
def test_qparams_of_torch(symmetric: bool, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    observers = pytest.importorskip("torch.ao.quantization.observer")
    kind = torch.quint8 if dtype == "u8" else torch.qint8
    scheme = torch.per_tensor_symmetric if symmetric else torch.per_tensor_affine
    observer = observers.MinMaxObserver(dtype=kind, qscheme=scheme)
    for lo, hi in zip(LOW.ravel()[:400], HIGH.ravel()[:400], strict=True):
        scale, point = observer._calculate_qparams(torch.tensor(lo), torch.tensor(hi))
        found = qparams_by("torch", lo, hi, dtype, symmetric=symmetric)
        assert (found.scale, found.zero_point) == (float(scale), int(point))


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("signed", [None, False, True])
def test_version_2_is_what_its_quantizers_export(
    signed: bool | None, narrow: bool, half: bool, symmetric: bool
) -> None:
    pytest.importorskip("nncf.config.config", reason="NNCF 2.18 is not installed")
    layers = pytest.importorskip("nncf.torch.quantization.layers")
    torch = pytest.importorskip("torch")
    kind = layers.SymmetricQuantizer if symmetric else layers.AsymmetricQuantizer
    for row in range(0, CASES, 2):
        bits = (4, 8)[row % 4 // 2]
        lo, hi = LOW[row] if row % 3 else np.zeros(4, F), HIGH[row]
        hi = np.maximum(-lo, hi) if symmetric else hi + F(1e-3)
        spec = layers.PTQuantizerSpec(
            bits, "symmetric" if symmetric else "asymmetric", signed, narrow, half, (4, 1),
            logarithm_scale=False, is_quantized_on_export=False, compression_lr_multiplier=None,
        )  # fmt: skip
        quantizer = kind(spec)
        ends = (torch.from_numpy(end).reshape(4, 1) for end in (lo, hi))
        quantizer.apply_minmax_init(*ends)
        with torch.no_grad():
            found = quantizer._prepare_export_quantization(torch.zeros(4, 1))
        _, top, bottom, low, high = found
        fq = fq_from_range(
            *(lo, hi, bits),
            symmetric=symmetric,
            signed=signed,
            narrow=narrow,
            half_range=half,
            version=2,
        )
        assert fq.levels == top - bottom + 1
        np.testing.assert_array_equal(fq.input_low.spread(4).astype(F), low.numpy().ravel())
        np.testing.assert_array_equal(fq.input_high.spread(4).astype(F), high.numpy().ravel())
