"""What torchao's PT2E makes: read with its own codes, and asked for what oneDNN does exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

pytest.importorskip("onnxscript", reason="onnxscript is not installed")
pytest.importorskip("torch", reason="torch is not installed")

import torch
from torch import nn
from torch.export import Dim

import pyonednn_q as pq
from pyonednn_q.errors import ArgumentError
from support.peers.torch_models import MODELS

pt2e: Any = pytest.importorskip(  # it ignores what torch warns of itself
    "torchao.quantization.pt2e.quantize_pt2e", reason="torchao is not installed"
)
x86: Any = pytest.importorskip("torchao.quantization.pt2e.quantizer.x86_inductor_quantizer")
convert_pt2e, prepare_pt2e = pt2e.convert_pt2e, pt2e.prepare_pt2e

# Of torch's and torchao's own code.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")

NAMES = list(MODELS)


class Residual(nn.Module):
    """What torchao's quantizer for x86 takes: a module for each activation."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.norm = nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16)
        self.relu1, self.relu2, self.pool = nn.ReLU(), nn.ReLU(), nn.MaxPool2d(2)
        self.conv2, self.conv3 = nn.Conv2d(16, 16, 3, 1, 1), nn.Conv2d(16, 24, 1)
        self.fc = nn.Linear(24 * 8 * 8, 10)

    def forward(self, x: Any) -> Any:
        x = self.relu1(self.norm(self.conv1(x)))
        x = self.pool(self.relu2(x + self.conv2(x)))
        return self.fc(torch.flatten(self.conv3(x), 1))


class Recorder(torch.fx.Interpreter):
    """Runs a program as torch does, and keeps what each node computes."""

    def __init__(self, program: Any) -> None:
        super().__init__(program.module())
        self.known: dict[str, Any] = {}

    def run_node(self, n: Any) -> Any:
        self.known[n.name] = super().run_node(n)
        return self.known[n.name]


def for_x86(**options: Any) -> Any:
    quantizer = x86.X86InductorQuantizer()
    return quantizer.set_global(x86.get_default_x86_inductor_quantization_config(**options))


def called(model: Any, batch: Any) -> Any:
    with torch.no_grad():
        return model(**batch) if isinstance(batch, dict) else model(batch)


def observed(model: Any, quantizer: Any, batches: list[Any]) -> Any:
    first = batches[0]
    args, kwargs = ((), first) if isinstance(first, dict) else ((first,), {})
    shapes = {name: {0: Dim.AUTO} for name in kwargs} or ({0: Dim.AUTO},)
    is_fixed = isinstance(quantizer, x86.X86InductorQuantizer)  # which reads no open lengths
    program = torch.export.export(model, args, kwargs, dynamic_shapes=None if is_fixed else shapes)
    ready = prepare_pt2e(program.module(check_guards=is_fixed), quantizer)
    for batch in batches:
        called(ready, batch)
    return ready


def codes_of_both(converted: Any, x: Any) -> dict[str, tuple[Any, Any, Any]]:
    """Return ours, torch's, and the reals in units of codes that torch rounds, by quantizer."""
    by_name = x if isinstance(x, dict) else {}
    arrays = list(by_name.values()) or [x]
    program = torch.export.export(converted, () if by_name else (x,), by_name)
    graph = pq.torch.load(program)
    recorder = Recorder(program)
    with torch.no_grad():
        recorder.run(*arrays)
    quantizers = [
        n for n in recorder.module.graph.nodes if "quantized_decomposed.quantize" in str(n.target)
    ]
    names = {node.outputs[0] for node in graph.nodes if node.operator == "QuantizeLinear"}
    assert {each.name for each in quantizers} == names
    outputs = {name: graph.tensors[name] for name in names}
    model = pq.load(replace(graph, outputs=outputs), exact_rounding=True)
    own = model.run({name: each.numpy() for name, each in zip(graph.inputs, arrays, strict=True)})
    return {
        each.name: (
            own[each.name].astype(int),
            recorder.known[each.name].numpy().astype(int),
            recorder.known[each.args[0].name].numpy() / each.args[1],
        )
        for each in quantizers
    }


