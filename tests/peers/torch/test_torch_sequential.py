"""Layers of torch one behind the other: torch's results, and those of `network.sequential`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq

pytest.importorskip("onnxscript", reason="onnxscript is not installed")
torch: Any = pytest.importorskip("torch", reason="torch is not installed")
nn = torch.nn

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")


def trained(*layers: Any, images: Any) -> Any:
    """Return a model with statistics in its batch norms."""
    model = nn.Sequential(*layers)
    for _ in range(3):
        model(images)
    return model.eval()


def roundings(model: Any, images: Any) -> float:
    """Bound how far two float32 runtimes may be apart: each rounds after every addition.

    A layer adds as many products as its weights have for an output, or as many values as a window
    holds; functions are within 8 units (`tools/measure/function_errors.py` measures 5.5). Each
    rounding is 2^-24 of the largest value between layers.
    """
    count, largest = 0, 1.0
    for layer in model:
        before, images = images, layer(images)
        largest = max(largest, float(images.abs().max()))
        weights = [each.numel() // len(each) for each in layer.parameters() if each.ndim > 1]
        count += 8 + sum(weights) + before.numel() // images.numel()
    return 2 * count * 2.0**-24 * largest


def same(model: Any, images: Any) -> None:
    got: Any = pq.load(pq.torch.load(model, images))(images)
    right = model.eval()(images).detach().numpy()
    assert np.abs(got - right).max() <= roundings(model, images)


def test_every_kind_of_layer_computes_what_torch_does() -> None:
    torch.manual_seed(0)
    images = torch.randn(2, 3, 16, 16)
    layers = [
        nn.Sequential(nn.Conv2d(3, 8, 3, padding="same", dilation=2), nn.BatchNorm2d(8), nn.SiLU()),
        nn.Conv2d(8, 8, (3, 1), groups=2, stride=2, padding="valid", bias=False),
        nn.PReLU(8),
        nn.MaxPool2d(2, stride=1, padding=1),
        nn.ConvTranspose2d(8, 6, 3, stride=2, padding=1, groups=2),
        nn.BatchNorm2d(6, affine=False),
        nn.AvgPool2d(3, 2, 1),
        nn.Dropout(0.5),
        nn.AdaptiveAvgPool2d((1, 1)),
        nn.Flatten(),
        nn.Linear(6, 10),
        nn.Identity(),
        nn.Sigmoid(),
    ]
    same(trained(*layers, images=images), images)


@pytest.mark.parametrize(
    "activation",
    [
        *("ReLU", "ReLU6", "Tanh", "Mish", "GELU", "Hardsigmoid", "Hardswish", "Sigmoid", "SiLU"),
        *("LeakyReLU", "ELU", "Hardtanh", "PReLU"),
    ],
)
def test_every_activation_is_torchs_and_joins_its_layer(activation: str) -> None:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(8, 8), getattr(nn, activation)())
    images = 4 * torch.randn(5, 8)
    same(model, images)
    quantized = pq.torch.quantize(model, [images]).model()
    quantized(images)
    assert [node.how for node in quantized.nodes] == [
        "quantizer",
        "INT8 inner_product",
    ]


def test_gelu_by_tanh_is_another() -> None:
    torch.manual_seed(1)
    same(nn.Sequential(nn.Linear(8, 8), nn.GELU("tanh")), 4 * torch.randn(5, 8))


@pytest.mark.parametrize(("spatial", "ending"), [(1, "1d"), (3, "3d")])
def test_other_dimensions(spatial: int, ending: str) -> None:
    torch.manual_seed(2)
    images = torch.randn(2, 3, *([6] * spatial))
    layers = [
        ("Conv", (3, 4, 3)),
        ("BatchNorm", (4,)),
        ("MaxPool", (2,)),
        ("AdaptiveAvgPool", (1,)),
    ]
    made = (getattr(nn, name + ending)(*given) for name, given in layers)
    same(trained(*made, nn.Flatten(), images=images), images)


def test_torch_and_operators_in_sequence_make_one_graph() -> None:
    """The same layers written twice become the same codes: nothing reads either in another way."""
    torch.manual_seed(3)
    images = torch.randn(4, 3, 12, 12)
    conv, dense = nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.Linear(8 * 3 * 3, 5)
    model = nn.Sequential(conv, nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), dense, nn.Tanh())
    arrays = [each.detach().numpy() for layer in (conv, dense) for each in layer.parameters()]
    ours = pq.network.sequential(
        pq.Conv(*arrays[:2], stride=2, padding=1),
        pq.Eltwise("relu"),
        pq.network.Pool("max", 2, stride=2),
        pq.network.Reshape((-1, 8 * 3 * 3)),
        pq.InnerProduct(*arrays[2:]),
        pq.Eltwise("tanh"),
    )
    found = [pq.torch.quantize(model, [images]), pq.calibrate(ours, [images.numpy()])]
    models = [each.model() for each in found]
    got, want = (each(images.numpy()) for each in models)
    np.testing.assert_array_equal(got, want, strict=True)
    hows = [[node.how for node in each.nodes] for each in models]
    assert hows[0] == hows[1]
