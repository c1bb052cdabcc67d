"""Models as values: what is read, what is refused, and what strangers may send."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.errors import ArgumentError, UnsupportedError

onnx: Any = pytest.importorskip("onnx", reason="onnx is not installed")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402 - where it is installed

from pyonednn_q.onnx.model_reader import load  # noqa: E402
from support.frames import calls_of  # noqa: E402
from support.hostile.chunk import Report, run_chunk  # noqa: E402
from support.hostile.models import one_model, valid_models  # noqa: E402

CHUNK = 10_000


def model_of(*tensors: Any, nodes: Any = None, dims: Any = (1, 2)) -> Any:
    """Return a model of y = Relu(x) that holds tensors."""
    x, y = (helper.make_tensor_value_info(name, 1, dims) for name in "xy")
    nodes = [helper.make_node("Relu", ["x"], ["y"])] if nodes is None else nodes
    graph = helper.make_graph(nodes, "g", [x], [y], list(tensors))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def test_models_tampered_with(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """`--hostile-models` and `--hostile-seed` say how many, and from which seed on."""
    count = request.config.getoption("--hostile-models")
    first = request.config.getoption("--hostile-seed")
    report = Report()
    for start in range(first, first + count, CHUNK):
        seeds = range(start, min(start + CHUNK, first + count))
        report.add(run_chunk(seeds, tmp_path / "trace", one_model))
    print({name: report.outcomes[name] for name in sorted(report.outcomes)})  # noqa: T201
    assert not report.wrong, "\n".join(report.wrong)
    assert set(report.plain) == {"right"}  # valid ones are not refused
    assert report.outcomes["right"] > report.plain["right"]  # nor all that were touched


def test_every_node_case_of_onnx_is_read() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the cases overflow on purpose
        cases = pytest.importorskip("onnx.backend.test.case.node").collect_testcases(None)
    refused = []
    for case in cases:
        try:
            graph = load(case.model)
        except UnsupportedError as error:
            refused.append(str(error))
        else:
            assert list(graph.outputs) == [each.name for each in case.model.graph.output]
    assert len(cases) - len(refused) > 1750
    known = (
        "subgraph",
        "Scan of opset 8",
        "text",
        "sequence_type",
        "optional_type",
        "functions",
        "6 bits",
        "complex",
    )
    assert [each for each in refused if not any(word in each for word in known)] == []


def test_what_a_graph_holds() -> None:
    graph = load(valid_models()[0])
    assert [node.operator for node in graph.nodes][:2] == ["QuantizeLinear", "QLinearConv"]
    assert graph.nodes[1].attributes["pads"] == (0, 0, 0, 0)
    assert graph.nodes[3].kind == "com.microsoft.QLinearAdd"
    assert graph.constants["one"] == np.float32(1)
    assert graph.constants["w"].shape == (4, 3, 1, 1)
    assert not graph.constants["w"].flags.writeable
    assert (graph.opset, graph.opsets["com.microsoft"]) == (21, 1)
    assert str(graph.tensors["real"]) == "float32[1, 4, 8, 8]"
    assert str(graph.tensors["twice"]) == "uint8[1, 4, 8, 8]"  # of which onnx knows nothing


def test_lengths_that_a_model_leaves_open() -> None:
    model = model_of(dims=("N", 2))
    assert load(model).symbols == {"x": ("N", 2)}
    assert "x: float32[N, 2] -> y: " in repr(load(model))
    assert load(model, dims={"N": 3}).inputs["x"].dims == (3, 2)
    assert load(model, dims={"x": (4, 2)}).tensors["y"].dims == (4, 2)
    with pytest.raises(ArgumentError, match="dims"):
        load(model, dims={"M": 3, "N": 1})
    with pytest.raises(ArgumentError, match="dims"):
        load(model, dims={"x": (4,)})


@pytest.mark.parametrize("dims", [[2**60], [2**40, 2**40, 2**40], [-1], [1] * 40, [3], [1, 1, 1]])
def test_dims_that_the_data_does_not_account_for(dims: list[int]) -> None:
    tensor = TensorProto(data_type=1, dims=dims, raw_data=b"\0" * 8, name="t")
    with pytest.raises(ArgumentError, match="tensor 't'"):
        load(model_of(tensor).SerializeToString())


def test_computed_tensors_have_a_limit() -> None:
    shape = numpy_helper.from_array(np.array([2**20, 2**20]), "shape")
    nodes = [helper.make_node("ConstantOfShape", ["shape"], ["y"])]
    with pytest.raises(ArgumentError, match=r"tensor 'y'.*max_elements"):
        load(model_of(shape, nodes=nodes))


def test_limits_of_bytes_and_nodes(tmp_path: Path) -> None:
    data = model_of().SerializeToString()
    (tmp_path / "m.onnx").write_bytes(data)
    for model in (data, tmp_path / "m.onnx", str(tmp_path / "m.onnx"), model_of()):
        assert load(model, max_bytes=len(data)).outputs
        with pytest.raises(ArgumentError, match="max_bytes"):
            load(model, max_bytes=len(data) - 1)
    chain = [helper.make_node("Relu", ["x"], ["y"])] * 3
    with pytest.raises(ArgumentError, match="3 nodes"):
        load(model_of(nodes=chain), max_nodes=2)
    # Empty messages: two bytes each, a hundred bytes of memory each.
    many = b"\x3a\x80\x89\x7a" + b"\x0a\x00" * 1_000_000
    with pytest.raises(ArgumentError, match="max_nodes"):
        load(many, max_nodes=1000)


def test_messages_within_messages_need_no_recursion() -> None:
    data = b""
    for _ in range(20_000):  # a graph in an attribute of a node of a graph
        attribute = b"\x32" + _length(len(data)) + data
        node = b"\x2a" + _length(len(attribute)) + attribute
        data = b"\x0a" + _length(len(node)) + node
    with pytest.raises(ArgumentError, match="model"):
        load(b"\x3a" + _length(len(data)) + data)


def _length(number: int) -> bytes:
    digits = []
    while number > 127:
        digits.append(number & 127 | 128)
        number >>= 7
    return bytes([*digits, number])


def test_work_follows_the_bytes() -> None:
    def calls(count: int) -> int:
        nodes = [helper.make_node("Relu", [f"t{i}"], [f"t{i + 1}"]) for i in range(count)]
        nodes[0].input[0], nodes[-1].output[0] = "x", "y"
        data = model_of(nodes=nodes).SerializeToString()
        return calls_of(lambda: load(data))

    calls(10)
    assert calls(8_000) < 9 * calls(1_000)  # 8 in proportion, 64 if quadratic


def test_subgraphs_are_refused_by_name() -> None:
    inner = helper.make_graph([helper.make_node("Relu", ["x"], ["z"])], "i", [], [])
    node = helper.make_node("SequenceMap", ["x"], ["y"], body=inner)
    with pytest.raises(UnsupportedError, match="body' of 'SequenceMap', a subgraph"):
        load(model_of(nodes=[node]))


@pytest.mark.parametrize("model", [b"", b"\x00", b"not a model", 3, None, "/dev/null", "/nowhere"])
def test_no_model(model: Any) -> None:
    with pytest.raises(ArgumentError, match="model"):
        load(model)


class TestExternalData:
    def model(self, folder: Path, location: str, **said: Any) -> Path:
        tensor = TensorProto(data_type=1, dims=[4], name="t", data_location=1)
        for key, value in {"location": location, **said}.items():
            tensor.external_data.add(key=key, value=str(value))
        path = folder / "models" / "m.onnx"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(model_of(tensor).SerializeToString())
        return path

    def test_beside_the_model(self, tmp_path: Path) -> None:
        path = self.model(tmp_path, "weights/w.bin", offset=4, length=16)
        (path.parent / "weights").mkdir()
        (path.parent / "weights" / "w.bin").write_bytes(np.arange(6, dtype=np.float32).tobytes())
        np.testing.assert_array_equal(load(path).constants["t"], [1, 2, 3, 4])
        with pytest.raises(ArgumentError, match="path of the model"):
            load(path.read_bytes())
        with pytest.raises(ArgumentError, match="max_bytes"):
            load(self.model(tmp_path, "weights/w.bin"), max_bytes=15)

    def test_one_file_for_many_tensors_counts_each_time(self, tmp_path: Path) -> None:
        tensors = []
        for index in range(100):
            tensors.append(TensorProto(data_type=1, dims=[1 << 18], name=f"t{index}"))
            tensors[-1].data_location = 1
            tensors[-1].external_data.add(key="location", value="w.bin")
        (tmp_path / "w.bin").write_bytes(bytes(1 << 20))
        (tmp_path / "m.onnx").write_bytes(model_of(*tensors).SerializeToString())
        with pytest.raises(ArgumentError, match="max_bytes"):
            load(tmp_path / "m.onnx", max_bytes=10 << 20)

    @pytest.mark.parametrize(
        "location", ["", "../w.bin", "a/../../w.bin", "/etc/hostname", "c:\\w", "..\\w", "w\0", "."]
    )
    def test_elsewhere(self, tmp_path: Path, location: str) -> None:
        (tmp_path / "w.bin").write_bytes(bytes(16))
        with pytest.raises(ArgumentError, match="external data of 't'"):
            load(self.model(tmp_path, location))

    def test_links(self, tmp_path: Path) -> None:
        path = self.model(tmp_path, "w.bin")
        (tmp_path / "w.bin").write_bytes(bytes(16))
        (path.parent / "w.bin").symlink_to(tmp_path / "w.bin")
        with pytest.raises(ArgumentError, match="a link to elsewhere"):
            load(path)
        (path.parent / "w.bin").unlink()
        (path.parent / "here.bin").write_bytes(bytes(16))
        (path.parent / "w.bin").symlink_to("here.bin")
        assert load(path).constants["t"].shape == (4,)

    def test_a_pipe_does_not_block(self, tmp_path: Path) -> None:
        path = self.model(tmp_path, "w.bin")
        os.mkfifo(path.parent / "w.bin")
        with pytest.raises(ArgumentError, match="ordinary file"):
            load(path)

    @pytest.mark.parametrize(
        "said",
        [
            {"length": 15},
            {"length": 2**60},
            {"offset": 1},
            {"offset": -1},
            {"offset": "9" * 5000},
            {"length": ""},
        ],
    )
    def test_ranges(self, tmp_path: Path, said: dict[str, Any]) -> None:
        path = self.model(tmp_path, "w.bin", **said)
        (path.parent / "w.bin").write_bytes(bytes(16))
        with pytest.raises(ArgumentError, match="external data of 't'"):
            load(path)


def test_exported() -> None:
    assert pq.onnx.load is load


@pytest.mark.parametrize("number", [0, 1, 3])
def test_a_split_has_as_many_outputs_as_it_says(number: int) -> None:
    """Of fewer than there are, onnx's inference of dims ends the process."""
    node = onnx.helper.make_node("Split", ["x"], ["y", "z"], num_outputs=number)
    ends = [onnx.helper.make_tensor_value_info(name, 1, [2, 8]) for name in "xyz"]
    graph = onnx.helper.make_graph([node], "one", ends[:1], ends[1:])
    opsets = [onnx.helper.make_opsetid("", 18)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
    with pytest.raises(ArgumentError, match=f"num_outputs {number}; wanted 2"):
        pq.onnx.load(model)