def running(graph: Any, batch: Any) -> tuple[Any, list[str]]:
    """Return a model's first result, and what its layers of constant weights run as."""
    model = pq.load(graph)
    results = model(batch)
    ways = [node.how.partition(" ")[0] for node in model.nodes]
    first = next(iter(results.values())) if isinstance(results, dict) else results
    return first, [way for way in ways if way in {"INT8", "FP32"}]


@pytest.mark.parametrize("reduce_range", [False, True])
def test_codes_of_the_quantizer_for_x86_are_those_of_torch(reduce_range: bool) -> None:
    """Sources leave what was observed: codes of 7 bits end there, which is a Clip in ONNX."""
    torch.manual_seed(0)
    model = Residual().eval()
    batches = [torch.randn(4, 3, 32, 32) for _ in range(3)]
    quantizer = for_x86(reduce_range=reduce_range)
    both = codes_of_both(convert_pt2e(observed(model, quantizer, batches)), 3 * batches[0])
    assert len(both) == 6
    most = max(theirs.max() for _, theirs, _ in both.values())
    assert most == (127 if reduce_range else 255)
    for ours, theirs, reals in both.values():
        if (ours != theirs).any():
            # The first that differs: by one, where torch's own float32 lies beside a tie.
            apart = np.abs(np.abs(reals - np.floor(reals)) - 0.5)[ours != theirs]
            assert np.abs(ours - theirs).max() == 1
            assert apart.max() < 2.0**-12
            break


def test_torch_exports_the_same_by_itself() -> None:
    torch.manual_seed(0)
    x = torch.randn(4, 3, 32, 32)
    converted = convert_pt2e(observed(Residual().eval(), for_x86(), [x]))
    proto = torch.onnx.export(converted, (x,), dynamo=True, verbose=False).model_proto
    graph = pq.torch.load(converted, x)
    np.testing.assert_array_equal(pq.load(proto)(x), pq.load(graph)(x))


def with_exact_arithmetic(ready: Any) -> None:
    """Make scales of observers powers of two, and biases multiples of 2^-16."""
    for observer in ready.modules():
        if getattr(observer, "min_val", None) is None or not observer.min_val.numel():
            continue
        if observer.ch_axis != -1 if hasattr(observer, "ch_axis") else False:
            largest = torch.maximum(-observer.min_val, observer.max_val)
            scale = 2.0 ** torch.ceil(torch.log2(largest / 127))
            observer.min_val, observer.max_val = -127 * scale, 127 * scale
        else:
            lo, hi = observer.min_val.clamp(max=0), observer.max_val.clamp(min=0)
            scale = 2.0 ** torch.ceil(torch.log2((hi - lo) / 254))
            zero = torch.round(-lo / scale)
            observer.min_val, observer.max_val = -zero * scale, (255 - zero) * scale
    for name, parameter in ready.named_parameters():
        if name.endswith("bias"):
            parameter.data = torch.round(parameter.data * 2**16) / 2**16


@pytest.mark.parametrize("name", ["resnet", "unet"])
def test_codes_are_equal_where_the_arithmetic_of_torch_is_exact(name: str) -> None:
    small = MODELS[name]
    ready = observed(small.ready(), pq.torch.ExactQuantizer(), [small.draw(4) for _ in range(3)])
    with_exact_arithmetic(ready)
    converted, x = convert_pt2e(ready), small.draw(4)
    for ours, theirs, _ in codes_of_both(converted, x).values():
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(pq.load(pq.torch.load(converted, x))(x), called(converted, x))


@pytest.mark.parametrize("name", NAMES)
def test_what_it_asks_for_is_int8_in_all_layers(name: str, tmp_path: Path) -> None:
    small = MODELS[name]
    model = small.ready()
    ready = observed(model, pq.torch.ExactQuantizer(), [small.draw(4) for _ in range(3)])
    converted, batch = convert_pt2e(ready), small.draw(4)
    graph = pq.torch.load(converted, batch)
    ours, ways = running(graph, batch)
    assert ways == ["INT8"] * small.layers
    for own, theirs, _ in codes_of_both(converted, batch).values():
        assert np.abs(own - theirs).max() <= 1
    floats = called(model, batch)
    floats = (floats["logits"] if isinstance(floats, dict) else floats).numpy()
    assert 10 * np.log10(np.square(floats).mean() / np.square(ours - floats).mean()) > 30
    pq.onnx.save(graph, tmp_path / "int8.onnx")
    np.testing.assert_array_equal(running(tmp_path / "int8.onnx", batch)[0], ours)


