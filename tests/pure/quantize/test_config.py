"""The training tool's configuration: what it decides for layers, and what is refused, by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError
from pyonednn_q.quantize import (
    LayerSettings,
    PrecisionSettings,
    TensorSettings,
    assign_bits,
    estimator,
    fq_from_range,
    read_config,
)

SECTION: dict[str, Any] = {
    "algorithm": "quantization",
    "preset": "mixed",
    "overflow_fix": "first_layer_only",
    "export_to_onnx_standard_ops": True,
    "quantize_outputs": True,
    "initializer": {
        "range": {
            "num_init_samples": 300,
            "type": "percentile",
            "params": {"min_percentile": 0.5, "max_percentile": 99.5},
        },
        "batchnorm_adaptation": {"num_bn_adaptation_samples": 512},
        "precision": {
            "type": "hawq",
            "bits": [8, 4],
            "compression_ratio": 1.4,
            "bitwidth_per_scope": [[2, "stem|WEIGHT"], [4, "tail"], [4, "block2|OUTPUT"]],
            "bitwidth_assignment_mode": "strict",
            "iter_number": 50,
            "tolerance": 1e-3,
            "dump_init_precision_data": True,
        },
    },
    "weights": {"bits": 8, "ignored_scopes": ["embed"]},
    "activations": {"signed": True, "unified_scale_ops": [["a", "b"]]},
    "ignored_scopes": "{re}head/.*",
    "scope_overrides": {
        "weights": {
            "{re}block[0-9]": {"bits": 4, "per_channel": False},
            "block2": {"mode": "asymmetric"},
        },
        "activations": {
            "block1": {"mode": "symmetric", "initializer": {"range": {"type": "min_max"}}}
        },
    },
}
NAMES = ("stem", "embed", "block1", "block2", "tail", "head/fc")
CONFIG = {"target_device": "TRIAL", "log_dir": "logs", "compression": SECTION}
PERCENTILE: dict[str, Any] = {"range_kind": "percentile", "percent": (0.5, 99.5), "samples": 300}


def of_weights(**changes: Any) -> TensorSettings:
    return TensorSettings(**{"role": "weights", **PERCENTILE, **changes})


def of_activations(**changes: Any) -> TensorSettings:
    return TensorSettings(**{"signed": True, "symmetric": False, **PERCENTILE, **changes})


def test_what_a_configuration_decides_for_each_layer() -> None:
    found = read_config(CONFIG).layers(NAMES)
    wide = of_activations()
    assert found == {
        "stem": LayerSettings(of_weights(bits=2), wide),
        "embed": LayerSettings(None, wide),
        "block1": LayerSettings(
            of_weights(bits=4),
            of_activations(symmetric=True),
        ),
        "block2": LayerSettings(of_weights(bits=4, symmetric=False), of_activations(bits=4)),
        "tail": LayerSettings(of_weights(bits=4), of_activations(bits=4)),
        "head/fc": LayerSettings(None, None),
    }


def test_what_it_says_of_the_whole() -> None:
    found = read_config(CONFIG)
    assert found.linked == (("a", "b"),)
    assert (found.standard_onnx, found.quantize_inputs, found.quantize_outputs) == (
        True,
        True,
        True,
    )
    assert (found.batch_norm_samples, found.target_device) == (512, "TRIAL")
    assert found.precision == PrecisionSettings("hawq", (4, 8), 1.4, 50, 1e-3, widths="strict")
    assert found.by_hand(NAMES) == {"stem": 2, "tail": 4}
    assert found.unused == (
        "config.log_dir",
        "config.compression.initializer.precision.dump_init_precision_data",
        "config.compression.scope_overrides.activations.block1.initializer",
    )
    assert hash(found) == hash(read_config(CONFIG))


def test_settled_widths_go_into_the_assignment() -> None:
    config = read_config(
        {
            "algorithm": "quantization",
            "initializer": {"precision": {"type": "hawq", "bitwidth_per_scope": [[8, "a"]]}},
        }
    )
    lost = {name: {4: 0.0, 8: 0.0} for name in "ab"}
    costs = {name: {4: 4.0, 8: 8.0} for name in "ab"}
    assert assign_bits(lost, costs, 12.0, by_hand=config.by_hand(["a", "b"])).bits == {
        "a": 8,
        "b": 4,
    }


def test_defaults_are_the_tools() -> None:
    config = read_config({"algorithm": "quantization"})
    (layer,) = config.layers(["conv"]).values()
    assert layer.weights == TensorSettings(8, True, True, True, half_range=True, role="weights")
    assert layer.activations == TensorSettings(8, True, None, False)
    assert layer.weights.range_kind == "mixed_min_max"
    assert (config.batch_norm_samples, config.precision) == (2000, None)
    auto = read_config(
        {"algorithm": "quantization", "initializer": {"precision": {"type": "autoq"}}}
    )
    assert auto.precision is not None
    assert auto.precision.compression_ratio == 0.15


@pytest.mark.parametrize(
    ("device", "fix", "half"),
    [
        ("ANY", "enable", [True, True]),
        ("CPU", "enable", [True, True]),
        ("CPU", "first_layer_only", [False, True]),
        ("CPU", "disable", [False, False]),
        ("CPU_SPR", "enable", [False, False]),
        ("TRIAL", "enable", [False, False]),
    ],
)
def test_weights_use_half_of_the_range_where_the_tool_says_so(
    device: str, fix: str, half: list[bool]
) -> None:
    section = {"algorithm": "quantization", "overflow_fix": fix}
    config = read_config({"target_device": device, "compression": section})
    found = [each.weights for each in config.layers(["a", "b"], first=["b"]).values()]
    assert [each is not None and each.half_range for each in found] == half
    assert [each is not None and each.narrow for each in found] == [not one for one in half]


def test_own_targets_of_a_group_stand_in_place_of_those_of_all() -> None:
    section = {
        "algorithm": "quantization",
        "target_scopes": ["a"],
        "weights": {"target_scopes": ["{re}^b"]},
    }
    found = read_config(section).layers(["a", "b", "ab"])
    assert [name for name, layer in found.items() if layer.weights] == ["b"]
    assert [name for name, layer in found.items() if layer.activations] == ["a"]
    none = read_config({"algorithm": "quantization", "target_scopes": []}).layers(["a"])
    assert none["a"] == LayerSettings(None, None)


def test_ranges_by_scope() -> None:
    ranges = [
        {"type": "min_max", "target_scopes": ["{re}conv"], "target_quantizer_group": "weights"},
        {"type": "threesigma", "ignored_scopes": "head", "target_quantizer_group": "activations"},
        {"type": "mean_percentile", "target_scopes": ["head"], "num_init_samples": 8},
    ]
    config = read_config({"algorithm": "quantization", "initializer": {"range": ranges}})
    found = config.layers(["conv", "head"])
    kinds = {
        name: [each.range_kind for each in (layer.weights, layer.activations) if each]
        for name, layer in found.items()
    }
    assert kinds == {"conv": ["min_max", "three_sigma"], "head": ["mean_percentile"] * 2}
    with pytest.raises(ArgumentError, match=r"^initializer.range: got 0 entries for the weights"):
        config.layers(["conv", "head", "dense"])
    with pytest.raises(ArgumentError, match=r"got 2 entries for the weights of 'head_conv'"):
        read_config(
            {
                "algorithm": "quantization",
                "initializer": {
                    "range": [{"target_scopes": "{re}head"}, {"target_scopes": ["{re}conv"]}]
                },
            }
        ).layers(["head_conv"])


def test_scopes_that_name_no_layer_are_refused() -> None:
    section = {"algorithm": "quantization", "ignored_scopes": ["haed", "{re}stem"]}
    with pytest.raises(ArgumentError, match=r"^names: got no layer of \['haed'\]; wanted scopes"):
        read_config(section).layers(["head", "stem"])
    lax = read_config({**section, "validate_scopes": False}).layers(["head", "stem"])
    assert lax["head"].weights is not None
    assert lax["stem"].weights is None


@pytest.mark.parametrize("name", ["stem", "block1", "block2"])
def test_settings_lead_to_estimators_and_operators(name: str) -> None:
    layer = read_config(CONFIG).layers(NAMES)[name]
    settings = layer.weights
    assert settings is not None
    wei = np.random.default_rng(0).normal(size=(6, 40))
    state = settings.estimator(axis=0)
    state.update(wei)
    wanted = np.percentile(wei, (0.5, 99.5))
    np.testing.assert_allclose(state.range(), wanted, rtol=2.0**-23)
    fq = settings.fake_quantize(state)
    assert fq == fq_from_range(
        *state.range(), settings.bits, symmetric=settings.symmetric, version=2
    )
    other = estimator("min_max", symmetric=True)
    other.update(wei)
    with pytest.raises(ArgumentError, match=r"^state: got an estimator with symmetric=True"):
        settings.fake_quantize(other)


def test_files_lists_and_sections_alone(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"target_device": "TRIAL", "compression": [SECTION]}))
    assert read_config(file).layers(NAMES) == read_config(str(file)).layers(NAMES)
    assert read_config(file).layers(NAMES) == read_config(CONFIG).layers(NAMES)
    alone = {key: SECTION[key] for key in ("algorithm", "preset", "overflow_fix")}
    assert read_config(alone) == read_config({"compression": [alone]})
    for text in ("{", "[" * 100_000):
        file.write_text(text)
        with pytest.raises(ArgumentError, match=r"^config: got .*; wanted JSON( of a few)?"):
            read_config(file)


def section(**keys: Any) -> dict[str, Any]:
    return {"compression": {"algorithm": "quantization", **keys}}


@pytest.mark.parametrize(
    ("config", "refused"),
    [
        ({"compresion": SECTION}, "config.compression: got none beside ('compresion',); wanted an"),
        ({}, "config.compression: got none beside (); wanted an algorithm"),
        (section(weights={"bit": 8}), "config.compression.weights.bit: got an unknown key"),
        (
            {"compression": [SECTION, {"algorithm": "rb_sparsity"}]},
            "config.compression[1].algorithm: got 'rb_sparsity'; wanted quantization: other",
        ),
        ({"compression": [SECTION, SECTION]}, "config.compression: got 2 algorithms"),
        (section(target_device="CPU"), "config.compression.target_device: got an unknown key"),
        ({"target_device": "TPU", "compression": SECTION}, "config.target_device: got 'TPU'"),
        (section(weights={"bits": 3}), "config.compression.weights.bits: got 3; wanted of (8,) on"),
        (section(weights={"signed": False}), "config.compression.weights.signed: got False"),
        (section(activations={"signed": True}), "config.compression.activations.signed: got True"),
        (section(activations={"per_channel": True}), "config.compression.activations.per_channel"),
        (
            section(initializer={"precision": {"bitwidth_per_scope": [[4, "a"]]}}),
            "config.compression.initializer.precision.bitwidth_per_scope: got 4",
        ),
        (
            {
                "target_device": "NPU",
                "compression": {**section()["compression"], "preset": "mixed"},
            },
            "config.compression.preset: got 'mixed'; wanted no preset on NPU",
        ),
        (section(weights={"bits": 17}), "config.compression.weights.bits: got 17"),
        (section(weights={"bits": True}), "config.compression.weights.bits: got true; wanted"),
        (section(activations={"mode": "affine"}), "config.compression.activations.mode: got"),
        (section(ignored_scopes=["{re}("]), "config.compression.ignored_scopes: got '{re}('"),
        (
            section(initializer={"range": {"type": "best"}}),
            "config.compression.initializer.range.type: got 'best'; wanted one of mean_min_max, m",
        ),
        (section(initializer={"ranges": {}}), "config.compression.initializer.ranges: got an"),
        (
            section(initializer={"range": [{"type": "min_max"}]}),
            "config.compression.initializer.range[0]: got no scopes",
        ),
        (
            section(initializer={"range": {"params": {"min_percentile": 100}}}),
            "config.compression.initializer.range.params: got",
        ),
        (
            section(initializer={"precision": {"bitwidth_per_scope": [["a", 8]]}}),
            "config.compression.initializer.precision.bitwidth_per_scope[0][0]: got 'a'; wanted a",
        ),
        (
            section(scope_overrides={"weights": {"a": {"ratio": 1}}}),
            "config.compression.scope_overrides.weights.a.ratio: got an unknown key",
        ),
        (section(activations={"unified_scale_ops": ["a"]}), "config.compression.activations.uni"),
        ([SECTION], "config: got"),
        (7, "config: got 7"),
    ],
)
def test_what_is_refused_names_its_path(config: Any, refused: str) -> None:
    with pytest.raises(ArgumentError) as error:
        read_config(config)
    assert str(error.value).startswith(refused), error.value


def test_keys_of_training_decide_nothing_and_are_told() -> None:
    """The template that the tool's text has for HAWQ, whose other keys are those of its samples."""
    root = {
        "optimizer": {"base_lr": 3.1e-4, "schedule_type": "plateau", "type": "Adam"},
        "compression_lr_multiplier": 2,
        **section(
            initializer={"precision": {"type": "hawq", "bits": [4, 8], "compression_ratio": 1.5}},
            params={"weights_quant_start_epoch": 1},
            weights={"logarithm_scale": True},
        ),
    }
    found = read_config(root)
    assert found.precision == PrecisionSettings("hawq", (4, 8), 1.5)
    assert found.unused == (
        "config.optimizer",
        "config.compression_lr_multiplier",
        "config.compression.params",
        "config.compression.weights.logarithm_scale",
    )
    traces = {"precision": {"type": "hawq", "traces_per_layer_path": "traces.pt"}}
    precision = read_config(section(initializer=traces)).precision
    assert precision is not None
    assert precision.traces_per_layer_path == "traces.pt"


