"""PyTorch's quantized layers swapped for ours: the same codes, and a model that torch traces."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError, DTypeError
from pyonednn_q.native import runtime

torch: Any = pytest.importorskip("torch", reason="torch is not installed")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")


@pytest.fixture
def swapping() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.ao warns when it is imported
        import pyonednn_q as pq

        return pq.torch


def converted(kind: str, images: Any, *, bias: bool = True) -> Any:
    """Return a quantized model of fused, grouped and strided layers."""
    nn, quantization = torch.nn, torch.ao.quantization
    torch.manual_seed(len(kind))
    torch.backends.quantized.engine = "x86"
    bodies = {
        "2-d": [
            nn.Conv2d(4, 32, 3, padding=1, bias=bias),
            nn.ReLU(),
            nn.Conv2d(32, 16, 3, stride=2, groups=2, dilation=2, bias=bias),
            nn.Flatten(),
            nn.LazyLinear(10, bias=bias),
        ],
        "1-d": [nn.Conv1d(4, 24, 3, padding=1, bias=bias), nn.ReLU(), nn.LazyLinear(7, bias=bias)],
        "3-d": [
            nn.Conv3d(4, 8, 2, bias=bias),
            nn.ReLU(),
            nn.Flatten(),
            nn.LazyLinear(5, bias=bias),
        ],
    }
    model = nn.Sequential(
        quantization.QuantStub(), *bodies[kind], quantization.DeQuantStub()
    ).eval()
    model(images)
    model = quantization.fuse_modules(model, ["1", "2"])
    model.qconfig = quantization.get_default_qconfig("x86")
    observed = quantization.prepare(model)
    observed(images)
    return quantization.convert(observed)


SHAPES = {"2-d": (3, 4, 12, 11), "1-d": (3, 4, 9), "3-d": (2, 4, 5, 4, 4)}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", SHAPES)
def test_the_same_codes(kind: str, bias: bool, swapping: Any) -> None:
    images = torch.randn(SHAPES[kind], generator=torch.Generator().manual_seed(1))
    model = converted(kind, images, bias=bias)
    ours = swapping.swap(model, images, saturation="allow")  # reduce_range: within 7 bits
    y, theirs = ours(images), model(images)
    assert y.dtype == torch.float32
    step = next(m.scale for m in reversed(list(model)) if hasattr(m, "scale"))
    apart = ((y - theirs) / step).abs().numpy()
    if runtime.isa().has_vnni():
        np.testing.assert_array_equal(y.numpy(), theirs.numpy())
    assert apart.max() <= 2  # a neighbour in one layer moves the next
    assert not any("ao.nn" in type(each).__module__ for each in ours.modules())
    assert any("ao.nn" in type(each).__module__ for each in model.modules())


def test_torch_traces_it(swapping: Any) -> None:
    images = torch.randn(SHAPES["2-d"], generator=torch.Generator().manual_seed(1))
    ours = swapping.swap(converted("2-d", images), images, saturation="allow")
    y = ours(images)
    exported = torch.export.export(ours, (images,))
    names = [str(n.target) for n in exported.graph.nodes if n.op == "call_function"]
    assert names.count("pyonednn_q.quantized_layer.default") == 3
    assert torch.equal(exported.module()(images), y)
    compiled = torch.compile(ours, fullgraph=True, dynamic=True, backend="aot_eager")
    assert torch.equal(compiled(images), y)
    assert torch.equal(compiled(images[:2]), ours(images[:2]))


def test_the_operator_is_sound(swapping: Any) -> None:
    """Torch's own checks: schema, fake kernel, no gradient, dynamic shapes."""
    images = torch.randn(SHAPES["2-d"])
    layer = swapping.swap(converted("2-d", images), images, saturation="allow")[1]
    tensors = (images, layer.wei, layer.wei_scale, layer.bias)
    window = ([1, 1], [1, 1], [1, 1], 1)
    results = torch.library.opcheck(
        torch.ops.pyonednn_q.quantized_layer.default,
        (*tensors, 0.02, 128, 0.03, 5, *window, True, "allow"),
    )
    assert set(results.values()) == {"SUCCESS"}


def test_saved_and_loaded(swapping: Any, tmp_path: Any) -> None:
    images = torch.randn(SHAPES["1-d"])
    ours = swapping.swap(converted("1-d", images), images, saturation="allow")
    torch.save(ours, tmp_path / "model.pt")
    again = torch.load(tmp_path / "model.pt", weights_only=False)
    assert torch.equal(again(images), ours(images))


def test_what_cannot_be_swapped_is_named(swapping: Any) -> None:
    images = torch.randn(SHAPES["1-d"])
    model = converted("1-d", images)
    with pytest.raises(ArgumentError, match="model"):
        swapping.swap(torch.nn.Linear(2, 2), images)
    with pytest.raises(ArgumentError, match="model"):
        swapping.swap(42, images)
    with pytest.raises(ArgumentError, match="saturation"):
        swapping.swap(model, images, saturation="maybe")
    with pytest.raises(ArgumentError, match="layer"):
        swapping.QuantizedLayer(torch.nn.Linear(2, 2), 0.1, 3)
    half = torch.ao.nn.quantized.dynamic.Linear(3, 2, dtype=torch.float16)
    with pytest.raises((ArgumentError, DTypeError), match="layer"):
        swapping.QuantizedLayer(half, 0.1, 3)
    unused = torch.nn.ModuleDict({"used": model, "not": converted("1-d", images)})
    unused.forward = unused["used"].forward
    with pytest.raises(ArgumentError, match="example"):
        swapping.swap(unused, images)
