"""Configurations against the training tool's own schema and code (NNCF 2.18, the last to have it).

Every key of its schema is put in, with values that the schema takes and some that it does not.
What differs is listed: what trains, and values that mean nothing.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.errors import ArgumentError
from pyonednn_q.quantize import read_config
from support.training_tool import BATCH, assert_exported, exported, normalized

NAMES = ["net/conv1", "net/conv2", "net/block/conv1", "net/head", "out"]
BY_TYPE: dict[str, list[Any]] = {
    "boolean": [True, False],
    "number": [4, 0.5],
    "string": ["a"],
    "array": [[]],
    "object": [{}],
}
ANYTHING: list[Any] = [True, 4, "a", [], ["a"], [4], {}, None]
VECTORS = Path(__file__).parents[2] / "data" / "training_tool.json"
TRAINING = {"accuracy_aware_training", "compression_lr_multiplier", "logarithm_scale", "params"}
COUNTS = {
    "bits", "iter_number", "num_bn_adaptation_samples", "num_data_points", "num_init_samples",
    "warmup_iter_number",
}  # fmt: skip
UNUSED = {"input_info", "disable_shape_matching", "log_dir"}  # we do not look into them


def tool() -> Any:
    return pytest.importorskip("nncf.config.config", reason="NNCF 2.18 is not installed").NNCFConfig


def paths(schema: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Give every key of the schema with its own schema; a scope stands for patterns of keys."""
    for way in schema.get("oneOf", [schema]):
        inner = way.get("properties", {})
        for key, one in inner.items():
            if isinstance(one, dict):  # "required" stands among properties in one place
                yield (*at, key), one
                yield from paths(one, (*at, key))
        for one in way.get("patternProperties", {}).values():
            yield (*at, "net/head"), one
            yield from paths(one, (*at, "net/head"))
        if isinstance(way.get("items"), dict) and "properties" in way["items"]:
            yield from paths(way["items"], (*at, 0))


def values(schema: Any) -> list[Any]:
    found: list[Any] = []
    for way in schema.get("oneOf", [schema]):
        if "const" in way:
            found.append(way["const"])
        found += way.get("enum", [])
        kinds = way.get("type", [])
        for kind in [kinds] if isinstance(kinds, str) else kinds:
            found += BY_TYPE[kind]
    return [*found, *ANYTHING, *schema.get("examples", [])]


def put(section: Any, at: tuple[Any, ...], value: Any) -> None:
    """Set a value, and make what lies on the way to it."""
    for key, following in pairwise(at):
        if key == 0:
            if not section:
                section.append({"target_scopes": ["net/head"]})
            section = section[0]
            continue
        section = section.setdefault(key, [] if following == 0 else {})
    section[at[-1]] = value


def taken(read: Any, config: Any, *errors: type[Exception]) -> bool:
    try:
        read(copy.deepcopy(config))
    except errors:
        return False
    return True


def explained(at: tuple[Any, ...], value: Any) -> bool:
    """Return whether it is known why the schema takes a value and we do not."""
    if at[-1] in COUNTS and value == 0.5:  # the schema has no whole numbers
        return True
    if "scope_overrides" in at and "range" in at:  # a list has scopes of its own, in one scope
        return 0 in at or value == []
    return at[-2:] == ("precision", "bits") and value == []  # nothing to choose from


def test_every_key_of_the_schema_is_read_or_refused_with_a_reason() -> None:
    config = tool()
    jsonschema = pytest.importorskip("jsonschema")
    root = config.schema()
    section = root["$defs"]["quantization"]
    every = [(("compression", *at), one) for at, one in paths(section)]
    every += [
        ((key,), one)
        for key, one in root["properties"].items()
        if key not in {"compression", *UNUSED}
    ]
    taken_by_both = 0
    for at, one in every:
        for value in values(one):
            whole: dict[str, Any] = {"compression": {"algorithm": "quantization"}}
            whole["target_device"] = "TRIAL"  # which alone has no table of what a device does
            put(whole, at, value)
            theirs = taken(config.validate, whole, jsonschema.ValidationError)
            ours = taken(read_config, whole, ArgumentError)
            if ours and not theirs:  # of training, we do not look into it
                assert set(at) & TRAINING, (at, value, "only we take it")
            if theirs and not ours:
                assert explained(at, value), (at, value, "we refuse it")
            taken_by_both += theirs and ours
    assert taken_by_both > 200


