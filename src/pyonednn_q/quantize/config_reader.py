"""From the training tool's JSON configuration to what it says, with all else refused by name.

Unknown keys are named with their path; at the root, where the schema leaves all open, they are
listed as unused, as are keys that decide nothing in inference: training, gradients, staged
quantization. What the tool's table of a device does not have is refused, as there: widths but 8
(NPU: 2, 4, 8), forced signs, ranges by channel of all activations, presets of the NPU.
Source: the schema of NNCF 2.18, compared with it key by key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import UNSET, Meta, defstruct, to_builtins

from pyonednn_q.argument import content, path
from pyonednn_q.errors import ArgumentError
from pyonednn_q.quantize.config import (
    PrecisionSettings,
    QuantizationConfig,
    ScopeOverride,
    Scopes,
)
from pyonednn_q.quantize.distribution import checked_percent
from pyonednn_q.quantize.placement import scoped
from pyonednn_q.quantize.tensor_settings import ROLES, TensorSettings
from pyonednn_q.reading import converted, decoded
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    import os

__all__ = ["read_config"]

Section = dict[str, Any]

_KINDS = {"threesigma": "three_sigma"}  # others have the names of ours
_FREE = "TRIAL"  # TRIAL has no table of what the device does
_WIDTHS = {"NPU": (2, 4, 8), _FREE: tuple(range(2, 17))}
_RATIOS = {"hawq": 1.5, "autoq": 0.15, "manual": 1.5}
_PERCENT = {"min_percentile": 0.1, "max_percentile": 99.9}
_TRAINING = ("accuracy_aware_training", "compression_lr_multiplier", "params")


def read_config(config: Mapping[str, Any] | str | os.PathLike[str]) -> QuantizationConfig:
    """Return the content of a quantization configuration of the training tool.

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
    if not isinstance(config, Mapping):
        config = decoded("config", content("config", path("config", config)))
    root = converted("config", config, dict[str, Any])
    if "algorithm" in root:
        return _quantization("config", root, "ANY", [])
    others = [f"config.{key[:60]}" for key in root if key not in {"compression", "target_device"}]
    device = converted("config.target_device", root.get("target_device", "ANY"), _DEVICE)
    return _quantization(*_section(root), device, others)


def _section(root: Section) -> tuple[str, Section]:
    """Return the one quantization algorithm under "compression", and its path."""
    at, compression = "config.compression", root.get("compression")
    if compression is None:
        raise ArgumentError(at, f"none beside {shown(tuple(root))}", "an algorithm")
    several = isinstance(compression, (list, tuple))
    sections = (
        {f"{at}[{i}]": one for i, one in enumerate(compression)} if several else {at: compression}
    )
    for one, value in sections.items():
        if (name := converted(one, value, Section).get("algorithm")) != "quantization":
            argument, wanted = f"{one}.algorithm", "quantization: other algorithms train"
            raise ArgumentError(argument, shown(name), f"{wanted}, and this is inference")
    if len(sections) != 1:
        raise ArgumentError(at, f"{len(sections)} algorithms", "one")
    return sections.popitem()


def _quantization(at: str, value: Section, device: str, unused: list[str]) -> QuantizationConfig:
    section = to_builtins(converted(at, value, _SECTION))
    groups = {role: section.get(role, {}) for role in ROLES}
    on_device = device != _FREE
    if device == "NPU" and "preset" in section:
        argument = f"{at}.preset"
        raise ArgumentError(argument, shown(section["preset"]), "no preset on NPU")
    changes = {role: _changes(f"{at}.{role}", groups[role], role, device) for role in ROLES}
    if on_device and changes["activations"].get("per_channel"):
        argument = f"{at}.activations.per_channel"
        wanted = f"false on {device}, but in scope_overrides; {_FREE} takes it"
        raise ArgumentError(argument, "true", wanted)
    wei = TensorSettings(role="weights", per_channel=on_device, signed=on_device or None)
    src = TensorSettings(symmetric=section.get("preset", "performance") == "performance")
    begin = section.get("initializer", {})
    ranges = begin.get("range", {})
    global_range, by_scope = ({}, ranges) if isinstance(ranges, list) else (_range(ranges), [])
    unused += [f"{at}.{key}" for key in section if key in _TRAINING]
    unused += [f"{at}.{r}.logarithm_scale" for r in ROLES if "logarithm_scale" in groups[r]]
    precision = begin.get("precision", {})
    where = f"{at}.initializer.precision"
    widths = precision.get("bitwidth_per_scope", ())
    for bits, _ in widths:
        _check_width(f"{where}.bitwidth_per_scope", bits, device)
    if (key := "dump_init_precision_data") in precision:
        unused.append(f"{where}.{key}")
    overrides, not_read = _overrides(
        f"{at}.scope_overrides", section.get("scope_overrides", {}), device
    )
    return QuantizationConfig(
        weights=replace(wei, **global_range, **changes["weights"]),
        activations=replace(src, **global_range, **changes["activations"]),
        weight_scopes=_group_scopes(section, groups["weights"]),
        activation_scopes=_group_scopes(section, groups["activations"]),
        overrides=overrides,
        ranges=tuple(map(_scoped_range, by_scope)),
        bitwidth_per_scope=widths,
        linked=groups["activations"].get("unified_scale_ops", ()),
        overflow_fix=section.get("overflow_fix", "enable"),
        target_device=device,
        precision=_precision(precision) if "precision" in begin else None,
        batch_norm_samples=begin.get("batchnorm_adaptation", {}).get(
            "num_bn_adaptation_samples", 2000
        ),
        quantize_inputs=section.get("quantize_inputs", True),
        quantize_outputs=section.get("quantize_outputs", False),
        standard_onnx=section.get("export_to_onnx_standard_ops", False),
        validate_scopes=all(
            each.get("validate_scopes", True) for each in (section, *groups.values())
        ),
        unused=(*unused, *not_read),
    )


