"""Meaning of the training tool's quantization configuration for named layers, in inference.

    a layer's tensor    weights or activations: the group's settings, then scope overrides in their
                        order, then the range of its scope, then widths by scope; a later one wins
    is quantized        unless an ignored scope of the group or of all names the layer, or the group
                        (without any, all) has target scopes and none does
    narrow              symmetric weights of 8 bits: codes from -127, but with half range
    half range          weights of 8 bits on "ANY" and "CPU", by `overflow_fix`
    a scope             a name, or an expression behind ``{re}`` that matches anywhere in one

Source: NNCF 2.18, the last version with this configuration.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyonednn_q.argument import items
from pyonednn_q.errors import ArgumentError
from pyonednn_q.quantize.alignment import GraphOperator
from pyonednn_q.quantize.placement import scoped
from pyonednn_q.quantize.propagation import place_quantizers
from pyonednn_q.quantize.tensor_settings import ROLES, TensorSettings
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyonednn_q.quantize.placement import Placement, QuantizationTarget

__all__ = [
    "LayerSettings",
    "PrecisionSettings",
    "QuantizationConfig",
    "ScopeOverride",
    "Scopes",
]

_ENDS = {"WEIGHT": ROLES[:1], "OUTPUT": ROLES[1:], "INPUT": ROLES[1:]}


@dataclass(frozen=True, slots=True)
class LayerSettings:
    """Quantization of a layer.

    Attributes
    ----------
    weights, activations : TensorSettings or None
        Settings of the tensor; None: float.
    """

    weights: TensorSettings | None
    activations: TensorSettings | None


@dataclass(frozen=True, slots=True)
class Scopes:
    """Selection of layers by name.

    Attributes
    ----------
    ignored : tuple of str
        Scopes that are not.
    targets : tuple of str or None
        Scopes that alone are; None: all.
    """

    ignored: tuple[str, ...] = ()
    targets: tuple[str, ...] | None = None

    def hold(self, layer: str) -> bool:
        """Return whether a layer is meant."""
        meant = self.targets is None or scoped(layer, self.targets)
        return meant and not scoped(layer, self.ignored)


@dataclass(frozen=True, slots=True)
class ScopeOverride:
    """Settings that differ for some layers.

    Attributes
    ----------
    roles : tuple of str
        "weights", "activations" or both.
    scopes : Scopes
    changes : tuple of (str, object)
        Fields of `TensorSettings` and their values.
    """

    roles: tuple[str, ...]
    scopes: Scopes
    changes: tuple[tuple[str, Any], ...]

    def hold(self, role: str, layer: str) -> bool:
        """Return whether a layer's tensor is meant."""
        return role in self.roles and self.scopes.hold(layer)


@dataclass(frozen=True, slots=True)
class PrecisionSettings:
    """Settings by which the widths of layers are chosen.

    Attributes
    ----------
    kind : str
        "hawq": `hutchinson_trace`, `sensitivity`, `assign_bits`; "autoq": `search_bits`; "manual":
        what `bitwidth_per_scope` says, which all kinds keep to.
    bits : tuple of int
        Widths to choose from.
    compression_ratio : float
        Ratio of sizes: with "hawq", how much less than INT8 (for `ratio_limit`); with "autoq", the
        size against FP32 (for `search_bits`).
    rounds : int
        `probes` of `hutchinson_trace`, or `trials` of `search_bits`.
    warmup : int
        `warmup` of `search_bits`.
    tolerance : float
        Tolerance of `hutchinson_trace`.
    data_points : int
        Number of samples to estimate the trace from.
    widths : str
        "strict" or "liberal", for `source_bits`.
    eval_subset_ratio : float
        Share of the samples on which each trial is evaluated.
    traces_per_layer_path : str or None
        Path of torch's tensor of traces, for `sensitivity`; None: traces are estimated.
    """

    kind: str = "manual"
    bits: tuple[int, ...] = (2, 4, 8)
    compression_ratio: float = 1.5
    rounds: int = 200
    tolerance: float = 1e-4
    data_points: int = 100
    widths: str = "liberal"
    eval_subset_ratio: float = 1.0
    traces_per_layer_path: str | None = None
    warmup: int = 20


