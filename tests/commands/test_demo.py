"""The demo: what it fits, what its layers compute, and what it prints."""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from pyonednn_q.commands import cli, demo
from pyonednn_q.commands.cli import main as command_line
from pyonednn_q.commands.option_table import HELD_OUT
from pyonednn_q.native import runtime
from pyonednn_q.qparams import QParams
from support.children import run_child
from support.isa import LIMIT_VARIABLE

pytest.importorskip("sklearn", reason="the extra `demo` is not installed")

Array = npt.NDArray[Any]
IMAGES = 32


@pytest.fixture(scope="module")
def digits() -> demo.Digits:
    return demo.load_digits()


@pytest.fixture(scope="module")
def layers(digits: demo.Digits) -> list[demo.Fitted]:
    return demo.fit(digits, seed=0)


@pytest.fixture(scope="module")
def float32(digits: demo.Digits, layers: list[demo.Fitted]) -> demo.Execution:
    return demo.forward(demo.float32_operators(layers), demo.real(digits.test_images))


@pytest.fixture(scope="module")
def int8(digits: demo.Digits, layers: list[demo.Fitted]) -> demo.Execution:
    return demo.forward(demo.int8_operators(layers, digits.train_images), digits.test_images)


def right(execution: demo.Execution, answers: Array) -> int:
    return int((execution.tensors[-1].argmax(axis=1) == answers).sum())


def numbers(layers: list[demo.Fitted]) -> list[bytes]:
    return [array.tobytes() for layer in layers for array in (layer.wei, layer.bias)]


def test_every_fourth_digit_is_held_out(digits: demo.Digits) -> None:
    assert digits.train_images.shape == (1348, 1, 8, 8)
    assert digits.test_images.shape == (HELD_OUT, 1, 8, 8)
    assert len(digits.train_labels) == 1348
    assert set(digits.test_labels) == set(range(10))
    assert digits.train_images.dtype == np.uint8


def test_pixels_are_exact_in_both_ways(digits: demo.Digits) -> None:
    reals = demo.real(digits.train_images)
    np.testing.assert_array_equal(reals, digits.train_images / 16.0)
    assert reals.max() == 1.0
    np.testing.assert_array_equal(demo.PIXELS.quantize(reals), digits.train_images)


def test_both_ways_know_the_digits(
    digits: demo.Digits, float32: demo.Execution, int8: demo.Execution
) -> None:
    # Measured: 443 to 445 of 449 over four seeds, two oneDNNs and two instruction sets, and at
    # most one digit apart. Another BLAS rounds other sums, which is another start of the fit.
    assert right(float32, digits.test_labels) >= 439
    assert right(int8, digits.test_labels) >= 439
    assert right(int8, float32.tensors[-1].argmax(axis=1)) >= 445


def test_one_seed_gives_one_network(digits: demo.Digits, layers: list[demo.Fitted]) -> None:
    again = demo.fit(digits, seed=0)
    assert [layer.name for layer in again] == ["conv1", "conv2", "dense1", "dense2"]
    assert numbers(again) == numbers(layers)
    assert numbers(demo.fit(digits, seed=1))[4:] != numbers(layers)[4:]


def test_held_out_digits_choose_nothing(digits: demo.Digits, layers: list[demo.Fitted]) -> None:
    blank = digits._replace(
        test_images=np.zeros_like(digits.test_images),
        test_labels=np.zeros_like(digits.test_labels),
    )
    assert numbers(demo.fit(blank, seed=0)) == numbers(layers)


def test_filters_are_orthogonal_pairs_of_both_signs(layers: list[demo.Fitted]) -> None:
    wei, bias = layers[0].wei, layers[0].bias
    half = wei[:8].reshape(8, 9).astype(np.float64)
    np.testing.assert_array_equal(wei[8:], -wei[:8])
    np.testing.assert_array_equal(bias[8:], -bias[:8])
    gram = half @ half.T
    # Stored in float32: entries below 2 with 9 terms each leave errors far below 1e-5.
    assert np.abs(gram - np.diag(np.diag(gram))).max() < 1e-5


