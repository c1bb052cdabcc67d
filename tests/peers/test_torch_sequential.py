"""A torch.nn.Sequential as a network: torch's own results, and INT8 of it."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.errors import ArgumentError

torch: Any = pytest.importorskip("torch", reason="torch is not installed")
nn = torch.nn
sequential: Any = pytest.importorskip("pyonednn_q.torch").sequential

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")


def trained(*layers: Any, images: Any) -> Any:
    """Return a model with statistics in its batch norms, in training mode."""
    model = nn.Sequential(*layers)
    for _ in range(3):
        model(images)
    return model


def of_all_layers() -> tuple[Any, Any]:
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
    return trained(*layers, images=images), images


def roundings(model: Any, images: Any) -> float:
    """Bound how far two float32 runtimes may be apart: each rounds after every addition.

    A layer adds as many products as its weights have for an output, or as many values as a window
    holds; functions are within 8 units (`tools/function_errors.py` measures 5.5). Of the largest
    value between layers, each rounding is 2^-24.
    """
    count, largest = 0, 1.0
    for layer in model:
        before, images = images, layer(images)
        largest = max(largest, float(images.abs().max()))
        weights = [each.numel() // len(each) for each in layer.parameters() if each.ndim > 1]
        count += 8 + sum(weights) + before.numel() // images.numel()
    return 2 * count * 2.0**-24 * largest


def same(model: Any, images: Any) -> None:
    net = sequential(model, images)
    (got,) = net(images.numpy()).values()
    right = model.eval()(images).detach().numpy()
    assert np.abs(got - right).max() <= roundings(model, images)


def test_every_kind_of_layer_computes_what_torch_does() -> None:
    model, images = of_all_layers()
    assert model.training
    statistics = model[0][1].running_mean.clone()
    net = sequential(model, images)
    assert model.training
    assert torch.equal(model[0][1].running_mean, statistics)
    dst = [node.dst for node in net.nodes]
    layers = ["conv1", "conv2", "pool1", "deconv1", "pool2", "pool3", "reshape1", "innerproduct1"]
    assert dst == layers
    same(model, images)


@pytest.mark.parametrize(
    "activation",
    [
        *("ReLU", "ReLU6", "Tanh", "Mish", "GELU", "Hardsigmoid", "Hardswish", "Sigmoid", "SiLU"),
        *("LeakyReLU", "ELU", "Hardtanh", "PReLU"),
    ],
)
def test_every_activation_is_torchs(activation: str) -> None:
    torch.manual_seed(1)
    same(nn.Sequential(nn.Linear(8, 8), getattr(nn, activation)()), 4 * torch.randn(5, 8))


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


def test_a_sequence_of_torch_becomes_int8() -> None:
    model, images = of_all_layers()
    found = pq.calibrate(sequential(model, images), [images.numpy()])
    right = model.eval()(images).detach().numpy()
    (got,) = found.network(images.numpy()).values()
    assert 0 < np.abs(got - right).max() < 0.05
    again = pickle.loads(pickle.dumps(found))
    (same_codes,) = again.network(images.numpy()).values()
    assert np.array_equal(same_codes, got)


@pytest.mark.parametrize(
    ("layers", "told"),
    [
        (lambda: [nn.Linear(4, 4), nn.Softmax(1)], "model.1: got Softmax"),
        (lambda: [nn.Linear(4, 4), nn.BatchNorm1d(4, track_running_stats=False)], "model.1"),
        (lambda: [nn.Flatten(0)], "model.0.start_dim"),
    ],
)
def test_what_no_operator_has_is_refused_by_name(layers: Any, told: str) -> None:
    with pytest.raises(ArgumentError, match=told):
        sequential(nn.Sequential(*layers()), torch.ones(2, 4))


@pytest.mark.parametrize(
    ("layer", "told"),
    [
        (lambda: nn.MaxPool2d(2, ceil_mode=True), "model.1.ceil_mode"),
        (lambda: nn.AvgPool2d(2, divisor_override=3), "model.1.divisor_override"),
        (lambda: nn.AdaptiveAvgPool2d(2), "model.1.output_size"),
        (lambda: nn.Conv2d(4, 4, 3, padding=1, padding_mode="circular"), "model.1.padding_mode"),
        (lambda: nn.ConvTranspose2d(4, 4, 3, stride=2, output_padding=1), "model.1.output_padding"),
        (lambda: nn.Linear(8, 3), "model.1: got a source of dims"),
    ],
)
def test_options_that_no_operator_has_are_refused_by_name(layer: Any, told: str) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), layer())
    with pytest.raises(ArgumentError, match=told):
        sequential(model, torch.ones(1, 3, 8, 8))


def test_other_objects_are_refused() -> None:
    with pytest.raises(ArgumentError, match="model"):
        sequential(nn.Linear(2, 2), torch.ones(1, 2))
    with pytest.raises(ArgumentError, match="example"):
        sequential(nn.Sequential(nn.Linear(2, 2)), np.ones((1, 2), np.float32))