@dataclass(frozen=True, slots=True)
class QuantizationConfig:
    """A configuration of the training tool; `read_config` makes it.

    Attributes
    ----------
    weights, activations : TensorSettings
        Default settings of tensors.
    weight_scopes, activation_scopes : Scopes
        Scopes of the layers whose weights and activations are quantized.
    overrides : tuple of ScopeOverride
        Overrides by scope; a later one replaces earlier ones.
    ranges : tuple of ScopeOverride
        Settings of ranges by scope. If there are any, exactly one must match each quantized
        tensor.
    bitwidth_per_scope : tuple of (int, str)
        Widths, and the layers that have them: the name, or with ``|WEIGHT``, ``|OUTPUT`` or
        ``|INPUT0`` behind it for one of its tensors.
    linked : tuple of tuple of str
        Sets of tensors that share a scale; no tensor is in two.
    overflow_fix : str
        "enable", "first_layer_only" or "disable": which weights use half of the range.
    target_device : str
        "ANY", "CPU", "CPU_SPR", "GPU", "NPU" or "TRIAL": whose quantizers; codes run here.
    precision : PrecisionSettings or None
        Search of widths; None: fixed widths.
    batch_norm_samples : int
        Number of samples that adapt the statistics of batch norms (`channel_moments`); 0: they are
        unchanged.
    quantize_inputs, quantize_outputs : bool
        Whether inputs and outputs of the network are quantized, as in `placements`.
    standard_onnx : bool
        Whether to export QuantizeLinear and DequantizeLinear (`to_onnx`) instead of FakeQuantize.
    validate_scopes : bool
        Whether `layers` refuses scopes that name no layer.
    unused : tuple of str
        Keys of the configuration without an effect here.
    """

    weights: TensorSettings
    activations: TensorSettings
    weight_scopes: Scopes = Scopes()
    activation_scopes: Scopes = Scopes()
    overrides: tuple[ScopeOverride, ...] = ()
    ranges: tuple[ScopeOverride, ...] = ()
    bitwidth_per_scope: tuple[tuple[int, str], ...] = ()
    linked: tuple[tuple[str, ...], ...] = ()
    overflow_fix: str = "enable"
    target_device: str = "ANY"
    precision: PrecisionSettings | None = None
    batch_norm_samples: int = 2000
    quantize_inputs: bool = True
    quantize_outputs: bool = False
    standard_onnx: bool = False
    validate_scopes: bool = True
    unused: tuple[str, ...] = ()

    def layers(
        self, names: Sequence[str], *, first: Sequence[str] | None = None
    ) -> dict[str, LayerSettings]:
        """Return the settings of each layer.

        Parameters
        ----------
        names : sequence of str
            Names of all layers, in order.
        first : sequence of str, optional
            Layers that read the network's inputs, for "first_layer_only"; default: the first of
            `names`.

        Raises
        ------
        ArgumentError
            Scopes that name no layer (with `validate_scopes`); a tensor that no range of
            `ranges` is for, or several are.
        """
        layers = items("names", names, str)
        leading = layers[:1] if first is None else items("first", first, str)
        if missing := [name for name in leading if name not in layers]:
            raise ArgumentError("first", shown(missing), f"of {shown(layers)}")
        if self.validate_scopes and (unknown := self._unknown(layers)):
            wanted = f"scopes of {shown(layers)}, or validate_scopes false"
            raise ArgumentError("names", f"no layer of {shown(unknown)}", wanted)
        return {
            name: LayerSettings(
                self._weights(name, first=name in leading), self._tensor("activations", name)
            )
            for name in layers
        }

    def placements(
        self, graph: Sequence[GraphOperator], target: QuantizationTarget
    ) -> tuple[Placement, ...]:
        """Return the quantizers of activations that `place_quantizers` finds.

        Parameters
        ----------
        graph : sequence of GraphOperator
            Operators in the order in which they run; scopes are names of their results.
        target : QuantizationTarget
            Target that decides what runs quantized.

        Raises
        ------
        ArgumentError
            Errors of `place_quantizers`; linked sets that overlap.
        """
        operators = items("graph", graph, GraphOperator)
        names = [operator.result for operator in operators]
        return place_quantizers(
            operators,
            target,
            ignored=[name for name in names if not self.activation_scopes.hold(name)],
            linked=self.linked,
            quantize_inputs=self.quantize_inputs,
            quantize_outputs=self.quantize_outputs,
        )

    def by_hand(self, names: Sequence[str]) -> dict[str, int]:
        """Return the fixed widths of weights: `by_hand` of `assign_bits`.

        Parameters
        ----------
        names : sequence of str
            Names of layers.
        """
        widths = ((name, self._width("weights", name)) for name in items("names", names, str))
        return {name: width for name, width in widths if width is not None}

    def _weights(self, name: str, *, first: bool) -> TensorSettings | None:
        tensor = self._tensor("weights", name)
        if tensor is None:
            return None
        half = (
            self.target_device in {"ANY", "CPU"}
            and (self.overflow_fix == "enable" or (self.overflow_fix != "disable" and first))
            and tensor.bits == 8
        )
        narrow = tensor.bits == 8 and tensor.symmetric and not half
        if self.target_device != "TRIAL":
            tensor = replace(tensor, signed=True if tensor.bits == 8 else None)
        return replace(tensor, half_range=half, narrow=narrow)

    def _tensor(self, role: str, name: str) -> TensorSettings | None:
        scopes = self.weight_scopes if role == "weights" else self.activation_scopes
        if not scopes.hold(name):
            return None
        settings = self.weights if role == "weights" else self.activations
        changes: dict[str, Any] = {}
        if self.ranges:
            held = [each for each in self.ranges if each.hold(role, name)]
            if len(held) != 1:
                got = f"{len(held)} entries for the {role} of {shown(name)}"
                raise ArgumentError("initializer.range", got, "one for each tensor")
            changes |= dict(held[0].changes)
        for each in self.overrides:
            if each.hold(role, name):
                changes |= dict(each.changes)
        width = self._width(role, name)
        if width is not None:
            changes["bits"] = width
        return replace(settings, **changes)

    def _width(self, role: str, name: str) -> int | None:
        width = None
        for bits, scope in self.bitwidth_per_scope:
            layer, roles = _quantizer(scope)
            if role in roles and scoped(name, [layer]):
                width = bits
        return width

    def _unknown(self, names: tuple[str, ...]) -> list[str]:
        """Return the scopes that name no layer."""
        every = [self.weight_scopes, self.activation_scopes]
        every += [each.scopes for each in (*self.overrides, *self.ranges)]
        scopes = [scope for each in every for scope in (*each.ignored, *(each.targets or ()))]
        scopes += [_quantizer(scope)[0] for _, scope in self.bitwidth_per_scope]
        return [
            scope
            for scope in dict.fromkeys(scopes)
            if not any(scoped(name, [scope]) for name in names)
        ]


def _quantizer(scope: str) -> tuple[str, tuple[str, ...]]:
    """Return the layer's scope and the roles of a quantizer's scope."""
    layer, _, end = scope.rpartition("|")
    roles = _ENDS.get(end.rstrip("0123456789"))
    return (layer, roles) if layer and roles else (scope, ROLES)
