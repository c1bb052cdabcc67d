"""Models of torch, of any graph: read as torch computes them, and INT8 in all their layers."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnxscript", reason="onnxscript is not installed")
pytest.importorskip("torch", reason="torch is not installed")

import torch

import pyonednn_q as pq
from pyonednn_q.errors import ArgumentError
from support.peers.torch_models import MODELS

NAMES = list(MODELS)


def result(model: Any, batch: Any) -> Any:
    """Return what torch computes, the first output of several."""
    with torch.no_grad():
        results = model(**batch) if isinstance(batch, dict) else model(batch)
    return (results["logits"] if isinstance(results, dict) else results).numpy()


def ours(model: Any, batch: Any) -> Any:
    results = model(batch)
    return next(iter(results.values())) if isinstance(results, Mapping) else results


def widened(batch: Any) -> Any:
    if isinstance(batch, dict):
        return {name: widened(each) for name, each in batch.items()}
    return batch.double() if batch.is_floating_point() else batch


@pytest.mark.parametrize("name", NAMES)
def test_floats_are_as_near_to_float64_as_those_of_torch(name: str) -> None:
    """Both add up in float32, in orders of their own: neither is four times as far off."""
    small = MODELS[name]
    model = small.ready()
    loaded = pq.load(pq.torch.load(model, small.draw(1)))
    wide = copy.deepcopy(model).double()
    for count in (3, 1):
        batch = small.draw(count)
        right = result(wide, widened(batch))
        own, theirs = (
            np.abs(each - right).max() for each in (ours(loaded, batch), result(model, batch))
        )
        assert own <= 4 * theirs


@pytest.mark.parametrize("name", NAMES)
def test_all_layers_are_int8_in_one_call(name: str, tmp_path: Path) -> None:
    """As data loaders give batches: with labels, or by name with more than the model takes."""
    small = MODELS[name]
    model = small.ready()
    drawn = [small.draw(4) for _ in range(3)]
    labelled = [
        {**each, "idx": torch.arange(4)} if isinstance(each, dict) else (each, torch.zeros(4))
        for each in drawn
    ]
    found = pq.torch.quantize(model, iter(labelled))
    assert len(found.layers) == small.layers
    assert not found.floats
    quantized = found.model()
    batch = small.draw(5)
    right = result(model, batch)
    codes = ours(quantized, batch)
    parts = {part.name: node for node in quantized.nodes for part in node.parts}
    assert {parts[layer].how.partition(" ")[0] for layer in found.layers} == {"INT8"}
    # A code of 256 is off by a 15th of a percent of its range: 40 dB and more, once.
    assert 10 * np.log10(np.square(right).mean() / np.square(codes - right).mean()) > 30
    network = quantized.bound().network()
    arrays = batch if isinstance(batch, dict) else {network.inputs[0]: batch}
    compiled = network({name: tensor.numpy() for name, tensor in arrays.items()})
    np.testing.assert_array_equal(next(iter(compiled.values())), codes)
    found.save(tmp_path / "int8.onnx")
    np.testing.assert_array_equal(ours(pq.load(tmp_path / "int8.onnx"), batch), codes)


def test_a_module_stays_as_it_is() -> None:
    model = MODELS["resnet"].ready().train()
    model.layer1.eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    pq.torch.load(model, torch.zeros(1, 3, 32, 32))
    assert model.training
    assert not model.layer1.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_programs_have_lengths_of_their_own() -> None:
    model, x = MODELS["resnet"].ready(), torch.randn(4, 3, 32, 32)
    fixed = torch.export.export(model, (x,))
    assert pq.torch.load(fixed).inputs["x"].dims == (4, 3, 32, 32)
    batch = {"x": {0: torch.export.Dim("batch")}}
    graph = pq.torch.load(torch.export.export(model, (x,), dynamic_shapes=batch))
    assert graph.symbols == {"x": ("batch", 3, 32, 32)}
    assert not pq.torch.quantize(fixed, [x]).floats
    with pytest.raises(ArgumentError, match="example: got one beside a program"):
        pq.torch.load(fixed, x)


def test_lengths_that_stay_open_are_told() -> None:
    model, x = MODELS["unet"].ready(), torch.randn(2, 3, 32, 32)
    assert not pq.torch.load(model, x, dynamic_shapes={}).symbols
    step = 2 * torch.export.Dim("half", max=64)
    graph = pq.torch.load(model, x, dynamic_shapes={"x": {0: torch.export.Dim.AUTO, 2: step}})
    wide = torch.randn(3, 3, 48, 32)
    right = result(model, wide)
    np.testing.assert_allclose(ours(pq.load(graph), wide), right, atol=1e-5 * np.abs(right).max())


def test_labels_that_a_model_takes_are_left_out_by_an_example() -> None:
    small = MODELS["bert"]
    batch = small.draw(4)
    labelled = {**batch, "labels": torch.tensor([0, 1, 2, 0])}
    found = pq.torch.quantize(small.ready(), [labelled], example=batch)
    assert list(found.source.inputs) == ["input_ids", "attention_mask"]
    assert list(found.source.outputs) != []
    with pytest.raises(ArgumentError, match=r"batches: got \['y'\]; wanted some of"):
        pq.torch.quantize(small.ready(), [{"y": torch.zeros(1)}])


def test_what_is_wrong_is_told_by_name() -> None:
    model, x = MODELS["resnet"].ready(), torch.zeros(1, 3, 32, 32)
    for door in (pq.load, pq.onnx.load, lambda model: pq.calibrate(model, [x])):
        with pytest.raises(ArgumentError, match="ResNet, a model of torch; wanted what pyonednn"):
            door(model)
    with pytest.raises(ArgumentError, match="example: got None"):
        pq.torch.load(model)
    with pytest.raises(ArgumentError, match=r"model: got RuntimeError: .*; wanted a model that"):
        pq.torch.load(model, torch.zeros(1, 4, 32, 32))
    with pytest.raises(ArgumentError, match="model: got int"):
        pq.torch.load(3, x)
    with pytest.raises(ArgumentError, match="batches: got none"):
        pq.torch.quantize(model, [])
    with pytest.raises(ArgumentError, match="batches: got 0 tensors; wanted inputs"):
        pq.torch.quantize(model, [()])