def _changes(at: str, section: Section, role: str, device: str) -> Section:
    """Return the fields of `TensorSettings` that a section sets, as the device has them."""
    changes: Section = {}
    if "mode" in section:
        changes["symmetric"] = section["mode"] == "symmetric"
    if "bits" in section:
        _check_width(f"{at}.bits", section["bits"], device)
    changes |= {key: section[key] for key in ("bits", "per_channel", "signed") if key in section}
    both = role == "weights" and changes.get("symmetric", True) and changes.get("signed")
    if "signed" in changes and not both and device != _FREE:
        argument = f"{at}.signed"
        wanted = f"nothing on {device}, but true of symmetric weights; {_FREE} takes it"
        raise ArgumentError(argument, shown(changes["signed"]), wanted)
    return changes


def _check_width(at: str, bits: int, device: str) -> None:
    if bits not in (widths := _WIDTHS.get(device, (8,))):
        wanted = f"of {widths} on {device}; target_device {_FREE} takes others"
        raise ArgumentError(at, shown(bits), wanted)


def _group_scopes(section: Section, group: Section) -> Scopes:
    ignored = (*group.get("ignored_scopes", ()), *section.get("ignored_scopes", ()))
    return Scopes(ignored, group.get("target_scopes", section.get("target_scopes")))


def _overrides(
    at: str, groups: Section, device: str
) -> tuple[tuple[ScopeOverride, ...], list[str]]:
    """Return what differs for scopes, and the keys that the tool reads and does nothing with.

    These are ranges, which `initializer.range` has by scope; and all of weights but on the device
    without a table, where the tool takes what its table has first.
    """
    overrides, unused = [], []
    for role, scopes in groups.items():
        is_used = role == "activations" or device == _FREE
        for scope, override in scopes.items():
            where = f"{at}.{role}.{scope[:60]}"
            changes = _changes(where, override, role, device if is_used else _FREE)
            targets = Scopes(targets=_scopes(where, scope))
            if is_used:
                overrides.append(ScopeOverride((role,), targets, tuple(changes.items())))
            left = [key for key in override if key == "initializer" or not is_used]
            unused += [f"{where}.{key}" for key in left]
    return tuple(overrides), unused


def _scoped_range(section: Section) -> ScopeOverride:
    group = section.get("target_quantizer_group")
    scopes = Scopes(section.get("ignored_scopes", ()), section.get("target_scopes"))
    return ScopeOverride((group,) if group else ROLES, scopes, tuple(_range(section).items()))


def _range(section: Section) -> Section:
    kind = section.get("type", "mixed_min_max")
    return {
        "range_kind": _KINDS.get(kind, kind),
        "percent": tuple((_PERCENT | section.get("params", {})).values()),
        "samples": section.get("num_init_samples", 256),
    }


def _precision(section: Section) -> PrecisionSettings:
    kind = section.get("type", "manual")
    usual: Section = {"compression_ratio": _RATIOS[kind], "rounds": 200 if kind == "hawq" else 100}
    if "bits" in section:
        usual["bits"] = tuple(sorted({*section["bits"]}))
    said = {_FIELDS.get(key, key): one for key, one in section.items() if key not in _NO_FIELDS}
    return PrecisionSettings(kind, **usual | said)


def _scopes(at: str, value: str | tuple[str, ...]) -> tuple[str, ...]:
    texts = (value,) if isinstance(value, str) else value
    try:
        scoped("", texts)
    except ArgumentError as error:
        raise ArgumentError(at, error.got, error.wanted) from None
    return texts