def test_unknown_keys_are_refused_where_the_schema_refuses_them() -> None:
    config = tool()
    jsonschema = pytest.importorskip("jsonschema")
    section = config.schema()["$defs"]["quantization"]
    objects = [(), *(at for at, one in paths(section) if one.get("type") == "object")]
    assert len(objects) > 8
    for at in objects:
        whole: dict[str, Any] = {"compression": {"algorithm": "quantization"}}
        put(whole, ("compression", *at, "no_such_key"), 1)
        if at and at[0] == "params":  # of training, we do not look into them
            continue
        assert not taken(read_config, whole, ArgumentError), at
        if taken(config.validate, whole, jsonschema.ValidationError):
            # Its schema leaves these open.
            assert at[-1] in {"params", "activations", "weights"}, at


def test_scopes_hold_where_the_tool_has_them() -> None:
    tool()
    theirs = pytest.importorskip("nncf.common.scopes").should_consider_scope
    rng = np.random.default_rng(0)
    scopes = [*NAMES, "{re}conv", "{re}^net/conv", "{re}head$", "{re}block.*1", "{re}."]
    for _ in range(300):
        ignored = [str(each) for each in rng.choice(scopes, rng.integers(3), replace=False)]
        targets = [str(each) for each in rng.choice(scopes, rng.integers(1, 3), replace=False)]
        options = {"ignored_scopes": ignored, "target_scopes": targets}
        if rng.random() < 0.3:
            del options["target_scopes"]
        section = {"algorithm": "quantization", "validate_scopes": False, **options}
        for name, layer in read_config(section).layers(NAMES).items():
            wanted = theirs(name, ignored, options.get("target_scopes"))
            assert (layer.weights is not None) == (layer.activations is not None) == wanted


def test_overrides_change_what_the_tool_changes() -> None:
    tool()
    assignment = pytest.importorskip("nncf.common.quantization.config_assignment")
    structs = pytest.importorskip("nncf.common.quantization.structs")
    rng = np.random.default_rng(1)
    scopes = [*NAMES, "{re}conv", "{re}head", "{re}block"]
    modes = {"symmetric": True, "asymmetric": False}
    for _ in range(200):
        overrides = {}
        for scope in rng.choice(scopes, 3, replace=False):
            every = {
                "bits": int(rng.integers(2, 9)),
                "mode": str(rng.choice(list(modes))),
                "per_channel": bool(rng.integers(2)),
                "signed": bool(rng.integers(2)),
            }
            keys = rng.choice(list(every), 2, replace=False)
            overrides[str(scope)] = {str(key): every[key] for key in keys}
        base = structs.QuantizerConfig(8, "symmetric", None, False)
        section = {
            "algorithm": "quantization",
            "validate_scopes": False,
            "scope_overrides": {"activations": overrides},
        }
        config = {"target_device": "TRIAL", "compression": section}
        for name, layer in read_config(config).layers(NAMES).items():
            theirs = assignment.get_scoped_quantizer_config(base, name, overrides)
            assert layer.activations is not None
            assert layer.activations.bits == theirs.num_bits
            assert layer.activations.symmetric == modes[theirs.mode]
            assert layer.activations.per_channel == theirs.per_channel
            assert layer.activations.signed == theirs.signedness_to_force