def products(layer: demo.Fitted, src: Array, wei: Array) -> Array:
    """Sums of products in float64, by the definition of the layer."""
    dst: Array
    if "padding" not in layer.options:
        dst = src.reshape(len(src), -1) @ wei.reshape(len(wei), -1).T
        return dst
    padded = np.pad(src, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    dst = np.einsum("nchwij,ocij->nohw", windows, wei, optimize=True)
    return dst


@pytest.mark.parametrize("index", range(4), ids=["conv1", "conv2", "dense1", "dense2"])
def test_int8_layers_are_their_float_layers_rounded(
    layers: list[demo.Fitted], int8: demo.Execution, index: int
) -> None:
    layer, operator = layers[index], int8.operators[index]
    settings = operator.settings
    assert isinstance(settings.src_q, QParams)
    src = settings.src_q.dequantize(int8.tensors[index][:IMAGES])
    # By the largest weight of each channel, as from_float promises.
    rows = np.abs(layer.wei.reshape(len(layer.wei), -1).astype(np.float64)).max(axis=1)
    step = (rows / (demo.wei_levels() // 2)).reshape(-1, *[1] * (layer.wei.ndim - 1))
    wei = np.rint(layer.wei / step) * step
    sums = products(layer, src, wei)
    bias = layer.bias.reshape(-1, *[1] * (sums.ndim - 2)).astype(np.float64)
    reals = sums + bias
    got = int8.tensors[index + 1][:IMAGES]
    if settings.dst_q is None:
        assert got.dtype == np.float32
        # The integer sum is exact; scale, product and the sum with the bias round once each.
        assert (np.abs(got - reals) <= 3 * 2.0**-24 * (np.abs(sums) + np.abs(bias))).all()
        return
    assert got.dtype == np.uint8
    codes = np.maximum(reals, 0) / settings.dst_q.scale
    # Scales are arbitrary: where a tie lies within float32's rounding, two codes are right.
    is_tie = np.abs(codes - np.floor(codes) - 0.5) < 1e-4
    assert is_tie.mean() < 1e-3
    wanted = np.clip(np.rint(codes), 0, 255)
    np.testing.assert_array_equal(got[~is_tie], wanted[~is_tie])


def test_each_layer_reads_the_codes_of_the_one_before(int8: demo.Execution) -> None:
    params = [operator.settings for operator in int8.operators]
    assert params[0].src_q == demo.PIXELS
    assert [each.src_q for each in params[1:]] == [each.dst_q for each in params[:-1]]
    assert params[-1].dst_q is None


def test_the_largest_training_activation_gets_code_255(
    digits: demo.Digits, layers: list[demo.Fitted], int8: demo.Execution
) -> None:
    exact = demo.forward(demo.float32_operators(layers), demo.real(digits.train_images))
    for result, operator in zip(exact.tensors[1:-1], int8.operators[:-1], strict=True):
        assert operator.settings.dst_q is not None
        assert operator.settings.dst_q.quantize(result.max()) == 255


def test_the_batch_does_not_change_int8_answers(digits: demo.Digits, int8: demo.Execution) -> None:
    alone = [demo.forward(int8.operators, digits.test_images[i : i + 1]) for i in range(20)]
    np.testing.assert_array_equal(
        np.concatenate([each.tensors[-1] for each in alone]), int8.tensors[-1][:20]
    )


def test_without_vnni_weights_have_seven_bits() -> None:
    assert run_child(demo.wei_levels, environment={LIMIT_VARIABLE: "AVX2"}).value == 129
    # Two products with the largest code fit 16 bits, with a larger weight they would not.
    assert 2 * 255 * (129 // 2) <= np.iinfo(np.int16).max < 2 * 255 * (129 // 2 + 1)
    assert demo.wei_levels() == (255 if runtime.isa().has_vnni() else 129)


def test_the_command_reports_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line(["demo", "--batch", "7", "2", "--rounds", "6", "--seed", "1"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    rows = [line.split() for line in out.splitlines()]
    starts = {" ".join(row[:2]) for row in rows}
    assert {"FP32 right", "INT8 right", "same answer"} <= starts
    for layer in ("conv1", "conv2", "dense1", "dense2"):
        assert {f"{layer} FP32", f"{layer} INT8"} <= starts
        assert sum(row[:1] == [layer] for row in rows) == 4
    assert sum(row[:1] == ["network"] for row in rows) == 2
    assert "Batch 7: medians of 6 samples, FP32 and INT8 in turn" in out
    assert "eltwise_relu" in out
    assert max(map(len, out.splitlines())) <= 100


def test_without_scikit_learn_it_ends_with_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    assert cli.main(["demo"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    # The packages of the extra, or the extra of a checkout that was never installed.
    assert re.match(r"demo: the demo needs scikit-learn: pip install '.*(>=1\.3|\[demo\])' \(", err)
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "argv", [["--rounds", "0"], ["--batch", "450"], ["--batch", "x"], ["--seed", "-1"]]
)
def test_bad_options_are_refused(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["demo", *argv])
    assert stopped.value.code == 2
    assert f"argument {argv[0]}" in capsys.readouterr().err