def _linked(at: str, linked: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
    every = [name for names in linked for name in names]
    if len(set(every)) < len(every):
        twice = sorted({name for name in every if every.count(name) > 1})
        raise ArgumentError(at, shown(twice), "sets that do not overlap")
    return linked


def _check(table: Any) -> None:  # noqa: ANN401
    """Check what no type says, whose complaints get their path from where the table is."""
    for key in _CHECKS.keys() & {*table.__struct_fields__}:
        if (value := getattr(table, key)) is not UNSET:
            setattr(table, key, _CHECKS[key](key, value))


def _check_scoped(table: Any) -> None:  # noqa: ANN401
    if table.target_scopes is UNSET is table.ignored_scopes:
        raise ArgumentError("", "no scopes", "target_scopes, or ignored_scopes")
    _check(table)


def _check_percent(table: Any) -> None:  # noqa: ANN401
    try:
        checked_percent(tuple((_PERCENT | to_builtins(table)).values()))
    except ArgumentError as error:
        raise ArgumentError("", error.got, error.wanted) from None


def _table(keys: Section, check: Any = _check) -> Any:  # noqa: ANN401
    """Return the type of a table of these keys alone, none of which need be there."""
    kinds = {key: _table(one) if isinstance(one, dict) else one for key, one in keys.items()}
    fields = [(key, kind, UNSET) for key, kind in kinds.items()]
    methods = {"__post_init__": check}
    return defstruct("Table", fields, namespace=methods, forbid_unknown_fields=True)


# What each section may say: keys, and what their values must be.
_Bits = Annotated[int, Meta(ge=2, le=16)]
_Count = Annotated[int, Meta(ge=0, lt=2**31)]
_Number = Annotated[float, Meta(ge=0, lt=2**128)]
_Texts = tuple[str, ...]
_DEVICE: Any = Literal["ANY", "CPU", "GPU", "NPU", "TRIAL", "CPU_SPR"]
_CHECKS: Section = {
    **dict.fromkeys(("ignored_scopes", "target_scopes"), _scopes),
    "bitwidth_per_scope": lambda at, pairs: tuple((n, *_scopes(at, one)) for n, one in pairs),
    "traces_per_layer_path": lambda at, value: str(path(at, value)),
    "unified_scale_ops": _linked,
}
_SCOPING = {"ignored_scopes": str | _Texts, "target_scopes": str | _Texts, "validate_scopes": bool}
_QUANTIZER = {
    "bits": _Bits,
    "mode": Literal["symmetric", "asymmetric"],
    "per_channel": bool,
    "signed": bool,
}
_RANGE = {
    "type": Literal[
        "min_max", "mixed_min_max", "mean_min_max", "threesigma", "percentile", "mean_percentile"
    ],
    "params": _table(dict.fromkeys(_PERCENT, _Number), _check_percent),
    "num_init_samples": _Count,
}
_SCOPED_RANGE = {**_RANGE, **_SCOPING, "target_quantizer_group": Literal[ROLES]}
_OVERRIDE = {**_QUANTIZER, "initializer": {"range": _RANGE}}
_GROUP = {**_QUANTIZER, **_SCOPING, "logarithm_scale": bool}
_PRECISION = {
    **dict.fromkeys(("iter_number", "num_data_points", "warmup_iter_number"), _Count),
    **dict.fromkeys(("compression_ratio", "eval_subset_ratio", "tolerance"), _Number),
    "bits": Annotated[tuple[_Bits, ...], Meta(min_length=1)],
    "bitwidth_assignment_mode": Literal["strict", "liberal"],
    "bitwidth_per_scope": tuple[tuple[_Bits, str], ...],
    "dump_init_precision_data": bool,
    "traces_per_layer_path": str,
    "type": Literal[tuple(_RATIOS)],
}
_NO_FIELDS = ("bits", "bitwidth_per_scope", "dump_init_precision_data", "type")
_FIELDS = {
    "bitwidth_assignment_mode": "widths",
    "iter_number": "rounds",
    "num_data_points": "data_points",
    "warmup_iter_number": "warmup",
}
_OUTSIDE = ("export_to_onnx_standard_ops", "quantize_inputs", "quantize_outputs")
_SCOPED_RANGES = list.__class_getitem__(_table(_SCOPED_RANGE, _check_scoped))
_OVERRIDES = dict.__class_getitem__((str, _table(_OVERRIDE)))
_SECTION = _table(
    {
        **dict.fromkeys(_TRAINING, Any),
        **dict.fromkeys(_OUTSIDE, bool),
        **_SCOPING,
        "activations": {**_GROUP, "unified_scale_ops": tuple[_Texts, ...]},
        "algorithm": Literal["quantization"],
        "initializer": {
            "batchnorm_adaptation": {"num_bn_adaptation_samples": _Count},
            "precision": _PRECISION,
            "range": _table(_RANGE) | _SCOPED_RANGES,
        },
        "overflow_fix": Literal["enable", "first_layer_only", "disable"],
        "preset": Literal["performance", "mixed"],
        "scope_overrides": dict.fromkeys(ROLES, _OVERRIDES),
        "weights": _GROUP,
    }
)
