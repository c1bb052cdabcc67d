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
from support.terminal import bars, terminal

pytest.importorskip("sklearn", reason="the extra `demo` is not installed")

Array = npt.NDArray[Any]
IMAGES = 32


@pytest.fixture(scope="module")
def digits() -> tuple[Array, Array, Array]:
    return demo.load_digits()


@pytest.fixture(scope="module")
def train(digits: tuple[Array, Array, Array]) -> Array:
    images, _, is_held_out = digits
    return images[~is_held_out]


@pytest.fixture(scope="module")
def held_out(digits: tuple[Array, Array, Array]) -> Array:
    images, _, is_held_out = digits
    return images[is_held_out]


@pytest.fixture(scope="module")
def float32(digits: tuple[Array, Array, Array], train: Array) -> demo.Layers:
    _, labels, is_held_out = digits
    return demo.fit(train, labels[~is_held_out], seed=0)


@pytest.fixture(scope="module")
def int8(float32: demo.Layers, train: Array) -> demo.Layers:
    return demo.quantized(float32, train)


@pytest.fixture(scope="module")
def exact(float32: demo.Layers, held_out: Array) -> list[Array]:
    return demo.forward(float32.values(), demo.real(held_out))


@pytest.fixture(scope="module")
def codes(int8: demo.Layers, held_out: Array) -> list[Array]:
    return demo.forward(int8.values(), held_out)


def right(logits: Array, answers: Array) -> int:
    return int((logits.argmax(axis=1) == answers).sum())


def numbers(layers: demo.Layers) -> list[bytes]:
    arrays = (array for each in layers.values() for array in (each.weights.values, each.bias))
    return [np.asarray(array).tobytes() for array in arrays]


def test_every_fourth_digit_is_held_out(digits: tuple[Array, Array, Array]) -> None:
    images, labels, is_held_out = digits
    assert images.shape == (1797, 1, 8, 8)
    assert images.dtype == np.uint8
    assert is_held_out.sum() == HELD_OUT
    assert is_held_out[3::4].all()
    assert set(labels[is_held_out]) == set(range(10))


def test_pixels_are_exact_in_both_ways(train: Array) -> None:
    reals = demo.real(train)
    np.testing.assert_array_equal(reals, train / 16.0)
    assert reals.max() == 1.0
    np.testing.assert_array_equal(demo.PIXELS.quantize(reals), train)


def test_both_ways_know_the_digits(
    digits: tuple[Array, Array, Array], exact: list[Array], codes: list[Array]
) -> None:
    _, labels, is_held_out = digits
    # Measured: 443 to 445 of 449 over four seeds, two oneDNNs and two instruction sets, and at
    # most one digit apart. Another BLAS rounds other sums, which is another start of the fit.
    assert right(exact[-1], labels[is_held_out]) >= 439
    assert right(codes[-1], labels[is_held_out]) >= 439
    assert right(codes[-1], exact[-1].argmax(axis=1)) >= 445


def test_one_seed_gives_one_network(
    digits: tuple[Array, Array, Array], train: Array, float32: demo.Layers
) -> None:
    _, labels, is_held_out = digits
    again = demo.fit(train, labels[~is_held_out], seed=0)
    assert [*again] == ["conv1", "conv2", "dense1", "dense2"]
    assert numbers(again) == numbers(float32)
    other = demo.fit(train, labels[~is_held_out], seed=1)
    assert numbers(other)[4:] != numbers(float32)[4:]


def test_filters_are_orthogonal_pairs_of_both_signs(float32: demo.Layers) -> None:
    wei, bias = float32["conv1"].weights.values, float32["conv1"].bias
    assert bias is not None
    half = wei[:8].reshape(8, 9).astype(np.float64)
    np.testing.assert_array_equal(wei[8:], -wei[:8])
    np.testing.assert_array_equal(bias[8:], -bias[:8])
    gram = half @ half.T
    # Stored in float32: entries below 2 with 9 terms each leave errors far below 1e-5.
    assert np.abs(gram - np.diag(np.diag(gram))).max() < 1e-5


def products(src: Array, wei: Array) -> Array:
    """Sums of products in float64, by the definition of the layer; windows are 3 x 3."""
    dst: Array
    if wei.shape[2:] != (3, 3):
        dst = src.reshape(len(src), -1) @ wei.reshape(len(wei), -1).T
        return dst
    padded = np.pad(src, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    dst = np.einsum("nchwij,ocij->nohw", windows, wei, optimize=True)
    return dst


@pytest.mark.parametrize("name", ["conv1", "conv2", "dense1", "dense2"])
def test_int8_layers_are_their_float_layers_rounded(
    float32: demo.Layers, int8: demo.Layers, codes: list[Array], name: str
) -> None:
    layer, settings = float32[name], int8[name].settings
    index = [*int8].index(name)
    assert isinstance(settings.src_q, QParams)
    src = settings.src_q.dequantize(codes[index][:IMAGES])
    # By the largest weight of each channel, as from_float promises.
    real = layer.weights.values
    rows = np.abs(real.reshape(len(real), -1).astype(np.float64)).max(axis=1)
    step = (rows / (demo.wei_levels() // 2)).reshape(-1, *[1] * (real.ndim - 1))
    wei = np.rint(real / step) * step
    sums = products(src, wei)
    assert layer.bias is not None
    bias = layer.bias.reshape(-1, *[1] * (sums.ndim - 2)).astype(np.float64)
    reals = sums + bias
    got = codes[index + 1][:IMAGES]
    if settings.dst_q is None:
        assert got.dtype == np.float32
        # The integer sum is exact; scale, product and the sum with the bias round once each.
        assert (np.abs(got - reals) <= 3 * 2.0**-24 * (np.abs(sums) + np.abs(bias))).all()
        return
    assert got.dtype == np.uint8
    levels = np.maximum(reals, 0) / settings.dst_q.scale
    # Scales are arbitrary: where a tie lies within float32's rounding, two codes are right.
    is_tie = np.abs(levels - np.floor(levels) - 0.5) < 1e-4
    assert is_tie.mean() < 1e-3
    wanted = np.clip(np.rint(levels), 0, 255)
    np.testing.assert_array_equal(got[~is_tie], wanted[~is_tie])


def test_each_layer_reads_the_codes_of_the_one_before(int8: demo.Layers) -> None:
    params = [layer.settings for layer in int8.values()]
    assert params[0].src_q == demo.PIXELS
    assert [each.src_q for each in params[1:]] == [each.dst_q for each in params[:-1]]
    assert params[-1].dst_q is None


def test_the_largest_training_activation_gets_code_255(
    float32: demo.Layers, int8: demo.Layers, train: Array
) -> None:
    results = demo.forward(float32.values(), demo.real(train))[1:-1]
    for result, layer in zip(results, [*int8.values()][:-1], strict=True):
        assert layer.settings.dst_q is not None
        assert layer.settings.dst_q.quantize(result.max()) == 255


def test_the_batch_does_not_change_int8_answers(
    int8: demo.Layers, codes: list[Array], held_out: Array
) -> None:
    alone = [demo.forward(int8.values(), held_out[i : i + 1])[-1] for i in range(20)]
    np.testing.assert_array_equal(np.concatenate(alone), codes[-1][:20])


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


def test_bars_count_epochs_layers_and_what_is_timed(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    terminal(monkeypatch)
    assert command_line(["demo", "--batch", "2", "--rounds", "2"]) == 0
    assert bars(capsys) == {
        "epochs of the fit": (30, 30),
        "inspecting layers": (4, 4),
        "timing": (5, 5),  # the network, and each of its layers
    }


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