def test_overrides_that_the_tool_does_not_look_at_are_told() -> None:
    """NNCF 2.18 exports the same ranges with and without these, on CPU."""
    overrides = {
        "weights": {"conv": {"mode": "asymmetric", "bits": 4}},
        "activations": {"conv": {"mode": "asymmetric"}},
    }
    found = read_config(section(scope_overrides=overrides))
    plain = read_config(section()).layers(["conv"])["conv"]
    assert found.layers(["conv"])["conv"].weights == plain.weights
    activations = found.layers(["conv"])["conv"].activations
    assert activations is not None
    assert not activations.symmetric
    at = "config.compression.scope_overrides.weights.conv"
    assert found.unused == (f"{at}.bits", f"{at}.mode")


def test_other_devices_are_those_whose_quantizers_are_meant() -> None:
    autoq = {"precision": {"type": "autoq", "bits": [2, 4, 8], "eval_subset_ratio": 0.2}}
    config = {"target_device": "NPU", **section(initializer=autoq, weights={"bits": 4})}
    (layer,) = read_config(config).layers(["conv"]).values()
    assert layer.weights == TensorSettings(4, True, None, True, role="weights")
    with pytest.raises(ArgumentError, match=r"weights.bits: got 4; wanted of \(8,\) on GPU"):
        read_config({**config, "target_device": "GPU"})