class Between(nn.Module):
    """Two convolutions, and what stands between them."""

    def __init__(self, between: Callable[[Any], Any]) -> None:
        super().__init__()
        self.between = between
        self.first, self.second = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 4, 1)

    def forward(self, *images: Any) -> Any:
        return self.second(self.between(self.first(images[0])))


INT8 = "INT8 convolution"


@pytest.mark.parametrize(
    ("between", "wanted"),
    [
        pytest.param(lambda x: x * torch.sigmoid(x), [INT8, INT8], id="written out"),
        pytest.param(lambda x: (x + 1) / 2, [INT8, INT8], id="scalars"),
        pytest.param(
            lambda x: torch.cat([each.relu() for each in x.chunk(2, 1)][::-1], 1),
            [INT8, "codes moved", *["codes computed"] * 2, "codes moved", INT8],
            id="chunks",
        ),
        pytest.param(
            lambda x: nn.functional.interpolate(x, scale_factor=2),
            [INT8, "codes moved", INT8],
            id="nearest",
        ),
        pytest.param(
            lambda x: x.mean((2, 3), keepdim=True), [INT8, "codes computed", INT8], id="mean"
        ),
        pytest.param(
            nn.ConvTranspose2d(8, 8, 2, 2, groups=2), [INT8, "INT8 deconvolution", INT8], id="up"
        ),
    ],
)
def test_what_stands_between_layers(between: Callable[[Any], Any], wanted: list[str]) -> None:
    x = torch.randn(2, 3, 8, 8)
    model = Between(between).eval()
    program = torch.export.export(model, (x,))
    ready = prepare_pt2e(program.module(), pq.torch.ExactQuantizer())
    called(ready, x)
    converted = convert_pt2e(ready)
    loaded = pq.load(pq.torch.load(converted, x))
    largest = called(model, x).abs().max()
    assert np.abs(loaded(x) - called(converted, x).numpy()).max() < largest / 128
    assert [node.how for node in loaded.nodes] == ["quantizer", *wanted]


def test_what_moves_codes_has_one_observer() -> None:
    small = MODELS["unet"]
    x = small.draw(2)
    ready = observed(small.ready(), pq.torch.ExactQuantizer(), [x])
    graph = pq.torch.load(convert_pt2e(ready), x)
    makers = {name: node for node in graph.nodes for name in node.outputs}
    moved = [node for node in graph.nodes if node.operator in {"MaxPool", "Concat"}]
    assert len(moved) == 2
    for node in moved:
        (behind,) = (each for each in graph.nodes if node.outputs[0] in each.inputs)
        assert behind.operator == "QuantizeLinear"
        assert {makers[name].inputs[1:] for name in node.inputs} == {behind.inputs[1:]}


def test_options_of_the_quantizer() -> None:
    x = torch.randn(4, 3, 32, 32)
    graph = pq.torch.load(
        convert_pt2e(observed(Residual().eval(), pq.torch.ExactQuantizer(wei_bits=7), [x])), x
    )
    weights = [each for each in graph.constants.values() if each.dtype == np.int8 and each.ndim > 1]
    assert {int(np.abs(each.astype(int)).max()) for each in weights} == {63}
    with pytest.raises(ArgumentError, match="wei_bits"):
        pq.torch.ExactQuantizer(wei_bits=9)
    with pytest.raises(ArgumentError, match="observer"):
        pq.torch.ExactQuantizer(cast("Any", 3))


def test_ranges_of_each_call_are_refused_by_name() -> None:
    x = torch.randn(4, 64)
    model = nn.Sequential(nn.Linear(64, 8)).eval()
    converted = convert_pt2e(observed(model, for_x86(is_dynamic=True), [x]))
    with pytest.raises(ArgumentError, match=r"model: got .*a program that torch.onnx.export takes"):
        pq.torch.load(converted, x)
