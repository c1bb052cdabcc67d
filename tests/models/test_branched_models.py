"""Commands on models of branches that inputs choose, and of states beside their batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import onnx

import pyonednn_q as pq
from pyonednn_q import cli
from pyonednn_q.models.outputs_compared import compared, least_of
from support.peers.branched_models import chosen, inputs
from support.peers.small_models import floats, make, model


@pytest.fixture(scope="module")
def int8(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an INT8 model of two branches."""
    file = tmp_path_factory.mktemp("branches") / "model.onnx"
    samples = [inputs(rate) for rate in (16000, 8000) for _ in range(4)]
    pq.calibrate(chosen([1, 2, 12]), samples).save(file)
    return file


@pytest.mark.parametrize("rate", [16000, 8000])
def test_commands_take_the_branch_that_inputs_choose(
    int8: Path, rate: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "inputs.npz", **inputs(rate))
    given = [str(int8), "--input", str(tmp_path / "inputs.npz")]
    assert cli.main(["bench", *given, "--repeat", "1", "--peers", "onnxruntime"]) == 0
    text = capsys.readouterr().out
    assert "INT8" in text
    assert ("conv2" in text) == (rate == 16000)
    assert cli.main(["diff", *given]) == 0
    told = capsys.readouterr().out
    assert "output y of the whole model" in told


def stateful(batch: Any) -> onnx.ModelProto:
    """Return a model of an image and a state, whose first dims differ."""
    nodes = [
        make("Conv", ["x", "k"], ["c"], "conv"),
        make("ReduceMean", ["s"], ["m"], keepdims=0),
        make("Add", ["c", "m"], ["y"]),
    ]
    return model(nodes, {"x": [batch, 2, 12], "s": [2, batch, 4]}, {"k": floats(3, 2, 3)})


def arrays(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "x": rng.normal(0, 1, (1, 2, 12)).astype(np.float32),
        "s": rng.normal(0, 1, (2, 1, 4)).astype(np.float32),
    }


@pytest.mark.parametrize("batch", [1, "n"])
def test_a_file_is_a_batch_where_inputs_begin_with_different_lengths(
    batch: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    proto = stateful(batch)
    (tmp_path / "model.onnx").write_bytes(proto.SerializeToString())
    (tmp_path / "data").mkdir()
    for seed in range(3):
        np.savez(tmp_path / "data" / f"{seed}.npz", **arrays(seed))
    words = ["quantize", str(tmp_path / "model.onnx"), "--data", str(tmp_path / "data")]
    words += ["--out", str(tmp_path / "int8.onnx")]
    assert cli.main(words) == 0
    out = capsys.readouterr().out
    assert "1 of 1 layers in INT8" in out
    assert "3 samples" in out
    samples = [arrays(seed) for seed in range(3)]
    found = pq.calibrate(proto, samples)
    for each in samples:
        np.testing.assert_array_equal(
            pq.load(tmp_path / "int8.onnx")(each), found.model().run(each)["y"]
        )
    assert cli.main([*words, "--batch", "2"]) == 2
    assert "--batch: got 2; wanted none" in capsys.readouterr().err
    np.savez(tmp_path / "data" / "9.npz", x=arrays(0)["x"], s=np.zeros((4, 1, 4), np.float32))
    assert cli.main(words) == 2
    assert "9.npz" in capsys.readouterr().err


def test_outputs_of_other_dims_are_told_and_not_compared() -> None:
    """As those of a loop that ends at another step."""
    first, second = {"y": np.ones((3, 4), np.float32)}, {"y": np.ones((2, 4), np.float32)}
    (same,) = compared([first, first], [first, first])
    (other,) = compared([first, first], [first, second])
    assert (same.is_alike, same.values) == (True, 24)
    assert abs(same.cosine - 1.0) < 2.0**-50
    assert (other.is_alike, other.values, other.cosine, other.top1) == (False, 0, 0.0, 0.0)
    assert least_of("sqnr", [same, other]) == 0.0