def test_ranges_by_scope_are_the_tools() -> None:
    tool()
    ranges = pytest.importorskip("nncf.torch.quantization.init_range")
    structs = pytest.importorskip("nncf.common.quantization.structs")
    one = pytest.importorskip("nncf.common.quantization.initialization.range")
    entries: list[dict[str, Any]] = [
        {"type": "min_max", "target_scopes": ["{re}conv"], "target_quantizer_group": "weights"},
        {"type": "mean_min_max", "target_scopes": "{re}conv", "num_init_samples": 9,
         "target_quantizer_group": "activations"},
        {"type": "percentile", "ignored_scopes": ["{re}conv"],
         "params": {"min_percentile": 1.0, "max_percentile": 98.0}},
    ]  # fmt: skip
    params = ranges.PTRangeInitParams(
        None, "cpu", None, [one.PerLayerRangeInitConfig.from_dict(each) for each in entries]
    )
    config = read_config({"algorithm": "quantization", "initializer": {"range": entries}})
    for name, layer in config.layers(NAMES).items():
        for role, group in (("weights", "WEIGHTS"), ("activations", "ACTIVATIONS")):
            theirs = params.get_init_config_for_scope_and_group(
                name, getattr(structs.QuantizerGroup, group)
            )
            ours = getattr(layer, role)
            assert ours.range_kind == theirs.init_type
            assert ours.samples == theirs.num_init_samples
            if theirs.init_type_specific_params:
                assert ours.percent == (1.0, 98.0)


@pytest.mark.filterwarnings("ignore")
def test_ranges_are_those_that_the_tool_exports_now() -> None:
    """Some configurations of what `tools/vectors/training_tool_vectors.py` writes, live."""
    tool()
    pytest.importorskip("nncf.torch")
    cases = json.loads(VECTORS.read_text())["cases"]
    for at in np.random.default_rng(2).choice(len(cases), 12, replace=False):
        if "error" in cases[at]:
            with pytest.raises(Exception, match=r"incompatible|does not support"):
                exported(cases[at])
            continue
        found = exported(cases[at])
        assert found == cases[at]["exported"]
        assert_exported(cases[at], found)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("samples", [3, None])
def test_statistics_of_batch_norms_are_those_that_the_tool_adapts(samples: int | None) -> None:
    """With all layers in floats: there the tool adapts behind the quantizers, and here before."""
    tool()
    pytest.importorskip("nncf.torch")
    helper = pytest.importorskip("onnx.helper")
    rng = np.random.default_rng(6)
    wei = [rng.normal(0, 1, (5, 3, 1, 1)), rng.normal(0, 1, (4, 5, 1, 1))]
    wei = [each.astype(np.float32) for each in wei]
    src = rng.normal(1, 2, (7, 3, 4, 4)).astype(np.float32)
    begin: dict[str, Any] = {"range": {"num_init_samples": 2, "type": "min_max"}}
    if samples is not None:
        begin["batchnorm_adaptation"] = {"num_bn_adaptation_samples": samples}
    section = {"algorithm": "quantization", "initializer": begin, "ignored_scopes": ["{re}.*"]}
    theirs = normalized(wei, src, section)

    nodes: list[Any] = []
    held: dict[str, Any] = {}
    name = "x"
    for at, one in enumerate(wei):
        zero, unit = np.zeros(len(one), np.float32), np.ones(len(one), np.float32)
        held |= {f"w{at}": one, f"zero{at}": zero, f"unit{at}": unit}
        norm = [f"c{at}", *(f"{part}{at}" for part in ("unit", "zero", "zero", "unit"))]
        nodes.append(helper.make_node("Conv", [name, f"w{at}"], [f"c{at}"], f"conv{at}"))
        nodes.append(helper.make_node("BatchNormalization", norm, [f"n{at}"], f"norm{at}"))
        name = f"r{at}"
        nodes.append(helper.make_node("Relu", [f"n{at}"], [name], f"relu{at}"))
    ends = [helper.make_tensor_value_info("x", 1, ["n", 3, 4, 4])]
    ends.append(helper.make_tensor_value_info(name, 1, ["n", 4, 4, 4]))
    stored = [
        pytest.importorskip("onnx.numpy_helper").from_array(held[each], each) for each in held
    ]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], stored)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    steps = [src[at : at + BATCH] for at in range(0, len(src), BATCH)]
    adapted = pq.onnx.renormalized(pq.onnx.load(model), steps, samples or 2000)
    norms = [node for node in adapted.nodes if node.operator == "BatchNormalization"]
    for node, wanted in zip(norms, theirs, strict=True):
        for found, each in zip(node.inputs[3:], wanted, strict=True):
            # Sums of 32 float32 numbers of up to 20, in another order.
            np.testing.assert_allclose(adapted.constants[found], each, rtol=1e-5, atol=1e-5)
