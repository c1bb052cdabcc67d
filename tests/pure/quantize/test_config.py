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
CONFIG = {"target_device": "CPU", "log_dir": "logs", "compression": SECTION}
PERCENTILE: dict[str, Any] = {"range_kind": "percentile", "percent": (0.5, 99.5), "samples": 300}


def of_weights(**changes: Any) -> TensorSettings:
    return TensorSettings(**{"signed": True, "per_channel": True, **PERCENTILE, **changes})


def of_activations(**changes: Any) -> TensorSettings:
    return TensorSettings(**{"signed": True, "symmetric": False, **PERCENTILE, **changes})


def test_what_a_configuration_decides_for_each_layer() -> None:
    found = read_config(CONFIG).layers(NAMES)
    wide = of_activations()
    assert found == {
        "stem": LayerSettings(of_weights(bits=2), wide),
        "embed": LayerSettings(None, wide),
        "block1": LayerSettings(
            of_weights(bits=4, per_channel=False),
            of_activations(symmetric=True, range_kind="min_max", percent=(0.1, 99.9), samples=256),
        ),
        "block2": LayerSettings(
            of_weights(bits=4, per_channel=False, symmetric=False), of_activations(bits=4)
        ),
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
    assert (found.batch_norm_samples, found.target_device) == (512, "CPU")
    assert found.precision == PrecisionSettings("hawq", (4, 8), 1.4, 50, 1e-3, widths="strict")
    assert found.by_hand(NAMES) == {"stem": 2, "tail": 4}
    assert found.unused == (
        "config.log_dir",
        "config.compression.initializer.precision.dump_init_precision_data",
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
    assert layer.weights == TensorSettings(8, True, True, True, half_range=True)
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
    wanted = estimator(
        "percentile",
        axis=0 if settings.per_channel else None,
        symmetric=settings.symmetric,
        percent=(0.5, 99.5),
    )
    for each in (state, wanted):
        each.update(wei)
    np.testing.assert_array_equal(state.range(), wanted.range())
    fq = settings.fake_quantize(state)
    assert fq == fq_from_range(
        *wanted.range(), settings.bits, symmetric=settings.symmetric, signed=True
    )
    other = estimator("min_max", symmetric=not settings.symmetric)
    other.update(wei)
    with pytest.raises(ArgumentError, match=r"^state: got an estimator with symmetric="):
        settings.fake_quantize(other)


def test_files_lists_and_sections_alone(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"compression": [SECTION]}))
    found = read_config(file)
    alone = read_config(SECTION)
    assert found.layers(NAMES) == alone.layers(NAMES) == read_config(str(file)).layers(NAMES)
    for text in ("{", "[" * 100_000):
        file.write_text(text)
        with pytest.raises(ArgumentError, match=r"^config: got .*; wanted JSON$"):
            read_config(file)


def section(**keys: Any) -> dict[str, Any]:
    return {"compression": {"algorithm": "quantization", **keys}}


@pytest.mark.parametrize(
    ("config", "refused"),
    [
        ({"compresion": SECTION}, "config.compresion: got an unknown key; wanted one of comp"),
        ({}, "config.compression: got nothing"),
        (section(weights={"bit": 8}), "config.compression.weights.bit: got an unknown key"),
        (
            {"compression": [SECTION, {"algorithm": "rb_sparsity"}]},
            "config.compression[1].algorithm: got 'rb_sparsity'; wanted quantization: other",
        ),
        ({"compression": [SECTION, SECTION]}, "config.compression: got 2 algorithms"),
        (section(target_device="CPU"), "config.compression.target_device: got an unknown key"),
        ({"target_device": "GPU", "compression": SECTION}, "config.target_device: got 'GPU'"),
        (section(weights={"bits": 17}), "config.compression.weights.bits: got 17"),
        (section(weights={"bits": True}), "config.compression.weights.bits: got True"),
        (section(activations={"mode": "affine"}), "config.compression.activations.mode: got"),
        (section(ignored_scopes=["{re}("]), "config.compression.ignored_scopes: got '{re}('"),
        (
            section(initializer={"range": {"type": "best"}}),
            "config.compression.initializer.range.type: got 'best'; wanted one of min_max, mixed",
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
            "config.compression.initializer.precision.bitwidth_per_scope: got",
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


@pytest.mark.parametrize(
    ("config", "key", "reason"),
    [
        ({"accuracy_aware_training": {}}, "config.accuracy_aware_training", "fine-tunes"),
        ({"compression_lr_multiplier": 2}, "config.compression_lr_multiplier", "gradients"),
        (section(compression_lr_multiplier=2), "compression.compression_lr_multiplier", "gradi"),
        (section(params={"base_lr": 1}), "config.compression.params", "stages of training"),
        (section(weights={"logarithm_scale": True}), "weights.logarithm_scale", "learned"),
        (
            section(initializer={"precision": {"traces_per_layer_path": "x.pt"}}),
            "precision.traces_per_layer_path",
            "`sensitivity`",
        ),
    ],
)
def test_what_inference_cannot_do_is_refused_with_the_reason(
    config: Any, key: str, reason: str
) -> None:
    with pytest.raises(ArgumentError) as error:
        read_config({"compression": SECTION, **config})
    assert error.value.argument.endswith(key)
    assert "this is inference" in str(error.value)
    assert reason in str(error.value)


def test_not_learning_scales_is_no_training() -> None:
    read_config(section(weights={"logarithm_scale": False}))
