"""The main job from end to end."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from pyonednn_q.cli import main as command_line
from pyonednn_q.compose.isa import InstructionSet
from pyonednn_q.demo import experiment, main, report


def test_accuracy(findings: experiment.Findings) -> None:
    # Measured: FP32 444 and INT8 444 of 449 on three BLAS builds' kernels; eight seeds of the dense
    # layers' start gave 444 to 447. Another BLAS rounds other sums and so is another start; the
    # floor leaves it six digits below the worst of these.
    accuracy = findings.accuracy
    assert accuracy.images == 449
    assert accuracy.float32 >= 438
    assert accuracy.int8 >= 438


def test_int8_answers_like_fp32(findings: experiment.Findings) -> None:
    # Measured: 449 of 449 with 7-bit weights (448 for two of eight seeds), 448 with 8-bit ones.
    # The floor leaves four digits whose two best logits lie within the quantisation noise.
    assert findings.accuracy.same >= 445


def test_every_layer_keeps_its_signal(findings: experiment.Findings) -> None:
    # Measured with 7-bit weights: alone 38.6 to 45.7 dB, in the network 37.3 dB (the lowest of
    # eight seeds) to 43.3 dB. One lost bit costs 6 dB: the floor notices it.
    assert [step.name for step in findings.int8] == ["conv1", "conv2", "pool", "dense1", "dense2"]
    for noise in findings.noises:
        assert noise.alone_db > 34
        assert noise.in_network_db > 34


def test_the_batch_does_not_change_int8_answers(models: experiment.Models) -> None:
    from pyonednn_q.demo import layers

    pixels = models.data.test_images
    at_once = experiment.run(layers.int8_steps(models.quantised, pixels.shape), pixels)[-1]
    single = layers.int8_steps(models.quantised, (1, *pixels.shape[1:]))
    one_by_one = [experiment.run(single, pixels[i : i + 1])[-1] for i in range(20)]
    np.testing.assert_array_equal(np.concatenate(one_by_one), at_once[:20])


def test_command_reports_everything(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn", reason="the extra `demo` is not installed")
    assert command_line(["demo", "--batch", "7", "--rounds", "6"]) == 0
    out, err = capsys.readouterr()
    for expected in (
        "FP32 right",
        "INT8 right",
        "same answer",
        "eltwise_relu",
        "wei_scale:1 dst_scale:0",
        "wei_scale:2",
        "SQNR",
        "Batch 7: medians of 6 warm calls",
    ):
        assert expected in out
    for name in ("conv1", "conv2", "pool", "dense1", "dense2", "all"):
        assert f"\n  {name}" in out
    assert max(map(len, out.splitlines())) <= 100
    assert err.splitlines() == [
        "fitting the network ...",
        "running 449 held-out digits ...",
        "timing batches of 7 ...",
    ]


def test_missing_extra_ends_with_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    assert main([]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "demo: the demo needs scikit-learn: pip install 'pyonednn_q[demo]'" in err


@pytest.mark.parametrize("argv", [["--rounds", "0"], ["--batch", "450"], ["--batch", "x"]])
def test_bad_options_are_refused(argv: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(argv)
    assert stopped.value.code == 2


def on(isa: str, load: float = 0.0) -> experiment.Platform:
    return experiment.Platform("3.7.0", "OMP", InstructionSet(isa), 2, load)


def test_a_busy_machine_is_named() -> None:
    assert report.machine_text(on("AVX2", 0.25)) == "AVX2, 2 threads, load average 0.2"
    assert report.machine_text(on("AVX2", 5.0)).endswith("5.0: BUSY, times include waiting")


def test_weights_text_follows_the_cpu() -> None:
    def text(isa: str, qmax: int) -> str:
        return " ".join(report.weights_text(on(isa), qmax))

    assert "within [-64, 64], 7 bits: AVX2 has no VNNI" in text("AVX2", 64)
    assert "within [-127, 127]: AVX512_CORE_VNNI has VNNI" in text("AVX512_CORE_VNNI", 127)
