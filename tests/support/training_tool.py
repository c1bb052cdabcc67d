"""Tensors that the training tool's ranges are compared for, drawn alike where each side runs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pyonednn_q.quantize import LayerSettings

os.environ.setdefault("NNCF_TORCH_LEGACY_TRACING", "1")  # it looks when it is imported
Array = np.ndarray[Any, Any]
BATCH = 2


def drawn(tensors: str) -> tuple[Array, Array]:
    """Return weights (4, 3, 3, 3) and samples (6, 3, 5, 5) in float32.

    Samples, and channels of the weights, differ in size; "mostly unsigned" is below 0 in the first
    sample of the last channel alone, "small" below what the tool takes for a range at the least.
    """
    rng = np.random.default_rng(7)
    wei = rng.uniform(-1, 1, (4, 3, 3, 3)) * np.array([1.0, 0.1, 0.4, 0.02])[:, None, None, None]
    sizes = np.array([1.0, 5.0, 0.5, 2.0, 3.0, 1.5])[:, None, None, None]
    src = rng.normal(size=(6, 3, 5, 5)) * sizes * np.array([1.0, 0.3, 2.0])[:, None, None]
    if tensors == "small":
        wei, src = wei * 0.05, src * 0.01
    elif tensors != "signed":
        wei, src = np.abs(wei), np.abs(src)
    if tensors == "mostly unsigned":
        wei[3, 2], src[0, 2, :2] = -wei[3, 2], -src[0, 2, :2]
    return wei.astype(np.float32), src.astype(np.float32)


def exported(one: dict[str, Any]) -> dict[str, Any]:
    """Return the ranges of weights and source that the tool exports for a configuration."""
    import torch
    from nncf import NNCFConfig
    from nncf.torch import create_compressed_model, register_default_init_args
    from nncf.torch.initialization import PTInitializingDataLoader

    reads = {"get_inputs": lambda _, item: ((item[0],), {}), "get_target": lambda _, item: item[1]}
    wei, src = (torch.from_numpy(each) for each in drawn(one["tensors"]))
    samples = torch.utils.data.TensorDataset(src, torch.zeros(len(src)))
    loader = type("Loader", (PTInitializingDataLoader,), reads)(
        torch.utils.data.DataLoader(samples, batch_size=BATCH)
    )
    network = torch.nn.Sequential(torch.nn.Conv2d(wei.shape[1], wei.shape[0], 3, bias=False))
    network[0].weight.data = wei.clone()
    still = {"batchnorm_adaptation": {"num_bn_adaptation_samples": 0}}
    section = one["section"] | {"initializer": one["section"]["initializer"] | still}
    config = register_default_init_args(
        NNCFConfig.from_dict(
            {
                "input_info": {"sample_size": [1, *src.shape[1:]]},
                "target_device": one["target_device"],
                "compression": section,
            }
        ),
        loader,
        criterion=torch.nn.MSELoss(),
    )
    control, _ = create_compressed_model(network.eval(), config, dump_graphs=False)
    found = {}
    for name, quantizer in control.all_quantizations.items():
        role = "activations" if type(name).__name__.startswith("Non") else "weights"
        with torch.no_grad():
            values = wei if role == "weights" else src
            prepared = quantizer._prepare_export_quantization(values.clone())
        _, top, bottom, low, high = prepared
        ends = {"low": low.flatten().tolist(), "high": high.flatten().tolist()}
        found[role] = {**ends, "levels": top - bottom + 1, "bits": quantizer.num_bits}
    return found


def normalized(wei: list[Array], samples: Array, section: dict[str, Any]) -> list[list[Array]]:
    """Return mean and variance of batch norms behind convolutions, as the tool adapts them.

    Parameters
    ----------
    wei : list of (OC, IC, 1, 1) ndarray
        Of each convolution; between them is a relu.
    samples : (N, C, H, W) ndarray
        Read `BATCH` at a time.
    section : dict
        The algorithm's.
    """
    import torch
    from nncf import NNCFConfig
    from nncf.torch import create_compressed_model, register_default_init_args
    from nncf.torch.initialization import PTInitializingDataLoader

    reads = {"get_inputs": lambda _, item: ((item[0],), {}), "get_target": lambda _, item: item[1]}
    data = torch.utils.data.TensorDataset(torch.from_numpy(samples), torch.zeros(len(samples)))
    loader = type("Loader", (PTInitializingDataLoader,), reads)(
        torch.utils.data.DataLoader(data, batch_size=BATCH)
    )
    parts: list[torch.nn.Module] = []
    for one in wei:
        parts += [torch.nn.Conv2d(one.shape[1], len(one), 1, bias=False)]
        parts[-1].weight.data = torch.from_numpy(one.copy())
        parts += [torch.nn.BatchNorm2d(len(one)), torch.nn.ReLU()]
    config = NNCFConfig.from_dict(
        {"input_info": {"sample_size": [1, *samples.shape[1:]]}, "compression": section}
    )
    config = register_default_init_args(config, loader, criterion=torch.nn.MSELoss())
    _, found = create_compressed_model(
        torch.nn.Sequential(*parts).eval(), config, dump_graphs=False
    )
    norms = [each for each in found.modules() if isinstance(each, torch.nn.BatchNorm2d)]
    return [[each.running_mean.numpy(), each.running_var.numpy()] for each in norms]


def settings_of(case: dict[str, Any]) -> LayerSettings:
    """Return what a configuration of the file says of its one layer."""
    from pyonednn_q.quantize import read_config

    config = {"target_device": case["target_device"], "compression": case["section"]}
    return read_config(config).layers(["conv"])["conv"]


def assert_exported(case: dict[str, Any], exported: dict[str, Any]) -> None:
    """Compare the ranges of weights and source with those that the tool exports.

    Means, medians and sigmas are rounded to float32 at each step there, and once here; the range
    that is made of them is a sum and a quotient, of an end and of itself: four roundings.
    """
    layer, (wei, src) = settings_of(case), drawn(case["tensors"])
    batches = {"weights": [wei], "activations": np.split(src, len(src) // BATCH)}
    for at, role in enumerate(("weights", "activations")):
        settings, wanted = getattr(layer, role), exported[role]
        assert (settings.bits, settings.role) == (wanted["bits"], role)
        state = settings.estimator(axis=at)
        for batch in batches[role]:
            state.update(batch)
        fq = settings.fake_quantize(state)
        assert fq.levels == wanted["levels"]
        ends = np.array([wanted["low"], wanted["high"]], np.float32)
        found = np.stack([end.spread(ends.shape[1]) for end in (fq.input_low, fq.input_high)])
        rounded = settings.range_kind not in {"min_max", "percentile"}
        most = (4 if rounded else 0) * np.spacing(np.abs(ends).max(axis=0))
        assert (np.abs(found - ends.astype(np.float64)) <= most).all(), (role, found, ends)
