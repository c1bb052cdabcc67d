"""``pq.load``: a model as a call, with what the commands tell of it."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import onnx
import onnxruntime

import pyonednn_q as pq
from pyonednn_q import cli
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from support.foreign import Producer
from support.oracles.networks import SOURCE

Made = Callable[[str, str], Path]

OPEN = """
    <ir_version: 10, opset_import: ["" : 21]>
    block (float["N", 3] a, float["N", 3] b) => (float["N", 3] y, float["N", 3] z) {
        y = Sub (a, b)
        z = Relu (y)
    }
"""


def noise(dims: tuple[int, ...], seed: int = 7) -> Any:
    return np.random.default_rng(seed).normal(0, 1, dims).astype(np.float32)


def theirs(model: bytes | Path, **inputs: Any) -> list[Any]:
    data = model if isinstance(model, bytes) else str(model)
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    results: list[Any] = session.run(None, inputs)
    return results


@pytest.fixture(scope="module")
def two_ends() -> bytes:
    return bytes(onnx.parser.parse_model(OPEN).SerializeToString())


def test_one_output_is_an_array_of_onnxruntimes_values(made: Made) -> None:
    path, x = made("resnet", "QDQ"), noise(SOURCE)
    model = pq.load(path)
    np.testing.assert_array_equal(model(x), theirs(path, x=x)[0])
    np.testing.assert_array_equal(model({"x": x}), model(x))
    np.testing.assert_array_equal(model.run({"x": x})["y"], model(x))


def test_layers_of_floats_are_primitives_of_float32(made: Made) -> None:
    path, x = made("resnet", "QDQ").with_name("float.onnx"), noise(SOURCE)
    model, (theirs_y,) = pq.load(path), theirs(path, x=x)
    results = model(x)
    # Float32 sums in other orders.
    assert np.abs(results - theirs_y).max() <= 2.0**-20 * max(1.0, np.abs(theirs_y).max())
    assert "FP32 convolution" in model.report()
    hows = {node.how for node in model.nodes if any(part.row.layer for part in node.parts)}
    assert hows == {"FP32 convolution", "FP32 inner_product"}


def test_several_go_in_in_order_and_come_out_by_name(two_ends: bytes) -> None:
    model = pq.load(two_ends)
    for rows in (4, 2, 4):  # compiled for each
        a, b = noise((rows, 3), 1), noise((rows, 3), 2)
        y, z = theirs(two_ends, a=a, b=b)
        for results in (model(a, b), model({"b": b, "a": a})):
            assert isinstance(results, dict)
            assert list(results) == ["y", "z"]
            np.testing.assert_array_equal(results["y"], y)
            np.testing.assert_array_equal(results["z"], z)


def test_tensors_of_others_go_in_in_order_and_by_name(made: Made, two_ends: bytes) -> None:
    model, x = pq.load(made("resnet", "QDQ")), noise(SOURCE)
    np.testing.assert_array_equal(model(Producer(x)), model(x))
    a, b = noise((2, 3), 1), noise((2, 3), 2)
    results = pq.load(two_ends)({"b": Producer(b), "a": Producer(a)})
    assert isinstance(results, dict)
    np.testing.assert_array_equal(results["y"], a - b)


def test_tensors_of_torch_go_in(made: Made) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    model, x = pq.load(made("resnet", "QDQ")), noise(SOURCE)
    np.testing.assert_array_equal(model(torch.from_numpy(x)), model(x))
    strided = torch.from_numpy(x).contiguous(memory_format=torch.channels_last)
    np.testing.assert_array_equal(model(strided), model(x))


def test_what_does_not_fit_is_refused_by_the_inputs_name(made: Made, two_ends: bytes) -> None:
    model, both = pq.load(made("resnet", "QDQ")), pq.load(two_ends)
    with pytest.raises(DTypeError, match=r"^inputs\['x'\]"):
        model(noise(SOURCE).astype(np.float64))
    with pytest.raises(ShapeError, match=r"^inputs\['x'\]"):
        model(noise((1, 2)))
    with pytest.raises(ArgumentError, match=r"^inputs: got 1; wanted 2: .*'a', 'b'"):
        both(noise((2, 3)))
    with pytest.raises(ArgumentError, match=r"^inputs: got 0"):
        model()
    with pytest.raises(ArgumentError, match=r"^dims: got one beside a Graph"):
        pq.load(pq.onnx.load(two_ends), dims={"N": 1})
    with pytest.raises(ArgumentError, match=r"^dims: got open ones: 'a' of \[N, 3\]"):
        both.explain()


def test_it_explains_itself_as_the_command_does(
    made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    path = made("resnet", "QDQ")
    assert cli.main(["explain", str(path)]) == 0
    assert pq.load(path).explain() == capsys.readouterr().out.rstrip("\n")


def test_an_open_model_is_explained_at_the_lengths_of_its_last_call(two_ends: bytes) -> None:
    model = pq.load(two_ends)
    model(noise((5, 3)), noise((5, 3)))
    assert "float32[5, 3]" in model.explain(trace=True)


def test_bench_has_both_forms(made: Made) -> None:
    model = pq.load(made("resnet", "QDQ"))
    text = model.bench({"x": noise(SOURCE)}, min_time=0.01)
    assert "u8s8u8" in text
    assert "FP32" in text
    with pytest.raises(ArgumentError, match=r"^peers: got 'nobody'"):
        model.bench(peers=["nobody"])


def test_a_calibrated_model_is_loaded_saved_and_loaded_again(made: Made, tmp_path: Path) -> None:
    floats = made("resnet", "QDQ").with_name("float.onnx")
    x = noise(SOURCE)
    calibrated = pq.calibrate(str(floats), [x])
    model = pq.load(calibrated)
    np.testing.assert_array_equal(model(x), calibrated.model()(x))
    model.save(tmp_path / "int8.onnx")
    again = pq.load(tmp_path / "int8.onnx")
    np.testing.assert_array_equal(again(x), model(x))
    assert [str(node) for node in again.nodes] == [str(node) for node in model.nodes]
    again.save(tmp_path / "twice.onnx")
    assert (tmp_path / "twice.onnx").read_bytes() == (tmp_path / "int8.onnx").read_bytes()
    onnx.checker.check_model(tmp_path / "int8.onnx")
    assert np.isfinite(theirs(tmp_path / "int8.onnx", x=x)[0]).all()


@pytest.mark.parametrize("form", ["qdq", "fake_quantize"])
def test_what_calibrate_saves_has_the_same_bits_in_another_process(
    made: Made, tmp_path: Path, form: str
) -> None:
    floats = made("resnet", "QDQ").with_name("float.onnx")
    x, file = noise(SOURCE), tmp_path / "int8.onnx"
    found = pq.calibrate(str(floats), [x])
    mixed = found.with_floats({found.layers[1]: "f32"})
    mixed.save(file, form=form)
    np.savez(tmp_path / "x.npz", x=x)
    words = map(str, ("run", file, "--input", tmp_path / "x.npz", "--output", tmp_path / "y.npz"))
    subprocess.run([sys.executable, "-m", "pyonednn_q", *words], check=True)
    with np.load(tmp_path / "y.npz") as there:
        np.testing.assert_array_equal(there["y"], pq.load(mixed)(x))
        np.testing.assert_array_equal(there["y"], mixed.model()(x))


def test_lengths_that_a_node_does_not_take_are_refused_by_the_inputs_name() -> None:
    windows = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 21]>
        block (float["N", 2, "H", "W"] x) => (float["N", 2, "h", "w"] y)
        <float[2, 2, 1, 1] w = {1, 2, 3, 4}> {
            c = Conv (x, w)
            r = Relu (c)
            y = MaxPool <kernel_shape = [3, 3]> (r)
        }
    """)
    model = pq.load(windows)
    assert model.run({"x": noise((1, 2, 5, 6))})["y"].shape == (1, 2, 3, 4)
    message = (
        r"^inputs\['x'\]: got \(1, 2, 2, 7\); wanted lengths that all nodes take; here .*MaxPool"
    )
    with pytest.raises(ShapeError, match=message):
        model(noise((1, 2, 2, 7)))
    empty = model.run({"x": noise((0, 2, 5, 6))})  # node by node
    assert empty["y"].shape == (0, 2, 3, 4)


