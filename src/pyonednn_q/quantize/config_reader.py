"""From the training tool's JSON configuration to what it says, with all else refused by name.

Unknown keys are named with their path; at the root, where the schema leaves all open, they are
listed as unused, as are keys that decide nothing in inference: training, gradients, staged
quantization. What the tool's table of a device does not have is refused, as there: widths but 8
(NPU: 2, 4, 8), forced signs, ranges by channel of all activations, presets of the NPU.
Source: the schema of NNCF 2.18, compared with it key by key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyonednn_q.argument import content, one_of, path, whole
from pyonednn_q.errors import ArgumentError
from pyonednn_q.quantize.config import (
    PrecisionSettings,
    QuantizationConfig,
    ScopeOverride,
    Scopes,
)
from pyonednn_q.quantize.config_values import (
    boolean,
    check_keys,
    count,
    mapping,
    number,
    scope_texts,
)
from pyonednn_q.quantize.distribution import checked_percent
from pyonednn_q.quantize.tensor_settings import ROLES, TensorSettings
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    import os

__all__ = ["read_config"]

_TRAINING = {"accuracy_aware_training", "compression_lr_multiplier", "params"}
_ROOT = {"compression", "target_device"}
_SCOPING = {"ignored_scopes", "target_scopes", "validate_scopes"}
_SECTION = {
    "activations", "algorithm", "export_to_onnx_standard_ops", "initializer", "overflow_fix",
    "preset", "quantize_inputs", "quantize_outputs", "scope_overrides", "weights",
} | _SCOPING  # fmt: skip
_QUANTIZER = {"bits", "mode", "per_channel", "signed"}
_RANGE = {"num_init_samples", "params", "type"}
_PRECISION = {
    "bits", "bitwidth_assignment_mode", "bitwidth_per_scope", "compression_ratio",
    "dump_init_precision_data", "eval_subset_ratio", "iter_number", "num_data_points", "tolerance",
    "traces_per_layer_path", "type", "warmup_iter_number",
}  # fmt: skip
_PRECISION_UNUSED = ("dump_init_precision_data",)
_KINDS = {
    "min_max": "min_max",
    "mixed_min_max": "mixed_min_max",
    "mean_min_max": "mean_min_max",
    "threesigma": "three_sigma",
    "percentile": "percentile",
    "mean_percentile": "mean_percentile",
}
_FREE = "TRIAL"  # TRIAL has no table of what the device does
_DEVICES = ("ANY", "CPU", "GPU", "NPU", "TRIAL", "CPU_SPR")
_WIDTHS = {"NPU": (2, 4, 8), _FREE: tuple(range(2, 17))}
_FIXES = ("enable", "first_layer_only", "disable")
_PRESETS = ("performance", "mixed")
_RATIOS = {"hawq": 1.5, "autoq": 0.15, "manual": 1.5}

Section = dict[str, Any]


def read_config(config: Mapping[str, Any] | str | os.PathLike[str]) -> QuantizationConfig:
    """Return what a quantization configuration of the training tool says.

    Parameters
    ----------
    config : mapping, or path of a JSON file
        A whole configuration, with the quantization algorithm under "compression", or that section
        alone.

    Raises
    ------
    ArgumentError
        An unknown key, with its path; a value that is none; what inference cannot do, with the
        reason.
    OSError
        The file cannot be read.

    Examples
    --------
    >>> config = read_config({
    ...     "target_device": "TRIAL",
    ...     "compression": {
    ...         "algorithm": "quantization",
    ...         "preset": "mixed",
    ...         "ignored_scopes": ["{re}head"],
    ...         "scope_overrides": {"weights": {"stem": {"bits": 4}}},
    ...     },
    ... })
    >>> layers = config.layers(["stem", "block", "head/fc"])
    >>> layers["stem"].weights.bits, layers["block"].weights.bits, layers["head/fc"].weights
    (4, 8, None)
    >>> layers["stem"].activations.symmetric
    False
    """
    root = mapping("config", _loaded(config))
    if "algorithm" in root:
        return _quantization("config", root, "ANY", ())
    device = one_of("config.target_device", root.get("target_device", "ANY"), _DEVICES)
    at, section = _section(root)
    unused = tuple(f"config.{key[:60]}" for key in root if key not in _ROOT)
    return _quantization(at, section, device, unused)


def _quantization(
    at: str, section: Section, device: str, unused: tuple[str, ...]
) -> QuantizationConfig:
    check_keys(at, section, _SECTION | _TRAINING)
    one_of(f"{at}.algorithm", section.get("algorithm"), ("quantization",))
    preset = one_of(f"{at}.preset", section.get("preset", "performance"), _PRESETS)
    fix = one_of(f"{at}.overflow_fix", section.get("overflow_fix", "enable"), _FIXES)
    groups = {role: mapping(f"{at}.{role}", section.get(role, {})) for role in ROLES}
    for role, group in groups.items():
        more = {"unified_scale_ops"} if role == "activations" else set()
        check_keys(f"{at}.{role}", group, _QUANTIZER | _SCOPING | more | {"logarithm_scale"})
        boolean(f"{at}.{role}", group, "logarithm_scale", default=False)
    trained = [key for key in section if key in _TRAINING]
    trained += [f"{r}.logarithm_scale" for r in ROLES if "logarithm_scale" in groups[r]]
    begin = mapping(f"{at}.initializer", section.get("initializer", {}))
    check_keys(f"{at}.initializer", begin, {"batchnorm_adaptation", "precision", "range"})
    global_range, ranges = _ranges(f"{at}.initializer.range", begin.get("range", {}))
    precision, widths, more_unused = _precision(f"{at}.initializer.precision", begin, device)
    on_device = device != _FREE
    if device == "NPU" and "preset" in section:
        argument = f"{at}.preset"
        raise ArgumentError(argument, shown(preset), "no preset on NPU")
    wei = TensorSettings(role="weights", per_channel=on_device, signed=on_device or None)
    src = TensorSettings(symmetric=preset == "performance")
    changes = {role: _changes(f"{at}.{role}", groups[role], role, device) for role in ROLES}
    if on_device and changes["activations"].get("per_channel"):
        argument = f"{at}.activations.per_channel"
        wanted = f"false on {device}, but in scope_overrides; {_FREE} takes it"
        raise ArgumentError(argument, "true", wanted)
    scopes = {role: _group_scopes(at, section, role, groups[role]) for role in ROLES}
    overrides, not_read = _overrides(
        f"{at}.scope_overrides", section.get("scope_overrides", {}), device
    )
    return QuantizationConfig(
        weights=replace(wei, **global_range, **changes["weights"]),
        activations=replace(src, **global_range, **changes["activations"]),
        weight_scopes=scopes["weights"],
        activation_scopes=scopes["activations"],
        overrides=overrides,
        ranges=ranges,
        bitwidth_per_scope=widths,
        linked=_linked(f"{at}.activations.unified_scale_ops", groups["activations"]),
        overflow_fix=fix,
        target_device=device,
        precision=precision,
        batch_norm_samples=_batch_norm(f"{at}.initializer.batchnorm_adaptation", begin),
        quantize_inputs=boolean(at, section, "quantize_inputs", default=True),
        quantize_outputs=boolean(at, section, "quantize_outputs", default=False),
        standard_onnx=boolean(at, section, "export_to_onnx_standard_ops", default=False),
        validate_scopes=all(
            each.get("validate_scopes", True) for each in (section, *groups.values())
        ),
        unused=(*unused, *(f"{at}.{key}" for key in trained), *more_unused, *not_read),
    )


def _loaded(config: object) -> object:
    if isinstance(config, Mapping):
        return config
    text = content("config", path("config", config))
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ArgumentError("config", f"{error}", "JSON") from None


def _section(root: Section) -> tuple[str, Section]:
    """Return the one quantization algorithm under "compression", and its path."""
    at, compression = "config.compression", root.get("compression")
    if compression is None:
        raise ArgumentError(at, f"none beside {shown(tuple(root))}", "an algorithm")
    every = compression if isinstance(compression, (list, tuple)) else [compression]
    paths = [f"{at}[{i}]" if every is compression else at for i in range(len(every))]
    sections = [mapping(one, each) for one, each in zip(paths, every, strict=True)]
    for one, section in zip(paths, sections, strict=True):
        name, argument = section.get("algorithm"), f"{one}.algorithm"
        if name != "quantization":
            wanted = "quantization: other algorithms train, and this is inference"
            raise ArgumentError(argument, shown(name), wanted)
    if len(sections) != 1:
        raise ArgumentError(at, f"{len(sections)} algorithms", "one")
    return paths[0], sections[0]


def _changes(at: str, section: Section, role: str, device: str) -> Section:
    """Return the fields of `TensorSettings` that a section sets, as the device has them."""
    changes: Section = {}
    if "mode" in section:
        mode = one_of(f"{at}.mode", section["mode"], ("symmetric", "asymmetric"))
        changes["symmetric"] = mode == "symmetric"
    if "bits" in section:
        changes["bits"] = _bits(f"{at}.bits", section["bits"], device)
    for key in ("per_channel", "signed"):
        if key in section:
            changes[key] = boolean(at, section, key, default=False)
    both = role == "weights" and changes.get("symmetric", True) and changes.get("signed")
    if "signed" in changes and not both and device != _FREE:
        argument = f"{at}.signed"
        wanted = f"nothing on {device}, but true of symmetric weights; {_FREE} takes it"
        raise ArgumentError(argument, shown(changes["signed"]), wanted)
    return changes


def _bits(at: str, value: object, device: str) -> int:
    if isinstance(value, bool):
        raise ArgumentError(at, shown(value), "an integer from 2 to 16")
    bits = whole(at, value, lo=2, hi=16)
    if bits not in (widths := _WIDTHS.get(device, (8,))):
        wanted = f"of {widths} on {device}; target_device {_FREE} takes others"
        raise ArgumentError(at, shown(value), wanted)
    return bits


def _scopes(at: str, section: Section) -> Scopes:
    boolean(at, section, "validate_scopes", default=True)
    targets = None
    if "target_scopes" in section:
        targets = scope_texts(f"{at}.target_scopes", section["target_scopes"])
    return Scopes(scope_texts(f"{at}.ignored_scopes", section.get("ignored_scopes", [])), targets)


def _group_scopes(at: str, section: Section, role: str, group: Section) -> Scopes:
    every, own = _scopes(at, section), _scopes(f"{at}.{role}", group)
    targets = every.targets if own.targets is None else own.targets
    return Scopes(own.ignored + every.ignored, targets)


def _linked(at: str, group: Section) -> tuple[tuple[str, ...], ...]:
    sets = group.get("unified_scale_ops", [])
    if not isinstance(sets, (list, tuple)) or any(isinstance(each, str) for each in sets):
        raise ArgumentError(at, shown(sets), "a list of lists of names")
    linked = tuple(scope_texts(at, each) for each in sets)
    every = [name for names in linked for name in names]
    if len(set(every)) < len(every):
        twice = sorted({name for name in every if every.count(name) > 1})
        raise ArgumentError(at, shown(twice), "sets that do not overlap")
    return linked


def _overrides(
    at: str, value: object, device: str
) -> tuple[tuple[ScopeOverride, ...], tuple[str, ...]]:
    """Return what differs for scopes, and the keys that the tool reads and does nothing with.

    These are ranges, which `initializer.range` has by scope; and all of weights but on the device
    without a table, where the tool takes what its table has first.
    """
    groups = mapping(at, value)
    check_keys(at, groups, set(ROLES))
    overrides, unused = [], []
    for role, scopes in groups.items():
        is_used = role == "activations" or device == _FREE
        for scope, one in mapping(f"{at}.{role}", scopes).items():
            where = f"{at}.{role}.{scope[:60]}"
            override = mapping(where, one)
            check_keys(where, override, _QUANTIZER | {"initializer"})
            changes = _changes(where, override, role, device if is_used else _FREE)
            begin = mapping(f"{where}.initializer", override.get("initializer", {}))
            check_keys(f"{where}.initializer", begin, {"range"})
            if "range" in begin:
                inner = f"{where}.initializer.range"
                _range(inner, mapping(inner, begin["range"]))
            targets = Scopes(targets=scope_texts(where, scope))
            if is_used:
                overrides.append(ScopeOverride((role,), targets, tuple(changes.items())))
            left = [key for key in override if key == "initializer" or not is_used]
            unused += [f"{where}.{key}" for key in left]
    return tuple(overrides), tuple(unused)


def _ranges(at: str, value: object) -> tuple[Section, tuple[ScopeOverride, ...]]:
    """Return the range of all tensors, or those of scopes."""
    if not isinstance(value, (list, tuple)):
        return _range(at, mapping(at, value)), ()
    ranges = []
    for i, each in enumerate(value):
        one, where = mapping(f"{at}[{i}]", each), f"{at}[{i}]"
        if "target_scopes" not in one and "ignored_scopes" not in one:
            raise ArgumentError(where, "no scopes", "target_scopes, or ignored_scopes")
        roles: tuple[str, ...] = ROLES
        if (group := "target_quantizer_group") in one:
            roles = (one_of(f"{where}.{group}", one.pop(group), ROLES),)
        scopes = _scopes(where, one)
        changes = _range(where, {k: v for k, v in one.items() if k not in _SCOPING})
        ranges.append(ScopeOverride(roles, scopes, tuple(changes.items())))
    return {}, tuple(ranges)


def _range(at: str, section: Section) -> Section:
    check_keys(at, section, _RANGE)
    kind = one_of(f"{at}.type", section.get("type", "mixed_min_max"), tuple(_KINDS))
    where = f"{at}.params"
    params = mapping(where, section.get("params", {}))
    check_keys(where, params, {"max_percentile", "min_percentile"})
    ends = [
        number(where, params, key, end)
        for key, end in (("min_percentile", 0.1), ("max_percentile", 99.9))
    ]
    try:
        percent = checked_percent(ends)
    except ArgumentError as error:
        raise ArgumentError(where, error.got, error.wanted) from None
    samples = count(at, section, "num_init_samples", 256)
    return {"range_kind": _KINDS[kind], "percent": percent, "samples": samples}


def _batch_norm(at: str, begin: Section) -> int:
    section = mapping(at, begin.get("batchnorm_adaptation", {}))
    check_keys(at, section, {"num_bn_adaptation_samples"})
    return count(at, section, "num_bn_adaptation_samples", 2000)


def _precision(
    at: str, begin: Section, device: str
) -> tuple[PrecisionSettings | None, tuple[tuple[int, str], ...], tuple[str, ...]]:
    """Return how widths are found, those of scopes, and keys that decide nothing."""
    if "precision" not in begin:
        return None, (), ()
    section = mapping(at, begin["precision"])
    check_keys(at, section, _PRECISION)
    kind = one_of(f"{at}.type", section.get("type", "manual"), tuple(_RATIOS))
    mode = section.get("bitwidth_assignment_mode", "liberal")
    widths = _widths(f"{at}.bitwidth_per_scope", section.get("bitwidth_per_scope", []), device)
    boolean(at, section, "dump_init_precision_data", default=False)
    traces = section.get("traces_per_layer_path")
    if "traces_per_layer_path" in section:
        path(f"{at}.traces_per_layer_path", traces)
    settings = PrecisionSettings(
        kind,
        _choices(f"{at}.bits", section.get("bits", [2, 4, 8])),
        number(at, section, "compression_ratio", _RATIOS[kind]),
        rounds=count(at, section, "iter_number", 200 if kind == "hawq" else 100),
        tolerance=number(at, section, "tolerance", 1e-4),
        data_points=count(at, section, "num_data_points", 100),
        widths=one_of(f"{at}.bitwidth_assignment_mode", mode, ("strict", "liberal")),
        eval_subset_ratio=number(at, section, "eval_subset_ratio", 1.0),
        traces_per_layer_path=traces,
        warmup=count(at, section, "warmup_iter_number", 20),
    )
    return settings, widths, tuple(f"{at}.{k}" for k in _PRECISION_UNUSED if k in section)


def _choices(at: str, bits: object) -> tuple[int, ...]:
    if not isinstance(bits, (list, tuple)) or not bits:
        raise ArgumentError(at, shown(bits), "a list of widths")
    return tuple(sorted({_bits(at, each, _FREE) for each in bits}))


def _widths(at: str, pairs: object, device: str) -> tuple[tuple[int, str], ...]:
    if not isinstance(pairs, (list, tuple)):
        raise ArgumentError(at, shown(pairs), "a list of [bits, scope]")
    widths = []
    for pair in pairs:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not isinstance(pair[1], str):
            raise ArgumentError(at, shown(pair), "[bits, scope]")
        (scope,) = scope_texts(at, pair[1])
        widths.append((_bits(at, pair[0], device), scope))
    return tuple(widths)