def test_options_of_another_version_are_refused_by_name(two_ends: bytes) -> None:
    proto = onnx.ModelProto.FromString(two_ends)
    for text, message in (
        ('{"version": 2}', "got 2; wanted version 1"),
        ("[]", r"got \[\]; wanted version 1"),
        ("{", "wanted JSON"),
        ('{"version": 1, "no": 1}', "got 'no'; wanted options of"),
    ):
        onnx.helper.set_model_props(proto, {"pyonednn_q.fuse": text})
        with pytest.raises(ArgumentError, match=rf"^model: metadata pyonednn_q.fuse: .*{message}"):
            pq.load(proto)
    onnx.helper.set_model_props(proto, {"pyonednn_q.fuse": '{"version": 1, "floats": 3}'})
    with pytest.raises(ArgumentError, match=r"^floats: got"):
        pq.load(proto)


def test_open_lengths_are_saved_and_pickled(two_ends: bytes, tmp_path: Path) -> None:
    model = pq.load(two_ends)
    model.save(tmp_path / "open.onnx")
    for again in (pq.load(tmp_path / "open.onnx"), pickle.loads(pickle.dumps(model))):
        for rows in (1, 3):
            a, b = noise((rows, 3), 1), noise((rows, 3), 2)
            np.testing.assert_array_equal(again(a, b)["y"], a - b)
    assert repr(pq.load(tmp_path / "open.onnx")) == "<LoadedModel open.onnx: a, b -> y, z>"
